// Files that are not models, or malformed ones: each ends in one clear message, none in a crash or a long wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "compiler/frontend/import_model.h"
#include "compiler/frontend/onnx_import.h"
#include "tests/compiler/frontend/onnx_builder.h"

namespace hone {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

// The message of the import error that these bytes give; "" when they are imported.
std::string ErrorOf(const std::string& bytes, const std::string& folder = "") {
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(bytes, folder);
  if (graph.ok()) return "";
  EXPECT_TRUE(IsImportError(graph.status())) << graph.status();
  return std::string(graph.status().message());
}

OnnxBuilder Convolution() {
  OnnxBuilder b;
  b.Input("x", {1, 2, 6, 6}).Floats("w", {3, 2, 3, 3}, Numbers(54, 1)).Floats("b", {3}, Numbers(3, 2)).Output("y");
  b.Node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}, "conv");
  b.Node("Relu", {"c"}, {"r"}, {}, "relu");
  b.Node("GlobalAveragePool", {"r"}, {"p"}, {}, "pool");
  b.Node("Flatten", {"p"}, {"y"}, {}, "flatten");
  return b;
}

class Folder {  // a temporary one, removed at the end
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "hone_import_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }

 private:
  fs::path path_;
};

TEST(BadInput, MissingFile) {
  const absl::StatusOr<Graph> graph = ImportModel("/no/such/model.onnx");
  ASSERT_FALSE(graph.ok());
  EXPECT_TRUE(IsImportError(graph.status()));
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("/no/such/model.onnx"));
}

TEST(BadInput, OtherStatusesAreNoImportErrors) {
  EXPECT_FALSE(IsImportError(absl::OkStatus()));
  EXPECT_FALSE(IsImportError(absl::InvalidArgumentError("something else")));
}

TEST(BadInput, NotOnnx) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("not an ONNX model"));
  EXPECT_THAT(ErrorOf("#!/bin/sh\necho this is not a model\n"), HasSubstr("not an ONNX model"));
  EXPECT_THAT(ErrorOf(std::string(4096, '\0')), HasSubstr("not an ONNX model"));
  EXPECT_THAT(ErrorOf(std::string("\x7f") + "ELF" + std::string(100, 'x')), HasSubstr("not an ONNX model"));
}

TEST(BadInput, TruncatedAnywhere) {
  const std::string bytes = Convolution().Bytes();
  ASSERT_EQ(ErrorOf(bytes), "");
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(ErrorOf(bytes.substr(0, length)), "") << "cut off after " << length << " of " << bytes.size() << " bytes";
  }
}

TEST(BadInput, EverythingIsReportedAtOnce) {
  OnnxBuilder b;
  b.Input("x", {2, 3}).Output("y").Output("z");
  b.Node("Frobnicate", {"x"}, {"a"}, {}, "first");
  b.Node("Relu", {"a"}, {"after_a"}, {}, "follows_the_first");
  b.Node("Transpose", {"x"}, {"t"}, {{"perm", std::vector<int64_t>{0, 0}}}, "second");
  b.Node("Add", {"x", "nowhere"}, {"y"}, {}, "third");
  b.Node("Fancy", {"x"}, {"z"}, {}, "fourth").set_domain("com.example");
  const std::string error = ErrorOf(b.Bytes());
  EXPECT_THAT(error, HasSubstr("4 problems"));
  EXPECT_THAT(error, HasSubstr("node \"first\" (Frobnicate): this operator is not supported"));
  EXPECT_THAT(error, HasSubstr("node \"second\" (Transpose): [0, 0] is not a permutation of 2 axes"));
  EXPECT_THAT(error, HasSubstr("node \"third\" (Add): it reads \"nowhere\", which nothing makes"));
  EXPECT_THAT(error, HasSubstr("node \"fourth\" (com.example.Fancy)"));
  EXPECT_THAT(error, testing::Not(HasSubstr("follows_the_first")));
}

