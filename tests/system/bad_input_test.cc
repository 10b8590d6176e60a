// What users get wrong: one clear message, the documented exit code, nothing written.
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using testing::HasSubstr;

// Lines that are not indented: a message may list below it what it is about.
int Headlines(const std::string& text) {
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line);) count += line.empty() || line[0] != ' ';
  return count;
}

// The command ends with `code`, says one thing that mentions `says`, and leaves the folder as it was.
void ExpectRefused(const TempFolder& folder, const Arguments& arguments, int code, const std::string& says) {
  std::string command;
  for (const std::string& argument : arguments) command += argument + " ";
  SCOPED_TRACE(command);
  const std::vector<std::string> before = folder.Files();
  const Finished finished = Hone(folder, arguments);
  EXPECT_EQ(finished.code, code) << finished.errors;
  EXPECT_TRUE(finished.output.empty()) << finished.output;
  EXPECT_EQ(finished.errors.rfind("hone: ", 0), 0u) << finished.errors;
  EXPECT_EQ(Headlines(finished.errors), 1) << finished.errors;
  EXPECT_THAT(finished.errors, HasSubstr(says));
  EXPECT_EQ(folder.Files(), before);
}

void ExpectNotImported(const TempFolder& folder, const std::string& model, const std::string& says) {
  ExpectRefused(folder, {"compile", model, "-o", folder / "out.hone", "--untuned"}, 3, says);
}
void ExpectNotImported(const TempFolder& folder, const onnx::ModelProto& model, const std::string& says) {
  Save(model, folder / "bad.onnx");
  ExpectNotImported(folder, folder / "bad.onnx", says);
}

TEST(BadModel, IsNotOnnx) {
  const TempFolder folder;
  WriteAll(folder / "bad.onnx", "this is a text file, and not a short one either\n");
  ExpectNotImported(folder, folder / "bad.onnx", "bad.onnx");
  WriteAll(folder / "bad.onnx", "");
  ExpectNotImported(folder, folder / "bad.onnx", "bad.onnx");
  WriteAll(folder / "bad.onnx", std::string(4096, '\xff'));
  ExpectNotImported(folder, folder / "bad.onnx", "bad.onnx");
  ExpectNotImported(folder, folder / "absent.onnx", "absent.onnx");
}

TEST(BadModel, IsTruncated) {
  const TempFolder folder;
  const std::string whole = TinyModel().Proto().SerializeAsString();
  for (size_t i = 1; i <= 20; ++i) {
    WriteAll(folder / "bad.onnx", whole.substr(0, whole.size() * i / 21));
    ExpectNotImported(folder, folder / "bad.onnx", "bad.onnx");
  }
}

TEST(BadModel, HasAnUnknownOperator) {
  const TempFolder folder;
  onnx::ModelProto model = TinyModel().Proto();
  model.mutable_graph()->mutable_node(1)->set_op_type("Frobnicate");
  ExpectNotImported(folder, model, "Frobnicate");
}

TEST(BadModel, IsCyclic) {
  const TempFolder folder;
  onnx::ModelProto model = TinyModel().Proto();
  onnx::GraphProto& graph = *model.mutable_graph();
  AddNode(graph, "Relu", {"c"}, "d");
  AddNode(graph, "Relu", {"d"}, "c");
  graph.mutable_node(1)->set_op_type("Add");
  graph.mutable_node(1)->add_input("c");
  ExpectNotImported(folder, model, "make_d");
}

TEST(BadModel, HasShapesThatOverflow) {
  const TempFolder folder;
  const std::vector<int64_t> huge{int64_t{1} << 40, int64_t{1} << 40};
  onnx::ModelProto model = TinyModel().Proto();
  model.mutable_graph()->mutable_input(0)->Clear();
  SetType(*model.mutable_graph()->mutable_input(0), "x", huge);
  ExpectNotImported(folder, model, "x");
  model = TinyModel().Proto();
  onnx::TensorProto* weight = model.mutable_graph()->mutable_initializer(0);
  weight->clear_dims();
  for (const int64_t extent : huge) weight->add_dims(extent);
  ExpectNotImported(folder, model, "w1");
  weight->set_dims(0, -4);
  ExpectNotImported(folder, model, "w1");
}

