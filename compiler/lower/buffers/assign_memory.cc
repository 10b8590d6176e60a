#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/support/status_macros.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kMostRegisterBytes = 16 << 10;  // of one buffer; LLVM spills what the machine does not have
constexpr int64_t kMostSymbolicElements = int64_t{1} << 31;
constexpr int64_t kMostStackBytes = 4 << 10;  // of a register buffer that is indexed by a variable
// So much is not worth sharing: it stays in the first cache, and what a program forgot to write is then what the memory
// held before the call, not a value of an earlier stage that may be right by chance.
constexpr int64_t kMostUnshared = 16 << 10;

bool IsConstantIndex(const Expr& index) {
  if (const Ramp* ramp = index.As<Ramp>())
    return ConstantValue(ramp->base).has_value() && ConstantValue(ramp->stride).has_value();
  if (const Broadcast* broadcast = index.As<Broadcast>()) return ConstantValue(broadcast->value).has_value();
  return ConstantValue(index).has_value();
}

// A buffer in scratch memory and the stretch of the program, counted in accesses and loops, in which its bytes are
// used.
struct Tenant {
  Buffer buffer;
  int64_t bytes = 0;
  bool thread = false;
  int begin = -1, end = -1;
};

// Facts about every allocation: where it stands, how it is indexed, when it is in use.
class Survey {
 public:
  struct Facts {
    bool in_parallel = false, holds_parallel = false, constant_indices = true;
    size_t depth = 0;  // loops around the Alloc
    int begin = -1, end = -1;
  };
  std::map<Buffer, Facts> facts;

  void Visit(const Stmt& stmt) {
    if (const Alloc* alloc = stmt.As<Alloc>()) {
      Facts& f = facts[alloc->buffer];
      f.in_parallel = parallel_ > 0;
      f.depth = loops_.size();
      open_.push_back(alloc->buffer);
      Visit(alloc->body);
      open_.pop_back();
      return;
    }
    if (const For* loop = stmt.As<For>()) {
      Exprs(loop->min);
      Exprs(loop->extent);
      const bool parallel = loop->kind == ForKind::kParallel;
      if (parallel) {
        for (const Buffer& b : open_) facts[b].holds_parallel = true;
        ++parallel_;
      }
      Repeated([&] { Visit(loop->body); });
      if (parallel) --parallel_;
      return;
    }
    if (const While* loop = stmt.As<While>()) {
      Repeated([&] {
        Exprs(loop->condition);
        Visit(loop->body);
      });
      return;
    }
    if (const Store* store = stmt.As<Store>()) Access(store->buffer, store->indices);
    if (const TileOp* op = stmt.As<TileOp>()) {
      const TileIntrinsic& intrinsic = *FindTileIntrinsic(op->intrinsic);
      for (size_t i = 0; i < op->operands.size(); ++i) {
        const BufferRegion& operand = op->operands[i];
        Access(operand.buffer, {operand.region[0].min});
        // What goes to and from tile registers goes through memory.
        const auto found = facts.find(operand.buffer);
        if (intrinsic.in_tiles() && i != SumOperand(intrinsic) && found != facts.end())
          found->second.constant_indices = false;
      }
    }
    ForEachChild(
        stmt, [&](const Stmt& s) { Visit(s); }, [&](const Expr& e) { Exprs(e); });
  }

 private:
  struct Loop {
    int begin;
    std::set<Buffer> used;  // allocated outside of it
  };

  // What lives around the loop and is used in it is in use as long as the loop runs.
  template <class Inside>
  void Repeated(Inside inside) {
    loops_.push_back({++clock_, {}});
    inside();
    ++clock_;
    const std::set<Buffer> used = loops_.back().used;
    const int begin = loops_.back().begin;
    loops_.pop_back();
    for (const Buffer& b : used) Extend(b, begin, clock_);
  }

  void Exprs(const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      if (const Load* load = e.As<Load>()) Access(load->buffer, load->indices);
      return true;
    });
  }
  void Access(const Buffer& buffer, const std::vector<Expr>& indices) {
    const auto found = facts.find(buffer);
    if (found == facts.end()) return;  // a param
    for (const Expr& index : indices) found->second.constant_indices &= IsConstantIndex(index);
    ++clock_;
    Extend(buffer, clock_, clock_);
  }
  void Extend(const Buffer& buffer, int begin, int end) {
    Facts& f = facts.at(buffer);
    f.begin = f.begin < 0 ? begin : std::min(f.begin, begin);
    f.end = std::max(f.end, end);
    if (loops_.size() > f.depth) loops_.back().used.insert(buffer);
  }

  int clock_ = 0, parallel_ = 0;
  std::vector<Loop> loops_;
  std::vector<Buffer> open_;
};

