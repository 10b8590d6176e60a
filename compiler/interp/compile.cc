#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/interp/bytecode.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/text.h"
#include "compiler/ir/tile_intrinsic.h"
#include "compiler/ir/visit.h"
#include "compiler/support/status_macros.h"

namespace hone::interp {
namespace {

double Rsqrt(double x) { return 1 / std::sqrt(x); }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double RoundHalfEven(double x) { return std::nearbyint(x); }

using Function1 = double (*)(double);
Function1 FindFunction1(std::string_view name) {
  static const std::map<std::string_view, Function1> kFunctions = {
      {"exp", std::exp},     {"exp2", std::exp2}, {"log", std::log},     {"log2", std::log2},  {"sqrt", std::sqrt},
      {"rsqrt", Rsqrt},      {"tanh", std::tanh}, {"erf", std::erf},     {"sigmoid", Sigmoid}, {"sin", std::sin},
      {"cos", std::cos},     {"tan", std::tan},   {"floor", std::floor}, {"ceil", std::ceil},  {"round", RoundHalfEven},
      {"trunc", std::trunc}, {"abs", std::fabs},
  };
  const auto found = kFunctions.find(name);
  return found == kFunctions.end() ? nullptr : found->second;
}

class Compiler {
 public:
  Compiler(const PrimFunc& f, const InterpretOptions& options) : f_(f), options_(options) {}

  absl::StatusOr<Code> Whole() {
    HONE_RETURN_IF_ERROR(Parameters());
    HONE_RETURN_IF_ERROR(Statement(f_.body));
    Emit(Op::kReturn);
    return Finish();
  }

  absl::StatusOr<Code> Elements(bool& complete) {
    HONE_RETURN_IF_ERROR(Parameters());
    complete = true;
    std::vector<const BlockRealize*> blocks;
    std::map<uint64_t, int> writers;
    absl::Status status;
    ForEachStmt(f_.body, [&](const Stmt& s) {
      if (const BlockRealize* realize = s.As<BlockRealize>()) {
        for (const Buffer& b : realize->block.allocs) {
          const int buffer = AddBuffer(b);
          if (status.ok()) status = Shape(buffer);
          Emit(Op::kAlloc, 1, 0, buffer);
        }
        if (!realize->block.iters.empty() || !ContainsBlock(realize->block.body)) blocks.push_back(realize);
      } else if (const Store* store = s.As<Store>()) {
        ++writers[store->buffer.id()];
      }
      return true;
    });
    Emit(Op::kReturn);
    for (const BlockRealize* realize : blocks) {
      if (!status.ok() || !IsPointwise(*realize)) complete = false;
      if (!complete) break;
      if (!ElementBlock(*realize, complete).ok()) complete = false;
    }
    return Finish();
  }

 private:
  // ---- slots and instructions

  int NewSlots(int n) {
    const int slot = next_;
    next_ += n;
    high_ = std::max(high_, next_);
    return slot;
  }
  // Constants have negative numbers until Finish knows where they go.
  int Constant(Slot value) {
    const auto [found, added] = constant_index_.emplace(std::bit_cast<uint64_t>(value), code_.constants.size());
    if (added) code_.constants.push_back(value);
    return -1 - static_cast<int>(found->second);
  }
  int IntSlot(int64_t value) { return Constant({.i = value}); }
  int FloatSlot(double value) { return Constant({.f = value}); }

  int Emit(Op op, int lanes = 1, int dst = 0, int a = 0, int b = 0, int c = 0) {
    code_.instrs.push_back({op, static_cast<uint16_t>(lanes), dst, a, b, c});
    return static_cast<int>(code_.instrs.size()) - 1;
  }
  int Here() const { return static_cast<int>(code_.instrs.size()); }
  void Land(int jump) { code_.instrs[static_cast<size_t>(jump)].c = Here(); }

  int TypeIndex(DType type) {
    const DType element = type.element();
    const auto found = std::find(code_.types.begin(), code_.types.end(), element);
    if (found != code_.types.end()) return static_cast<int>(found - code_.types.begin());
    code_.types.push_back(element);
    return static_cast<int>(code_.types.size()) - 1;
  }
  // The type arithmetic is done in.
  DType Working(DType type) const {
    return options_.double_accumulation && type.is_float() ? DType::Float(64, type.lanes) : type;
  }

  absl::StatusOr<Code> Finish() {
    code_.num_slots = high_;
    const auto place = [&](int& slot) {
      if (slot < 0) slot = high_ + (-1 - slot);
    };
    for (Instr& instr : code_.instrs) {
      const bool refers = instr.op != Op::kAlloc && instr.op != Op::kLoad && instr.op != Op::kStore &&
                          instr.op != Op::kAsyncCopy && instr.op != Op::kWaitGroup;
      place(instr.dst);
      if (refers) {
        place(instr.a);
        place(instr.b);
      }
      if (instr.op == Op::kSelect || instr.op == Op::kCheckDomain || instr.op == Op::kFma || instr.op == Op::kFmaF32) {
        place(instr.c);
      }
    }
    for (Access& access : code_.accesses) {
      for (int& slot : access.indices) place(slot);
    }
    for (BufferInfo& info : code_.buffers) {
      for (int& slot : info.dims) place(slot);
    }
    for (int& slot : code_.dim_slots) place(slot);
    return std::move(code_);
  }

  // ---- names

  absl::Status Parameters() {
    for (const Var& dim : f_.dims) {
      const int slot = NewSlots(1);
      vars_[dim.id()] = slot;
      code_.dim_slots.push_back(slot);
    }
    for (size_t i = 0; i < f_.params.size(); ++i) {
      const int buffer = AddBuffer(f_.params[i]);
      code_.buffers[static_cast<size_t>(buffer)].param = static_cast<int>(i);
      if (!f_.params[i].type().is_scalar()) return Error("a parameter of vectors");
    }
    return absl::OkStatus();
  }

