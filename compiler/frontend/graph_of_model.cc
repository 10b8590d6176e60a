#include "compiler/frontend/graph_of_model.h"

#include <algorithm>
#include <queue>
#include <set>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/frontend/model_inputs.h"
#include "compiler/frontend/onnx_function.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr char kImportPayload[] = "hone/import";
constexpr int64_t kOldestOpset = 1, kNewestOpset = 28;
constexpr size_t kMostProblemsShown = 50;
constexpr size_t kMostInlinedNodes = 1 << 16;  // of all graphs inside nodes and functions, as often as they run
constexpr int kMostNestedCalls = 64;

// The values an ONNX graph can name, those of the graphs around it included.
struct Scope {
  static constexpr int kBroken = -2;  // its node was reported: what reads it is not reported again
  const Scope* outer = nullptr;
  std::map<std::string, int> values;

  std::map<std::string, std::vector<int64_t>> shapes;  // what the model declares, and what follows from it

  std::optional<std::vector<int64_t>> DeclaredShape(const std::string& name) const {
    const auto found = shapes.find(name);
    return found == shapes.end() ? std::nullopt : std::optional(found->second);
  }
  // The value itself; nullptr when there is none of that name.
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
  // `last`: the model is not imported again, so that its initializers are taken, and freed when nothing reads them.
  Importer(OnnxModel& model, bool last, const ImportOptions& options, std::vector<std::string>& problems)
      : model_(model), last_(last), options_(options), problems_(problems), opsets_(&model.opsets) {}

  Graph Run() {
    graph_.name = model_.graph.name;
    graph_.sizes_are_open = options_.sizes_are_open;
    graph_.functions = model_.tensor_functions;
    CollectReads(model_.graph);
    for (const auto& [id, function] : model_.functions) CollectReads(function.body);
    Scope scope;
    ModelInputs inputs(model_, options_, graph_, sequences_, problems_);
    for (const OnnxInput& input : model_.graph.inputs) Input(input, inputs, scope);
    inputs.CheckOptions();
    if (model_.graph.outputs.empty()) problems_.push_back("the model has no outputs");
    const std::vector<int> outputs = Body(model_.graph, scope);
    for (size_t i = 0; i < outputs.size(); ++i) Output(model_.graph.outputs[i], outputs[i]);
    if (!model_.output_elements.empty()) graph_.output_elements = model_.output_elements;
    return std::move(graph_);
  }

 private:
  void Input(const OnnxInput& input, ModelInputs& inputs, Scope& scope) {
    int& value = scope.values.emplace(input.name, Scope::kBroken).first->second;
    if (input.name.empty()) problems_.push_back("an input has no name");
    if (value != Scope::kBroken) {
      problems_.push_back(absl::StrCat("input \"", input.name, "\": a second one has this name"));
      return;
    }
    value = inputs.Add(input).value_or(Scope::kBroken);
  }

  // The outputs of the graph: a value of the model each, or as many as a sequence has elements.
  void Output(const std::string& name, int value) {
    const auto add = [this](const std::string& as, int id) {
      graph_.outputs.push_back(id);
      graph_.output_names.push_back(as);
      graph_.output_elements.push_back(id < 0 ? "" : graph_.values[id].element);
    };
    if (value == Sequences::kNothing) {
      graph_.notes.push_back(absl::StrCat("The output \"", name, "\" is an optional value that is not there."));
    } else if (Sequences::IsSequence(value)) {
      const std::vector<int>& elements = sequences_.Elements(value);
      for (size_t i = 0; i < elements.size(); ++i) add(absl::StrCat(name, "[", i, "]"), elements[i]);
    } else {
      add(name, value);
    }
  }

  // From outputs to inputs, through operators that keep the shape: a reduction whose logarithm is an output of the
  // model.
  std::map<std::string, std::vector<int64_t>> DeclaredShapes(const OnnxGraph& body) const {
    std::map<std::string, std::vector<int64_t>> shapes = body.shapes;
    for (auto node = body.nodes.rbegin(); node != body.nodes.rend(); ++node) {
      const auto version = opsets_->find(node->domain);
      if (version == opsets_->end() || node->inputs.empty() || node->outputs.empty()) continue;
      const OnnxOperator* op = FindOnnxOperator(node->domain, node->op, version->second);
      const auto known = shapes.find(node->outputs[0]);
      if (op != nullptr && op->keeps_shape && known != shapes.end()) shapes.emplace(node->inputs[0], known->second);
    }
    return shapes;
  }

