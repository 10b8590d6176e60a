// How far the float functions of kernels are from the exact value, over every float there is.
//
//   hone-vector-math-bench [--quick] [--strict] [--unfused] [--target TEXT] [function ...]
//
// Each function is compiled into a kernel over vectors, for this machine or for a target whose code it runs, and run on
// all 2^32 inputs (with --quick: one in 4099), on all cores; the reference is the C library's function in double,
// itself within 2^-29 of a float's last place. For each function: the largest error in units of the last place of the
// exact result, the input where it is, and how many results are off by more than half a unit, one and two. Exits with 1
// when a function misses what vector_math.h says. With --strict at the numeric level of that name, where the bound is
// at most one unit; with --unfused no product is fused with a sum but where the function asks for it.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/ir/math_functions.h"
#include "compiler/support/check.h"
#include "compiler/support/parallel_for.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "deploy/runtime/image/image.h"
#include "deploy/runtime/run/invoke.h"

namespace hone {
namespace {

struct Function {
  const char* name;
  double most_ulp;  // at the default level; at the strict one never more than 1
  double (*exact)(double) = FindMathFunction(name)->of_one;
};
const Function kFunctions[] = {
    {"exp", 2},   {"exp2", 2},  {"log", 4},   {"log2", 4},   {"tanh", 4},  {"erf", 4},  {"sigmoid", 4},
    {"expm1", 5}, {"log1p", 5}, {"atan", 4},  {"sqrt", 0.5}, {"rsqrt", 2}, {"asin", 4}, {"acos", 4},
    {"sinh", 4},  {"cosh", 4},  {"asinh", 4}, {"acosh", 4},  {"atanh", 4},
};

// How the functions are compiled.
struct Way {
  Target target = HostTarget();
  bool strict = false, fuse = true;
};

constexpr int64_t kChunk = 1 << 16;  // inputs of one call of the kernel

// The function as a kernel from kChunk floats to as many.
class Kernel {
 public:
  Kernel(const std::string& name, const Way& way) {
    const std::string shape = "T.Buffer((" + std::to_string(kChunk) + ",), \"float32\")";
    const absl::StatusOr<PrimFunc> f =
        ParsePrimFunc("@T.prim_func\ndef main(A: " + shape + ", B: " + shape + "):\n    for o in range(" +
                      std::to_string(kChunk / 16) +
                      "):\n        for i in T.vectorized(16):\n"
                      "            with T.block(\"B\"):\n"
                      "                v = T.axis.spatial(" +
                      std::to_string(kChunk) + ", o * 16 + i)\n                B[v] = T." + name + "(A[v])\n");
    HONE_CHECK(f.ok()) << f.status();
    const NumericLevel numeric = way.strict ? NumericLevel::kStrict : NumericLevel::kDefault;
    absl::StatusOr<CompiledKernel> kernel =
        CompileKernel(ScheduledProgram{*f, {}}, way.target, {.numeric = numeric, .fuse = way.fuse});
    HONE_CHECK(kernel.ok()) << kernel.status();
    const absl::StatusOr<std::string> bytes = LinkImage({&kernel->object, 1});
    HONE_CHECK(bytes.ok()) << bytes.status();
    RuntimeResult<Image> image = Image::Load(*bytes);
    HONE_CHECK(image.ok()) << image.error().message();
    image_ = std::make_unique<Image>(std::move(*image));
    RuntimeResult<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(1);
    HONE_CHECK(pool.ok()) << pool.error().message();
    pool_ = std::move(*pool);
    RuntimeResult<Invocation> invocation = Invocation::Create(*image_, kernel->set, *pool_);
    HONE_CHECK(invocation.ok()) << invocation.error().message();
    invocation_ = std::make_unique<Invocation>(std::move(*invocation));
    void* tensors[] = {in_->values.data(), out_->values.data()};
    if (RuntimeError error = invocation_->Prepare(tensors)) HONE_CHECK(false) << error.message();
    invocation_->Bind(tensors);
  }

  std::span<float> in() { return in_->values; }
  std::span<const float> Run() {
    HONE_CHECK(invocation_->Run() == 0) << "the kernel failed";
    return out_->values;
  }

 private:
  struct alignas(64) Tensor {
    std::array<float, kChunk> values;
  };
  const std::unique_ptr<Tensor> in_ = std::make_unique<Tensor>(), out_ = std::make_unique<Tensor>();
  std::unique_ptr<Image> image_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Invocation> invocation_;
};

struct Errors {
  double worst = 0;  // infinite where a result is no number, or not infinite where it should be
  float at = 0, got = 0;
  uint64_t inputs = 0, beyond_half = 0, beyond_one = 0, beyond_two = 0;

