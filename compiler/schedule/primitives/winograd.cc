#include "compiler/schedule/primitives/winograd.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int64_t kKernel = 3;

// ---- The transforms of one dimension: rows of B^T, G and A^T applied to a vector. Sums that several rows share are
// written alike, so that they are computed once when the rows are unrolled.
using Vector = std::vector<Expr>;

Expr Times(double factor, const Expr& x) { return Const(factor, x.type()) * x; }

Vector TransformInput(int tile, const Vector& d) {
  if (tile == 2) return {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
  const Expr even = d[4] - Times(4, d[2]), odd = d[3] - Times(4, d[1]);
  const Expr even2 = d[4] - d[2], odd2 = Times(2, d[3] - d[1]);
  return {Times(4, d[0]) + (d[4] - Times(5, d[2])), even + odd, even - odd, even2 + odd2, even2 - odd2,
          Times(4, d[1]) + (d[5] - Times(5, d[3]))};
}

// Of integers, kIntegerScale times that.
constexpr int64_t kIntegerScale = 2;

Vector TransformKernel(int tile, const Vector& g) {
  const Expr outer = g[0] + g[2];
  if (g[0].type().is_int()) return {Times(kIntegerScale, g[0]), outer + g[1], outer - g[1], Times(kIntegerScale, g[2])};
  if (tile == 2) return {g[0], Times(0.5, outer + g[1]), Times(0.5, outer - g[1]), g[2]};
  const Expr outer2 = g[0] + Times(4, g[2]), middle2 = Times(2, g[1]);
  return {Times(0.25, g[0]),
          Times(-1.0 / 6, outer + g[1]),
          Times(-1.0 / 6, outer - g[1]),
          Times(1.0 / 24, outer2 + middle2),
          Times(1.0 / 24, outer2 - middle2),
          g[2]};
}

Vector TransformOutput(int tile, const Vector& m) {
  const Expr sum = m[1] + m[2], difference = m[1] - m[2];
  if (tile == 2) return {m[0] + sum, difference - m[3]};
  const Expr sum2 = m[3] + m[4], difference2 = m[3] - m[4];
  return {m[0] + sum + sum2, difference + Times(2, difference2), sum + Times(4, sum2),
          difference + Times(8, difference2) + m[5]};
}

// options[index], for an index that is a constant once its loop is unrolled.
Expr ChooseRow(const Expr& index, const Vector& options) {
  Expr chosen = options.back();
  for (size_t i = options.size() - 1; i-- > 0;) {
    chosen = IfThenElse(Eq(index, IntConst(static_cast<int64_t>(i))), options[i], chosen);
  }
  return chosen;
}

// ---- What the block is.
struct Convolution {
  Buffer x, w, y;
  int param = 0;     // of w
  Vector y_indices;  // over the block's iteration variables
  std::vector<IterVar> iters;
  // Iteration variables; batch: -1 when there is none.
  int batch = -1, h = -1, w_out = -1, f = -1, kh = -1, kw = -1, c = -1;
  int x_h = -1, x_w = -1, x_c = -1, x_batch = -1;  // dimensions of x
  int64_t dilation_h = 1, dilation_w = 1;          // x is read at h + kh * dilation_h + base_h and the same for w
  Expr base_h, base_w;
  int w_kh = -1, w_kw = -1, w_c = -1, w_f = -1;  // dimensions of w

  bool of_integers() const { return y.type() == kInt32; }
  DType transformed() const { return of_integers() ? DType::Int(16) : kFloat32; }
  const Var& var(int iter) const { return iters[static_cast<size_t>(iter)].var; }
  int64_t extent(int iter) const {
    return iter < 0 ? 1 : *ConstantValue(iters[static_cast<size_t>(iter)].domain.extent);
  }
};

int IterOf(const std::vector<IterVar>& iters, const Expr& e) {
  const VarRef* ref = e.As<VarRef>();
  for (size_t i = 0; ref != nullptr && i < iters.size(); ++i) {
    if (iters[i].var == ref->var) return static_cast<int>(i);
  }
  return -1;
}

absl::Status NotOne(const std::string& why) {
  return Refused("it is not a 3x3 convolution of stride 1 with constant weights: ", why);
}

// Which dimension of w is which, but for kh against kw: that only x tells.
absl::Status MatchWeights(const Load& load, Convolution* conv) {
  if (load.indices.size() != 4) return NotOne(Message("the weights have ", load.indices.size(), " dimensions, not 4"));
  for (size_t d = 0; d < 4; ++d) {
    const int iter = IterOf(conv->iters, load.indices[d]);
    if (iter < 0) return NotOne(Message("index ", load.indices[d], " of the weights is not one variable"));
    if (conv->iters[static_cast<size_t>(iter)].kind == IterKind::kSpatial) {
      if (conv->f >= 0) return NotOne("the weights move with two spatial variables");
      conv->f = iter;
      conv->w_f = static_cast<int>(d);
    }
  }
  return conv->f >= 0 ? absl::OkStatus() : NotOne("the weights move with no spatial variable");
}

absl::Status MatchInput(const Load& load, Convolution* conv) {
  std::vector<Var> vars;
  for (const IterVar& iter : conv->iters) vars.push_back(iter.var);
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const std::optional<LinearForm> form = DetectLinear(load.indices[d], vars);
    if (!form.has_value()) return NotOne(Message("index ", load.indices[d], " of the input is not affine"));
    int spatial = -1, reduce = -1, used = 0;
    int64_t dilation = 1;
    for (size_t i = 0; i < vars.size(); ++i) {
      if (form->coefficients[i] == 0) continue;
      const bool reduces = conv->iters[i].kind == IterKind::kReduce;
      if (form->coefficients[i] < 1 || (!reduces && form->coefficients[i] != 1)) {
        return NotOne(Message("index ", load.indices[d], " of the input has a stride"));
      }
      (reduces ? reduce : spatial) = static_cast<int>(i);
      if (reduces) dilation = form->coefficients[i];
      ++used;
    }
    const int dim = static_cast<int>(d);
    if (used == 2 && spatial >= 0 && reduce >= 0 && conv->extent(reduce) == kKernel && conv->h < 0) {
      conv->h = spatial, conv->kh = reduce, conv->x_h = dim, conv->base_h = form->base;
      conv->dilation_h = dilation;
    } else if (used == 2 && spatial >= 0 && reduce >= 0 && conv->extent(reduce) == kKernel && conv->w_out < 0) {
      conv->w_out = spatial, conv->kw = reduce, conv->x_w = dim, conv->base_w = form->base;
      conv->dilation_w = dilation;
    } else if (used == 1 && reduce >= 0 && dilation == 1 && conv->c < 0 && IsConst(form->base, 0)) {
      conv->c = reduce, conv->x_c = dim;
    } else if (used == 1 && spatial >= 0 && conv->batch < 0 && IsConst(form->base, 0)) {
      conv->batch = spatial, conv->x_batch = dim;
    } else if (used != 0 || !IsConst(form->base, 0)) {
      return NotOne(Message("index ", load.indices[d], " of the input is of another form"));
    }
  }
  if (conv->h < 0 || conv->w_out < 0 || conv->c < 0) return NotOne("the input has no window of 3 by 3");
  return absl::OkStatus();
}

