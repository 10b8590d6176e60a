// Reads the include lines of the sources and holds the arrows of README.md, "How it is built": with one include root
// the linker does not notice a wrong #include.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = fs::path(HONE_TEST_DATA).parent_path();

// What the sources of a folder may include, by the folder's path; itself, compiler/support and proto always. "a/*" is
// the folder a with those below it.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"compiler/support", {}},
    {"compiler/log", {}},
    {"compiler/sandbox", {}},
    {"compiler/ir", {}},
    {"compiler/text", {"compiler/ir"}},
    {"compiler/text/parse", {"compiler/ir", "compiler/text"}},
    {"compiler/text/print", {"compiler/ir", "compiler/text"}},
    {"compiler/tile", {"compiler/ir", "compiler/text"}},
    {"compiler/arith", {"compiler/ir", "compiler/text"}},
    {"compiler/array", {"compiler/ir"}},
    {"compiler/oracle", {"compiler/ir", "compiler/arith"}},
    {"compiler/verify", {"compiler/ir", "compiler/text", "compiler/tile", "compiler/arith"}},
    {"compiler/interp", {"compiler/ir", "compiler/text", "compiler/tile", "compiler/arith", "compiler/array"}},
    {"compiler/schedule/analysis", {"compiler/ir", "compiler/text", "compiler/tile", "compiler/arith"}},
    {"compiler/schedule", {"compiler/ir", "compiler/arith", "compiler/schedule/analysis"}},
    {"compiler/schedule/primitives",
     {"compiler/ir", "compiler/arith", "compiler/schedule", "compiler/schedule/analysis"}},
    {"compiler/schedule/trace",
     {"compiler/ir", "compiler/schedule", "compiler/schedule/analysis", "compiler/schedule/primitives"}},
    {"compiler/lower", {"compiler/ir", "compiler/tile", "compiler/arith", "compiler/verify", "compiler/target"}},
    {"compiler/lower/checks", {"compiler/ir", "compiler/text", "compiler/arith", "compiler/lower"}},
    {"compiler/lower/blocks", {"compiler/ir", "compiler/tile", "compiler/arith", "compiler/lower"}},
    {"compiler/lower/buffers", {"compiler/ir", "compiler/tile", "compiler/arith", "compiler/lower"}},
    {"compiler/lower/loops",
     {"compiler/ir", "compiler/text", "compiler/arith", "compiler/lower", "compiler/lower/checks"}},
    {"compiler/lower/threads",
     {"compiler/ir", "compiler/text", "compiler/tile", "compiler/arith", "compiler/verify",
      "compiler/schedule/analysis", "compiler/lower", "compiler/lower/checks"}},
    {"compiler/target", {"deploy/runtime/image"}},
    {"compiler/codegen",
     {"compiler/ir", "compiler/tile", "compiler/arith", "compiler/schedule/*", "compiler/lower",
      "compiler/lower/buffers", "compiler/target", "deploy/runtime", "deploy/runtime/image"}},
    {"compiler/codegen/gpu",
     {"compiler/ir", "compiler/text", "compiler/tile", "compiler/arith", "compiler/lower/threads"}},
    {"compiler/codegen/opencl", {"compiler/codegen/gpu"}},
    {"compiler/codegen/cuda", {"compiler/ir", "compiler/tile", "compiler/codegen/gpu"}},
    {"compiler/codegen/device",
     {"compiler/ir", "compiler/schedule/*", "compiler/lower/threads", "compiler/codegen", "compiler/codegen/gpu",
      "compiler/codegen/opencl", "compiler/codegen/cuda", "compiler/target", "deploy/runtime/bundle",
      "deploy/runtime/devices"}},
    {"compiler/te", {"compiler/ir", "compiler/arith"}},
    {"compiler/topi", {"compiler/ir", "compiler/arith", "compiler/te"}},
    {"compiler/graph",
     {"compiler/ir", "compiler/text", "compiler/arith", "compiler/te", "compiler/array", "compiler/interp"}},
    {"compiler/graph/plan",
     {"compiler/ir", "compiler/arith", "compiler/te", "compiler/topi", "compiler/array", "compiler/interp",
      "compiler/verify", "compiler/graph"}},
    {"compiler/graph/operators", {"compiler/ir", "compiler/te", "compiler/topi", "compiler/array", "compiler/graph"}},
    {"compiler/graph/operators/elementwise", {"compiler/graph", "compiler/graph/operators", "compiler/topi"}},
    {"compiler/graph/operators/products", {"compiler/graph/operators", "compiler/topi"}},
    {"compiler/graph/operators/images", {"compiler/graph", "compiler/graph/operators", "compiler/topi"}},
    {"compiler/graph/operators/reductions",
     {"compiler/graph/operators", "compiler/graph/operators/images", "compiler/topi"}},
    {"compiler/graph/operators/shapes", {"compiler/graph/operators", "compiler/topi"}},
    {"compiler/graph/operators/flow", {"compiler/ir", "compiler/graph", "compiler/graph/operators"}},
    {"compiler/graph/operators/learning", {"compiler/graph/operators"}},
    {"compiler/graph/passes", {"compiler/graph", "compiler/ir", "compiler/tile", "compiler/topi"}},
    {"compiler/frontend",
     {"compiler/ir", "compiler/arith", "compiler/array", "compiler/text", "compiler/verify", "compiler/graph/*"}},
    {"compiler/package",
     {"compiler/ir", "compiler/graph/*", "compiler/schedule/*", "compiler/codegen", "compiler/codegen/device",
      "compiler/target", "deploy/runtime", "deploy/runtime/bundle", "deploy/runtime/image"}},
    {"compiler/driver",
     {"compiler/array", "compiler/target", "database/store", "database/sqlite", "tuner/service", "worker/measure",
      "worker/probe", "proto/rpc"}},
    {"compiler/driver/models",
     {"compiler/ir", "compiler/text", "compiler/graph", "compiler/graph/plan", "compiler/frontend",
      "compiler/schedule/*", "compiler/codegen", "compiler/codegen/device", "compiler/target", "compiler/package",
      "compiler/driver", "database/store", "database/sqlite", "tuner/space/*", "tuner/service", "worker/probe",
      "worker/runner", "proto/rpc"}},
    {"compiler/driver/bundles",
     {"compiler/text", "compiler/array", "compiler/interp", "compiler/schedule/*", "compiler/codegen", "deploy/runtime",
      "compiler/driver", "compiler/driver/models", "worker/measure", "worker/runner"}},
    {"compiler/driver/service",
     {"compiler/target", "compiler/sandbox", "compiler/driver", "compiler/driver/bundles", "compiler/driver/models",
      "database/store", "database/sqlite", "tuner/service", "worker/probe", "proto/rpc"}},
    {"compiler/driver/commands",
     {"compiler/ir",
      "compiler/text",
      "compiler/interp",
      "compiler/graph/*",
      "compiler/schedule/*",
      "compiler/lower",
      "compiler/arith",
      "compiler/verify",
      "compiler/codegen/cuda",
      "compiler/target",
      "compiler/package",
      "compiler/driver",
      "compiler/driver/bundles",
      "compiler/driver/models",
      "compiler/driver/service",
      "database/store",
      "database/sqlite",
      "tuner/space",
      "tuner/space/workload",
      "tuner/service",
      "tuner/service/access",
      "tuner/service/core",
      "deploy/runtime/bundle",
      "deploy/runtime/devices",
      "proto/rpc"}},
    {"proto/rpc", {}},
    {"database/store", {}},
    {"database/sql", {"database/store"}},
    {"database/sqlite", {"database/store", "database/sql"}},
    {"database/postgres", {"database/store", "database/sql"}},
    {"database", {"database/store", "database/sqlite", "database/postgres"}},
    {"tuner/space", {"compiler/ir", "compiler/schedule/*", "compiler/target"}},
    {"tuner/space/workload", {"compiler/ir", "compiler/arith", "compiler/schedule/analysis"}},
    {"tuner/space/nests",
     {"compiler/ir", "compiler/tile", "compiler/arith", "compiler/schedule/*", "compiler/target", "tuner/space",
      "tuner/space/workload"}},
    {"tuner/space/rewrites", {"compiler/schedule/*", "compiler/target", "tuner/space/workload", "tuner/space/nests"}},
    {"tuner/space/sketches",
     {"compiler/ir", "compiler/arith", "compiler/schedule/*", "compiler/target", "tuner/space", "tuner/space/workload",
      "tuner/space/nests", "tuner/space/rewrites"}},
    {"tuner/space/gpu",
     {"compiler/ir", "compiler/tile", "compiler/arith", "compiler/schedule/*", "compiler/target", "tuner/space",
      "tuner/space/workload", "tuner/space/nests", "tuner/space/rewrites", "tuner/space/sketches"}},
    {"tuner/model",
     {"compiler/ir", "compiler/arith", "compiler/schedule/*", "compiler/lower", "compiler/target",
      "tuner/space/nests"}},
    {"tuner/search/candidates",
     {"compiler/ir", "compiler/arith", "compiler/schedule/*", "compiler/lower", "compiler/lower/threads",
      "compiler/target", "tuner/space", "tuner/space/gpu", "tuner/model"}},
    {"tuner/search/strategies",
     {"compiler/ir", "compiler/target", "tuner/space", "tuner/model", "tuner/search/candidates"}},
    {"tuner/search/replay",
     {"compiler/ir", "compiler/text", "compiler/schedule/*", "tuner/search/candidates", "tuner/search/strategies"}},
    {"tuner/search",
     {"compiler/ir", "compiler/text", "compiler/target", "compiler/sandbox", "tuner/search/strategies",
      "tuner/search/replay"}},
    {"tuner/dispatch/events", {"database/store"}},
    {"tuner/dispatch/state", {"database/store", "tuner/dispatch/events"}},
    {"tuner/dispatch", {"tuner/dispatch/events", "tuner/dispatch/state"}},
    {"tuner/dispatch/rules", {"database/store", "tuner/dispatch", "tuner/dispatch/state"}},
    {"tuner/service/core",
     {"compiler/log", "compiler/sandbox", "database/store", "database/sqlite", "tuner/dispatch",
      "tuner/dispatch/events", "tuner/dispatch/state", "proto/rpc"}},
    {"tuner/service/access", {"database/store", "tuner/service/core", "proto/rpc"}},
    {"tuner/service/endpoints",
     {"database/store", "tuner/dispatch/*", "tuner/service/core", "tuner/service/access", "proto/rpc"}},
    {"tuner/service",
     {"compiler/log", "compiler/sandbox", "database", "database/store", "database/sqlite", "tuner/service/core",
      "tuner/service/access", "tuner/service/endpoints", "proto/rpc"}},
    {"worker/measure", {}},
    {"worker/probe", {"compiler/target", "deploy/runtime", "deploy/runtime/devices", "deploy/runtime/run"}},
    {"worker/runner", {"compiler/sandbox", "deploy/runtime/*", "worker/measure"}},
    {"worker/builder",
     {"compiler/ir", "compiler/text", "compiler/verify", "compiler/oracle", "compiler/schedule/*", "compiler/lower",
      "compiler/codegen", "compiler/codegen/device", "compiler/target", "deploy/runtime/image", "worker/measure",
      "compiler/sandbox"}},
    {"worker/oracle", {"compiler/ir", "compiler/text", "compiler/array", "compiler/interp", "compiler/sandbox"}},
    {"worker/agent/session", {"compiler/log", "proto/rpc"}},
    {"worker/agent/builds",
     {"compiler/target", "compiler/sandbox", "deploy/runtime/devices", "worker/builder", "worker/agent/session",
      "proto/rpc"}},
    {"worker/agent/trials",
     {"compiler/ir", "compiler/text", "compiler/array", "compiler/oracle", "compiler/schedule/*", "compiler/target",
      "deploy/runtime/image", "worker/oracle", "worker/runner", "worker/measure", "worker/probe",
      "worker/agent/session", "worker/agent/builds"}},
    {"worker/agent",
     {"compiler/target", "compiler/sandbox", "compiler/log", "deploy/runtime/devices", "worker/probe",
      "worker/agent/session", "worker/agent/builds", "worker/agent/trials", "proto/rpc"}},
    {"deploy/runtime", {}},
    {"deploy/runtime/image", {"deploy/runtime"}},
    {"deploy/runtime/devices", {"deploy/runtime"}},
    {"deploy/runtime/bundle", {"deploy/runtime", "deploy/runtime/image", "deploy/runtime/devices"}},
    {"deploy/runtime/run",
     {"deploy/runtime", "deploy/runtime/image", "deploy/runtime/devices", "deploy/runtime/bundle"}},
    {"deploy/python", {"deploy/runtime"}},
    {"deploy/examples", {"deploy/runtime"}},
    {"proto", {}},
};

