// all_reduce_perf and its sisters. Format: NVIDIA/nccl-tests, src/common.cu; bus bandwidth: doc/PERFORMANCE.md. Columns
// are read from the right, since a test without a reduction leaves redop blank. -J FILE.json: src/util.cu there
// (JSON_FILE_VERSION 3, 2026-07; since 2025-10).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "readings/tool_reader.h"
#include "readings/tool_size.h"

namespace stoker {
namespace {

// Above this the bus bandwidth of an all-reduce has reached its plateau on NVLink (doc/PERFORMANCE.md shows it flat
// from 256 MiB); below it a low figure says nothing.
constexpr double kPlateauBytes = 1073741824.0;
// Of what the node's ports carry together; assumed: between nodes nothing is published for a size.
constexpr double kAcrossShare = 0.5;

struct PerfRow {
    ToolPlace place;
    double bytes = 0, busbw = 0;
    double wrong = 0;
};
struct PerfSheet {
    std::string test;  // all_reduce_perf; empty: older versions do not print it
    std::set<std::string> hosts;
    std::size_t ranks = 0;
    std::string device;
    std::vector<PerfRow> rows;
    std::optional<double> average;
    bool header = false, reduces = false, failed = false;
};

// "     8589934592    2147483648     float     sum      -1    41862.6  205.19  384.74       0  41865.2  205.18  384.71
// 0"
std::optional<PerfRow> perf_row(const std::vector<std::string_view>& words) {
    if (words.size() < 8 || words[0].find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    const auto bytes = tool_number(words[0]);
    const std::size_t sets = words.size() >= 12 ? 2 : 1;
    PerfRow row;
    row.bytes = bytes.value_or(0);
    for (std::size_t set = 0; set < sets; ++set) {
        const std::size_t end = words.size() - 4 * set;
        const auto time = tool_number(words[end - 4]), bus = tool_number(words[end - 2]);
        if (!time || !bus) return std::nullopt;
        row.busbw = std::max(row.busbw, *bus);
        row.wrong += tool_number(words[end - 1]).value_or(0);  // N/A: not validated
    }
    return row;
}

void take_perf_line(PerfSheet& sheet, ReadingBuilder& out, std::string_view text, ToolPlace place) {
    if (contains(text, "Test NCCL failure") || contains(text, "Test CUDA failure") || contains(text, "Test failure")) {
        out.repeated("nccl-run", "failure", place,
                     {.verdict = HealthVerdict::fail,
                      .message = fmt::format("the test ended with an error: \"{}\"", printable(trim(text), 100)),
                      .fix = "run it again with NCCL_DEBUG=INFO and read that: stoker doctor --read FILE"});
        return;
    }
    text = trim(text);
    if (text.starts_with('#')) {
        if (contains(text, "Collective test starting:"))
            sheet.test = trim(between(text, "Collective test starting:", ""));
        if (contains(text, "size") && contains(text, "count") && contains(text, "busbw")) sheet.header = true;
        if (contains(text, "size") && contains(text, "algbw")) sheet.header = true;
        if (contains(text, "Avg bus bandwidth")) {
            sheet.average = leading_number(between(text, ":", ""));
            if (sheet.average) out.fact("average bus bandwidth", fmt::format("{:g} GB/s", *sheet.average));
        }
        const auto words = split_words(text);
        // "#  Rank  0 Group  0 Pid 305380 on host device  0 [0000:0f:00] NVIDIA A100-SXM4-40GB"
        if (words.size() > 2 && words[1] == "Rank") {
            ++sheet.ranks;
            for (std::size_t i = 2; i + 1 < words.size(); ++i)
                if (words[i] == "on") sheet.hosts.insert(std::string(words[i + 1]));
            const std::string_view device = trim(between(text, "]", ""));
            if (!device.empty()) sheet.device = device;
        }
        return;
    }
    const auto words = split_words(text);
    auto row = perf_row(words);
    if (!row || !sheet.header) return;
    row->place = place;
    sheet.reduces = sheet.reduces || std::find(words.begin(), words.end(), "sum") != words.end();
    sheet.rows.push_back(*row);
}

double number_at(const Node* node, std::string_view key) {
    return tool_number(text_at(node, {key})).value_or(0);
}

// One of a result's two halves: {"time": 41862.6, "alg_bw": 205.19, "bus_bw": 384.74, "nwrong": 0.0}
void take_perf_half(PerfRow& row, const Node* half) {
    if (half == nullptr || !half->is_mapping()) return;
    row.busbw = std::max(row.busbw, number_at(half, "bus_bw"));
    row.wrong += number_at(half, "nwrong");  // null: not validated
}

void take_perf_json(PerfSheet& sheet, ReadingBuilder& out, const Node& root) {
    if (const Node* args = root.find("args"); args != nullptr && args->is_sequence() && !args->items.empty()) {
        const std::string_view program = node_text(args->items.front().get());
        sheet.test = program.substr(program.rfind('/') == std::string_view::npos ? 0 : program.rfind('/') + 1);
    }
    if (const Node* devices = node_at(&root, {"config", "devices"}); devices != nullptr && devices->is_sequence()) {
        // One for each process, its first GPU.
        const Node* config = root.find("config");
        const double each = std::max(1.0, number_at(config, "nthreads")) * std::max(1.0, number_at(config, "ngpus"));
        sheet.ranks = static_cast<std::size_t>(std::clamp(each, 1.0, 1e4)) * devices->items.size();
        for (const auto& device : devices->items) {
            sheet.hosts.insert(std::string(text_at(device.get(), {"hostname"})));
            sheet.device = text_at(device.get(), {"device_info"});
        }
    }
    if (const Node* results = root.find("results"); results != nullptr && results->is_sequence())
        for (const auto& result : results->items) {
            PerfRow row{.place = place_of(result->pos), .bytes = number_at(result.get(), "size")};
            take_perf_half(row, node_at(result.get(), {"out_of_place"}));
            take_perf_half(row, node_at(result.get(), {"in_place"}));
            sheet.reduces = sheet.reduces || text_at(result.get(), {"redop"}) == "sum";
            if (row.bytes > 0) sheet.rows.push_back(row);
        }
    if (const Node* average = node_at(&root, {"average_bus_bandwidth", "bandwidth"}); average != nullptr)
        out.fact("average bus bandwidth", fmt::format("{} GB/s", node_text(average)));
    if (const Node* errors = root.find("errors"); errors != nullptr && errors->is_sequence())
        for (const auto& each : errors->items)
            if (const std::string_view text = trim(node_text(each.get())); !text.empty()) {
                sheet.failed = true;
                out.check("nccl-run", place_of(each->pos),
                          {.verdict = HealthVerdict::fail,
                           .message = fmt::format("the test ended with an error: \"{}\"", printable(text, 100)),
                           .fix = "run it again with NCCL_DEBUG=INFO and read that: stoker doctor --read FILE"});
            }
}

std::string size_text(double bytes) {
    return bytes >= 1073741824.0 ? fmt::format("{:g} GiB", bytes / 1073741824.0)
           : bytes >= 1048576.0  ? fmt::format("{:g} MiB", bytes / 1048576.0)
                                 : fmt::format("{:g} bytes", bytes);
}

void judge_inside(ToolFinding& finding, const PerfSheet& sheet, const PerfRow& best, const ToolSize& size) {
    const bool all = !size.gpus || sheet.ranks == 0 || static_cast<double>(sheet.ranks) >= *size.gpus;
    if (!size.nccl_min_gb_s || !all) {
        finding.message +=
            !size.known() ? ": what the node should reach was not said"
            : !size.nccl_min_gb_s
                ? ": no minimum is published for " + size.name
                : fmt::format(": {} of {:g} GPUs took part, and the minimum is for all", sheet.ranks, *size.gpus);
        finding.fix = size.known() ? "" : say_the_size();
        return;
    }
    finding.expected = *size.nccl_min_gb_s * 1e9;
    finding.source = size.nccl_source;
    finding.message =
        fmt::format("bus bandwidth {:.4g} of {:g} GB/s at {}", best.busbw, *size.nccl_min_gb_s, size_text(best.bytes));
    if (best.busbw >= *size.nccl_min_gb_s) {
        finding.verdict = HealthVerdict::pass;
        return;
    }
    const double message = size.nccl_message_bytes.value_or(kPlateauBytes);
    if (best.bytes < kPlateauBytes) {
        finding.message += ": the messages are too small to fill the links";
        finding.fix =
            fmt::format("all_reduce_perf -b {0:g}G -e {0:g}G -g {1:g}", message / 1073741824.0, size.gpus.value_or(8));
        return;
    }
    finding.verdict = best.bytes >= message ? HealthVerdict::fail : HealthVerdict::warn;
    if (best.bytes < message) finding.message += fmt::format(" (the minimum is for {})", size_text(message));
    finding.fix =
        "nvidia-smi nvlink -s and nvidia-smi topo -m on the node; systemctl status nvidia-fabricmanager; "
        "NCCL_DEBUG=INFO shows which transport was taken";
}

void judge_across(ToolFinding& finding, const PerfSheet& sheet, const PerfRow& best, const ToolSize& size) {
    finding.layer = HealthLayer::network;
    if (!size.ib_min_gbps || !size.ib_ports) {
        finding.message +=
            fmt::format(" over {}: what the network should carry is not known", counted(sheet.hosts.size(), "node"));
        finding.fix = size.known() ? "" : say_the_size();
        return;
    }
    const double carried = *size.ib_min_gbps * *size.ib_ports / 8;
    finding.message =
        fmt::format("bus bandwidth {:.4g} GB/s over {} at {}; the ports of a {} carry {:g} GB/s together", best.busbw,
                    counted(sheet.hosts.size(), "node"), size_text(best.bytes), size.name, carried);
    if (best.bytes < kPlateauBytes) return;
    finding.expected = kAcrossShare * carried * 1e9;
    finding.source = fmt::format("{} x {:g} ports; assumed: warns below {:g} of it", size.ib_min_source, *size.ib_ports,
                                 kAcrossShare);
    finding.verdict = best.busbw * 1e9 >= *finding.expected ? HealthVerdict::pass : HealthVerdict::warn;
    if (finding.verdict == HealthVerdict::warn)
        finding.fix =
            "ib_write_bw on each port between the same nodes first; then NCCL_DEBUG=INFO: NET/IB with GDRDMA on "
            "all ports?";
}

}  // namespace

Result<ToolReading> read_nccl_tests(std::string_view text, const std::string& file, const ToolContext& context) {
    const ToolLines lines(text);
    ReadingBuilder out(Tool::nccl_tests, file);
    PerfSheet sheet;
    bool logged = false;
    const bool json = trim(text.substr(0, 4096)).starts_with('{');
    if (json) {
        TRY(const Document document, tool_json(text, file));
        take_perf_json(sheet, out, document.root());
    }
    for (std::size_t at = 0; at < lines.size() && !json; ++at) {
        logged = logged || contains(lines[at], "NCCL INFO") || contains(lines[at], "NCCL WARN");
        if (contains(lines[at], "NCCL INFO")) continue;
        take_perf_line(sheet, out, lines[at], {static_cast<std::uint32_t>(at + 1), 1});
    }
    const ToolSize size = tool_size(context);
    std::string conclusion = "no figure was measured";
    if (sheet.rows.empty() && !sheet.failed && !contains(text, "failure"))
        return out.broken({lines.last_line(), 1}, "no row of results: the test broke off or still ran",
                          "save what it prints to its end: all_reduce_perf -b 16G -e 16G -g 8 > nccl.txt");
    if (!sheet.rows.empty()) {
        double wrong = 0;
        const PerfRow* bad = nullptr;
        // The largest message, and of equals the best.
        const PerfRow* best = &sheet.rows.front();
        for (const PerfRow& row : sheet.rows) {
            if (row.wrong > 0 && bad == nullptr) bad = &row;
            wrong += row.wrong;
            if (row.bytes > best->bytes || (row.bytes == best->bytes && row.busbw > best->busbw)) best = &row;
        }
        out.check("nccl-results", bad != nullptr ? bad->place : sheet.rows.front().place,
                  {.verdict = bad != nullptr ? HealthVerdict::fail : HealthVerdict::pass,
                   .message = bad != nullptr
                                  ? fmt::format("{:g} wrong values (column #wrong): data is damaged on its way", wrong)
                                  : counted(sheet.rows.size(), "row") + ", no wrong value",
                   .fix = bad != nullptr
                              ? "take the node out of use; dcgmi diag -r 3 finds the GPU; nvidia-smi nvlink -e and "
                                "-q -d ECC"
                              : "",
                   .measured = wrong,
                   .expected = 0,
                   .unit = "count",
                   .source = "any run: a collective is exact"});
        ToolFinding finding{.message =
                                fmt::format("bus bandwidth {:.4g} GB/s at {}", best->busbw, size_text(best->bytes))};
        finding.measured = best->busbw * 1e9;
        finding.unit = "bytes/s";
        const bool all_reduce = sheet.test.empty() ? sheet.reduces : starts_with_ignore_case(sheet.test, "all_reduce");
        if (sheet.hosts.size() > 1) {
            judge_across(finding, sheet, *best, size);
        } else if (!all_reduce) {
            finding.message += fmt::format(": the published minimum is for all_reduce_perf, not for {}",
                                           sheet.test.empty() ? "this test" : sheet.test);
        } else {
            judge_inside(finding, sheet, *best, size);
        }
        conclusion = "nccl-tests: " + finding.message;
        out.check("nccl-bandwidth", best->place, std::move(finding));
    }
    if (!sheet.device.empty()) out.fact("model", sheet.device);
    ToolReading reading = out.finish(conclusion);
    if (logged) {
        // NCCL_DEBUG writes into the same file: its lines are read as well.
        if (auto log = read_nccl_log(text, file, context)) {
            reading.notes.insert(reading.notes.end(), log->notes.begin(), log->notes.end());
            std::stable_sort(reading.notes.begin(), reading.notes.end(),
                             [](const ToolNote& a, const ToolNote& b) { return a.line < b.line; });
            reading.checks.insert(reading.checks.end(), log->checks.begin(), log->checks.end());
            reading.facts.insert(reading.facts.end(), log->facts.begin(), log->facts.end());
        }
    }
    return reading;
}

}  // namespace stoker
