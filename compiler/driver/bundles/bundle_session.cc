#include "compiler/driver/bundles/bundle_session.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/driver/exit_code.h"
#include "compiler/support/check.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

absl::Status FromRuntime(HoneStatus code, const std::string& context) {
  if (code == HONE_OK) return absl::OkStatus();
  const std::string text = absl::StrCat(context, ": ", hone_last_error());
  switch (code) {
    case HONE_INVALID_ARGUMENT:
    case HONE_NOT_FOUND: return WithExitCode(ExitCode::kUsage, absl::InvalidArgumentError(text));
    case HONE_CORRUPT: return WithExitCode(ExitCode::kCorrupt, absl::DataLossError(text));
    case HONE_DEVICE_LOST:
    case HONE_UNSUPPORTED: return WithExitCode(ExitCode::kWrongMachine, absl::FailedPreconditionError(text));
    case HONE_OUT_OF_MEMORY: return absl::ResourceExhaustedError(text);
    default: return absl::InternalError(text);
  }
}

std::string ShapeText(DType type, const std::vector<int64_t>& shape) {
  return absl::StrCat(ToText(type), "(", absl::StrJoin(shape, ", "), ")");
}

DLDataType ToDlpack(DType type) {
  DLDataType result{};
  result.bits = static_cast<uint8_t>(type.bytes() * 8);
  result.lanes = 1;
  switch (type.code) {
    case TypeCode::kBool: result.code = kDLBool; break;
    case TypeCode::kInt: result.code = kDLInt; break;
    case TypeCode::kUInt: result.code = kDLUInt; break;
    case TypeCode::kFloat: result.code = kDLFloat; break;
    case TypeCode::kBFloat: result.code = kDLBfloat; break;
    case TypeCode::kFloat8E4M3:
    case TypeCode::kFloat8E5M2: HONE_UNREACHABLE() << "the host has the bytes of " << ToText(type);
  }
  return result;
}

DLTensor View(const NdArray& array, std::vector<int64_t>* shape) {
  *shape = array.shape;
  DLTensor tensor{};
  tensor.data = const_cast<char*>(array.data.data());
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int>(shape->size());
  tensor.dtype = ToDlpack(array.dtype);
  tensor.shape = shape->data();
  return tensor;
}

BundleSession::Tensor Describe(const HoneTensorInfo& info) {
  BundleSession::Tensor tensor;
  tensor.name = info.name;
  tensor.dtype = ParseDType(info.dtype_name).value_or(kFloat32);
  const bool is_narrow = tensor.dtype.is_float() || (tensor.dtype.bits < 8 && !tensor.dtype.is_bool());
  if (info.dtype.bits == 8 && is_narrow)  // an element a byte
    tensor.dtype = info.dtype.code == kDLInt ? DType::Int(8) : DType::UInt(8);
  tensor.type_name = info.dtype_name;
  tensor.shape.assign(info.shape, info.shape + info.ndim);
  tensor.size_names.assign(info.size_names, info.size_names + info.ndim);
  return tensor;
}

// What the bundle calls is not this program's to give.
absl::Status CheckNothingIsCalled(const HoneModule* module, const std::string& path) {
  const nlohmann::json manifest = nlohmann::json::parse(hone_module_manifest(module), nullptr, false);
  if (!manifest.is_object() || !manifest.contains("functions")) return absl::OkStatus();
  std::vector<std::string> names;
  for (const nlohmann::json& name : manifest["functions"])
    names.push_back(name.is_string() ? name.get<std::string>() : name.dump());
  return WithExitCode(ExitCode::kWrongMachine,
                      absl::FailedPreconditionError(absl::StrCat(
                          path, " calls functions that only a program of yours has: ", absl::StrJoin(names, ", "),
                          "; run it there, with HoneInstanceOptions::functions or hone.load(..., functions={...})")));
}

}  // namespace

absl::StatusOr<BundleSession> BundleSession::Load(const std::string& path, int threads) {
  BundleSession session;
  HoneModule* module = nullptr;
  HONE_RETURN_IF_ERROR(FromRuntime(hone_module_load(path.c_str(), &module), absl::StrCat("loading ", path)));
  session.module_.reset(module);
  HONE_RETURN_IF_ERROR(CheckNothingIsCalled(module, path));
  HoneInstanceOptions options{};
  options.struct_size = sizeof(options);
  options.threads = threads;
  options.pin_threads = 1;
  HoneInstance* instance = nullptr;
  HONE_RETURN_IF_ERROR(FromRuntime(hone_instance_create(module, &options, &instance), absl::StrCat("loading ", path)));
  session.instance_.reset(instance);
  HoneTensorInfo info{};
  info.struct_size = sizeof(info);
  for (int32_t i = 0; i < hone_module_num_inputs(module); ++i) {
    HONE_RETURN_IF_ERROR(FromRuntime(hone_module_input(module, i, &info), path));
    session.inputs_.push_back(Describe(info));
  }
  for (int32_t i = 0; i < hone_module_num_outputs(module); ++i) {
    HONE_RETURN_IF_ERROR(FromRuntime(hone_module_output(module, i, &info), path));
    session.outputs_.push_back(Describe(info));
  }
  return session;
}

