// A workload as a tenant may send it: what cannot be understood, and what means harm. The process that reads it may die
// of it; whoever asked is told why.
#include "worker/oracle/oracle_process.h"

#include <signal.h>

#include "compiler/sandbox/layers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/campaign.h"
#include "worker/oracle/workload_reader.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

const SandboxedProgram kProgram = {.path = HONE_BIN "/hone-oracle", .allowed_missing = LayersSomeSystemsLack()};
constexpr absl::Duration kLong = absl::Seconds(60);

constexpr char kRowSums[] = R"(@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
)";

std::string RowSums(const std::string& rows, const std::string& columns) {
  std::string text = kRowSums;
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  };
  replace("T.Buffer((4, 8)", "T.Buffer((" + rows + ", " + columns + ")");
  replace("T.Buffer((4,)", "T.Buffer((" + rows + ",)");
  replace("T.grid(4, 8)", "T.grid(" + rows + ", " + columns + ")");
  return text;
}

TEST(OracleProcess, ReadsDrawsAndInterprets) {
  absl::StatusOr<OracleProcess> oracle = OracleProcess::Start(kProgram, kRowSums, kLong);
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  ASSERT_EQ(oracle->params().inputs.size(), 1u);
  ASSERT_EQ(oracle->params().outputs.size(), 1u);
  EXPECT_EQ(oracle->params().inputs[0].name, "A");
  EXPECT_EQ(oracle->params().inputs[0].shape, (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(oracle->params().inputs[0].bytes(), 128);
  EXPECT_EQ(oracle->params().outputs[0].type, kFloat32);
  for (int set = 0; set < 2; ++set) {
    const absl::StatusOr<NdArray> input = oracle->Input(set, 0, 7 + static_cast<uint64_t>(set), InputKind::kInteger);
    ASSERT_TRUE(input.ok()) << input.status();
    const absl::StatusOr<std::vector<double>> sums = oracle->Elements(set, 0, std::vector<int64_t>{3, 0});
    ASSERT_TRUE(sums.ok()) << sums.status();
    for (size_t i = 0; i < 2; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < 8; ++k) sum += input->Get((i == 0 ? 3 : 0) * 8 + k);
      EXPECT_EQ((*sums)[i], sum);
    }
  }
}

TEST(OracleProcess, SaysWhichOperandsAreInMemory) {
  for (const bool cold : {false, true}) {
    std::string text = kRowSums;
    const std::string attrs = std::string("    T.func_attr({") +
                              (cold ? "\"cold_constants\": 1, \"cold_outputs\": [1], " : "") + "\"constants\": [0]})\n";
    text.insert(text.find("    for i, k"), attrs);
    const absl::StatusOr<OracleProcess> oracle = OracleProcess::Start(kProgram, text, kLong);
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    EXPECT_EQ(oracle->params().inputs[0].cold, cold);
    EXPECT_EQ(oracle->params().outputs[0].cold, cold);
  }
}

// Sums of 8 terms by a reader that takes 20 steps for a request: two of them, but not three.
TEST(WorkloadReader, GivesUpAfterSoManySteps) {
  WorkloadReader reader(20);
  std::string answer;
  v1::OracleRequest request;
  request.set_workload(kRowSums);
  ASSERT_TRUE(reader.Answer(request, &answer));
  request.mutable_input()->set_seed(1);
  ASSERT_TRUE(reader.Answer(request, &answer));
  for (const int elements : {2, 3}) {
    request.mutable_elements()->Clear();
    for (int i = 0; i < elements; ++i) request.mutable_elements()->add_elements(i);
    ASSERT_TRUE(reader.Answer(request, &answer));
    v1::ElementsReply reply;
    ASSERT_TRUE(reply.ParseFromString(answer));
    if (elements == 2) {
      EXPECT_EQ(reply.error(), "");
      EXPECT_EQ(reply.values_size(), 2);
    } else {
      EXPECT_THAT(reply.error(), HasSubstr("gave up after 20 loop iterations, for 3 elements of output 0; tune"));
    }
  }
}

TEST(OracleProcess, RequestsOutOfOrderEndIt) {
  ::signal(SIGPIPE, SIG_IGN);  // as a worker does
  absl::StatusOr<OracleProcess> oracle = OracleProcess::Start(kProgram, kRowSums, kLong);
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  EXPECT_FALSE(oracle->Elements(0, 0, std::vector<int64_t>{0}).ok());
  EXPECT_FALSE(oracle->Input(0, 0, 1, InputKind::kUniform).ok());
}

TEST(OracleProcess, OneThatIsNotThereIsOurFailure) {
  EXPECT_EQ(OracleProcess::Start({.path = "/no/such/program"}, kRowSums, kLong).status().code(),
            absl::StatusCode::kUnavailable);
}

struct HostileWorkload {
  const char* name;
  std::string text;
  const char* error;  // part of it; nullptr: one that a fast machine may understand in time
  absl::Duration limit = absl::Seconds(3);
};
class HostileWorkloads : public ::testing::TestWithParam<HostileWorkload> {};

absl::Status FirstElement(const std::string& workload, absl::Duration limit) {
  absl::StatusOr<OracleProcess> oracle = OracleProcess::Start(kProgram, workload, limit);
  if (!oracle.ok()) return oracle.status();
  const absl::StatusOr<NdArray> input = oracle->Input(0, 0, 1, InputKind::kUniform);
  if (!input.ok()) return input.status();
  return oracle->Elements(0, 0, std::vector<int64_t>{0}).status();
}

TEST_P(HostileWorkloads, AreTheirOwnFault) {
  ::signal(SIGPIPE, SIG_IGN);  // as a worker does
  for (int64_t run = 0; run < testing::FromEnvironment("HONE_RUNS", 3); ++run) {
    const absl::Status status = FirstElement(GetParam().text, GetParam().limit);
    if (GetParam().error == nullptr && status.ok()) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr(GetParam().error == nullptr ? "" : GetParam().error));
  }
  EXPECT_TRUE(FirstElement(kRowSums, kLong).ok());
}

