// A daemon on the network with a token of each of two tenants.
#pragma once

#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {

class TwoTenants : public testing::Test {
 protected:
  TwoTenants() { WriteTokens("client vision eyes-0123456789\nclient speech ears-0123456789\n"); }
  void WriteTokens(const std::string& lines) {
    std::ofstream(folder_ / "fresh") << lines;
    chmod((folder_ / "fresh").c_str(), 0600);
    ASSERT_EQ(rename((folder_ / "fresh").c_str(), (folder_ / "tokens").c_str()), 0);
  }
  std::unique_ptr<HonedProcess> Start(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--db",       folder_ / "t.db", "--listen",        "127.0.0.1:0",
                                          "--insecure", "--token-file",   folder_ / "tokens"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto honed = std::make_unique<HonedProcess>(arguments);
    EXPECT_TRUE(honed->ready()) << honed->Errors();
    return honed;
  }
  static std::unique_ptr<DaemonClient> As(const HonedProcess& honed, const std::string& token) {
    auto client = DaemonClient::Connect(honed.address(), {token, {}}, absl::Seconds(20));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  TempFolder folder_;
};

}  // namespace hone
