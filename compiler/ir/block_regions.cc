#include "compiler/ir/block_regions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "compiler/ir/effects.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/tile_intrinsic.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

// An index as constant + sum of terms: `terms` maps what is no constant to its coefficient.
struct Linear {
  std::vector<std::pair<Expr, int64_t>> terms;
  int64_t constant = 0;
};

void Add(Linear& into, const Linear& from, int64_t times) {
  into.constant += from.constant * times;
  for (const auto& [atom, coefficient] : from.terms) {
    const auto same = [&atom = atom](const auto& t) { return StructuralEqual(t.first, atom); };
    const auto found = std::find_if(into.terms.begin(), into.terms.end(), same);
    if (found == into.terms.end()) {
      into.terms.emplace_back(atom, coefficient * times);
    } else {
      found->second += coefficient * times;
    }
  }
}

Linear ToLinear(const Expr& e) {
  if (const std::optional<int64_t> value = ConstantValue(e)) return {{}, *value};
  if (const Binary* node = e.As<Binary>()) {
    if (node->op == BinaryOp::kAdd || node->op == BinaryOp::kSub) {
      Linear sum = ToLinear(node->a);
      Add(sum, ToLinear(node->b), node->op == BinaryOp::kAdd ? 1 : -1);
      return sum;
    }
    if (node->op == BinaryOp::kMul) {
      const std::optional<int64_t> x = ConstantValue(node->a), y = ConstantValue(node->b);
      if (x.has_value() || y.has_value()) {
        Linear product;
        Add(product, ToLinear(x.has_value() ? node->b : node->a), x.has_value() ? *x : *y);
        return product;
      }
    }
  }
  return {{{e, 1}}, 0};
}

Expr ToExpr(const Linear& linear, DType type) {
  Expr sum;
  for (const auto& [atom, coefficient] : linear.terms) {
    if (coefficient == 0) continue;
    const Expr term = atom * IntConst(coefficient, atom.type());
    sum = sum ? sum + term : term;
  }
  if (!sum) return IntConst(linear.constant, type);
  return linear.constant == 0 ? sum : sum + IntConst(linear.constant, sum.type());
}

// One dimension of a region while it grows: the union of what was seen, or everything.
struct Dimension {
  bool whole = false;
  Linear min;
  int64_t extent = 1;
  Expr written;  // the one index seen, as it was written
  Expr length;   // a nested region's extent that is no constant
};

class Collector {
 public:
  void AddAccess(const Buffer& buffer, const std::vector<Range>& ranges, bool write) {
    if (local_.contains(buffer.id())) return;
    auto& list = write ? writes_ : reads_;
    auto& index = write ? write_index_ : read_index_;
    std::vector<Dimension> dims;
    for (const Range& range : ranges) dims.push_back(ToDimension(range));
    const auto [found, added] = index.emplace(buffer.id(), list.size());
    if (added) {
      list.emplace_back(buffer, std::move(dims));
    } else {
      std::vector<Dimension>& old = list[found->second].second;
      for (size_t i = 0; i < old.size() && i < dims.size(); ++i) Join(old[i], dims[i]);
    }
  }

  void Loads(const Expr& root) {
    if (!root) return;
    ForEachExpr(root, [&](const Expr& e) {
      if (const Load* load = e.As<Load>()) AddAccess(load->buffer, Points(load->indices), false);
      if (const LetExpr* let = e.As<LetExpr>()) lets_.insert_or_assign(let->var.id(), let->value);
      return true;
    });
  }