// Largest first, each at the lowest offset that is free while it is in use; all side by side when they are small.
int64_t Pack(std::vector<Tenant>& tenants, std::map<Buffer, ScratchPlace>& places) {
  std::ranges::stable_sort(tenants, [](const Tenant& a, const Tenant& b) { return a.bytes > b.bytes; });
  int64_t total = 0, sum = 0;
  for (const Tenant& t : tenants) sum += (t.bytes + kAlign - 1) / kAlign * kAlign;
  struct Placed {
    const Tenant* tenant;
    int64_t offset;
  };
  std::vector<Placed> placed;
  for (const Tenant& t : tenants) {
    std::vector<Placed> busy;
    for (const Placed& p : placed) {
      if (sum <= kMostUnshared || (p.tenant->begin <= t.end && t.begin <= p.tenant->end)) busy.push_back(p);
    }
    std::ranges::sort(busy, {}, &Placed::offset);
    int64_t offset = 0;
    for (const Placed& p : busy) {
      if (offset + t.bytes <= p.offset) break;
      offset = std::max(offset, (p.offset + p.tenant->bytes + kAlign - 1) / kAlign * kAlign);
    }
    placed.push_back({&t, offset});
    places[t.buffer] = {t.thread, offset};
    total = std::max(total, (offset + t.bytes + kAlign - 1) / kAlign * kAlign);
  }
  return total;
}

// What the buffer takes at most: memory of a symbolic size is planned for the greatest.
absl::StatusOr<int64_t> BytesOf(const Buffer& buffer) {
  const std::optional<int64_t> elements = MostElements(buffer);
  if (buffer.NumElements().has_value()) return *elements * buffer.type().bytes();
  if (!elements.has_value() || *elements > kMostSymbolicElements) {
    return absl::FailedPreconditionError(
        absl::StrCat("buffer ", buffer.name(), " has a symbolic size and may have more than ", kMostSymbolicElements,
                     " elements, for which a kernel's scratch memory is not planned; give its sizes smaller ranges"));
  }
  // Vectors of registers are read whole, and such a buffer was meant for registers.
  const int64_t behind = buffer.scope() == Scope::kRegister ? kBehindRegisters : 0;
  return (*elements + behind) * buffer.type().bytes();
}

}  // namespace

absl::StatusOr<LoweredFunc> AssignMemory(PrimFunc func) {
  Survey survey;
  survey.Visit(func.body);
  std::vector<Tenant> shared, thread;
  std::map<Buffer, Buffer> renamed;
  for (const auto& [buffer, facts] : survey.facts) {
    HONE_ASSIGN_OR_RETURN(const int64_t bytes, BytesOf(buffer));
    const bool registers = buffer.NumElements().has_value() && !facts.holds_parallel &&
                           (facts.constant_indices ? bytes <= kMostRegisterBytes
                                                   : buffer.scope() == Scope::kRegister && bytes <= kMostStackBytes);
    const Scope scope = registers ? Scope::kRegister : facts.in_parallel ? Scope::kThread : Scope::kGlobal;
    Buffer assigned = buffer;
    if (scope != buffer.scope())
      assigned = renamed[buffer] = Buffer(buffer.name(), buffer.type(), buffer.shape(), scope);
    if (registers) continue;
    (facts.in_parallel ? thread : shared)
        .push_back({assigned, std::max<int64_t>(bytes, 1), facts.in_parallel, facts.begin, facts.end});
  }
  LoweredFunc lowered;
  lowered.scratch_bytes = Pack(shared, lowered.places);
  lowered.thread_scratch_bytes = Pack(thread, lowered.places);
  func.body = ReplaceBuffers(func.body, [&](const Buffer& b) -> std::optional<Buffer> {
    const auto found = renamed.find(b);
    return found == renamed.end() ? std::nullopt : std::optional(found->second);
  });
  lowered.func = std::move(func);
  return lowered;
}

}  // namespace hone