// Heavy libraries: how the names of their headers begin, the folders that may name these, and the folders that may
// include headers of ours that bring them in.
struct HeavyLibrary {
  std::string headers;
  std::set<std::string> named_in, seen_in = {};
};
// clang-format off
const std::vector<HeavyLibrary> kHeavyLibraries = {
    {"llvm/", {"compiler/codegen"}},
    {"xgboost/", {"tuner/model"}},
    {"sqlite3.h", {"database/sqlite"}},
    {"libpq-fe.h", {"database/postgres"}},
    {"httplib.h", {"tuner/service/endpoints"}},
    {"onnx/", {"compiler/frontend"}},
    {"google/protobuf/", {"compiler/frontend"}},
    {"CL/", {"deploy/runtime/devices"}},
    {"cuda.h", {"compiler/codegen", "deploy/runtime/devices", "worker/runner"}},
    {"nanobind/", {"deploy/python"}},
    {"CLI/", {"compiler/driver", "compiler/driver/commands", "compiler/driver/models", "proto/rpc", "tuner/search",
              "tuner/search/replay", "tuner/service", "tuner/service/access", "worker/agent"}},
    {"grpcpp/", {"proto/rpc", "tuner/service", "tuner/service/access", "tuner/service/endpoints", "worker/agent",
                 "worker/agent/builds", "worker/agent/session"},
                {"compiler/driver", "compiler/driver/bundles", "compiler/driver/commands", "compiler/driver/models",
                 "compiler/driver/service", "tuner/service/core"}},
};
// clang-format on

