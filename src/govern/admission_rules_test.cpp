#include "govern/admission_rules.h"

#include <gmock/gmock.h>

#include "base/document.h"

namespace stoker {
namespace {

using testing::HasSubstr;

AdmissionRule rule(const std::string& yaml) {
    Problems problems;
    const auto document = Document::parse_yaml(yaml, "rules.yaml");
    EXPECT_TRUE(document.ok());
    AdmissionRule read = admission_rule_table().read(document->root(), problems);
    EXPECT_TRUE(problems.empty()) << problems.front().message;
    return read;
}
std::string refusal(const std::string& yaml, const AdmissionSubject& subject) {
    const auto refusals = judge({rule(yaml)}, subject);
    return refusals.empty() ? "" : refusals.front().message;
}
AdmissionSubject notebook() {
    return {.organisation = "hospital",
            .project = "imaging",
            .user = "anna",
            .kind = "notebook",
            .run_class = "spot",
            .image = "docker.io/library/python:3.12",
            .engines = {{"local", ""}},
            .ranks = 2,
            .nodes = 1,
            .gpus = 16,
            .longest_s = 0};
}

TEST(AdmissionRules, EachDemandSaysWhatItFound) {
    const std::map<std::string, std::string> labels{{"team", "vision"}};
    AdmissionSubject run = notebook();
    run.labels = &labels;
    EXPECT_EQ(refusal("{name: few, most_gpus: 8}", run),
              "per_rank.gpus: 16 GPUs in all, at most 8 are allowed (rule few)");
    EXPECT_EQ(refusal("{name: few, most_gpus: 16, most_ranks: 2, most_nodes: 1}", run), "");
    EXPECT_THAT(refusal("{name: ours, images: registry.example.org/*}", run),
                HasSubstr("image: it is docker.io/library/python:3.12, expected registry.example.org/*"));
    EXPECT_THAT(refusal("{name: digest, by_digest: true}", run), HasSubstr("expected an image by its digest"));
    EXPECT_THAT(refusal("{name: short, longest: 24h}", run), HasSubstr("it may last for ever"));
    EXPECT_THAT(refusal("{name: spot, classes: spot, checkpoints: true}", run),
                HasSubstr("checkpoint: it writes none"));
    EXPECT_THAT(refusal("{name: owner, labels: [cost-centre]}", run), HasSubstr("there is no cost-centre"));
    EXPECT_EQ(refusal("{name: team, labels: [team=speech|vision]}", run), "");
    EXPECT_THAT(refusal("{name: team, labels: [team=speech]}", run), HasSubstr("team is vision, expected speech"));
    EXPECT_THAT(refusal("{name: where, engines: [slurm]}", run), HasSubstr("engine: it is local"));
    EXPECT_THAT(refusal("{name: what, gpu_models: [H100]}", run), HasSubstr("it is any GPU, expected H100"));
    EXPECT_THAT(refusal("{name: size, machines: Standard_ND96*}", run), HasSubstr("it is of no plan"));
    run.image = "r/x@sha256:" + std::string(64, 'a');
    run.longest_s = 86'400;
    run.gpus = 0;
    EXPECT_EQ(refusal("{name: fine, by_digest: true, longest: 24h, gpu_models: [H100]}", run), "");
    run.image.pop_back();
    EXPECT_NE(refusal("{name: cut, by_digest: true}", run), "");
}

// A rule for one team must not keep back the others.
TEST(AdmissionRules, ARuleIsAboutWhomItNames) {
    const AdmissionSubject run = notebook();
    for (const char* about : {"organisations: hospital", "projects: imaging", "projects: hospital/imag*",
                              "users: [ben, an*]", "kinds: [batch, notebook]"})
        EXPECT_NE(refusal(std::string("{name: x, most_gpus: 1, ") + about + "}", run), "") << about;
    for (const char* about :
         {"organisations: bank", "projects: bank/imaging", "users: ann", "kinds: train", "classes: guaranteed"})
        EXPECT_EQ(refusal(std::string("{name: x, most_gpus: 1, ") + about + "}", run), "") << about;
}

// The name of another hospital in a rule tells that it is a customer.
TEST(AdmissionRules, WhoIsToldOfARule) {
    const AdmissionRule of_bank = rule("{name: x, most_gpus: 1, organisations: bank}"),
                        of_vault = rule("{name: x, most_gpus: 1, projects: [bank/vault]}"),
                        of_all = rule("{name: x, most_gpus: 1}");
    EXPECT_FALSE(may_be_about(of_bank, "hospital", "imaging"));
    EXPECT_TRUE(may_be_about(of_bank, "bank", ""));
    EXPECT_FALSE(may_be_about(of_vault, "hospital", ""));
    EXPECT_FALSE(may_be_about(of_vault, "bank", "till"));
    EXPECT_TRUE(may_be_about(of_vault, "bank", "vault") && may_be_about(of_vault, "bank", ""));
    EXPECT_TRUE(may_be_about(of_all, "hospital", "imaging"));
}

TEST(AdmissionRules, TheOperatorsRemedyGoesBeforeOurs) {
    const auto refusals = judge({rule("{name: x, most_gpus: 1, remedy: ask the platform team}")}, notebook());
    ASSERT_EQ(refusals.size(), 1u);
    EXPECT_EQ(refusals[0].remedy, "ask the platform team");
    EXPECT_EQ(refusals[0].pos.file, "rules.yaml");
}

TEST(AdmissionRules, RulesThatCannotBeMeantAreRefused) {
    Problems problems;
    check_admission_rules({rule("{name: a, most_gpus: 1}"), rule("{name: a, kinds: training, by_digest: true}"),
                           rule("{name: b, kinds: train}"), rule("{name: c, labels: ['=x']}")},
                          problems);
    ASSERT_EQ(problems.size(), 4u);
    EXPECT_THAT(problems[0].message, HasSubstr("a rule a already"));
    EXPECT_THAT(problems[1].message, HasSubstr("no training in kinds"));
    EXPECT_THAT(problems[2].message, HasSubstr("b asks nothing"));
    EXPECT_THAT(problems[3].message, HasSubstr("a label has no key"));
}

TEST(AdmissionRules, Patterns) {
    EXPECT_TRUE(matches_pattern("*", ""));
    EXPECT_TRUE(matches_pattern("a*b*c", "aXbYbc"));
    EXPECT_FALSE(matches_pattern("a*b", "abc"));
    EXPECT_TRUE(matches_pattern("Standard_ND96*", "standard_nd96isr_h100_v5"));
    EXPECT_FALSE(matches_pattern("", "x"));
    EXPECT_FALSE(matches_pattern(std::string(200, '*') + "b", std::string(2000, 'a')));
}

// It goes to the engine that has room first: one of them that is not allowed is one too many.
TEST(AdmissionRules, EveryEngineThatItMayGoToHasToBeRight) {
    AdmissionSubject run = notebook();
    run.lies_in = [](std::string_view place, std::string_view region) {
        return place == "eu" && (region == "westeurope" || region == "germanywestcentral");
    };
    run.engines = {{"slurm", "westeurope"}, {"local", "eastus"}};
    EXPECT_THAT(refusal("{name: where, engines: [slurm]}", run),
                HasSubstr("engine: it may go to local, expected slurm"));
    EXPECT_THAT(refusal("{name: where, regions: [west*]}", run), HasSubstr("local stands in eastus, expected west*"));
    EXPECT_THAT(refusal("{name: where, residency: [eu]}", run),
                HasSubstr("local stands in eastus, and what it works on may not leave eu"));
    run.engines = {{"slurm", "westeurope"}};
    for (const char* rule : {"engines: [slurm]", "regions: [west*]", "residency: [eu]"})
        EXPECT_EQ(refusal("{name: where, " + std::string(rule) + "}", run), "") << rule;
    // Where nobody said it, nothing is assumed.
    run.engines = {{"slurm", ""}};
    const auto refusals = judge({rule("{name: where, residency: [eu]}")}, run);
    ASSERT_EQ(refusals.size(), 1u);
    EXPECT_THAT(refusals[0].message, HasSubstr("nobody said in which region slurm stands"));
    EXPECT_THAT(refusals[0].remedy, HasSubstr("region: westeurope"));
}

TEST(AdmissionRules, ANodeThatIsTooWide) {
    AdmissionSubject run = notebook();
    run.node_gpus = 8;
    run.widest_node = "rack-1";
    EXPECT_EQ(refusal("{name: small, most_node_gpus: 1}", run),
              "nodes: it could be put on rack-1, which has 8 GPUs, at most 1 are allowed (rule small)");
    EXPECT_EQ(refusal("{name: small, most_node_gpus: 8}", run), "");
}

// What a plan cannot know yet is not held against it.
TEST(AdmissionRules, APlanIsAskedForWhatItSays) {
    AdmissionSubject plan = notebook();
    plan.planned = true;
    plan.engines = {{"plan", "eastus"}};
    for (const char* later : {"images: [a]", "by_digest: true", "engines: [slurm]", "longest: 1h", "labels: [a]"})
        EXPECT_EQ(refusal("{name: later, " + std::string(later) + "}", plan), "") << later;
    EXPECT_THAT(refusal("{name: now, most_gpus: 8}", plan), HasSubstr("16 GPUs in all"));
    EXPECT_THAT(refusal("{name: now, regions: [westeurope]}", plan),
                HasSubstr("where.regions: the plan stands in eastus, expected westeurope"));
}

// What is handed on is the rule itself.
TEST(AdmissionRules, RulesAreWrittenAsTheyAreRead) {
    const AdmissionRules rules = {
        rule("{name: all, organisations: [a], projects: [b/c], users: [d], kinds: [train], classes: [spot], images: "
             "[i], "
             "by_digest: true, engines: [e], regions: [r], residency: [eu], gpu_models: [H100], machines: ['S*'], "
             "most_ranks: 1, most_nodes: 2, most_gpus: 3, most_node_gpus: 4, longest: 90m, labels: ['k=a|b'], "
             "checkpoints: true, remedy: 'ask: \"us\"'}"),
        rule("{name: few, most_gpus: 8}")};
    const std::string text = rules_text(rules);
    const auto document = Document::parse_yaml(text, "rules.yaml");
    ASSERT_TRUE(document.ok());
    AdmissionRules again;
    Problems problems;
    for (const auto& item : document->root().items) again.push_back(admission_rule_table().read(*item, problems));
    ASSERT_TRUE(problems.empty()) << problems.front().message;
    EXPECT_EQ(rules_text(again), text);
    ASSERT_EQ(again.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) again[i].at = rules[i].at;
    EXPECT_EQ(exact_text(again), exact_text(rules));
}

}  // namespace
}  // namespace stoker
