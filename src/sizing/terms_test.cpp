#include "sizing/terms.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace stoker {
namespace {

// Each term has a name of its own, a formula that starts with its name, and a source.
TEST(Terms, AreNamedSourcedAndDistinct) {
    std::set<std::string_view> names;
    const auto check = [&names](const TermInfo& term) {
        EXPECT_TRUE(names.insert(term.name).second || term.name == "logits" || term.name == "optimizer") << term.name;
        EXPECT_NE(term.formula.find(':'), std::string_view::npos) << term.name;
        EXPECT_FALSE(term.source.empty()) << term.name;
    };
    for (int i = 0; i < kTimeTerms; ++i) check(info(static_cast<TimeTerm>(i)));
    for (int i = 0; i < kMemoryTerms; ++i) check(info(static_cast<MemoryTerm>(i)));
}

// A journal of years ago holds the ids of its terms: each is found, and says whether it was computing, waiting for data
// or exchange. A name may be reworded; an id may not, nor may any go.
TEST(Terms, OfAStepHaveAnIdForEverAndAGroup) {
    const std::map<std::string_view, TermGroup> kept = {{"matmul", TermGroup::compute},
                                                        {"attention", TermGroup::compute},
                                                        {"memory-bound", TermGroup::compute},
                                                        {"logits", TermGroup::compute},
                                                        {"recompute", TermGroup::compute},
                                                        {"launch", TermGroup::compute},
                                                        {"tensor comm", TermGroup::exchange},
                                                        {"context comm", TermGroup::exchange},
                                                        {"expert comm", TermGroup::exchange},
                                                        {"pipeline comm", TermGroup::exchange},
                                                        {"bubble", TermGroup::compute},
                                                        {"gradient comm", TermGroup::exchange},
                                                        {"gather comm", TermGroup::exchange},
                                                        {"optimizer", TermGroup::compute},
                                                        {"host", TermGroup::compute},
                                                        {"data stall", TermGroup::input},
                                                        {"checkpoint stall", TermGroup::checkpoint}};
    for (const auto& [id, group] : kept) {
        const auto term = find_time_term(id);
        ASSERT_TRUE(term) << id;
        EXPECT_EQ(group_of(*term), group) << id;
    }
    std::set<std::string_view> ids;
    for (int i = 0; i < kTimeTerms; ++i) {
        const auto term = static_cast<TimeTerm>(i);
        EXPECT_TRUE(ids.insert(id_of(term)).second) << id_of(term);
        EXPECT_EQ(find_time_term(id_of(term)), term);
    }
    EXPECT_FALSE(find_time_term("of-next-year"));
}

// Codes are stable words for programs, sentences are for people; none is missing and no code is used twice.
TEST(Terms, ReasonsHaveCodeAndSentence) {
    std::set<std::string_view> codes;
    for (int i = 0; i < static_cast<int>(Reason::count); ++i) {
        const auto reason = static_cast<Reason>(i);
        EXPECT_TRUE(codes.insert(code(reason)).second) << code(reason);
        EXPECT_FALSE(sentence(reason).empty());
    }
    EXPECT_EQ(code(Reason::no_rdma), "no-rdma");
    EXPECT_EQ(code(Reason::unknown_accelerator), "unknown-accelerator");
    EXPECT_EQ(code(Reason::shape_indivisible), "shape-indivisible");
    EXPECT_EQ(code(Reason::policy_inference_rdma), "policy-inference-rdma");
}

TEST(Terms, BottlenecksAreNamed) {
    EXPECT_EQ(to_string(Bottleneck::memory_bandwidth), "memory bandwidth");
    EXPECT_EQ(to_string(Bottleneck::cpu), "cpu");
}

}  // namespace
}  // namespace stoker