  int AddBuffer(const Buffer& buffer) {
    const auto [found, added] = buffers_.emplace(buffer.id(), static_cast<int>(code_.buffers.size()));
    if (added) code_.buffers.push_back({buffer, Working(buffer.type()), {}, -1});
    return found->second;
  }

  // The sizes of a buffer as slots of their own, which stay.
  absl::Status Shape(int index) {
    const Buffer buffer = code_.buffers[static_cast<size_t>(index)].buffer;
    if (!buffer.type().is_scalar())
      return absl::UnimplementedError(absl::StrCat("buffer ", buffer.name(), " of vectors"));
    std::vector<int> dims;
    for (const Expr& extent : buffer.shape()) {
      HONE_ASSIGN_OR_RETURN(const int slot, Expression(extent));
      dims.push_back(slot);
    }
    code_.buffers[static_cast<size_t>(index)].dims = std::move(dims);
    return absl::OkStatus();
  }

  absl::Status Error(std::string_view message) const {
    return absl::InvalidArgumentError(absl::StrCat("interpreting ", f_.name, block_.empty() ? "" : ", block ", block_,
                                                   ": ", absl::string_view(message.data(), message.size())));
  }

  // ---- expressions

  absl::StatusOr<int> Expression(const Expr& e) {
    if (!e) return Error("an absent expression");
    if (++depth_ > 5000) return Error("an expression nests deeper than 5000");
    absl::StatusOr<int> slot = std::visit([&](const auto& node) { return Node(node, e.type()); }, e.node().kind);
    --depth_;
    return slot;
  }

  absl::StatusOr<int> Node(const IntImm& n, DType) { return IntSlot(n.value); }
  absl::StatusOr<int> Node(const FloatImm& n, DType type) {
    return FloatSlot(options_.double_accumulation ? n.value : RoundToType(n.value, type));
  }
  absl::StatusOr<int> Node(const VarRef& n, DType) {
    const auto found = vars_.find(n.var.id());
    if (found == vars_.end()) return Error(absl::StrCat("variable ", n.var.name(), " is used outside of its scope"));
    return found->second;
  }

  absl::StatusOr<int> Node(const Binary& n, DType) {
    const DType type = Working(n.a.type());
    HONE_ASSIGN_OR_RETURN(const int a, Expression(n.a));
    HONE_ASSIGN_OR_RETURN(const int b, Expression(n.b));
    const int lanes = type.lanes;
    const int dst = NewSlots(lanes);
    const int k = static_cast<int>(n.op);
    if (type.is_float()) {
      static constexpr Op kDouble[] = {Op::kAddF64, Op::kSubF64, Op::kMulF64, Op::kDivF64};
      static constexpr Op kSingle[] = {Op::kAddF32, Op::kSubF32, Op::kMulF32, Op::kDivF32};
      static constexpr Op kCompare[] = {Op::kEqF, Op::kNeF, Op::kLtF, Op::kLeF, Op::kGtF, Op::kGeF};
      if (n.op <= BinaryOp::kDiv) {
        const bool single = type.bits == 32;
        Emit(single ? kSingle[k] : kDouble[k], lanes, dst, a, b);
        if (type.bits == 16) Emit(Op::kRound, lanes, dst, dst, 0, TypeIndex(type));
      } else if (n.op == BinaryOp::kMin || n.op == BinaryOp::kMax) {
        Emit(n.op == BinaryOp::kMin ? Op::kMinF : Op::kMaxF, lanes, dst, a, b);
      } else if (IsComparison(n.op)) {
        Emit(kCompare[k - static_cast<int>(BinaryOp::kEq)], lanes, dst, a, b);
      } else {
        const int at = Emit(Op::kAnyFloat, lanes, dst, a, b, TypeIndex(type));
        code_.instrs[static_cast<size_t>(at)].aux = static_cast<uint16_t>(n.op);
      }
      return dst;
    }
    Emit(IntOp(n.op, type), lanes, dst, a, b, TypeIndex(type));
    code_.instrs.back().aux = static_cast<uint16_t>(n.op);
    if (code_.instrs.back().op == Op::kAnyInt || code_.instrs.back().op == Op::kFloorDivI ||
        code_.instrs.back().op == Op::kFloorModI) {
      code_.instrs.back().aux2 = Place("");
    }
    return dst;
  }

  static Op IntOp(BinaryOp op, DType type) {
    const bool wide = type == DType::Int(64, type.lanes), middle = type == DType::Int(32, type.lanes);
    const bool plain = type != DType::UInt(64, type.lanes);  // compares as it is kept
    switch (op) {
      case BinaryOp::kAdd: return wide ? Op::kAddI64 : middle ? Op::kAddI32 : Op::kAnyInt;
      case BinaryOp::kSub: return wide ? Op::kSubI64 : middle ? Op::kSubI32 : Op::kAnyInt;
      case BinaryOp::kMul: return wide ? Op::kMulI64 : middle ? Op::kMulI32 : Op::kAnyInt;
      case BinaryOp::kFloorDiv: return wide || middle ? Op::kFloorDivI : Op::kAnyInt;
      case BinaryOp::kFloorMod: return wide || middle ? Op::kFloorModI : Op::kAnyInt;
      case BinaryOp::kMin: return plain ? Op::kMinI : Op::kAnyInt;
      case BinaryOp::kMax: return plain ? Op::kMaxI : Op::kAnyInt;
      case BinaryOp::kEq: return Op::kEqI;
      case BinaryOp::kNe: return Op::kNeI;
      case BinaryOp::kLt: return plain ? Op::kLtI : Op::kAnyInt;
      case BinaryOp::kLe: return plain ? Op::kLeI : Op::kAnyInt;
      case BinaryOp::kGt: return plain ? Op::kGtI : Op::kAnyInt;
      case BinaryOp::kGe: return plain ? Op::kGeI : Op::kAnyInt;
      case BinaryOp::kAnd: return Op::kAnd;
      case BinaryOp::kOr: return Op::kOr;
      default: return Op::kAnyInt;
    }
  }

