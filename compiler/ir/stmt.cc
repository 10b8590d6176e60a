#include "compiler/ir/stmt.h"

#include <algorithm>

namespace hone {

StmtNode::~StmtNode() = default;

Stmt MakeSeq(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  flat.reserve(stmts.size());
  for (Stmt& stmt : stmts) {
    if (!stmt) continue;
    if (const Seq* inner = stmt.As<Seq>()) {
      const Stmt nested = MakeSeq(inner->stmts);
      const Seq* parts = nested.As<Seq>();
      if (parts == nullptr) {
        flat.push_back(nested);
      } else {
        flat.insert(flat.end(), parts->stmts.begin(), parts->stmts.end());
      }
    } else {
      flat.push_back(std::move(stmt));
    }
  }
  if (flat.size() == 1) return std::move(flat[0]);
  return Stmt::Make(Seq{std::move(flat)});
}

int PrimFunc::num_outputs() const {
  const auto found = attrs.find("outputs");
  if (found == attrs.end()) return 1;
  const int64_t* count = std::get_if<int64_t>(&found->second);
  return count == nullptr ? 1 : static_cast<int>(*count);
}

bool PrimFunc::IsListed(std::string_view attribute, int param) const {
  const auto found = attrs.find(std::string(attribute));
  if (found == attrs.end()) return false;
  const auto* indices = std::get_if<std::vector<int64_t>>(&found->second);
  return indices != nullptr && std::ranges::find(*indices, param) != indices->end();
}

}  // namespace hone
