#include "tuner/dispatch/state/device_facts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tuner/dispatch/events/reporter.h"

namespace hone {
namespace {

constexpr int kLevels = 4;  // three caches and memory

// What is measured, by number: multiply-adds, then what is moved from each level. 0: not told.
using Rates = std::array<double, 1 + kLevels>;

double Usable(double rate) { return std::isfinite(rate) && rate > 0 ? rate : 0; }

Rates RatesOf(double gflops, const google::protobuf::RepeatedField<double>& moved) {
  Rates rates{Usable(gflops)};
  for (int level = 0; level < std::min(kLevels, moved.size()); ++level) rates[1 + level] = Usable(moved[level]);
  return rates;
}
Rates OfOne(const v1::DeviceProfile& profile) { return RatesOf(profile.peak_gflops_1(), profile.moved_gbps_1()); }
Rates OfAll(const v1::DeviceProfile& profile) { return RatesOf(profile.peak_gflops_all(), profile.moved_gbps_all()); }

void SetMoved(const Rates& rates, google::protobuf::RepeatedField<double>* moved) {
  moved->Clear();
  const bool told = std::any_of(rates.begin() + 1, rates.end(), [](double rate) { return rate > 0; });
  if (told) moved->Assign(rates.begin() + 1, rates.end());
}
void SetRates(const Rates& one, const Rates& all, v1::DeviceProfile* profile) {
  profile->set_peak_gflops_1(one[0]);
  profile->set_peak_gflops_all(all[0]);
  SetMoved(one, profile->mutable_moved_gbps_1());
  SetMoved(all, profile->mutable_moved_gbps_all());
  if (all[kLevels] > 0) profile->set_memory_gbps(all[kLevels]);
}

Rates Best(Rates a, const Rates& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
  return a;
}

bool BearOut(double a, double b) { return std::min(a, b) >= (1 - kProbeTolerance) * std::max(a, b); }

// A probe, and by number whose word it is.
struct Testimony {
  const v1::DeviceProbe* probe = nullptr;
  int witness = 0;
};

// Where principals differ each of them is one witness, however many workers it has; else every worker is one.
std::vector<Testimony> ByWitness(const std::vector<const v1::DeviceProbe*>& probes) {
  std::map<std::pair<uint64_t, std::string>, int> principals, workers;
  std::vector<Testimony> by_principal, by_worker;
  for (const v1::DeviceProbe* probe : probes) {
    const auto number = [&](auto& numbers, const std::string& name) {
      return numbers.emplace(std::pair(probe->tenant(), name), static_cast<int>(numbers.size())).first->second;
    };
    by_principal.push_back({probe, number(principals, ReporterFromText(probe->worker()).principal)});
    by_worker.push_back({probe, number(workers, probe->worker())});
  }
  return principals.size() > 1 ? by_principal : by_worker;
}

// Of those that `is_of_them`.
template <class Told>
int CountWitnesses(const std::vector<Told>& told, const auto& is_of_them) {
  static_assert(kMostProbes < 64);  // and one too many
  uint64_t witnesses = 0;
  for (const Told& one : told) {
    if (is_of_them(one)) witnesses |= uint64_t{1} << one.witness;
  }
  return std::popcount(witnesses);
}

// What a probe says of one rate.
struct Claim {
  double rate = 0;
  int witness = 0;
};
// What was told of a rate, and how many witnesses bear it out; `by` 0: nobody told it.
struct Agreed {
  double rate = 0;
  int by = 0;
};
Agreed Agree(const std::vector<Claim>& told, double before) {
  Agreed agreed;
  bool stands = false;  // what was believed before: somebody bears it out
  for (const auto& [rate, witness] : told) {
    if (rate == 0) continue;
    stands = stands || BearOut(rate, before);
    const int by = CountWitnesses(told, [&, rate = rate](const Claim& other) { return BearOut(rate, other.rate); });
    const bool better = by > 1 ? agreed.by <= 1 || rate > agreed.rate : agreed.by == 0;
    if (better) agreed = {rate, by};
  }
  const int claims = CountWitnesses(told, [](const Claim& claim) { return claim.rate > 0; });
  if (agreed.by == 1 && claims > 1 && stands) agreed.rate = before;
  return agreed;
}

// Of one worker's probes: each rate at its best. The text for drafts is of the probe that found the machine the
// quieter.
v1::DeviceProbe BestOf(const v1::DeviceProbe& before, v1::DeviceProbe now) {
  const v1::DeviceProfile& old = before.profile();
  v1::DeviceProfile& profile = *now.mutable_profile();
  if (!old.machine().empty() && (profile.machine().empty() || old.peak_gflops_1() > profile.peak_gflops_1())) {
    profile.set_machine(old.machine());
  }
  const Rates all = OfAll(profile);
  SetRates(Best(OfOne(profile), OfOne(old)), before.threads() == now.threads() ? Best(all, OfAll(old)) : all, &profile);
  return now;
}

// The probe that caches, target and text are taken from: of those that tell what most witnesses tell of caches and
// target, or what was believed before, the first whose core is as fast as is believed.
const v1::DeviceProfile& Leading(const std::vector<Testimony>& told, double one_core, const v1::DeviceProfile& before) {
  const auto said_by = [](const v1::DeviceProfile& p) {
    return std::tuple(p.target(), p.cores(), p.l1d_bytes(), p.l2_bytes(), p.l3_bytes(), p.vector_bits());
  };
  const v1::DeviceProfile* leading = nullptr;
  std::tuple<int, bool, bool> rank;
  for (const Testimony& one : told) {
    const v1::DeviceProfile& profile = one.probe->profile();
    const int same = CountWitnesses(
        told, [&](const Testimony& other) { return said_by(other.probe->profile()) == said_by(profile); });
    const std::tuple of_this(same, said_by(profile) == said_by(before), BearOut(OfOne(profile)[0], one_core));
    if (leading != nullptr && of_this <= rank) continue;
    leading = &profile;
    rank = of_this;
  }
  return *leading;
}

// What the probes, none empty, say together; without them.
v1::DeviceProfile Believed(const std::vector<const v1::DeviceProbe*>& probes, const v1::DeviceProfile& before) {
  const auto agree = [&](const std::vector<Testimony>& of, Rates rates(const v1::DeviceProfile&), int i) {
    std::vector<Claim> claims;
    for (const Testimony& one : of) claims.push_back({rates(one.probe->profile())[i], one.witness});
    return Agree(claims, rates(before)[i]);
  };
  const std::vector<Testimony> told = ByWitness(probes);
  v1::DeviceProfile believed = Leading(told, agree(told, OfOne, 0).rate, before);
  const auto threads_of = [&](const Testimony& one) {
    return std::clamp(one.probe->threads(), 1, std::max(1, believed.cores()));
  };
  int most = 0;
  for (const Testimony& one : told) most = std::max(most, threads_of(one));
  std::vector<Testimony> widest;
  std::ranges::copy_if(told, std::back_inserter(widest), [&](const Testimony& one) { return threads_of(one) == most; });
  Rates one{}, all{};
  int agreed_by = CountWitnesses(told, [](const Testimony&) { return true; });
  for (int i = 0; i <= kLevels; ++i) {
    const Agreed of_one = agree(told, OfOne, i);
    Agreed of_all = agree(widest, OfAll, i);
    // Nobody else's word for it, and whoever told the first probe has fewer threads.
    if (of_all.by == 1 && of_one.by > 0 && widest.front().probe != probes.front())
      of_all = {of_one.rate * most, of_one.by};
    one[i] = of_one.rate;
    all[i] = of_all.rate;
    for (const int by : {of_one.by, of_all.by}) agreed_by = by > 0 ? std::min(agreed_by, by) : agreed_by;
  }
  SetRates(one, all, &believed);
  believed.set_agreed_by(agreed_by);
  return believed;
}

// Which of the probes, of which there is one too many, is given up: the oldest without which the same is believed, or
// the latest.
size_t OneTooMany(const std::vector<const v1::DeviceProbe*>& probes, const v1::DeviceProfile& before) {
  const auto said = [](v1::DeviceProfile believed) {
    believed.set_agreed_by(std::min(believed.agreed_by(), 2));  // a third witness is one too many
    believed.clear_facts();                                     // a map, in no order
    return believed.SerializeAsString();
  };
  const std::string all = said(Believed(probes, before));
  for (size_t i = 0; i + 1 < probes.size(); ++i) {
    std::vector<const v1::DeviceProbe*> others = probes;
    others.erase(others.begin() + static_cast<int64_t>(i));
    if (said(Believed(others, before)) == all) return i;
  }
  return probes.size() - 1;
}

}  // namespace

v1::DeviceProfile AfterProbe(const v1::DeviceProfile& facts, v1::DeviceProbe probe) {
  probe.mutable_profile()->clear_probes();
  probe.mutable_profile()->clear_agreed_by();
  std::vector<const v1::DeviceProbe*> probes;
  const Reporter who = ReporterFromText(probe.worker());
  bool known = false;
  v1::DeviceProbe latest = BestOf({}, probe);
  for (const v1::DeviceProbe& before : facts.probes()) {
    // What an earlier release stored of a worker does not say whose it is.
    const bool same =
        before.tenant() == probe.tenant() && (before.worker() == probe.worker() || before.worker() == who.worker);
    if (!same) {
      probes.push_back(&before);
      continue;
    }
    latest = BestOf(before, latest);
    if (!std::exchange(known, true)) probes.push_back(&latest);
  }
  if (!known) probes.push_back(&latest);
  if (probes.size() > kMostProbes) probes.erase(probes.begin() + static_cast<int64_t>(OneTooMany(probes, facts)));
  v1::DeviceProfile believed = Believed(probes, facts);
  for (const v1::DeviceProbe* kept : probes) *believed.add_probes() = *kept;
  return believed;
}

std::string ProbeStanding(const v1::DeviceProfile& facts, const v1::DeviceProfile& probe) {
  const Rates believed = OfOne(facts), told = OfOne(probe);
  for (size_t i = 0; i < believed.size(); ++i) {
    if (told[i] > 0 && believed[i] > 0 && !BearOut(told[i], believed[i])) return "differs";
  }
  return facts.agreed_by() > 1 ? "agreed" : "alone";
}

}  // namespace hone