// The first weights, kept in another file.
onnx::ModelProto WithExternalData(const std::string& location) {
  onnx::ModelProto model = TinyModel().Proto();
  onnx::TensorProto* weight = model.mutable_graph()->mutable_initializer(0);
  weight->clear_raw_data();
  weight->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* entry = weight->add_external_data();
  entry->set_key("location");
  entry->set_value(location);
  return model;
}

TEST(BadModel, HasNoExternalData) {
  const TempFolder folder;
  ExpectNotImported(folder, WithExternalData("weights.bin"), "weights.bin");
  const TinyModel tiny;
  const std::string bytes(reinterpret_cast<const char*>(tiny.w1.data()), tiny.w1.size() * sizeof(float));
  WriteAll(folder / "weights.bin", bytes.substr(4));
  ExpectNotImported(folder, WithExternalData("weights.bin"), "weights.bin");
  WriteAll(folder / "weights.bin", bytes);
  EXPECT_EQ(Hone(folder, {"compile", folder / "bad.onnx", "-o", folder / "good.hone", "--untuned"}).code, 0);
}

TEST(BadModel, HasExternalDataOutsideItsFolder) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "inner");
  const TinyModel tiny;
  WriteAll(folder / "secret.bin",
           std::string(reinterpret_cast<const char*>(tiny.w1.data()), tiny.w1.size() * sizeof(float)));
  std::filesystem::create_symlink("../secret.bin", folder / "inner/link.bin");
  for (const std::string& location :
       {std::string("../secret.bin"), std::string("./../secret.bin"), folder / "secret.bin", std::string("link.bin")}) {
    Save(WithExternalData(location), folder / "inner/bad.onnx");
    ExpectNotImported(folder, folder / "inner/bad.onnx", location);
  }
}

class BadBundle : public testing::Test {
 protected:
  void SetUp() override {
    const Finished compile =
        Hone(folder_, {"compile", SaveTiny(folder_.path()), "-o", bundle_, "--untuned", "--threads", "1"});
    ASSERT_EQ(compile.code, 0) << compile.errors;
    WriteNpy(folder_ / "x.npy", {TinyModel::kRows, TinyModel::kIn}, TinyModel().Input(0));
  }
  Arguments Run(const std::string& bundle, const std::string& input) const {
    return {"run", bundle, "--input", input, "--output", "y=" + (folder_ / "y.npy")};
  }
  std::string x() const { return "x=" + (folder_ / "x.npy"); }

  TempFolder folder_;
  const std::string bundle_ = folder_ / "tiny.hone", bad_ = folder_ / "bad.hone";
};

TEST_F(BadBundle, InputDoesNotFit) {
  const TinyModel tiny;
  const std::string other = folder_ / "other.npy";
  WriteNpy(other, {TinyModel::kIn, TinyModel::kRows}, tiny.Input(0));
  ExpectRefused(folder_, Run(bundle_, "x=" + other), 2, "(12, 50)");
  WriteNpy(other, {TinyModel::kRows * TinyModel::kIn}, tiny.Input(0));
  ExpectRefused(folder_, Run(bundle_, "x=" + other), 2, "(12, 50)");
  std::string integers = ReadAll(folder_ / "x.npy");
  WriteAll(other, integers.replace(integers.find("<f4"), 3, "<i4"));
  ExpectRefused(folder_, Run(bundle_, "x=" + other), 2, "float32");
  WriteAll(other, ReadAll(folder_ / "x.npy").substr(0, 500));
  ExpectRefused(folder_, Run(bundle_, "x=" + other), 2, "other.npy");
  WriteAll(other, "not an array");
  ExpectRefused(folder_, Run(bundle_, "x=" + other), 2, "other.npy");
  ExpectRefused(folder_, Run(bundle_, "z=" + (folder_ / "x.npy")), 2, "'z'");
  ExpectRefused(folder_, Run(bundle_, "x=" + (folder_ / "absent.npy")), 2, "absent.npy");
  ExpectRefused(folder_, Run(bundle_, "x"), 2, "NAME=FILE.npy");
  ExpectRefused(folder_, {"run", bundle_, "--output", "y=" + (folder_ / "y.npy")}, 2, "'x'");
  ExpectRefused(folder_, {"run", bundle_, "--input", x(), "--output", "nothing=" + (folder_ / "y.npy")}, 2, "nothing");
}

