#include "compiler/lower/threads/bank_conflicts.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

constexpr int kLanes = kWarpThreads;
constexpr int64_t kWidest = 16;  // bytes of an access

using Lanes = std::array<int64_t, kLanes>;
using Active = std::array<bool, kLanes>;

// A warp of the first block, walking through the kernel.
class Walk {
 public:
  Walk(const Launch& launch, const DeviceKernel& kernel, std::map<const void*, BankCount>& counts,
       std::vector<const void*>& order)
      : kernel_(kernel), counts_(counts), order_(order), threads_(launch.block) {
    for (const DeviceKernel::Shared& shared : kernel.shared) start_[shared.buffer] = shared.offset;
  }

  absl::Status Run(int64_t first_thread) {
    Active active;
    for (int lane = 0; lane < kLanes; ++lane) {
      int64_t number = first_thread + lane;
      active[static_cast<size_t>(lane)] = number < threads_[0] * threads_[1] * threads_[2];
      for (size_t axis = 0; axis < 3; ++axis) {
        if (kernel_.block_index[axis]) values_[kernel_.block_index[axis].id()].fill(0);
        if (kernel_.thread_index[axis])
          values_[kernel_.thread_index[axis].id()][static_cast<size_t>(lane)] = number % threads_[axis];
        number /= threads_[axis];
      }
    }
    OnStmt(kernel_.body, active);
    return status_;
  }

 private:
  // ---- Integers, one for each lane

  Lanes DependsOnData(const Expr& e) {
    if (status_.ok())
      status_ = absl::FailedPreconditionError(
          absl::StrCat("bank conflicts cannot be counted: ", ToText(e), " depends on data"));
    return Lanes{};
  }
  Lanes Eval(const Expr& e) {
    Lanes value{};
    if (const std::optional<int64_t> constant = ConstantValue(e)) {
      value.fill(*constant);
    } else if (const VarRef* ref = e.As<VarRef>()) {
      const auto found = values_.find(ref->var.id());
      return found == values_.end() ? DependsOnData(e) : found->second;
    } else if (const Cast* cast = e.As<Cast>(); cast != nullptr && cast->a.type().is_int()) {
      return Eval(cast->a);
    } else if (const Not* negated = e.As<Not>()) {
      value = Eval(negated->a);
      for (int64_t& v : value) v = v == 0;
    } else if (const Binary* binary = e.As<Binary>(); binary != nullptr && !binary->a.type().is_float()) {
      const Lanes a = Eval(binary->a), b = Eval(binary->b);
      for (size_t l = 0; l < kLanes; ++l) value[l] = EvalInt(binary->op, a[l], b[l], binary->a.type()).value_or(0);
    } else {
      return DependsOnData(e);
    }
    return value;
  }
  Active Where(const Expr& condition, const Active& active) {
    const Lanes holds = Eval(condition);
    Active both;
    for (size_t l = 0; l < kLanes; ++l) both[l] = active[l] && holds[l] != 0;
    return both;
  }

  static Active Without(const Active& active, const Active& others) {
    Active left;
    for (size_t l = 0; l < kLanes; ++l) left[l] = active[l] && !others[l];
    return left;
  }

  // ---- Statements

  void OnStmt(const Stmt& stmt, const Active& active) {
    if (!status_.ok() || std::ranges::none_of(active, [](bool on) { return on; })) return;
    if (const For* loop = stmt.As<For>()) return OnFor(*loop, active);
    if (const IfThen* branch = stmt.As<IfThen>()) return OnBranch(*branch, active);
    if (const Let* let = stmt.As<Let>()) {
      if (let->value.type().is_int() && let->value.type().is_scalar() && !HasLoad(let->value))
        values_[let->var.id()] = Eval(let->value);
      OnLoads(stmt, let->value, active);
      return OnStmt(let->body, active);
    }
    if (const Store* store = stmt.As<Store>()) {
      OnLoads(stmt, store->value, active);
      return Touch(stmt, store->buffer, store->indices[0], active);
    }
    if (const TileOp* op = stmt.As<TileOp>()) return OnTileOp(stmt, *op, active);
    if (const Evaluate* evaluate = stmt.As<Evaluate>()) {
      if (const std::optional<Store> store = EffectStore(*evaluate))
        Touch(stmt, store->buffer, store->indices[0], active);
      return;
    }
    ForEachChild(
        stmt, [&](const Stmt& s) { OnStmt(s, active); }, [](const Expr&) {});
  }

  void OnFor(const For& loop, const Active& active) {
    const Evaluate* evaluate = loop.annotations.contains(kCopiesRun) ? loop.body.As<Evaluate>() : nullptr;
    if (evaluate != nullptr) {
      const Store copy = *AsyncCopy(*evaluate);
      return TouchRun(loop.body, copy.buffer, Substitute(copy.indices[0], loop.var, loop.min),
                      ConstantValue(loop.extent).value_or(1), active);
    }
    const Lanes min = Eval(loop.min), extent = Eval(loop.extent);
    for (int64_t i = 0;; ++i) {
      Active inside;
      for (size_t l = 0; l < kLanes; ++l) {
        inside[l] = active[l] && i < extent[l];
        values_[loop.var.id()][l] = min[l] + i;
      }
      if (!status_.ok() || std::ranges::none_of(inside, [](bool on) { return on; })) return;
      OnStmt(loop.body, inside);
    }
  }

