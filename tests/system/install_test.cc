// `cmake --install`, and what a user does with what it put there: the programs work from where they are, a C program is
// built against the runtime by pkg-config and by the CMake package, and bash, zsh and fish complete commands.
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/terminal.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using testing::HasSubstr;

class Installed : public testing::Test {
 protected:
  void SetUp() override {
    Run("cmake --install " HONE_BIN "/.. --prefix " + prefix_ + " >/dev/null");
    const Finished compile =
        Hone(folder_, {"compile", SaveTiny(folder_.path()), "-o", folder_ / "tiny.hone", "--untuned"});
    ASSERT_EQ(compile.code, 0) << compile.errors;
  }

  Finished Run(const std::string& command) const {
    const Finished finished = RunProgram(folder_, "/bin/bash", {"-c", "set -euo pipefail; " + command}, 300);
    EXPECT_EQ(finished.code, 0) << command << "\n" << finished.output << finished.errors;
    return finished;
  }
  // The example run on the bundle: it prints its tensors and a time.
  void ExpectRuns(const std::string& program) const {
    const Finished run = Run(program + " " + folder_ / "tiny.hone" + " 5");
    EXPECT_THAT(run.output, HasSubstr("input x: float32 (12, 50)\noutput y: float32 (12, 12): "));
    EXPECT_THAT(run.output, HasSubstr(" ms (median of 5 runs"));
  }

  TempFolder folder_;
  const std::string prefix_ = folder_ / "prefix";
  const std::string example_ = HONE_TEST_DATA "/../deploy/examples";
};

TEST_F(Installed, TheTreeIsComplete) {
  for (const char* program : {"hone", "honed", "hone-search", "hone-worker", "hone-builder", "hone-oracle",
                              "hone-runner", "hone-device-runner"}) {
    EXPECT_TRUE(std::filesystem::exists(prefix_ + "/bin/" + program)) << program;
  }
  const std::string libraries =
      std::filesystem::path(Run("find " + prefix_ + " -name libhone_runtime.a").output).parent_path().string();
  for (const char* file : {"/libhone_runtime.so", "/libhone_runtime.so.0", "/pkgconfig/hone_runtime.pc",
                           "/cmake/hone/hone-config.cmake", "/cmake/hone/hone-config-version.cmake"}) {
    EXPECT_TRUE(std::filesystem::exists(libraries + file)) << libraries << file;
  }
  EXPECT_TRUE(std::filesystem::exists(prefix_ + "/include/hone_runtime.h"));
  // The client finds the other programs beside it, and nothing in the tree names the build.
  const Finished doctor = RunProgram(folder_, prefix_ + "/bin/hone", {"doctor"});
  EXPECT_THAT(doctor.output, HasSubstr("all in " + std::filesystem::canonical(prefix_).string() + "/bin"));
  EXPECT_EQ(Run("grep -rlI -- " HONE_BIN " " + prefix_ + " || true").output, "");
}

TEST_F(Installed, ACProgramIsBuiltByPkgConfig) {
  const std::string find = "export PKG_CONFIG_PATH=$(dirname $(find " + prefix_ + " -name hone_runtime.pc)); ";
  Run(find + "cc -Wall -Wextra -Werror -std=c99 " + example_ + "/run_bundle.c -o " + folder_ / "by_pc" +
      " $(pkg-config --cflags --libs hone_runtime)");
  ExpectRuns("LD_LIBRARY_PATH=$(dirname $(find " + prefix_ + " -name libhone_runtime.so)) " + folder_ / "by_pc");
  Run(find + "cc " + example_ + "/run_bundle.c -o " + folder_ / "by_pc_static" +
      " $(pkg-config --cflags hone_runtime) $(find " + prefix_ + " -name libhone_runtime.a)" +
      " $(pkg-config --static --libs-only-other --libs-only-l hone_runtime | sed s/-lhone_runtime//)");
  ExpectRuns(folder_ / "by_pc_static");
}

TEST_F(Installed, ACProgramIsBuiltByTheCMakePackage) {
  std::filesystem::rename(prefix_, prefix_ + "-moved");  // the tree may be moved
  const std::string build = folder_ / "example";
  Run("cmake -S " + example_ + " -B " + build + " -DCMAKE_PREFIX_PATH=" + prefix_ +
      "-moved >/dev/null && cmake --build " + build + " >/dev/null");
  ExpectRuns(build + "/run_bundle");
  ExpectRuns(build + "/run_bundle_static");
  EXPECT_THAT(Run("ldd " + build + "/run_bundle").output, HasSubstr("libhone_runtime.so.0"));
  EXPECT_THAT(Run("ldd " + build + "/run_bundle_static").output, testing::Not(HasSubstr("libhone_runtime")));
}

