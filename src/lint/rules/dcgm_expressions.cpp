// OBS001-OBS004: what Prometheus rules and Grafana dashboards ask of GPU metrics.
#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

struct DcgmMetric {
    std::string_view name, type, unit;
};

const std::vector<DcgmMetric>& dcgm_metrics() {
    static const std::vector<DcgmMetric> metrics = [] {
        std::vector<DcgmMetric> list;
        const auto table = Tsv::read(embedded_bytes("lint/dcgm_metrics.tsv"), "lint/dcgm_metrics.tsv");
        if (!table) return list;
        for (std::size_t row = 0; row < table->rows(); ++row) {
            list.push_back({table->at(row, 0), table->at(row, 1), table->at(row, 2)});
            if (!table->at(row, 3).empty()) list.push_back({table->at(row, 3), table->at(row, 1), table->at(row, 2)});
        }
        std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
        return list;
    }();
    return metrics;
}

const DcgmMetric* dcgm_find(std::string_view name) {
    const auto& all = dcgm_metrics();
    const auto it =
        std::lower_bound(all.begin(), all.end(), name,
                         [](const DcgmMetric& metric, std::string_view wanted) { return metric.name < wanted; });
    return it != all.end() && it->name == name ? &*it : nullptr;
}

// Levenshtein's distance; names are short.
std::size_t dcgm_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

struct DcgmExpression {
    const Node* expression = nullptr;
    const Node* rule = nullptr;  // the alert or recording rule; the target of a panel
    std::string_view name;       // of the alert, the record
    std::string address;
};

bool dcgm_is_word(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

// f(word, offset) for the names of an expression, those in strings and label matchers left out.
template <typename F>
void dcgm_each_name(std::string_view text, F&& visit) {
    int braces = 0;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (c == '"' || c == '\'' || c == '`') {
            const std::size_t end = text.find(c, at + 1);
            if (end == std::string_view::npos) return;
            at = end + 1;
            continue;
        }
        if (c == '{') ++braces;
        if (c == '}') --braces;
        if (!dcgm_is_word(c) || (c >= '0' && c <= '9')) {
            ++at;
            continue;
        }
        const std::size_t begin = at;
        while (at < text.size() && dcgm_is_word(text[at])) ++at;
        if (braces == 0) visit(text.substr(begin, at - begin), begin);
    }
}

const Node* dcgm_groups_below(const Node& node, int depth = 0) {
    if (const Node* groups = node.find("groups"); groups && groups->is_array()) return groups;
    if (depth < 4)
        for (const Node& child : children(&node))
            if (const Node* found = child.is_object() ? dcgm_groups_below(child, depth + 1) : nullptr) return found;
    return nullptr;
}

// Prometheus' rule files, PrometheusRule objects, Grafana's panels.
template <typename F>
void dcgm_each_expression(const File& file, F&& visit) {
    for_each_part(file, [&](const File& part) {
        // Values of kube-prometheus-stack: additionalPrometheusRulesMap and its kin, somewhere in them.
        const bool values = part.kinds.has(Kind::helm) && !part.host;
        const bool rules = values || part.kinds.any({Kind::prometheus, Kind::k8s});
        if (!rules && !part.kinds.has(Kind::grafana)) return;
        for (const Node* root : part.tree.roots) {
            if (rules) {
                const Node* groups = root->find("groups");
                const Node* kind = root->find("kind");
                if (kind && kind->text == "PrometheusRule") groups = root->at({"spec", "groups"});
                if (values && !groups) groups = dcgm_groups_below(*root);
                for (const Node& group : children(groups))
                    for (const Node& rule : children(group.find("rules"))) {
                        const Node* expression = rule.find("expr");
                        const Node* name = rule.find("alert");
                        // As Grafana is provisioned: a title, and one query or more.
                        if (const Node* title = rule.find("title"); title && !expression)
                            for (const Node& query : children(rule.find("data")))
                                if (const Node* asked = query.at({"model", "expr"}); asked && asked->is_scalar())
                                    visit(
                                        DcgmExpression{asked, &rule, title->text, fmt::format("rule:{}", title->text)});
                        if (!name) name = rule.find("record");
                        if (!expression || !name || !expression->is_scalar()) continue;
                        visit(DcgmExpression{expression, &rule, name->text, fmt::format("rule:{}", name->text)});
                    }
                continue;
            }
            std::vector<const Node*> open{root->find("panels")};
            std::size_t seen = 0;
            while (!open.empty() && ++seen < 20'000) {
                const Node* list = open.back();
                open.pop_back();
                for (const Node& panel : children(list)) {
                    if (const Node* inner = panel.find("panels")) open.push_back(inner);
                    const Node* title = panel.find("title");
                    for (const Node& target : children(panel.find("targets")))
                        if (const Node* expression = target.find("expr"); expression && expression->is_scalar())
                            visit(DcgmExpression{expression, &target, title ? title->text : std::string_view(),
                                                 fmt::format("panel:{}", title ? title->text : std::string_view())});
                }
            }
        }
    });
}