TEST_F(BadBundle, IsCorrupt) {
  const std::string whole = ReadAll(bundle_);
  for (size_t i = 0; i < 16; ++i) {
    std::string bytes = whole;
    bytes[i == 0 ? 0 : bytes.size() * i / 16] ^= 0x20;
    WriteAll(bad_, bytes);
    ExpectRefused(folder_, Run(bad_, x()), 9, "bad.hone");
  }
  for (size_t i = 0; i < 8; ++i) {
    WriteAll(bad_, whole.substr(0, whole.size() * i / 8));
    ExpectRefused(folder_, Run(bad_, x()), 9, "bad.hone");
  }
  WriteAll(bad_, whole + "x");
  ExpectRefused(folder_, Run(bad_, x()), 9, "bad.hone");
  ExpectRefused(folder_, {"bench", bad_}, 9, "bad.hone");
  ExpectRefused(folder_, {"inspect", bad_}, 9, "bad.hone");
}

TEST_F(BadBundle, IsForAnotherCpu) {
#if defined(__x86_64__)
  const char* target = "cpu:cortex-a76";
#else
  const char* target = "cpu:x86-64-v3";
#endif
  const Finished compile =
      Hone(folder_, {"compile", folder_ / "tiny.onnx", "-o", bad_, "--untuned", "--threads", "1", "--target", target});
  ASSERT_EQ(compile.code, 0) << compile.errors;
  ExpectRefused(folder_, Run(bad_, x()), 10, "bad.hone");
  ExpectRefused(folder_, {"bench", bad_}, 10, "bad.hone");
}

// The same architecture, but an instruction set extension that this machine does not have.
TEST_F(BadBundle, NeedsAFeatureThisCpuLacks) {
  const std::string cpuinfo = ReadAll("/proc/cpuinfo");
  const size_t at = cpuinfo.find("\nflags");
  if (at == std::string::npos) GTEST_SKIP() << "not an x86-64 machine";
  const std::string flags = cpuinfo.substr(at + 1, cpuinfo.find('\n', at + 1) - at - 1) + " ";
  struct Extension {
    const char *flag, *target, *feature;
  };
  const Extension extensions[] = {{" avx512f ", "cpu:x86-64-v4", "avx512f"},
                                  {" avx512_fp16 ", "cpu:x86-64-v4+avx512fp16", "avx512fp16"},
                                  {" avx_vnni ", "cpu:x86-64-v3+avxvnni", "avxvnni"}};
  int lacking = 0;
  for (const Extension& extension : extensions) {
    if (flags.find(extension.flag) != std::string::npos) continue;
    ++lacking;
    const Finished compile = Hone(folder_, {"compile", folder_ / "tiny.onnx", "-o", bad_, "--untuned", "--threads", "1",
                                            "--target", extension.target});
    ASSERT_EQ(compile.code, 0) << extension.target << ": " << compile.errors;
    ExpectRefused(folder_, Run(bad_, x()), 10, extension.feature);
    ExpectRefused(folder_, {"bench", bad_}, 10, extension.feature);
  }
  if (lacking == 0) GTEST_SKIP() << "this CPU has every extension that a target can name";
}

