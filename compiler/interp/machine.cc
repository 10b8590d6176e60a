#include "compiler/interp/machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/float_format.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/support/status_macros.h"

namespace hone::interp {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 36;

}  // namespace

Machine::Storage Machine::StorageOf(DType type) {
  if (type.is_bool()) return Storage::kBool;
  if (type.code == TypeCode::kBFloat) return Storage::kBF16;
  if (type.code == TypeCode::kFloat8E4M3) return Storage::kE4M3;
  if (type.code == TypeCode::kFloat8E5M2) return Storage::kE5M2;
  const bool is_unsigned = type.code == TypeCode::kUInt;
  if (type.is_float()) return type.bits == 64 ? Storage::kF64 : type.bits == 32 ? Storage::kF32 : Storage::kF16;
  switch (type.bits) {
    case 4: return is_unsigned ? Storage::kU4 : Storage::kI4;
    case 8: return is_unsigned ? Storage::kU8 : Storage::kI8;
    case 16: return is_unsigned ? Storage::kU16 : Storage::kI16;
    case 32: return is_unsigned ? Storage::kU32 : Storage::kI32;
    default: return Storage::kI64;
  }
}

Machine::Machine(const PrimFunc& f, const Code& code, const InterpretOptions& options)
    : f_(f), code_(code), options_(options), random_(options.seed) {
  const size_t slots = static_cast<size_t>(code.num_slots) + code.constants.size();
  undefined_ = options.check_uninitialised && options.follow_undefined ? slots : 0;
  slots_.resize(slots + undefined_);
  std::copy(code.constants.begin(), code.constants.end(), slots_.begin() + code.num_slots);
  for (const BufferInfo& info : code.buffers) {
    Memory memory;
    memory.storage = StorageOf(info.storage);
    memory.bytes = info.storage.bytes();
    memory_.push_back(std::move(memory));
  }
}

absl::Status Machine::At(const std::string& place, const absl::Status& status) const {
  return Annotate(status, absl::StrCat("interpreting ", f_.name, place.empty() ? "" : ", block ", place));
}

// Types, ranks and sizes are those of the parameters; symbolic sizes get their values.
absl::Status Machine::BindSizes(std::span<const NdArray> args) {
  const auto refuse = [&](size_t i, const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("interpreting ", f_.name, ": argument ", i, " (", f_.params[i].name(), ") ", why));
  };
  if (args.size() != f_.params.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("interpreting ", f_.name, ": found ", args.size(), " arguments, expected ", f_.params.size()));
  }
  std::vector<std::vector<int64_t>> shapes;
  for (size_t i = 0; i < args.size(); ++i) {
    const Buffer& param = f_.params[i];
    if (args[i].dtype != param.type())
      return refuse(i, absl::StrCat("is ", ToText(args[i].dtype), ", expected ", ToText(param.type())));
    shapes.push_back(args[i].shape);
  }
  const absl::StatusOr<std::vector<int64_t>> sizes = SizesFromShapes(f_, shapes);
  if (!sizes.ok()) return Annotate(sizes.status(), absl::StrCat("interpreting ", f_.name));
  for (size_t k = 0; k < sizes->size(); ++k) slots_[static_cast<size_t>(code_.dim_slots[k])].i = (*sizes)[k];
  for (size_t i = 0; i < args.size(); ++i) {
    if (static_cast<int64_t>(args[i].data.size()) != args[i].NumElements() * args[i].dtype.bytes())
      return refuse(i, "has data of another size than its shape");
  }
  return absl::OkStatus();
}

absl::Status Machine::Bind(std::span<NdArray> args) {
  HONE_RETURN_IF_ERROR(BindSizes(args));
  const size_t first_output =
      args.size() - std::min<size_t>(args.size(), static_cast<size_t>(std::max(0, f_.num_outputs())));
  for (size_t b = 0; b < code_.buffers.size(); ++b) {
    const int param = code_.buffers[b].param;
    if (param < 0) continue;
    NdArray& arg = args[static_cast<size_t>(param)];
    Memory& memory = memory_[b];
    memory.dims = arg.shape;
    memory.elements = arg.NumElements();
    const bool output = static_cast<size_t>(param) >= first_output;
    if (code_.buffers[b].storage == arg.dtype) {
      memory.data = arg.data.data();
      if (output && options_.check_uninitialised) {
        memory.own_written = {static_cast<uint8_t*>(std::calloc(static_cast<size_t>(memory.elements) + 1, 1)),
                              std::free};
        memory.written = memory.own_written.get();
      }
      continue;
    }
    HONE_RETURN_IF_ERROR(Allocate(static_cast<int>(b), output));
    for (int64_t i = 0; i < memory.elements && !output; ++i) reinterpret_cast<double*>(memory.data)[i] = arg.Get(i);
  }
  return absl::OkStatus();
}

