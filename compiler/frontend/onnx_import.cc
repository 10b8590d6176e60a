#include "compiler/frontend/onnx_import.h"

#include <algorithm>
#include <queue>
#include <set>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/frontend/onnx_model.h"
#include "compiler/frontend/operators.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr char kImportPayload[] = "hone/import";
constexpr int64_t kOldestOpset = 7, kNewestOpset = 21;
constexpr size_t kMostProblemsShown = 50;

absl::Status AsImportError(absl::Status status) {
  if (!status.ok()) status.SetPayload(kImportPayload, absl::Cord());
  return status;
}

// The values an ONNX graph can name, those of the graphs around it included.
struct Scope {
  static constexpr int kBroken = -2;  // its node was reported: what reads it is not reported again
  const Scope* outer = nullptr;
  std::map<std::string, int> values;

  const int* Find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
      const auto found = scope->values.find(name);
      if (found != scope->values.end()) return &found->second;
    }
    return nullptr;
  }
};

class Importer {
 public:
  Importer(const OnnxModel& model, const ImportOptions& options, std::vector<std::string>& problems)
      : model_(model), options_(options), problems_(problems) {}

  Graph Run() {
    graph_.name = model_.graph.name;
    CollectReads(model_.graph);
    Scope scope;
    for (const OnnxInput& input : model_.graph.inputs) Input(input, scope);
    if (model_.graph.outputs.empty()) problems_.push_back("the model has no outputs");
    graph_.outputs = Body(model_.graph, scope);
    graph_.output_names = model_.graph.outputs;
    return std::move(graph_);
  }

 private:
  void Input(const OnnxInput& input, Scope& scope) {
    const std::string where = absl::StrCat("input \"", input.name, "\"");
    int& value = scope.values.emplace(input.name, Scope::kBroken).first->second;
    if (input.name.empty()) problems_.push_back("an input has no name");
    if (value != Scope::kBroken) {
      problems_.push_back(absl::StrCat(where, ": a second one has this name"));
      return;
    }
    if (!input.has_shape) {
      problems_.push_back(absl::StrCat(where, ": the model does not say its shape"));
      return;
    }
    TensorType type{input.dtype, {}};
    for (size_t d = 0; d < input.dims.size(); ++d) {
      const OnnxDim& dim = input.dims[d];
      int64_t size = dim.size;
      const std::string name =
          dim.symbol.empty() ? absl::StrCat("dimension ", d) : absl::StrCat("dimension ", d, " (\"", dim.symbol, "\")");
      const auto chosen = options_.dims.find(dim.symbol);
      if (size < 0 && chosen != options_.dims.end()) {
        size = chosen->second;
      } else if (size < 0 && d == 0) {
        size = 1;
        graph_.notes.push_back(
            absl::StrCat("The ", name, " of input \"", input.name, "\" has no fixed size and is taken as 1."));
      } else if (size < 0) {
        problems_.push_back(
            absl::StrCat(where, ": ", name, " has no fixed size; export the model with a static shape"));
        return;
      }
      if (size < 1) {
        problems_.push_back(absl::StrCat(where, ": ", name, " is ", size));
        return;
      }
      type.shape.push_back(size);
    }
    if (const absl::Status size = CheckSize(type); !size.ok()) {
      problems_.push_back(absl::StrCat(where, ": ", size.message()));
      return;
    }
    if (type.dtype.is_float() && type.dtype != kFloat32) {
      problems_.push_back(absl::StrCat(where, ": elements of type ", ToText(type.dtype),
                                       " are not supported; convert the model to float32"));
      return;
    }
    const auto domain = model_.metadata.find("domain." + input.name);
    if (domain != model_.metadata.end() && !IsIntegerRange(domain->second, type.dtype)) {
      problems_.push_back(absl::StrCat(where, ": the metadata \"", domain->first, "\" is \"", domain->second,
                                       "\"; for an input of integers it may be \"int[LOW,HIGH)\""));
      return;
    }
    value = graph_.AddValue(input.name, std::move(type));
    if (domain != model_.metadata.end()) graph_.values[value].domain = domain->second;
    graph_.inputs.push_back(value);
  }

  // "int[0,30522)"
  static bool IsIntegerRange(const std::string& text, DType dtype) {
    absl::string_view rest = text;
    int64_t low = 0, high = 0;
    const std::vector<std::string> ends = absl::ConsumePrefix(&rest, "int[") && absl::ConsumeSuffix(&rest, ")")
                                              ? std::vector<std::string>(absl::StrSplit(rest, ','))
                                              : std::vector<std::string>();
    return dtype.is_int() && ends.size() == 2 && absl::SimpleAtoi(ends[0], &low) && absl::SimpleAtoi(ends[1], &high) &&
           low < high;
  }

