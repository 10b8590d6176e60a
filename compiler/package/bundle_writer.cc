#include "compiler/package/bundle_writer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/codegen/device/device_kernel.h"
#include "compiler/package/archive_writer.h"
#include "compiler/package/constant_pool.h"
#include "compiler/package/link_kernels.h"
#include "compiler/package/memory_plan.h"
#include "compiler/package/pack_constants.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/bundle/bundle.h"

namespace hone {
namespace {

std::span<const char> BytesOf(const NdArray& array) { return array.data; }

// Bytes the main kernel takes at `param`: of the packed form where there is one.
int64_t BytesAt(const KernelSet& set, int param) {
  for (const PreparedConstant& prepared : set.prepared) {
    if (prepared.param == param) return prepared.packed.bytes;
  }
  return set.params[param].bytes;
}

int PreparedIndex(const KernelSet& set, int param) {
  for (size_t i = 0; i < set.prepared.size(); ++i) {
    if (set.prepared[i].param == param) return static_cast<int>(i);
  }
  return -1;
}

// A kernel that is only for some sizes takes a part of what the tensors hold at the greatest.
absl::Status CheckKernelFits(const Plan& plan, const PlanStep& step, const KernelSet& set, bool only_for_some) {
  if (set.params.size() != step.tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("its kernel takes ", set.params.size(), " tensors, the plan has ", step.tensors.size()));
  }
  if (set.sizes.size() != plan.tasks[step.task].sizes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("its kernel takes ", set.sizes.size(), " sizes, the task has ",
                                                   plan.tasks[step.task].sizes.size()));
  }
  for (size_t i = 0; i < step.tensors.size(); ++i) {
    const PlanTensor& tensor = plan.tensors[step.tensors[i]];
    if (set.params[i].bytes > BytesOf(tensor) || (set.params[i].bytes < BytesOf(tensor) && !only_for_some)) {
      return absl::InvalidArgumentError(absl::StrCat("its kernel takes ", set.params[i].bytes, " bytes at param ", i,
                                                     ", tensor `", tensor.name, "` has ", BytesOf(tensor)));
    }
    const bool constant = plan.tensors[RootOf(plan, step.tensors[i])].kind == PlanTensor::kConstant;
    if (PreparedIndex(set, static_cast<int>(i)) >= 0 && !constant) {
      return absl::InvalidArgumentError(
          absl::StrCat("its kernel packs param ", i, " beforehand, but tensor `", tensor.name, "` is no constant"));
    }
  }
  return absl::OkStatus();
}

// The kernels of each task: its own, then those for some sizes.
std::vector<std::vector<int>> KernelsOfTasks(const Plan& plan, std::span<const PackagedKernel> kernels) {
  std::vector<std::vector<int>> of(plan.tasks.size());
  for (size_t k = 0; k < kernels.size(); ++k) {
    of[kernels[k].only_for ? static_cast<size_t>(kernels[k].only_for->task) : k].push_back(static_cast<int>(k));
  }
  return of;
}

absl::Status CheckKernelsFit(const Plan& plan, std::span<const PackagedKernel> kernels) {
  const auto own = static_cast<size_t>(
      std::ranges::count_if(kernels, [](const PackagedKernel& k) { return !k.only_for.has_value(); }));
  if (own != plan.tasks.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plan has ", plan.tasks.size(), " tasks, but ", own, " kernels came"));
  }
  const std::vector<std::vector<int>> of = KernelsOfTasks(plan, kernels);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    if (step.is_call()) continue;
    for (const int k : of[step.task]) {
      HONE_RETURN_IF_ERROR(Annotate(CheckKernelFits(plan, step, kernels[k].kernel.set, kernels[k].only_for.has_value()),
                                    absl::StrCat("step ", s, ", task `", plan.tasks[step.task].name, "`")));
    }
  }
  return absl::OkStatus();
}

BundleExtent ExtentOf(const SizePolynomial& polynomial) {
  BundleExtent extent;
  for (const SizePolynomial::Term& term : polynomial.terms) extent.terms.push_back({term.factor, term.sizes});
  return extent;
}

// Builds the execution plan; tensors of the graph are made as they are met.
class GraphBuilder {
 public:
  // Constants go into the member of `archive` begun last, and those of the plan are let go of.
  GraphBuilder(Plan& plan, std::span<const PackagedKernel> kernels, int64_t alignment, ArchiveWriter& archive)
      : plan_(plan),
        kernels_(kernels),
        kernels_of_(KernelsOfTasks(plan, kernels)),
        alignment_(alignment),
        constants_(archive, alignment) {}

