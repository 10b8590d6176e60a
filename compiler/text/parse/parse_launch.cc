// Launches over the blocks and threads of a device, and T.attr.
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {
namespace {

// What says how a statement should be compiled, or for which device, and nothing about what it computes. Copies that
// may be asynchronous are made at once, so that there is nothing to wait for.
bool IsHint(absl::string_view key) {
  static constexpr absl::string_view kHints[] = {"target",
                                                 "device_id",
                                                 "device_type",
                                                 "device_scope",
                                                 "compute_scope",
                                                 "hand_threaded",
                                                 "storage_alignment",
                                                 "double_buffer_scope",
                                                 "async_scope",
                                                 "async_commit_queue_scope",
                                                 "async_wait_queue_scope",
                                                 "async_wait_inflight_count"};
  return key.substr(0, 7) == "pragma_" || std::ranges::find(kHints, key) != std::end(kHints);
}

absl::Status UnknownAttr(const Token& at, absl::string_view name) {
  return ErrorAt(at, absl::StrCat("the attribute \"", name.substr(0, 40),
                                  "\" of a statement is not supported; expected a hint such as "
                                  "\"pragma_auto_unroll_max_step\", which is passed over"));
}

}  // namespace

// `tx = T.env_thread("threadIdx.x")`: launched later, once or several times.
absl::Status Parser::EnvThread(const std::string& name) {
  for (int i = 0; i < 3; ++i) Take();
  HONE_RETURN_IF_ERROR(Expect("("));
  HONE_ASSIGN_OR_RETURN(std::string thread, ExpectString("a thread such as \"threadIdx.x\""));
  HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  Define(name, {.thread = std::move(thread)});
  return absl::OkStatus();
}

// After "T.launch_thread": ("threadIdx.x", 32), or (tx, 32) of a T.env_thread.
absl::StatusOr<For> Parser::LaunchThread() {
  HONE_RETURN_IF_ERROR(Expect("("));
  const Token at = Take();
  For launch{.kind = ForKind::kThreadBinding, .thread = at.text};
  std::string name;
  if (at.kind != TokenKind::kString) {
    const Symbol* symbol = Find(at.text);
    if (symbol == nullptr || symbol->thread.empty()) {
      return ErrorAt(
          at, absl::StrCat(Describe(at), " is no thread; expected one such as \"threadIdx.x\", or a T.env_thread"));
    }
    launch.thread = symbol->thread;
    name = at.text;
  }
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_ASSIGN_OR_RETURN(launch.extent, IntExpression("the number of threads"));
  HONE_RETURN_IF_ERROR(Expect(")"));
  launch.min = IntConst(0, launch.extent.type());
  if (!name.empty()) EnterLaunch(launch, name);
  return launch;
}

void Parser::EnterLaunch(For& launch, const std::string& name) {
  launch.var = Var(name, launch.extent.type());
  Define(name, {.var = launch.var, .loop = Range{launch.min, launch.extent}});
}

// After "T.attr": (what it is about, "its name", its value), or ({"its name": its value}) of the block around.
absl::Status Parser::StatementAttr() {
  HONE_RETURN_IF_ERROR(Expect("("));
  if (At("{")) {
    const Token at = Peek();
    HONE_ASSIGN_OR_RETURN(const Attrs attrs, AttrDict());
    for (const auto& [name, value] : attrs) {
      if (!IsHint(name)) return UnknownAttr(at, name);
    }
    return Expect(")");
  }
  std::optional<Token> key;
  for (int depth = 1, argument = 0; depth > 0;) {
    if (Peek().kind == TokenKind::kEnd || Peek().kind == TokenKind::kNewline) return Unexpected("`)`");
    const Token token = Take();
    if (token.kind == TokenKind::kString && depth == 1 && argument == 1) key = token;
    if (token.kind != TokenKind::kPunct) continue;
    if (token.text == "(" || token.text == "[" || token.text == "{") ++depth;
    if (token.text == ")" || token.text == "]" || token.text == "}") --depth;
    if (token.text == "," && depth == 1) ++argument;
  }
  if (!key.has_value()) return Unexpected("T.attr(what it is about, \"its name\", its value)");
  if (IsHint(key->text)) return absl::OkStatus();
  return UnknownAttr(*key, key->text);
}

}  // namespace hone
