#include "check/check_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "base/table.h"
#include "base/text.h"

namespace stoker {

namespace {

constexpr std::string_view kCheckConfigName = "stoker.toml";

struct ProfileRules {
    std::string_view profile;
    std::string_view rules;  // off by default, on here; ids between blanks
};
// What is a matter of taste in a trial is a fault in production; gangs and log folders concern training, surge and
// weights concern serving. dev adds what idle machines cost.
constexpr std::array<ProfileRules, 4> kProfiles = {{
    {"dev", " K8S017 K8S020 NPL010 COST008 COST011 "},
    {"prod",
     " SKU016 SKU022 NET019 K8S020 K8S030 K8S036 NPL014 NPL015 COST002 COST006 COST007 COST008 SLM010 SLM011 INI002 "
     "SYN003 "},
    {"training", " NET012 NET015 NET019 K8S020 K8S022 SLM010 SLM011 DSP006 DSP013 COST011 INI002 "},
    {"inference", " K8S030 K8S034 K8S036 NPL015 "},
}};

struct ConfigReader {
    const std::string& file;
    std::vector<Problem> problems;

    SourcePos pos(const toml::source_region& region) const { return {file, region.begin.line, region.begin.column}; }
    void wrong(const toml::source_region& region, std::string message, std::string remedy = {}) {
        problems.push_back({std::move(message), std::move(remedy), pos(region)});
    }
    void wrong_type(std::string_view key, const toml::node& node, std::string_view expected) {
        wrong(node.source(), fmt::format("{} is {}", key, expected));
    }

    // A key that is not among these is refused: what is misspelt would be silence.
    void only(const toml::table& table, std::string_view where, const std::vector<std::string>& known) {
        for (const auto& [key, value] : table) {
            const std::string name(key.str());
            if (std::find(known.begin(), known.end(), name) != known.end()) continue;
            const auto near = nearest(name, known);
            wrong(key.source(),
                  fmt::format("{} has no key '{}'{}", where, printable(name, 60),
                              near ? fmt::format(" (did you mean {}?)", *near) : ""),
                  "it has " + join(known, ", "));
        }
    }
    std::optional<std::string> text(const toml::table& table, std::string_view key) {
        const toml::node* node = table.get(key);
        if (!node) return std::nullopt;
        if (const auto* value = node->as_string()) return value->get();
        wrong_type(key, *node, "a text in quotes");
        return std::nullopt;
    }
    std::optional<std::string> choice(const toml::table& table, std::string_view key,
                                      const std::vector<std::string>& choices) {
        auto value = text(table, key);
        if (!value || std::find(choices.begin(), choices.end(), *value) != choices.end()) return value;
        const auto near = nearest(*value, choices);
        wrong(table.get(key)->source(),
              fmt::format("{} is {}, not '{}'{}", key, join_or(choices), printable(*value, 60),
                          near ? fmt::format(" (did you mean {}?)", *near) : ""));
        return std::nullopt;
    }
    std::vector<std::string> texts(const toml::table& table, std::string_view key) {
        std::vector<std::string> list;
        const toml::node* node = table.get(key);
        if (!node) return list;
        const toml::array* array = node->as_array();
        if (!array) wrong_type(key, *node, "a list of texts: [\"...\"]");
        for (std::size_t i = 0; array && i < array->size(); ++i) {
            const toml::node& item = *array->get(i);
            if (const auto* value = item.as_string())
                list.push_back(value->get());
            else
                wrong_type(key, item, "a list of texts");
        }
        return list;
    }
    void number(const toml::table& table, std::string_view key, double low, double high, double& out) {
        const toml::node* node = table.get(key);
        if (!node) return;
        const auto value = node->value<double>();
        if (!value || !node->is_number())
            wrong_type(key, *node, "a number");
        else if (*value < low || *value > high)
            wrong(node->source(), fmt::format("{} is between {} and {}", key, low, high));
        else
            out = *value;
    }
    void whole(const toml::table& table, std::string_view key, int low, int high, int& out) {
        double value = out;
        number(table, key, low, high, value);
        out = static_cast<int>(value);
    }
    // Of `parent`, or null when it is absent or no table.
    const toml::table* table(const toml::table& parent, std::string_view key, std::string_view where) {
        const toml::node* node = parent.get(key);
        if (!node) return nullptr;
        if (const toml::table* found = node->as_table()) return found;
        wrong(node->source(), fmt::format("{} is a table: [{}]", key, where));
        return nullptr;
    }
    bool rule_id(std::string_view id, const toml::source_region& region) {
        if (lint::find_rule_page(id)) return true;
        std::vector<std::string> ids;
        for (const lint::RulePage& page : lint::rule_pages()) ids.push_back(page.id);
        const auto near = nearest(id, ids);
        wrong(region,
              fmt::format("no rule has the id '{}'{}", printable(id, 40),
                          near ? fmt::format(" (did you mean {}?)", *near) : ""),
              "stoker check --list shows all");
        return false;
    }
    std::set<std::string, std::less<>> rule_ids(const toml::table& table, std::string_view key) {
        std::set<std::string, std::less<>> ids;
        const std::vector<std::string> words = texts(table, key);
        for (const std::string& word : words)
            if (rule_id(word, table.get(key)->source())) ids.insert(word);
        return ids;
    }

