#include "app/doctor_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"
#include "lint/check.h"
#include "lint/knowledge.h"
#include "lint/read.h"

namespace stoker {
namespace {

std::int64_t whole(const lint::Value& value) {
    std::int64_t number = 0;
    if (!value.known()) return 0;
    const auto [end, code] = std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
    return code == std::errc() && end == value.text.data() + value.text.size() ? number : 0;
}

// Variables of the libraries between GPUs: a log and a script that name one speak of the same thing.
std::vector<std::string> variables_in(std::string_view text) {
    std::vector<std::string> names;
    for (const std::string_view prefix : {"NCCL_", "UCX_", "FI_", "RCCL_", "GLOO_"})
        for (std::size_t at = text.find(prefix); at != std::string_view::npos; at = text.find(prefix, at + 1)) {
            if (at > 0 && (text[at - 1] == '_' || (text[at - 1] >= 'A' && text[at - 1] <= 'Z'))) continue;
            std::size_t end = at;
            while (end < text.size() && (text[end] == '_' || (text[end] >= 'A' && text[end] <= 'Z') ||
                                         (text[end] >= '0' && text[end] <= '9')))
                ++end;
            names.emplace_back(text.substr(at, end - at));
        }
    return names;
}

struct Said {
    std::string place, variable;  // "nccl.log:2"
};

// What is wrong with the network, with the variable that is named there.
std::vector<Said> said_of_network(const ToolReading& reading) {
    std::vector<Said> all;
    for (const ToolNote& note : reading.notes) {
        if (note.layer != HealthLayer::network || note.verdict < HealthVerdict::warn) continue;
        for (std::string& name : variables_in(note.message))
            all.push_back({fmt::format("{}:{}", reading.file, note.line), std::move(name)});
    }
    return all;
}

const Price* lowest_price(const Catalog& catalog, int node_type) {
    const Price* lowest = nullptr;
    for (const Price& price : catalog.prices_of(node_type))
        if (price.pricing == Pricing::on_demand && price.os == "linux" && !price.estimate &&
            (lowest == nullptr || price.per_hour < lowest->per_hour))
            lowest = &price;
    return lowest;
}

void tell_size(ToolReport& report, const ToolContext& context, std::int64_t nodes) {
    if (context.catalog == nullptr || context.size.empty()) return;
    const auto index = context.catalog->find_node_type(context.size);
    if (!index) return;
    const NodeType& node = context.catalog->node_types()[static_cast<std::size_t>(*index)];
    if (node.rdma_gbps_per_node > 0)
        report.together.push_back(fmt::format(
            "expected: {} has {:g} Gbit/s of {} between nodes{}", node.name, node.rdma_gbps_per_node, node.rdma_name(),
            node.ethernet_gbps > 0 ? fmt::format("; sockets share its {:g} Gbit/s of Ethernet, {:.0f} times less",
                                                 node.ethernet_gbps, node.rdma_gbps_per_node / node.ethernet_gbps)
                                   : std::string()));
    const Price* price = lowest_price(*context.catalog, *index);
    if (price == nullptr) return;
    const double hour = price->per_hour.dollars();
    report.together.push_back(
        nodes > 1
            ? fmt::format("money: the {} nodes of the script cost ${:.2f} an hour while they wait for it (${:.2f} "
                          "each: lowest list price, {}, {})",
                          nodes, hour * static_cast<double>(nodes), hour, price->region, price->provenance.as_of)
            : fmt::format("money: each node costs ${:.2f} an hour while it waits for it (lowest list price, {}, {})",
                          hour, price->region, price->provenance.as_of));
}

}  // namespace

bool looks_like_script(const std::string& name, const std::string& text) {
    return !lint::classify(name, text).empty();
}

ScriptReading read_script(const ToolFile& file, const std::string& today) {
    ScriptReading script;
    script.reading.tool = Tool::script;
    script.reading.file = file.name;
    const auto read = lint::read_file(file.name, file.text);
    if (!read) return script;
    lint::CheckOptions options;
    options.as_of = today;
    for (const lint::Launch& launch : read->launches)
        script.nodes = std::max({script.nodes, whole(launch.nodes), whole(launch.srun_nodes)});
    lint::Bundle bundle;
    bundle.files.push_back(read.get());
    for (const lint::Finding& finding : lint::check_bundle(bundle, options, lint::Knowledge::embedded())) {
        const bool broken = finding.rule.starts_with("SYN");
        if (!finding.rule.starts_with("NET") && !broken) continue;
        script.reading.notes.push_back(
            {.line = finding.place.line,
             .column = finding.place.column,
             .layer = HealthLayer::network,
             .verdict = broken ? HealthVerdict::skipped : HealthVerdict::warn,
             .message = fmt::format("{} ({})", finding.message, finding.rule),
             .fix = finding.fix ? fmt::format("stoker check --fix {}: {}", file.name, finding.fix->title)
                                : finding.advice});
    }
    if (script.reading.notes.empty())
        script.reading.notes.push_back({.line = 1,
                                        .column = 1,
                                        .layer = HealthLayer::network,
                                        .verdict = HealthVerdict::skipped,
                                        .message = "nothing in it slows the network between nodes"});
    return script;
}

void join_scripts(ToolReport& report, std::vector<ScriptReading> scripts, const ToolContext& context) {
    std::vector<Said> logs, lines;
    std::int64_t nodes = 0;
    for (const ToolReading& reading : report.readings)
        for (Said& said : said_of_network(reading)) logs.push_back(std::move(said));
    for (ScriptReading& script : scripts) {
        nodes = std::max(nodes, script.nodes);
        for (Said& said : said_of_network(script.reading)) lines.push_back(std::move(said));
        report.readings.push_back(std::move(script.reading));
    }
    std::vector<std::string> told;
    for (const Said& log : logs) {
        if (std::find(told.begin(), told.end(), log.variable) != told.end()) continue;
        told.push_back(log.variable);
        const auto line =
            std::find_if(lines.begin(), lines.end(), [&](const Said& each) { return each.variable == log.variable; });
        if (line != lines.end())
            report.together.push_back(fmt::format("the line: {} of the log ({}) is set at {}: change it there",
                                                  log.variable, log.place, line->place));
        else
            report.open.push_back(
                scripts.empty()
                    ? fmt::format("where {} is set: name the script of the run as well (--read {} train.sh)",
                                  log.variable, report.readings.front().file)
                    : fmt::format("where {} is set: not in the scripts that were named (an image, a profile, "
                                  "/etc/nccl.conf)",
                                  log.variable));
    }
    if (!logs.empty()) tell_size(report, context, nodes);
}

}  // namespace stoker