// Where a word of the expression stands in the file; the whole expression where it was folded or escaped.
Span dcgm_span(const Node& expression, std::string_view word) {
    const std::string_view written = expression.source->text(expression.span);
    const std::size_t at = written.find(word);
    if (at == std::string_view::npos) return expression.span;
    const auto begin = expression.span.begin + static_cast<std::uint32_t>(at);
    return {begin, begin + static_cast<std::uint32_t>(word.size())};
}

// The number that a comparison behind `from` compares with.
std::optional<double> dcgm_compared(std::string_view text, std::size_t from) {
    const std::size_t sign = text.find_first_of("<>", from);
    if (sign == std::string_view::npos) return std::nullopt;
    std::size_t at = sign + 1;
    while (at < text.size() && (text[at] == '=' || text[at] == ' ')) ++at;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    return number;
}

}  // namespace

void check_obs001(const File& file, Report& report) {
    dcgm_each_expression(file, [&](const DcgmExpression& each) {
        if (!each.rule->find("alert") && !each.rule->find("record")) return;
        const std::string_view text = each.expression->text;
        bool about_gpu = false;
        for (const std::string_view word : {"gpu", "vllm", "triton", "inference", "llm", "sglang"})
            about_gpu |= contains_nocase(each.name, word) || contains_nocase(text, word);
        if (!about_gpu) return;
        bool any = false, only = true;
        std::string_view first;
        dcgm_each_name(text, [&](std::string_view name, std::size_t) {
            if (name.find('_') == std::string_view::npos || name.ends_with("_over_time") || name == "group_left" ||
                name == "group_right" || name == "histogram_quantile" || name == "count_values" ||
                name == "label_replace")
                return;
            bool host = false;
            for (const std::string_view start : {"container_cpu_", "container_memory_", "node_cpu_", "node_memory_",
                                                 "process_cpu_", "process_resident_memory_", "node_load"})
                host |= name.starts_with(start);
            if (host && first.empty()) first = name;
            any |= host;
            only &= host;
        });
        if (!any || !only) return;
        Finding* finding =
            report.add(*each.expression->source, dcgm_span(*each.expression, first), each.address,
                       "the rule is about a GPU workload and looks at CPU or memory only: a stuck or idle GPU "
                       "does not show there");
        if (finding)
            finding->advice = "use DCGM_FI_DEV_GPU_UTIL, DCGM_FI_PROF_GR_ENGINE_ACTIVE or the server's own metrics";
    });
}

namespace {

void obs002_judge(const Node& text, std::string_view name, std::string_view address, std::string_view outcome,
                  Report& report) {
    if (!name.starts_with("DCGM_FI_") || dcgm_find(name)) return;
    std::string_view nearest;
    std::size_t best = name.size() / 3 + 1;
    for (const DcgmMetric& metric : dcgm_metrics())
        if (name.size() < 100)
            if (const std::size_t distance = dcgm_distance(name, metric.name); distance < best)
                best = distance, nearest = metric.name;
    Finding* finding = report.add(*text.source, dcgm_span(text, name), fmt::format("{}/{}", address, name),
                                  fmt::format("{} is no metric of DCGM that is known here: {}", name, outcome));
    if (!finding) return;
    if (!nearest.empty()) finding->advice = fmt::format("did you mean {}?", nearest);
    // Far from every known name it may be a field that newer versions have.
    if (best > 6 && finding->severity == Severity::error) finding->severity = Severity::warning;
}

// The list of a DCGM exporter in a ConfigMap: a field, its type and its help in each line.
void obs002_counters(const Node& root, Report& report) {
    const Node* kind = root.find("kind");
    if (!kind || kind->text != "ConfigMap") return;
    for (const Node& entry : children(root.find("data"))) {
        if (!entry.is_scalar() || entry.text.find("DCGM_FI_") == std::string_view::npos) continue;
        for (std::string_view line : split(entry.text, '\n')) {
            line = trim(line);
            const std::size_t comma = line.find(',');
            if (!line.starts_with("DCGM_FI_") || comma == std::string_view::npos) continue;
            obs002_judge(entry, trim(line.substr(0, comma)), "counters", "the exporter has nothing to read for it",
                         report);
        }
    }
}

}  // namespace