TEST(BadInput, CyclicGraph) {
  OnnxBuilder b;
  b.Input("x", {2}).Output("y");
  b.Node("Add", {"x", "c"}, {"a"}, {}, "one");
  b.Node("Relu", {"a"}, {"b"}, {}, "two");
  b.Node("Relu", {"b"}, {"c"}, {}, "three");
  b.Node("Relu", {"c"}, {"y"}, {}, "end");
  EXPECT_THAT(ErrorOf(b.Bytes()), AllOf(HasSubstr("1 problem"), HasSubstr("cycle of 3 nodes"), HasSubstr("\"one\""),
                                        HasSubstr("\"two\""), HasSubstr("\"three\"")));
  OnnxBuilder self;
  self.Input("x", {2}).Output("y").Node("Relu", {"y"}, {"y"}, {}, "self");
  EXPECT_THAT(ErrorOf(self.Bytes()), HasSubstr("cycle of 1 nodes: \"self\""));
}

TEST(BadInput, NodesInAnyOrderAreSorted) {
  OnnxBuilder b;
  b.Input("x", {2}).Output("y");
  for (int i = 5000; i > 0; --i)
    b.Node("Relu", {i == 1 ? "x" : "v" + std::to_string(i - 1)}, {i == 5000 ? "y" : "v" + std::to_string(i)});
  EXPECT_EQ(ErrorOf(b.Bytes()), "");
}

TEST(BadInput, Names) {
  OnnxBuilder twice;
  twice.Input("x", {2}).Output("y");
  twice.Node("Relu", {"x"}, {"y"}, {}, "a");
  twice.Node("Relu", {"x"}, {"y"}, {}, "b");
  EXPECT_THAT(ErrorOf(twice.Bytes()), HasSubstr("node \"b\" (Relu): its output \"y\" has the name of another value"));
  OnnxBuilder input_twice;
  input_twice.Input("x", {2}).Input("x", {2}).Output("x");
  EXPECT_THAT(ErrorOf(input_twice.Bytes()), HasSubstr("input \"x\": a second one has this name"));
  OnnxBuilder no_maker;
  no_maker.Input("x", {2}).Output("y");
  EXPECT_THAT(ErrorOf(no_maker.Bytes()), HasSubstr("output \"y\": nothing makes it"));
  OnnxBuilder no_output;
  no_output.Input("x", {2}).Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(ErrorOf(no_output.Bytes()), HasSubstr("no outputs"));
  OnnxBuilder constants;
  constants.Input("x", {1}).Floats("w", {1}, {1}).Floats("w", {1}, {2}).Output("w");
  EXPECT_THAT(ErrorOf(constants.Bytes()), HasSubstr("initializer \"w\": a second one has this name"));
}