  absl::StatusOr<int> Node(const Not& n, DType type) {
    HONE_ASSIGN_OR_RETURN(const int a, Expression(n.a));
    const int dst = NewSlots(type.lanes);
    Emit(Op::kNot, type.lanes, dst, a);
    return dst;
  }

  absl::StatusOr<int> Node(const Cast& n, DType type) {
    HONE_ASSIGN_OR_RETURN(const int a, Expression(n.a));
    const DType from = n.a.type(), to = Working(type);
    const int dst = NewSlots(to.lanes);
    if (from.is_float() && to.is_float()) {
      const bool widens = to.bits == 64 || (to.bits == 32 && from.bits == 16);
      Emit(widens ? Op::kMove : Op::kRound, to.lanes, dst, a, 0, TypeIndex(to));
    } else if (from.is_float()) {
      Emit(to.is_bool() ? Op::kFloatToBool : Op::kFloatToInt, to.lanes, dst, a, 0, TypeIndex(to));
    } else if (to.is_float()) {
      Emit(Op::kIntToFloat, to.lanes, dst, a, TypeIndex(from), TypeIndex(to));
      code_.instrs.back().aux = static_cast<uint16_t>(TypeIndex(from));
      code_.instrs.back().b = 0;
    } else {
      Emit(Op::kWrap, to.lanes, dst, a, 0, TypeIndex(to));
    }
    return dst;
  }

  absl::StatusOr<int> Node(const Select& n, DType type) {
    HONE_ASSIGN_OR_RETURN(const int condition, Expression(n.condition));
    HONE_ASSIGN_OR_RETURN(const int yes, Expression(n.yes));
    HONE_ASSIGN_OR_RETURN(const int no, Expression(n.no));
    const int dst = NewSlots(type.lanes);
    Emit(Op::kSelect, type.lanes, dst, condition, yes, no);
    code_.instrs.back().aux2 = n.condition.type().is_scalar() ? 0 : 1;
    return dst;
  }

  absl::StatusOr<int> Node(const IfThenElseExpr& n, DType type) {
    if (n.condition.type().is_scalar()) {
      HONE_ASSIGN_OR_RETURN(const int condition, Expression(n.condition));
      const int dst = NewSlots(type.lanes);
      const int to_no = Emit(Op::kJumpIfZero, 1, 0, condition);
      HONE_ASSIGN_OR_RETURN(const int yes, Expression(n.yes));
      Emit(Op::kMove, type.lanes, dst, yes);
      const int to_end = Emit(Op::kJump);
      Land(to_no);
      HONE_ASSIGN_OR_RETURN(const int no, Expression(n.no));
      Emit(Op::kMove, type.lanes, dst, no);
      Land(to_end);
      return dst;
    }
    // Lane by lane: loads of a side run only in the lanes that choose it.
    HONE_ASSIGN_OR_RETURN(const int condition, Expression(n.condition));
    const int lanes = type.lanes;
    const int inverse = NewSlots(lanes);
    Emit(Op::kNot, lanes, inverse, condition);
    const int outer = guard_;
    const auto guarded = [&](const Expr& side, int own) -> absl::StatusOr<int> {
      guard_ = own;
      if (outer >= 0 && guard_lanes_ == lanes) {
        guard_ = NewSlots(lanes);
        Emit(Op::kAnd, lanes, guard_, own, outer);
      }
      const int outer_lanes = std::exchange(guard_lanes_, lanes);
      const absl::StatusOr<int> slot = Expression(side);
      guard_ = outer;
      guard_lanes_ = outer_lanes;
      return slot;
    };
    HONE_ASSIGN_OR_RETURN(const int yes, guarded(n.yes, condition));
    HONE_ASSIGN_OR_RETURN(const int no, guarded(n.no, inverse));
    const int dst = NewSlots(lanes);
    Emit(Op::kSelect, lanes, dst, condition, yes, no);
    code_.instrs.back().aux2 = 1;
    return dst;
  }

  absl::StatusOr<int> Node(const LetExpr& n, DType) {
    HONE_ASSIGN_OR_RETURN(vars_[n.var.id()], Expression(n.value));
    return Expression(n.body);
  }

  absl::StatusOr<int> Node(const Ramp& n, DType type) {
    HONE_ASSIGN_OR_RETURN(const int base, Expression(n.base));
    HONE_ASSIGN_OR_RETURN(const int stride, Expression(n.stride));
    const int dst = NewSlots(type.lanes);
    Emit(Op::kRamp, type.lanes, dst, base, stride, TypeIndex(type));
    return dst;
  }

  absl::StatusOr<int> Node(const Broadcast& n, DType type) {
    HONE_ASSIGN_OR_RETURN(const int value, Expression(n.value));
    const int dst = NewSlots(type.lanes);
    Emit(Op::kSplat, type.lanes, dst, value);
    return dst;
  }

  absl::StatusOr<int> Node(const Load& n, DType type) {
    HONE_ASSIGN_OR_RETURN(const int access, AddAccess(n.buffer, n.indices, n.mask, type.lanes));
    const int dst = NewSlots(type.lanes);
    Emit(Op::kLoad, type.lanes, dst, access);
    return dst;
  }