// Of what is multiplied: a float32, or a byte as an int32.
const Load* MatchFactor(const Expr& e) {
  const Cast* cast = e.As<Cast>();
  const Load* load = (cast == nullptr ? e : cast->a).As<Load>();
  if (load == nullptr) return nullptr;
  const DType type = load->buffer.type();
  const bool byte = cast != nullptr && e.type() == kInt32 && type.bits == 8 && type.is_int();
  return byte || (cast == nullptr && type == kFloat32) ? load : nullptr;
}

// a * b of two loads, whichever comes first.
std::optional<std::pair<const Load*, const Load*>> MatchProduct(const PrimFunc& func, const Expr& e) {
  const Binary* product = e.As<Binary>();
  if (product == nullptr || product->op != BinaryOp::kMul) return std::nullopt;
  const Load* a = MatchFactor(product->a);
  const Load* b = MatchFactor(product->b);
  if (a == nullptr || b == nullptr) return std::nullopt;
  const auto constant = [&func](const Buffer& buffer) {
    for (size_t i = 0; i < func.params.size(); ++i) {
      if (func.params[i] == buffer) return func.IsConstant(static_cast<int>(i));
    }
    return false;
  };
  if (constant(b->buffer)) return std::pair(a, b);
  if (constant(a->buffer)) return std::pair(b, a);
  return std::nullopt;
}

