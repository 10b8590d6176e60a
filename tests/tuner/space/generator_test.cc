#include "tuner/space/generator.h"

#include <cstdlib>
#include <numeric>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

// `digits` knobs of 16 candidates each. The draft is least where digit d is d % 16, and no knob is worse for another.
class DigitsGenerator : public Generator {
 public:
  explicit DigitsGenerator(int digits) {
    std::vector<int64_t> candidates(16);
    std::iota(candidates.begin(), candidates.end(), 0);
    for (int d = 0; d < digits; ++d) knobs_.push_back({absl::StrCat("d", d), candidates});
  }
  const std::string& name() const override { return name_; }
  const std::vector<Knob>& knobs() const override { return knobs_; }
  std::optional<double> Draft(const Choice& choice) const override {
    ++drafts_;
    if (choice.size() <= 8) drafted_.insert(choice);
    double us = 1;
    for (size_t d = 0; d < choice.size(); ++d) us += std::abs(choice[d] - static_cast<int>(d % 16));
    return us;
  }
  absl::StatusOr<Schedule> Build(const Choice&) const override { return absl::UnimplementedError("only drafted"); }

  size_t drafts() const { return drafts_; }
  size_t drafted() const { return drafted_.size(); }  // different choices

 private:
  std::string name_ = "digits";
  std::vector<Knob> knobs_;
  mutable size_t drafts_ = 0;
  mutable std::set<Choice> drafted_;
};

TEST(BestByDraft, DraftsNoChoiceTwiceWhereDescentsMeet) {
  const DigitsGenerator generator(8);
  const absl::StatusOr<Choice> best = BestByDraft(generator);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(*best, Choice({0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_GT(generator.drafts(), 1000u);
  EXPECT_EQ(generator.drafts(), generator.drafted());
}

// 16 to the power of 40 choices: more than there are numbers of 128 bits.
TEST(BestByDraft, FindsTheBestOfMoreChoicesThanNumbers) {
  const DigitsGenerator generator(40);
  const absl::StatusOr<Choice> best = BestByDraft(generator, 1);
  ASSERT_TRUE(best.ok()) << best.status();
  for (size_t d = 0; d < best->size(); ++d) EXPECT_EQ((*best)[d], static_cast<int>(d % 16)) << d;
}

}  // namespace
}  // namespace hone