  void OnBranch(const IfThen& branch, const Active& active) {
    const Active yes = Where(branch.condition, active);
    OnStmt(branch.yes, yes);
    if (branch.no) OnStmt(branch.no, Without(active, yes));
  }

  // Rows of 8 lanes at a time.
  void OnTileOp(const Stmt& stmt, const TileOp& op, const Active& active) {
    const TileIntrinsic& intrinsic = *FindTileIntrinsic(op.intrinsic);
    for (size_t i = 1; i < op.operands.size(); ++i) {
      const BufferRegion& operand = op.operands[i];
      if (operand.buffer.scope() != Scope::kShared) continue;
      Active named = active;
      const int64_t rows = ConstantValue(intrinsic.meaning.params[i - 1].shape()[0]).value_or(kLanes);
      for (int64_t lane = rows; lane < kLanes; ++lane) named[static_cast<size_t>(lane)] = false;
      Request(stmt, Addresses(operand.buffer, operand.region[0].min), kMatrixRowBytes, named);
    }
  }

  void OnLoads(const Stmt& stmt, const Expr& root, const Active& active) {
    if (const IfThenElseExpr* choice = root.As<IfThenElseExpr>(); choice != nullptr && !HasLoad(choice->condition)) {
      const Active yes = Where(choice->condition, active);
      OnLoads(stmt, choice->yes, yes);
      return OnLoads(stmt, choice->no, Without(active, yes));
    }
    if (const Load* load = root.As<Load>()) Touch(stmt, load->buffer, load->indices[0], active);
    ForEachChild(root, [&](const Expr& e) { OnLoads(stmt, e, active); });
  }

  // ---- Accesses

  void Touch(const Stmt& stmt, const Buffer& buffer, const Expr& index, const Active& active) {
    if (buffer.scope() != Scope::kShared || std::ranges::none_of(active, [](bool on) { return on; })) return;
    const Ramp* ramp = index.As<Ramp>();
    if (index.type().is_scalar()) return TouchRun(stmt, buffer, index, 1, active);
    if (ramp == nullptr) {
      DependsOnData(index);
      return;
    }
    if (IsConst(ramp->stride, 1)) return TouchRun(stmt, buffer, ramp->base, index.type().lanes, active);
    for (int lane = 0; lane < index.type().lanes; ++lane)
      TouchRun(stmt, buffer, ramp->base + ramp->stride * IntConst(lane, ramp->stride.type()), 1, active);
  }

  void TouchRun(const Stmt& stmt, const Buffer& buffer, const Expr& first, int64_t elements, const Active& active) {
    Lanes address = Addresses(buffer, first);
    const int64_t bytes = elements * buffer.type().bytes();
    int64_t width = kWidest;
    const auto fits = [&] {
      bool aligned = bytes % width == 0;
      for (size_t l = 0; l < kLanes; ++l) aligned = aligned && (!active[l] || address[l] % width == 0);
      return aligned;
    };
    while (width > buffer.type().bytes() && !fits()) width /= 2;
    for (int64_t done = 0; done < bytes; done += width) {
      Request(stmt, address, width, active);
      for (int64_t& at : address) at += width;
    }
  }

  Lanes Addresses(const Buffer& buffer, const Expr& index) {
    Lanes address = Eval(index);
    for (int64_t& at : address) at = start_.at(buffer) + at * buffer.type().bytes();
    return address;
  }

  void Request(const Stmt& stmt, const Lanes& address, int64_t width, const Active& active) {
    BankCount& count = counts_[&stmt.node()];
    if (count.statement.empty()) {
      const std::string text = ToText(stmt);
      count.statement = text.substr(0, text.find('\n'));
      order_.push_back(&stmt.node());
    }
    ++count.requests;
    const int64_t together = width <= kBankBytes ? kLanes : kLanes * kBankBytes / width;
    for (int64_t first = 0; first < kLanes; first += together) {
      std::array<std::set<int64_t>, kBanks> words;
      for (int64_t l = first; l < first + together; ++l) {
        if (!active[static_cast<size_t>(l)]) continue;
        const int64_t begin = address[static_cast<size_t>(l)];
        for (int64_t word = begin / kBankBytes; word <= (begin + width - 1) / kBankBytes; ++word)
          words[static_cast<size_t>(word % kBanks)].insert(word);
      }
      size_t most = 0;
      for (const std::set<int64_t>& of_bank : words) most = std::max(most, of_bank.size());
      count.turns += static_cast<int64_t>(most);
      count.least += most > 0 ? 1 : 0;
    }
  }

  const DeviceKernel& kernel_;
  std::map<const void*, BankCount>& counts_;
  std::vector<const void*>& order_;
  const Extents threads_;
  std::map<Buffer, int64_t> start_;
  std::unordered_map<uint64_t, Lanes> values_;  // of integer variables, by their ids
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<BankCount>> CountBankConflicts(const Launch& launch, const DeviceKernel& kernel) {
  std::map<const void*, BankCount> counts;
  std::vector<const void*> order;
  const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  for (int64_t first = 0; first < threads; first += kLanes) {
    Walk walk(launch, kernel, counts, order);
    if (const absl::Status status = walk.Run(first); !status.ok()) return status;
  }
  std::vector<BankCount> in_order;
  for (const void* stmt : order) in_order.push_back(counts.at(stmt));
  return in_order;
}

}  // namespace hone
