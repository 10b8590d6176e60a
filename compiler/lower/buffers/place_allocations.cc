#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

// One step of the way from the root to an access: a statement, and which of a sequence's children is taken.
struct Step {
  const StmtNode* node;
  int child;  // of a Seq; 0 otherwise
  friend bool operator==(const Step&, const Step&) = default;
};
using Path = std::vector<Step>;

// The place of an allocation: a node, and for a sequence the children that use it.
struct Place {
  const StmtNode* node = nullptr;
  int first = 0, last = 0;
};

class FindPlaces {
 public:
  std::map<Buffer, Place> Run(const Stmt& body) {
    Visit(body);
    std::map<Buffer, Place> places;
    for (const Buffer& buffer : buffers_) {
      const auto paths = paths_.find(buffer);
      if (paths == paths_.end()) continue;  // never used: it goes away
      places[buffer] = Meet(paths->second);
    }
    return places;
  }

 private:
  // Only these can carry an Alloc in front of their body.
  static bool CanHold(const StmtNode& node) {
    return std::holds_alternative<For>(node.kind) || std::holds_alternative<BlockRealize>(node.kind) ||
           std::holds_alternative<Seq>(node.kind);
  }

  static Place Meet(const std::vector<Path>& paths) {
    size_t common = paths[0].size();
    for (const Path& path : paths) {
      common = std::min(common, path.size());
      for (size_t i = 0; i < common; ++i) {
        if (path[i].node != paths[0][i].node) common = i;
        // The children of a sequence part here, but the sequence itself is shared.
        else if (path[i].child != paths[0][i].child) common = i + 1;
      }
    }
    while (common > 0 && !CanHold(*paths[0][common - 1].node)) --common;
    if (common == 0) return Place();  // around everything
    Place place{paths[0][common - 1].node, paths[0][common - 1].child, paths[0][common - 1].child};
    for (const Path& path : paths) {
      place.first = std::min(place.first, path[common - 1].child);
      place.last = std::max(place.last, path[common - 1].child);
    }
    return place;
  }

  void Allocated(const Buffer& buffer) {
    buffers_.push_back(buffer);
    limits_around_[buffer] = limits_.size();
  }

  void Access(const Buffer& buffer, bool writes) { Access(buffer, writes, path_.size()); }
  void Access(const Buffer& buffer, bool writes, size_t length) {
    const auto around = limits_around_.find(buffer);
    for (size_t i = around == limits_around_.end() ? 0 : around->second; i < limits_.size(); ++i) {
      if (writes || !limits_[i].of_writes) length = std::min(length, limits_[i].length);
    }
    Path path(path_.begin(), path_.begin() + static_cast<ptrdiff_t>(length));
    std::vector<Path>& paths = paths_[buffer];
    if (paths.empty() || paths.back() != path) paths.push_back(std::move(path));
  }

  void Reads(const Expr& e) {
    ForEachExpr(e, [&](const Expr& part) {
      if (const Load* load = part.As<Load>()) Access(load->buffer, false);
      return true;
    });
  }

  // The outermost loop that any variable of the expression comes from, as a length of the path.
  std::optional<size_t> OutermostLoop(const Expr& e) const {
    std::optional<size_t> depth;
    for (const Var& v : FreeVars(e)) {
      const auto loop = loop_of_.find(v);
      if (loop != loop_of_.end()) depth = std::min(depth.value_or(loop->second), loop->second);
    }
    return depth;
  }

  void Visit(const Stmt& stmt) {
    path_.push_back({&stmt.node(), 0});
    if (const Seq* seq = stmt.As<Seq>()) {
      for (size_t i = 0; i < seq->stmts.size(); ++i) {
        path_.back().child = static_cast<int>(i);
        Visit(seq->stmts[i]);
      }
    } else if (const For* loop = stmt.As<For>()) {
      Reads(loop->min);
      Reads(loop->extent);
      loop_of_[loop->var] = path_.size() - 1;  // so long a path ends in front of the loop
      const size_t outer = limits_.size();
      if (loop->kind == ForKind::kVectorized) limits_.push_back({path_.size() - 1, false});
      Visit(loop->body);
      limits_.resize(outer);
    } else if (const While* loop = stmt.As<While>()) {
      limits_.push_back({path_.size() - 1, false});
      Reads(loop->condition);
      Visit(loop->body);
      limits_.pop_back();
    } else if (const BlockRealize* realize = stmt.As<BlockRealize>()) {
      const size_t outer = limits_.size();
      for (const Expr& value : realize->values) Reads(value);
      Reads(realize->predicate);
      const Block& block = realize->block;
      // What the block's regions name exists around it.
      for (const BufferRegion& region : block.reads) Access(region.buffer, false, path_.size() - 1);
      for (const BufferRegion& region : block.writes) Access(region.buffer, false, path_.size() - 1);
      for (size_t i = 0; i < block.iters.size(); ++i) {
        const std::optional<size_t> depth = OutermostLoop(realize->values[i]);
        if (!depth.has_value()) continue;
        loop_of_[block.iters[i].var] = *depth;
        if (block.iters[i].kind != IterKind::kSpatial) limits_.push_back({*depth, true});
      }
      for (const Buffer& buffer : block.allocs) Allocated(buffer);
      for (const MatchBuffer& match : block.matches) {
        for (const Range& range : match.source.region) Reads(range.min);
        matched_[match.buffer] = match.source.buffer;
        Access(match.source.buffer, true);
      }
      Visit(block.body);
      limits_.resize(outer);
    } else {
      if (const Store* store = stmt.As<Store>()) Access(store->buffer, true);
      if (const TileOp* op = stmt.As<TileOp>()) {
        for (size_t i = 0; i < op->operands.size(); ++i) Access(op->operands[i].buffer, i == 0);
      }
      if (const Alloc* alloc = stmt.As<Alloc>()) Allocated(alloc->buffer);
      ForEachChild(
          stmt, [&](const Stmt& child) { Visit(child); }, [&](const Expr& e) { Reads(e); });
    }
    path_.pop_back();
  }

