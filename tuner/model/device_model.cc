#include "tuner/model/device_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "hone/v1/model.pb.h"

namespace hone {
namespace {

constexpr size_t kRowsBetweenTrainings = 8;
constexpr double kGrowth = 0.25;     // of the rows, until the trees are made anew
constexpr size_t kWorthSaving = 32;  // rows: two batches of a task, whose process it is
constexpr size_t kMostStoredRows = 1600;
constexpr size_t kRowsOfIntercept = 48;
// What the trees say is drawn to the draft, as if so many measured programs of the task had agreed with it and so many
// with the trees. Of a task without times an eleventh of the trees' correction is left: on the recorded spaces of five
// networks (tests/bench/search/networks) what the tasks of the others teach makes the draft's order no better, and
// worse when it counts in full. With 8 times of its own a quarter is best there, with 24 a half.
constexpr double kRowsOfDraft = 40, kRowsOfTrees = 4;

uint16_t ToBFloat16(float value) {  // rounded to the nearest
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
float FromBFloat16(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }

// Rows of today and those read back are the same numbers.
void Round(ProgramFeatures* features) {
  for (float& value : features->rows) value = FromBFloat16(ToBFloat16(value));
}

void Write(const TrainingRow& row, v1::ModelRow* stored) {
  stored->set_task(row.task);
  stored->set_program(row.program);
  stored->set_log_ratio(row.log_ratio);
  stored->set_log_us(row.log_us);
  std::string values;
  for (size_t s = 0; s < row.features.stores(); ++s) {
    stored->add_shares(row.features.shares[s]);
    uint32_t count = 0;
    const std::span<const float> features = row.features.row(s);
    for (size_t f = 0; f < features.size(); ++f) {
      if (features[f] == 0) continue;
      ++count;
      stored->add_places(static_cast<uint32_t>(f));
      const uint16_t half = ToBFloat16(features[f]);
      values.push_back(static_cast<char>(half & 0xff));
      values.push_back(static_cast<char>(half >> 8));
    }
    stored->add_counts(count);
  }
  stored->set_values(std::move(values));
}

absl::StatusOr<TrainingRow> Read(const v1::ModelRow& stored) {
  const absl::Status broken = absl::DataLossError("a row of the stored cost model is broken; the model is learnt anew");
  const int stores = stored.shares_size();
  if (stores < 1 || stores > static_cast<int>(kMostStores) || stored.counts_size() != stores) return broken;
  if (stored.values().size() != 2 * static_cast<size_t>(stored.places_size())) return broken;
  if (!std::isfinite(stored.log_ratio()) || !std::isfinite(stored.log_us())) return broken;
  TrainingRow row;
  row.task = stored.task();
  row.program = stored.program();
  row.log_ratio = stored.log_ratio();
  row.log_us = stored.log_us();
  row.features.shares.assign(stored.shares().begin(), stored.shares().end());
  row.features.rows.assign(static_cast<size_t>(stores) * NumFeatures(), 0.0f);
  size_t at = 0;
  for (int s = 0; s < stores; ++s) {
    if (!(stored.shares(s) >= 0 && stored.shares(s) <= 1)) return broken;
    for (uint32_t i = 0; i < stored.counts(s); ++i, ++at) {
      if (at >= static_cast<size_t>(stored.places_size())) return broken;
      const uint32_t place = stored.places(static_cast<int>(at));
      const float value =
          FromBFloat16(static_cast<uint16_t>(static_cast<unsigned char>(stored.values()[2 * at]) |
                                             static_cast<unsigned char>(stored.values()[2 * at + 1]) << 8));
      if (place >= NumFeatures() || !std::isfinite(value)) return broken;
      row.features.rows[static_cast<size_t>(s) * NumFeatures() + place] = value;
    }
  }
  return at == static_cast<size_t>(stored.places_size()) ? absl::StatusOr<TrainingRow>(std::move(row)) : broken;
}

// The places of rows to keep: task after task in turn, each one's fastest first, so that no task crowds out another.
std::vector<size_t> Kept(std::span<const TrainingRow> rows, size_t most) {
  std::map<uint64_t, std::vector<size_t>> by_task;
  for (size_t i = 0; i < rows.size(); ++i) by_task[rows[i].task].push_back(i);
  for (auto& [task, places] : by_task) {
    std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return rows[a].log_us < rows[b].log_us; });
    // Half of what is kept is the fastest, the rest is spread over all the others.
    const size_t fastest = std::min(places.size(), most / (2 * by_task.size()) + 1);
    std::stable_sort(places.begin() + static_cast<std::ptrdiff_t>(fastest), places.end(),
                     [&](size_t a, size_t b) { return rows[a].program < rows[b].program; });
  }
  std::vector<size_t> kept;
  for (size_t turn = 0; kept.size() < most && kept.size() < rows.size(); ++turn) {
    for (const auto& [task, places] : by_task) {
      if (turn < places.size() && kept.size() < most) kept.push_back(places[turn]);
    }
  }
  std::sort(kept.begin(), kept.end());  // oldest first, as they came
  return kept;
}

}  // namespace