  absl::StatusOr<int> Node(const Call& n, DType result) {
    const DType declared = n.args.empty() ? result : n.args[0].type();
    const DType type = Working(declared);
    std::vector<int> args;
    for (const Expr& arg : n.args) {
      HONE_ASSIGN_OR_RETURN(const int slot, Expression(arg));
      args.push_back(slot);
    }
    const IntrinsicInfo* info = FindIntrinsic(n.name);
    if (info == nullptr || static_cast<int>(args.size()) != info->arity) {
      return absl::UnimplementedError(
          absl::StrCat("the interpreter knows no function ", n.name, " of ", args.size(), " arguments"));
    }
    if (info->stands_alone) return args[0];  // a prefetch: its address was checked, its element is not used
    const int lanes = result.lanes;
    const int dst = NewSlots(lanes);
    if (n.name == "isnan" || n.name == "isinf") {
      if (!type.is_float()) {
        Emit(Op::kSplat, lanes, dst, IntSlot(0));
      } else {
        Emit(n.name == "isnan" ? Op::kIsNan : Op::kIsInf, lanes, dst, args[0]);
      }
      return dst;
    }
    if (!type.is_float()) {
      if (n.name == "popcount") {
        Emit(Op::kPopcount, lanes, dst, args[0], 0, TypeIndex(type));
      } else if (n.name == "abs") {
        Emit(Op::kAbsI, lanes, dst, args[0], 0, TypeIndex(type));
      } else if (n.name == "floor" || n.name == "ceil" || n.name == "round" || n.name == "trunc") {
        Emit(Op::kMove, lanes, dst, args[0]);
      } else {
        return Error(absl::StrCat(n.name, " of ", ToText(type)));
      }
      return dst;
    }
    if (n.name == "fma") {
      const bool single = type.bits == 32;
      Emit(single ? Op::kFmaF32 : Op::kFma, lanes, dst, args[0], args[1], args[2]);
      if (type.bits == 16) Emit(Op::kRound, lanes, dst, dst, 0, TypeIndex(type));
      return dst;
    }
    if (n.name == "pow") {
      code_.calls2.push_back([](double x, double y) { return std::pow(x, y); });
      Emit(Op::kCall2, lanes, dst, args[0], args[1], static_cast<int>(code_.calls2.size()) - 1);
    } else {
      const Function1 function = FindFunction1(n.name);
      if (function == nullptr) return Error(absl::StrCat(n.name, " of ", ToText(type)));
      code_.calls1.push_back(function);
      Emit(Op::kCall1, lanes, dst, args[0], 0, static_cast<int>(code_.calls1.size()) - 1);
    }
    if (type.bits != 64) Emit(Op::kRound, lanes, dst, dst, 0, TypeIndex(type));
    return dst;
  }

  // ---- accesses

  struct View {  // a buffer that names a part of another
    Buffer source;
    std::vector<int> mins;  // slots
  };

  absl::StatusOr<int> AddAccess(const Buffer& named, const std::vector<Expr>& indices, const Expr& mask, int lanes) {
    Access access;
    access.lanes = lanes;
    access.place = block_;
    access.statement = statement_;
    access.atomic = updated_ && named.SameAs(updated_);
    for (const Expr& index : indices) {
      HONE_ASSIGN_OR_RETURN(const int slot, Expression(index));
      access.indices.push_back(slot);
      access.strides.push_back(index.type().is_scalar() ? 0 : 1);
      if (index.type().lanes != 1 && index.type().lanes != lanes) return Error("an index of another number of lanes");
    }
    if (static_cast<int>(indices.size()) != named.rank())
      return Error(absl::StrCat("buffer ", named.name(), " with ", indices.size(), " indices"));
    Buffer buffer = named;
    for (auto view = views_.find(buffer.id()); view != views_.end(); view = views_.find(buffer.id())) {
      // Leading dimensions that the view dropped are points of the source.
      const size_t dropped = view->second.mins.size() - access.indices.size();
      access.indices.insert(access.indices.begin(), view->second.mins.begin(),
                            view->second.mins.begin() + static_cast<ptrdiff_t>(dropped));
      access.strides.insert(access.strides.begin(), dropped, 0);
      for (size_t d = dropped; d < access.indices.size(); ++d) {
        const int width = access.strides[d] == 0 ? 1 : lanes;
        const int sum = NewSlots(width);
        int min = view->second.mins[d];
        if (width > 1) {
          min = NewSlots(width);
          Emit(Op::kSplat, width, min, view->second.mins[d]);
        }
        Emit(Op::kAddI64, width, sum, access.indices[d], min);
        access.indices[d] = sum;
      }
      buffer = view->second.source;
    }
    const auto found = buffers_.find(buffer.id());
    if (found == buffers_.end()) return Error(absl::StrCat("buffer ", buffer.name(), " is used outside of its scope"));
    access.buffer = found->second;
    if (mask) {
      HONE_ASSIGN_OR_RETURN(const int slot, Expression(mask));
      // A slot of its own: those of constants have negative numbers, as "no mask" has.
      access.mask = NewSlots(lanes);
      Emit(mask.type().is_scalar() ? Op::kSplat : Op::kMove, lanes, access.mask, slot);
    }
    if (guard_ >= 0 && guard_lanes_ == lanes) {
      if (access.mask == -1) {
        access.mask = guard_;
      } else {
        const int both = NewSlots(lanes);
        Emit(Op::kAnd, lanes, both, access.mask, guard_);
        access.mask = both;
      }
    }
    code_.accesses.push_back(std::move(access));
    return static_cast<int>(code_.accesses.size()) - 1;
  }

  // ---- statements