absl::StatusOr<Convolution> MatchConvolution(const PrimFunc& func, const Block& block) {
  Convolution conv;
  conv.iters = block.iters;
  for (const IterVar& iter : block.iters) {
    if (!ConstantValue(iter.domain.extent).has_value() || !IsConst(iter.domain.min, 0)) {
      return NotOne(Message("the domain of ", iter.var, " is not from 0 to a number"));
    }
  }
  const Store* store = block.body.As<Store>();
  const Store* init = block.init.As<Store>();
  const Binary* sum = store == nullptr ? nullptr : store->value.As<Binary>();
  if (store == nullptr || init == nullptr || sum == nullptr || sum->op != BinaryOp::kAdd ||
      (store->value.type() != kFloat32 && store->value.type() != kInt32) ||
      !StructuralEqual(init->value, Const(0, store->value.type()))) {
    return NotOne("the update is not y = y + a * b in float32 or int32 from 0");
  }
  const bool self_first = sum->a.As<Load>() != nullptr;
  const Load* self = (self_first ? sum->a : sum->b).As<Load>();
  const auto product = MatchProduct(func, self_first ? sum->b : sum->a);
  if (self == nullptr || !(self->buffer == store->buffer) || !product.has_value()) {
    return NotOne("the update is not y = y + a * b with a constant b");
  }
  conv.x = product->first->buffer;
  conv.w = product->second->buffer;
  conv.y = store->buffer;
  conv.y_indices = store->indices;
  for (size_t i = 0; i < func.params.size(); ++i) {
    if (func.params[i] == conv.w) conv.param = static_cast<int>(i);
  }
  HONE_RETURN_IF_ERROR(MatchWeights(*product->second, &conv));
  HONE_RETURN_IF_ERROR(MatchInput(*product->first, &conv));
  for (size_t d = 0; d < 4; ++d) {
    const int iter = IterOf(conv.iters, product->second->indices[d]);
    if (iter == conv.kh) conv.w_kh = static_cast<int>(d);
    if (iter == conv.kw) conv.w_kw = static_cast<int>(d);
    if (iter == conv.c) conv.w_c = static_cast<int>(d);
  }
  if (conv.w_kh < 0 || conv.w_kw < 0 || conv.w_c < 0) return NotOne("input and weights share other variables");
  for (int i = 0; i < static_cast<int>(conv.iters.size()); ++i) {
    const bool known =
        i == conv.batch || i == conv.h || i == conv.w_out || i == conv.f || i == conv.kh || i == conv.kw || i == conv.c;
    if (!known && conv.extent(i) != 1) return NotOne(Message("variable ", conv.var(i), " has no place in it"));
  }
  for (const Expr& extent : conv.x.shape()) {
    if (!ConstantValue(extent).has_value()) return NotOne("the input's shape is symbolic");
  }
  return conv;
}