  void Add(float x, float value, double exact) {
    ++inputs;
    const double error = ErrorOf(value, exact);
    beyond_half += error > 0.5;
    beyond_one += error > 1;
    beyond_two += error > 2;
    if (error > worst) worst = error, at = x, got = value;
  }
  void Add(const Errors& more) {
    if (more.worst > worst) worst = more.worst, at = more.at, got = more.got;
    inputs += more.inputs;
    beyond_half += more.beyond_half;
    beyond_one += more.beyond_one;
    beyond_two += more.beyond_two;
  }

 private:
  static double ErrorOf(float value, double exact) {
    const double infinite = std::numeric_limits<double>::infinity();
    if (std::isnan(exact)) return std::isnan(value) ? 0 : infinite;
    const float rounded = static_cast<float>(exact);
    if (rounded == value) return std::isinf(rounded) ? 0 : std::abs(value - exact) / Unit(exact);
    return std::isinf(rounded) || !std::isfinite(value) ? infinite : std::abs(value - exact) / Unit(exact);
  }
  // The distance of floats around `exact`.
  static double Unit(double exact) {
    const uint64_t exponent = std::bit_cast<uint64_t>(exact) & 0x7FF0000000000000;  // 2^e, for normal numbers
    return std::max(std::bit_cast<double>(exponent) * 0x1p-23, 0x1p-149);
  }
};

Errors Measure(const Function& function, const Way& way, uint64_t step) {
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  constexpr uint64_t kAll = uint64_t{1} << 32;
  const uint64_t per_chunk = kChunk * step, chunks = (kAll + per_chunk - 1) / per_chunk;
  Errors all;
  std::mutex mutex;
  ParallelFor(static_cast<size_t>(threads), threads, [&](size_t thread) {
    Kernel kernel(function.name, way);
    Errors own;
    for (uint64_t chunk = thread; chunk < chunks; chunk += static_cast<uint64_t>(threads)) {
      for (int64_t i = 0; i < kChunk; ++i) {
        const uint64_t bits = std::min(chunk * per_chunk + static_cast<uint64_t>(i) * step, kAll - 1);
        kernel.in()[static_cast<size_t>(i)] = std::bit_cast<float>(static_cast<uint32_t>(bits));
      }
      const std::span<const float> out = kernel.Run();
      for (size_t i = 0; i < out.size(); ++i) own.Add(kernel.in()[i], out[i], function.exact(kernel.in()[i]));
    }
    const std::lock_guard lock(mutex);
    all.Add(own);
  });
  return all;
}

struct Options {
  uint64_t step = 1;
  Way way;
  std::vector<std::string_view> functions;  // none: all
};

Options ReadOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick") {
      options.step = 4099;
    } else if (word == "--strict") {
      options.way.strict = true;
    } else if (word == "--unfused") {
      options.way.fuse = false;
    } else if (word == "--target" && i + 1 < argc) {
      const absl::StatusOr<Target> target = ParseTarget(argv[++i]);
      HONE_CHECK(target.ok()) << target.status();
      const std::string missing = MissingFeatures(*target, HostTarget());
      HONE_CHECK(missing.empty()) << "this machine lacks " << missing;
      options.way.target = *target;
    } else {
      HONE_CHECK(std::ranges::find(kFunctions, word, &Function::name) != std::end(kFunctions))
          << "no option and no function: " << std::string(word);
      options.functions.push_back(word);
    }
  }
  return options;
}

// Whether the function keeps its bound; prints its line of the table.
bool Report(const Function& function, const Options& options) {
  const Errors errors = Measure(function, options.way, options.step);
  const bool good = errors.worst <= (options.way.strict ? std::min(function.most_ulp, 1.0) : function.most_ulp);
  std::printf("%-8s %12llu %10.4f %16a %16.9g %14llu %12llu %12llu%s\n", function.name,
              static_cast<unsigned long long>(errors.inputs), errors.worst, static_cast<double>(errors.at),
              static_cast<double>(errors.got), static_cast<unsigned long long>(errors.beyond_half),
              static_cast<unsigned long long>(errors.beyond_one), static_cast<unsigned long long>(errors.beyond_two),
              good ? "" : "  misses its bound");
  std::fflush(stdout);
  return good;
}

int Main(int argc, char** argv) {
  const Options options = ReadOptions(argc, argv);
  std::printf("%s%s%s\n", options.way.target.text.c_str(), options.way.strict ? ", strict" : "",
              options.way.fuse ? "" : ", not fused");
  std::printf("%-8s %12s %10s %16s %16s %14s %12s %12s\n", "function", "inputs", "worst ulp", "at", "result",
              "> 1/2 ulp", "> 1 ulp", "> 2 ulp");
  bool kept = true;
  for (const Function& function : kFunctions) {
    const bool wanted =
        options.functions.empty() || std::ranges::find(options.functions, function.name) != options.functions.end();
    if (wanted) kept = Report(function, options) && kept;
  }
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) { return hone::Main(argc, argv); }
