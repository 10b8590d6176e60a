#include "tuner/model/cost_model.h"

#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "compiler/support/random.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int kBoosters = 3;
constexpr int kRounds = 80;
constexpr int kFurtherRounds = 24;
constexpr double kShare = 0.8;  // of the programs that each booster sees
constexpr size_t kDigest = 32;  // bytes in front of each stored booster
// A store counts by its share of the time. Its curvature is kept above this, or stores that hardly matter would get
// corrections of any size.
constexpr float kLeastCurvature = 0.02f;

absl::Status Xgb(int code) {
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("XGBoost: ", XGBGetLastError()));
}

struct FreeMatrix {
  void operator()(void* m) const { XGDMatrixFree(m); }
};
struct FreeBooster {
  void operator()(void* b) const { XGBoosterFree(b); }
};
using Matrix = std::unique_ptr<void, FreeMatrix>;
using Booster = std::unique_ptr<void, FreeBooster>;

// The stores of all programs, one after the other.
struct Stores {
  std::vector<float> values, shares;
  std::vector<size_t> ends;  // of every program's stores

  void Add(const ProgramFeatures& program) {
    values.insert(values.end(), program.rows.begin(), program.rows.end());
    shares.insert(shares.end(), program.shares.begin(), program.shares.end());
    ends.push_back(shares.size());
  }
  absl::StatusOr<Matrix> MakeMatrix() const {
    DMatrixHandle handle = nullptr;
    HONE_RETURN_IF_ERROR(Xgb(XGDMatrixCreateFromMat_omp(values.data(), shares.size(), values.size() / shares.size(),
                                                        std::numeric_limits<float>::quiet_NaN(), &handle, 1)));
    return Matrix(handle);
  }
  // The programs' sums from what the trees say of every store.
  std::vector<double> Sums(const float* of_stores) const {
    std::vector<double> sums;
    size_t store = 0;
    for (const size_t end : ends) {
      double sum = 0;
      for (; store < end; ++store) sum += static_cast<double>(shares[store]) * static_cast<double>(of_stores[store]);
      sums.push_back(sum);
    }
    return sums;
  }
};

absl::StatusOr<Booster> NewBooster(const DMatrixHandle* data, uint64_t seed) {
  BoosterHandle handle = nullptr;
  HONE_RETURN_IF_ERROR(Xgb(XGBoosterCreate(data, data == nullptr ? 0 : 1, &handle)));
  Booster booster(handle);
  // Shallower and with smaller steps than in search.md 2c: there are thousands of rows here, not hundreds of thousands.
  const std::pair<const char*, std::string> parameters[] = {
      {"max_depth", "5"},
      {"eta", "0.15"},
      {"gamma", "0.001"},
      {"min_child_weight", "0.1"},
      {"subsample", "0.8"},
      {"colsample_bytree", "0.5"},
      {"tree_method", "hist"},
      {"max_bin", "64"},
      {"objective", "reg:squarederror"},  // never asked: gradients are made here
      {"nthread", "1"},
      {"verbosity", "0"},
      {"base_score", "0"},
      {"seed", std::to_string(seed & 0x7fffffff)},
  };
  for (const auto& [name, value] : parameters)
    HONE_RETURN_IF_ERROR(Xgb(XGBoosterSetParam(booster.get(), name, value.c_str())));
  return booster;
}

absl::StatusOr<std::string> Bytes(BoosterHandle booster) {
  bst_ulong length = 0;
  const char* raw = nullptr;
  HONE_RETURN_IF_ERROR(Xgb(XGBoosterSaveModelToBuffer(booster, R"({"format": "ubj"})", &length, &raw)));
  return std::string(raw, length);
}

// What training wants to come out, of the programs one booster sees.
struct Goal {
  std::vector<float> log_ratio, weight;
  std::vector<size_t> task;  // numbered from 0
  size_t tasks = 0;
};