// The folder of an include that is ours, else "".
std::string FolderOf(const std::string& include) {
  static const std::set<std::string> kTops = {"compiler", "tuner", "worker", "deploy", "database", "proto"};
  const size_t slash = include.find('/');
  if (slash == std::string::npos || kTops.count(include.substr(0, slash)) == 0) return "";
  return include.substr(0, include.rfind('/'));
}

bool Covers(const std::string& entry, const std::string& folder) {
  if (!entry.ends_with("/*")) return entry == folder;
  const std::string top = entry.substr(0, entry.size() - 2);
  return folder == top || folder.starts_with(top + "/");
}

// The folders of the table that this one may include.
std::set<std::string> AllowedFor(const std::string& folder) {
  std::set<std::string> allowed;
  for (const std::string& entry : kMayInclude.at(folder)) {
    for (const auto& [target, unused] : kMayInclude) {
      if (Covers(entry, target)) allowed.insert(target);
    }
  }
  return allowed;
}

struct Include {
  fs::path file;
  int line;
  std::string what;
};

// Those that the build completes ("x.cc.in") among them.
bool IsSource(const fs::path& file) {
  const std::string extension = (file.extension() == ".in" ? file.stem() : file).extension();
  return extension == ".h" || extension == ".cc" || extension == ".c";
}

