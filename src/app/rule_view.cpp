#include "app/rule_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/explain_pages.h"
#include "base/text.h"
#include "io/files.h"
#include "lint/outcome.h"

namespace stoker {

namespace {

std::string kinds_text(const lint::RulePage& page) {
    std::string text;
    int count = 0;
    for (int i = 0; i < lint::kKinds; ++i) {
        if (!page.kinds.has(static_cast<lint::Kind>(i))) continue;
        text += (text.empty() ? "" : " ") + std::string(to_string(static_cast<lint::Kind>(i)));
        ++count;
    }
    return count == lint::kKinds ? "all" : text;
}

std::string group_of(std::string_view id) {
    return std::string(id.substr(0, id.find_first_of("0123456789")));
}

std::string group_title(std::string_view group) {
    static constexpr std::pair<std::string_view, std::string_view> titles[] = {{"AML", "Azure Machine Learning"},
                                                                               {"CMP", "Compose"},
                                                                               {"COST", "Money that runs on"},
                                                                               {"DOC", "Documents"},
                                                                               {"DSP", "DeepSpeed"},
                                                                               {"IMG", "Images"},
                                                                               {"INI", "cloud-init"},
                                                                               {"K8S", "Kubernetes workloads"},
                                                                               {"NET", "Interconnect, placement, NCCL"},
                                                                               {"NPL", "Node pools and clusters"},
                                                                               {"OBS", "Metrics, alerts, dashboards"},
                                                                               {"RUN", "Launchers and environment"},
                                                                               {"SEC", "Security of GPU machines"},
                                                                               {"SKU", "Sizes, images, drivers"},
                                                                               {"SLM", "Slurm"},
                                                                               {"SYN", "The input itself"}};
    for (const auto& [name, title] : titles)
        if (name == group) return std::string(title);
    return std::string(group);
}

}  // namespace

const lint::RulePage* find_rule(std::string_view word) {
    if (const lint::RulePage* page = lint::find_rule_page(upper(word))) return page;
    const lint::RulePage* found = nullptr;
    for (const lint::RulePage& page : lint::rule_pages()) {
        if (!equals_ignore_case(page.slug, word)) continue;
        if (found) return nullptr;
        found = &page;
    }
    return found;
}

std::string rule_text(const lint::RulePage& head, const Style& style) {
    const lint::RulePage page = lint::whole_rule_page(head.id);
    std::string text = style.bold(fmt::format("{} {}", page.id, page.slug)) + "\n";
    const auto paragraph = [&](std::string_view name, const std::string& body) {
        const std::string row = name.empty() ? body : fmt::format("{}: {}", name, body);
        for (const std::string& line : wrap(row, static_cast<std::size_t>(style.width) - 2)) text += "  " + line + "\n";
    };
    paragraph("", page.title);
    text += "\n";
    paragraph("severity", fmt::format("{}{}", to_string(page.severity), page.on ? "" : ", off by default"));
    paragraph("reads", kinds_text(page) + (page.needs_bundle ? "; needs several files of one project" : ""));
    paragraph("fix", page.fix == lint::FixClass::none   ? "none"
                     : page.fix == lint::FixClass::safe ? "--fix"
                                                        : "--fix --unsafe-fixes");
    paragraph("ignoring it", page.cost);
    paragraph("source", fmt::format("{}, read {}", page.source, page.as_of));
    for (const std::string& address : lint::addresses_of_source(page.source)) text += "  " + address + "\n";
    text += render_page(page.text, style);
    for (const lint::RuleExample& example : page.examples) {
        text += "\n" + style.bold(fmt::format("{}: {}", example.bad ? "Bad" : "Good", example.title)) + "\n";
        for (const auto& [path, body] : example.files) {
            text += "  " + style.dim(path) + "\n";
            for (const std::string_view line : split_lines(body)) text += "      " + std::string(line) + "\n";
        }
    }
    return text;
}

Json rule_json(const lint::RulePage& head) {
    const lint::RulePage page = lint::whole_rule_page(head.id);
    Json examples = Json::array();
    for (const lint::RuleExample& example : page.examples) {
        Json files = Json::array();
        for (const auto& [path, body] : example.files) files.push(Json::object().set("path", path).set("text", body));
        examples.push(Json::object().set("bad", example.bad).set("title", example.title).set("files", files));
    }
    Json addresses = Json::array();
    for (const std::string& address : lint::addresses_of_source(page.source)) addresses.push(address);
    return Json::object()
        .set("id", page.id)
        .set("slug", page.slug)
        .set("severity", to_string(page.severity))
        .set("kinds", kinds_text(page))
        .set("on", page.on)
        .set("needs_bundle", page.needs_bundle)
        .set("fix", to_string(page.fix))
        .set("title", page.title)
        .set("cost", page.cost)
        .set("source", page.source)
        .set("addresses", std::move(addresses))
        .set("as_of", page.as_of)
        .set("text", page.text)
        .set("examples", std::move(examples));
}

std::string rules_table(const Style& style, const std::set<std::string, std::less<>>& off) {
    std::vector<std::vector<std::string>> rows;
    for (const lint::RulePage& page : lint::rule_pages())
        rows.push_back({page.id, std::string(to_string(page.severity)), off.contains(page.id) ? "off" : "on",
                        std::string(to_string(page.fix)), page.title});
    return table_text(style, {{"rule"}, {"severity"}, {"runs"}, {"fix"}, {"what it tells"}}, rows);
}

Json rules_json(const std::set<std::string, std::less<>>& off) {
    Json list = Json::array();
    for (const lint::RulePage& page : lint::rule_pages())
        list.push(Json::object()
                      .set("id", page.id)
                      .set("slug", page.slug)
                      .set("severity", to_string(page.severity))
                      .set("on", page.on)
                      .set("runs", !off.contains(page.id))
                      .set("kinds", kinds_text(page))
                      .set("fix", to_string(page.fix))
                      .set("title", page.title)
                      .set("source", page.source)
                      .set("as_of", page.as_of));
    return list;
}

std::string rules_index_markdown() {
    std::string text =
        "# Rules of `stoker check`\n\n"
        "Made by `stoker schema rules-reference docs/reference` from `data/lint`; each page holds the text that\n"
        "`stoker explain ID` prints, with examples that are run as tests. `fix`: safe ones are applied by `--fix`,\n"
        "unsafe ones need a decision and `--unsafe-fixes` too.\n";
    std::string group;
    for (const lint::RulePage& page : lint::rule_pages()) {
        if (group_of(page.id) != group) {
            group = group_of(page.id);
            text += fmt::format("\n## {}: {}\n\n| rule | severity | fix | what it tells |\n| --- | --- | --- | --- |\n",
                                group, group_title(group));
        }
        text += fmt::format("| [{}](rules/{}.md) {} | {}{} | {} | {} |\n", page.id, page.id, page.slug,
                            to_string(page.severity), page.on ? "" : ", off", to_string(page.fix),
                            replace_all(page.title, "|", "\\|"));
    }
    return text;
}

Result<std::string> write_rules_reference(const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code code;
    const fs::path pages = fs::path(folder) / "rules";
    fs::create_directories(pages, code);
    if (code) return Error(ErrorKind::unavailable, fmt::format("cannot make {}: {}", pages.string(), code.message()));
    TRY_VOID(write_file_atomic((fs::path(folder) / "rules.md").string(), rules_index_markdown()));
    std::size_t count = 0;
    for (const lint::RulePage& page : lint::rule_pages()) {
        TRY_VOID(write_file_atomic((pages / (page.id + ".md")).string(),
                                   lint::rule_markdown(lint::whole_rule_page(page.id))));
        ++count;
    }
    return fmt::format("{}: rules.md and {} pages\n", folder, count);
}

}  // namespace stoker