  void Walk(const Stmt& stmt) {
    if (!stmt) return;
    struct Visitor {
      Collector& c;
      void operator()(const For& n) {
        c.Loads(n.min);
        c.Loads(n.extent);
        c.ranges_.insert_or_assign(n.var.id(), Range{n.min, n.extent});
        c.Walk(n.body);
      }
      void operator()(const BlockRealize& n) {
        for (const Expr& value : n.values) c.Loads(value);
        c.Loads(n.predicate);
        for (const Buffer& b : n.block.allocs) c.local_.insert(b.id());
        c.Nested(n, n.block.reads, false);
        c.Nested(n, n.block.writes, true);
      }
      void operator()(const Store& n) {
        for (const Expr& index : n.indices) c.Loads(index);
        c.Loads(n.value);
        c.Loads(n.mask);
        c.AddAccess(n.buffer, Points(n.indices), true);
      }
      void operator()(const Seq& n) {
        for (const Stmt& s : n.stmts) c.Walk(s);
      }
      void operator()(const IfThen& n) {
        c.Loads(n.condition);
        c.Walk(n.yes);
        c.Walk(n.no);
      }
      void operator()(const Let& n) {
        c.Loads(n.value);
        c.lets_.insert_or_assign(n.var.id(), n.value);
        c.Walk(n.body);
      }
      void operator()(const Alloc& n) {
        c.local_.insert(n.buffer.id());
        c.Walk(n.body);
      }
      void operator()(const TileOp& n) {
        const TileIntrinsic* intrinsic = FindTileIntrinsic(n.intrinsic);
        const size_t outputs =  // of an unknown one any operand may be
            intrinsic == nullptr ? n.operands.size() : static_cast<size_t>(intrinsic->meaning.num_outputs());
        for (size_t i = 0; i < n.operands.size(); ++i) {
          for (const Range& range : n.operands[i].region) {
            c.Loads(range.min);
            c.Loads(range.extent);
          }
          c.AddAccess(n.operands[i].buffer, n.operands[i].region, false);
          if (i < outputs) c.AddAccess(n.operands[i].buffer, n.operands[i].region, true);
        }
      }
      void operator()(const Evaluate& n) {
        c.Loads(n.value);
        if (const std::optional<Store> update = AtomicUpdate(n))
          c.AddAccess(update->buffer, Points(update->indices), true);
      }
    };
    std::visit(Visitor{*this}, stmt.node().kind);
  }

  std::vector<BufferRegion> Regions(bool write) const {
    std::vector<BufferRegion> regions;
    for (const auto& [buffer, dims] : write ? writes_ : reads_) {
      BufferRegion region{buffer, {}};
      for (size_t i = 0; i < dims.size(); ++i) region.region.push_back(ToRange(dims[i], buffer.shape()[i]));
      regions.push_back(std::move(region));
    }
    return regions;
  }
  bool Writes(const Buffer& buffer) const { return write_index_.contains(buffer.id()); }
  void AddLocal(const Buffer& buffer) { local_.insert(buffer.id()); }

 private:
  static std::vector<Range> Points(const std::vector<Expr>& indices) {
    std::vector<Range> ranges;
    for (const Expr& index : indices) {
      if (const Ramp* ramp = index.As<Ramp>(); ramp != nullptr && IsConst(ramp->stride, 1)) {
        ranges.push_back({ramp->base, IntConst(index.type().lanes, ramp->base.type())});
      } else if (index.type().is_scalar()) {
        ranges.push_back({index, IntConst(1, index.type())});
      } else {
        ranges.push_back({Expr(), Expr()});  // any vector: the whole dimension
      }
    }
    return ranges;
  }

