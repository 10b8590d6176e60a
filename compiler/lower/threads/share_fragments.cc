#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

// A load of a fragment by the threads of a warp, from shared memory to registers of each; nullptr for anything else.
const TileOp* FragmentLoad(const Stmt& stmt) {
  const TileOp* op = stmt.As<TileOp>();
  if (op == nullptr || op->operands.size() != 2) return nullptr;
  const bool loads = FindTileIntrinsic(op->intrinsic)->threads > 1 &&
                     op->operands[1].buffer.scope() == Scope::kShared &&
                     ContiguousElements(op->operands[0]) == op->operands[0].buffer.NumElements();
  return loads ? op : nullptr;
}

// The fragments whose registers all come from loads in front of their uses, in one list of statements each time.
std::set<Buffer> FragmentsToShare(const Stmt& body) {
  std::set<Buffer> loaded, other;
  std::map<Buffer, int64_t> in_lists, in_all;
  ForEachStmt(body, [&](const Stmt& s) {
    if (const TileOp* op = s.As<TileOp>()) {
      for (const BufferRegion& operand : op->operands) ++in_all[operand.buffer];
    }
    if (const Store* store = s.As<Store>()) other.insert(store->buffer);
    const Seq* seq = s.As<Seq>();
    if (seq == nullptr) return true;
    std::set<Buffer> here;
    for (const Stmt& part : seq->stmts) {
      const TileOp* op = part.As<TileOp>();
      for (size_t i = 0; op != nullptr && i < op->operands.size(); ++i) {
        const Buffer& buffer = op->operands[i].buffer;
        const bool is_load = i == 0 && FragmentLoad(part) != nullptr;
        if (is_load) here.insert(buffer), loaded.insert(buffer);
        if (!is_load && (!here.contains(buffer) || i == 0)) other.insert(buffer);
        ++in_lists[buffer];
      }
    }
    return true;
  });
  ForEachExpr(body, [&](const Expr& e) {
    if (const Load* load = e.As<Load>()) other.insert(load->buffer);
    return true;
  });
  std::erase_if(loaded,
                [&](const Buffer& buffer) { return other.contains(buffer) || in_lists[buffer] != in_all[buffer]; });
  return loaded;
}

// Whether what fragments hold is still what lies in memory behind it: operations on registers and nothing else.
bool LeavesMemory(const Stmt& stmt) {
  if (const Store* store = stmt.As<Store>()) return store->buffer.scope() == Scope::kRegister;
  const TileOp* op = stmt.As<TileOp>();
  return op != nullptr && op->operands[0].buffer.scope() == Scope::kRegister;
}

class Sharing {
 public:
  explicit Sharing(std::set<Buffer> fragments) : fragments_(std::move(fragments)) {}

  Stmt Share(const Seq& seq) {
    std::map<std::string, Buffer> held;  // by the text of the load
    std::map<Buffer, Buffer> now;        // where what a fragment was loaded with last is
    std::vector<Buffer> made;
    std::vector<Stmt> stmts;
    for (const Stmt& part : seq.stmts) {
      const TileOp* load = FragmentLoad(part);
      if (load == nullptr || !fragments_.contains(load->operands[0].buffer)) {
        if (!LeavesMemory(part)) held.clear();
        stmts.push_back(InPlace(part, now));
        continue;
      }
      const Buffer& fragment = load->operands[0].buffer;
      const std::string key = absl::StrCat(load->intrinsic, " ", load->operands[1].buffer.id(), " ", RegionText(*load));
      const auto found = held.find(key);
      if (found != held.end()) {
        now[fragment] = found->second;
        continue;
      }
      made.emplace_back(fragment.name(), fragment.type(), fragment.shape(), fragment.scope());
      now[fragment] = held[key] = made.back();
      stmts.push_back(InPlace(part, now));
    }
    Stmt shared = MakeSeq(std::move(stmts));
    for (size_t i = made.size(); i-- > 0;) shared = Stmt::Make(Alloc{made[i], std::move(shared)});
    return shared;
  }

 private:
  static std::string RegionText(const TileOp& load) {
    std::string text;
    for (const Range& range : load.operands[1].region)
      ForEachExpr(range.min, [&](const Expr& e) {  // names alone do not tell variables apart
        if (const VarRef* ref = e.As<VarRef>()) absl::StrAppend(&text, ref->var.id(), " ");
        return true;
      });
    for (const Range& range : load.operands[1].region) absl::StrAppend(&text, ", ", ToText(range.min));
    return text;
  }
  static Stmt InPlace(const Stmt& stmt, const std::map<Buffer, Buffer>& now) {
    return ReplaceBuffers(stmt, [&](const Buffer& buffer) -> std::optional<Buffer> {
      const auto found = now.find(buffer);
      return found == now.end() ? std::nullopt : std::optional(found->second);
    });
  }

  const std::set<Buffer> fragments_;
};

}  // namespace

Stmt ShareFragments(const Stmt& body) {
  const std::set<Buffer> fragments = FragmentsToShare(body);
  if (fragments.empty()) return body;
  // Without their allocations, what was written out is one list.
  const Stmt lists = RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
    if (const Alloc* alloc = s.As<Alloc>(); alloc != nullptr && fragments.contains(alloc->buffer)) return alloc->body;
    const Seq* seq = s.As<Seq>();
    return seq == nullptr ? std::nullopt : std::optional(MakeSeq(seq->stmts));
  });
  Sharing sharing(fragments);
  return RewriteBottomUp(lists, [&](const Stmt& s) -> std::optional<Stmt> {
    const Seq* seq = s.As<Seq>();
    if (seq == nullptr) return std::nullopt;
    for (const Stmt& part : seq->stmts) {
      if (FragmentLoad(part) != nullptr) return sharing.Share(*seq);
    }
    return std::nullopt;
  });
}

}  // namespace hone
