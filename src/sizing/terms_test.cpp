#include "sizing/terms.h"

#include <gtest/gtest.h>

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