  // Imports initializers and nodes; the values of the outputs, kBroken for those that could not be had.
  std::vector<int> Body(const OnnxGraph& body, Scope& scope) {
    scope.shapes = DeclaredShapes(body);
    if (&body == &model_.graph) scope.shapes.insert(options_.shapes.begin(), options_.shapes.end());
    for (const auto& [name, data] : body.initializers) {
      int& value = scope.values[name] = data == nullptr ? Scope::kBroken : graph_.AddConstant(name, data);
      const auto element = body.elements.find(name);
      if (value >= 0 && element != body.elements.end()) graph_.values[value].element = element->second;
    }
    if (last_ && &body == &model_.graph) model_.graph.initializers.clear();
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

  // The values of a node's inputs, -1 for one that is left out. False, which is reported where it was not before, when
  // one of them could not be made.
  bool FindInputs(const OnnxNode& node, const Scope& scope, std::vector<int>& inputs) {
    bool found = true;
    for (const std::string& input : node.inputs) {
      const int* value = input.empty() ? nullptr : scope.Find(input);
      if (!input.empty() && value == nullptr) {
        Problem(node, absl::StrCat("it reads \"", input, "\", which nothing makes"));
        found = false;
      }
      inputs.push_back(value == nullptr ? -1 : *value);
      found = found && inputs.back() != Scope::kBroken;
    }
    return found;
  }

  // What was made is known by the model's names from here on. One that is read and was not made is reported.
  void NameOutputs(const OnnxNode& node, const std::vector<int>& made, Scope& scope) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      const int output = i < made.size() ? made[i] : -1;
      const bool reported = output == Scope::kBroken, present = output != -1 && !reported;
      if (!present && !reported && read_.count(node.outputs[i]) > 0)
        Problem(node, absl::StrCat("its output ", i, " (\"", node.outputs[i], "\") is not supported"));
      scope.values.emplace(node.outputs[i], present ? output : Scope::kBroken);
      if (output >= 0 && graph_.values[output].name == node.name) graph_.values[output].name = node.outputs[i];
    }
  }

  // The nodes of a function in place of the node that calls it, of which they see nothing but its inputs.
  absl::StatusOr<std::vector<int>> Call(const OnnxNode& node, const OnnxFunction& function,
                                        const std::vector<int>& inputs) {
    if (inputs.size() > function.inputs.size() || node.outputs.size() > function.body.outputs.size())
      return absl::InvalidArgumentError(absl::StrCat("it has ", inputs.size(), " inputs and ", node.outputs.size(),
                                                     " outputs, the model's function of its name ",
                                                     function.inputs.size(), " and ", function.body.outputs.size()));
    if (calls_ == kMostNestedCalls)
      return absl::InvalidArgumentError(
          absl::StrCat("functions call one another more than ", kMostNestedCalls, " deep: none may call itself"));
    HONE_RETURN_IF_ERROR(CountInlined(function.body));
    Scope scope;
    for (size_t i = 0; i < function.inputs.size(); ++i)
      scope.values[function.inputs[i]] = i < inputs.size() ? inputs[i] : -1;
    const auto* around = std::exchange(opsets_, &function.opsets);
    ++calls_;
    const size_t problems = problems_.size();
    const OnnxGraph body = BodyOfCall(function, node);
    std::vector<int> outputs = Body(body, scope);
    --calls_;
    opsets_ = around;
    if (problems_.size() > problems) return absl::InvalidArgumentError("the function it calls cannot be imported");
    return outputs;
  }

  void ImportCall(const OnnxNode& node, const OnnxFunction& function, Scope& scope) {
    std::vector<int> inputs;
    if (!FindInputs(node, scope, inputs)) return Break(node, scope);
    const absl::StatusOr<std::vector<int>> outputs = Call(node, function, inputs);
    if (outputs.ok()) return NameOutputs(node, *outputs, scope);
    Problem(node, std::string(outputs.status().message()));
    Break(node, scope);
  }

  void ImportNode(const OnnxNode& node, Scope& scope) {
    if (const OnnxFunction* function = FindFunction(model_, node); function != nullptr)
      return ImportCall(node, *function, scope);
    const auto opset = opsets_->find(node.domain);
    const int64_t version = opset == opsets_->end() ? 0 : opset->second;
    const OnnxOperator* op = FindOnnxOperator(node.domain, node.op, version);
    if (op == nullptr) {
      Problem(node, version == 0 ? absl::StrCat("the model names no version of its operator set \"", node.domain, "\"")
                                 : "this operator is not supported");
      return Break(node, scope);
    }
    std::vector<int> inputs;
    if (!FindInputs(node, scope, inputs)) return Break(node, scope);
    const std::string element = NarrowElement(inputs);
    if (!element.empty() && op->narrow == NarrowElements::kRefuses) {
      Problem(node, absl::StrCat("it does not take elements of type ", element));
      return Break(node, scope);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] >= -1 || op->takes_sequences) continue;
      Problem(node, absl::StrCat("its input ", i, " (\"", node.inputs[i], "\") is ",
                                 inputs[i] == Sequences::kNothing ? "an optional value that is not there"
                                                                  : "a sequence, which it does not take"));
      return Break(node, scope);
    }
    absl::StatusOr<std::vector<int>> outputs = std::vector<int>();
    DType narrow = kFloat32;
    const std::vector<int> named = inputs;
    const size_t nodes_before = graph_.nodes.size(), values_before = graph_.values.size();
    if (op->in_float32) outputs = Widen(node, inputs, narrow);
    if (outputs.ok()) {
      NodeScope around(*this, node, scope);
      NodeContext context(node, std::move(inputs), version, graph_, around);
      outputs = op->import(context);
      if (!context.status().ok()) outputs = context.status();
      if (const std::vector<std::string> unread = context.UnreadAttributes(); outputs.ok() && !unread.empty())
        outputs = Unsupported(absl::StrCat("its attribute \"", unread[0], "\" is not supported"));
    }
    if (outputs.ok() && !element.empty() && op->narrow == NarrowElements::kMoves) {
      for (const int output : *outputs) {
        if (output >= 0) graph_.values[output].element = element;
      }
    }
    if (outputs.ok() && narrow != kFloat32) outputs = Narrow(node, *outputs, narrow);
    if (!outputs.ok()) {
      Problem(node, std::string(outputs.status().message()));
      return Break(node, scope);
    }
    NameOutputs(node, *outputs, scope);
    for (const int output : *outputs) {
      if (output >= 0 && output < static_cast<int>(values_before)) shared_.insert(output);
      if (output < -1) shared_.insert(named.begin(), named.end());  // a sequence, which may hold them
    }
    if (last_ && scope.outer == nullptr && calls_ == 0) FreeConstants(node, named, nodes_before);
  }

  // Frees the constants that the node alone reads by their only names and of which it was computed what is needed: of
  // weights in another layout no second copy is held. `first`: the graph's node that was made first for it.
  void FreeConstants(const OnnxNode& node, const std::vector<int>& inputs, size_t first) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int value = inputs[i];
      if (value < 0 || !graph_.values[value].is_constant() || shared_.count(value) > 0) continue;
      if (read_[node.inputs[i]] > 1) continue;
      const bool is_read = std::any_of(graph_.nodes.begin() + static_cast<int64_t>(first), graph_.nodes.end(),
                                       [&](const Node& made) { return std::ranges::count(made.inputs, value) > 0; });
      if (!is_read) graph_.values[value].data = nullptr;
    }
  }

  // How often a node or the model's output list mentions a name, in any graph.
  void CollectReads(const OnnxGraph& body) {
    for (const std::string& name : body.outputs) ++read_[name];
    for (const OnnxNode& node : body.nodes) {
      for (const std::string& name : node.inputs) ++read_[name];
      for (const auto& [name, attribute] : node.attributes) {
        if (const auto* inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute)) CollectReads(**inner);
      }
    }
  }

  // The narrow type of the inputs' elements; of several kinds the first.
  std::string NarrowElement(const std::vector<int>& inputs) const {
    for (const int input : inputs) {
      if (input >= 0 && !graph_.values[input].element.empty()) return graph_.values[input].element;
    }
    return "";
  }

  // Makes inputs of narrow floating types float32 (OnnxOperator::in_float32). `narrow` becomes the type of the first.
  absl::StatusOr<std::vector<int>> Widen(const OnnxNode& node, std::vector<int>& inputs, DType& narrow) {
    for (int& input : inputs) {
      if (input < 0) continue;
      const DType dtype = graph_.type(input).dtype;
      if (!dtype.is_float() || dtype.bits != 16) continue;
      if (narrow == kFloat32) narrow = dtype;
      HONE_ASSIGN_OR_RETURN(input, CastTo(node, input, kFloat32));
    }
    return std::vector<int>();
  }
  absl::StatusOr<std::vector<int>> Narrow(const OnnxNode& node, std::vector<int> outputs, DType narrow) {
    for (int& output : outputs) {
      if (output < 0 || graph_.type(output).dtype != kFloat32) continue;
      HONE_ASSIGN_OR_RETURN(output, CastTo(node, output, narrow));
    }
    return outputs;
  }
  absl::StatusOr<int> CastTo(const OnnxNode& node, int value, DType dtype) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int> cast,
                          AddFolded(graph_, "cast", node.name, {value}, {{"to", ToText(dtype)}}));
    return cast[0];
  }

  absl::Status CountInlined(const OnnxGraph& body) {
    inlined_nodes_ += body.nodes.size();
    if (inlined_nodes_ <= kMostInlinedNodes) return absl::OkStatus();
    return Unsupported(
        absl::StrCat("the graphs inside nodes and functions come to more than ", kMostInlinedNodes, " nodes"));
  }

  // A graph that is an attribute of a node, in the node's place. What reads a value that was reported is not reported
  // again, hence the status without a message.
  absl::StatusOr<std::vector<int>> Inline(const OnnxNode& node, const std::string& attr, const std::vector<int>& inputs,
                                          const Scope& outer) {
    const auto& body = *std::get<std::shared_ptr<const OnnxGraph>>(node.attributes.at(attr));
    if (body.inputs.size() != inputs.size())
      return Unsupported(
          absl::StrCat("the graph \"", attr, "\" has ", body.inputs.size(), " inputs instead of ", inputs.size()));
    HONE_RETURN_IF_ERROR(CountInlined(body));
    Scope scope;
    scope.outer = &outer;
    for (size_t i = 0; i < inputs.size(); ++i) scope.values[body.inputs[i].name] = inputs[i];
    const size_t problems = problems_.size();
    std::vector<int> outputs = Body(body, scope);
    if (problems_.size() > problems) return Unsupported(absl::StrCat("the graph \"", attr, "\" cannot be imported"));
    return outputs;
  }

  // The model as one of its nodes sees it.
  class NodeScope : public ModelScope {
   public:
    NodeScope(Importer& importer, const OnnxNode& node, Scope& scope)
        : importer_(importer), node_(node), scope_(scope) {}
    std::optional<std::vector<int64_t>> DeclaredShape(const std::string& name) const override {
      return scope_.DeclaredShape(name);
    }
    std::optional<int> Find(const std::string& name) const override {
      const int* value = scope_.Find(name);
      return value == nullptr ? std::nullopt : std::optional(*value);
    }
    absl::StatusOr<std::vector<int>> Inline(const std::string& attr, const std::vector<int>& inputs) override {
      return importer_.Inline(node_, attr, inputs, scope_);
    }
    Sequences& sequences() override { return importer_.sequences_; }

   private:
    Importer& importer_;
    const OnnxNode& node_;
    Scope& scope_;
  };

  OnnxModel& model_;
  const bool last_;
  const ImportOptions& options_;
  std::vector<std::string>& problems_;
  const std::map<std::string, int64_t>* opsets_;  // of the graph or function that is being imported
  std::map<std::string, int> read_;
  std::set<int> shared_;  // values that have several names, or are in sequences
  size_t inlined_nodes_ = 0;
  int calls_ = 0;  // of functions, one inside the other, that are being imported
  Sequences sequences_;
  Graph graph_;
};

