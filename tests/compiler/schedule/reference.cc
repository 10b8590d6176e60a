#include "tests/compiler/schedule/reference.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/visit.h"
#include "compiler/oracle/oracle.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "tests/compiler/schedule/hand_written.h"
#include "tests/compiler/text/reads_back.h"

namespace hone::testing {
namespace {

size_t NumInputs(const PrimFunc& f) { return f.params.size() - static_cast<size_t>(f.num_outputs()); }

NdArray ArrayFor(const Buffer& buffer) {
  std::vector<int64_t> shape;
  for (const Expr& extent : buffer.shape()) shape.push_back(*ConstantValue(extent));
  return NdArray(buffer.type(), shape);
}

std::string Differs(const Buffer& param, int64_t element, double got, double want, const std::string& why) {
  return absl::StrCat(param.name(), " at element ", element, " is ", got, ", must be ", want, why);
}

}  // namespace

Reference::Reference(const SmallWorkload& workload, uint64_t seed) : workload_(workload) {
  const PrimFunc& func = workload_.func;
  arguments_ = RandomArguments(func, seed, workload_.exact ? InputKind::kInteger : InputKind::kUniform);
  if (workload_.exact) {
    expected_ = arguments_;
    const absl::Status ran = Interpret(func, expected_);
    HONE_CHECK(ran.ok()) << workload_.name << ": " << ran << "\n" << ToText(func);
    return;
  }
  const absl::StatusOr<PrimFunc> oracle = MakeOracle(func);
  HONE_CHECK(oracle.ok()) << workload_.name << ": " << oracle.status();
  expected_ = RandomArguments(*oracle, seed, InputKind::kUniform);
  for (size_t i = 0; i < NumInputs(func); ++i) expected_[i] = arguments_[i];
  const absl::Status ran = Interpret(*oracle, expected_);
  HONE_CHECK(ran.ok()) << workload_.name << ": " << ran << "\n" << ToText(*oracle);
}

std::string Reference::Compare(const std::vector<NdArray>& got) const {
  const PrimFunc& func = workload_.func;
  const size_t inputs = NumInputs(func);
  for (size_t p = inputs; p < func.params.size(); ++p) {
    const Buffer& param = func.params[p];
    if (workload_.exact) {
      if (got[p].data == expected_[p].data) continue;
      for (int64_t i = 0; i < got[p].NumElements(); ++i) {
        const double a = got[p].Get(i), b = expected_[p].Get(i);
        if (a != b) return Differs(param, i, a, b, "");
      }
      return absl::StrCat(param.name(), ": the sign of a zero differs");
    }
    const size_t output = p - inputs, outputs = func.params.size() - inputs;
    const bool has_default = expected_.size() == inputs + 3 * outputs && workload_.level != NumericLevel::kStrict;
    const NdArray &value = expected_[inputs + 2 * output],
                  &scale = expected_[inputs + (has_default ? 2 * outputs + output : 2 * output + 1)];
    for (int64_t i = 0; i < got[p].NumElements(); ++i) {
      const double error = ErrorOverBound(got[p].Get(i), value.Get(i), scale.Get(i), param.type(), workload_.level);
      if (error > 1) return Differs(param, i, got[p].Get(i), value.Get(i), absl::StrCat(": ", error, " bounds off"));
    }
  }
  return "";
}

std::string Reference::CheckInterpreted(const ScheduledProgram& program) const {
  if (const absl::Status verified = Verify(program.main); !verified.ok()) {
    return absl::StrCat("the verifier: ", verified.ToString());
  }
  if (std::string text = ReadBackError(program.main); !text.empty()) return text;
  std::vector<NdArray> actual = arguments_;
  for (const Prepare& prepare : program.prepares) {
    if (const absl::Status valid = Verify(prepare.func); !valid.ok()) {
      return absl::StrCat("the verifier, of a prepare function: ", valid.ToString());
    }
    if (std::string text = ReadBackError(prepare.func); !text.empty()) return text;
    std::vector<NdArray> args = {actual[prepare.param], ArrayFor(prepare.func.params[1])};
    if (const absl::Status packed = Interpret(prepare.func, args); !packed.ok()) {
      return absl::StrCat("a prepare function: ", packed.ToString());
    }
    actual[prepare.param] = args[1];
  }
  if (const absl::Status ran = Interpret(program.main, actual); !ran.ok()) {
    return absl::StrCat("the interpreter: ", ran.ToString());
  }
  return Compare(actual);
}

const Reference& ReferenceOf(SmallWorkload workload, const Trace& trace) {
  if (const NumericLevel level = NumericLevelOf(trace); level != NumericLevel::kStrict) {
    workload.exact = false;
    workload.level = level;
  }
  return ReferenceOf(workload);
}

const Reference& ReferenceOf(const SmallWorkload& workload) {
  static auto& all = *new std::map<std::string, std::unique_ptr<Reference>>;
  static auto& last = *new std::unique_ptr<Reference>;  // of a workload that is not of the table
  for (const std::vector<SmallWorkload>* table : {&SmallWorkloads(), &HandWrittenWorkloads()}) {
    for (const SmallWorkload& known : *table) {
      if (known.name != workload.name || known.exact != workload.exact) continue;
      if (!known.func.body.SameAs(workload.func.body)) continue;
      std::unique_ptr<Reference>& made = all[workload.name];
      if (made == nullptr) made = std::make_unique<Reference>(workload);
      return *made;
    }
  }
  last = std::make_unique<Reference>(workload);
  return *last;
}

ScheduledProgram Reversed(ScheduledProgram program) {
  // Threads that reduce together start with the first of the reduction.
  std::set<Var> reducing;
  ForEachStmt(program.main.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    for (size_t i = 0; realize != nullptr && i < realize->values.size(); ++i) {
      if (realize->block.iters[i].kind == IterKind::kReduce) reducing.merge(FreeVars(realize->values[i]));
    }
    return true;
  });
  program.main.body = RewriteBottomUp(program.main.body, [&](const Stmt& stmt) -> std::optional<Stmt> {
    const For* loop = stmt.As<For>();
    if (loop == nullptr ||
        (loop->kind != ForKind::kParallel && loop->kind != ForKind::kVectorized &&
         loop->kind != ForKind::kThreadBinding) ||
        reducing.contains(loop->var)) {
      return std::nullopt;
    }
    For copy = *loop;
    copy.body = Substitute(loop->body, loop->var, loop->extent - 1 - Expr(loop->var));
    return Stmt::Make(std::move(copy));
  });
  return program;
}

}  // namespace hone::testing