std::vector<std::string> BundleSession::SizeNames() const {
  std::set<std::string> names;
  for (const Tensor& input : inputs_) names.insert(input.size_names.begin(), input.size_names.end());
  names.erase("");
  return {names.begin(), names.end()};
}

absl::Status BundleSession::ChooseSizes(const std::map<std::string, int64_t>& sizes) {
  const std::vector<std::string> names = SizeNames();
  for (const auto& [name, size] : sizes) {
    if (std::ranges::find(names, name) == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--dim ", name, "=", size, ": the bundle has no size of that name",
                                                     names.empty() ? "" : "; it has ", absl::StrJoin(names, ", ")));
    }
    for (Tensor& input : inputs_) {
      for (size_t d = 0; d < input.shape.size(); ++d) {
        if (input.size_names[d] == name) input.shape[d] = size;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status BundleSession::SetInput(const std::string& name, const NdArray& value) {
  const Tensor* wanted = nullptr;
  std::vector<std::string> names;
  for (const Tensor& input : inputs_) {
    names.push_back(input.name);
    if (input.name == name) wanted = &input;
  }
  if (wanted == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has no input '", name, "'; its inputs are: ", absl::StrJoin(names, ", ")));
  }
  const bool fixed = std::ranges::all_of(wanted->size_names, &std::string::empty);  // else the runtime says it
  if (!(wanted->dtype == value.dtype) || (fixed && wanted->shape != value.shape)) {
    return absl::InvalidArgumentError(absl::StrCat("input '", name, "': the model wants ",
                                                   ShapeText(wanted->dtype, wanted->shape), ", the file holds ",
                                                   ShapeText(value.dtype, value.shape)));
  }
  std::vector<int64_t> shape;
  const DLTensor tensor = View(value, &shape);
  return FromRuntime(hone_instance_set_input(instance_.get(), name.c_str(), &tensor),
                     absl::StrCat("input '", name, "'"));
}

NdArray BundleSession::RandomInput(size_t i, uint64_t seed) const {
  NdArray value(inputs_[i].dtype, inputs_[i].shape);
  Random random(seed, i);
  for (int64_t at = 0; at < value.NumElements(); ++at) {
    value.Set(at, value.dtype.is_float() ? random.Uniform() * 2 - 1 : static_cast<double>(random.Below(2)));
  }
  return value;
}

absl::Status BundleSession::SetRandomInputs(uint64_t seed) {
  for (size_t i = 0; i < inputs_.size(); ++i) HONE_RETURN_IF_ERROR(SetInput(inputs_[i].name, RandomInput(i, seed)));
  return absl::OkStatus();
}

absl::Status BundleSession::Run() { return FromRuntime(hone_instance_run(instance_.get()), "running the bundle"); }

absl::StatusOr<std::vector<BundleSession::Step>> BundleSession::RunProfiled() {
  hone_instance_set_profiling(instance_.get(), 1);
  const absl::Status run = Run();
  hone_instance_set_profiling(instance_.get(), 0);
  HONE_RETURN_IF_ERROR(run);
  std::vector<Step> steps;
  for (int i = 0; i < hone_instance_num_steps(instance_.get()); ++i) {
    HoneStepProfile profile{};
    profile.struct_size = sizeof(profile);
    HONE_RETURN_IF_ERROR(FromRuntime(hone_instance_step_profile(instance_.get(), i, &profile), "profiling the bundle"));
    steps.push_back({profile.name, profile.symbol, profile.record, profile.us});
  }
  return steps;
}

absl::StatusOr<NdArray> BundleSession::Output(const std::string& name) const {
  for (const Tensor& output : outputs_) {
    if (output.name != name) continue;
    HoneTensorInfo info{};
    info.struct_size = sizeof(info);
    const auto index = static_cast<int32_t>(&output - outputs_.data());
    HONE_RETURN_IF_ERROR(FromRuntime(hone_instance_output(instance_.get(), index, &info), "running the bundle"));
    NdArray value(output.dtype, {info.shape, info.shape + info.ndim});
    std::vector<int64_t> shape;
    DLTensor tensor = View(value, &shape);
    HONE_RETURN_IF_ERROR(FromRuntime(hone_instance_get_output(instance_.get(), name.c_str(), &tensor),
                                     absl::StrCat("output '", name, "'")));
    return value;
  }
  std::vector<std::string> names;
  for (const Tensor& output : outputs_) names.push_back(output.name);
  return absl::InvalidArgumentError(
      absl::StrCat("the model has no output '", name, "'; its outputs are: ", absl::StrJoin(names, ", ")));
}

}  // namespace hone