// What is left must be computable: float32, integers and bool, and at least one element each.
void CheckValues(const Graph& graph, std::vector<std::string>& problems) {
  for (const Node& node : graph.nodes) {
    for (const std::vector<int>* list : {&node.inputs, &node.outputs}) {
      for (const int v : *list) {
        const TensorType& type = graph.type(v);
        const std::string where = absl::StrCat("node \"", node.name, "\": the value \"", graph.values[v].name, "\"");
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

}  // namespace

absl::StatusOr<Graph> GraphOfModel(OnnxModel& model, bool last, std::vector<std::string> problems,
                                   const ImportOptions& options) {
  if (!options.ranges.empty()) {
    const auto& [name, range] = *options.ranges.begin();
    return absl::InvalidArgumentError(
        absl::StrCat("--dim ", name, "=", range.min, "..", range.max, ": here it takes one size, not a range"));
  }
  const auto opset = model.opsets.find("");
  if (opset != model.opsets.end() && (opset->second < kOldestOpset || opset->second > kNewestOpset)) {
    problems.push_back(absl::StrCat("the model uses operator set ", opset->second, "; supported are ", kOldestOpset,
                                    " to ", kNewestOpset));
  }
  Graph graph = Importer(model, last, options, problems).Run();
  if (graph.name.empty()) graph.name = "model";
  if (!problems.empty()) return ProblemList(problems);
  HONE_RETURN_IF_ERROR(graph.Compact());
  CheckValues(graph, problems);
  if (!problems.empty()) return ProblemList(problems);
  return graph;
}

ImportOptions AtSizes(const ImportOptions& options, const std::map<std::string, int64_t>& sizes) {
  ImportOptions here = options;
  here.dims.insert(sizes.begin(), sizes.end());
  if (!sizes.empty()) here.ranges.clear();
  here.sizes_are_open = !sizes.empty();
  return here;
}

absl::Status AsImportError(absl::Status status) {
  if (!status.ok()) status.SetPayload(kImportPayload, absl::Cord());
  return status;
}

bool IsImportError(const absl::Status& status) { return !status.ok() && status.GetPayload(kImportPayload).has_value(); }

}  // namespace hone
