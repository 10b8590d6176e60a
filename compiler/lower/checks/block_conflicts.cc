#include "compiler/lower/checks/block_conflicts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

constexpr int64_t kMostIterations = 1 << 12;  // of one store
constexpr int64_t kBlocksOfAnAxis = 2;

bool IsOverBlocks(const For& loop) { return loop.thread.starts_with("blockIdx"); }

enum class Part { kFirst, kMiddle };  // of each axis

class Writers {
 public:
  explicit Writers(Part part) : part_(part) {}

  void Visit(const Stmt& stmt) {
    if (conflict_.has_value()) return;
    const For* loop = stmt.As<For>();
    const IfThen* branch = stmt.As<IfThen>();
    if (const Store* store = stmt.As<Store>(); store != nullptr && store->buffer.scope() == Scope::kGlobal) {
      OnStore(*store);
    }
    if (const BlockRealize* realize = stmt.As<BlockRealize>()) return OnBlock(*realize);
    if (const Let* let = stmt.As<Let>()) {
      definitions_.emplace_back(let->var, let->value);
      Visit(let->body);
      definitions_.pop_back();
      return;
    }
    if (branch != nullptr) {
      conditions_.push_back(branch->condition);
      Visit(branch->yes);
      conditions_.back() = MakeNot(branch->condition);
      if (branch->no) Visit(branch->no);
      conditions_.pop_back();
      return;
    }
    if (loop != nullptr) loops_.push_back(loop);
    ForEachChild(
        stmt, [&](const Stmt& child) { Visit(child); }, [](const Expr&) {});
    if (loop != nullptr) loops_.pop_back();
  }
  const std::optional<std::string>& conflict() const { return conflict_; }

 private:
  using Block = std::map<std::string, int64_t>;  // axes and where on them

  void OnBlock(const BlockRealize& realize) {
    if (!realize.block.matches.empty()) return;  // buffers by other names
    const size_t outside = definitions_.size();
    for (size_t i = 0; i < realize.values.size(); ++i)
      definitions_.emplace_back(realize.block.iters[i].var, realize.values[i]);
    conditions_.push_back(realize.predicate);
    if (realize.block.init) Visit(realize.block.init);
    Visit(realize.block.body);
    conditions_.pop_back();
    definitions_.resize(outside);
  }

  // The loops that choose which element is written and whether, and those over blocks.
  std::vector<const For*> LoopsThatMatter(const Store& store) const {
    std::vector<Expr> uses = store.indices;
    uses.insert(uses.end(), conditions_.begin(), conditions_.end());
    const auto used = [&uses](const Var& var) {
      return std::ranges::any_of(uses, [&](const Expr& e) { return UsesVar(e, var); });
    };
    for (size_t i = definitions_.size(); i-- > 0;) {
      if (used(definitions_[i].first)) uses.push_back(definitions_[i].second);
    }
    std::vector<const For*> matter;
    for (size_t i = loops_.size(); i-- > 0;) {
      const For& loop = *loops_[i];
      if (!used(loop.var) && !IsOverBlocks(loop)) continue;
      matter.push_back(&loop);
      uses.push_back(loop.min);
      uses.push_back(loop.extent);
    }
    std::ranges::reverse(matter);
    return matter;
  }

  void OnStore(const Store& store) {
    if (store.mask) return;
    left_ = kMostIterations;
    values_.clear();
    for (const Expr& index : store.indices) KnowVariablesAround(index);
    for (const Expr& condition : conditions_) KnowVariablesAround(condition);
    for (const auto& [var, value] : definitions_) KnowVariablesAround(value);
    std::vector<std::pair<std::vector<int64_t>, Block>> written;
    if (!Run(store, LoopsThatMatter(store), 0, written)) return;
    std::map<std::vector<int64_t>, Block>& elements = elements_[store.buffer];
    for (const auto& [element, block] : written) {
      const auto [first, is_new] = elements.emplace(element, block);
      if (!is_new) Compare(store.buffer, element, first->second, block);
      if (conflict_.has_value()) return;
    }
  }

