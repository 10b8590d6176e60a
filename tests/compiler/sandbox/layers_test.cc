#include "compiler/sandbox/layers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_TRUE(CheckLayers("p", RequiredLayers(), 0).ok());
  EXPECT_TRUE(CheckLayers("p", ~0u, 0).ok());
  for (const SandboxLayerInfo& info : SandboxLayers()) {
    const absl::Status status = CheckLayers("hone-builder", ~static_cast<uint32_t>(info.layer), 0);
    if ((RequiredLayers() & info.layer) == 0) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(status.message(), HasSubstr("hone-builder cannot be locked in"));
    EXPECT_THAT(status.message(), HasSubstr(std::string("--allow-missing-layer ") + info.name));
    EXPECT_TRUE(CheckLayers("hone-builder", ~static_cast<uint32_t>(info.layer), info.layer).ok());
  }
}

}  // namespace
}  // namespace hone