  absl::Status Statement(const Stmt& stmt) {
    if (!stmt) return absl::OkStatus();
    if (++depth_ > 5000) return Error("statements nest deeper than 5000");
    const int mark = next_;
    const Stmt outer = std::exchange(statement_, stmt);
    const absl::Status status = std::visit([&](const auto& node) { return Do(node); }, stmt.node().kind);
    statement_ = outer;
    next_ = mark;
    --depth_;
    return status;
  }

  absl::Status Do(const For& n) {
    HONE_ASSIGN_OR_RETURN(const int min, Expression(n.min));
    int end;
    if (ConstantValue(n.min).has_value() && ConstantValue(n.extent).has_value()) {
      end = IntSlot(static_cast<int64_t>(static_cast<uint64_t>(*ConstantValue(n.min)) +
                                         static_cast<uint64_t>(*ConstantValue(n.extent))));
    } else {
      HONE_ASSIGN_OR_RETURN(const int extent, Expression(n.extent));
      end = NewSlots(1);
      Emit(Op::kAddI64, 1, end, min, extent);
    }
    const bool launches = StartsLaunch(n);
    if (launches) {
      Emit(Op::kLaunch);
      in_launch_ = true;
    }
    const int var = NewSlots(1);
    vars_[n.var.id()] = var;
    loops_[n.var.id()] = {n.min, n.extent};
    if (in_launch_ && n.thread.starts_with("threadIdx")) {
      HONE_RETURN_IF_ERROR(ForkThreads(n, min, var, end));
    } else {
      HONE_RETURN_IF_ERROR(Loop(n, min, var, end));
    }
    if (launches) {
      Emit(Op::kLaunchEnd);
      in_launch_ = false;
    }
    return absl::OkStatus();
  }

  // Whether the loop is the outermost of a launch: of a nest that is bound to blocks and threads and in which nothing
  // but barriers orders these, or in which threads do something together. While it is made of blocks without a barrier,
  // what blocks need of each other still orders them: lowering has to put the barriers in, and the iterations run one
  // after the other.
  bool StartsLaunch(const For& n) const {
    if (in_launch_ || (!n.thread.starts_with("blockIdx") && !n.thread.starts_with("threadIdx"))) return false;
    return ContainsBarrier(n.body) || ContainsCollective(n.body) || (!ContainsBlock(n.body) && block_.empty());
  }

  absl::Status Loop(const For& n, int min, int var, int end) {
    Emit(Op::kMove, 1, var, min);
    const int test = Emit(Op::kLoopTest, 1, 0, var, end);
    const int body = Here();
    if (in_launch_ && n.thread.starts_with("blockIdx")) {
      if (!open_forks_.empty()) {
        return Error(absl::StrCat("loop ", n.var.name(), " is bound to ", n.thread, " inside a loop over ",
                                  code_.forks[static_cast<size_t>(open_forks_.back())].thread,
                                  "; blocks are made of threads, so its place is outside"));
      }
      Emit(Op::kBlockIndex, 1, 0, var);
      code_.instrs.back().aux = Place(n.thread);
    }
    loops_around_.push_back({var, n.var.name()});
    HONE_RETURN_IF_ERROR(Statement(n.body));
    loops_around_.pop_back();
    Emit(Op::kLoopNext, 1, 0, var, end, body);
    Land(test);
    return absl::OkStatus();
  }

  // The loop's iterations run side by side, from barrier to barrier.
  absl::Status ForkThreads(const For& n, int min, int var, int end) {
    for (const int open : open_forks_) {
      if (code_.forks[static_cast<size_t>(open)].thread == n.thread) {
        return Error(absl::StrCat("loop ", n.var.name(), " is bound to ", n.thread, " inside another loop over ",
                                  n.thread, "; lowering makes one of the two"));
      }
    }
    if (open_forks_.empty()) HONE_RETURN_IF_ERROR(AllocateShared(n.body));
    Emit(Op::kMove, 1, var, min);
    const int fork = static_cast<int>(code_.forks.size());
    code_.forks.push_back({n.thread, {}});
    const std::vector<LoopAround> outside =
        open_forks_.empty() ? std::exchange(loops_around_, {}) : std::vector<LoopAround>();
    open_forks_.push_back(fork);
    const int start = Emit(Op::kFork, 1, 0, var, end);
    code_.instrs.back().aux = static_cast<uint16_t>(fork);
    HONE_RETURN_IF_ERROR(Statement(n.body));
    Emit(Op::kThreadEnd);
    Land(start);
    open_forks_.pop_back();
    if (open_forks_.empty()) loops_around_ = outside;
    return absl::OkStatus();
  }

  // What the threads share is there before they start.
  absl::Status AllocateShared(const Stmt& body) {
    std::vector<Buffer> shared;
    ForEachStmt(body, [&](const Stmt& s) {
      if (const Alloc* alloc = s.As<Alloc>()) shared.push_back(alloc->buffer);
      if (const BlockRealize* realize = s.As<BlockRealize>())
        shared.insert(shared.end(), realize->block.allocs.begin(), realize->block.allocs.end());
      return true;
    });
    std::erase_if(shared, [](const Buffer& b) { return b.scope() != Scope::kShared; });
    for (const Buffer& b : shared) {
      HONE_RETURN_IF_ERROR(Allocate(b));
      shared_.insert(b.id());
    }
    return absl::OkStatus();
  }

  absl::Status Do(const BlockRealize& n) {
    const Block& block = n.block;
    if (n.values.size() != block.iters.size()) {
      return Error(
          absl::StrCat("block ", block.name, " binds ", n.values.size(), " of ", block.iters.size(), " variables"));
    }
    const std::string outer = std::exchange(block_, block.name);
    int skip = -1;
    if (n.predicate && !IsConst(n.predicate, 1)) {
      HONE_ASSIGN_OR_RETURN(const int predicate, Expression(n.predicate));
      skip = Emit(Op::kJumpIfZero, 1, 0, predicate);
    }
    for (size_t i = 0; i < block.iters.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(const int value, Expression(n.values[i]));
      vars_[block.iters[i].var.id()] = value;
      HONE_RETURN_IF_ERROR(CheckDomain(block.iters[i], n.values[i], value));
    }
    HONE_RETURN_IF_ERROR(BlockInside(block, true));
    if (skip >= 0) Land(skip);
    block_ = outer;
    return absl::OkStatus();
  }