TEST(BadService, DatabaseIsNotOne) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), database = folder / "bad.db";
  std::string bytes;
  for (int i = 0; i < 400; ++i) bytes += "a letter to somebody\n";
  WriteAll(database, bytes);
  ExpectRefused(folder, {"records", "list", "--json", "--db", database}, 9, "bad.db");
  ExpectRefused(folder, {"records", "export", "--db", database}, 9, "bad.db");
  ExpectRefused(folder, {"compile", model, "-o", folder / "out.hone", "--db", database}, 9, "bad.db");
  const Finished daemon = RunProgram(folder, "honed", {"--db", database, "--listen", "unix:" + (folder / "s")});
  EXPECT_EQ(daemon.code, 9) << daemon.errors;
  EXPECT_THAT(daemon.errors, HasSubstr("bad.db"));
  const Finished tune = Hone(folder, {"tune", model, "--db", database, "--trials", "1"});
  EXPECT_EQ(tune.code, 9) << tune.errors;
  EXPECT_EQ(ReadAll(database), bytes) << "the file was changed";
  ExpectRefused(folder, {"records", "list", "--json", "--db", folder / "absent.db"}, 2, "absent.db");
}

TEST(BadService, NobodyListens) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), nowhere = "unix:" + (folder / "nobody");
  ExpectRefused(folder, {"tune", model, "--server", nowhere, "--trials", "1"}, 5, "nobody");
  ExpectRefused(folder, {"jobs", "list", "--server", nowhere}, 5, "nobody");
  ExpectRefused(folder, {"compile", model, "-o", folder / "out.hone", "--server", nowhere}, 5, "nobody");
  ExpectRefused(folder, {"jobs", "list", "--db", folder / "absent.db"}, 2, "absent.db");
  ExpectRefused(folder, {"jobs", "watch", "1", "--db", folder / "absent.db"}, 5, "absent.db");
}

TEST(BadService, TokenIsWrong) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), right = folder / "right", wrong = folder / "wrong";
  WriteAll(right, "open-sesame-0123456789\n");
  WriteAll(wrong, "open-barley-0123456789\n");
  for (const std::string& file : {right, wrong}) ::chmod(file.c_str(), 0600);
  const Finished open = RunProgram(folder, "honed", {"--db", folder / "a.db", "--listen", "127.0.0.1:0"});
  EXPECT_TRUE(open.code == 2 || open.code == 8) << "a port without a token: " << open.code;

  Process daemon(folder, "honed",
                 {"--db", folder / "tuning.db", "--listen", "127.0.0.1:0", "--insecure", "--token-file", right});
  const std::string ready = "listening on ";
  ASSERT_TRUE(WaitUntil([&] { return daemon.Output().find('\n') != std::string::npos || !daemon.running(); }))
      << daemon.Errors();
  ASSERT_EQ(daemon.Output().rfind(ready, 0), 0u) << daemon.Output() << daemon.Errors();
  const std::string address = daemon.Output().substr(ready.size(), daemon.Output().find('\n') - ready.size());
  EXPECT_EQ(Hone(folder, {"jobs", "list", "--server", address, "--token-file", right}).code, 0);
  ExpectRefused(folder, {"jobs", "list", "--server", address, "--token-file", wrong}, 8, "token");
  ExpectRefused(folder, {"jobs", "list", "--server", address}, 8, "token");
  ExpectRefused(folder, {"tune", model, "--server", address, "--token-file", wrong, "--trials", "1"}, 8, "token");
  const Finished worker =
      RunProgram(folder, "hone-worker", {"--server", address, "--token-file", wrong, "--threads", "1"});
  EXPECT_EQ(worker.code, 8) << worker.errors;
}

