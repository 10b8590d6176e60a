// Advisory locks of a database, by number: https://www.postgresql.org/docs/15/explicit-locking.html, 13.3.5.
#pragma once

#include <cstdint>

namespace hone {

inline constexpr int64_t kLeaderLock = 0x486F6E65'0001;     // held by the session of the daemon that leads
inline constexpr int64_t kMigrationLock = 0x486F6E65'0002;  // held while the schema is changed

}  // namespace hone
