// A fingerprint that changes with the lines makes every edit a new finding; one that is too coarse hides new ones.
#include "lint/fingerprint.h"

#include <gtest/gtest.h>

namespace stoker::lint {
namespace {

Finding finding_at(std::string rule, std::string path, std::string address, std::string value, std::uint32_t line) {
    Finding finding;
    finding.rule = std::move(rule);
    finding.path = std::move(path);
    finding.address = std::move(address);
    finding.value = std::move(value);
    finding.place.line = line;
    return finding;
}
const StablePath same = [](const std::string& path) { return path; };

TEST(Fingerprints, DoNotKnowLinesOrMessages) {
    std::vector<Finding> before = {finding_at("NET001", "main.tf", "tf:a.b", "false", 3)};
    std::vector<Finding> after = {finding_at("NET001", "main.tf", "tf:a.b", "false", 53)};
    after[0].message = "said in other words";
    set_fingerprints(before, same);
    set_fingerprints(after, same);
    EXPECT_EQ(before[0].fingerprint, after[0].fingerprint);
    EXPECT_EQ(before[0].fingerprint.size(), 32u);
}

TEST(Fingerprints, TellEqualContainersApartByTheirOrder) {
    std::vector<Finding> two = {finding_at("K8S003", "pod.yaml", "k8s:/Pod/x", "trainer", 3),
                                finding_at("K8S003", "pod.yaml", "k8s:/Pod/x", "trainer", 9)};
    set_fingerprints(two, same);
    EXPECT_NE(two[0].fingerprint, two[1].fingerprint);
}

TEST(Fingerprints, TellRulesPathsAddressesAndValuesApart) {
    std::vector<Finding> all = {finding_at("A", "p", "a", "v", 1), finding_at("B", "p", "a", "v", 1),
                                finding_at("A", "q", "a", "v", 1), finding_at("A", "p", "b", "v", 1),
                                finding_at("A", "p", "a", "w", 1)};
    set_fingerprints(all, same);
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = i + 1; j < all.size(); ++j) EXPECT_NE(all[i].fingerprint, all[j].fingerprint);
}

TEST(Fingerprints, TakeSizesInAnyCaseAndParseErrorsAnywhere) {
    std::vector<Finding> all = {finding_at("SKU001", "p", "a", "Standard_NC6", 1),
                                finding_at("SYN001", "p", "input@7", "", 1)};
    std::vector<Finding> other = {finding_at("SKU001", "p", "a", "standard_nc6", 1),
                                  finding_at("SYN001", "p", "input@900", "", 40)};
    set_fingerprints(all, same);
    set_fingerprints(other, same);
    EXPECT_EQ(all[0].fingerprint, other[0].fingerprint);
    EXPECT_EQ(all[1].fingerprint, other[1].fingerprint);
}

}  // namespace
}  // namespace stoker::lint