absl::Status Machine::Sizes(int buffer) {
  Memory& memory = memory_[static_cast<size_t>(buffer)];
  const BufferInfo& info = code_.buffers[static_cast<size_t>(buffer)];
  memory.dims.clear();
  memory.elements = 1;
  for (const int slot : info.dims) {
    const int64_t extent = frame_[static_cast<size_t>(slot)].i;
    memory.dims.push_back(extent);
    if (extent < 0 || __builtin_mul_overflow(memory.elements, extent, &memory.elements) ||
        memory.elements > kMaxBytes / 8) {
      return absl::ResourceExhaustedError(absl::StrCat("buffer ", info.buffer.name(), " of shape [",
                                                       absl::StrJoin(memory.dims, ", "),
                                                       ", ...] is negative or beyond 64 GiB"));
    }
  }
  return absl::OkStatus();
}

// New contents: nothing is written yet, and what is read all the same is kUnwrittenByte, never a zero that would be
// right by chance. Memory of the same size is used again.
absl::Status Machine::Allocate(int buffer, bool with_flags) {
  Memory& memory = memory_[static_cast<size_t>(buffer)];
  const int64_t bytes = memory.elements * memory.bytes;
  if (memory.own_bytes < bytes || memory.own == nullptr) {
    memory.own = {static_cast<char*>(std::malloc(static_cast<size_t>(bytes) + 8)), std::free};
    if (memory.own == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
    memory.own_bytes = bytes;
  }
  memory.data = memory.own.get();
  // What a thread allocates is its own; what is there before the threads start they share.
  const bool shared = options_.check_races && place_.in_launch && place_.thread == Coordinates();
  memory.touches = shared ? std::make_unique<Touches>(memory.elements) : nullptr;
  std::memset(memory.data, kUnwrittenByte, static_cast<size_t>(bytes));
  memory.written = nullptr;
  if (!with_flags || !options_.check_uninitialised) return absl::OkStatus();
  if (memory.own_flags < memory.elements || memory.own_written == nullptr) {
    memory.own_written = {static_cast<uint8_t*>(std::calloc(static_cast<size_t>(memory.elements) + 1, 1)), std::free};
    if (memory.own_written == nullptr)
      return absl::ResourceExhaustedError(absl::StrCat("no memory for ", memory.elements, " flags"));
    memory.own_flags = memory.elements;
  } else {
    std::memset(memory.own_written.get(), 0, static_cast<size_t>(memory.elements));
  }
  memory.written = memory.own_written.get();
  return absl::OkStatus();
}

std::string Machine::IndexText(const Memory& memory, int64_t offset) const {
  std::vector<int64_t> index(memory.dims.size());
  for (size_t d = memory.dims.size(); d-- > 0;) {
    index[d] = offset % std::max<int64_t>(1, memory.dims[d]);
    offset /= std::max<int64_t>(1, memory.dims[d]);
  }
  return absl::StrCat("[", absl::StrJoin(index, ", "), "]");
}

int64_t Machine::Offset(const Access& access, const Memory& memory, int lane, absl::Status& status) const {
  int64_t offset = 0;
  const size_t rank = access.indices.size();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t index = frame_[static_cast<size_t>(access.indices[d] + lane * access.strides[d])].i;
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(memory.dims[d])) {
      if (options_.check_bounds) {
        const Buffer& buffer = code_.buffers[static_cast<size_t>(access.buffer)].buffer;
        status = At(access.place, absl::OutOfRangeError(absl::StrCat("index ", d, " of ", buffer.name(), " is ", index,
                                                                     ", outside of [0, ", memory.dims[d], ")")));
      }
      return -1;
    }
    offset = offset * memory.dims[d] + index;
  }
  return offset;
}

