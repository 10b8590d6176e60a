// Which roles may call which method, and for how long: one row for every method of the services. A method without a row
// does not compile, because `PolicyOf` has no definition beside the rows and `kPolicies` asks it for every method that
// protoc generated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "hone/v1/fleet.grpc.pb.h"
#include "hone/v1/tune.grpc.pb.h"

namespace hone {

// Of a caller, within its tenant.
enum class Role : uint8_t { kAdmin, kClient, kWorker, kViewer };
inline constexpr std::array<const char*, 4> kRoleNames = {"admin", "client", "worker", "viewer"};

constexpr const char* RoleName(Role role) { return kRoleNames[static_cast<size_t>(role)]; }
constexpr std::optional<Role> RoleFromName(std::string_view name) {
  for (size_t i = 0; i < kRoleNames.size(); ++i) {
    if (name == kRoleNames[i]) return static_cast<Role>(i);
  }
  return std::nullopt;
}

class Roles {
 public:
  constexpr Roles() = default;
  constexpr Roles(std::initializer_list<Role> roles) {
    for (const Role role : roles) bits_ |= 1u << static_cast<unsigned>(role);
  }
  constexpr bool Has(Role role) const { return (bits_ >> static_cast<unsigned>(role) & 1u) != 0; }

 private:
  unsigned bits_ = 0;
};

struct MethodPolicy {
  Roles roles;
  bool streams = false;       // many messages one way: how many of those a caller may have open is limited
  bool holds_thread = false;  // a stream that has a thread of the daemon while it is open: how many there are is, too
  int longest_seconds = 600;  // a deadline that is further away is refused
};

template <Role... kAllowed>
struct Allow {
  static constexpr MethodPolicy kPolicy{.roles = {kAllowed...}};
};
// A whole database goes over a slow network in one.
template <class Row>
struct Stream {
  static constexpr MethodPolicy kPolicy{Row::kPolicy.roles, true, true, 3600};
};
// The daemon holds the call without a thread until what the caller watches has changed.
template <class Row>
struct Wait {
  static constexpr MethodPolicy kPolicy{Row::kPolicy.roles, true, false, 3600};
};
// The daemon holds the call without a thread, as long as a worker takes timings or a builder builds.
template <class Row>
struct Held {
  static constexpr MethodPolicy kPolicy{Row::kPolicy.roles, false, false, 3600};
};
using Readers = Allow<Role::kAdmin, Role::kClient, Role::kViewer>;
using Writers = Allow<Role::kAdmin, Role::kClient>;
using Operators = Allow<Role::kAdmin>;
using Measurers = Allow<Role::kAdmin, Role::kWorker>;

// A method is named by the class that protoc generates for it.
template <template <class> class Method>
struct PolicyOf;

// clang-format off
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_Submit>        : Stream<Writers> {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_Watch>         : Wait<Readers> {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_Stop>          : Writers {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_Pause>         : Writers {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_Explain>       : Readers {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_Status>        : Readers {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_GetJob>        : Readers {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_ListJobs>      : Readers {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_ListWorkers>   : Readers {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_DrainWorkers>  : Operators {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_BestRecords>   : Readers {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_KeepChoices>   : Writers {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_ListRecords>   : Stream<Readers> {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_ExportRecords> : Stream<Readers> {};
template <> struct PolicyOf<v1::Tune::WithAsyncMethod_ImportRecords> : Stream<Writers> {};
template <> struct PolicyOf<v1::Fleet::WithAsyncMethod_Hello>        : Measurers {};
template <> struct PolicyOf<v1::Fleet::WithAsyncMethod_Sync>         : Held<Measurers> {};
template <> struct PolicyOf<v1::Fleet::WithAsyncMethod_GetWorkload>  : Measurers {};
template <> struct PolicyOf<v1::Fleet::WithAsyncMethod_Build>        : Held<Measurers> {};
template <> struct PolicyOf<v1::Fleet::WithAsyncMethod_PutBuilt>     : Stream<Measurers> {};
template <> struct PolicyOf<v1::Fleet::WithAsyncMethod_TakeBuilt>    : Stream<Measurers> {};
// clang-format on

namespace policy_internal {

// `AsyncService` is WithAsyncMethod_First<WithAsyncMethod_Second<... Service>>, in the order of the proto file.
template <class Rest>
struct Walk {
  static constexpr std::array<MethodPolicy, 0> kPolicies{};
};
template <template <class> class Method, class Rest>
struct Walk<Method<Rest>> {
  static constexpr auto kPolicies = [] {
    std::array<MethodPolicy, Walk<Rest>::kPolicies.size() + 1> policies{};
    policies[0] = PolicyOf<Method>::kPolicy;  // an error here: the method has no row above
    for (size_t i = 1; i < policies.size(); ++i) policies[i] = Walk<Rest>::kPolicies[i - 1];
    return policies;
  }();
};

}  // namespace policy_internal

// Of each method of a service (v1::Tune, v1::Fleet), by its index in the proto file.
template <class Service>
inline constexpr auto kPolicies = policy_internal::Walk<typename Service::AsyncService>::kPolicies;

static_assert(!kPolicies<v1::Tune>.empty() && !kPolicies<v1::Fleet>.empty());

}  // namespace hone
