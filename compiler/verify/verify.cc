#include "compiler/verify/verify.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/fields.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic.h"
#include "compiler/verify/outside_domain.h"
#include "compiler/verify/undeclared_access.h"

namespace hone {
namespace {

std::string Join(std::span<const Expr> indices) {
  std::string text;
  for (const Expr& e : indices) absl::StrAppend(&text, text.empty() ? "" : ", ", e ? ToText(e) : "?");
  return text;
}

// Walks the program in scope order. The first broken rule ends it.
class Verifier {
 public:
  absl::Status Run(const PrimFunc& f) {
    place_ = absl::StrCat("function ", f.name);
    for (const Var& dim : f.dims) {
      HONE_RETURN_IF_ERROR(Define(dim));
      if (!dim.range().has_value())
        return Broken("size-range", absl::StrCat("the symbolic size ", dim.name(), " has no range"));
    }
    HONE_RETURN_IF_ERROR(CheckAttributes(f));
    const int inputs = static_cast<int>(f.params.size()) - f.num_outputs();
    for (int i = 0; i < static_cast<int>(f.params.size()); ++i) {
      if (!f.params[i]) return Broken("absent-part", absl::StrCat("parameter ", i, " is absent"));
      HONE_RETURN_IF_ERROR(Define(f.params[i]));
      if (i < inputs) read_only_.insert(f.params[i]);
    }
    if (!f.body) return Broken("absent-part", "the function has no body");
    return Check(f.body);
  }

 private:
  absl::Status Broken(std::string_view rule, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(std::string(rule), ": ", place_, ": ", what));
  }