void check_obs002(const File& file, Report& report) {
    dcgm_each_expression(file, [&](const DcgmExpression& each) {
        dcgm_each_name(each.expression->text, [&](std::string_view name, std::size_t) {
            obs002_judge(*each.expression, name, each.address, "the expression stays empty", report);
        });
    });
    for_each_part(file, [&](const File& part) {
        if (part.kinds.has(Kind::k8s))
            for (const Node* root : part.tree.roots) obs002_counters(*root, report);
    });
}

void check_obs003(const File& file, Report& report) {
    dcgm_each_expression(file, [&](const DcgmExpression& each) {
        const std::string_view text = each.expression->text;
        std::string_view function;
        dcgm_each_name(text, [&](std::string_view name, std::size_t at) {
            const bool rates = name == "rate" || name == "irate" || name == "increase";
            if (rates) {
                function = name;
                return;
            }
            const DcgmMetric* metric = dcgm_find(name);
            if (!metric) {
                if (!name.starts_with("DCGM_")) function = {};
                return;
            }
            const std::string_view before = text.substr(0, at);
            const bool directly = !function.empty() && before.find_last_not_of(' ') != std::string_view::npos &&
                                  before[before.find_last_not_of(' ')] == '(';
            std::string fault;
            if (directly && metric->type == "gauge") {
                fault = fmt::format("{} is a gauge: {}() of it has no meaning", name, function);
            } else if (metric->unit == "MiB") {
                const auto number = dcgm_compared(text, at);
                if (number && *number >= 1e7)
                    fault = fmt::format("{} is in MiB, and is compared with {:.0f}", name, *number);
            } else if (metric->unit == "percent 0-100") {
                const auto number = dcgm_compared(text, at);
                if (number && *number > 100 && text.find('*') == std::string_view::npos)
                    fault = fmt::format("{} goes from 0 to 100, and is compared with {:.0f}", name, *number);
            }
            function = {};
            if (fault.empty()) return;
            report.add(*each.expression->source, dcgm_span(*each.expression, name),
                       fmt::format("{}/{}", each.address, name), std::move(fault));
        });
    });
}

void check_obs004(const File& file, Report& report) {
    dcgm_each_expression(file, [&](const DcgmExpression& each) {
        if (!each.rule->find("alert")) return;
        const std::string_view text = each.expression->text;
        dcgm_each_name(text, [&](std::string_view name, std::size_t at) {
            if (name != "DCGM_FI_DEV_GPU_TEMP" && name != "DCGM_FI_DEV_MEMORY_TEMP") return;
            const auto limit = dcgm_compared(text, at);
            if (!limit) return;
            const bool smooth = each.rule->find("for") || each.rule->find("keep_firing_for") ||
                                text.find("_over_time") != std::string_view::npos;
            std::string fault;
            // Slow-down temperatures of data-centre boards lie between 80 and 105 degrees Celsius (nvidia-smi -q).
            if (*limit < 50 || *limit > 110)
                fault = fmt::format("a temperature threshold of {:.0f} degrees: boards throttle between 80 and 105",
                                    *limit);
            else if (!smooth)
                fault = "a temperature alert without a duration: it flaps around its threshold";
            if (fault.empty()) return;
            Finding* finding =
                report.add(*each.expression->source, dcgm_span(*each.expression, name), each.address, std::move(fault));
            if (finding && !smooth) finding->advice = "add for: 5m";
        });
    });
}

}  // namespace stoker::lint
