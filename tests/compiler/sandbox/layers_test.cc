#include "compiler/sandbox/layers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SandboxLayers, AreNamed) {
  uint32_t all = 0;
  for (const SandboxLayerInfo& info : SandboxLayers()) {
    EXPECT_EQ(all & info.layer, 0u) << info.name;
    all |= info.layer;
    EXPECT_EQ(*ParseLayers(info.name), info.layer);
    EXPECT_EQ(LayerNames(info.layer), info.name);
  }
  EXPECT_EQ(LayerNames(0), "");
  EXPECT_EQ(*ParseLayers("limits, landlock"), kLayerLimits | kLayerLandlock);
  EXPECT_EQ(LayerNames(kLayerLimits | kLayerLandlock), "limits, landlock");
  EXPECT_EQ(*ParseLayers("all") & all, all);
  const absl::Status unknown = ParseLayers("limits,apparmor").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(unknown.message(), HasSubstr("\"apparmor\" is no layer of the sandbox; there are death-signal, "));
}

TEST(CheckLayers, OneThatIsMissingIsRefusedUnlessAllowedByName) {
  EXPECT_TRUE(CheckLayers("p", MissingLayers(0), 0).ok()) << "all that this build can have";
  for (const SandboxLayerInfo& info : SandboxLayers()) {
    const absl::Status status = CheckLayers("hone-builder", ~static_cast<uint32_t>(info.layer), 0);
    if ((MissingLayers(0) & info.layer) == 0) {  // this build cannot have it
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(status.message(), HasSubstr("hone-builder cannot be locked in"));
    EXPECT_THAT(status.message(), HasSubstr(std::string("--allow-missing-layer=") + info.name + " "));
    EXPECT_TRUE(CheckLayers("hone-builder", ~static_cast<uint32_t>(info.layer), info.layer).ok());
  }
}

// Whoever copies the option loses nothing that was allowed before.
TEST(CheckLayers, NamesEachThatIsRefusedAndTheOptionThatAllowsAllThatAreMissing) {
  const uint32_t missing = kLayerLandlock | kLayerControlGroup | kLayerDescriptors;
  const absl::Status status = CheckLayers("hone-search", ~missing, kLayerLandlock | kLayerLimits);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("hone-search cannot be locked in"));
  EXPECT_THAT(status.message(),
              HasSubstr("descriptors (no descriptor but those it was given), control-group (limits of"));
  EXPECT_THAT(status.message(), Not(HasSubstr("landlock (")));
  EXPECT_THAT(status.message(), HasSubstr("--allow-missing-layer=descriptors,landlock,control-group or "));
  EXPECT_TRUE(CheckLayers("hone-search", ~missing, missing).ok());
}

}  // namespace
}  // namespace hone