  // An attribute that is a list of params, each from `begin` to `end`.
  absl::Status CheckParams(const PrimFunc& f, const char* name, int64_t begin, int64_t end, absl::string_view kind) {
    const auto found = f.attrs.find(name);
    if (found == f.attrs.end()) return absl::OkStatus();
    const auto* indices = std::get_if<std::vector<int64_t>>(&found->second);
    if (indices == nullptr) return Broken("attributes", absl::StrCat("\"", name, "\" is not a list of numbers"));
    for (const int64_t index : *indices) {
      if (index >= begin && index < end) continue;
      return Broken("attributes", absl::StrCat("\"", name, "\" names parameter ", index, ", which is no ", kind));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAttributes(const PrimFunc& f) {
    const int64_t params = static_cast<int64_t>(f.params.size());
    if (const auto found = f.attrs.find("outputs"); found != f.attrs.end()) {
      const int64_t* count = std::get_if<int64_t>(&found->second);
      if (count == nullptr || *count < 0 || *count > params) {
        return Broken("attributes", absl::StrCat("\"outputs\" is not a number from 0 to ", params));
      }
    } else if (params < 1) {
      return Broken("attributes", "a function without parameters has \"outputs\" 0");
    }
    const int64_t inputs = params - f.num_outputs();
    HONE_RETURN_IF_ERROR(CheckParams(f, "constants", 0, inputs, "input"));
    HONE_RETURN_IF_ERROR(CheckParams(f, kColdOutputs, inputs, params, "output"));
    if (const auto found = f.attrs.find("domains"); found != f.attrs.end()) {
      const auto* texts = std::get_if<std::vector<std::string>>(&found->second);
      if (texts == nullptr || static_cast<int64_t>(texts->size()) != params) {
        return Broken("attributes", absl::StrCat("\"domains\" is not a list of ", params, " texts"));
      }
    }
    return absl::OkStatus();
  }

  // ---- Definitions
  absl::Status Define(const Var& var) {
    if (!var) return Broken("absent-part", "a variable is absent");
    if (!defined_vars_.insert(var).second) return Broken("defined-twice", absl::StrCat("variable ", var.name()));
    vars_in_scope_.insert(var);
    return absl::OkStatus();
  }
  absl::Status Define(const Buffer& buffer) {
    if (!buffer) return Broken("absent-part", "a buffer is absent");
    if (!defined_buffers_.insert(buffer).second) return Broken("defined-twice", absl::StrCat("buffer ", buffer.name()));
    buffers_in_scope_.insert(buffer);
    for (const Expr& extent : buffer.shape()) {
      if (!extent) return Broken("absent-part", absl::StrCat("an extent of buffer ", buffer.name(), " is absent"));
      HONE_RETURN_IF_ERROR(Check(extent));
      if (!extent.type().is_int() || !extent.type().is_scalar()) {
        return Broken("shape-type", absl::StrCat("buffer ", buffer.name(), " has the extent ", ToText(extent),
                                                 " of type ", ToText(extent.type())));
      }
      if (const std::optional<int64_t> value = ConstantValue(extent); value && *value < 0) {
        return Broken("shape-type", absl::StrCat("buffer ", buffer.name(), " has the extent ", *value));
      }
    }
    return absl::OkStatus();
  }
  void Forget(const Var& var) { vars_in_scope_.erase(var); }
  void Forget(const Buffer& buffer) { buffers_in_scope_.erase(buffer); }

  // ---- Expressions
  absl::Status Need(const Expr& e, std::string_view what) const {
    if (e) return absl::OkStatus();
    return Broken("absent-part", absl::StrCat(std::string(what), " is absent"));
  }
  absl::Status NeedIndex(const Expr& e, std::string_view what) {
    HONE_RETURN_IF_ERROR(Need(e, what));
    HONE_RETURN_IF_ERROR(Check(e));
    if (e.type().is_int() && e.type().is_scalar()) return absl::OkStatus();
    return Broken("integer", absl::StrCat(std::string(what), " ", ToText(e), " has type ", ToText(e.type())));
  }
  absl::Status NeedBool(const Expr& e, std::string_view what) {
    HONE_RETURN_IF_ERROR(Need(e, what));
    HONE_RETURN_IF_ERROR(Check(e));
    if (e.type().is_bool()) return absl::OkStatus();
    return Broken("condition",
                  absl::StrCat(std::string(what), " ", ToText(e), " has type ", ToText(e.type()), ", not bool"));
  }

  absl::Status Check(const Expr& e) {
    return std::visit([&](const auto& node) { return CheckNode(node, e); }, e.node().kind);
  }
  absl::Status Types(const Expr& e, const std::string& what) const {
    return Broken("types", absl::StrCat(ToText(e), " ", what));
  }
  absl::Status CheckNode(const IntImm&, const Expr& e) {
    if ((e.type().is_int() || e.type().is_bool()) && e.type().is_scalar()) return absl::OkStatus();
    return Types(e, absl::StrCat("is an integer constant of type ", ToText(e.type())));
  }
  absl::Status CheckNode(const FloatImm&, const Expr& e) {
    if (e.type().is_float() && e.type().is_scalar()) return absl::OkStatus();
    return Types(e, absl::StrCat("is a floating-point constant of type ", ToText(e.type())));
  }
  absl::Status CheckNode(const VarRef& ref, const Expr& e) {
    if (!ref.var) return Broken("absent-part", "a variable is absent");
    if (loops_outside_.contains(ref.var)) {
      return Broken("loop-in-block",
                    absl::StrCat("loop ", ref.var.name(),
                                 " is used inside the block; a block sees the loops around it through its bindings"));
    }
    if (!vars_in_scope_.contains(ref.var))
      return Broken("variable-scope", absl::StrCat("variable ", ref.var.name(), " is not defined here"));
    if (e.type() != ref.var.type()) return Types(e, "has another type than its variable");
    return absl::OkStatus();
  }
  absl::Status CheckNode(const Binary& op, const Expr& e) {
    HONE_RETURN_IF_ERROR(Need(op.a, "an operand"));
    HONE_RETURN_IF_ERROR(Need(op.b, "an operand"));
    HONE_RETURN_IF_ERROR(Check(op.a));
    HONE_RETURN_IF_ERROR(Check(op.b));
    const DType a = op.a.type(), b = op.b.type();
    if (a != b) return Types(e, absl::StrCat("has operands of types ", ToText(a), " and ", ToText(b)));
    if (IsLogical(op.op) && !a.is_bool()) return Types(e, absl::StrCat("combines conditions of type ", ToText(a)));
    if (op.op >= BinaryOp::kBitAnd && a.is_float()) return Types(e, "works on the bits of floating-point numbers");
    if (e.type() != ResultType(op.op, a))
      return Types(e, absl::StrCat("of ", ToText(a), " operands has type ", ToText(e.type())));
    return absl::OkStatus();
  }
  absl::Status CheckNode(const Not& op, const Expr& e) {
    HONE_RETURN_IF_ERROR(NeedBool(op.a, "the operand of not"));
    return e.type() == op.a.type() ? absl::OkStatus() : Types(e, "is no bool");
  }
  absl::Status CheckNode(const Cast& cast, const Expr& e) {
    HONE_RETURN_IF_ERROR(Need(cast.a, "the operand of a cast"));
    HONE_RETURN_IF_ERROR(Check(cast.a));
    if (cast.a.type().lanes == e.type().lanes) return absl::OkStatus();
    return Types(e, absl::StrCat("casts ", ToText(cast.a.type()), " to ", ToText(e.type())));
  }
  template <class Choice>
  absl::Status CheckChoice(const Choice& choice, const Expr& e, bool guards) {
    HONE_RETURN_IF_ERROR(NeedBool(choice.condition, "the condition"));
    HONE_RETURN_IF_ERROR(Need(choice.yes, "a choice"));
    HONE_RETURN_IF_ERROR(Need(choice.no, "a choice"));
    guarded_ += guards;
    const absl::Status yes = Check(choice.yes), no = Check(choice.no);
    guarded_ -= guards;
    HONE_RETURN_IF_ERROR(yes);
    HONE_RETURN_IF_ERROR(no);
    if (choice.yes.type() != e.type() || choice.no.type() != e.type()) {
      return Types(e, absl::StrCat("chooses between ", ToText(choice.yes.type()), " and ", ToText(choice.no.type())));
    }
    const int lanes = choice.condition.type().lanes;
    if (lanes != 1 && lanes != e.type().lanes) return Types(e, "has a condition of another number of lanes");
    return absl::OkStatus();
  }
  absl::Status CheckNode(const Select& choice, const Expr& e) { return CheckChoice(choice, e, false); }
  absl::Status CheckNode(const IfThenElseExpr& choice, const Expr& e) { return CheckChoice(choice, e, true); }
  absl::Status CheckNode(const LetExpr& let, const Expr& e) {
    HONE_RETURN_IF_ERROR(Need(let.value, "the value of a let"));
    HONE_RETURN_IF_ERROR(Need(let.body, "the body of a let"));
    HONE_RETURN_IF_ERROR(Check(let.value));
    HONE_RETURN_IF_ERROR(Define(let.var));
    HONE_RETURN_IF_ERROR(Check(let.body));
    Forget(let.var);
    if (let.var.type() != let.value.type()) return Types(e, "binds a value of another type than its variable");
    return let.body.type() == e.type() ? absl::OkStatus() : Types(e, "has another type than its body");
  }
  absl::Status CheckNode(const Load& load, const Expr& e) {
    HONE_ASSIGN_OR_RETURN(const int lanes, CheckAccess("load", load.buffer, load.indices, load.mask));
    const DType want = load.buffer.type().with_lanes(load.buffer.type().lanes * lanes);
    if (e.type() == want) return absl::OkStatus();
    return Types(e, absl::StrCat("has type ", ToText(e.type()), ", the buffer holds ", ToText(load.buffer.type())));
  }
  absl::Status CheckNode(const Call& call, const Expr& e) {
    const IntrinsicInfo* info = FindIntrinsic(call.name);
    if (info == nullptr) return Broken("intrinsic", absl::StrCat("no function is called ", call.name));
    if (static_cast<int>(call.args.size()) != info->arity) {
      return Broken("intrinsic", absl::StrCat(call.name, " takes ", info->arity, " arguments, not ", call.args.size()));
    }
    if (info->stands_alone) {
      return Broken("intrinsic", absl::StrCat(call.name, " has no value: it is T.evaluate(T.", call.name,
                                              "(an element of a buffer)) and stands alone"));
    }
    for (const Expr& arg : call.args) {
      HONE_RETURN_IF_ERROR(Need(arg, "an argument"));
      HONE_RETURN_IF_ERROR(Check(arg));
      if (arg.type() != call.args[0].type()) return Types(e, "has arguments of several types");
    }
    const DType first = call.args[0].type();
    const DType want = info->returns_bool ? DType::Bool(first.lanes) : first;
    return e.type() == want ? absl::OkStatus()
                            : Types(e, absl::StrCat("has type ", ToText(e.type()), " instead of ", ToText(want)));
  }
  absl::Status CheckNode(const Ramp& ramp, const Expr& e) {
    HONE_RETURN_IF_ERROR(NeedIndex(ramp.base, "the base of a ramp"));
    HONE_RETURN_IF_ERROR(NeedIndex(ramp.stride, "the stride of a ramp"));
    const bool fits =
        ramp.stride.type() == ramp.base.type() && e.type().element() == ramp.base.type() && !e.type().is_scalar();
    return fits ? absl::OkStatus() : Types(e, "is no vector of its base's type");
  }
  absl::Status CheckNode(const Broadcast& splat, const Expr& e) {
    HONE_RETURN_IF_ERROR(Need(splat.value, "the value of a broadcast"));
    HONE_RETURN_IF_ERROR(Check(splat.value));
    const bool fits = splat.value.type() == e.type().element() && !e.type().is_scalar();
    return fits ? absl::OkStatus() : Types(e, "is no vector of its value's type");
  }

  absl::Status CheckUse(const Buffer& buffer) const {
    if (!buffer) return Broken("absent-part", "a buffer is absent");
    if (buffers_in_scope_.contains(buffer)) return absl::OkStatus();
    return Broken("buffer-scope", absl::StrCat("buffer ", buffer.name(), " is neither a parameter nor allocated here"));
  }
  // What loads and stores share; gives the lanes of the access.
  absl::StatusOr<int> CheckAccess(std::string_view kind, const Buffer& buffer, const std::vector<Expr>& indices,
                                  const Expr& mask) {
    HONE_RETURN_IF_ERROR(CheckUse(buffer));
    const auto text = [&] { return absl::StrCat(buffer.name(), "[", Join(indices), "]"); };
    const int count = static_cast<int>(indices.size());
    if (count != buffer.rank()) {
      return Broken(absl::StrCat(std::string(kind), "-rank"),
                    absl::StrCat(text(), " has ", count, count == 1 ? " index" : " indices", ", the buffer has ",
                                 buffer.rank(), buffer.rank() == 1 ? " dimension" : " dimensions"));
    }
    int lanes = 1;
    for (int i = 0; i < count; ++i) {
      const Expr& index = indices[i];
      HONE_RETURN_IF_ERROR(Need(index, "an index"));
      HONE_RETURN_IF_ERROR(Check(index));
      if (!index.type().is_int())
        return Broken("integer", absl::StrCat("index ", ToText(index), " has type ", ToText(index.type())));
      if (!index.type().is_scalar()) {
        if (lanes != 1 && lanes != index.type().lanes)
          return Broken("types", absl::StrCat(text(), " has indices of several numbers of lanes"));
        lanes = index.type().lanes;
      }
      const std::optional<int64_t> value = ConstantValue(index), extent = ConstantValue(buffer.shape()[i]);
      if (guarded_ == 0 && value && (*value < 0 || (extent && *value >= *extent))) {
        return Broken("index-range", absl::StrCat(text(), ": index ", *value, " of dimension ", i, " is outside [0, ",
                                                  ToText(buffer.shape()[i]), ")"));
      }
    }
    if (mask) {
      HONE_RETURN_IF_ERROR(NeedBool(mask, "the mask"));
      if (lanes == 1) lanes = mask.type().lanes;
      if (mask.type().lanes != lanes)
        return Broken("types", absl::StrCat(text(), " has a mask of ", mask.type().lanes, " lanes"));
    }
    return lanes;
  }
  absl::Status CheckRegion(const BufferRegion& region) {
    HONE_RETURN_IF_ERROR(CheckUse(region.buffer));
    if (static_cast<int>(region.region.size()) != region.buffer.rank()) {
      return Broken("region-rank", absl::StrCat("the region of ", region.buffer.name(), " has ", region.region.size(),
                                                " ranges, the buffer has ", region.buffer.rank(), " dimensions"));
    }
    for (const Range& range : region.region) HONE_RETURN_IF_ERROR(CheckRange(range));
    return absl::OkStatus();
  }
  absl::Status CheckRange(const Range& range) {
    HONE_RETURN_IF_ERROR(NeedIndex(range.min, "the start of a range"));
    return NeedIndex(range.extent, "the extent of a range");
  }

  // ---- Statements
  absl::Status Check(const Stmt& s) {
    return std::visit([&](const auto& node) { return CheckNode(node); }, s.node().kind);
  }
  absl::Status CheckBody(const Stmt& body, std::string_view of) {
    if (!body) return Broken("absent-part", absl::StrCat(std::string(of), " has no body"));
    return Check(body);
  }
  absl::Status CheckNode(const For& loop) {
    HONE_RETURN_IF_ERROR(NeedIndex(loop.min, "the start of a loop"));
    HONE_RETURN_IF_ERROR(NeedIndex(loop.extent, "the extent of a loop"));
    HONE_RETURN_IF_ERROR(Define(loop.var));
    const std::string name = absl::StrCat("loop ", loop.var.name());
    if (loop.var.type() != loop.min.type() || loop.var.type() != loop.extent.type()) {
      return Broken("types",
                    absl::StrCat(name, " of type ", ToText(loop.var.type()), " starts at a ", ToText(loop.min.type()),
                                 " and has an extent of type ", ToText(loop.extent.type())));
    }
    if ((loop.kind == ForKind::kThreadBinding) == loop.thread.empty()) {
      return Broken("loop-thread", absl::StrCat(name, loop.thread.empty() ? " is bound to no thread"
                                                                          : " names a thread but is not bound to one"));
    }
    const bool needs_constant = loop.kind == ForKind::kVectorized || loop.kind == ForKind::kUnrolled;
    if (needs_constant && !ConstantValue(loop.extent).has_value()) {
      return Broken("loop-extent", absl::StrCat(name, " is vectorized or unrolled, but its extent ",
                                                ToText(loop.extent), " is no constant"));
    }
    loops_.push_back(&loop);
    HONE_RETURN_IF_ERROR(CheckBody(loop.body, name));
    loops_.pop_back();
    Forget(loop.var);
    return absl::OkStatus();
  }
  absl::Status CheckNode(const BlockRealize& realize) {
    const Block& block = realize.block;
    const std::string outer_place = std::exchange(place_, absl::StrCat("block ", block.name));
    ++blocks_;
    if (whiles_ > 0)
      return Broken("while-block", "a block in a while, which runs nobody knows how often; put the while in the block");
    if (realize.values.size() != block.iters.size()) {
      return Broken("binding-count",
                    absl::StrCat(realize.values.size(), " values for ", block.iters.size(), " iteration variables"));
    }
    for (const Expr& value : realize.values)
      HONE_RETURN_IF_ERROR(NeedIndex(value, "the value of an iteration variable"));
    HONE_RETURN_IF_ERROR(NeedBool(realize.predicate, "the predicate"));
    if (!realize.predicate.type().is_scalar()) return Broken("condition", "the predicate is a vector");
    // Inside, the loops between the enclosing block and this one are out of sight.
    std::vector<const For*> outer_loops = std::exchange(loops_, {});
    for (const For* loop : outer_loops) loops_outside_.insert(loop->var);
    for (size_t i = 0; i < block.iters.size(); ++i) {
      const IterVar& iter = block.iters[i];
      HONE_RETURN_IF_ERROR(CheckRange(iter.domain));
      HONE_RETURN_IF_ERROR(Define(iter.var));
      const DType type = iter.var.type();
      if (type != realize.values[i].type() || type != iter.domain.min.type() || type != iter.domain.extent.type()) {
        return Broken("types",
                      absl::StrCat("iteration variable ", iter.var.name(), " of type ", ToText(type), " is bound to ",
                                   ToText(realize.values[i]), " of type ", ToText(realize.values[i].type()),
                                   ", its domain is of type ", ToText(iter.domain.extent.type())));
      }
    }
    if (guarded_ == 0) {
      if (const auto outside = ValueOutsideDomain(realize, outer_loops)) return Broken("binding-domain", *outside);
    }
    for (const BufferRegion& region : block.reads) HONE_RETURN_IF_ERROR(CheckRegion(region));
    for (const BufferRegion& region : block.writes) HONE_RETURN_IF_ERROR(CheckRegion(region));
    for (const Buffer& buffer : block.allocs) HONE_RETURN_IF_ERROR(Define(buffer));
    for (const MatchBuffer& match : block.matches) {
      HONE_RETURN_IF_ERROR(CheckRegion(match.source));
      HONE_RETURN_IF_ERROR(Define(match.buffer));
      if (match.buffer.type() != match.source.buffer.type()) {
        return Broken("types", absl::StrCat("buffer ", match.buffer.name(), " stands for a part of ",
                                            match.source.buffer.name(), " but has another type"));
      }
      if (read_only_.contains(match.source.buffer)) read_only_.insert(match.buffer);
    }
    if (block.init) HONE_RETURN_IF_ERROR(Check(block.init));
    HONE_RETURN_IF_ERROR(CheckBody(block.body, "the block"));
    --blocks_;
    const bool is_root = blocks_ == 0 && block.iters.empty();  // the whole program: it declares nothing
    if (!is_root) {
      if (const std::optional<std::string> access = UndeclaredAccess(block)) return Broken("region-cover", *access);
    }
    for (const IterVar& iter : block.iters) Forget(iter.var);
    for (const Buffer& buffer : block.allocs) Forget(buffer);
    for (const MatchBuffer& match : block.matches) Forget(match.buffer);
    for (const For* loop : outer_loops) loops_outside_.erase(loop->var);
    loops_ = std::move(outer_loops);
    place_ = outer_place;
    return absl::OkStatus();
  }
  absl::Status CheckNode(const Store& store) {
    HONE_ASSIGN_OR_RETURN(const int lanes, CheckAccess("store", store.buffer, store.indices, store.mask));
    HONE_RETURN_IF_ERROR(Need(store.value, "the stored value"));
    HONE_RETURN_IF_ERROR(Check(store.value));
    const DType want = store.buffer.type().with_lanes(store.buffer.type().lanes * lanes);
    if (store.value.type() != want) {
      return Broken("types", absl::StrCat("a value of type ", ToText(store.value.type()), " is stored to ",
                                          store.buffer.name(), "[", Join(store.indices), "] of type ", ToText(want)));
    }
    return CheckWritable(store.buffer);
  }
  absl::Status CheckWritable(const Buffer& buffer) const {
    if (!read_only_.contains(buffer)) return absl::OkStatus();
    return Broken("input-written", absl::StrCat("parameter ", buffer.name(), " is an input"));
  }
  absl::Status CheckNode(const Seq& seq) {
    for (const Stmt& stmt : seq.stmts) {
      if (!stmt) return Broken("absent-part", "a statement of a sequence is absent");
      HONE_RETURN_IF_ERROR(Check(stmt));
    }
    return absl::OkStatus();
  }
  absl::Status CheckNode(const IfThen& branch) {
    HONE_RETURN_IF_ERROR(NeedBool(branch.condition, "the condition"));
    if (!branch.condition.type().is_scalar()) return Broken("condition", "an if has a vector for its condition");
    ++guarded_;
    HONE_RETURN_IF_ERROR(CheckBody(branch.yes, "an if"));
    if (branch.no) HONE_RETURN_IF_ERROR(Check(branch.no));
    --guarded_;
    return absl::OkStatus();
  }
  absl::Status CheckNode(const While& loop) {
    HONE_RETURN_IF_ERROR(NeedBool(loop.condition, "the condition"));
    if (!loop.condition.type().is_scalar()) return Broken("condition", "a while has a vector for its condition");
    ++whiles_;
    ++guarded_;
    HONE_RETURN_IF_ERROR(CheckBody(loop.body, "a while"));
    --guarded_;
    --whiles_;
    return absl::OkStatus();
  }
  absl::Status CheckNode(const Let& let) {
    HONE_RETURN_IF_ERROR(Need(let.value, "the value of a let"));
    HONE_RETURN_IF_ERROR(Check(let.value));
    HONE_RETURN_IF_ERROR(Define(let.var));
    if (let.var.type() != let.value.type()) {
      return Broken("types", absl::StrCat("variable ", let.var.name(), " of type ", ToText(let.var.type()), " gets a ",
                                          ToText(let.value.type())));
    }
    HONE_RETURN_IF_ERROR(CheckBody(let.body, "a let"));
    Forget(let.var);
    return absl::OkStatus();
  }
  absl::Status CheckNode(const Alloc& alloc) {
    HONE_RETURN_IF_ERROR(Define(alloc.buffer));
    HONE_RETURN_IF_ERROR(CheckBody(alloc.body, "an allocation"));
    Forget(alloc.buffer);
    return absl::OkStatus();
  }
  absl::Status CheckNode(const TileOp& op) {
    if (op.intrinsic.empty()) return Broken("tile-op", "a tile operation names no intrinsic");
    if (op.operands.empty()) return Broken("tile-op", absl::StrCat(op.intrinsic, " has no operands"));
    for (const BufferRegion& operand : op.operands) HONE_RETURN_IF_ERROR(CheckRegion(operand));
    if (const absl::Status fits = CheckTileOp(op); !fits.ok()) return Broken("tile-op", std::string(fits.message()));
    return CheckWritable(op.operands[0].buffer);
  }
  absl::Status CheckNode(const Evaluate& evaluate) {
    HONE_RETURN_IF_ERROR(Need(evaluate.value, "an evaluated expression"));
    if (IsBarrier(evaluate) || IsCommitGroup(evaluate) || WaitGroup(evaluate).has_value()) return absl::OkStatus();
    if (const std::optional<Store> update = AtomicUpdate(evaluate)) return CheckNode(*update);
    if (const std::optional<Store> copy = AsyncCopy(evaluate)) return CheckAsyncCopy(*copy);
    if (const Call* call = evaluate.value.As<Call>(); call != nullptr && call->args.size() == 1) {
      const IntrinsicInfo* info = FindIntrinsic(call->name);
      if (info != nullptr && info->stands_alone && call->args[0] && call->args[0].As<Load>() != nullptr)
        return Check(call->args[0]);
    }
    return Check(evaluate.value);
  }

  absl::Status CheckAsyncCopy(const Store& copy) {
    HONE_RETURN_IF_ERROR(CheckNode(copy));
    const IfThenElseExpr* choice = copy.value.As<IfThenElseExpr>();
    const Buffer& from = (choice == nullptr ? copy.value : choice->yes).As<Load>()->buffer;
    if (IsSharedByThreads(copy.buffer.scope()) && from.scope() == Scope::kGlobal && copy.value.type().is_scalar())
      return absl::OkStatus();
    return Broken("async-copy",
                  absl::StrCat("from ", from.name(), " in scope ", std::string(ToText(from.scope())), " to ",
                               copy.buffer.name(), " in scope ", std::string(ToText(copy.buffer.scope())),
                               "; an asynchronous copy takes one element from global to shared memory"));
  }

  std::string place_;
  int blocks_ = 0;   // around what is checked
  int whiles_ = 0;   // around it
  int guarded_ = 0;  // inside a condition: constant indices may be out of range, never run
  absl::flat_hash_set<Var> defined_vars_, vars_in_scope_, loops_outside_;
  absl::flat_hash_set<Buffer> defined_buffers_, buffers_in_scope_, read_only_;
  std::vector<const For*> loops_;  // since the enclosing block
};

}  // namespace

absl::Status Verify(const PrimFunc& f) { return Verifier().Run(f); }

}  // namespace hone