std::string Repeated(const std::string& piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}
std::string Storing(const std::string& value) {
  const std::string store = "B[vi] = B[vi] + A[vi, vk]";
  std::string text = kRowSums;
  return text.replace(text.find(store), store.size(), "B[vi] = B[vi] + " + value);
}

std::string EndlessSum() {
  std::string text = Storing("A[vi, vk % 8]");
  const std::string grid = "T.grid(4, 8)";
  return text.replace(text.find(grid), grid.size(), "T.grid(4, 9000000000000000)");
}

const HostileWorkload kHostile[] = {
    {"Nothing", "", ""},
    {"NoText", std::string("\0\xff\xfe\x01 def", 8), ""},
    {"HalfOfOne", std::string(kRowSums).substr(0, 200), ""},
    {"ManyParentheses", Storing(Repeated("(", 200000) + "A[vi, vk]" + Repeated(")", 200000)), nullptr},
    {"ManyMinuses", Storing(Repeated("-", 300000) + "A[vi, vk]"), nullptr},
    {"LongSum", Storing("A[vi, vk]" + Repeated(" + A[vi, vk] * A[vi, vk]", 100000)), nullptr},
    {"ManyBlanks", Repeated(" ", 4 << 20) + kRowSums, nullptr},
    {"LongName", "@T.prim_func\ndef main(" + Repeated("x", 4 << 20), ""},
    {"HugeTensor", RowSums("4", "4611686018427387904"), "sizes"},
    {"OverflowingShape", RowSums("4294967296", "4294967296"), "sizes"},
    {"NegativeSize", RowSums("-4", "8"), ""},
    {"TensorOfFourGibibytes", RowSums("1024", "1048576"), "less than 4 GiB"},
    {"SumThatDoesNotEnd", EndlessSum(), "took longer than 1s", absl::Seconds(1)},
    {"SymbolicSize", RowSums("n", "8"), ""},
};

INSTANTIATE_TEST_SUITE_P(Cases, HostileWorkloads, ::testing::ValuesIn(kHostile),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