// Squared error with a free intercept for every task, which is the same as the squared error of all differences within
// a task: the gradient is that of the residual less the task's mean residual.
absl::Status Boost(BoosterHandle booster, DMatrixHandle matrix, const Stores& stores, const Goal& goal, int first_round,
                   int rounds) {
  std::vector<float> gradient(stores.shares.size()), curvature(stores.shares.size());
  for (int round = first_round; round < first_round + rounds; ++round) {
    bst_ulong length = 0;
    const float* values = nullptr;
    HONE_RETURN_IF_ERROR(
        Xgb(XGBoosterPredict(booster, matrix, /*option_mask=*/1, 0, /*training=*/1, &length, &values)));
    if (length != stores.shares.size())
      return absl::InternalError("XGBoost predicted another number of rows than given");
    std::vector<double> residual = stores.Sums(values);
    std::vector<double> sum(goal.tasks, 0), weight(goal.tasks, 0);
    for (size_t p = 0; p < residual.size(); ++p) {
      residual[p] -= static_cast<double>(goal.log_ratio[p]);
      sum[goal.task[p]] += residual[p] * static_cast<double>(goal.weight[p]);
      weight[goal.task[p]] += static_cast<double>(goal.weight[p]);
    }
    size_t store = 0;
    for (size_t p = 0; p < residual.size(); ++p) {
      const float r = static_cast<float>(residual[p] - sum[goal.task[p]] / weight[goal.task[p]]);
      for (; store < stores.ends[p]; ++store) {
        gradient[store] = r * goal.weight[p] * stores.shares[store];
        curvature[store] = goal.weight[p] * std::max(stores.shares[store], kLeastCurvature);
      }
    }
    HONE_RETURN_IF_ERROR(Xgb(XGBoosterBoostOneIter(booster, matrix, gradient.data(), curvature.data(), length)));
  }
  return absl::OkStatus();
}

}  // namespace

struct CostModel::Impl {
  std::vector<Booster> boosters;

  absl::StatusOr<std::vector<Booster>> Fit(std::span<const TrainingRow> rows, uint64_t seed, bool further) const;
};

CostModel::CostModel() : impl_(std::make_unique<Impl>()) {}
CostModel::CostModel(CostModel&&) noexcept = default;
CostModel& CostModel::operator=(CostModel&&) noexcept = default;
CostModel::~CostModel() = default;

bool CostModel::trained() const { return !impl_->boosters.empty(); }

absl::StatusOr<std::vector<Booster>> CostModel::Impl::Fit(std::span<const TrainingRow> rows, uint64_t seed,
                                                          bool further) const {
  std::unordered_map<uint64_t, std::pair<size_t, float>> tasks;  // number, least log time
  for (const TrainingRow& row : rows) {
    const auto [found, fresh] = tasks.try_emplace(row.task, tasks.size(), row.log_us);
    found->second.second = std::min(found->second.second, row.log_us);
  }
  std::vector<Booster> made;
  for (int b = 0; b < kBoosters; ++b) {
    Random random(seed, static_cast<uint64_t>(b));
    Stores stores;
    Goal goal;
    goal.tasks = tasks.size();
    for (const TrainingRow& row : rows) {
      if (!random.Chance(kShare)) continue;
      const auto& [number, least] = tasks.at(row.task);
      stores.Add(row.features);
      goal.log_ratio.push_back(row.log_ratio);
      goal.weight.push_back(std::exp(least - row.log_us));
      goal.task.push_back(number);
    }
    if (stores.shares.empty()) continue;
    HONE_ASSIGN_OR_RETURN(const Matrix matrix, stores.MakeMatrix());
    DMatrixHandle handle = matrix.get();
    HONE_ASSIGN_OR_RETURN(Booster booster, NewBooster(&handle, seed + static_cast<uint64_t>(b)));
    int rounds_before = 0;
    if (further) {
      HONE_ASSIGN_OR_RETURN(const std::string bytes, Bytes(boosters[static_cast<size_t>(b)].get()));
      HONE_RETURN_IF_ERROR(Xgb(XGBoosterLoadModelFromBuffer(booster.get(), bytes.data(), bytes.size())));
      HONE_RETURN_IF_ERROR(Xgb(XGBoosterBoostedRounds(booster.get(), &rounds_before)));
    }
    HONE_RETURN_IF_ERROR(Boost(booster.get(), handle, stores, goal, rounds_before, further ? kFurtherRounds : kRounds));
    made.push_back(std::move(booster));
  }
  return made;
}

