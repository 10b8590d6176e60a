#include "deploy/runtime/bundle/sizes.h"

namespace hone {
namespace {

std::string TermText(const BundleExtent::Term& term, std::span<const BundleSize> sizes) {
  std::string text;
  for (const int size : term.sizes) text += (text.empty() ? "" : " * ") + sizes[size].name;
  if (text.empty()) return std::to_string(term.factor);
  return term.factor == 1 ? text : text + " * " + std::to_string(term.factor);
}

}  // namespace

int64_t BundleExtent::At(std::span<const int64_t> sizes) const {
  int64_t sum = 0;
  for (const Term& term : terms) {
    int64_t product = term.factor;
    for (const int size : term.sizes) {
      if (__builtin_mul_overflow(product, sizes[size], &product)) return -1;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return -1;
  }
  return sum;
}

int BundleExtent::size() const {
  const bool alone = terms.size() == 1 && terms[0].factor == 1 && terms[0].sizes.size() == 1;
  return alone ? terms[0].sizes[0] : -1;
}

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "(";
  for (size_t d = 0; d < shape.size(); ++d) text += (d > 0 ? ", " : "") + std::to_string(shape[d]);
  return text + ")";
}

std::string ToText(const BundleExtent& extent, std::span<const BundleSize> sizes) {
  std::string text;
  for (const BundleExtent::Term& term : extent.terms) text += (text.empty() ? "" : " + ") + TermText(term, sizes);
  return text.empty() ? "0" : text;
}

std::string ToText(std::span<const BundleExtent> extents, std::span<const BundleSize> sizes) {
  std::string text = "(";
  for (const BundleExtent& extent : extents) text += (text.size() > 1 ? ", " : "") + ToText(extent, sizes);
  return text + ")";
}

}  // namespace hone