absl::Status Machine::Unwritten(const Access& access, int lane, int64_t offset) {
  if (code_.elements.contains(access.buffer)) {
    HONE_RETURN_IF_ERROR(Produce(access.buffer, offset));
    if (memory_[static_cast<size_t>(access.buffer)].written[offset] != 0) return absl::OkStatus();
  }
  const Buffer& buffer = code_.buffers[static_cast<size_t>(access.buffer)].buffer;
  const std::string index = IndexText(memory_[static_cast<size_t>(access.buffer)], offset);
  return At(access.place,
            absl::FailedPreconditionError(absl::StrCat(buffer.name(), index, " is read before it is written",
                                                       access.lanes > 1 ? absl::StrCat(" (lane ", lane, ")") : "")));
}

absl::Status Machine::Produce(int buffer, int64_t offset) {
  const ElementCode& element = code_.elements.at(buffer);
  const Memory& memory = memory_[static_cast<size_t>(buffer)];
  for (size_t d = memory.dims.size(); d-- > 0;) {
    if (element.index_slots[d] >= 0) frame_[static_cast<size_t>(element.index_slots[d])].i = offset % memory.dims[d];
    offset /= memory.dims[d];
  }
  return Run(element.entry);
}

absl::Status Machine::Load(const Access& access, Slot* dst) {
  const Memory& memory = memory_[static_cast<size_t>(access.buffer)];
  if (memory.data == nullptr) return At(access.place, absl::InternalError("a buffer is read outside of its scope"));
  for (int lane = 0; lane < access.lanes; ++lane) {
    if (access.mask >= 0 && frame_[static_cast<size_t>(access.mask + lane)].i == 0) {
      dst[lane].i = 0;  // also the bits of 0.0
      continue;
    }
    absl::Status status;
    const int64_t offset = Offset(access, memory, lane, status);
    if (offset < 0) {
      if (!status.ok()) return status;
      dst[lane].i = 0;
      continue;
    }
    if (memory.touches != nullptr) HONE_RETURN_IF_ERROR(NoteTouch(access, memory, offset, false));
    if (memory.written != nullptr && memory.written[offset] == 0) {
      if (undefined_ == 0) HONE_RETURN_IF_ERROR(Unwritten(access, lane, offset));
      if (undefined_ != 0) dst[static_cast<size_t>(lane) + undefined_].i = 1;
    }
    const char* at = memory.data + offset * memory.bytes;
    const auto read = [at]<class T>(T) {
      T value;
      std::memcpy(&value, at, sizeof(T));
      return value;
    };
    switch (memory.storage) {
      case Storage::kF64: dst[lane].f = read(double{}); break;
      case Storage::kF32: dst[lane].f = read(float{}); break;
      case Storage::kF16: dst[lane].f = BitsToFloat(read(uint16_t{}), DType::Float(16)); break;
      case Storage::kBF16: dst[lane].f = BitsToFloat(read(uint16_t{}), DType::BFloat16()); break;
      case Storage::kE4M3: dst[lane].f = BitsToFloat(read(uint8_t{}), DType::Float8E4M3()); break;
      case Storage::kE5M2: dst[lane].f = BitsToFloat(read(uint8_t{}), DType::Float8E5M2()); break;
      case Storage::kI4: dst[lane].i = WrapToType(read(int8_t{}), DType::Int(4)); break;
      case Storage::kU4: dst[lane].i = WrapToType(read(int8_t{}), DType::UInt(4)); break;
      case Storage::kI8: dst[lane].i = read(int8_t{}); break;
      case Storage::kU8: dst[lane].i = read(uint8_t{}); break;
      case Storage::kI16: dst[lane].i = read(int16_t{}); break;
      case Storage::kU16: dst[lane].i = read(uint16_t{}); break;
      case Storage::kI32: dst[lane].i = read(int32_t{}); break;
      case Storage::kU32: dst[lane].i = read(uint32_t{}); break;
      case Storage::kI64: dst[lane].i = read(int64_t{}); break;
      case Storage::kBool: dst[lane].i = read(uint8_t{}) != 0; break;
    }
  }
  return absl::OkStatus();
}

