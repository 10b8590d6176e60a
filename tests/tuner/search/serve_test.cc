#include "tuner/search/serve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "compiler/support/random.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone {
namespace {

v1::SearchRequest Request(uint64_t task = 1) {
  v1::SearchRequest request;
  request.set_request_id(42);
  request.set_task_id(task);
  request.mutable_workload()->set_text(ToText(testing::DenseRelu(8, 32, 16)));
  request.mutable_workload()->set_name("dense");
  request.mutable_device()->set_target("cpu:x86-64-v4");
  request.set_threads(2);
  request.set_numeric(v1::NUMERIC_STRICT);
  request.set_seed(5);
  request.set_batch(4);
  return request;
}

void Observe(v1::SearchRequest& request, const v1::SearchReply& reply) {
  for (const v1::Candidate& candidate : reply.candidates()) {
    v1::Observation& seen = *request.add_observations();
    seen.set_trace(candidate.trace());
    seen.set_kind(v1::OUTCOME_OK);
    seen.set_median_us(10);
  }
}

TEST(SearchServer, AnswersWithCandidates) {
  SearchServer server;
  const v1::SearchReply reply = server.Answer(Request());
  EXPECT_EQ(reply.request_id(), 42u);
  EXPECT_EQ(reply.error(), "");
  EXPECT_EQ(reply.candidates_size(), 4);
  EXPECT_FALSE(reply.need_all());
  EXPECT_GT(reply.search_seconds(), 0);
}

// What a worker measured reaches the drafts: the same candidates on a clock ten times slower take ten times as long.
TEST(SearchServer, DraftsUseTheFactsOfTheDevice) {
  const auto first_us = [](const std::string& machine) {
    v1::SearchRequest request = Request();
    request.set_threads(1);
    request.mutable_device()->set_machine(machine);
    SearchServer server;
    const v1::SearchReply reply = server.Answer(request);
    EXPECT_GT(reply.candidates_size(), 0) << reply.error();
    double least = 1e9;
    for (const v1::Candidate& candidate : reply.candidates()) least = std::min(least, candidate.predicted_us());
    return least;
  };
  const double usual = first_us("");
  EXPECT_GT(usual, 0);
  EXPECT_NEAR(first_us("ghz=0.35") / first_us("ghz=3.5"), 10, 0.01);
  EXPECT_EQ(first_us("what is this"), usual) << "facts that cannot be read are as good as none";
}

// The daemon may kill a search at any time: another goes on from the log.
TEST(SearchServer, ANewProcessAsksForAllObservationsAndGoesOn) {
  SearchServer first, second;
  const v1::SearchReply batch = first.Answer(Request());
  v1::SearchRequest later = Request();
  Observe(later, batch);
  const v1::SearchReply next = first.Answer(later);

  v1::SearchRequest rest = Request();
  rest.set_observations_before(4);
  EXPECT_TRUE(second.Answer(rest).need_all());
  const v1::SearchReply again = second.Answer(later);
  EXPECT_FALSE(again.need_all());
  std::set<std::string> seen;
  for (const v1::Candidate& candidate : batch.candidates()) seen.insert(candidate.trace());
  ASSERT_GT(again.candidates_size(), 0);
  for (const v1::Candidate& candidate : again.candidates()) EXPECT_EQ(seen.count(candidate.trace()), 0u);
  EXPECT_GT(next.candidates_size(), 0);
}

TEST(SearchServer, FollowsTheStrategyOfTheRequest) {
  std::set<std::string> batches;
  for (const v1::SearchStrategy strategy : {v1::SEARCH_MODEL, v1::SEARCH_RANDOM, v1::SEARCH_DRAFT}) {
    SearchServer server;
    v1::SearchRequest request = Request();
    request.set_strategy(strategy);
    const v1::SearchReply reply = server.Answer(request);
    ASSERT_EQ(reply.candidates_size(), 4) << reply.error();
    std::string batch;
    for (const v1::Candidate& candidate : reply.candidates()) batch += candidate.trace();
    EXPECT_TRUE(batches.insert(batch).second) << strategy;
  }
}

// A sibling's best may come long after the first request.
TEST(SearchServer, TakesSeedsWithAnyRequest) {
  SearchServer donor, server;
  v1::SearchRequest other = Request();
  other.set_seed(77);
  other.set_strategy(v1::SEARCH_RANDOM);
  const std::string seed = donor.Answer(other).candidates(0).trace();
  v1::SearchRequest request = Request();
  Observe(request, server.Answer(request));
  request.add_seeds(seed);
  const v1::SearchReply later = server.Answer(request);
  ASSERT_GT(later.candidates_size(), 0);
  EXPECT_EQ(later.candidates(0).source(), "seed");
  EXPECT_EQ(later.candidates(0).trace(), seed);
}

TEST(SearchServer, SaysWhatIsWrongWithARequestAndGoesOn) {
  SearchServer server;
  v1::SearchRequest no_workload = Request(2), no_target = Request(3), plain;
  no_workload.mutable_workload()->set_text("def main(: nonsense");
  EXPECT_NE(server.Answer(no_workload).error(), "");
  no_target.mutable_device()->set_target("gpu:quantum");
  EXPECT_NE(server.Answer(no_target).error(), "");
  EXPECT_NE(server.Answer(plain).error(), "");
  v1::SearchRequest odd = Request(4);
  odd.set_threads(-3);
  odd.set_batch(-1);
  odd.add_seeds("nonsense");
  odd.add_pending("nonsense");
  const v1::SearchReply reply = server.Answer(odd);
  EXPECT_EQ(reply.error(), "");
  EXPECT_EQ(reply.candidates_size(), 1);
  EXPECT_EQ(server.Answer(Request()).candidates_size(), 4);
}

// Times that only the choice decides: tasks that are alike have the same rule.
void ObserveByPrediction(v1::SearchRequest& request, const v1::SearchReply& reply) {
  for (const v1::Candidate& candidate : reply.candidates()) {
    v1::Observation& seen = *request.add_observations();
    seen.set_trace(candidate.trace());
    seen.set_kind(v1::OUTCOME_OK);
    seen.set_median_us(10 + static_cast<double>(candidate.trace().size() % 97));
  }
}

// Tunes one task for a few rounds; the last model handed back, and how many batches were judged.
struct Tuned {
  std::string model;
  int judged = 0;
};
Tuned Tune(SearchServer& server, uint64_t task, int rounds, const std::string& model = "", uint64_t tenant = 1) {
  Tuned tuned;
  v1::SearchRequest request = Request(task);
  request.set_tenant(tenant);
  request.set_batch(12);
  request.mutable_device()->set_device_class("a class");
  request.set_cost_model(model);
  for (int round = 0; round < rounds; ++round) {
    const v1::SearchReply reply = server.Answer(request);
    EXPECT_EQ(reply.error(), "");
    if (!reply.cost_model().empty()) tuned.model = reply.cost_model();
    tuned.judged += reply.judged_batches();
    EXPECT_LE(reply.draft_first(), reply.judged_batches());
    EXPECT_LE(reply.model_first(), reply.judged_batches());
    ObserveByPrediction(request, reply);
    request.clear_cost_model();
  }
  return tuned;
}

TEST(SearchServer, HandsBackTheModelOnceItHasLearnt) {
  SearchServer server;
  EXPECT_EQ(Tune(server, 1, 3).model, "") << "two dozen rows are not worth storing";
  const Tuned tuned = Tune(server, 2, 7);
  EXPECT_NE(tuned.model, "");
  EXPECT_LE(tuned.model.size(), DeviceModel::kMostBytes);
  EXPECT_GT(tuned.judged, 0);
}

TEST(SearchServer, ANewProcessRanksItsFirstBatchByTheStoredModel) {
  SearchServer first, second, without;
  const std::string model = Tune(first, 1, 7).model;
  ASSERT_NE(model, "");
  // Only a batch that a trained model has ranked is judged.
  EXPECT_EQ(Tune(second, 1, 2, model).judged, 1);
  EXPECT_EQ(Tune(without, 1, 2).judged, 0);
}

TEST(SearchServer, TasksOfATenantShareAModelThoseOfTwoDoNot) {
  SearchServer server;
  Tune(server, 1, 5);
  EXPECT_EQ(Tune(server, 2, 2).judged, 1) << "its first batch was ranked";
  EXPECT_EQ(Tune(server, 3, 2, "", /*tenant=*/2).judged, 0);
}

TEST(SearchServer, AModelThatIsOfNoUseIsLearntAnew) {
  SearchServer server;
  EXPECT_EQ(Tune(server, 1, 2, "not a model").judged, 0);
  v1::SearchRequest request = Request(1);
  request.set_cost_model(std::string(100, '\xff'));
  EXPECT_EQ(server.Answer(request).error(), "");
}

// A broken message from the pipe parses into anything.
TEST(SearchServer, SurvivesRequestsOfRandomBytes) {
  const std::string good = Request().SerializeAsString();
  SearchServer server;
  int parsed = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    Random random(9, i);
    std::string bytes = good;
    for (int change = 0; change < 6; ++change) bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    v1::SearchRequest request;
    if (!request.ParseFromString(bytes)) continue;
    request.set_batch(1);
    ++parsed;
    const v1::SearchReply reply = server.Answer(request);
    EXPECT_TRUE(reply.need_all() || !reply.error().empty() || reply.candidates_size() > 0 || reply.exhausted());
  }
  EXPECT_GT(parsed, 5);
}

}  // namespace
}  // namespace hone
