#include "compiler/driver/models/import_flags.h"

#include <CLI/CLI.hpp>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/driver/models/graph_file.h"
#include "compiler/driver/models/hints.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Shape = std::vector<int64_t>;

absl::Status Malformed(const std::string& flag, const std::string& text, const std::string& form) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", text, ": it is ", form));
}

// "2x3x4"; "scalar" is the shape of one.
std::optional<Shape> ParseShape(const std::string& text) {
  Shape shape;
  if (text == "scalar") return shape;
  for (const absl::string_view part : absl::StrSplit(text, 'x')) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 0) return std::nullopt;
    shape.push_back(size);
  }
  return shape;
}

// "4" or "1..64": sizes of 0 or more, since a cache may be empty; the second is not below the first.
std::optional<SizeRange> ParseRange(const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, absl::MaxSplits("..", 1));
  SizeRange range;
  if (!absl::SimpleAtoi(ends.front(), &range.min) || !absl::SimpleAtoi(ends.back(), &range.max)) return std::nullopt;
  constexpr int64_t kGreatest = int64_t{1} << 31;  // indices are of 32 bits
  const bool is_range = ends.size() == 2;
  if (range.min < 0 || range.max < range.min || (is_range && (range.max < 1 || range.max >= kGreatest)))
    return std::nullopt;
  return range;
}

// Splits "NAME=TEXT" and hands both to `add`, which is false for what it does not take.
template <class Add>
absl::Status EachOf(const std::string& flag, const std::vector<std::string>& texts, const std::string& form, Add add) {
  std::set<std::string> names;
  for (const std::string& text : texts) {
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.size() != 2 || parts[0].empty() || !add(parts[0], parts[1])) return Malformed(flag, text, form);
    if (!names.insert(parts[0]).second)
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", text, ": ", parts[0], " has one already"));
  }
  return absl::OkStatus();
}

}  // namespace

void ImportFlags::AddTo(CLI::App& command) {
  const auto add = [&](const char* flag, std::vector<std::string>& to, const char* what) {
    command.add_option(flag, to, what)->allow_extra_args(false);
  };
  add("--dim", dims,
      "the size of a dimension that the model leaves open: NAME=SIZE, or NAME=LOW..HIGH for hone compile to leave it "
      "to "
      "each run; may be given again");
  add("--shape", shapes, "the shape of an output that the data decides: NAME=4x2; may be given again");
  add("--value", values,
      "the value of an input from which shapes follow, whatever it is given at run time: NAME=2,3; may be given again");
  add("--sequence", sequences, "the shapes of the elements of an input that is a sequence: NAME=2x3,4x3");
  add("--absent", absent, "an input of an optional type that is not given: NAME");
  command.add_option("--constants", constants,
                     "of a module (MODEL.py): a folder with NAME.npy for a parameter that is a constant, and 0.npy, "
                     "1.npy, .. for constants outside of the text");
}

std::string ImportFlags::AsFlags() const {
  std::string flags;
  const auto add = [&](const char* flag, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) absl::StrAppend(&flags, " --", flag, " ", ShellWord(text));
  };
  add("dim", dims);
  add("shape", shapes);
  add("value", values);
  add("sequence", sequences);
  add("absent", absent);
  if (!constants.empty()) absl::StrAppend(&flags, " --constants ", ShellWord(constants));
  return flags;
}

absl::StatusOr<ImportOptions> ImportOptionsOf(const ImportFlags& flags) {
  ImportOptions options;
  for (const std::string& dim : flags.dims) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(dim, absl::MaxSplits('=', 1));
    const std::optional<SizeRange> range = ParseRange(parts.second);
    if (parts.first.empty() || !range.has_value()) {
      return Malformed("dim", dim, "NAME=SIZE, such as batch=4, or NAME=LOW..HIGH, such as batch=1..64");
    }
    if (options.dims.contains(parts.first) || options.ranges.contains(parts.first))
      return absl::InvalidArgumentError(absl::StrCat("--dim ", dim, ": ", parts.first, " has a size already"));
    if (range->min == range->max) options.dims.emplace(parts.first, range->min);
    else options.ranges.emplace(parts.first, *range);
  }
  HONE_RETURN_IF_ERROR(
      EachOf("shape", flags.shapes, "NAME=SIZES, such as y=4x2", [&](const std::string& name, const std::string& text) {
        const std::optional<Shape> shape = ParseShape(text);
        if (shape.has_value()) options.shapes.emplace(name, *shape);
        return shape.has_value();
      }));
  HONE_RETURN_IF_ERROR(EachOf("value", flags.values, "NAME=NUMBERS, such as size=2,3",
                              [&](const std::string& name, const std::string& text) {
                                std::vector<double>& numbers = options.values[name];
                                for (const absl::string_view part : absl::StrSplit(text, ',')) {
                                  double number = 0;
                                  if (!absl::SimpleAtod(part, &number)) return false;
                                  numbers.push_back(number);
                                }
                                return true;
                              }));
  HONE_RETURN_IF_ERROR(EachOf("sequence", flags.sequences, "NAME=SHAPES, such as x=2x3,4x3, or NAME= for an empty one",
                              [&](const std::string& name, const std::string& text) {
                                std::vector<Shape>& shapes = options.sequences[name];
                                for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
                                  const std::optional<Shape> shape = ParseShape(std::string(part));
                                  if (!shape.has_value()) return false;
                                  shapes.push_back(*shape);
                                }
                                return true;
                              }));
  options.absent.insert(flags.absent.begin(), flags.absent.end());
  if (!flags.constants.empty()) options.constants = ConstantsIn(flags.constants);
  return options;
}

}  // namespace hone