void DeviceModel::Observe(TrainingRow row) {
  if (row.features.stores() == 0 || !std::isfinite(row.log_ratio) || !std::isfinite(row.log_us)) return;
  if (!known_.emplace(row.task, row.program).second) return;
  Round(&row.features);
  rows_.push_back(std::move(row));
  ++unsaved_;
}

size_t DeviceModel::Forget(size_t rows) {
  if (rows <= kMostRows) return rows;
  std::vector<TrainingRow> left;
  for (const size_t place : Kept(std::span(rows_).first(rows), kMostRows * 3 / 4))
    left.push_back(std::move(rows_[place]));
  const size_t kept = left.size();
  left.insert(left.end(), std::make_move_iterator(rows_.begin() + static_cast<std::ptrdiff_t>(rows)),
              std::make_move_iterator(rows_.end()));
  rows_ = std::move(left);
  return kept;
}

absl::Status DeviceModel::TrainIfDue(uint64_t seed) {
  // Of the trainings that would have been due after every few rows, the last is what counts.
  size_t at = trained_rows_, base = base_rows_;
  bool due = false;
  while (at + kRowsBetweenTrainings <= rows_.size()) {
    at += kRowsBetweenTrainings;
    if (at < CostModel::kMinRows) continue;
    due = true;
    const bool grown = static_cast<double>(at - base) > kGrowth * static_cast<double>(base);
    if (base > 0 && !grown && at <= kMostRows) continue;
    base = at = Forget(at);
  }
  if (!due) return absl::OkStatus();
  trained_rows_ = at;
  if (base != base_rows_ || !base_.trained()) {
    base_rows_ = base;
    HONE_RETURN_IF_ERROR(base_.Train(std::span(rows_).first(base), seed + base));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> trees, base_.Save());
  CostModel corrected;
  HONE_RETURN_IF_ERROR(corrected.Load(trees));
  HONE_RETURN_IF_ERROR(corrected.TrainFurther(std::span(rows_).subspan(base, at - base), seed + at));
  model_ = std::move(corrected);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Prediction>> DeviceModel::Predict(uint64_t task,
                                                             std::span<const ProgramFeatures> programs) const {
  std::vector<ProgramFeatures> all(programs.begin(), programs.end());
  for (ProgramFeatures& program : all) Round(&program);
  std::vector<double> measured;
  double own_rows = 0;
  for (size_t i = rows_.size(); i-- > 0;) {
    if (rows_[i].task != task) continue;
    ++own_rows;
    if (measured.size() == kRowsOfIntercept) continue;
    measured.push_back(static_cast<double>(rows_[i].log_ratio));
    all.push_back(rows_[i].features);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<Prediction> predictions, model_.Predict(all));
  const double trust = (kRowsOfTrees + own_rows) / (kRowsOfTrees + kRowsOfDraft + own_rows);
  for (Prediction& prediction : predictions) {
    prediction.log_ratio *= trust;
    prediction.deviation *= trust;
  }
  double intercept = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    intercept += (measured[i] - predictions[programs.size() + i].log_ratio) / static_cast<double>(measured.size());
  }
  predictions.resize(programs.size());
  for (Prediction& prediction : predictions) prediction.log_ratio += intercept;
  return predictions;
}

