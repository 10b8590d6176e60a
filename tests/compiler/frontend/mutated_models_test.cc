// Models with bytes or fields changed, taken out or put in: each gives one message or a graph that can be planned,
// never a crash or a long wait. HONE_MUTATED_MODELS=10000 tries as many.
#include <sys/resource.h>

#include <cstdlib>
#include <iterator>
#include <span>

#include "absl/strings/str_cat.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/support/check.h"
#include "compiler/support/file.h"
#include "compiler/support/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/frontend/onnx_builder.h"

namespace hone {
namespace {

// Of the processor, for one model: what constant folding may spend takes a second or two (Graph::fold_budget), with
// sanitizers ten times that.
constexpr double kMostSeconds = 30;

OnnxBuilder Convolution() {
  OnnxBuilder b;
  b.Input("x", {1, 2, 6, 6}).Floats("w", {3, 2, 3, 3}, Numbers(54, 1)).Floats("b", {3}, Numbers(3, 2)).Output("y");
  b.Node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}, "conv");
  b.Node("Relu", {"c"}, {"r"}, {}, "relu");
  b.Node("GlobalAveragePool", {"r"}, {"p"}, {}, "pool");
  b.Node("Flatten", {"p"}, {"y"}, {}, "flatten");
  return b;
}

// Sizes that are computed, a loop and a branch.
OnnxBuilder ControlFlow() {
  OnnxBuilder b;
  b.Input("x", {2, 3}).Ints("sizes", {2}, {3, -1}).Ints("trips", {}, {3}).Output("y");
  onnx::GraphProto body;
  for (const char* name : {"i", "on", "sum"}) body.add_input()->set_name(name);
  for (const char* name : {"on_out", "sum_out"}) body.add_output()->set_name(name);
  const auto add = [&](const char* op, std::vector<std::string> inputs, const char* output) {
    onnx::NodeProto* node = body.add_node();
    node->set_op_type(op);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
  };
  add("Identity", {"on"}, "on_out");
  add("Add", {"sum", "sum"}, "sum_out");
  b.Node("Reshape", {"x", "sizes"}, {"r"}, {}, "reshape");
  b.Node("Loop", {"trips", "", "r"}, {"l"}, {{"body", body}}, "loop");
  b.Node("Shape", {"l"}, {"s"}, {}, "shape");
  b.Node("ConstantOfShape", {"s"}, {"zeros"}, {}, "zeros");
  b.Node("Concat", {"l", "zeros"}, {"y"}, {{"axis", int64_t{1}}}, "concat");
  return b;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds{Convolution().Bytes(), ControlFlow().Bytes()};
  for (const std::string& bytes : seeds) {
    const absl::Status status = ImportOnnxBytes(bytes, "").status();
    HONE_CHECK(status.ok()) << status.ToString();
  }
  // A network without its weights, which are in a file of their own.
  absl::StatusOr<std::string> bytes = ReadFile(HONE_TEST_DATA "/models/exported/gpt2.onnx");
  HONE_CHECK(bytes.ok()) << bytes.status().ToString();
  seeds.push_back(*std::move(bytes));
  return seeds;
}

std::string WithOtherBytes(std::string bytes, const std::vector<std::string>& seeds, Random& random) {
  const uint64_t changes = 1 + random.Below(4);
  for (uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = random.Below(bytes.size()), length = 1 + random.Below(std::min<size_t>(bytes.size() - at, 64));
    const std::string& other = seeds[random.Below(seeds.size())];
    switch (random.Below(6)) {
      case 0: bytes.erase(at, length); break;
      case 1: bytes.insert(at, bytes.substr(at, length)); break;
      case 2: bytes.replace(at, length, other.substr(random.Below(other.size()), length)); break;
      case 3: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8))); break;
      default: bytes[at] = static_cast<char>(random.Below(256));
    }
  }
  return bytes;
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
struct Field {
  Message* of;
  const FieldDescriptor* descriptor;
};

// Every field that is set, at any depth.
void Collect(Message& message, std::vector<Field>& fields) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    fields.push_back({&message, field});
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) Collect(*reflection.MutableMessage(&message, field), fields);
    for (int i = 0; field->is_repeated() && i < reflection.FieldSize(message, field); ++i)
      Collect(*reflection.MutableRepeatedMessage(&message, field, i), fields);
  }
}