TEST(BadService, CertificatesAreWrong) {
  const TempFolder folder;
  const std::string ca = folder / "ca";
  ExpectRefused(folder, {"ca", "issue", ca, "--role", "worker", "--name", "edge1"}, 2, "hone ca init");
  ASSERT_EQ(Hone(folder, {"ca", "init", ca}).code, 0);
  ExpectRefused(folder, {"ca", "init", ca}, 2, "has an authority already");
  ExpectRefused(folder, {"ca", "issue", ca, "--role", "king", "--name", "edge1"}, 2, "king");
  ExpectRefused(folder, {"ca", "issue", ca, "--role", "worker", "--tenant", "a/b", "--name", "edge1"}, 2, "a/b");
  ExpectRefused(folder, {"ca", "issue", ca, "--role", "worker", "--name", "a/b"}, 2, "a/b");
  for (const char* role : {"daemon", "viewer"}) {
    ASSERT_EQ(Hone(folder, {"ca", "issue", ca, "--role", role, "--name", "127.0.0.1"}).code, 0);
  }
  const auto tls = [&](const std::string& role) -> Arguments {
    const std::string stem = ca + "/" + role + "-127.0.0.1";
    return {"--tls-ca", ca + "/ca.crt", "--tls-cert", stem + ".crt", "--tls-key", stem + ".key"};
  };
  Arguments listen = tls("daemon");
  listen.insert(listen.end(), {"--db", folder / "tuning.db", "--listen", "127.0.0.1:0"});
  Process daemon(folder, "honed", listen);
  const std::string ready = "listening on ";
  ASSERT_TRUE(WaitUntil([&] { return daemon.Output().find('\n') != std::string::npos || !daemon.running(); }))
      << daemon.Errors();
  ASSERT_EQ(daemon.Output().rfind(ready, 0), 0u) << daemon.Output() << daemon.Errors();
  const std::string address = daemon.Output().substr(ready.size(), daemon.Output().find('\n') - ready.size());
  const auto with = [&](Arguments words, const Arguments& more) {
    words.insert(words.end(), {"--server", address});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  EXPECT_EQ(Hone(folder, with({"jobs", "list"}, tls("viewer"))).code, 0);
  ExpectRefused(folder, with({"jobs", "stop", "1"}, tls("viewer")), 8, "role viewer");
  ExpectRefused(folder, with({"jobs", "list"}, {}), 5, "--tls-ca");
  const Finished worker = RunProgram(folder, "hone-worker", with({"--threads", "1"}, tls("viewer")));
  EXPECT_EQ(worker.code, 8) << worker.errors;
  const Finished half = RunProgram(folder, "hone-worker", with({"--tls-ca", ca + "/ca.crt"}, {}));
  EXPECT_EQ(half.code, 2) << half.errors;
  EXPECT_THAT(half.errors, HasSubstr("--tls-key"));
}

TEST(BadUsage, IsToldWithExitCode2) {
  const TempFolder folder;
  for (const char* program : {"hone", "honed", "hone-worker"}) {
    const Finished flag = RunProgram(folder, program, {"--frobnicate"});
    EXPECT_EQ(flag.code, 2) << program;
    EXPECT_FALSE(flag.errors.empty()) << program;
    const Finished help = RunProgram(folder, program, {"--help"});
    EXPECT_EQ(help.code, 0) << program;
    EXPECT_THAT(help.output, HasSubstr("xamples")) << program;
  }
  EXPECT_EQ(Hone(folder, {}).code, 2);
  EXPECT_EQ(Hone(folder, {"tune", "m.onnx", "--frobnicate"}).code, 2);
  EXPECT_EQ(Hone(folder, {"compile", "m.onnx"}).code, 2) << "no -o";
  const std::string model = SaveTiny(folder.path());
  ExpectRefused(folder, {"compile", model, "-o", folder / "out.hone", "--target", "cpu:pentium-cabbage"}, 2,
                "pentium-cabbage");
  ExpectRefused(folder, {"tune", model, "--db", folder / "t.db", "--budget", "soon"}, 2, "soon");
  ExpectRefused(folder, {"tune", model, "--db", folder / "t.db", "--strategy", "guess"}, 2, "guess");
  ExpectRefused(folder, {"tune", model, "--db", folder / "t.db", "--tasks", "("}, 2, "--tasks");
  ExpectRefused(folder, {"tune", model, "--db", folder / "t.db", "--tasks", "conv9000"}, 2, "conv9000");
  for (const char* command :
       {"tune", "compile", "run", "bench", "inspect", "records", "jobs", "workers", "doctor", "replay", "ca"}) {
    const Finished help = Hone(folder, {command, "--help"});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.output, HasSubstr("Examples:")) << command;
  }
}

}  // namespace
}  // namespace hone::system_test