  void Nested(const BlockRealize& n, const std::vector<BufferRegion>& regions, bool write) {
    const VarMap bind = [&n](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < n.block.iters.size() && i < n.values.size(); ++i) {
        if (n.block.iters[i].var == var) return n.values[i];
      }
      return std::nullopt;
    };
    for (const BufferRegion& region : regions) {
      std::vector<Range> ranges;
      for (const Range& r : region.region) ranges.push_back({Substitute(r.min, bind), Substitute(r.extent, bind)});
      AddAccess(region.buffer, ranges, write);
    }
  }

  // Replaces the variables of lets inside the block by their values, and those of loops by their ranges.
  Dimension ToDimension(const Range& range) const {
    Dimension dim;
    if (!range.min) return {.whole = true};
    const std::optional<int64_t> extent = ConstantValue(range.extent);
    dim.min = ToLinear(range.min);
    dim.extent = extent.value_or(1);
    if (!extent.has_value()) dim.length = range.extent;
    bool relaxed = false;
    for (int round = 0; round < 64; ++round) {
      bool changed = false;
      for (size_t t = 0; t < dim.min.terms.size(); ++t) {
        const auto [atom, coefficient] = dim.min.terms[t];
        if (coefficient == 0) continue;
        const VarRef* ref = atom.As<VarRef>();
        const auto let = ref == nullptr ? lets_.end() : lets_.find(ref->var.id());
        if (let != lets_.end()) {
          const Expr value = let->second;
          dim.min.terms[t].second = 0;
          Add(dim.min, ToLinear(value), coefficient);
          changed = relaxed = true;
          break;
        }
        const auto loop = ref == nullptr ? ranges_.end() : ranges_.find(ref->var.id());
        if (loop == ranges_.end()) {
          if (IsInside(atom)) return {.whole = true};
          continue;
        }
        const std::optional<int64_t> trips = ConstantValue(loop->second.extent);
        if (!trips.has_value() || dim.length) return {.whole = true};
        dim.min.terms[t].second = 0;
        const int64_t reach = coefficient * (*trips - 1);
        Add(dim.min, ToLinear(loop->second.min), coefficient);
        dim.extent += reach < 0 ? -reach : reach;
        dim.min.constant += std::min<int64_t>(reach, 0);
        changed = relaxed = true;
        break;
      }
      if (!changed) break;
    }
    if (!relaxed) dim.written = range.min;
    return dim;
  }

  // Does the expression depend on a variable defined inside the block?
  bool IsInside(const Expr& e) const {
    for (const Var& var : FreeVars(e)) {
      if (ranges_.contains(var.id()) || lets_.contains(var.id())) return true;
    }
    return false;
  }

  static void Join(Dimension& a, const Dimension& b) {
    if (a.whole) return;
    Linear difference = b.min;
    Add(difference, a.min, -1);
    const bool constant = std::ranges::all_of(difference.terms, [](const auto& t) { return t.second == 0; });
    const bool same_length = a.length && b.length && StructuralEqual(a.length, b.length);
    if (b.whole || !constant || (same_length && difference.constant != 0) || (!same_length && (a.length || b.length))) {
      a = {.whole = true};
      return;
    }
    if (same_length || (difference.constant == 0 && a.extent == b.extent)) return;
    const int64_t low = std::min<int64_t>(0, difference.constant);
    a.extent = std::max(a.extent, difference.constant + b.extent) - low;
    if (low < 0) {
      a.min.constant += low;
      a.written = Expr();
    }
  }

  static Range ToRange(const Dimension& dim, const Expr& size) {
    const auto whole = [&] { return Range{IntConst(0, size.type()), size}; };
    if (dim.whole) return whole();
    const Expr min = dim.written ? dim.written : ToExpr(dim.min, size.type());
    return {min, dim.length ? dim.length : IntConst(dim.extent, min.type())};
  }

  std::vector<std::pair<Buffer, std::vector<Dimension>>> reads_, writes_;
  std::unordered_map<uint64_t, size_t> read_index_, write_index_;
  std::unordered_map<uint64_t, Range> ranges_;  // of loops inside the block
  std::unordered_map<uint64_t, Expr> lets_;     // of lets inside the block
  std::set<uint64_t> local_;
};

}  // namespace

AccessedRegions DeriveRegions(const Block& block) {
  Collector collector;
  for (const Buffer& b : block.allocs) collector.AddLocal(b);
  for (const MatchBuffer& match : block.matches) {
    // The body uses the part by its own name; it counts as its source.
    collector.AddLocal(match.buffer);
    collector.AddAccess(match.source.buffer, match.source.region, false);
    collector.AddAccess(match.source.buffer, match.source.region, true);
  }
  collector.Walk(block.body);
  Collector with_init = collector;
  with_init.Walk(block.init);
  AccessedRegions regions{collector.Regions(false), with_init.Regions(true)};
  if (block.init) {
    std::erase_if(regions.reads, [&](const BufferRegion& r) { return collector.Writes(r.buffer); });
  }
  return regions;
}

}  // namespace hone
