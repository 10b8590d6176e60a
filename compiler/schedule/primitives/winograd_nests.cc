#include "compiler/schedule/primitives/winograd_nests.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/filter_transforms.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"

namespace hone {
namespace {

using Vector = std::vector<Expr>;

constexpr int64_t kIntegerScale = 2;

DType TransformedType(const WindowConvolution& conv) { return conv.of_integers() ? DType::Int(16) : kFloat32; }

// G g; of integers kIntegerScale times that.
Vector TransformKernel(int tile, const Vector& g) {
  if (!g[0].type().is_int()) return filtering::TransformTaps(tile, g);
  const Expr outer = g[0] + g[2];
  return {filtering::Times(kIntegerScale, g[0]), outer + g[1], outer - g[1], filtering::Times(kIntegerScale, g[2])};
}

// options[index], for an index that is a constant once its loop is unrolled.
Expr ChooseRow(const Expr& index, const Vector& options) {
  Expr chosen = options.back();
  for (size_t i = options.size() - 1; i-- > 0;) {
    chosen = IfThenElse(Eq(index, IntConst(static_cast<int64_t>(i))), options[i], chosen);
  }
  return chosen;
}

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

Expr As(DType type, Expr e) { return e.type() == type ? std::move(e) : MakeCast(type, std::move(e)); }
Vector Point(const std::vector<Var>& v) { return Vector(v.begin(), v.end()); }

}  // namespace

WinogradNests::WinogradNests(const WindowConvolution& conv, int tile)
    : conv_(conv),
      m_(tile),
      a_(tile + filtering::kTaps - 1),
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
  d_ = buffer("_input_rows", TransformedType(conv), a_, conv.extent(conv.c));
  v_ = buffer("_input", TransformedType(conv), a_, conv.extent(conv.c));
  product_ = buffer("_product", conv.y.type(), a_, conv.extent(conv.f));
  r_ = buffer("_output_rows", conv.y.type(), m_, conv.extent(conv.f));
  u_ = Buffer(conv.w.name(), TransformedType(conv),
              {IntConst(a_), IntConst(a_), IntConst(conv.extent(conv.c)), IntConst(conv.extent(conv.f))});
  phased_ = Buffer(Message(conv.y.name(), "_phases"), conv.y.type(),
                   {IntConst(conv.extent(conv.batch)), IntConst(conv.dilation_h), IntConst(conv.dilation_w),
                    IntConst(rows_), IntConst(columns_), IntConst(conv.extent(conv.f))});
}

std::vector<Buffer> WinogradNests::intermediates() const {
  std::vector<Buffer> buffers{d_, v_, product_, r_};
  if (dilated()) buffers.push_back(phased_);
  return buffers;
}

Stmt WinogradNests::InputRows(const std::string& name) const {
  return MakeNest(name, {{"i", a_}, {"l", a_}, {"t", tiles_}, {"c", conv_.extent(conv_.c)}}, d_, Point,
                  [this](const std::vector<Var>& v, Analyzer& known) {
                    Vector column;
                    for (int64_t k = 0; k < a_; ++k) column.push_back(InputAt(v[2], IntConst(k), v[1], v[3], known));
                    return ChooseRow(v[0], filtering::TransformInput(m_, column));
                  });
}

Stmt WinogradNests::Input(const std::string& name) const {
  return MakeNest(name, {{"i", a_}, {"j", a_}, {"t", tiles_}, {"c", conv_.extent(conv_.c)}}, v_, Point,
                  [this](const std::vector<Var>& v, Analyzer&) {
                    Vector row;
                    for (int64_t l = 0; l < a_; ++l) row.push_back(MakeLoad(d_, {v[0], IntConst(l), v[2], v[3]}));
                    return ChooseRow(v[1], filtering::TransformInput(m_, row));
                  });
}

Stmt WinogradNests::Product(const std::string& name) const {
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

Stmt WinogradNests::OutputRows(const std::string& name) const {
  return MakeNest(name, {{"p", m_}, {"j", a_}, {"t", tiles_}, {"f", conv_.extent(conv_.f)}}, r_, Point,
                  [this](const std::vector<Var>& v, Analyzer&) {
                    Vector column;
                    for (int64_t k = 0; k < a_; ++k) {
                      column.push_back(MakeLoad(product_, {IntConst(k), v[1], v[2], v[3]}));
                    }
                    return ChooseRow(v[0], filtering::TransformOutput(m_, column));
                  });
}

Stmt WinogradNests::Output(const std::string& name) const {
  return OverOutput(
      name, [this](const OutputPoint& at, Analyzer& known) { return OutputAt(at.batch, at.h, at.w, at.f, known); });
}

Stmt WinogradNests::Phases(const std::string& name) const {
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

Stmt WinogradNests::Together(const std::string& name) const {
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

PrimFunc WinogradNests::PrepareWeights() const {
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
        for (int64_t kw = 0; kw < filtering::kTaps; ++kw) {
          Vector column;
          for (int64_t kh = 0; kh < filtering::kTaps; ++kh) {
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

Stmt WinogradNests::OverOutput(const std::string& name,
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

Expr WinogradNests::OutputAt(const Expr& image, const Expr& h, const Expr& w, const Expr& f, Analyzer& known) const {
  const Expr m = IntConst(m_);
  const Expr t = known.Simplify((image * IntConst(tiles_h_) + FloorDiv(h, m)) * IntConst(tiles_w_) + FloorDiv(w, m));
  const Expr row_in_tile = known.Simplify(FloorMod(h, m));
  Vector row;
  for (int64_t j = 0; j < a_; ++j) row.push_back(MakeLoad(r_, {row_in_tile, IntConst(j), t, f}));
  Expr result = ChooseRow(known.Simplify(FloorMod(w, m)), filtering::TransformOutput(m_, row));
  return conv_.of_integers() ? FloorDiv(result, IntConst(kIntegerScale * kIntegerScale)) : result;
}

Expr WinogradNests::InputAt(const Expr& t, const Expr& k, const Expr& l, const Expr& c, Analyzer& known) const {
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

}  // namespace hone