TEST(BadInput, OverflowingShapes) {
  const int64_t huge = int64_t{1} << 40;
  OnnxBuilder input;
  input.Input("x", {huge, huge}).Output("y").Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(ErrorOf(input.Bytes()), AllOf(HasSubstr("input \"x\""), HasSubstr("too large")));
  OnnxBuilder expand;
  expand.Input("x", {1, 1, 1})
      .Ints("s", {3}, {INT64_MAX, INT64_MAX, 4})
      .Output("y")
      .Node("Expand", {"x", "s"}, {"y"}, {}, "grow");
  EXPECT_THAT(ErrorOf(expand.Bytes()), AllOf(HasSubstr("node \"grow\" (Expand)"), HasSubstr("too large")));
  OnnxBuilder reshape;
  reshape.Input("x", {4}).Ints("s", {3}, {int64_t{1} << 62, 4, -1}).Output("y").Node("Reshape", {"x", "s"}, {"y"});
  EXPECT_THAT(ErrorOf(reshape.Bytes()), HasSubstr("reshape"));
  OnnxBuilder constant;
  constant.Input("x", {1}).Ints("s", {2}, {huge, huge}).Output("y").Node("ConstantOfShape", {"s"}, {"y"});
  EXPECT_THAT(ErrorOf(constant.Bytes()), HasSubstr("a constant of shape"));
  OnnxBuilder tile;
  tile.Input("x", {2, 2}).Ints("r", {2}, {INT64_MAX, INT64_MAX}).Output("y").Node("Tile", {"x", "r"}, {"y"});
  EXPECT_THAT(ErrorOf(tile.Bytes()), HasSubstr("Tile"));
  OnnxBuilder pad;
  pad.Input("x", {2}).Ints("p", {2}, {INT64_MAX, INT64_MAX}).Output("y").Node("Pad", {"x", "p"}, {"y"});
  EXPECT_THAT(ErrorOf(pad.Bytes()), HasSubstr("Pad"));
  OnnxBuilder range;
  range.Ints("a", {}, {INT64_MIN})
      .Ints("b", {}, {INT64_MAX})
      .Ints("c", {}, {1})
      .Output("y")
      .Node("Range", {"a", "b", "c"}, {"y"});
  EXPECT_THAT(ErrorOf(range.Bytes()), HasSubstr("a range from"));
  OnnxBuilder conv;
  conv.Input("x", {1, 1, 4, 4}).Floats("w", {1, 1, 1, 1}, {1}).Output("y");
  conv.Node("Conv", {"x", "w"}, {"y"}, {{"pads", std::vector<int64_t>(4, INT64_MAX)}});
  EXPECT_THAT(ErrorOf(conv.Bytes()), HasSubstr("padding"));
  OnnxBuilder weights;
  weights.Input("x", {1}).Output("x");
  onnx::TensorProto& w = *weights.graph().add_initializer();
  w = FloatTensor({huge, huge, huge}, {});
  w.set_name("w");
  EXPECT_THAT(ErrorOf(weights.Bytes()), AllOf(HasSubstr("initializer \"w\""), HasSubstr("too large")));
}

// A model of a few hundred bytes whose constants would take terabytes: folding stops at its budget.
TEST(BadInput, ConstantsThatGrowWithoutEnd) {
  OnnxBuilder b;
  b.Input("x", {1}).Ints("s", {1}, {1 << 20}).Output("y");
  b.Node("ConstantOfShape", {"s"}, {"c0"});
  std::string last = "c0";
  for (int i = 1; i <= 18; ++i) {
    const std::string next = "c" + std::to_string(i);
    b.Node("Concat", {last, last}, {next}, {{"axis", int64_t{0}}});
    last = next;
  }
  b.Ints("z", {1}, {0}).Node("Gather", {last, "z"}, {"g"});
  b.Node("Add", {"x", "g"}, {"y"});
  ErrorOf(b.Bytes());  // imported or refused, in little time and memory
}

TEST(BadInput, Tensors) {
  OnnxBuilder few;
  few.Input("x", {1}).Floats("w", {4}, {1, 2, 3}).Output("x");
  EXPECT_THAT(ErrorOf(few.Bytes()), HasSubstr("initializer \"w\": it holds 3 numbers, its shape 4"));
  OnnxBuilder raw;
  raw.Input("x", {1}).Ints("w", {4}, {1, 2}).Output("x");
  EXPECT_THAT(ErrorOf(raw.Bytes()), HasSubstr("initializer \"w\": it holds 16 bytes, its shape takes 32"));
  OnnxBuilder negative;
  negative.Input("x", {1}).Floats("w", {-1}, {}).Output("x");
  EXPECT_THAT(ErrorOf(negative.Bytes()), HasSubstr("initializer \"w\""));
  OnnxBuilder text;
  text.Input("x", {1}).Output("x");
  onnx::TensorProto& t = *text.graph().add_initializer();
  t.set_name("t");
  t.set_data_type(onnx::TensorProto::STRING);
  EXPECT_THAT(ErrorOf(text.Bytes()), HasSubstr("elements of type string are not supported"));
}