  // Imports initializers and nodes; the values of the outputs, kBroken for those that could not be had.
  std::vector<int> Body(const OnnxGraph& body, Scope& scope) {
    for (const auto& [name, data] : body.initializers) {
      scope.values[name] = data == nullptr ? Scope::kBroken : graph_.AddConstant(name, data);
    }
    std::map<std::string, size_t> makers;
    for (size_t n = 0; n < body.nodes.size(); ++n) {
      for (const std::string& output : body.nodes[n].outputs) {
        if (output.empty()) continue;
        if (!makers.emplace(output, n).second || scope.values.count(output) > 0) {
          Problem(body.nodes[n], absl::StrCat("its output \"", output, "\" has the name of another value"));
        }
      }
    }
    for (const size_t n : Order(body.nodes, makers)) ImportNode(body.nodes[n], scope);
    std::vector<int> outputs;
    for (const std::string& name : body.outputs) {
      const int* value = scope.Find(name);
      if (value == nullptr && makers.count(name) == 0)
        problems_.push_back(absl::StrCat("output \"", name, "\": nothing makes it"));
      outputs.push_back(value == nullptr ? Scope::kBroken : *value);
    }
    return outputs;
  }

  // The nodes so that makers come before readers, otherwise in the file's order. Those of a cycle, and what depends on
  // them, are reported and left out.
  std::vector<size_t> Order(const std::vector<OnnxNode>& nodes, const std::map<std::string, size_t>& makers) {
    std::vector<int> waiting(nodes.size(), 0);
    std::vector<std::vector<size_t>> readers(nodes.size());
    std::priority_queue<size_t, std::vector<size_t>, std::greater<size_t>> ready;
    for (size_t n = 0; n < nodes.size(); ++n) {
      for (const std::string& input : nodes[n].inputs) {
        const auto maker = makers.find(input);
        if (maker == makers.end()) continue;
        readers[maker->second].push_back(n);
        ++waiting[n];
      }
      if (waiting[n] == 0) ready.push(n);
    }
    std::vector<size_t> order;
    while (!ready.empty()) {
      const size_t n = ready.top();
      ready.pop();
      order.push_back(n);
      for (const size_t reader : readers[n]) {
        if (--waiting[reader] == 0) ready.push(reader);
      }
    }
    if (order.size() == nodes.size()) return order;
    // From a node that still waits to one it waits for, until one comes again: that is a cycle.
    std::vector<size_t> path;
    std::vector<bool> seen(nodes.size(), false);
    size_t at = 0;
    while (waiting[at] == 0) ++at;
    while (!seen[at]) {
      seen[at] = true;
      path.push_back(at);
      for (const std::string& input : nodes[at].inputs) {
        const auto maker = makers.find(input);
        if (maker != makers.end() && waiting[maker->second] > 0) {
          at = maker->second;
          break;
        }
      }
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    std::reverse(path.begin(), path.end());  // the way data flows
    const size_t shown = std::min<size_t>(path.size(), 8);
    problems_.push_back(absl::StrCat(
        "the graph has a cycle of ", path.size(), " nodes: ",
        absl::StrJoin(path.begin(), path.begin() + static_cast<int64_t>(shown), " -> ",
                      [&](std::string* out, size_t n) { absl::StrAppend(out, "\"", nodes[n].name, "\""); }),
        shown < path.size() ? " -> ..." : ""));
    return order;
  }

  void Problem(const OnnxNode& node, const std::string& reason) {
    const std::string op = node.domain.empty() ? node.op : absl::StrCat(node.domain, ".", node.op);
    problems_.push_back(absl::StrCat("node \"", node.name, "\" (", op, "): ", reason));
  }

  void Break(const OnnxNode& node, Scope& scope) {
    for (const std::string& output : node.outputs) scope.values.emplace(output, Scope::kBroken);
  }

  void ImportNode(const OnnxNode& node, Scope& scope) {
    const auto opset = model_.opsets.find(node.domain);
    const int64_t version = opset == model_.opsets.end() ? 0 : opset->second;
    const bool is_if = node.domain.empty() && node.op == "If";
    const OnnxOperator* op = is_if ? nullptr : FindOnnxOperator(node.domain, node.op, version);
    if (op == nullptr && !is_if) {
      Problem(node, version == 0 ? absl::StrCat("the model names no version of its operator set \"", node.domain, "\"")
                                 : "this operator is not supported");
      return Break(node, scope);
    }
    std::vector<int> inputs;
    bool broken = false;
    for (const std::string& input : node.inputs) {
      const int* value = input.empty() ? nullptr : scope.Find(input);
      if (!input.empty() && value == nullptr) {
        Problem(node, absl::StrCat("it reads \"", input, "\", which nothing makes"));
        broken = true;
      }
      inputs.push_back(value == nullptr ? -1 : *value);
      broken = broken || inputs.back() == Scope::kBroken;
    }
    if (broken) return Break(node, scope);
    NodeContext context(node, std::move(inputs), version, graph_);
    absl::StatusOr<std::vector<int>> outputs = is_if ? If(node, context, scope) : op->import(context);
    if (outputs.ok() && !context.status().ok()) outputs = context.status();
    if (!outputs.ok()) {
      Problem(node, std::string(outputs.status().message()));
      return Break(node, scope);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      const bool present = i < outputs->size() && (*outputs)[i] >= 0;
      const bool reported = i < outputs->size() && (*outputs)[i] == Scope::kBroken;
      if (!present && !reported && read_.count(node.outputs[i]) > 0)
        Problem(node, absl::StrCat("its output ", i, " (\"", node.outputs[i], "\") is not supported"));
      scope.values.emplace(node.outputs[i], present ? (*outputs)[i] : Scope::kBroken);
      if (present && graph_.values[(*outputs)[i]].name == node.name)
        graph_.values[(*outputs)[i]].name = node.outputs[i];
    }
  }

  // Names that a node or the model's output list mentions, in any graph.
  void CollectReads(const OnnxGraph& body) {
    read_.insert(body.outputs.begin(), body.outputs.end());
    for (const OnnxNode& node : body.nodes) {
      read_.insert(node.inputs.begin(), node.inputs.end());
      for (const auto& [name, attribute] : node.attributes) {
        if (const auto* inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute)) CollectReads(**inner);
      }
    }
  }

