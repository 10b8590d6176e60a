#include <algorithm>
#include <map>
#include <set>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "compiler/te/te.h"

namespace hone::te {
namespace {

// An identifier of the text form: tensors are named after nodes of foreign graphs.
std::string Identifier(const std::string& name) {
  std::string id;
  for (const char c : name) id += (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ? c : '_';
  if (id.empty() || (id[0] >= '0' && id[0] <= '9')) id.insert(0, "t");
  return id;
}

class Names {
 public:
  std::string Unique(const std::string& name) {
    const std::string base = Identifier(name);
    std::string candidate = base;
    for (int n = 1; !taken_.insert(candidate).second; ++n) candidate = base + "_" + std::to_string(n);
    return candidate;
  }

 private:
  std::set<std::string> taken_ = {"root"};  // the root block's
};

// Producers before consumers; placeholders are left out.
void Collect(const Tensor& t, std::set<const Stage*>& seen, std::vector<const Stage*>& order) {
  if (t.IsPlaceholder() || !seen.insert(&t.stage()).second) return;
  for (const Tensor& input : t.stage().inputs) Collect(input, seen, order);
  order.push_back(&t.stage());
}

class FuncBuilder {
 public:
  Buffer Declare(const Buffer& buffer) {
    Buffer fresh(names_.Unique(buffer.name()), buffer.type(), buffer.shape());
    HONE_CHECK(buffers_.emplace(buffer, fresh).second) << buffer.name() << " is listed twice among inputs and outputs";
    return fresh;
  }
  bool Knows(const Buffer& buffer) const { return buffers_.contains(buffer); }
  Buffer Find(const Buffer& buffer) const {
    const auto found = buffers_.find(buffer);
    HONE_CHECK(found != buffers_.end()) << buffer.name() << " is read but is no input of the function";
    return found->second;
  }

  Stmt BuildStage(const Stage& stage);

 private:
  void AddIter(const Var& axis, const Range& domain, IterKind kind);
  Expr InBlock(const Expr& e);  // in terms of the block's variables and the function's buffers
  Stmt StoreAll(const std::vector<Buffer>& outputs, const std::vector<Expr>& at, const std::vector<Expr>& values);
  Stmt Update(const Stage& stage, const std::vector<Buffer>& outputs, const std::vector<Expr>& at);

  Names names_;
  std::map<Buffer, Buffer> buffers_;
  // The stage being built.
  std::vector<IterVar> iters_;
  std::vector<Var> loops_;
  std::map<Var, Var> block_var_;  // from the stage's axes
  VarRanges ranges_;
};

void FuncBuilder::AddIter(const Var& axis, const Range& domain, IterKind kind) {
  const Var var("v_" + Identifier(axis.name()), axis.type());
  iters_.push_back({var, domain, kind});
  loops_.push_back(Var(Identifier(axis.name()), axis.type()));
  block_var_.emplace(axis, var);
  // A variable of one value is left unknown: C[v_n, v_m] stays C[v_n, v_m] on both sides of an update, not C[0, v_m].
  if (!IsConst(domain.extent, 1)) ranges_[var] = domain;
}

Expr FuncBuilder::InBlock(const Expr& e) {
  const Expr renamed = RewriteBottomUp(e, [&](const Expr& node) -> std::optional<Expr> {
    if (const VarRef* ref = node.As<VarRef>()) {
      const auto found = block_var_.find(ref->var);
      if (found == block_var_.end()) return std::nullopt;
      return Expr(found->second);
    }
    if (const Load* load = node.As<Load>()) return MakeLoad(Find(load->buffer), load->indices);  // masks come later
    return std::nullopt;
  });
  Analyzer known(ranges_);
  return known.Simplify(renamed);
}

Stmt FuncBuilder::StoreAll(const std::vector<Buffer>& outputs, const std::vector<Expr>& at,
                           const std::vector<Expr>& values) {
  std::vector<Stmt> stores;
  for (size_t i = 0; i < outputs.size(); ++i) {
    HONE_CHECK(values[i].type() == outputs[i].type())
        << outputs[i].name() << " is " << ToText(outputs[i].type()) << ", its new value " << ToText(values[i].type());
    stores.push_back(Stmt::Make(Store{outputs[i], at, InBlock(values[i]), Expr()}));
  }
  return MakeSeq(std::move(stores));
}

Stmt FuncBuilder::Update(const Stage& stage, const std::vector<Buffer>& outputs, const std::vector<Expr>& at) {
  std::vector<Expr> values = stage.body->values();
  const Reduction* reduction = stage.body->reduction();
  if (reduction == nullptr) return StoreAll(outputs, at, values);
  // A combining function may mention the stage's own variables, so it is called before they are replaced.
  std::vector<Expr> so_far;
  for (const Buffer& output : stage.outputs) {
    so_far.push_back(MakeLoad(output, std::vector<Expr>(stage.axes.begin(), stage.axes.end())));
  }
  if (outputs.size() == 1) return StoreAll(outputs, at, reduction->reducer.combine(so_far, values));

  // Every part is computed from the old parts before any is stored, and every source is evaluated once.
  std::vector<std::pair<Var, Expr>> lets;
  for (size_t i = 0; i < values.size(); ++i) {
    lets.emplace_back(Var("next" + std::to_string(i), values[i].type()), values[i]);
    values[i] = lets.back().first;
  }
  values = reduction->reducer.combine(so_far, values);
  for (size_t i = 0; i < values.size(); ++i) {
    lets.emplace_back(Var("best" + std::to_string(i), values[i].type()), values[i]);
    values[i] = lets.back().first;
  }
  Stmt body = StoreAll(outputs, at, values);
  for (auto let = lets.rbegin(); let != lets.rend(); ++let) {
    body = Stmt::Make(Let{let->first, InBlock(let->second), body});
  }
  return body;
}

Stmt FuncBuilder::BuildStage(const Stage& stage) {
  iters_.clear();
  loops_.clear();
  block_var_.clear();
  ranges_.clear();
  std::vector<Buffer> outputs;
  for (const Buffer& output : stage.outputs) outputs.push_back(Find(output));
  for (size_t d = 0; d < stage.axes.size(); ++d) {
    const Expr& extent = stage.shape[d];
    const DType type = stage.axes[d].type();
    const std::optional<int64_t> size = ConstantValue(extent);
    AddIter(stage.axes[d], Range{IntConst(0, type), size ? IntConst(*size, type) : extent}, IterKind::kSpatial);
  }
  std::vector<Expr> at;
  for (const IterVar& iter : iters_) at.push_back(iter.var);
  for (const ReduceAxis& axis : stage.reduce_axes) AddIter(axis.var, axis.domain, IterKind::kReduce);
  if (iters_.empty())
    AddIter(Var("u"), Range{0, 1}, IterKind::kSpatial);  // a scalar: one instance, in a loop as all are

  Block block;
  block.name = outputs[0].name();
  block.annotations = stage.attrs;
  block.body = Update(stage, outputs, at);
  if (const Reduction* reduction = stage.body->reduction()) {
    std::vector<DType> types;
    for (const Buffer& output : outputs) types.push_back(output.type());
    block.init = StoreAll(outputs, at, reduction->init.empty() ? reduction->reducer.identity(types) : reduction->init);
  }
  DeclareRegions(block);
  block.iters = iters_;

  BlockRealize realize;
  for (const Var& loop : loops_) realize.values.push_back(loop);
  realize.predicate = True();
  realize.block = std::move(block);
  Stmt nest = Stmt::Make(std::move(realize));
  for (size_t i = loops_.size(); i-- > 0;) {
    For loop;
    loop.var = loops_[i];
    loop.min = iters_[i].domain.min;
    loop.extent = iters_[i].domain.extent;
    loop.body = std::move(nest);
    nest = Stmt::Make(std::move(loop));
  }
  return nest;
}

}  // namespace

PrimFunc CreatePrimFunc(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, std::string name,
                        Attrs attrs) {
  HONE_CHECK(!outputs.empty()) << name << " has no outputs";
  PrimFunc f;
  f.name = std::move(name);
  f.attrs = std::move(attrs);
  f.attrs["outputs"] = static_cast<int64_t>(outputs.size());
  FuncBuilder builder;
  for (const Tensor& input : inputs) {
    HONE_CHECK(input.IsPlaceholder()) << input.name() << " is computed, so it cannot be an input";
    f.params.push_back(builder.Declare(input.buffer()));
  }
  for (const Tensor& output : outputs) {
    HONE_CHECK(!output.IsPlaceholder()) << output.name() << " is not computed, so it cannot be an output";
    f.params.push_back(builder.Declare(output.buffer()));
  }
  std::set<Var> dims;
  for (const Buffer& param : f.params) {
    for (const Expr& size : param.shape()) {
      for (const Var& var : FreeVars(size)) {
        if (dims.insert(var).second) f.dims.push_back(var);
      }
    }
  }

  std::set<const Stage*> seen;
  std::vector<const Stage*> stages;
  for (const Tensor& output : outputs) Collect(output, seen, stages);
  Block root;
  root.name = "root";
  std::vector<Stmt> nests;
  for (const Stage* stage : stages) {
    for (const Buffer& output : stage->outputs) {
      if (!builder.Knows(output)) root.allocs.push_back(builder.Declare(output));
    }
    nests.push_back(builder.BuildStage(*stage));
  }
  root.body = MakeSeq(std::move(nests));
  BlockRealize realize;
  realize.predicate = True();
  realize.block = std::move(root);
  f.body = Stmt::Make(std::move(realize));
  return f;
}

}  // namespace hone::te