int64_t OtherNumber(Random& random) {
  constexpr int64_t kNumbers[] = {0, 1, -1, 2, 3, 7, 64, -2, 1 << 20, int64_t{1} << 40, INT64_MAX, INT64_MIN};
  return kNumbers[random.Below(std::size(kNumbers))];
}

std::vector<std::string> OperatorNames() {
  std::vector<std::string> names;
  for (const Operator& entry : AllOperators()) {
    for (const OnnxOperator& op : entry.onnx) names.emplace_back(op.name);
  }
  return names;
}

// A name of an operator or of a value, so that nodes become others and read others.
std::string OtherText(const onnx::GraphProto& graph, Random& random) {
  static const auto* operators = new std::vector<std::string>(OperatorNames());
  if (graph.node_size() == 0 || random.Chance(0.5)) return (*operators)[random.Below(operators->size())];
  const onnx::NodeProto& node = graph.node(static_cast<int>(random.Below(static_cast<uint64_t>(graph.node_size()))));
  if (node.input_size() > 0 && random.Chance(0.5)) return node.input(0);
  return node.output_size() > 0 ? node.output(0) : "";
}

void Change(const Field& field, const onnx::GraphProto& graph, Random& random) {
  const google::protobuf::Reflection& reflection = *field.of->GetReflection();
  const FieldDescriptor* d = field.descriptor;
  if (d->is_repeated()) {
    const int size = reflection.FieldSize(*field.of, d);
    const int at = static_cast<int>(random.Below(static_cast<uint64_t>(size)));
    if (random.Chance(0.3)) reflection.SwapElements(field.of, d, at, size - 1);
    else if (random.Chance(0.3)) reflection.RemoveLast(field.of, d);
    else if (d->cpp_type() == FieldDescriptor::CPPTYPE_INT64)
      reflection.SetRepeatedInt64(field.of, d, at, OtherNumber(random));
    else if (d->type() == FieldDescriptor::TYPE_STRING)
      reflection.SetRepeatedString(field.of, d, at, OtherText(graph, random));
    return;
  }
  if (d->cpp_type() == FieldDescriptor::CPPTYPE_INT64) reflection.SetInt64(field.of, d, OtherNumber(random));
  else if (d->cpp_type() == FieldDescriptor::CPPTYPE_INT32)
    reflection.SetInt32(field.of, d, static_cast<int32_t>(random.Below(24)));
  else if (d->type() == FieldDescriptor::TYPE_STRING) reflection.SetString(field.of, d, OtherText(graph, random));
  else if (random.Chance(0.2)) reflection.ClearField(field.of, d);
}

std::string WithOtherFields(const std::string& bytes, Random& random) {
  onnx::ModelProto model;
  HONE_CHECK(model.ParseFromString(bytes)) << "a seed is not ONNX";
  const uint64_t changes = 1 + random.Below(3);
  for (uint64_t i = 0; i < changes; ++i) {
    std::vector<Field> fields;
    Collect(*model.mutable_graph(), fields);
    if (!fields.empty()) Change(fields[random.Below(fields.size())], model.graph(), random);
  }
  return model.SerializePartialAsString();
}

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) / 1e6;
}

TEST(BadInput, MutatedModels) {
  const char* wanted = std::getenv("HONE_MUTATED_MODELS");
  const uint64_t models = wanted == nullptr ? 2000 : std::strtoull(wanted, nullptr, 10);
  const std::vector<std::string> seeds = Seeds();
  int imported = 0;
  double slowest = 0;
  for (uint64_t seed = 0; seed < models; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const std::string& original = seeds[seed % seeds.size()];
    const bool fields = random.Chance(0.75);
    const std::string bytes = fields ? WithOtherFields(original, random) : WithOtherBytes(original, seeds, random);
    const double start = ProcessorSeconds();
    const absl::StatusOr<Graph> graph = ImportOnnxBytes(bytes, "");
    if (graph.ok()) {
      ++imported;
      const absl::StatusOr<Plan> plan = MakePlan(*graph);
      EXPECT_TRUE(plan.ok()) << plan.status();
    } else {
      EXPECT_TRUE(IsImportError(graph.status()));
      EXPECT_FALSE(graph.status().message().empty());
    }
    const double seconds = ProcessorSeconds() - start;
    EXPECT_LT(seconds, kMostSeconds);
    slowest = std::max(slowest, seconds);
  }
  EXPECT_GT(imported, 0);
  RecordProperty("imported", imported);
  std::printf("%d of %d were imported, the slowest took %.2f s\n", imported, static_cast<int>(models), slowest);
}

}  // namespace
}  // namespace hone