  // A condition that is known: the chosen branch in place of the node.
  absl::StatusOr<std::vector<int>> If(const OnnxNode& node, NodeContext& context, const Scope& outer) {
    HONE_RETURN_IF_ERROR(context.NeedInputs(1, 1));
    HONE_ASSIGN_OR_RETURN(const double condition, context.Number(0, "the condition"));
    const auto branch = node.attributes.find(condition != 0 ? "then_branch" : "else_branch");
    const auto* body =
        branch == node.attributes.end() ? nullptr : std::get_if<std::shared_ptr<const OnnxGraph>>(&branch->second);
    if (body == nullptr) return Unsupported("a branch is missing");
    Scope scope;
    scope.outer = &outer;
    return Body(**body, scope);
  }

  const OnnxModel& model_;
  const ImportOptions& options_;
  std::vector<std::string>& problems_;
  std::set<std::string> read_;
  Graph graph_;
};

// What is left must be computable: float32, integers and bool, and at least one element each.
void CheckValues(const Graph& graph, std::vector<std::string>& problems) {
  for (const Node& node : graph.nodes) {
    for (const std::vector<int>* list : {&node.inputs, &node.outputs}) {
      for (const int v : *list) {
        const TensorType& type = graph.type(v);
        const std::string where = absl::StrCat("node \"", node.name, "\": the value \"", graph.values[v].name, "\"");
        if (type.dtype.is_float() && type.dtype != kFloat32) {
          problems.push_back(absl::StrCat(where, " is of type ", ToText(type.dtype),
                                          ", which is not supported; convert the model to float32"));
          return;
        }
        if (std::count(type.shape.begin(), type.shape.end(), 0) > 0) {
          problems.push_back(absl::StrCat(where, " has no elements: ", ToText(type)));
          return;
        }
      }
    }
  }
}

absl::Status ProblemList(const std::vector<std::string>& problems) {
  std::string text =
      absl::StrCat("the model cannot be imported: ", problems.size(), problems.size() == 1 ? " problem" : " problems");
  for (size_t i = 0; i < problems.size() && i < kMostProblemsShown; ++i) absl::StrAppend(&text, "\n  ", problems[i]);
  if (problems.size() > kMostProblemsShown)
    absl::StrAppend(&text, "\n  and ", problems.size() - kMostProblemsShown, " more");
  return absl::InvalidArgumentError(text);
}

absl::StatusOr<Graph> Import(std::string_view bytes, const std::string& folder, const ImportOptions& options) {
  std::vector<std::string> problems;
  HONE_ASSIGN_OR_RETURN(const OnnxModel model, DecodeOnnx(bytes, folder, problems));
  const auto opset = model.opsets.find("");
  if (opset != model.opsets.end() && (opset->second < kOldestOpset || opset->second > kNewestOpset)) {
    problems.push_back(absl::StrCat("the model uses operator set ", opset->second, "; supported are ", kOldestOpset,
                                    " to ", kNewestOpset));
  }
  Graph graph = Importer(model, options, problems).Run();
  if (!problems.empty()) return ProblemList(problems);
  HONE_RETURN_IF_ERROR(graph.Compact());
  CheckValues(graph, problems);
  if (!problems.empty()) return ProblemList(problems);
  return graph;
}

}  // namespace

absl::StatusOr<Graph> ImportOnnxBytes(std::string_view bytes, const std::string& folder, const ImportOptions& options) {
  absl::StatusOr<Graph> graph = Import(bytes, folder, options);
  if (!graph.ok()) return AsImportError(graph.status());
  return graph;
}

absl::StatusOr<Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return AsImportError(bytes.status());
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  absl::StatusOr<Graph> graph = Import(*bytes, folder, options);
  if (!graph.ok()) return AsImportError(Annotate(graph.status(), path));
  if (graph->name.empty()) graph->name = "model";
  return graph;
}

bool IsImportError(const absl::Status& status) { return !status.ok() && status.GetPayload(kImportPayload).has_value(); }

}  // namespace hone
