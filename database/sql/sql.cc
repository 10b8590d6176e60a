#include "database/sql/sql.h"

#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<int64_t> SqlConnection::Number(std::string_view sql) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> query, Prepare(sql));
  HONE_ASSIGN_OR_RETURN(const bool row, query->Next());
  return row ? query->GetInt(0) : 0;
}

}  // namespace hone
