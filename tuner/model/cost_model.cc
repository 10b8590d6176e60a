#include "tuner/model/cost_model.h"

#include <xgboost/c_api.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int kBoosters = 3;
constexpr int kRounds = 60;
constexpr double kShare = 0.75;  // of the rows that each booster sees

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

absl::StatusOr<Matrix> MakeMatrix(const std::vector<float>& flat, size_t rows) {
  DMatrixHandle handle = nullptr;
  HONE_RETURN_IF_ERROR(Xgb(
      XGDMatrixCreateFromMat(flat.data(), rows, flat.size() / rows, std::numeric_limits<float>::quiet_NaN(), &handle)));
  return Matrix(handle);
}

absl::StatusOr<Booster> NewBooster(const DMatrixHandle* data, uint64_t seed) {
  BoosterHandle handle = nullptr;
  HONE_RETURN_IF_ERROR(Xgb(XGBoosterCreate(data, data == nullptr ? 0 : 1, &handle)));
  Booster booster(handle);
  // Depth, rate and penalties as in search.md 2c, with shallower trees: there are hundreds of rows here, not tens of
  // thousands.
  const std::pair<const char*, std::string> parameters[] = {
      {"max_depth", "6"},
      {"eta", "0.2"},
      {"gamma", "0.001"},
      {"min_child_weight", "0.5"},
      {"objective", "reg:squarederror"},
      {"nthread", "1"},
      {"verbosity", "0"},
      {"base_score", "0"},
      {"seed", std::to_string(seed & 0x7fffffff)},
  };
  for (const auto& [name, value] : parameters)
    HONE_RETURN_IF_ERROR(Xgb(XGBoosterSetParam(booster.get(), name, value.c_str())));
  return booster;
}

}  // namespace

struct CostModel::Impl {
  std::vector<Booster> boosters;
};

CostModel::CostModel() : impl_(std::make_unique<Impl>()) {}
CostModel::CostModel(CostModel&&) noexcept = default;
CostModel& CostModel::operator=(CostModel&&) noexcept = default;
CostModel::~CostModel() = default;

bool CostModel::trained() const { return !impl_->boosters.empty(); }

absl::Status CostModel::Train(std::span<const TrainingRow> rows, uint64_t seed) {
  if (rows.size() < kMinRows) return absl::OkStatus();
  std::vector<Booster> boosters;
  for (int b = 0; b < kBoosters; ++b) {
    Random random(seed, static_cast<uint64_t>(b));
    std::vector<float> flat, labels, weights;
    for (const TrainingRow& row : rows) {
      if (!random.Chance(kShare)) continue;
      flat.insert(flat.end(), row.features.begin(), row.features.end());
      labels.push_back(row.log_ratio);
      weights.push_back(row.weight);
    }
    if (labels.empty()) continue;
    HONE_ASSIGN_OR_RETURN(const Matrix matrix, MakeMatrix(flat, labels.size()));
    HONE_RETURN_IF_ERROR(Xgb(XGDMatrixSetFloatInfo(matrix.get(), "label", labels.data(), labels.size())));
    HONE_RETURN_IF_ERROR(Xgb(XGDMatrixSetFloatInfo(matrix.get(), "weight", weights.data(), weights.size())));
    DMatrixHandle handle = matrix.get();
    HONE_ASSIGN_OR_RETURN(Booster booster, NewBooster(&handle, seed + static_cast<uint64_t>(b)));
    for (int round = 0; round < kRounds; ++round)
      HONE_RETURN_IF_ERROR(Xgb(XGBoosterUpdateOneIter(booster.get(), round, handle)));
    boosters.push_back(std::move(booster));
  }
  impl_->boosters = std::move(boosters);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Prediction>> CostModel::Predict(std::span<const std::vector<float>> rows) const {
  std::vector<Prediction> predictions(rows.size());
  if (rows.empty() || !trained()) return predictions;
  std::vector<float> flat;
  for (const std::vector<float>& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  HONE_ASSIGN_OR_RETURN(const Matrix matrix, MakeMatrix(flat, rows.size()));
  std::vector<double> sum(rows.size(), 0), squares(rows.size(), 0);
  for (const Booster& booster : impl_->boosters) {
    bst_ulong length = 0;
    const float* values = nullptr;
    HONE_RETURN_IF_ERROR(Xgb(XGBoosterPredict(booster.get(), matrix.get(), 0, 0, 0, &length, &values)));
    if (length != rows.size()) return absl::InternalError("XGBoost predicted another number of rows than it was given");
    for (size_t i = 0; i < rows.size(); ++i) {
      sum[i] += values[i];
      squares[i] += static_cast<double>(values[i]) * values[i];
    }
  }
  const double n = static_cast<double>(impl_->boosters.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    predictions[i].log_ratio = sum[i] / n;
    predictions[i].deviation =
        std::sqrt(std::max(0.0, squares[i] / n - predictions[i].log_ratio * predictions[i].log_ratio));
  }
  return predictions;
}

absl::StatusOr<std::string> CostModel::Save() const {
  std::string bytes;
  for (const Booster& booster : impl_->boosters) {
    bst_ulong length = 0;
    const char* raw = nullptr;
    HONE_RETURN_IF_ERROR(Xgb(XGBoosterSaveModelToBuffer(booster.get(), R"({"format": "ubj"})", &length, &raw)));
    const uint64_t size = length;
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes.append(raw, length);
  }
  return bytes;
}

absl::Status CostModel::Load(const std::string& bytes) {
  std::vector<Booster> boosters;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t size = 0;
    if (bytes.size() - at < sizeof(size)) return absl::DataLossError("the stored cost model is cut short");
    std::memcpy(&size, bytes.data() + at, sizeof(size));
    at += sizeof(size);
    if (size > bytes.size() - at) return absl::DataLossError("the stored cost model is cut short");
    HONE_ASSIGN_OR_RETURN(Booster booster, NewBooster(nullptr, 0));
    HONE_RETURN_IF_ERROR(Xgb(XGBoosterLoadModelFromBuffer(booster.get(), bytes.data() + at, size)));
    boosters.push_back(std::move(booster));
    at += size;
  }
  impl_->boosters = std::move(boosters);
  return absl::OkStatus();
}

}  // namespace hone
