#include "compiler/topi/dense.h"

#include "gtest/gtest.h"
#include "tests/compiler/topi/expect_computes.h"

namespace hone::topi {
namespace {

using te::Placeholder;
using te::Tensor;

// numpy's matmul of operands of rank 2 and more, at an index of the result.
double Product(const Values& a, const Values& b, const Index& at, bool transpose_a, bool transpose_b) {
  const auto operand = [&](const Values& t, int64_t row, int64_t column) {
    Index from;
    const int batch = t.rank() - 2, leading = static_cast<int>(at.size()) - 2;
    for (int d = 0; d < batch; ++d) from.push_back(t.dim(d) == 1 ? 0 : at[leading - batch + d]);
    from.push_back(row);
    from.push_back(column);
    return t(from);
  };
  const int64_t m = at[at.size() - 2], n = at.back(), inner = a.dim(a.rank() - (transpose_a ? 2 : 1));
  double sum = 0;
  for (int64_t k = 0; k < inner; ++k) {
    sum += (transpose_a ? operand(a, k, m) : operand(a, m, k)) * (transpose_b ? operand(b, n, k) : operand(b, k, n));
  }
  return sum;
}

TEST(Dense, MatchesLoops) {
  for (const bool transpose : {false, true}) {
    for (const std::vector<int64_t>& leading : std::vector<std::vector<int64_t>>{{}, {1}, {7}, {2, 3}}) {
      std::vector<int64_t> shape = leading;
      shape.push_back(13);
      const Tensor x = Placeholder(shape, kFloat32, "x");
      const Tensor w =
          Placeholder(transpose ? std::vector<int64_t>{5, 13} : std::vector<int64_t>{13, 5}, kFloat32, "w");
      ExpectComputes({x, w}, Dense(x, w, transpose), [&](const std::vector<Values>& in, const Index& at) {
        double sum = 0;
        for (int64_t k = 0; k < 13; ++k) {
          Index from = at;
          from.back() = k;
          sum += in[0](from) * (transpose ? in[1]({at.back(), k}) : in[1]({k, at.back()}));
        }
        return sum;
      });
    }
  }
}

// Of whatever signs; their sums leave 16 bits.
TEST(Dense, SumsBytesInInt32) {
  for (const DType right : {DType::Int(8), DType::UInt(8)}) {
    const Tensor x = Placeholder({3, 200}, DType::UInt(8), "x"), w = Placeholder({200, 5}, right, "w");
    const Tensor y = Dense(x, w);
    EXPECT_EQ(y.dtype(), kInt32);
    const auto naive = [](const std::vector<Values>& in, const Index& at) {
      double sum = 0;
      for (int64_t k = 0; k < 200; ++k) sum += in[0]({at[0], k}) * in[1]({k, at[1]});
      return sum;
    };
    ExpectComputes({x, w}, y, naive, {.int_low = 100, .int_high = 128});
  }
}

// The sums pass 2048, beyond which float16 has every other integer alone, and bfloat16 every sixteenth.
TEST(Dense, SumsFloatsOf16BitsInFloat32) {
  for (const DType type : {DType::Float(16), DType::BFloat16()}) {
    const Tensor x = Placeholder({2, 1024}, type, "x"), w = Placeholder({1024, 3}, type, "w");
    const Tensor y = Dense(x, w);
    EXPECT_EQ(y.dtype(), kFloat32);
    const auto naive = [](const std::vector<Values>& in, const Index& at) {
      double sum = 0;
      for (int64_t k = 0; k < 1024; ++k) sum += in[0]({at[0], k}) * in[1]({k, at[1]});
      return sum;
    };
    ExpectComputes({x, w}, y, naive, {.low = 1, .high = 2});
  }
}

TEST(BatchMatmul, BroadcastsBatches) {
  struct Case {
    std::vector<int64_t> a, b;
    bool transpose_a, transpose_b;
  };
  const Case cases[] = {{{3, 4, 5}, {3, 5, 6}, false, false},    {{3, 4, 5}, {3, 6, 5}, false, true},
                        {{3, 5, 4}, {3, 5, 6}, true, false},     {{2, 1, 4, 5}, {3, 5, 2}, false, false},
                        {{4, 5}, {2, 3, 5, 1}, false, false},    {{1, 1, 5}, {4, 5, 3}, false, false},
                        {{2, 3, 7, 4}, {2, 3, 4, 7}, true, true}};
  for (const Case& c : cases) {
    const Tensor a = Placeholder(c.a, kFloat32, "a"), b = Placeholder(c.b, kFloat32, "b");
    ExpectComputes({a, b}, BatchMatmul(a, b, c.transpose_a, c.transpose_b),
                   [&](const std::vector<Values>& in, const Index& at) {
                     return Product(in[0], in[1], at, c.transpose_a, c.transpose_b);
                   });
  }
}

TEST(Matmul, VectorsAreRowsAndColumns) {
  const Tensor v = Placeholder({5}, kFloat32, "v"), u = Placeholder({5}, kFloat32, "u");
  const Tensor m = Placeholder({5, 3}, kFloat32, "m"), batch = Placeholder({2, 4, 5}, kFloat32, "batch");
  const Tensor right = Placeholder({2, 5, 4}, kFloat32, "right");
  const auto inner = [](const Values& a, const std::function<Index(int64_t)>& ia, const Values& b,
                        const std::function<Index(int64_t)>& ib) {
    double sum = 0;
    for (int64_t k = 0; k < 5; ++k) sum += a(ia(k)) * b(ib(k));
    return sum;
  };
  const auto self = [](int64_t k) { return Index{k}; };
  ExpectComputes({v, u}, Matmul(v, u),
                 [&](const std::vector<Values>& in, const Index&) { return inner(in[0], self, in[1], self); });
  ExpectComputes({v, m}, Matmul(v, m), [&](const std::vector<Values>& in, const Index& at) {
    return inner(in[0], self, in[1], [&](int64_t k) { return Index{k, at[0]}; });
  });
  ExpectComputes({batch, v}, Matmul(batch, v), [&](const std::vector<Values>& in, const Index& at) {
    return inner(
        in[0],
        [&](int64_t k) {
          return Index{at[0], at[1], k};
        },
        in[1], self);
  });
  ExpectComputes({v, right}, Matmul(v, right), [&](const std::vector<Values>& in, const Index& at) {
    return inner(in[0], self, in[1], [&](int64_t k) { return Index{at[0], k, at[1]}; });
  });
}

}  // namespace
}  // namespace hone::topi
