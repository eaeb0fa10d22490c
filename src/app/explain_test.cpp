// The pages: complete, findable, and one for every term that a plan prints.
#include <gtest/gtest.h>

#include <set>

#include "app/explain_pages.h"
#include "base/text.h"
#include "catalog/names.h"
#include "sizing/terms.h"

namespace stoker {
namespace {

TEST(Explain, PagesHaveTitleGroupAndText) {
    EXPECT_GE(explain_pages().size(), 50u);
    for (const ExplainPage& page : explain_pages()) {
        EXPECT_FALSE(page.title.empty()) << page.name;
        EXPECT_FALSE(page.group.empty()) << page.name;
        EXPECT_FALSE(page.aliases.empty()) << page.name;
        EXPECT_GE(split_lines(page.body).size(), 2u) << page.name;
        EXPECT_LE(split_lines(page.body).size(), 25u) << page.name;
    }
}

TEST(Explain, NoNameOrAliasLeadsToTwoPages) {
    std::set<std::string> names;
    for (const ExplainPage& page : explain_pages()) {
        std::set<std::string> own = {fold_name(page.name)};
        for (const std::string& alias : page.aliases) own.insert(fold_name(alias));
        for (const std::string& name : own) EXPECT_TRUE(names.insert(name).second) << page.name << ": " << name;
    }
}

// What a plan prints must be explained: the terms of time and memory, and the words around them.
TEST(Explain, EveryTermOfAPlanHasAPage) {
    std::vector<std::string> terms = {"MFU",
                                      "HFU",
                                      "goodput",
                                      "checkpoint",
                                      "spot",
                                      "quota",
                                      "FSDP",
                                      "ZeRO",
                                      "tensor parallel",
                                      "pipeline parallel",
                                      "context parallel",
                                      "expert parallel",
                                      "data parallel",
                                      "recompute",
                                      "micro-batch",
                                      "bubble",
                                      "TTFT",
                                      "TPOT",
                                      "KV cache",
                                      "prefill",
                                      "decode",
                                      "kWh",
                                      "interval",
                                      "Pareto",
                                      "rejected",
                                      "InfiniBand",
                                      "NVLink",
                                      "gang",
                                      "AKS",
                                      "VMSS",
                                      "Azure ML",
                                      "Slurm",
                                      "Ray",
                                      "LoRA",
                                      "QLoRA",
                                      "bf16",
                                      "fp8",
                                      "int4",
                                      "cpu-first",
                                      "t4-first",
                                      "accelerated networking",
                                      "secure boot",
                                      "placement group",
                                      "own or rent",
                                      "GPU VM",
                                      "virtual machine",
                                      "CPU VM",
                                      "massive parallelism",
                                      "N-series",
                                      "RDMA",
                                      "SR-IOV",
                                      "Tensor Core",
                                      "SmartNIC",
                                      "profile training",
                                      "profile inference",
                                      "bottleneck"};
    for (int i = 0; i < kTimeTerms; ++i) terms.emplace_back(info(static_cast<TimeTerm>(i)).name);
    for (int i = 0; i < kMemoryTerms; ++i) terms.emplace_back(info(static_cast<MemoryTerm>(i)).name);
    for (const std::string& term : terms) EXPECT_TRUE(find_page(term).ok()) << "no page on " << term;
}

TEST(Explain, UnknownTopicsNameTheNearest) {
    const auto page = find_page("infinband");
    ASSERT_FALSE(page.ok());
    EXPECT_NE(page.error().text().find("did you mean infiniband"), std::string::npos) << page.error().text();
    EXPECT_EQ(exit_code(page.error().kind()), 2);
}

TEST(Explain, TablesListsAndBoldAreRendered) {
    Style style;
    const std::string text =
        render_page("## Head\n| a | b |\n|---|---|\n| 1 | two |\n\n- an **item**\n  goes on\n    code   stays", style);
    EXPECT_EQ(text, "  Head\n  a  b\n  1  two\n\n   - an item goes on\n    code   stays\n");
    style.colour = true;
    EXPECT_NE(render_page("**b**", style).find("\x1b[1mb\x1b[0m"), std::string::npos);
}

TEST(Explain, PagesFitTheTerminal) {
    const Style style;
    for (const ExplainPage& page : explain_pages()) {
        const std::string text = render_page(page.body, style);
        for (const std::string_view line : split_lines(text))
            EXPECT_LE(display_width(line), 100u) << page.name << ": " << line;
    }
}

// The ratio of tensor to FP32 peaks is derived from the catalogue, since "8x" holds for two GPUs only.
TEST(Explain, TensorPageDerivesTheRatioPerGpu) {
    const auto catalog = Catalog::embedded();
    ASSERT_TRUE(catalog.ok()) << catalog.error().text();
    const std::string facts = facts_of_page("tensor-core", *catalog, Style());
    for (const char* part : {"H100-SXM", "14.8x", "A100-SXM-40GB", "16.0x", "A10", "4.0x", "16896", "528"})
        EXPECT_NE(facts.find(part), std::string::npos) << part << "\n" << facts;
}

TEST(Explain, CorrectionsNameSizesOfTheCatalogue) {
    const auto catalog = Catalog::embedded();
    ASSERT_TRUE(catalog.ok());
    EXPECT_GE(corrections().size(), 6u);
    for (const Correction& correction : corrections()) {
        EXPECT_TRUE(catalog->find_node_type(correction.size).ok()) << correction.size;
        EXPECT_FALSE(correction.source.empty()) << correction.size;
    }
    EXPECT_EQ(corrections_of("NV36ads_A10_v5").size(), 1u);
}

}  // namespace
}  // namespace stoker