absl::Status Machine::Store(const Access& access, const Slot* value) {
  const Memory& memory = memory_[static_cast<size_t>(access.buffer)];
  if (memory.data == nullptr) return At(access.place, absl::InternalError("a buffer is written outside of its scope"));
  for (int lane = 0; lane < access.lanes; ++lane) {
    if (access.mask >= 0 && frame_[static_cast<size_t>(access.mask + lane)].i == 0) continue;
    absl::Status status;
    const int64_t offset = Offset(access, memory, lane, status);
    if (offset < 0) {
      if (!status.ok()) return status;
      continue;
    }
    if (memory.touches != nullptr) HONE_RETURN_IF_ERROR(NoteTouch(access, memory, offset, true));
    if (memory.written != nullptr) memory.written[offset] = 1;
    if (undefined_ != 0 && value[static_cast<size_t>(lane) + undefined_].i != 0)
      HONE_RETURN_IF_ERROR(StoreUndefined(access, memory, offset));
    WriteElement(memory, offset, value[lane]);
  }
  return absl::OkStatus();
}

void Machine::WriteElement(const Memory& memory, int64_t offset, Slot v) {
  char* at = memory.data + offset * memory.bytes;
  const auto write = [at](auto v) { std::memcpy(at, &v, sizeof(v)); };
  switch (memory.storage) {
    case Storage::kF64: write(v.f); break;
    case Storage::kF32: write(static_cast<float>(v.f)); break;
    case Storage::kF16: write(FloatToBits(v.f, DType::Float(16))); break;
    case Storage::kBF16: write(FloatToBits(v.f, DType::BFloat16())); break;
    case Storage::kE4M3: write(static_cast<uint8_t>(FloatToBits(v.f, DType::Float8E4M3()))); break;
    case Storage::kE5M2: write(static_cast<uint8_t>(FloatToBits(v.f, DType::Float8E5M2()))); break;
    case Storage::kI4:
    case Storage::kU4:
    case Storage::kI8:
    case Storage::kU8:
    case Storage::kBool: write(static_cast<uint8_t>(v.i)); break;
    case Storage::kI16:
    case Storage::kU16: write(static_cast<uint16_t>(v.i)); break;
    case Storage::kI32:
    case Storage::kU32: write(static_cast<uint32_t>(v.i)); break;
    case Storage::kI64: write(v.i); break;
  }
}

absl::Status Machine::Finish(std::span<NdArray> args) {
  for (size_t b = 0; b < code_.buffers.size(); ++b) {
    const int param = code_.buffers[b].param;
    if (param < 0) continue;
    const Memory& memory = memory_[b];
    for (int64_t i = 0; memory.written != nullptr && i < memory.elements; ++i) {
      if (memory.written[i] != 0) continue;
      return absl::FailedPreconditionError(absl::StrCat("interpreting ", f_.name, ": output ",
                                                        f_.params[static_cast<size_t>(param)].name(),
                                                        IndexText(memory, i), " is never written"));
    }
    NdArray& arg = args[static_cast<size_t>(param)];
    if (memory.own == nullptr || memory.data != memory.own.get()) continue;
    for (int64_t i = 0; i < memory.elements; ++i) arg.Set(i, reinterpret_cast<const double*>(memory.data)[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Machine::Element(int param, std::span<const int64_t> index) {
  for (size_t b = 0; b < code_.buffers.size(); ++b) {
    if (code_.buffers[b].param != param) continue;
    Memory& memory = memory_[b];
    if (index.size() != memory.dims.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("an index of ", index.size(), " numbers, expected ", memory.dims.size()));
    }
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      if (index[d] < 0 || index[d] >= memory.dims[d]) {
        return absl::OutOfRangeError(
            absl::StrCat("index ", d, " is ", index[d], ", outside of [0, ", memory.dims[d], ")"));
      }
      offset = offset * memory.dims[d] + index[d];
    }
    if (memory.written[offset] == 0) HONE_RETURN_IF_ERROR(Produce(static_cast<int>(b), offset));
    const DType type = f_.params[static_cast<size_t>(param)].type();
    NdArray one(options_.double_accumulation && type.is_float() ? DType::Float(64) : type, {1});
    std::memcpy(one.data.data(), memory.data + offset * memory.bytes, static_cast<size_t>(memory.bytes));
    return one.Get(0);
  }
  return absl::InternalError("no such output");
}

}  // namespace hone::interp