  absl::Status CheckDomain(const IterVar& iter, const Expr& value, int slot) {
    if (!options_.check_bounds) return absl::OkStatus();
    if (const VarRef* ref = value.As<VarRef>()) {
      const auto loop = loops_.find(ref->var.id());
      const bool whole = loop != loops_.end() && StructuralEqual(loop->second.min, iter.domain.min) &&
                         StructuralEqual(loop->second.extent, iter.domain.extent);
      if (whole) return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(const int min, Expression(iter.domain.min));
    HONE_ASSIGN_OR_RETURN(const int extent, Expression(iter.domain.extent));
    Emit(Op::kCheckDomain, 1, 0, slot, min, extent);
    code_.instrs.back().aux = Place(absl::StrCat(block_, ": ", iter.var.name()));
    return absl::OkStatus();
  }

  uint16_t Place(const std::string& what) {
    const std::string text = what.empty() ? block_ : what;
    const auto found = std::find(code_.places.begin(), code_.places.end(), text);
    if (found != code_.places.end()) return static_cast<uint16_t>(found - code_.places.begin());
    if (code_.places.size() >= 65535) return 0;
    code_.places.push_back(text);
    return static_cast<uint16_t>(code_.places.size() - 1);
  }

  absl::Status BlockInside(const Block& block, bool with_init) {
    for (const Buffer& b : block.allocs) HONE_RETURN_IF_ERROR(Allocate(b));
    for (const MatchBuffer& match : block.matches) {
      View view{match.source.buffer, {}};
      for (const Range& range : match.source.region) {
        HONE_ASSIGN_OR_RETURN(const int min, Expression(range.min));
        view.mins.push_back(min);
      }
      if (match.buffer.rank() > static_cast<int>(view.mins.size()))
        return Error("a matched buffer of more dimensions than its source");
      views_[match.buffer.id()] = std::move(view);
    }
    if (block.init && with_init) {
      std::vector<int> skips;
      for (const IterVar& iter : block.iters) {
        if (iter.kind != IterKind::kReduce) continue;
        HONE_ASSIGN_OR_RETURN(const int min, Expression(iter.domain.min));
        skips.push_back(Emit(Op::kJumpIfNotEqual, 1, 0, vars_[iter.var.id()], min));
      }
      HONE_RETURN_IF_ERROR(Statement(block.init));
      for (const int jump : skips) Land(jump);
    }
    return Statement(block.body);
  }

  absl::Status Allocate(const Buffer& buffer) {
    if (shared_.contains(buffer.id())) return absl::OkStatus();
    const int index = AddBuffer(buffer);
    if (!open_forks_.empty()) {
      std::vector<int>& own = code_.forks[static_cast<size_t>(open_forks_.back())].buffers;
      if (std::find(own.begin(), own.end(), index) == own.end()) own.push_back(index);
    }
    HONE_RETURN_IF_ERROR(Shape(index));
    Emit(Op::kAlloc, 1, 0, index);
    code_.instrs.back().aux = Place("");
    return absl::OkStatus();
  }

  absl::Status Do(const Store& n) {
    HONE_ASSIGN_OR_RETURN(const int value, Expression(n.value));
    HONE_ASSIGN_OR_RETURN(const int access, AddAccess(n.buffer, n.indices, n.mask, n.value.type().lanes));
    code_.buffers[static_cast<size_t>(code_.accesses[static_cast<size_t>(access)].buffer)].written = true;
    Emit(Op::kStore, n.value.type().lanes, value, access);
    return absl::OkStatus();
  }
  absl::Status Do(const Seq& n) {
    for (const Stmt& s : n.stmts) HONE_RETURN_IF_ERROR(Statement(s));
    return absl::OkStatus();
  }
  absl::Status Do(const IfThen& n) {
    HONE_ASSIGN_OR_RETURN(const int condition, Expression(n.condition));
    const int to_no = Emit(Op::kJumpIfZero, 1, 0, condition);
    HONE_RETURN_IF_ERROR(Statement(n.yes));
    if (!n.no) {
      Land(to_no);
      return absl::OkStatus();
    }
    const int to_end = Emit(Op::kJump);
    Land(to_no);
    HONE_RETURN_IF_ERROR(Statement(n.no));
    Land(to_end);
    return absl::OkStatus();
  }
  absl::Status Do(const Let& n) {
    HONE_ASSIGN_OR_RETURN(vars_[n.var.id()], Expression(n.value));
    return Statement(n.body);
  }
  absl::Status Do(const Alloc& n) {
    HONE_RETURN_IF_ERROR(Allocate(n.buffer));
    return Statement(n.body);
  }
  absl::Status Do(const TileOp& n) {
    HONE_RETURN_IF_ERROR(CheckTileOp(n));
    if (FindTileIntrinsic(n.intrinsic)->threads > 1) return Collective(n);
    return Statement(TileMeaning(n));
  }
  absl::Status Do(const Evaluate& n) {
    if (IsBarrier(n)) {
      Emit(Op::kBarrier);
      code_.instrs.back().aux = static_cast<uint16_t>(code_.barriers.size());
      code_.barriers.push_back(Meeting());
      return absl::OkStatus();
    }
    if (IsCommitGroup(n)) {
      Emit(Op::kCommitGroup);
      return absl::OkStatus();
    }
    if (const std::optional<int64_t> groups = WaitGroup(n)) {
      Emit(Op::kWaitGroup, 1, 0, static_cast<int>(std::min<int64_t>(*groups, 1 << 20)));
      return absl::OkStatus();
    }
    if (const std::optional<struct Store> copy = AsyncCopy(n)) return BeginCopy(*copy);
    if (const std::optional<struct Store> update = AtomicUpdate(n)) {
      updated_ = update->buffer;  // threads change places at barriers alone: nobody comes between
      const absl::Status status = Do(*update);
      updated_ = Buffer();
      return status;
    }
    return Expression(n.value).status();
  }

  BarrierCode Meeting() const {
    BarrierCode meeting{block_, {}, {}};
    for (const LoopAround& loop : loops_around_) {
      meeting.loops.push_back(loop.slot);
      meeting.names.push_back(loop.name);
    }
    return meeting;
  }

  absl::Status Collective(const TileOp& op) {
    CollectiveCode collective{FindTileIntrinsic(op.intrinsic), {}, Meeting()};
    if (open_forks_.empty()) {
      return Error(absl::StrCat(op.intrinsic, " is done by ", collective.intrinsic->threads,
                                " threads of a launch together, and stands outside of them"));
    }
    const int outputs = collective.intrinsic->meaning.num_outputs();
    for (const BufferRegion& region : op.operands) {
      std::vector<Expr> first;
      std::vector<int64_t> extents;
      for (const Range& range : region.region) {
        first.push_back(range.min);
        extents.push_back(*ConstantValue(range.extent));
      }
      HONE_ASSIGN_OR_RETURN(const int access, AddAccess(region.buffer, first, Expr(), 1));
      if (static_cast<int>(collective.operands.size()) < outputs)
        code_.buffers[static_cast<size_t>(code_.accesses[static_cast<size_t>(access)].buffer)].written = true;
      collective.operands.push_back({access, std::move(extents)});
    }
    Emit(Op::kCollective);
    code_.instrs.back().aux = static_cast<uint16_t>(code_.collectives.size());
    code_.collectives.push_back(std::move(collective));
    return absl::OkStatus();
  }
  static bool ContainsCollective(const Stmt& root) {
    bool found = false;
    ForEachStmt(root, [&](const Stmt& s) {
      const TileOp* op = s.As<TileOp>();
      const TileIntrinsic* intrinsic = op == nullptr ? nullptr : FindTileIntrinsic(op->intrinsic);
      found = found || (intrinsic != nullptr && intrinsic->threads > 1);
      return !found;
    });
    return found;
  }

  absl::Status BeginCopy(const struct Store& copy) {
    HONE_ASSIGN_OR_RETURN(const int to, AddAccess(copy.buffer, copy.indices, Expr(), 1));
    code_.buffers[static_cast<size_t>(code_.accesses[static_cast<size_t>(to)].buffer)].written = true;
    const IfThenElseExpr* choice = copy.value.As<IfThenElseExpr>();
    const Load& source = *(choice == nullptr ? copy.value : choice->yes).As<Load>();
    int to_fill = -1;
    if (choice != nullptr) {
      HONE_ASSIGN_OR_RETURN(const int condition, Expression(choice->condition));
      to_fill = Emit(Op::kJumpIfZero, 1, 0, condition);
    }
    HONE_ASSIGN_OR_RETURN(const int from, AddAccess(source.buffer, source.indices, Expr(), 1));
    Emit(Op::kAsyncCopy, 1, 0, to, from);
    if (choice == nullptr) return absl::OkStatus();
    const int to_end = Emit(Op::kJump);
    Land(to_fill);
    HONE_ASSIGN_OR_RETURN(const int fill, Expression(choice->no));
    Emit(Op::kAsyncCopy, 1, fill, to, -1);
    Land(to_end);
    return absl::OkStatus();
  }

  // ---- single elements

  static bool ContainsBlock(const Stmt& stmt) {
    bool found = false;
    ForEachStmt(stmt, [&](const Stmt& s) {
      found = found || s.As<BlockRealize>() != nullptr;
      return !found;
    });
    return found;
  }

  // Does the block compute one element from its own index, over whole loops?
  bool IsPointwise(const BlockRealize& n) {
    const Block& block = n.block;
    if (ContainsBlock(block.body) || !block.matches.empty()) return false;
    if (n.predicate && !IsConst(n.predicate, 1)) return false;
    if (n.values.size() != block.iters.size()) return false;
    for (size_t i = 0; i < block.iters.size(); ++i) {
      const VarRef* ref = n.values[i].As<VarRef>();
      const bool constant =
          IsConst(block.iters[i].domain.extent, 1) && StructuralEqual(n.values[i], block.iters[i].domain.min);
      if ((ref == nullptr && !constant) || block.iters[i].kind == IterKind::kOpaque) return false;
      if (ref == nullptr) continue;
      const For* loop = FindLoop(ref->var);
      if (loop == nullptr || !StructuralEqual(loop->min, block.iters[i].domain.min) ||
          !StructuralEqual(loop->extent, block.iters[i].domain.extent)) {
        return false;
      }
    }
    return true;
  }

  const For* FindLoop(const Var& var) {
    if (all_loops_.empty()) {
      ForEachStmt(f_.body, [&](const Stmt& s) {
        if (const For* loop = s.As<For>()) all_loops_.emplace(loop->var.id(), loop);
        return true;
      });
    }
    const auto found = all_loops_.find(var.id());
    return found == all_loops_.end() ? nullptr : found->second;
  }

  absl::Status ElementBlock(const BlockRealize& n, bool& complete) {
    const Block& block = n.block;
    block_ = block.name;
    const Store* target = nullptr;
    bool fits = true;
    for (const Stmt& part : {block.init, block.body}) {
      if (!part) continue;
      ForEachStmt(part, [&](const Stmt& s) {
        if (const Store* store = s.As<Store>()) {
          if (target == nullptr) target = store;
          fits = fits && store->buffer == target->buffer && !store->mask &&
                 store->indices.size() == target->indices.size();
          for (size_t i = 0; fits && i < store->indices.size(); ++i)
            fits = StructuralEqual(store->indices[i], target->indices[i]);
        }
        return true;
      });
    }
    fits = fits && target != nullptr && buffers_.contains(target->buffer.id());
    std::map<uint64_t, size_t> dimension;  // of a spatial variable
    if (fits) {
      for (size_t d = 0; d < target->indices.size(); ++d) {
        const VarRef* ref = target->indices[d].As<VarRef>();
        const bool point = IsConst(target->indices[d], 0) && IsConst(target->buffer.shape()[d], 1);
        if (ref == nullptr && !point) fits = false;
        if (ref != nullptr && !dimension.emplace(ref->var.id(), d).second) fits = false;
      }
    }
    size_t spatial = 0;
    for (const IterVar& iter : block.iters) {
      if (iter.kind != IterKind::kSpatial) continue;
      ++spatial;
      if (!dimension.contains(iter.var.id()) && !IsConst(iter.domain.extent, 1)) fits = false;
      if (dimension.contains(iter.var.id())) continue;
      --spatial;
    }
    fits = fits && spatial == dimension.size();
    // What it reads of itself is the element it computes.
    const auto reads_itself_elsewhere = [&](const Stmt& part) {
      bool elsewhere = false;
      if (part) {
        ForEachExpr(part, [&](const Expr& e) {
          const Load* load = e.As<Load>();
          if (load == nullptr || !fits || !(load->buffer == target->buffer)) return true;
          for (size_t i = 0; i < load->indices.size(); ++i) {
            elsewhere = elsewhere || !StructuralEqual(load->indices[i], target->indices[i]);
          }
          return true;
        });
      }
      return elsewhere;
    };
    if (fits && (reads_itself_elsewhere(block.init) || reads_itself_elsewhere(block.body))) fits = false;
    const int buffer = fits ? buffers_[target->buffer.id()] : -1;
    if (!fits || code_.elements.contains(buffer)) {
      complete = false;
      return absl::OkStatus();
    }
    ElementCode element;
    element.entry = Here();
    element.index_slots.assign(target->indices.size(), -1);
    std::vector<const IterVar*> reduce;
    for (const IterVar& iter : block.iters) {
      const int slot = NewSlots(1);
      vars_[iter.var.id()] = slot;
      const auto d = dimension.find(iter.var.id());
      if (d != dimension.end()) {
        element.index_slots[d->second] = slot;
        continue;
      }
      HONE_ASSIGN_OR_RETURN(const int min, Expression(iter.domain.min));
      Emit(Op::kMove, 1, slot, min);
      if (iter.kind == IterKind::kReduce) reduce.push_back(&iter);
    }
    for (const Buffer& b : block.allocs) HONE_RETURN_IF_ERROR(Allocate(b));
    const int mark = next_;
    HONE_RETURN_IF_ERROR(Statement(block.init));
    std::vector<std::pair<int, int>> loops;  // test instruction, first of the body
    for (const IterVar* iter : reduce) {
      const int var = vars_[iter->var.id()];
      HONE_ASSIGN_OR_RETURN(const int min, Expression(iter->domain.min));
      HONE_ASSIGN_OR_RETURN(const int extent, Expression(iter->domain.extent));
      const int end = NewSlots(1);
      Emit(Op::kAddI64, 1, end, min, extent);
      Emit(Op::kMove, 1, var, min);
      const int test = Emit(Op::kLoopTest, 1, 0, var, end);
      loops.emplace_back(test, Here());
    }
    HONE_RETURN_IF_ERROR(Statement(block.body));
    for (size_t i = loops.size(); i-- > 0;) {
      const Instr test = code_.instrs[static_cast<size_t>(loops[i].first)];
      Emit(Op::kLoopNext, 1, 0, test.a, test.b, loops[i].second);
      Land(loops[i].first);
    }
    Emit(Op::kReturn);
    // Slots are not reused: the code of one buffer calls that of others in its midst.
    next_ = std::max(mark, high_);
    code_.elements.emplace(buffer, std::move(element));
    return absl::OkStatus();
  }

  const PrimFunc& f_;
  const InterpretOptions options_;
  Code code_;
  int next_ = 0, high_ = 0, depth_ = 0;
  int guard_ = -1, guard_lanes_ = 1;  // lanes in which loads may run: inside a lane-wise if_then_else
  std::string block_;                 // being compiled, for messages
  std::unordered_map<uint64_t, size_t> constant_index_;
  std::unordered_map<uint64_t, int> vars_, buffers_;
  std::unordered_map<uint64_t, Range> loops_;
  std::unordered_map<uint64_t, View> views_;
  std::unordered_map<uint64_t, const For*> all_loops_;
  struct LoopAround {
    int slot;
    std::string name;
  };
  Stmt statement_;  // being compiled
  Buffer updated_;  // by the atomic update that is being compiled
  bool in_launch_ = false;
  std::vector<LoopAround> loops_around_;  // since the outermost fork
  std::vector<int> open_forks_;
  std::set<uint64_t> shared_;  // buffers that were allocated in front of the threads that share them
};

}  // namespace

absl::StatusOr<Code> Compile(const PrimFunc& f, const InterpretOptions& options) {
  return Compiler(f, options).Whole();
}
absl::StatusOr<Code> CompileElements(const PrimFunc& f, bool& complete) { return Compiler(f, {}).Elements(complete); }

}  // namespace hone::interp