std::vector<Include> IncludesOf(const fs::path& folder) {
  std::vector<Include> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!IsSource(entry.path())) continue;
    std::ifstream in(entry.path());
    std::string text;
    for (int line = 1; std::getline(in, text); ++line) {
      if (text.rfind("#include", 0) != 0) continue;
      const size_t open = text.find_first_of("\"<");
      const size_t close = text.find_first_of("\">", open + 1);
      if (open == std::string::npos || close == std::string::npos) continue;
      found.push_back({entry.path(), line, text.substr(open + 1, close - open - 1)});
    }
  }
  return found;
}

TEST(Layering, IncludesFollowTheArrows) {
  size_t seen = 0;
  for (const auto& [folder, unused] : kMayInclude) {
    ASSERT_TRUE(fs::is_directory(kRoot / folder)) << folder << " is in the table but not in the project";
    const std::set<std::string> allowed = AllowedFor(folder);
    for (const Include& include : IncludesOf(kRoot / folder)) {
      ++seen;
      const std::string target = FolderOf(include.what);
      if (target.empty() || target == folder || target == "compiler/support" || target == "proto") continue;
      EXPECT_TRUE(allowed.count(target) > 0)
          << include.file.string() << ":" << include.line << ": " << folder << " may not include " << include.what;
    }
  }
  EXPECT_GT(seen, 100u) << "the include lines were not found";
}