// Of bytes: no sum on the way leaves int32 with so many channels. In one dimension an output takes three products, of
// numbers of V and U that are at most 1 * 2, 2 * 3 and 1 * 3 times those of X and W.
int64_t MostChannels(const Convolution& conv) {
  constexpr int64_t kGrowth = 1 * 2 + 2 * 3 + 1 * 3;
  const auto largest = [](const Buffer& buffer) { return buffer.type().code == TypeCode::kUInt ? 255 : 128; };
  return std::numeric_limits<int32_t>::max() / (kGrowth * kGrowth * largest(conv.x) * largest(conv.w));
}

// The block stands as in a workload: a loop for every iteration variable, around it alone.
absl::StatusOr<int> UntouchedNest(const ProgramIndex& index, int node) {
  const BlockRealize& realize = index.realize(node);
  const std::vector<int> loops = index.LoopsAbove(node);
  bool plain = loops.size() == realize.values.size() && !loops.empty() && IsConst(realize.predicate, 1);
  for (size_t i = 0; plain && i < loops.size(); ++i) {
    const VarRef* value = realize.values[i].As<VarRef>();
    const For& loop = index.loop(loops[i]);
    plain = value != nullptr && value->var == loop.var && loop.kind == ForKind::kSerial;
  }
  if (!plain || index.BlocksBelow(loops.front()).size() != 1) {
    return Refused("it has been scheduled already; choose its algorithm first");
  }
  return loops.front();
}

// ---- The new blocks.
struct Axis {
  std::string name;
  int64_t extent = 1;
  IterKind kind = IterKind::kSpatial;
  ForKind loop = ForKind::kSerial;
};

// for axes..: block NAME: to[at(v)] = value(v), or += with an init of zero when one axis reduces. `value` is told what
// is known of v as well: what an element's place says of the tile it lies in is simpler within the domain.
Stmt MakeNest(const std::string& name, const std::vector<Axis>& axes, const Buffer& to,
              const std::function<Vector(const std::vector<Var>&)>& at,
              const std::function<Expr(const std::vector<Var>&, Analyzer& known)>& value) {
  BlockRealize realize;
  realize.predicate = True();
  realize.block.name = name;
  std::vector<Var> vars, loops;
  bool reduces = false;
  for (const Axis& axis : axes) {
    const Var& v = vars.emplace_back("v" + axis.name);
    const Var& loop = loops.emplace_back(axis.name);
    realize.block.iters.push_back({v, Range{IntConst(0), IntConst(axis.extent)}, axis.kind});
    realize.values.push_back(loop);
    reduces = reduces || axis.kind == IterKind::kReduce;
  }
  Analyzer known;
  for (const IterVar& iter : realize.block.iters) known.Bind(iter.var, iter.domain);
  const Vector indices = at(vars);
  Expr result = value(vars, known);
  if (reduces) {
    realize.block.init = Stmt::Make(Store{to, indices, Const(0, to.type()), Expr()});
    result = MakeLoad(to, indices) + result;
  }
  realize.block.body = Stmt::Make(Store{to, indices, std::move(result), Expr()});
  DeclareRegions(realize.block);
  Stmt nest = Stmt::Make(std::move(realize));
  for (size_t i = axes.size(); i-- > 0;) {
    nest = MakeLoop(loops[i], IntConst(axes[i].extent), std::move(nest), axes[i].loop);
  }
  return nest;
}

