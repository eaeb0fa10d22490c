#include "lint/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace stoker::lint {

const Source* Outcome::source_of(std::string_view path) const {
    const auto found = sources.find(path);
    return found == sources.end() ? nullptr : found->second.get();
}

std::string rule_link(const RulePage& page) {
    for (std::string_view word : split_words(page.source)) {
        while (!word.empty() && std::string_view(",.;:()<>").find(word.back()) != std::string_view::npos)
            word.remove_suffix(1);
        while (!word.empty() && std::string_view("(<").find(word.front()) != std::string_view::npos)
            word.remove_prefix(1);
        if (word.starts_with("https://")) return std::string(word);
        // A host and a path: learn.microsoft.com/azure/...
        const std::size_t slash = word.find('/'), dot = word.find('.');
        if (slash != std::string_view::npos && dot != std::string_view::npos && dot > 0 && dot < slash &&
            slash + 1 < word.size() && word.find('*') == std::string_view::npos)
            return "https://" + std::string(word);
    }
    return {};
}

bool tells_retirement(std::string_view rule) {
    static constexpr std::array<std::string_view, 6> rules = {"SKU001", "SKU002", "SKU021",
                                                              "SKU028", "K8S009", "DOC001"};
    return std::find(rules.begin(), rules.end(), rule) != rules.end();
}

std::string rule_markdown(const RulePage& page) {
    std::string kinds;
    for (int i = 0; i < kKinds; ++i)
        if (page.kinds.has(static_cast<Kind>(i)))
            kinds += (kinds.empty() ? "" : ", ") + std::string(to_string(static_cast<Kind>(i)));
    std::string text = fmt::format("# {} {}\n\n{}.\n\n", page.id, page.slug, page.title);
    text += "| | |\n| --- | --- |\n";
    text += fmt::format("| severity | {}{} |\n", to_string(page.severity), page.on ? "" : ", off by default");
    text += fmt::format("| reads | {} |\n", kinds);
    if (page.needs_bundle) text += "| needs | several files of one project |\n";
    text += fmt::format("| fix | {} |\n", page.fix == FixClass::none   ? "none"
                                          : page.fix == FixClass::safe ? "safe: `--fix`"
                                                                       : "needs a decision: `--fix --unsafe-fixes`");
    text += fmt::format("| source | {}, read {} |\n", page.source, page.as_of);
    for (const std::string& address : addresses_of_source(page.source)) text += fmt::format("| | <{}> |\n", address);
    text += "\n";
    text += page.text + "\n";
    if (!page.cost.empty()) text += fmt::format("\n**What ignoring it costs.** {}\n", page.cost);
    for (const RuleExample& example : page.examples) {
        text += fmt::format("\n## {}: {}\n", example.bad ? "Bad" : "Good", example.title);
        for (const auto& [path, body] : example.files) {
            const std::string fence = body.find("```") == std::string::npos ? "```" : "````";
            text += fmt::format("\n`{}`\n\n{}text\n{}{}\n", path, fence, body, fence);
        }
    }
    return text;
}

}  // namespace stoker::lint