TEST(BadInput, TypesAndVersions) {
  OnnxBuilder text;
  text.Input("x", {1}, onnx::TensorProto::STRING).Output("y").Node("Identity", {"x"}, {"y"});
  EXPECT_THAT(ErrorOf(text.Bytes()), HasSubstr("elements of type string are not supported"));
  OnnxBuilder inside;
  inside.Input("x", {1}).Output("y").Node("Cast", {"x"}, {"y"}, {{"to", int64_t{onnx::TensorProto::COMPLEX64}}},
                                          "turn");
  EXPECT_THAT(ErrorOf(inside.Bytes()), AllOf(HasSubstr("turn"), HasSubstr("complex64")));
  OnnxBuilder mixed;
  mixed.Input("x", {1}).Input("i", {1}, onnx::TensorProto::INT64).Output("y").Node("Add", {"x", "i"}, {"y"});
  EXPECT_THAT(ErrorOf(mixed.Bytes()), HasSubstr("add of different types: float32[1] and int64[1]"));
  OnnxBuilder newer(29);
  newer.Input("x", {1}).Output("y").Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(ErrorOf(newer.Bytes()), HasSubstr("operator set 29; supported are 1 to 28"));
  OnnxBuilder symbolic;
  symbolic.Input("x", {1, -1}).Output("y").Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(ErrorOf(symbolic.Bytes()),
              HasSubstr("input \"x\": dimension 1 (\"n\") has no fixed size; give it with --dim n=SIZE, or"));
  const absl::StatusOr<Graph> other = ImportOnnxBytes(symbolic.Bytes(), "", {.dims = {{"n", 2}, {"m", 3}}});
  EXPECT_THAT(other.status().message(), HasSubstr("--dim m=3: the inputs have no dimension of that name; they have n"));
  OnnxBuilder attribute;
  attribute.Input("x", {1, 2}).Output("y").Node("Softmax", {"x"}, {"y"}, {{"axis", std::string("last")}});
  EXPECT_THAT(ErrorOf(attribute.Bytes()), HasSubstr("attribute \"axis\" is not an integer"));
  OnnxBuilder shape;
  shape.Input("x", {4}).Input("s", {1}, onnx::TensorProto::INT64).Output("y").Node("Reshape", {"x", "s"}, {"y"});
  EXPECT_THAT(ErrorOf(shape.Bytes()), HasSubstr("the shape (\"s\") is computed at run time"));
}

TEST(BadInput, DeepNesting) {
  onnx::GraphProto inner;
  for (int depth = 0; depth < 200; ++depth) {
    onnx::GraphProto outer;
    onnx::NodeProto& node = *outer.add_node();
    node.set_op_type("If");
    onnx::AttributeProto& attr = *node.add_attribute();
    attr.set_name("then_branch");
    attr.set_type(onnx::AttributeProto::GRAPH);
    attr.mutable_g()->Swap(&inner);
    inner.Swap(&outer);
  }
  OnnxBuilder b;
  b.Input("x", {1}).Output("x");
  b.graph().mutable_node()->MergeFrom(inner.node());
  EXPECT_THAT(ErrorOf(b.Bytes()), HasSubstr("nested too deep"));
}

// ---- External data.
OnnxBuilder WithExternal(const std::string& location, int64_t count, const std::string& offset = "",
                         const std::string& length = "") {
  OnnxBuilder b;
  b.Input("x", {count}).Output("y").Node("Add", {"x", "w"}, {"y"});
  onnx::TensorProto& w = *b.graph().add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(count);
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto entry = [&](const std::string& key, const std::string& value) {
    if (value.empty()) return;
    onnx::StringStringEntryProto& e = *w.add_external_data();
    e.set_key(key);
    e.set_value(value);
  };
  entry("location", location);
  entry("offset", offset);
  entry("length", length);
  return b;
}