class Rewriter {
 public:
  Rewriter(const Convolution& conv, int tile)
      : conv_(conv),
        m_(tile),
        a_(tile + kKernel - 1),
        phases_(conv.dilation_h * conv.dilation_w),
        rows_((conv.extent(conv.h) + conv.dilation_h - 1) / conv.dilation_h),
        columns_((conv.extent(conv.w_out) + conv.dilation_w - 1) / conv.dilation_w),
        tiles_h_((rows_ + tile - 1) / tile),
        tiles_w_((columns_ + tile - 1) / tile),
        tiles_(conv.extent(conv.batch) * phases_ * tiles_h_ * tiles_w_) {
    const auto buffer = [&](const char* part, DType type, int64_t rows, int64_t channels) {
      return Buffer(Message(conv.y.name(), part), type,
                    {IntConst(rows), IntConst(a_), IntConst(tiles_), IntConst(channels)});
    };
    d_ = buffer("_input_rows", conv.transformed(), a_, conv.extent(conv.c));
    v_ = buffer("_input", conv.transformed(), a_, conv.extent(conv.c));
    product_ = buffer("_product", conv.y.type(), a_, conv.extent(conv.f));
    r_ = buffer("_output_rows", conv.y.type(), m_, conv.extent(conv.f));
    u_ = Buffer(conv.w.name(), conv.transformed(),
                {IntConst(a_), IntConst(a_), IntConst(conv.extent(conv.c)), IntConst(conv.extent(conv.f))});
    phased_ = Buffer(Message(conv.y.name(), "_phases"), conv.y.type(),
                     {IntConst(conv.extent(conv.batch)), IntConst(conv.dilation_h), IntConst(conv.dilation_w),
                      IntConst(rows_), IntConst(columns_), IntConst(conv.extent(conv.f))});
  }

  std::vector<Buffer> intermediates() const {
    std::vector<Buffer> buffers{d_, v_, product_, r_};
    if (dilated()) buffers.push_back(phased_);
    return buffers;
  }
  const Buffer& transformed_weights() const { return u_; }

  Stmt InputRows(const std::string& name) const {
    return MakeNest(name, {{"i", a_}, {"l", a_}, {"t", tiles_}, {"c", conv_.extent(conv_.c)}}, d_, Point,
                    [this](const std::vector<Var>& v, Analyzer& known) {
                      Vector column;
                      for (int64_t k = 0; k < a_; ++k) column.push_back(InputAt(v[2], IntConst(k), v[1], v[3], known));
                      return ChooseRow(v[0], TransformInput(m_, column));
                    });
  }
  Stmt Input(const std::string& name) const {
    return MakeNest(name, {{"i", a_}, {"j", a_}, {"t", tiles_}, {"c", conv_.extent(conv_.c)}}, v_, Point,
                    [this](const std::vector<Var>& v, Analyzer&) {
                      Vector row;
                      for (int64_t l = 0; l < a_; ++l) row.push_back(MakeLoad(d_, {v[0], IntConst(l), v[2], v[3]}));
                      return ChooseRow(v[1], TransformInput(m_, row));
                    });
  }
  Stmt Product(const std::string& name) const {
    const Axis channels{"c", conv_.extent(conv_.c), IterKind::kReduce};
    return MakeNest(
        name, {{"i", a_}, {"j", a_}, {"t", tiles_}, {"f", conv_.extent(conv_.f)}, channels}, product_,
        [](const std::vector<Var>& v) {
          return Vector{v[0], v[1], v[2], v[3]};
        },
        [this](const std::vector<Var>& v, Analyzer&) {
          const DType sum = product_.type();
          return As(sum, MakeLoad(v_, {v[0], v[1], v[2], v[4]})) * As(sum, MakeLoad(u_, {v[0], v[1], v[4], v[3]}));
        });
  }
  Stmt OutputRows(const std::string& name) const {
    return MakeNest(name, {{"p", m_}, {"j", a_}, {"t", tiles_}, {"f", conv_.extent(conv_.f)}}, r_, Point,
                    [this](const std::vector<Var>& v, Analyzer&) {
                      Vector column;
                      for (int64_t k = 0; k < a_; ++k) {
                        column.push_back(MakeLoad(product_, {IntConst(k), v[1], v[2], v[3]}));
                      }
                      return ChooseRow(v[0], TransformOutput(m_, column));
                    });
  }
  bool dilated() const { return phases_ > 1; }