absl::Status CostModel::Train(std::span<const TrainingRow> rows, uint64_t seed) {
  if (rows.size() < kMinRows) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(impl_->boosters, impl_->Fit(rows, seed, /*further=*/false));
  return absl::OkStatus();
}

absl::Status CostModel::TrainFurther(std::span<const TrainingRow> rows, uint64_t seed) {
  if (impl_->boosters.size() != kBoosters) return Train(rows, seed);
  if (rows.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(std::vector<Booster> boosters, impl_->Fit(rows, seed, /*further=*/true));
  if (boosters.size() == kBoosters) impl_->boosters = std::move(boosters);  // else so few rows that a booster saw none
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Prediction>> CostModel::Predict(std::span<const ProgramFeatures> programs) const {
  std::vector<Prediction> predictions(programs.size());
  if (programs.empty() || !trained()) return predictions;
  Stores stores;
  for (const ProgramFeatures& program : programs) stores.Add(program);
  HONE_ASSIGN_OR_RETURN(const Matrix matrix, stores.MakeMatrix());
  std::vector<double> sum(programs.size(), 0), squares(programs.size(), 0);
  for (const Booster& booster : impl_->boosters) {
    bst_ulong length = 0;
    const float* values = nullptr;
    HONE_RETURN_IF_ERROR(Xgb(XGBoosterPredict(booster.get(), matrix.get(), /*option_mask=*/1, 0, 0, &length, &values)));
    if (length != stores.shares.size())
      return absl::InternalError("XGBoost predicted another number of rows than given");
    const std::vector<double> of_programs = stores.Sums(values);
    for (size_t i = 0; i < programs.size(); ++i) {
      sum[i] += of_programs[i];
      squares[i] += of_programs[i] * of_programs[i];
    }
  }
  const double n = static_cast<double>(impl_->boosters.size());
  for (size_t i = 0; i < programs.size(); ++i) {
    predictions[i].log_ratio = sum[i] / n;
    predictions[i].deviation =
        std::sqrt(std::max(0.0, squares[i] / n - predictions[i].log_ratio * predictions[i].log_ratio));
  }
  return predictions;
}

absl::StatusOr<std::vector<std::string>> CostModel::Save() const {
  std::vector<std::string> saved;
  for (const Booster& booster : impl_->boosters) {
    HONE_ASSIGN_OR_RETURN(std::string bytes, Bytes(booster.get()));
    saved.push_back(Sha256(bytes) + bytes);
  }
  return saved;
}

absl::Status CostModel::Load(std::span<const std::string> saved) {
  if (!saved.empty() && saved.size() != kBoosters) {
    return absl::DataLossError(absl::StrCat("the stored cost model has ", saved.size(), " sets of trees, not ",
                                            kBoosters, "; it is learnt anew"));
  }
  std::vector<Booster> boosters;
  for (const std::string& marked : saved) {
    // XGBoost reads past the end of what was cut short, so it sees only what it wrote itself.
    if (marked.size() <= kDigest || Sha256(marked.substr(kDigest)) != marked.substr(0, kDigest))
      return absl::DataLossError("the stored cost model is damaged; it is learnt anew");
    const std::string bytes = marked.substr(kDigest);
    HONE_ASSIGN_OR_RETURN(Booster booster, NewBooster(nullptr, 0));
    HONE_RETURN_IF_ERROR(Xgb(XGBoosterLoadModelFromBuffer(booster.get(), bytes.data(), bytes.size())));
    bst_ulong features = 0;
    HONE_RETURN_IF_ERROR(Xgb(XGBoosterGetNumFeature(booster.get(), &features)));
    if (features != NumFeatures())
      return absl::DataLossError(absl::StrCat("the stored cost model is for ", features, " features, not ",
                                              NumFeatures(), "; it is learnt anew"));
    boosters.push_back(std::move(booster));
  }
  impl_->boosters = std::move(boosters);
  return absl::OkStatus();
}

}  // namespace hone