absl::Status DeviceModel::Merge(const std::string& bytes) {
  v1::StoredModel stored;
  if (bytes.size() > kMostBytes || !stored.ParseFromString(bytes))
    return absl::DataLossError("the stored cost model cannot be read; it is learnt anew");
  if (stored.feature_version() != kFeatureVersion || stored.features() != NumFeatures()) {
    return absl::FailedPreconditionError(absl::StrCat("the stored cost model is for features of version ",
                                                      stored.feature_version(), ", this program's are ",
                                                      kFeatureVersion, "; it is learnt anew"));
  }
  std::vector<TrainingRow> rows;
  for (const v1::ModelRow& row : stored.rows()) { HONE_ASSIGN_OR_RETURN(rows.emplace_back(), Read(row)); }
  if (stored.trained_rows() > rows.size()) return absl::DataLossError("the stored cost model is broken");
  // Those of the stored model first: its trees have seen the first of them.
  const size_t trained = stored.trained_rows() > 0 ? stored.trained_rows() : rows.size();
  const bool adopt = trained >= base_rows_ && stored.boosters_size() > 0;
  if (adopt) {
    const std::vector<std::string> trees(stored.boosters().begin(), stored.boosters().end());
    CostModel base, model;
    HONE_RETURN_IF_ERROR(base.Load(trees));
    HONE_RETURN_IF_ERROR(model.Load(trees));
    base_ = std::move(base);
    model_ = std::move(model);
  }
  std::set<std::pair<uint64_t, uint64_t>> of_stored;
  for (const TrainingRow& row : rows) of_stored.emplace(row.task, row.program);
  const auto is_stored = [&](const TrainingRow& row) { return of_stored.count({row.task, row.program}) > 0; };
  std::vector<TrainingRow> own = std::move(rows_);
  const auto unsaved = static_cast<size_t>(std::ranges::count_if(own, std::not_fn(is_stored)));
  unsaved_ = std::min(unsaved_, unsaved);
  if (adopt) {
    std::erase_if(own, is_stored);
    base_rows_ = trained_rows_ = trained;
    rows_ = std::move(rows);
    rows_.insert(rows_.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  } else {
    rows_ = std::move(own);
    for (TrainingRow& row : rows) {
      if (known_.count({row.task, row.program}) == 0) rows_.push_back(std::move(row));
    }
  }
  for (const auto& id : of_stored) known_.insert(id);
  return absl::OkStatus();
}

bool DeviceModel::worth_saving() const { return model_.trained() && unsaved_ >= kWorthSaving; }

absl::StatusOr<std::string> DeviceModel::Save() const {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> trees, base_.Save());
  for (size_t most = kMostStoredRows; most > 0; most /= 2) {
    v1::StoredModel stored;
    stored.set_feature_version(kFeatureVersion);
    stored.set_features(static_cast<uint32_t>(NumFeatures()));
    for (const std::string& tree : trees) stored.add_boosters(tree);
    const std::vector<size_t> kept = Kept(rows_, most);  // in their order, those that the trees have seen first
    for (const size_t place : kept) Write(rows_[place], stored.add_rows());
    const auto trained = std::ranges::lower_bound(kept, base_rows_) - kept.begin();
    stored.set_trained_rows(static_cast<uint32_t>(trained));
    std::string bytes = stored.SerializeAsString();
    if (bytes.size() <= kMostBytes) return bytes;
  }
  return absl::ResourceExhaustedError(absl::StrCat("the trees of the cost model are above ", kMostBytes, " bytes"));
}

}  // namespace hone
