#include "lint/fingerprint.h"

#include <fmt/format.h>

#include <unordered_map>

#include "base/digest.h"
#include "base/text.h"
#include "lint/knowledge.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kFingerprintDigits = 32;

// Names of sizes are the same in any case; the place of a parse error is where it stands, which is what must not count.
std::string normal_value(const Finding& finding) {
    return Knowledge::looks_like_size(finding.value) || starts_with_ignore_case(finding.value, "standard_")
               ? lower(finding.value)
               : finding.value;
}
std::string_view stable_address(const Finding& finding) {
    return std::string_view(finding.address).starts_with("input@") ? std::string_view("input") : finding.address;
}

std::string joined(const Finding& finding, std::string_view path) {
    std::string text = "v1";
    const auto add = [&](std::string_view part) {
        text += '\0';
        text += part;
    };
    add(finding.rule);
    add(path);
    add(stable_address(finding));
    add(normal_value(finding));
    return text;
}

}  // namespace

std::string fingerprint_of(const Finding& finding, std::string_view path, std::size_t ordinal) {
    std::string text = joined(finding, path);
    text += '\0';
    text += std::to_string(ordinal);
    return sha256_hex(text).substr(0, kFingerprintDigits);
}

std::vector<std::size_t> ordinals_of(const std::vector<Finding>& findings) {
    std::unordered_map<std::string, std::size_t> seen;
    std::vector<std::size_t> ordinals;
    ordinals.reserve(findings.size());
    for (const Finding& finding : findings) ordinals.push_back(seen[joined(finding, finding.path)]++);
    return ordinals;
}

void set_fingerprints(std::vector<Finding>& findings, const StablePath& stable_path) {
    const std::vector<std::size_t> ordinals = ordinals_of(findings);
    for (std::size_t i = 0; i < findings.size(); ++i)
        findings[i].fingerprint = fingerprint_of(findings[i], stable_path(findings[i].path), ordinals[i]);
}

}  // namespace stoker::lint