TEST(ExternalDataTest, IsReadAtItsOffset) {
  const Folder folder;
  const std::vector<float> values = {9, 9, 1, 2, 3};
  fs::create_directory(folder.path() / "data");
  folder.Write("data/w.bin", std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4));
  folder.Write("model.onnx", WithExternal("data/./w.bin", 3, "8", "12").Bytes());
  const absl::StatusOr<Graph> graph = ImportModel((folder.path() / "model.onnx").string());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const GraphValue& w = graph->values[graph->nodes.at(0).inputs.at(1)];
  ASSERT_TRUE(w.is_constant());
  EXPECT_EQ(w.data->Get(0), 1);
  EXPECT_EQ(w.data->Get(2), 3);
}

TEST(ExternalDataTest, Refusals) {
  const Folder folder, outside;
  const std::string path = folder.path().string();
  folder.Write("w.bin", std::string(16, 'x'));
  outside.Write("secret.bin", std::string(16, 's'));
  fs::create_symlink(outside.path() / "secret.bin", folder.path() / "link.bin");
  fs::create_directory_symlink(outside.path(), folder.path() / "linked");
  fs::create_hard_link(outside.path() / "secret.bin", folder.path() / "hard.bin");
  fs::create_directory(folder.path() / "sub");
  ASSERT_EQ(mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf(WithExternal("w.bin", 4).Bytes(), path), "");
  EXPECT_THAT(ErrorOf(WithExternal("missing.bin", 4).Bytes(), path), HasSubstr("there is no such file"));
  EXPECT_THAT(ErrorOf(WithExternal("../" + outside.path().filename().string() + "/secret.bin", 4).Bytes(), path),
              HasSubstr("climbs out"));
  EXPECT_THAT(ErrorOf(WithExternal("sub/../../x", 4).Bytes(), path), HasSubstr("climbs out"));
  EXPECT_THAT(ErrorOf(WithExternal((outside.path() / "secret.bin").string(), 4).Bytes(), path), HasSubstr("relative"));
  EXPECT_THAT(ErrorOf(WithExternal("link.bin", 4).Bytes(), path), HasSubstr("symbolic link"));
  EXPECT_THAT(ErrorOf(WithExternal("linked/secret.bin", 4).Bytes(), path), HasSubstr("symbolic link"));
  EXPECT_THAT(ErrorOf(WithExternal("hard.bin", 4).Bytes(), path), HasSubstr("it has 2 hard links"));
  EXPECT_THAT(ErrorOf(WithExternal("sub", 4).Bytes(), path), HasSubstr("not a regular file"));
  EXPECT_THAT(ErrorOf(WithExternal("pipe", 4).Bytes(), path), HasSubstr("not a regular file"));
  EXPECT_THAT(ErrorOf(WithExternal("w.bin", 5).Bytes(), path), HasSubstr("beyond its end: it has 16"));
  EXPECT_THAT(ErrorOf(WithExternal("w.bin", 4, "4").Bytes(), path), HasSubstr("beyond its end"));
  EXPECT_THAT(ErrorOf(WithExternal("w.bin", 4, "9223372036854775807").Bytes(), path), HasSubstr("beyond its end"));
  EXPECT_THAT(ErrorOf(WithExternal("w.bin", int64_t{1} << 39).Bytes(), path), HasSubstr("beyond its end"));
  EXPECT_THAT(ErrorOf(WithExternal("w.bin", 4, "-4").Bytes(), path), HasSubstr("offset is \"-4\""));
  EXPECT_THAT(ErrorOf(WithExternal("w.bin", 4, "x").Bytes(), path), HasSubstr("offset is \"x\""));
  EXPECT_THAT(ErrorOf(WithExternal("w.bin", 4, "", "8").Bytes(), path),
              HasSubstr("it holds 8 bytes, its shape takes 16"));
  EXPECT_THAT(ErrorOf(WithExternal("", 4).Bytes(), path), HasSubstr("relative"));
  EXPECT_THAT(ErrorOf(WithExternal("w.bin", 4).Bytes(), ""), HasSubstr("no place to look"));
}

}  // namespace
}  // namespace hone