  // false when something cannot be computed, or takes too long.
  bool Run(const Store& store, const std::vector<const For*>& loops, size_t depth,
           std::vector<std::pair<std::vector<int64_t>, Block>>& written) {
    if (depth < loops.size()) {
      const For& loop = *loops[depth];
      const std::optional<int64_t> min = EvaluateSize(loop.min, values_), extent = EvaluateSize(loop.extent, values_);
      if (!min.has_value() || !extent.has_value()) return false;
      const int64_t count = IsOverBlocks(loop) ? std::min(*extent, kBlocksOfAnAxis) : *extent;
      const int64_t first = part_ == Part::kFirst ? 0 : (*extent - count) / 2;
      for (int64_t i = first; i < first + count; ++i) {
        values_[loop.var] = *min + i;
        if (!Run(store, loops, depth + 1, written)) return false;
      }
      values_.erase(loop.var);
      return true;
    }
    if (--left_ < 0) return false;
    for (const auto& [var, value] : definitions_) {  // those that matter; of the others loops are left out
      values_.erase(var);
      if (const std::optional<int64_t> at = EvaluateSize(value, values_)) values_[var] = *at;
    }
    for (const Expr& condition : conditions_) {
      const std::optional<int64_t> holds = EvaluateSize(condition, values_);
      if (!holds.has_value()) return false;
      if (*holds == 0) return true;
    }
    std::vector<int64_t> element;
    for (const Expr& index : store.indices) {
      const std::optional<int64_t> at = EvaluateSize(index, values_);
      if (!at.has_value()) return false;
      element.push_back(*at);
    }
    Block block;
    for (const For* loop : loops) {
      if (IsOverBlocks(*loop)) block[loop->thread] = values_.at(loop->var);
    }
    written.emplace_back(std::move(element), std::move(block));
    return true;
  }

  // Variables of loops around the launch have their first value there.
  void KnowVariablesAround(const Expr& e) {
    for (const Var& var : FreeVars(e)) {
      const auto is_var = [&var](const auto& other) { return other == var; };
      const bool inside =
          std::ranges::any_of(loops_, is_var, [](const For* loop) { return loop->var; }) ||
          std::ranges::any_of(definitions_, is_var, [](const auto& definition) { return definition.first; });
      if (!inside && !var.range().has_value()) values_.emplace(var, 0);
    }
  }

  // What is under no loop over an axis the first block there does.
  static int64_t On(const Block& block, const std::string& axis) {
    const auto found = block.find(axis);
    return found == block.end() ? 0 : found->second;
  }
  void Compare(const Buffer& buffer, const std::vector<int64_t>& element, const Block& a, const Block& b) {
    for (const Block* block : {&a, &b}) {
      for (const auto& [axis, at] : *block) {
        if (On(a, axis) == On(b, axis)) continue;
        conflict_ = absl::StrCat(buffer.name(), "[", absl::StrJoin(element, ", "), "] is written by several blocks (",
                                 axis, " = ", On(a, axis), " and ", On(b, axis), ")");
        return;
      }
    }
  }

  const Part part_;
  std::vector<const For*> loops_;
  std::vector<Expr> conditions_;
  std::vector<std::pair<Var, Expr>> definitions_;  // variables of blocks and lets around
  SizeValues values_;
  int64_t left_ = 0;
  std::map<Buffer, std::map<std::vector<int64_t>, Block>> elements_;
  std::optional<std::string> conflict_;
};

}  // namespace

std::optional<std::string> BlockConflict(const Stmt& nest) {
  for (const Part part : {Part::kFirst, Part::kMiddle}) {
    Writers writers(part);
    writers.Visit(nest);
    if (writers.conflict().has_value()) return writers.conflict();
  }
  return std::nullopt;
}

}  // namespace hone
