// Programs started beside this one: what they inherit, and what is said when there is none to start.
#include "compiler/support/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/support/descriptor_limit.h"
#include "tests/compiler/support/keeps_from_ending.h"

namespace hone {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(20);

// What a shell command writes to its standard output.
std::string OutputOf(const std::string& command) {
  absl::StatusOr<ChildProcess> child = ChildProcess::Start("/bin/sh", {"-c", command});
  EXPECT_TRUE(child.ok()) << child.status();
  if (!child.ok()) return "";
  child->CloseInput();
  std::string output;
  char bytes[256];
  for (ssize_t got; (got = ::read(child->output(), bytes, sizeof(bytes))) > 0;) {
    output.append(bytes, static_cast<size_t>(got));
  }
  EXPECT_EQ(child->Wait(kLimit), std::optional<int>(0));
  return output;
}

TEST(ChildProcess, TalksOverPipes) { EXPECT_EQ(OutputOf("echo hello"), "hello\n"); }

TEST(ChildProcess, SaysWhyThereIsNone) {
  EXPECT_EQ(ChildProcess::Start("/no/such/program", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ChildProcess::Start("/etc/passwd", {}).status().code(), absl::StatusCode::kPermissionDenied);
}

// What is missing for a moment is not held against the kernel: later children have the namespaces that earlier ones
// had.
TEST(ChildProcess, AShortageIsSaidAndPasses) {
  const ChildOptions options = {.namespaces = kAllNamespaces};
  const int namespaces = ChildProcess::Start("/bin/true", {}, options)->namespaces();
  const std::set<int> open = Descriptors();
  for (int more = 0; more < 6; ++more) {  // of the four pipe ends, and two for the report
    const DescriptorLimit limit(more);
    EXPECT_EQ(ChildProcess::Start("/bin/true", {}, options).status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(Descriptors(), open);
  EXPECT_EQ(ChildProcess::Start("/bin/true", {}, options)->namespaces(), namespaces);
}

TEST(ChildProcess, KeepsTheDescriptorsItIsGivenAndNoOther) {
  int given[2], other[2];
  ASSERT_EQ(::pipe2(given, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(other, O_CLOEXEC), 0);
  const std::string command =
      "test -e /proc/self/fd/" + std::to_string(given[1]) + " && ! test -e /proc/self/fd/" + std::to_string(other[1]);
  absl::StatusOr<ChildProcess> child =
      ChildProcess::Start("/bin/sh", {"-c", command}, {.pipes = false, .inherit = {given[1]}});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(child->Wait(kLimit), std::optional<int>(0));
  for (const int fd : {given[0], given[1], other[0], other[1]}) ::close(fd);
}

// A child begins with signals as a program expects them, whatever its parent blocks and catches; and the parent keeps
// what it had.
TEST(ChildProcess, BeginsWithUsualSignals) {
  struct sigaction caught {
  }, before{};
  caught.sa_handler = [](int) { ::_exit(9); };
  ASSERT_EQ(::sigaction(SIGTERM, &caught, &before), 0);
  ::signal(SIGPIPE, SIG_IGN);
  for (const int ignored_by_shells : {SIGHUP, SIGINT, SIGQUIT})
    ::signal(ignored_by_shells, SIG_DFL);  // for nohup and &
  sigset_t blocked, old;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &old);

  EXPECT_EQ(OutputOf("grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t\\n'"),
            "SigBlk:0000000000000000SigIgn:0000000000000000");

  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, &old, &now);
  EXPECT_TRUE(::sigismember(&now, SIGUSR1));
  EXPECT_FALSE(::sigismember(&now, SIGUSR2));
  struct sigaction after {};
  ASSERT_EQ(::sigaction(SIGTERM, &before, &after), 0);
  EXPECT_EQ(after.sa_handler, caught.sa_handler);
  ::signal(SIGPIPE, SIG_DFL);
}

TEST(ChildProcess, IsKilledWithItsHandle) {
  pid_t pid;
  {
    absl::StatusOr<ChildProcess> child = ChildProcess::Start("/bin/sleep", {"600"});
    ASSERT_TRUE(child.ok());
    pid = child->pid();
    EXPECT_EQ(child->Poll(), std::nullopt);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(ChildProcess, ThatDoesNotEndWhenItIsKilledIsLeftAndReapedLater) {
  absl::StatusOr<ChildProcess> child = ChildProcess::Start("/bin/sleep", {"600"}, {.namespaces = kAllNamespaces});
  ASSERT_TRUE(child.ok()) << child.status();
  const pid_t pid = child->pid();
  KeepsFromEnding keeper(pid);
  const absl::Time before = absl::Now();
  { const ChildProcess ended = *std::move(child); }
  const absl::Duration took = absl::Now() - before;
  if (keeper.holds()) {
    EXPECT_THAT(ChildProcess::Left(), testing::ElementsAre(pid));
    EXPECT_GE(took, absl::Seconds(2));
    EXPECT_LT(took, absl::Seconds(15)) << "nobody waits for it for ever";
  }
  keeper.LetGo();
  for (const absl::Time end = absl::Now() + kLimit; !ChildProcess::Left().empty() && absl::Now() < end;) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(ChildProcess::Left(), testing::IsEmpty());
  EXPECT_EQ(::kill(pid, 0), -1) << "it was reaped";
  if (!keeper.holds()) GTEST_SKIP() << "this machine lets nobody enter a pid namespace";
}

// A descriptor that nobody marked to be closed is not handed on either.
TEST(ChildProcess, InheritsNothingByAccident) {
  const int forgotten = ::open("/dev/null", O_RDONLY);
  ASSERT_GE(forgotten, 0);
  absl::StatusOr<ChildProcess> child =
      ChildProcess::Start("/bin/sh", {"-c", "! test -e /proc/self/fd/" + std::to_string(forgotten)}, {.pipes = false});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(child->Wait(kLimit), std::optional<int>(0));
  ::close(forgotten);
}

TEST(ChildProcess, KeepsWhatItSaysLastAndIsNotHeldUpByIt) {
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(
      "/bin/sh", {"-c", "echo first >&2; head -c 1000000 /dev/zero >&2; exit 0"}, {.pipes = false, .error_pipe = true});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(child->Wait(kLimit), std::optional<int>(0)) << "a full pipe held it up";
  const std::string errors = child->TakeErrors();
  EXPECT_EQ(errors.substr(0, 6), "first\n");
  EXPECT_LE(errors.size(), size_t{128} << 10);
}

// Whatever the kernel gives: the child runs, and says what it is told of it.
TEST(ChildProcess, RunsInNamespacesOfItsOwn) {
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(
      "/bin/sh", {"-c", "echo $$; grep -c : /proc/self/net/dev; id -u"}, {.namespaces = kAllNamespaces});
  ASSERT_TRUE(child.ok()) << child.status();
  std::string output;
  char bytes[256];
  for (ssize_t got; (got = ::read(child->output(), bytes, sizeof(bytes))) > 0;) {
    output.append(bytes, static_cast<size_t>(got));
  }
  EXPECT_EQ(child->Wait(kLimit), std::optional<int>(0));
  const bool own_ids = (child->namespaces() & CLONE_NEWPID) != 0,
             own_network = (child->namespaces() & CLONE_NEWNET) != 0,
             own_users = (child->namespaces() & CLONE_NEWUSER) != 0;
  if (!own_ids || !own_network) std::printf("this machine gives no pid or no network namespace\n");
  EXPECT_TRUE(!own_ids || output.substr(0, 2) == "1\n") << output;
  EXPECT_TRUE(!own_network || output.find("\n1\n") != std::string::npos) << "there is more than loopback: " << output;
  EXPECT_TRUE(!own_users || output.ends_with("\n0\n")) << "it is not the superuser of its own namespace: " << output;
}

}  // namespace
}  // namespace hone