// What bash offers when TAB is pressed behind `line`, one a line.
TEST_F(Installed, BashCompletes) {
  const auto offered = [&](const std::string& line) {
    const std::string last_word = line.substr(line.rfind(' ') + 1);
    return Run("PATH=" + prefix_ + "/bin:$PATH; source " + prefix_ + "/share/bash-completion/completions/hone; " +
               "complete -p hone honed hone-worker >/dev/null; COMP_WORDS=(" + line +
               (last_word.empty() ? "\"\"" : "") +
               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _hone ${COMP_WORDS[0]} || true; " +
               "printf '%s\\n' \"${COMPREPLY[@]}\"")
        .output;
  };
  EXPECT_THAT(offered("hone "), testing::AllOf(HasSubstr("tune\n"), HasSubstr("compile\n"), HasSubstr("doctor\n")));
  EXPECT_EQ(offered("hone comp"), "compile\n");
  EXPECT_THAT(offered("hone jobs "), testing::AllOf(HasSubstr("list\n"), HasSubstr("watch\n")));
  EXPECT_EQ(offered("hone jobs list --token"), "--token-file\n");
  EXPECT_EQ(offered("hone opt program.py --run "), "interp\nllvm\n");
  EXPECT_EQ(offered("hone tune model."), "\n") << "a file is meant";
  EXPECT_EQ(offered("honed --lis"), "--listen\n");
  EXPECT_EQ(offered("hone-worker --serv"), "--server\n");
}

TEST_F(Installed, FishCompletes) {
  const auto offered = [&](const std::string& line) {
    return Run("fish --no-config -c 'set PATH " + prefix_ +
               "/bin $PATH; for command in hone honed hone-worker; source " + prefix_ +
               "/share/fish/vendor_completions.d/$command.fish; end; complete -C \"" + line + "\"'")
        .output;
  };
  EXPECT_THAT(offered("hone "), testing::AllOf(HasSubstr("tune\n"), HasSubstr("compile\n"), HasSubstr("doctor\n")));
  EXPECT_EQ(offered("hone comp"), "compile\n");
  EXPECT_EQ(offered("hone jobs list --token"), "--token-file\n");
  EXPECT_EQ(offered("hone opt program.py --run "), "interp\nllvm\n");
  EXPECT_EQ(offered("hone run " + folder_ / "tiny.h"), folder_ / "tiny.hone\n") << "a file is meant";
  EXPECT_EQ(offered("honed --lis"), "--listen\n");
  EXPECT_EQ(offered("hone-worker --serv"), "--server\n");
}

// zsh completes in its line editor alone, so it gets a terminal and a TAB.
TEST_F(Installed, ZshCompletes) {
  Terminal zsh(folder_, "/usr/bin/zsh", {"-f", "-i"}, 200, {{"TERM", "dumb"}});
  zsh.Type("path=(" + prefix_ + "/bin $path) fpath=(" + prefix_ + "/share/zsh/site-functions $fpath); " +
           "autoload -U compinit; compinit -u -D; PS1='ready'$'>'\n");
  const auto completes = [&](const std::string& line, const std::string& whole) {
    ASSERT_TRUE(WaitUntil([&] { return zsh.Shows("ready>"); }, 60)) << zsh.Screen();
    zsh.Type(line + "\t");
    EXPECT_TRUE(WaitUntil([&] { return zsh.Shows(whole); }, 60)) << line << "\n" << zsh.Screen();
    zsh.Type("\x15");  // away with the line
  };
  completes("hone comp", "hone compile ");
  completes("hone jobs exp", "hone jobs explain ");
  completes("hone jobs list --token", "hone jobs list --token-file ");
  completes("hone opt program.py --run ", "interp  llvm");
  completes("hone run " + folder_ / "tiny.h", folder_ / "tiny.hone ");
  completes("honed --lis", "honed --listen ");
  completes("hone-worker --serv", "hone-worker --server ");
}

// What cpack makes of the components: packages that name what they need, and whose programs run from where they are.
TEST(DebianPackages, HoldTheComponents) {
  const TempFolder folder;
  const auto run = [&](const std::string& command) {
    const Finished finished = RunProgram(folder, "/bin/bash", {"-c", "set -euo pipefail; " + command}, 500);
    EXPECT_EQ(finished.code, 0) << command << "\n" << finished.output << finished.errors;
    return finished.output;
  };
  run("cd " HONE_BIN "/.. && cpack -G DEB -B " + folder / "packages" + " >/dev/null");
  const std::string programs = "$(ls " + folder / "packages" + "/hone-programs_*.deb)";
  const std::string runtime = "$(ls " + folder / "packages" + "/hone-runtime_*.deb)";
  EXPECT_THAT(run("dpkg-deb -f " + programs + " Depends"), HasSubstr("libgrpc++"));
  EXPECT_THAT(run("dpkg-deb -f " + runtime + " Depends"), testing::Not(HasSubstr("libgrpc")));
  run("dpkg-deb -x " + programs + " " + folder / "root" + " && dpkg-deb -x " + runtime + " " + folder / "root");
  for (const char* file :
       {"bin/hone", "bin/honed", "bin/hone-worker", "bin/hone-runner", "lib/systemd/system/honed.service",
        "lib/systemd/system/hone-worker.service", "lib/sysusers.d/hone.conf", "include/hone_runtime.h"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / "root/usr/" + file)) << file;
  }
  const Finished version = RunProgram(folder, folder / "root/usr/bin/hone", {"--version"});
  EXPECT_THAT(run("dpkg-deb -f " + programs + " Version"), HasSubstr(version.output.substr(5)));
}

}  // namespace
}  // namespace hone::system_test
