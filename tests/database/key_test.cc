// What tells two results apart is in the key, and every field of the key is in what records are named by. What the key
// has of a workload and of a device are texts: all that changes a kernel's meaning or speed is in these.
#include <set>
#include <string>
#include <vector>

#include "compiler/target/gpu_target.h"
#include "compiler/target/target.h"
#include "compiler/text/canonical.h"
#include "compiler/text/text.h"
#include "gtest/gtest.h"
#include "tests/database/rows_for_tests.h"

namespace hone {
namespace {

TEST(RecordId, ChangesWithEveryFieldOfTheKeyAndWithTheTrace) {
  const TuningKey key = TestKey("conv2d_1");
  // A field that is added does not compile here: it gets a line below, and a place in RecordId.
  const auto& [tenant, workload_hash, device_class, threads, numeric, protocol] = key;
  std::vector<TuningKey> others(6, key);
  others[0].tenant = tenant + 1;
  others[1].workload_hash = Sha256(workload_hash);
  others[2].device_class = device_class + "x";
  others[3].threads = threads + 1;
  others[4].numeric = numeric == v1::NUMERIC_STRICT ? v1::NUMERIC_DEFAULT : v1::NUMERIC_STRICT;
  others[5].protocol = protocol + 1;
  std::set<uint64_t> ids = {RecordId(key, "trace"), RecordId(key, "another trace")};
  for (const TuningKey& other : others) {
    EXPECT_NE(other, key);
    EXPECT_TRUE(ids.insert(RecordId(other, "trace")).second) << ids.size();
  }
  EXPECT_EQ(ids.size(), 8u);
}

// Files and bundles of the first release name records so.
TEST(RecordId, OfTheLocalTenantIsWhatItEverWas) {
  EXPECT_EQ(RecordId(TestKey("conv2d_1"), "trace"), 6286218176934367513u);
}

constexpr char kBoundWorkload[] = R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    T.func_attr({"cold_constants": 1, "cold_outputs": [2], "constants": [1], "domains": ["", "positive", ""], "outputs": 1})
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] + B[vi]
)";

// Of that workload with one piece of its text in place of another.
std::string WorkloadHashWith(const std::string& piece, const std::string& other) {
  std::string text = kBoundWorkload;
  EXPECT_NE(text.find(piece), std::string::npos) << piece;
  text.replace(text.find(piece), piece.size(), other);
  const absl::StatusOr<PrimFunc> func = ParsePrimFunc(text);
  EXPECT_TRUE(func.ok()) << func.status() << text;
  return func.ok() ? Canonicalize(*func).hash : "";
}

TEST(WorkloadHash, ChangesWithEachPartOfTheBinding) {
  struct Change {
    const char *piece, *other;
  };
  std::set<std::string> hashes = {WorkloadHashWith("", "")};
  for (const Change& change : std::vector<Change>{
           {"\"constants\": [1]", "\"constants\": [0]"},       // which params are constants,
           {"\"constants\": [1]", "\"constants\": [0, 1]"},    //
           {"\"constants\": [1], ", ""},                       //
           {"\"positive\"", "\"nonnegative\""},                // what values they have,
           {"\"\", \"positive\"", "\"positive\", \"\""},       //
           {"\"domains\": [\"\", \"positive\", \"\"], ", ""},  //
           {"\"cold_constants\": 1, ", ""},                    // whether caches have them,
           {"\"cold_outputs\": [2], ", ""},                    // and what is written,
           {"\"outputs\": 1", "\"outputs\": 2"},               // which are written,
           {"A[vi] + B[vi]", "A[vi] + A[vi]"},                 // and whether one stands for two
       }) {
    EXPECT_TRUE(hashes.insert(WorkloadHashWith(change.piece, change.other)).second)
        << change.other << " in place of " << change.piece;
  }
  constexpr char kLoop[] = "i in range(8):\n        with T.block(\"C\"):\n            vi = T.axis.spatial(8, i)";
  constexpr char kRenamed[] = "n in range(8):\n        with T.block(\"C\"):\n            vi = T.axis.spatial(8, n)";
  EXPECT_EQ(WorkloadHashWith(kLoop, kRenamed), WorkloadHashWith("", "")) << "a name is none";
}

TEST(DeviceClass, ChangesWithEachFactOfAProcessorThatTimesDependOn) {
  const Target target = *ParseTarget("cpu:znver5,cores=2");
  // A field that is added does not compile here: it is in the class, or follows from what is.
  const auto& [text, arch, cpu, features, vector_bits, vector_registers, l1d, l2, l3, cores] = target;
  std::vector<Target> others(9, target);
  others[0].arch = arch + "x";
  others[1].cpu = cpu + "x";
  others[2].features.erase("avx512bf16");
  others[3].features.erase("avx512bf16");
  others[3].features.erase("avx512vnni");
  others[4].vector_bits = vector_bits / 2;
  others[5].l1d = 2 * l1d;
  others[6].l2 = 2 * l2;
  others[7].l3 = 2 * l3;
  others[8].cores = 2 * cores;
  EXPECT_TRUE(features.count("avx512bf16") != 0 && features.count("avx512vnni") != 0);
  std::set<std::string> classes = {DeviceClass(target)};
  for (const Target& other : others) EXPECT_TRUE(classes.insert(DeviceClass(other)).second) << DeviceClass(other);
  Target same = target;
  same.text = text + " ";                        // says the same facts
  same.vector_registers = 2 * vector_registers;  // of an instruction set
  EXPECT_EQ(DeviceClass(same), DeviceClass(target));
}

TEST(DeviceClass, ChangesWithEachFactOfADeviceThatTellsItFromOthers) {
  const GpuTarget gpu = *ParseGpuTarget("opencl:generic,device=gfx1100");
  const auto& [text, language, arch, device, lanes, processors, threads, resident_threads, registers, shared,
               resident_shared, shared_apart, vector_bits, l2, mhz, bandwidth] = gpu;
  std::vector<GpuTarget> others(6, gpu);
  others[0].language = language + "x";
  others[1].arch = arch + "x";
  others[2].device = device + "x";
  others[3].processors = 2 * processors;
  others[4].threads = 2 * threads;
  others[5].shared = 2 * shared;
  std::set<std::string> classes = {DeviceClass(gpu)};
  for (const GpuTarget& other : others) EXPECT_TRUE(classes.insert(DeviceClass(other)).second) << DeviceClass(other);
  // What else is known follows from the device's name, or was measured and differs between two of a name. The version
  // of its driver is stated with each record (Record.driver).
  GpuTarget same = gpu;
  same.text = text + " ";
  same.lanes = 2 * lanes;
  same.resident_threads = 2 * resident_threads;
  same.registers = 2 * registers;
  same.resident_shared = 2 * resident_shared;
  same.shared_apart = 2 * shared_apart;
  same.vector_bits = 2 * vector_bits;
  same.l2 = 2 * l2;
  same.mhz = 2 * mhz;
  same.bandwidth = 2 * bandwidth;
  EXPECT_EQ(DeviceClass(same), DeviceClass(gpu));
}

}  // namespace
}  // namespace hone
