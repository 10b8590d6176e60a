#include <charconv>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

struct Alignment {
  int64_t axis = 0, factor = 1, offset = 0;
};

// "NAME axis factor offset", as NoteAlignment wrote it.
std::optional<std::pair<std::string, Alignment>> ReadNote(const std::string& note) {
  const std::vector<std::string> parts = absl::StrSplit(note, ' ');
  if (parts.size() != 4) return std::nullopt;
  int64_t numbers[3];
  for (int i = 0; i < 3; ++i) {
    const std::string& text = parts[static_cast<size_t>(i) + 1];
    const auto read = std::from_chars(text.data(), text.data() + text.size(), numbers[i]);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  }
  return std::pair(parts[0], Alignment{numbers[0], numbers[1], numbers[2]});
}

// The least size of dimension axis + 1 that gives the stride; the size it has when there is none.
int64_t PaddedExtent(const std::vector<int64_t>& shape, const Alignment& to) {
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(to.axis) + 2; d < shape.size(); ++d) inner *= shape[d];
  const int64_t extent = shape[static_cast<size_t>(to.axis) + 1];
  for (int64_t padded = extent; padded < extent + to.factor; ++padded) {
    if (padded * inner % to.factor == to.offset % to.factor) return padded;
  }
  return extent;
}

// Whether rows that a warp loads together, ldmatrix, begin where they can with this stride.
bool KeepsRows(const Buffer& buffer, const Alignment& to) {
  const int64_t elements = kMatrixRowBytes / buffer.type().bytes();
  return to.factor % elements == 0 && to.offset % elements == 0;
}

// What annotations of blocks ask for, of the buffers that these write.
struct Asked {
  std::map<Buffer, std::vector<Alignment>> alignments;  // of every buffer that is concerned, swizzled ones too
  std::set<Buffer> swizzled;
};

const std::vector<int64_t>* NumbersOf(const Block& block, const char* annotation) {
  const auto found = block.annotations.find(annotation);
  return found == block.annotations.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
}

void ReadAnnotations(const Block& block, Asked& asked) {
  const auto written = [&](int64_t index) -> const Buffer* {
    const bool is_there = index >= 0 && index < static_cast<int64_t>(block.writes.size());
    return is_there ? &block.writes[static_cast<size_t>(index)].buffer : nullptr;
  };
  if (const auto* swizzled = NumbersOf(block, kStorageSwizzle)) {
    for (const int64_t index : *swizzled) {
      const Buffer* buffer = written(index);
      if (buffer == nullptr) continue;
      asked.swizzled.insert(*buffer);
      asked.alignments[*buffer];
    }
  }
  const auto* numbers = NumbersOf(block, kStorageAlign);
  for (size_t i = 0; numbers != nullptr && i + 4 <= numbers->size(); i += 4) {
    const Buffer* buffer = written((*numbers)[i]);
    const Alignment to{(*numbers)[i + 1], (*numbers)[i + 2], (*numbers)[i + 3]};
    if (buffer == nullptr || to.axis < 0 || to.axis + 1 >= buffer->rank()) continue;
    if (to.factor >= 1 && to.factor <= (1 << 20)) asked.alignments[*buffer].push_back(to);
  }
}

// The operands of an instruction stay in one piece; only a warp's may have rows further apart.
void LeaveOperandsWhole(const Stmt& body, Asked& asked) {
  ForEachStmt(body, [&](const Stmt& stmt) {
    const TileOp* op = stmt.As<TileOp>();
    for (size_t i = 0; op != nullptr && i < op->operands.size(); ++i) {
      const auto found = asked.alignments.find(op->operands[i].buffer);
      if (found == asked.alignments.end()) continue;
      const bool by_warp = FindTileIntrinsic(op->intrinsic)->threads > 1;
      std::erase_if(found->second,
                    [&](const Alignment& to) { return !by_warp || !KeepsRows(op->operands[i].buffer, to); });
    }
    return true;
  });
}

