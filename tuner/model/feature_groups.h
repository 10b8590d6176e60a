// The groups of features that a row is made of, one function each; feature_groups.cc. A group writes the same number of
// values for every store.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/nest_costs.h"
#include "tuner/model/store_nest.h"

namespace hone {

// Takes a row's values, or, when names are wanted, what they are called.
class FeatureSink {
 public:
  FeatureSink(std::vector<float>* values, std::vector<std::string>* names) : values_(values), names_(names) {}

  void Raw(std::string_view name, double value) {
    if (names_ != nullptr) names_->push_back(prefix_ + std::string(name));
    if (values_ != nullptr) values_->push_back(static_cast<float>(value));
  }
  void Flag(std::string_view name, bool value) { Raw(name, value ? 1 : 0); }
  void Log(std::string_view name, double count);    // log2(count + 1)
  void Ratio(std::string_view name, double ratio);  // log2, between 2^-12 and 2^12
  void set_prefix(std::string_view prefix) { prefix_ = prefix; }

 private:
  std::vector<float>* values_;
  std::vector<std::string>* names_;
  std::string prefix_;
};

// A buffer's last use before the nest at hand, for reuse between statements.
struct EarlierUses {
  struct Use {
    Buffer buffer;
    double at_bytes = 0;       // bytes touched by the program until then
    double at_iterations = 0;  // and iterations
  };
  std::vector<Use> uses;
  double bytes = 0, iterations = 0;

  const Use* Find(const Buffer& buffer) const;
  void Note(const StoreNest& nest, const NestLevels& levels);
};

void OperationFeatures(const StoreNest& nest, double iterations, FeatureSink* sink);
void AnnotationFeatures(const StoreNest& nest, FeatureSink* sink);
void BufferFeatures(const StoreNest& nest, const NestLevels& levels, const EarlierUses& earlier, FeatureSink* sink);
void IntensityFeatures(const StoreNest& nest, const NestLevels& levels, FeatureSink* sink);
void AllocationFeatures(const StoreNest& nest, FeatureSink* sink);
void OuterFeatures(const StoreNest& nest, FeatureSink* sink);
void MachineFeatures(const StoreNest& nest, const NestLevels& levels, const NestCosts& costs,
                     const NestMachine& machine, FeatureSink* sink);

}  // namespace hone
