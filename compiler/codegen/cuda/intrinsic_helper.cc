#include "compiler/codegen/cuda/intrinsic_helper.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/thread_axes.h"

namespace hone {
namespace {

std::string CType(DType type) {
  if (type.is_float()) return type.bits == 16 ? "unsigned short" : "float";
  return absl::StrCat(type.code == TypeCode::kUInt ? "unsigned "
                      : type.bits == 8             ? "signed "
                                                   : "",
                      type.bits == 8 ? "char" : "int");
}

int64_t Elements(const Buffer& fragment) { return fragment.NumElements().value_or(0); }

// 32 bits of neighbouring elements, the first in the lowest bits.
std::string Packed(const std::string& name, DType type, int64_t first) {
  const int group = 32 / type.bits;
  if (group == 1) return absl::StrCat(name, "[", first, "]");
  std::string text;
  for (int i = 0; i < group; ++i) {
    const std::string bits =
        absl::StrCat("(unsigned int)", type.bits == 8 ? "(unsigned char)" : "", name, "[", first + i, "]");
    absl::StrAppend(&text, i == 0 ? "" : " | ", bits, i == 0 ? "" : absl::StrCat(" << ", i * type.bits));
  }
  return text;
}

struct Constraints {
  std::string registers, operands;  // "{%4, %5}" and "\"r\"(..), \"r\"(..)"
  int count = 0;
};
Constraints Inputs(const std::string& name, const Buffer& fragment, int first) {
  Constraints all;
  const int group = 32 / fragment.type().bits;
  for (int64_t i = 0; i < Elements(fragment); i += group, ++all.count) {
    absl::StrAppend(&all.registers, i == 0 ? "{" : ", ", "%", first + all.count);
    absl::StrAppend(&all.operands, i == 0 ? "" : ", ", "\"r\"(", Packed(name, fragment.type(), i), ")");
  }
  all.registers += "}";
  return all;
}

// PTX ISA 8.5, section 9.7.14.5.15. `row`: where this lane's row begins, in shared memory.
std::string LoadMatrix(const TileIntrinsic& intrinsic) {
  const Buffer& fragment = intrinsic.operands[0];
  const DType type = fragment.type();
  const int group = 32 / type.bits;
  std::string words, registers, outputs, elements;
  int count = 0;
  for (int64_t i = 0; i < Elements(fragment); ++i) {
    const std::string shifted = i % group == 0 ? "" : absl::StrCat(" >> ", i % group * type.bits);
    absl::StrAppend(&elements, "  d[", i, "] = (", CType(type), ")(r", i / group, shifted, ");\n");
    if (i % group != 0) continue;
    absl::StrAppend(&words, count == 0 ? "" : ", ", "r", count);
    absl::StrAppend(&registers, count == 0 ? "" : ", ", "%", count);
    absl::StrAppend(&outputs, count == 0 ? "" : ", ", "\"=r\"(r", count, ")");
    ++count;
  }
  return absl::StrCat("void ", intrinsic.name, "(", CType(type), "* d, const ", CType(type),
                      "* row) {\n  const unsigned int address = (unsigned int)__cvta_generic_to_shared(row);\n",
                      "  unsigned int ", words, ";\n  asm volatile(\"", intrinsic.instructions[0].function, " {",
                      registers, "}, [%", count, "];\"\n               : ", outputs,
                      " : \"r\"(address) : \"memory\");\n", elements, "}");
}

// PTX ISA 8.5, section 9.7.8.24.
constexpr char kCopyAsync[] = R"(void {name}(void* to, const void* from, int bytes) {
  const unsigned int address = (unsigned int)__cvta_generic_to_shared(to);
  asm volatile("{function} [%0], [%1], {bytes}, %2;" :: "r"(address), "l"(from), "r"(bytes) : "memory");
})";
std::string CopyAsync(const TileIntrinsic& intrinsic) {
  const Buffer& to = intrinsic.operands[0];
  return absl::StrReplaceAll(kCopyAsync, {{"{name}", intrinsic.name},
                                          {"{function}", intrinsic.instructions[0].function},
                                          {"{bytes}", absl::StrCat(Elements(to) * to.type().bytes())}});
}

// PTX ISA 8.5, section 9.7.14.5: mma.sync d, a, b, c, where d may be c.
std::string Multiply(const TileIntrinsic& intrinsic) {
  if (!intrinsic.accumulates || intrinsic.operands.size() != 3) return "";
  const Buffer &c = intrinsic.operands[0], &a = intrinsic.operands[1], &b = intrinsic.operands[2];
  const std::string constraint = c.type().is_float() ? "\"+f\"" : "\"+r\"";
  std::string sums, sum_operands;
  for (int64_t i = 0; i < Elements(c); ++i) {
    absl::StrAppend(&sums, i == 0 ? "{" : ", ", "%", i);
    absl::StrAppend(&sum_operands, i == 0 ? "" : ", ", constraint, "(c[", i, "])");
  }
  sums += "}";
  const int first = static_cast<int>(Elements(c));
  const Constraints left = Inputs("a", a, first), right = Inputs("b", b, first + left.count);
  return absl::StrCat("void ", intrinsic.name, "(", CType(c.type()), "* c, const ", CType(a.type()), "* a, const ",
                      CType(b.type()), "* b) {\n  asm volatile(\"", intrinsic.instructions[0].function,
                      "\"\n               \" ", sums, ", ", left.registers, ", ", right.registers, ", ", sums,
                      ";\"\n               : ", sum_operands, "\n               : ", left.operands,
                      ",\n                 ", right.operands, ");\n}");
}

}  // namespace

std::string IntrinsicHelper(const TileIntrinsic& intrinsic) {
  if (intrinsic.token == AsyncToken::kGroup) return CopyAsync(intrinsic);
  if (intrinsic.threads != kWarpThreads) return "";
  return intrinsic.operands.size() == 2 ? LoadMatrix(intrinsic) : Multiply(intrinsic);
}

}  // namespace hone