// The headers of ours, by the paths that they are included by, that bring a library's in, directly or through others.
std::set<std::string> HeadersThatBring(const std::vector<Include>& includes, const HeavyLibrary& library) {
  std::set<std::string> bringing;
  for (size_t before = 1; bringing.size() != before;) {
    before = bringing.size();
    for (const Include& include : includes) {
      if (include.file.extension() != ".h") continue;
      if (include.what.starts_with(library.headers) || bringing.count(include.what) > 0)
        bringing.insert(include.file.lexically_relative(kRoot).string());
    }
  }
  return bringing;
}

// Headers of heavy libraries take seconds to read: few files do.
TEST(Layering, HeavyHeadersStayInTheirFolders) {
  std::vector<Include> includes;
  for (const auto& [folder, unused] : kMayInclude) {
    for (Include& include : IncludesOf(kRoot / folder)) includes.push_back(std::move(include));
  }
  for (const HeavyLibrary& library : kHeavyLibraries) {
    const std::set<std::string> bringing = HeadersThatBring(includes, library);
    for (const Include& include : includes) {
      const std::string folder = include.file.parent_path().lexically_relative(kRoot).string();
      if (library.named_in.count(folder) > 0) continue;
      EXPECT_FALSE(include.what.starts_with(library.headers))
          << include.file.string() << ":" << include.line << ": " << include.what << " belongs to another folder";
      EXPECT_TRUE(bringing.count(include.what) == 0 || library.seen_in.count(folder) > 0)
          << include.file.string() << ":" << include.line << ": " << include.what << " brings " << library.headers
          << " in";
    }
  }
}

// The tests, and what is built, are not held to the table; folders without sources need no row.
TEST(Layering, EverySourceFolderIsInTheTable) {
  size_t seen = 0;
  for (const fs::directory_entry& top : fs::directory_iterator(kRoot)) {
    const std::string name = top.path().filename();
    if (!top.is_directory() || name.starts_with(".") || name == "build" || name == "tests") continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      if (!entry.is_regular_file() || !IsSource(entry.path())) continue;
      const std::string folder = entry.path().parent_path().lexically_relative(kRoot).string();
      EXPECT_TRUE(kMayInclude.count(folder) > 0) << folder << " has no row in the table of this test";
      ++seen;
    }
  }
  EXPECT_GT(seen, 500u) << "the sources were not found";
}

// A clock that is set ends no wait and starts none: durations are of MonotonicNow(). The clock on the wall is for what
// people read, for the hours of a day, for certificates, and for gRPC, which takes deadlines by it.
TEST(Layering, DurationsAreNotOfTheClockOnTheWall) {
  const std::regex wall("absl::Now\\(\\)|system_clock::now\\(\\)|gettimeofday\\(|\\btime\\(nullptr\\)");
  const std::regex may("FormatTime\\(|ToChronoTime\\(|->Shutdown\\(|\\.Lacks\\(|deadline - ");
  const std::set<fs::path> dates = {"compiler/driver/commands/ca_command.cc", "proto/rpc/authority.cc",
                                    "proto/rpc/revocation.cc"};
  int seen = 0;
  for (const auto& [folder, unused] : kMayInclude) {
    for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / folder)) {
      const fs::path file = fs::relative(entry.path(), kRoot);
      if (dates.count(file) > 0 || !IsSource(file)) continue;
      std::ifstream source(entry.path());
      int number = 0;
      for (std::string line; std::getline(source, line);) {
        ++number;
        if (!std::regex_search(line.substr(0, line.find("//")), wall)) continue;
        ++seen;
        EXPECT_TRUE(std::regex_search(line, may)) << file.string() << ":" << number << ": " << line;
      }
    }
  }
  EXPECT_GE(seen, 3) << "the lines were not found";
}

// A folder that is reached from itself would be one folder with that which it is reached through.
TEST(Layering, ArrowsGoOneWay) {
  std::map<std::string, std::set<std::string>> reached;
  for (const auto& [folder, unused] : kMayInclude) reached[folder] = AllowedFor(folder);
  for (const auto& [middle, unused] : kMayInclude) {
    for (auto& [folder, targets] : reached) {
      if (targets.count(middle) == 0) continue;
      const std::set<std::string> further = reached[middle];
      targets.insert(further.begin(), further.end());
    }
  }
  for (const auto& [folder, targets] : reached) EXPECT_EQ(targets.count(folder), 0u) << folder << " includes itself";
}

}  // namespace