// A name for each buffer that is concerned, which no other one has and a note can hold.
std::map<Buffer, std::string> NamesApart(const PrimFunc& func, const Asked& asked) {
  std::map<std::string, int> taken;
  for (const Buffer& param : func.params) ++taken[param.name()];
  ForEachStmt(func.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    for (size_t i = 0; realize != nullptr && i < realize->block.allocs.size(); ++i)
      ++taken[realize->block.allocs[i].name()];
    return true;
  });
  std::map<Buffer, std::string> names;
  for (const auto& [buffer, alignments] : asked.alignments) {
    std::string name = buffer.name();
    for (int k = 1; taken[name] > 1 || (k > 1 && taken[name] > 0) || name.find(' ') != std::string::npos; ++k)
      name = absl::StrCat("aligned_", k);
    if (name != buffer.name()) ++taken[name];
    names[buffer] = name;
  }
  return names;
}

}  // namespace

PrimFunc NoteAlignment(PrimFunc func) {
  Asked asked;
  ForEachStmt(func.body, [&](const Stmt& stmt) {
    if (const BlockRealize* realize = stmt.As<BlockRealize>()) ReadAnnotations(realize->block, asked);
    return true;
  });
  for (const Buffer& param : func.params) asked.alignments.erase(param);
  if (asked.alignments.empty()) return func;
  LeaveOperandsWhole(func.body, asked);
  const std::map<Buffer, std::string> names = NamesApart(func, asked);
  std::map<Buffer, Buffer> renamed;
  std::vector<std::string> notes, names_of_swizzled;
  for (const auto& [buffer, alignments] : asked.alignments) {
    const std::string& name = names.at(buffer);
    if (name != buffer.name()) renamed[buffer] = Buffer(name, buffer.type(), buffer.shape(), buffer.scope());
    if (asked.swizzled.contains(buffer)) names_of_swizzled.push_back(name);
    for (const Alignment& to : alignments)
      notes.push_back(absl::StrCat(name, " ", to.axis, " ", to.factor, " ", to.offset));
  }
  func.body = ReplaceBuffers(func.body, [&](const Buffer& buffer) -> std::optional<Buffer> {
    const auto found = renamed.find(buffer);
    return found == renamed.end() ? std::nullopt : std::optional<Buffer>(found->second);
  });
  if (!notes.empty()) func.attrs[kStorageAlign] = std::move(notes);
  if (!names_of_swizzled.empty()) func.attrs[kStorageSwizzle] = std::move(names_of_swizzled);
  return func;
}

PrimFunc AlignStorage(PrimFunc func) {
  const auto noted = func.attrs.find(kStorageAlign);
  if (noted == func.attrs.end()) return func;
  std::multimap<std::string, Alignment> wanted;
  if (const auto* notes = std::get_if<std::vector<std::string>>(&noted->second)) {
    for (const std::string& note : *notes) {
      if (const auto read = ReadNote(note)) wanted.insert(*read);
    }
  }
  func.attrs.erase(noted);
  std::map<Buffer, Buffer> padded;
  ForEachStmt(func.body, [&](const Stmt& stmt) {
    const Alloc* alloc = stmt.As<Alloc>();
    if (alloc == nullptr || alloc->buffer.scope() == Scope::kRegister) return true;
    const Buffer& buffer = alloc->buffer;
    std::vector<int64_t> shape;
    for (const Expr& extent : buffer.shape()) {
      const std::optional<int64_t> value = ConstantValue(extent);
      if (!value.has_value()) return true;
      shape.push_back(*value);
    }
    bool changed = false;
    const auto [begin, end] = wanted.equal_range(buffer.name());
    for (int64_t axis = buffer.rank() - 2; axis >= 0; --axis) {  // inner strides are part of the outer ones
      for (auto it = begin; it != end; ++it) {
        if (it->second.axis != axis) continue;
        int64_t& extent = shape[static_cast<size_t>(axis) + 1];
        const int64_t before = extent;
        extent = PaddedExtent(shape, it->second);
        changed |= extent != before;
      }
    }
    if (!changed) return true;
    std::vector<Expr> extents;
    for (const int64_t extent : shape) extents.push_back(Expr(extent));
    padded[buffer] = Buffer(buffer.name(), buffer.type(), extents, buffer.scope());
    return true;
  });
  if (padded.empty()) return func;
  func.body = ReplaceBuffers(func.body, [&](const Buffer& buffer) -> std::optional<Buffer> {
    const auto found = padded.find(buffer);
    return found == padded.end() ? std::nullopt : std::optional<Buffer>(found->second);
  });
  return func;
}

}  // namespace hone