  absl::StatusOr<BundleGraph> Build(const BundleOptions& options) {
    HONE_RETURN_IF_ERROR(Pack(options));
    for (const PlanSize& size : plan_.sizes) graph_.sizes.push_back({size.name, size.range.min, size.range.max});
    AddPorts();
    AddKernels();
    for (size_t s = 0; s < plan_.steps.size(); ++s) HONE_RETURN_IF_ERROR(AddStep(static_cast<int>(s)));
    HONE_RETURN_IF_ERROR(AddCopies());
    PlaceArena();
    return std::move(graph_);
  }

 private:
  static constexpr int kForEver = std::numeric_limits<int>::max();
  using PackedKey = std::tuple<int, int, int>;  // plan root, kernel, prepared

  // A tensor in the arena, alive from step `first` to step `last`.
  int NewArenaTensor(const std::string& name, int64_t bytes, int first, int last) {
    graph_.tensors.push_back({name, BundleTensor::kArena, 0, bytes});
    lives_.push_back({bytes, first, last});
    return static_cast<int>(graph_.tensors.size()) - 1;
  }
  static std::string ElementOf(const PlanTensor& tensor) {
    return tensor.element.empty() ? ToText(tensor.dtype) : tensor.element;
  }
  absl::StatusOr<int> NewConstant(const std::string& name, std::string_view bytes) {
    HONE_ASSIGN_OR_RETURN(const int64_t offset, constants_.Add(bytes));
    const auto [at, is_new] =
        constant_at_.try_emplace({offset, static_cast<int64_t>(bytes.size())}, static_cast<int>(graph_.tensors.size()));
    if (is_new) {
      graph_.tensors.push_back({name, BundleTensor::kParams, offset, static_cast<int64_t>(bytes.size())});
      lives_.push_back({});
    }
    return at->second;
  }

  BundlePort PortOf(const PlanTensor& tensor, int index) {
    BundlePort port{tensor.name, ElementOf(tensor), tensor.shape, index};
    for (const SizePolynomial& extent : tensor.extents) port.extents.push_back(ExtentOf(extent));
    return port;
  }

  void AddPorts() {
    for (const int input : plan_.inputs) {
      const PlanTensor& tensor = plan_.tensors[input];
      // What the caller sets stays, so that a second run needs no new inputs.
      arena_tensor_[input] = NewArenaTensor(tensor.name, BytesOf(tensor), 0, kForEver);
      graph_.inputs.push_back(PortOf(tensor, arena_tensor_[input]));
    }
    for (const int output : plan_.outputs) {
      const PlanTensor& tensor = plan_.tensors[output];
      const int root = RootOf(plan_, output);
      const PlanTensor::Kind kind = plan_.tensors[root].kind;
      const bool has_place =
          kind != PlanTensor::kInput && kind != PlanTensor::kConstant && arena_tensor_.count(root) == 0;
      const int index = NewArenaTensor(tensor.name, BytesOf(tensor),
                                       has_place ? kForEver : static_cast<int>(plan_.steps.size()), kForEver);
      if (has_place) {
        arena_tensor_[root] = index;  // a step will write it; its life begins there
      } else {
        copied_outputs_.push_back({root, index});  // an input, a constant, or another output once more
      }
      graph_.outputs.push_back(PortOf(tensor, index));
    }
  }

