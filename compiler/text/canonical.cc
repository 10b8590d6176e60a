#include "compiler/text/canonical.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/visit.h"
#include "compiler/support/sha256.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

// Gives every definition its new name on the way down; uses follow by the maps.
class Renamer {
 public:
  Expr Rename(const Expr& e) {
    return Substitute(e, [this](const Var& var) -> std::optional<Expr> {
      const auto found = vars_.find(var);
      return found == vars_.end() ? std::nullopt : std::optional<Expr>(found->second);
    });
  }

  Stmt Rename(const Stmt& stmt) {
    if (const For* loop = stmt.As<For>()) {
      For renamed = *loop;
      renamed.min = Rename(loop->min);
      renamed.extent = Rename(loop->extent);
      renamed.var = Define(loop->var, "i");
      renamed.body = Rename(loop->body);
      return Stmt::Make(std::move(renamed));
    }
    if (const Let* let = stmt.As<Let>()) {
      Let renamed = *let;
      renamed.value = Rename(let->value);
      renamed.var = Define(let->var, "x");
      renamed.body = Rename(let->body);
      return Stmt::Make(std::move(renamed));
    }
    if (const BlockRealize* realize = stmt.As<BlockRealize>()) {
      // Values are outside the block's variables, all the rest is inside.
      for (const IterVar& iter : realize->block.iters) Define(iter.var, "v");
      for (const Buffer& buffer : realize->block.allocs) Define(buffer, "t");
      for (const MatchBuffer& match : realize->block.matches) Define(match.buffer, "m");
      BlockRealize renamed = *realize;
      for (IterVar& iter : renamed.block.iters) iter.var = vars_.at(iter.var);
      Stmt shell = Stmt::Make(std::move(renamed));
      return MapChildren(
          shell, [this](const Stmt& child) { return Rename(child); }, [this](const Expr& e) { return Rename(e); });
    }
    if (const Alloc* alloc = stmt.As<Alloc>()) Define(alloc->buffer, "t");
    return MapChildren(
        stmt, [this](const Stmt& child) { return Rename(child); }, [this](const Expr& e) { return Rename(e); });
  }

  Buffer Define(const Buffer& buffer, const char* prefix) {
    std::vector<Expr> shape;
    for (const Expr& extent : buffer.shape()) shape.push_back(Rename(extent));
    const Buffer renamed(absl::StrCat(prefix, counts_[prefix]++), buffer.type(), std::move(shape), buffer.scope());
    buffers_.emplace(buffer, renamed);
    return renamed;
  }

  Var Define(const Var& var, const char* prefix) {
    const std::string name = absl::StrCat(prefix, counts_[prefix]++);
    const Var renamed = var.range().has_value() ? Var(name, var.type(), *var.range()) : Var(name, var.type());
    vars_.insert_or_assign(var, renamed);
    return renamed;
  }

  std::optional<Buffer> Find(const Buffer& buffer) const {
    const auto found = buffers_.find(buffer);
    return found == buffers_.end() ? std::nullopt : std::optional<Buffer>(found->second);
  }

 private:
  std::map<Var, Var> vars_;
  std::map<Buffer, Buffer> buffers_;
  std::map<std::string, int> counts_;
};

}  // namespace

CanonicalWorkload Canonicalize(const PrimFunc& func) {
  Renamer renamer;
  CanonicalWorkload result;
  result.func.name = "main";
  result.func.attrs = func.attrs;
  for (const Var& dim : func.dims) result.func.dims.push_back(renamer.Define(dim, "n"));
  for (const Buffer& param : func.params) result.func.params.push_back(renamer.Define(param, "p"));
  result.func.body = ReplaceBuffers(renamer.Rename(func.body), [&](const Buffer& b) { return renamer.Find(b); });
  result.text = ToText(result.func);
  result.hash = Sha256(result.text);
  return result;
}

std::string KernelSymbol(const std::string& workload_hash) {
  return absl::StrCat("hone_", ToHex(workload_hash).substr(0, 24));
}

}  // namespace hone
