#include "tests/compiler/topi/expect_computes.h"

#include <cmath>
#include <random>

#include "compiler/interp/interpreter.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/compiler/text/reads_back.h"

namespace hone::topi {

bool Values::Has(const Index& at) const {
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d] < 0 || at[d] >= array_.shape[d]) return false;
  }
  return at.size() == array_.shape.size();
}

double Values::operator()(const Index& at) const {
  if (!Has(at)) return 0;
  int64_t place = 0;
  for (size_t d = 0; d < at.size(); ++d) place = place * array_.shape[d] + at[d];
  return array_.Get(place);
}

std::vector<NdArray> RandomArrays(const std::vector<te::Tensor>& inputs, const Inputs& how, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<NdArray> arrays;
  for (const te::Tensor& input : inputs) {
    NdArray array(input.dtype(), input.StaticShape());
    for (int64_t i = 0; i < array.NumElements(); ++i) {
      const double u = std::uniform_real_distribution<double>(0, 1)(random);
      if (input.dtype().is_float()) {
        array.Set(i, how.low + u * (how.high - how.low));
      } else {
        const int64_t low = input.dtype().is_bool() ? 0 : how.int_low,
                      high = input.dtype().is_bool() ? 2 : how.int_high;
        array.SetInt(i, low + static_cast<int64_t>(u * static_cast<double>(high - low)));
      }
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

void ExpectComputes(const std::vector<te::Tensor>& inputs, const te::Tensor& output, const Naive& naive,
                    const Inputs& how) {
  ExpectComputesOn(inputs, RandomArrays(inputs, how, 7), output, naive, how);
}

void ExpectComputesOn(const std::vector<te::Tensor>& inputs, const std::vector<NdArray>& arrays,
                      const te::Tensor& output, const Naive& naive, const Inputs& how) {
  const PrimFunc f = te::CreatePrimFunc(inputs, {output}, "main");
  ASSERT_TRUE(Verify(f).ok()) << Verify(f) << "\n" << ToText(f);
  EXPECT_EQ(ReadBackError(f), "");
  std::vector<NdArray> arguments = arrays;
  arguments.emplace_back(output.dtype(), output.StaticShape());
  const absl::Status ran = Interpret(f, arguments, {});
  ASSERT_TRUE(ran.ok()) << ran << "\n" << ToText(f);
  std::vector<Values> values;
  for (const NdArray& array : arrays) values.emplace_back(array);
  int wrong = 0;
  const std::vector<Index> indices = AllIndices(output.StaticShape());
  for (size_t i = 0; i < indices.size(); ++i) {
    const double want = naive(values, indices[i]), got = arguments.back().Get(static_cast<int64_t>(i));
    const bool same = want == got || (std::isnan(want) && std::isnan(got)) ||
                      std::abs(want - got) <= how.tolerance * (1 + std::abs(want));
    if (!same && ++wrong <= 3) {
      ADD_FAILURE() << output.name() << " at " << testing::PrintToString(indices[i]) << " is " << got << ", not "
                    << want;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << indices.size() << " elements; the program:\n" << ToText(f);
}

std::vector<Index> AllIndices(const std::vector<int64_t>& shape) {
  std::vector<Index> all = {{}};
  for (const int64_t size : shape) {
    std::vector<Index> longer;
    for (const Index& index : all) {
      for (int64_t i = 0; i < size; ++i) {
        longer.push_back(index);
        longer.back().push_back(i);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<std::string> BlockNames(const PrimFunc& f) {
  std::vector<std::string> names;
  ForEachStmt(f.body, [&](const Stmt& s) {
    if (const BlockRealize* realize = s.As<BlockRealize>()) names.push_back(realize->block.name);
    return true;
  });
  names.erase(names.begin());  // root
  return names;
}

}  // namespace hone::topi