  void AddKernels() {
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const KernelSet& set = kernels_[i].kernel.set;
      const size_t of_task = kernels_[i].only_for ? static_cast<size_t>(kernels_[i].only_for->task) : i;
      const PlanTask& task = plan_.tasks[of_task];
      BundleKernel kernel;
      kernel.name = task.name;
      kernel.sizes = task.sizes;
      kernel.symbol = set.symbol;
      for (int p = 0; p < static_cast<int>(set.params.size()); ++p) {
        const bool packed = PreparedIndex(set, p) >= 0;
        const KernelSet& at_greatest = kernels_[of_task].kernel.set;
        kernel.tensor_bytes.push_back(packed ? BytesAt(set, p) : at_greatest.params[static_cast<size_t>(p)].bytes);
      }
      kernel.scratch_bytes = set.scratch_bytes;
      kernel.thread_scratch_bytes = set.thread_scratch_bytes;
      kernel.record = kernels_[i].provenance.record;
      kernel.recorded_us = kernels_[i].provenance.measured_us;
      kernel.scratch = set.areas;
      kernel.launches = set.launches;
      graph_.kernels.push_back(std::move(kernel));
    }
  }

  absl::StatusOr<int> Constant(int root) {
    const auto at = plain_constant_.find(root);
    if (at != plain_constant_.end()) return at->second;
    HONE_ASSIGN_OR_RETURN(const std::span<const char> bytes, DataOf(root));
    HONE_ASSIGN_OR_RETURN(const int constant, NewConstant(plan_.tensors[root].name, {bytes.data(), bytes.size()}));
    return plain_constant_[root] = constant;
  }

  // Fills packed_constant_ with every constant that a step wants packed.
  absl::Status Pack(const BundleOptions& options) {
    std::vector<ConstantToPack> wanted;
    std::vector<PackedKey> keys;
    std::map<int, int> uses;  // of constants, that are left: packed forms, and where they stay as they are
    for (const int output : plan_.outputs) ++uses[RootOf(plan_, output)];
    for (const PlanStep& step : plan_.steps) {
      if (step.is_call()) {
        for (const int t : step.tensors) ++uses[RootOf(plan_, t)];
        continue;
      }
      for (const int k : kernels_of_[step.task]) {
        for (size_t i = 0; i < step.tensors.size(); ++i) {
          const int prepared = PreparedIndex(kernels_[k].kernel.set, static_cast<int>(i));
          const int root = RootOf(plan_, step.tensors[i]);
          const PackedKey key(root, k, prepared);
          if (prepared >= 0 && !packed_constant_.emplace(key, -1).second) continue;
          ++uses[root];
          if (prepared < 0) continue;
          HONE_ASSIGN_OR_RETURN(const std::span<const char> bytes, DataOf(root));
          wanted.push_back({k, prepared, bytes});
          keys.push_back(key);
        }
      }
    }
    return PackConstants(kernels_, wanted, options, [&](size_t i, std::string_view packed) -> absl::Status {
      const int root = std::get<0>(keys[i]);
      PlanTensor& tensor = plan_.tensors[root];
      HONE_ASSIGN_OR_RETURN(packed_constant_[keys[i]], NewConstant(tensor.name, packed));
      if (--uses[root] == 0) tensor.data = nullptr;
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::span<const char>> DataOf(int root) {
    const PlanTensor& tensor = plan_.tensors[root];
    if (tensor.data == nullptr || static_cast<int64_t>(tensor.data->data.size()) != BytesOf(tensor)) {
      return absl::InvalidArgumentError(
          absl::StrCat("constant `", tensor.name, "` of the plan has no data of its size"));
    }
    return BytesOf(*tensor.data);
  }

  absl::Status AddStep(int s) {
    const PlanStep& step = plan_.steps[s];
    if (step.is_call()) return AddCall(s);
    BundleStep out;
    for (const int k : kernels_of_[step.task]) {
      HONE_ASSIGN_OR_RETURN(std::vector<int> tensors, TensorsOf(s, k));
      if (!kernels_[k].only_for.has_value()) {
        out.kernel = k;
        out.tensors = std::move(tensors);
      } else {
        out.cases.push_back({kernels_[k].only_for->most, k, std::move(tensors)});
      }
    }
    graph_.steps.push_back(std::move(out));
    return absl::OkStatus();
  }

  absl::Status AddCall(int s) {
    const PlanStep& step = plan_.steps[s];
    BundleStep out{.kernel = -1, .tensors = {}, .function = step.packed, .outputs = step.outputs};
    for (const int t : step.tensors) out.arguments.push_back({ElementOf(plan_.tensors[t]), plan_.tensors[t].shape});
    HONE_ASSIGN_OR_RETURN(out.tensors, TensorsOf(s, -1));
    graph_.steps.push_back(std::move(out));
    return absl::OkStatus();
  }

  // The tensors of a step that runs by this kernel, or with -1 is a call.
  absl::StatusOr<std::vector<int>> TensorsOf(int s, int kernel) {
    const PlanStep& step = plan_.steps[s];
    std::vector<int> tensors;
    for (size_t i = 0; i < step.tensors.size(); ++i) {
      const int root = RootOf(plan_, step.tensors[i]);
      const PlanTensor& tensor = plan_.tensors[root];
      const int prepared = kernel < 0 ? -1 : PreparedIndex(kernels_[kernel].kernel.set, static_cast<int>(i));
      if (prepared >= 0) {
        tensors.push_back(packed_constant_.at({root, kernel, prepared}));
      } else if (tensor.kind == PlanTensor::kConstant) {
        HONE_ASSIGN_OR_RETURN(const int constant, Constant(root));
        tensors.push_back(constant);
      } else {
        const auto [at, is_new] = arena_tensor_.try_emplace(root, 0);
        if (is_new) at->second = NewArenaTensor(tensor.name, BytesOf(tensor), s, s);
        TensorLife& life = lives_[at->second];
        life.first = std::min(life.first, s);
        life.last = std::max(life.last, s);
        tensors.push_back(at->second);
      }
    }
    return tensors;
  }

  absl::Status AddCopies() {
    for (const auto& [root, to] : copied_outputs_) {
      int from;
      if (plan_.tensors[root].kind == PlanTensor::kConstant) {
        HONE_ASSIGN_OR_RETURN(from, Constant(root));
      } else {
        from = arena_tensor_.at(root);
        lives_[from].last = std::max(lives_[from].last, static_cast<int>(plan_.steps.size()));
      }
      graph_.copies.push_back({from, to});
    }
    return absl::OkStatus();
  }

  void PlaceArena() {
    std::vector<int> in_arena;
    std::vector<TensorLife> lives;
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      if (graph_.tensors[i].region != BundleTensor::kArena) continue;
      in_arena.push_back(static_cast<int>(i));
      lives.push_back(lives_[i]);
    }
    const MemoryPlan memory = PlanMemory(lives, alignment_);
    for (size_t i = 0; i < in_arena.size(); ++i) graph_.tensors[in_arena[i]].offset = memory.offsets[i];
    graph_.arena_bytes = memory.arena_bytes;
  }

  Plan& plan_;
  std::span<const PackagedKernel> kernels_;
  const std::vector<std::vector<int>> kernels_of_;  // of each task of the plan
  const int64_t alignment_;                         // of tensors
  BundleGraph graph_;
  ConstantPool constants_;
  std::vector<TensorLife> lives_;    // of graph_.tensors; constants have none
  std::map<int, int> arena_tensor_;  // plan root to graph tensor
  std::map<int, int> plain_constant_;
  std::map<PackedKey, int> packed_constant_;
  std::map<std::pair<int64_t, int64_t>, int> constant_at_;  // (offset, bytes) to graph tensor
  std::vector<std::pair<int, int>> copied_outputs_;         // plan root, graph tensor
};

std::string Manifest(const Plan& plan, std::span<const PackagedKernel> kernels, const BundleGraph& graph,
                     int64_t params_bytes, const BundleOptions& options) {
  using Json = nlohmann::ordered_json;
  const auto ports = [&](const std::vector<BundlePort>& list) {
    Json items = Json::array();
    for (const BundlePort& port : list) {
      Json item = {{"name", port.name}, {"dtype", port.dtype}, {"shape", port.shape}};
      if (!port.extents.empty()) item["symbolic_shape"] = ToText(port.extents, graph.sizes);
      items.push_back(std::move(item));
    }
    return items;
  };
  Json items = Json::array();
  for (size_t i = 0; i < kernels.size(); ++i) {
    const PackagedKernel& kernel = kernels[i];
    const PlanTask& task = plan.tasks[kernel.only_for ? static_cast<size_t>(kernel.only_for->task) : i];
    const std::string digest =
        kernel.provenance.object_digest.empty() ? ToHex(Sha256(kernel.kernel.object)) : kernel.provenance.object_digest;
    Json item = {{"name", task.name},
                 {"symbol", kernel.kernel.set.symbol},
                 {"weight", task.weight},
                 {"flop", task.flop},
                 {"bytes", task.bytes},
                 {"source", kernel.provenance.source},
                 {"record", kernel.provenance.record},
                 {"object_digest", digest},
                 {"program_hash", absl::StrFormat("%016x", kernel.kernel.program_hash)}};
    if (kernel.provenance.measured_us > 0) item["measured_us"] = kernel.provenance.measured_us;
    if (!kernel.kernel.serial_loops.empty()) item["serial_loops"] = kernel.kernel.serial_loops;
    if (kernel.only_for.has_value()) item["sizes_up_to"] = kernel.only_for->most;
    items.push_back(std::move(item));
  }
  Json manifest = {{"format", 1},
                   {"model", plan.model_name},
                   {"target", graph.target},
                   {"device_class", options.gpu ? DeviceClass(*options.gpu) : DeviceClass(options.target)},
                   {"features", graph.features},
                   {"numeric", std::string(ToText(options.numeric))},
                   {"threads", options.threads},
                   {"generator", options.gpu ? DeviceGeneratorFingerprint(*options.gpu) : GeneratorFingerprint()},
                   {"inputs", ports(graph.inputs)},
                   {"outputs", ports(graph.outputs)},
                   {"arena_bytes", graph.arena_bytes},
                   {"params_bytes", params_bytes},
                   {"kernels", std::move(items)}};
  for (const BundleSize& size : graph.sizes)
    manifest["sizes"].push_back({{"name", size.name}, {"min", size.min}, {"max", size.max}});
  const std::vector<std::string> called = CalledFunctions(plan);
  if (!called.empty()) manifest["functions"] = called;
  // Names come from models and may not be UTF-8; a manifest is.
  return manifest.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::Status CheckFitsDevice(const Plan& plan) {
  const std::vector<std::string> called = CalledFunctions(plan);
  if (called.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the model calls \"", called[0],
                   "\", a function of the program that runs it: only bundles for CPUs can do that"));
}

absl::Status WriteBundle(Plan plan, std::span<const PackagedKernel> kernels, const BundleOptions& options,
                         const std::string& path) {
  if (options.gpu.has_value()) { HONE_RETURN_IF_ERROR(CheckFitsDevice(plan)); }
  HONE_RETURN_IF_ERROR(CheckKernelsFit(plan, kernels));
  LinkedKernels linked;
  if (options.gpu.has_value()) {
    linked = SourcesOf(kernels);
  } else {
    HONE_ASSIGN_OR_RETURN(linked, LinkKernels(kernels));
  }
  HONE_ASSIGN_OR_RETURN(ArchiveWriter archive, ArchiveWriter::Create(path, linked.images.size() + 3));
  HONE_RETURN_IF_ERROR(archive.Begin("params"));
  const int64_t alignment = options.gpu ? kDeviceAlignment : static_cast<int64_t>(kTensorAlignment);
  HONE_ASSIGN_OR_RETURN(BundleGraph graph, GraphBuilder(plan, kernels, alignment, archive).Build(options));
  const int64_t params_bytes = static_cast<int64_t>(archive.member_bytes());
  graph.model = plan.model_name;
  graph.target = options.gpu ? options.gpu->text : options.target.text;
  graph.device = options.gpu ? options.gpu->language : "";
  graph.features = linked.features;
  graph.threads = options.threads;
  for (size_t i = 0; i < kernels.size(); ++i) graph.kernels[i].image = linked.image_of[i];

  const std::string json = ToJson(graph);
  // Read back at once: what the runtime would refuse is our mistake, and is found here.
  const RuntimeResult<BundleGraph> read = ParseGraph(json, params_bytes, static_cast<int>(linked.images.size()));
  if (!read.ok()) return absl::InternalError(absl::StrCat("the bundle contradicts itself: ", read.error().message()));
  for (size_t i = 0; i < linked.images.size(); ++i) {
    const absl::string_view name = options.gpu ? "source" : "image";
    HONE_RETURN_IF_ERROR(archive.Add(i == 0 ? std::string(name) : absl::StrCat(name, i), linked.images[i]));
  }
  HONE_RETURN_IF_ERROR(archive.Add("graph.json", json));
  HONE_RETURN_IF_ERROR(archive.Add("manifest.json", Manifest(plan, kernels, graph, params_bytes, options)));
  HONE_RETURN_IF_ERROR(archive.Finish());
  if (!options.digest.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::string digest, Sha256OfFile(archive.temporary_path()));
    if (digest != options.digest) {
      return absl::FailedPreconditionError(absl::StrCat("the bundle has SHA-256 ", ToHex(digest), " instead of ",
                                                        ToHex(options.digest),
                                                        ": its constants were packed otherwise, "
                                                        "or the format is another"));
    }
  }
  return archive.Commit();
}

}  // namespace hone