  Path path_;
  // Paths end in front of a vectorised loop, of which lanes have no memory of their own, of a while, one round of which
  // may read what another wrote, and of a reduction's loops for what is written in it. How long they are then, from
  // outside to inside; of a buffer those limits count that are inside of its allocation.
  struct Limit {
    size_t length;
    bool of_writes;  // alone
  };
  std::vector<Limit> limits_;
  std::map<Buffer, size_t> limits_around_;  // its allocation: so many
  std::map<Var, size_t> loop_of_;
  std::map<Buffer, Buffer> matched_;
  std::map<Buffer, std::vector<Path>> paths_;
  std::vector<Buffer> buffers_;
};

struct Use {
  Buffer buffer;
  int first, last;
};

// stmts[first..last] inside their allocations. Ranges that overlap are nested, the later in the earlier.
Stmt WrapRange(const std::vector<Stmt>& stmts, int first, int last, std::vector<Use> uses) {
  std::ranges::stable_sort(
      uses, [](const Use& a, const Use& b) { return a.first != b.first ? a.first < b.first : a.last > b.last; });
  std::vector<Stmt> out;
  size_t u = 0;
  for (int i = first; i <= last;) {
    if (u == uses.size() || i < uses[u].first) {
      out.push_back(stmts[i++]);
      continue;
    }
    const Buffer buffer = uses[u++].buffer;
    int end = uses[u - 1].last;
    std::vector<Use> inner;
    for (; u < uses.size() && uses[u].first <= end; ++u) {
      end = std::max(end, uses[u].last);
      inner.push_back(uses[u]);
    }
    out.push_back(Stmt::Make(Alloc{buffer, WrapRange(stmts, i, end, std::move(inner))}));
    i = end + 1;
  }
  return MakeSeq(std::move(out));
}

class Insert {
 public:
  explicit Insert(const std::map<Buffer, Place>& places) {
    for (const auto& [buffer, place] : places) at_[place.node].push_back({buffer, place.first, place.last});
  }

  Stmt Rewrite(const Stmt& stmt) {
    if (const Alloc* alloc = stmt.As<Alloc>()) return Rewrite(alloc->body);  // placed anew
    const auto found = at_.find(&stmt.node());
    Stmt mapped;
    if (const Seq* seq = stmt.As<Seq>()) {
      std::vector<Stmt> stmts;
      for (const Stmt& s : seq->stmts) stmts.push_back(Rewrite(s));
      if (found == at_.end()) return MakeSeq(std::move(stmts));
      return WrapRange(stmts, 0, static_cast<int>(stmts.size()) - 1, found->second);
    }
    const bool is_block = stmt.As<BlockRealize>() != nullptr;
    blocks_ += is_block;
    mapped = MapChildren(
        stmt, [&](const Stmt& s) { return Rewrite(s); }, [](const Expr& e) { return e; });
    blocks_ -= is_block;
    if (const BlockRealize* realize = mapped.As<BlockRealize>()) {
      BlockRealize bare = *realize;
      bare.block.allocs.clear();
      if (found != at_.end()) bare.block.body = Wrap(bare.block.body, found->second);
      if (blocks_ > 0) DeclareRegions(bare.block);  // what it allocated may be around it now
      return Stmt::Make(std::move(bare));
    }
    if (found == at_.end()) return mapped;
    For loop = *mapped.As<For>();
    loop.body = Wrap(loop.body, found->second);
    return Stmt::Make(std::move(loop));
  }

 private:
  static Stmt Wrap(Stmt body, const std::vector<Use>& uses) {
    for (const Use& use : uses) body = Stmt::Make(Alloc{use.buffer, body});
    return body;
  }
  std::map<const StmtNode*, std::vector<Use>> at_;
  int blocks_ = 0;  // around what is rewritten
};

}  // namespace

Stmt PlaceAllocations(const Stmt& body) {
  const std::map<Buffer, Place> places = FindPlaces().Run(body);
  Stmt placed = Insert(places).Rewrite(body);
  for (const auto& [buffer, place] : places) {
    if (place.node == nullptr) placed = Stmt::Make(Alloc{buffer, placed});
  }
  return placed;
}

}  // namespace hone