    void severities(const toml::table& table, CheckConfig& config) {
        for (const auto& [key, value] : table) {
            if (!rule_id(key.str(), key.source())) continue;
            const auto* word = value.as_string();
            const auto severity = word ? lint::severity_from(word->get()) : std::nullopt;
            if (severity)
                config.severity[std::string(key.str())] = *severity;
            else if (word && word->get() == "off")
                config.switched_off.insert(std::string(key.str()));
            else
                wrong(value.source(), "a severity is \"error\", \"warning\", \"info\" or \"off\"");
        }
    }
    void thresholds(const toml::table& table, lint::CheckOptions& options) {
        only(table, "[check.thresholds]",
             {"liveness_budget_s", "aml_idle_s", "max_placement", "catalogue_max_age_days", "cpus_per_gpu"});
        number(table, "liveness_budget_s", 0, 1e6, options.liveness_budget_s);
        number(table, "aml_idle_s", 0, 1e7, options.aml_idle_s);
        whole(table, "max_placement", 1, 100'000, options.max_placement);
        whole(table, "catalogue_max_age_days", 0, 100'000, options.catalogue_max_age_days);
        number(table, "cpus_per_gpu", 0, 1000, options.cpus_per_gpu);
    }
    static bool is_version(std::string_view text) {
        return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos &&
               text.front() != '.' && text.back() != '.';
    }
    void targets(const toml::table& table, lint::CheckOptions& options) {
        only(table, "[check.targets]", {"kubernetes", "slurm", "azurerm"});
        if (const auto value = text(table, "kubernetes"); value && *value != "oldest-aks") {
            if (is_version(*value))
                options.kubernetes = *value;
            else
                wrong(table.get("kubernetes")->source(), "kubernetes is a version such as \"1.33\", or \"oldest-aks\"");
        }
        if (const auto value = text(table, "slurm"); value && *value != "unknown") {
            if (is_version(*value))
                options.slurm = *value;
            else
                wrong(table.get("slurm")->source(), "slurm is a version such as \"22.05\", or \"unknown\"");
        }
        if (const auto value = text(table, "azurerm")) {
            std::string_view version = *value;
            version.remove_prefix(std::min(version.find_first_of("0123456789"), version.size()));
            version = version.substr(0, version.find_first_not_of("0123456789"));
            if (version.empty() || version.size() > 3)
                wrong(table.get("azurerm")->source(), "azurerm is a version of the provider, such as \">=4\"");
            else
                options.azurerm_major = std::stoi(std::string(version));
        }
    }
    void suppress(const toml::table& table, CheckConfig& config) {
        const toml::node* node = table.get("suppress");
        if (!node) return;
        const toml::array* list = node->as_array();
        if (!list) {
            wrong(node->source(), "suppressions are a list: [[check.suppress]]");
            return;
        }
        for (std::size_t i = 0; i < list->size(); ++i) {
            const toml::table* entry = list->get(i)->as_table();
            if (!entry) {
                wrong(list->get(i)->source(), "a suppression is a table: [[check.suppress]]");
                continue;
            }
            only(*entry, "[[check.suppress]]", {"path", "rule", "address", "reason", "until"});
            lint::ConfigSuppression found;
            found.path = text(*entry, "path").value_or("");
            found.rule = text(*entry, "rule").value_or("");
            found.address = text(*entry, "address").value_or("");
            found.reason = text(*entry, "reason").value_or("");
            if (const toml::node* until = entry->get("until")) found.until = day(*until, "until");
            found.config = file;
            found.place = {entry->source().begin.line, entry->source().begin.column};
            if (found.path.empty()) wrong(entry->source(), "a suppression names the path of its file: path = \"...\"");
            if (found.rule.empty()) {
                wrong(entry->source(), "a suppression names one rule: rule = \"NET001\"");
            } else if (rule_id(found.rule, entry->get("rule")->source())) {
                if (found.rule == "SYN001" || found.rule == "SYN005")
                    wrong(entry->get("rule")->source(),
                          found.rule + " cannot be suppressed: nothing was checked there");
                config.suppressions.push_back(std::move(found));
            }
        }
    }
    // 2027-01-31, or "2027-01-31".
    std::string day(const toml::node& node, std::string_view key) {
        if (const auto* date = node.as_date())
            return fmt::format("{:04}-{:02}-{:02}", date->get().year, date->get().month, date->get().day);
        if (const auto* word = node.as_string(); word && lint::is_day(word->get())) return word->get();
        wrong(node.source(), fmt::format("{} is a day such as 2027-01-31", key));
        return {};
    }

    void check_table(const toml::table& table, CheckConfig& config) {
        only(table, "[check]",
             {"profile", "select", "ignore", "fail_on", "as_of", "exclude", "baseline", "severity", "thresholds",
              "targets", "suppress", "fix"});
        config.profile = choice(table, "profile", check_profiles());
        config.fail_on = choice(table, "fail_on", {"error", "warning", "info"});
        config.baseline = text(table, "baseline");
        if (const toml::node* as_of = table.get("as_of")) config.as_of = day(*as_of, "as_of");
        config.select = texts(table, "select");
        config.ignore = texts(table, "ignore");
        config.exclude = texts(table, "exclude");
        for (const char* key : {"select", "ignore"}) {
            const auto& words = std::string_view(key) == "select" ? config.select : config.ignore;
            if (words.empty()) continue;
            const auto found = rules_off(words, {}, "");
            if (!found) wrong(table.get(key)->source(), found.error().message(), found.error().problems()[0].remedy);
        }
        if (const auto* found = this->table(table, "severity", "check.severity")) severities(*found, config);
        if (const auto* found = this->table(table, "thresholds", "check.thresholds"))
            thresholds(*found, config.options);
        if (const auto* found = this->table(table, "targets", "check.targets")) targets(*found, config.options);
        if (const auto* found = this->table(table, "fix", "check.fix")) {
            only(*found, "[check.fix]", {"promote", "demote"});
            config.fix.promoted = rule_ids(*found, "promote");
            config.fix.demoted = rule_ids(*found, "demote");
        }
        suppress(table, config);
    }
};

bool word_names(const std::string& word, const lint::RulePage& page) {
    return starts_with_ignore_case(page.id, word) || equals_ignore_case(page.slug, word);
}

// Refuses a word that names nothing, or a slug that two rules have.
Status known_word(const std::string& word) {
    std::vector<std::string> ids, names;
    for (const lint::RulePage& page : lint::rule_pages()) {
        if (starts_with_ignore_case(page.id, word)) return done();
        if (equals_ignore_case(page.slug, word)) ids.push_back(page.id);
        names.push_back(page.id);
        names.push_back(page.slug);
    }
    if (ids.size() == 1) return done();
    if (ids.size() > 1)
        return Error(ErrorKind::invalid, fmt::format("the rules {} are all called {}", join(ids, ", "), word), {},
                     "write the id");
    const auto near = nearest(upper(word), names);
    return Error(ErrorKind::invalid,
                 fmt::format("no rule is called '{}'{}", printable(word, 60),
                             near ? fmt::format(" (did you mean {}?)", *near) : ""),
                 {}, "an id, the beginning of ids (NET), or a slug; stoker check --list shows all");
}

}  // namespace

const std::vector<std::string>& check_profiles() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> list;
        for (const ProfileRules& profile : kProfiles) list.emplace_back(profile.profile);
        return list;
    }();
    return names;
}

bool in_profile(std::string_view rule, std::string_view profile) {
    return std::any_of(kProfiles.begin(), kProfiles.end(), [&](const ProfileRules& p) {
        return p.profile == profile && p.rules.find(fmt::format(" {} ", rule)) != std::string_view::npos;
    });
}

Result<std::set<std::string, std::less<>>> rules_off(const std::vector<std::string>& select,
                                                     const std::vector<std::string>& ignore,
                                                     const std::string& profile) {
    for (const auto* words : {&select, &ignore})
        for (const std::string& word : *words) TRY_VOID(known_word(word));
    std::set<std::string, std::less<>> off;
    for (const lint::RulePage& page : lint::rule_pages()) {
        const auto named_by = [&](const std::string& word) { return word_names(word, page); };
        const bool by_name = std::any_of(select.begin(), select.end(), [&](const std::string& word) {
            return equals_ignore_case(word, page.id) || equals_ignore_case(word, page.slug);
        });
        const bool selected = select.empty() || std::any_of(select.begin(), select.end(), named_by) ||
                              page.id == "SYN001" || page.id == "SYN005";  // a file that was not read is always told
        const bool on = page.on || by_name || in_profile(page.id, profile);
        if (!selected || !on || std::any_of(ignore.begin(), ignore.end(), named_by)) off.insert(page.id);
    }
    return off;
}

Result<CheckConfig> parse_check_config(std::string_view text, const std::string& file) {
    CheckConfig config;
    config.file = file;
    const toml::parse_result parsed = toml::parse(text, file);
    if (!parsed) {
        const toml::parse_error& error = parsed.error();
        return Error(ErrorKind::invalid, std::string(error.description()),
                     SourcePos{file, error.source().begin.line, error.source().begin.column});
    }
    ConfigReader reader{file, {}};
    const toml::table& root = parsed.table();
    reader.only(root, file, {"check"});
    if (const toml::table* check = reader.table(root, "check", "check")) reader.check_table(*check, config);
    if (!reader.problems.empty()) {
        std::stable_sort(reader.problems.begin(), reader.problems.end(), [](const Problem& a, const Problem& b) {
            return std::pair(a.pos.line, a.pos.column) < std::pair(b.pos.line, b.pos.column);
        });
        return Error(ErrorKind::invalid, std::move(reader.problems));
    }
    return config;
}

std::optional<std::string> find_check_config(const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code code;
    for (fs::path at = fs::absolute(folder, code).lexically_normal();; at = at.parent_path()) {
        if (fs::is_regular_file(at / kCheckConfigName, code)) return (at / kCheckConfigName).string();
        if (fs::exists(at / ".git", code) || !at.has_relative_path()) return std::nullopt;
    }
}

}  // namespace stoker