  // Of a convolution that is not dilated.
  Stmt Output(const std::string& name) const {
    return OverOutput(
        name, [this](const OutputPoint& at, Analyzer& known) { return OutputAt(at.batch, at.h, at.w, at.f, known); });
  }
  // Of a dilated one: the images that it falls apart into, the batch and their place in it outermost ..
  Stmt Phases(const std::string& name) const {
    return MakeNest(name,
                    {{"n", conv_.extent(conv_.batch)},
                     {"ph", conv_.dilation_h},
                     {"pw", conv_.dilation_w},
                     {"h", rows_},
                     {"w", columns_},
                     {"f", conv_.extent(conv_.f)}},
                    phased_, Point, [this](const std::vector<Var>& v, Analyzer& known) {
                      const Expr image = (v[0] * IntConst(conv_.dilation_h) + v[1]) * IntConst(conv_.dilation_w) + v[2];
                      return OutputAt(image, v[3], v[4], v[5], known);
                    });
  }
  // .. and where their elements go.
  Stmt Together(const std::string& name) const {
    return OverOutput(name, [this](const OutputPoint& at, Analyzer& known) {
      const Expr dilation_h = IntConst(conv_.dilation_h), dilation_w = IntConst(conv_.dilation_w);
      Vector indices{at.batch,
                     FloorMod(at.h, dilation_h),
                     FloorMod(at.w, dilation_w),
                     FloorDiv(at.h, dilation_h),
                     FloorDiv(at.w, dilation_w),
                     at.f};
      for (Expr& index : indices) index = known.Simplify(index);
      return MakeLoad(phased_, std::move(indices));
    });
  }

  // prepare(W, U): U[i,j,c,f] = G(i) W[.,.,c,f] G(j)^T. The weights of an input channel stay in the cache for all i,
  // and with i and j known what the rows of G have in common is computed once.
  PrimFunc PrepareWeights() const {
    const Buffer original(conv_.w.name(), conv_.w.type(), conv_.w.shape());
    const Buffer result(Message(conv_.w.name(), "_packed"), u_.type(), u_.shape());
    const Axis c{"c", conv_.extent(conv_.c), IterKind::kSpatial, ForKind::kParallel};
    const Axis i{"i", a_, IterKind::kSpatial, ForKind::kUnrolled};
    const Axis f{"f", conv_.extent(conv_.f)};
    const Axis j{"j", a_, IterKind::kSpatial, ForKind::kUnrolled};
    BlockRealize root;
    root.predicate = True();
    root.block.name = "root";
    root.block.body = MakeNest(
        "transform", {c, i, f, j}, result,
        [](const std::vector<Var>& v) {
          return Vector{v[1], v[3], v[0], v[2]};
        },
        [&](const std::vector<Var>& v, Analyzer&) {
          Vector columns;
          for (int64_t kw = 0; kw < kKernel; ++kw) {
            Vector column;
            for (int64_t kh = 0; kh < kKernel; ++kh) {
              Vector at(4);
              at[static_cast<size_t>(conv_.w_kh)] = IntConst(kh);
              at[static_cast<size_t>(conv_.w_kw)] = IntConst(kw);
              at[static_cast<size_t>(conv_.w_c)] = v[0];
              at[static_cast<size_t>(conv_.w_f)] = v[2];
              column.push_back(As(u_.type(), MakeLoad(original, std::move(at))));
            }
            columns.push_back(ChooseRow(v[1], TransformKernel(m_, column)));
          }
          return ChooseRow(v[3], TransformKernel(m_, columns));
        });
    PrimFunc prepare;
    prepare.name = Message("prepare_", conv_.w.name());
    prepare.params = {original, result};
    prepare.attrs["outputs"] = int64_t{1};
    prepare.body = Stmt::Make(std::move(root));
    return prepare;
  }

 private:
  static Expr As(DType type, Expr e) { return e.type() == type ? std::move(e) : MakeCast(type, std::move(e)); }
  static Vector Point(const std::vector<Var>& v) { return Vector(v.begin(), v.end()); }

  struct OutputPoint {
    Expr batch, h, w, f;
  };
  // Over the variables that the block had, in their order, without those that reduced.
  Stmt OverOutput(const std::string& name,
                  const std::function<Expr(const OutputPoint& at, Analyzer& known)>& value) const {
    std::vector<Axis> axes;
    std::vector<int> iters;
    for (int i = 0; i < static_cast<int>(conv_.iters.size()); ++i) {
      if (conv_.iters[static_cast<size_t>(i)].kind != IterKind::kSpatial) continue;
      axes.push_back({conv_.var(i).name(), conv_.extent(i)});
      iters.push_back(i);
    }
    const auto var_of = [&iters](const std::vector<Var>& v, int iter) -> Expr {
      const auto found = std::find(iters.begin(), iters.end(), iter);
      return found == iters.end() ? IntConst(0) : Expr(v[static_cast<size_t>(found - iters.begin())]);
    };
    return MakeNest(
        name, axes, conv_.y,
        [&](const std::vector<Var>& v) {
          Vector at;
          for (const Expr& index : conv_.y_indices) {
            at.push_back(Substitute(index, [&](const Var& var) -> std::optional<Expr> {
              for (size_t i = 0; i < iters.size(); ++i) {
                if (conv_.var(iters[i]) == var) return Expr(v[i]);
              }
              return std::nullopt;
            }));
          }
          return at;
        },
        [&](const std::vector<Var>& v, Analyzer& known) {
          return value({var_of(v, conv_.batch), var_of(v, conv_.h), var_of(v, conv_.w_out), var_of(v, conv_.f)}, known);
        });
  }

  // The result at row h and column w of an image, of which a dilated convolution has several for one of a batch.
  Expr OutputAt(const Expr& image, const Expr& h, const Expr& w, const Expr& f, Analyzer& known) const {
    const Expr m = IntConst(m_);
    const Expr t = known.Simplify((image * IntConst(tiles_h_) + FloorDiv(h, m)) * IntConst(tiles_w_) + FloorDiv(w, m));
    const Expr row_in_tile = known.Simplify(FloorMod(h, m));
    Vector row;
    for (int64_t j = 0; j < a_; ++j) row.push_back(MakeLoad(r_, {row_in_tile, IntConst(j), t, f}));
    Expr result = ChooseRow(known.Simplify(FloorMod(w, m)), TransformOutput(m_, row));
    return conv_.of_integers() ? FloorDiv(result, IntConst(kIntegerScale * kIntegerScale)) : result;
  }

  // x at row k and column l of what tile t sees; 0 below and right of x, where the last tiles reach beyond it.
  Expr InputAt(const Expr& t, const Expr& k, const Expr& l, const Expr& c, Analyzer& known) const {
    const Expr tile_h = FloorMod(FloorDiv(t, IntConst(tiles_w_)), IntConst(tiles_h_));
    const Expr tile_w = FloorMod(t, IntConst(tiles_w_));
    Vector at(static_cast<size_t>(conv_.x.rank()), IntConst(0));
    const auto place = [&](int dim, const Expr& row, int64_t rows, const Expr& phase, int64_t dilation,
                           const Expr& base) -> Expr {
      const Expr index = known.Simplify(row * IntConst(dilation) + phase + base);
      at[static_cast<size_t>(dim)] = index;
      const int64_t size = *ConstantValue(conv_.x.shape()[static_cast<size_t>(dim)]);
      const std::optional<int64_t> first = ConstantValue(base);
      const bool fits = first.has_value() && *first + rows * dilation <= size;
      return fits ? True() : known.Simplify(index < IntConst(size));
    };
    const Expr image = FloorDiv(t, IntConst(tiles_h_ * tiles_w_)), m = IntConst(m_);
    const Expr phase_h = FloorMod(FloorDiv(image, IntConst(conv_.dilation_w)), IntConst(conv_.dilation_h));
    const Expr phase_w = FloorMod(image, IntConst(conv_.dilation_w));
    const int64_t rows = (tiles_h_ - 1) * m_ + a_, columns = (tiles_w_ - 1) * m_ + a_;
    const Expr guard = And(place(conv_.x_h, tile_h * m + k, rows, phase_h, conv_.dilation_h, conv_.base_h),
                           place(conv_.x_w, tile_w * m + l, columns, phase_w, conv_.dilation_w, conv_.base_w));
    at[static_cast<size_t>(conv_.x_c)] = c;
    if (conv_.x_batch >= 0) {
      at[static_cast<size_t>(conv_.x_batch)] = known.Simplify(FloorDiv(image, IntConst(phases_)));
    }
    Expr load = As(v_.type(), MakeLoad(conv_.x, std::move(at)));
    return IsConst(guard, 1) ? load : IfThenElse(guard, load, Const(0, v_.type()));
  }

  const Convolution& conv_;
  int m_;
  int64_t a_;
  int64_t phases_;          // images of a dilated convolution, for each of the batch; 1 where it is not dilated
  int64_t rows_, columns_;  // of an image
  int64_t tiles_h_, tiles_w_, tiles_;
  Buffer d_, v_, product_, r_, u_;
  Buffer phased_;  // of a dilated convolution
};

}  // namespace

absl::StatusOr<RewrittenBlock> WinogradConvolution(const PrimFunc& func, const ProgramIndex& index, int node,
                                                   int tile) {
  HONE_CHECK(tile == 2 || tile == 4) << "there are transforms for tiles of 2 and 4, not " << tile;
  const std::string name = index.block(node).name;
  HONE_ASSIGN_OR_RETURN(const int nest, UntouchedNest(index, node));
  HONE_ASSIGN_OR_RETURN(const Convolution conv, MatchConvolution(func, index.block(node)));
  if (conv.of_integers()) {
    if (tile != 2) return Refused("tiles of ", tile, " by ", tile, " have no transform that is exact in integers");
    if (const int64_t most = MostChannels(conv); conv.extent(conv.c) > most)
      return Refused("int32 holds what is summed over ", most, " channels, and perhaps not over ", conv.extent(conv.c));
  }
  const int scope = index.EnclosingBlock(node);
  if (ReadersOf(index, scope, conv.w).size() != 1) return Refused("another block reads the weights ", conv.w, " too");

  const Rewriter rewriter(conv, tile);
  RewrittenBlock result;
  std::vector<Stmt> parts;
  const auto add = [&](const std::string& block, Stmt (Rewriter::*part)(const std::string& name) const) {
    parts.push_back((rewriter.*part)(block));
    result.blocks.push_back(block);
  };
  add(FreshBlockName(index, name + "_input_rows"), &Rewriter::InputRows);
  add(FreshBlockName(index, name + "_input"), &Rewriter::Input);
  add(FreshBlockName(index, name + "_product"), &Rewriter::Product);
  add(FreshBlockName(index, name + "_output_rows"), &Rewriter::OutputRows);
  if (rewriter.dilated()) add(FreshBlockName(index, name + "_phases"), &Rewriter::Phases);
  add(name, rewriter.dilated() ? &Rewriter::Together : &Rewriter::Output);
  const Stmt nests = MakeSeq(std::move(parts));
  const std::string scope_name = index.block(scope).name;
  const ProgramIndex replaced(index.Replace(nest, nests));
  const int home = replaced.FindBlock(scope_name);
  BlockRealize allocating = replaced.realize(home);
  for (const Buffer& buffer : rewriter.intermediates()) allocating.block.allocs.push_back(buffer);

  result.main = func;
  result.main.params[static_cast<size_t>(conv.param)] = rewriter.transformed_weights();
  result.main.body = replaced.Replace(home, Stmt::Make(std::move(allocating)));
  result.prepare = {conv.param, rewriter.PrepareWeights()};
  return result;
}

}  // namespace hone
