#include "deploy/slurm/queue.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker::slurm {
namespace {

std::int64_t whole(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc() ? value : 0;
}

constexpr std::string_view kOver[] = {"COMPLETED", "FAILED",        "CANCELLED", "TIMEOUT",   "NODE_FAIL",
                                      "PREEMPTED", "OUT_OF_MEMORY", "DEADLINE",  "BOOT_FAIL", "REVOKED"};
constexpr std::string_view kPending[] = {"PENDING",      "CONFIGURING",  "REQUEUED",     "REQUEUE_FED",
                                         "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"};

template <std::size_t n>
bool is_one_of(const std::string_view (&list)[n], std::string_view word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

}  // namespace

std::int64_t expected_start(std::int64_t submitted_s, std::int64_t starts_s) {
    constexpr std::int64_t kNobodyExpects = 300LL * 86400;
    return starts_s - submitted_s > kNobodyExpects ? 0 : starts_s;
}

JobPhase phase_of(std::string_view state) {
    const std::string_view word = state.substr(0, state.find_first_of(" +"));
    if (word == "COMPLETING") return JobPhase::completing;
    if (is_one_of(kOver, word)) return JobPhase::over;
    return is_one_of(kPending, word) ? JobPhase::pending : JobPhase::running;
}

Cause cause_of_state(std::string_view state) {
    const std::string_view word = state.substr(0, state.find_first_of(" +"));
    if (word == "COMPLETED") return Cause::ok;
    if (word == "FAILED") return Cause::user_error;
    if (word == "OUT_OF_MEMORY") return Cause::oom;
    if (word == "TIMEOUT" || word == "DEADLINE") return Cause::timeout;
    if (word == "NODE_FAIL" || word == "BOOT_FAIL") return Cause::node_lost;
    if (word == "PREEMPTED") return Cause::preempted;
    if (word == "CANCELLED") return Cause::cancelled;
    return Cause::platform;
}

std::vector<Job> read_queue(std::string_view text) {
    std::vector<Job> jobs;
    for (const std::string_view line : split_lines(text)) {
        const auto parts = split(line, '|');
        if (parts.size() < 8 || !parts[1].starts_with(kJobPrefix)) continue;
        const auto operation = OperationId::parse(parts[1].substr(kJobPrefix.size()));
        if (!operation) continue;
        jobs.push_back({.number = std::string(parts[0]),
                        .operation = *operation,
                        .phase = phase_of(parts[2]),
                        .state = std::string(parts[2]),
                        .reason = join({parts.begin() + 7, parts.end()}, "|"),
                        .nodes = std::string(parts[5]),
                        .submitted_s = whole(parts[3]),
                        .starts_s = expected_start(whole(parts[3]), whole(parts[4])),
                        .priority = whole(parts[6])});
    }
    return jobs;
}

std::string detail_of(const Job& job, const std::string& numbers) {
    // A node of a cloud takes minutes to come, and no reason says so.
    if (job.state == "CONFIGURING")
        return printable(fmt::format("job {}: CONFIGURING (its nodes are being started: {})", job.number, job.nodes),
                         kMaxDetailBytes);
    std::string meaning = read_reason(job.reason).meaning;
    if (!numbers.empty()) meaning += (meaning.empty() ? "" : "; ") + numbers;
    return printable(fmt::format("job {}: {}{}", job.number, job.reason.empty() ? job.state : job.reason,
                                 meaning.empty() ? "" : " (" + meaning + ")"),
                     kMaxDetailBytes);
}

std::map<std::string, std::string> read_fields(std::string_view line) {
    std::map<std::string, std::string> fields;
    std::string key;
    for (const std::string_view word : split(line, ' ')) {
        const std::size_t equals = word.find('=');
        // Keys begin with a capital; "CPUs=2" in the middle of a kernel's name does not happen.
        if (equals != std::string_view::npos && equals > 0 && word[0] >= 'A' && word[0] <= 'Z') {
            key = std::string(word.substr(0, equals));
            fields[key] = std::string(word.substr(equals + 1));
        } else if (!key.empty() && !word.empty()) {
            fields[key] += " " + std::string(word);
        }
    }
    for (auto& [name, value] : fields)
        if (value == "(null)" || value == "N/A") value.clear();
    return fields;
}

std::map<std::string, std::string> read_settings(std::string_view text) {
    std::map<std::string, std::string> settings;
    for (const std::string_view line : split_lines(text)) {
        const std::size_t equals = line.find(" = ");
        if (equals != std::string_view::npos)
            settings[std::string(trim(line.substr(0, equals)))] = std::string(trim(line.substr(equals + 3)));
    }
    return settings;
}

std::vector<GresGpus> read_gres(std::string_view text) {
    std::vector<GresGpus> found;
    for (std::string_view each : split(text, ',')) {
        each = each.substr(0, each.find('('));
        const auto parts = split(each, ':');
        if (parts[0] != "gpu") continue;
        GresGpus gpus;
        gpus.count = parts.size() == 1 ? 1 : static_cast<int>(whole(parts.back()));
        if (parts.size() == 3) gpus.type = std::string(parts[1]);
        // "gpu:a100" means one of them.
        if (parts.size() == 2 && gpus.count == 0 && parts[1] != "0") gpus = {std::string(parts[1]), 1};
        if (gpus.count > 0) found.push_back(std::move(gpus));
    }
    return found;
}

std::int64_t gpus_in(std::string_view gres) {
    std::int64_t count = 0;
    for (const GresGpus& each : read_gres(gres)) count += each.count;
    return count;
}

void put_gpus(SlurmNode& node, std::string_view gres, const std::map<std::string, std::string>& gpu_models) {
    for (const GresGpus& gpus : read_gres(gres)) {
        const auto named = gpu_models.find(gpus.type);
        const std::string& model = named == gpu_models.end() ? gpus.type : named->second;
        if (!gpus.type.empty()) node.gpu_types.push_back(gpus.type);
        for (int i = 0; i < gpus.count; ++i)
            node.info.devices.push_back({.id = std::to_string(node.info.devices.size()), .model = model});
    }
}

bool takes_work(std::string_view state) {
    const std::vector<std::string_view> flags = split(state, '+');
    const std::string_view base = flags[0].substr(0, flags[0].find_first_of("*~#%$@^!-"));
    const auto has = [&](std::string_view flag) { return std::find(flags.begin(), flags.end(), flag) != flags.end(); };
    // A star: it does not answer. A tilde, or POWERED_DOWN: it is woken when a job needs it.
    return (base == "IDLE" || base == "MIXED" || base == "ALLOCATED" || base == "COMPLETING") && !has("DRAIN") &&
           !has("NOT_RESPONDING") && !has("FAIL") && !has("INVALID_REG") &&
           flags[0].find('*') == std::string_view::npos;
}

std::vector<SlurmNode> read_nodes(std::string_view text, const std::map<std::string, std::string>& gpu_models) {
    std::vector<SlurmNode> nodes;
    for (const std::string_view line : split_lines(text)) {
        auto fields = read_fields(line);
        if (fields["NodeName"].empty()) continue;
        SlurmNode node;
        node.info.name = fields["NodeName"];
        const std::string& effective = fields["CPUEfctv"];
        node.info.cpu_milli = 1000 * whole(effective.empty() ? fields["CPUTot"] : effective);
        node.info.memory_bytes = (whole(fields["RealMemory"]) - whole(fields["MemSpecLimit"])) << 20;
        // No boot id: BootTime is what a node says of its uptime at each registration, and moves by a second now and
        // then. Slurm itself ends what a reboot took.
        put_gpus(node, fields["Gres"], gpu_models);
        node.cores_used = whole(fields["CPUAlloc"]);
        node.gpus_used = gpus_in(fields["GresUsed"]);
        node.state = fields["State"];
        node.reason = fields["Reason"];
        for (const std::string_view name : split(fields["Partitions"], ',')) node.partitions.emplace_back(name);
        node.usable = takes_work(node.state);
        nodes.push_back(std::move(node));
    }
    return nodes;
}

HealthReport report_of_node(const SlurmNode& node, HealthLevel level) {
    HealthReport report;
    HealthCheck& state = report.checks.emplace_back();
    state.name = "engine-node";
    state.node = node.info.name;
    state.verdict = node.usable ? HealthVerdict::pass : HealthVerdict::fail;
    state.detail = "Slurm says " + printable(node.state, 60);
    if (!node.reason.empty()) state.detail += ": " + printable(node.reason, 200);
    if (!node.usable)
        state.fix = fmt::format("scontrol update nodename={} state=resume, when it is well again", node.info.name);
    if (level == HealthLevel::full) {
        HealthCheck& measured = report.checks.emplace_back();
        measured.name = "memory-bandwidth";
        measured.node = node.info.name;
        measured.detail = fmt::format("not measured from here: srun -w {} stoker doctor", node.info.name);
    }
    return report;
}

std::vector<std::string> expand_hosts(std::string_view list) {
    std::vector<std::string> hosts;
    while (!list.empty()) {
        // To the next comma outside of brackets.
        std::size_t end = 0;
        for (bool inside = false; end < list.size() && (inside || list[end] != ','); ++end)
            inside = list[end] == '[' || (inside && list[end] != ']');
        const std::string_view part = list.substr(0, end);
        list.remove_prefix(std::min(end + 1, list.size()));
        const std::size_t open = part.find('['), close = part.find(']');
        if (open == std::string_view::npos || close == std::string_view::npos) {
            if (!part.empty()) hosts.emplace_back(part);
            continue;
        }
        const std::string_view before = part.substr(0, open), after = part.substr(close + 1);
        for (const std::string_view range : split(part.substr(open + 1, close - open - 1), ',')) {
            const std::size_t dash = range.find('-');
            const std::string_view from = range.substr(0, dash);
            const std::int64_t first = whole(from);
            const std::int64_t last = dash == std::string_view::npos ? first : whole(range.substr(dash + 1));
            for (std::int64_t i = first; i <= last && hosts.size() < 1'000'000; ++i) {
                const std::string name = fmt::format("{}{:0{}}", before, i, from.size());
                // A second bracket is expanded in its turn.
                for (const std::string& rest : expand_hosts(name + std::string(after))) hosts.push_back(rest);
            }
        }
    }
    return hosts;
}

std::map<std::string, std::string> read_topology(std::string_view text) {
    struct Switch {
        std::string name, above;
        std::vector<std::string> switches, nodes;
        std::int64_t level = 0;
    };
    std::map<std::string, Switch> switches;
    for (const std::string_view line : split_lines(text)) {
        auto fields = read_fields(line);
        const std::string name = fields["SwitchName"];
        if (name.empty()) continue;
        switches[name] = {.name = name,
                          .above = {},
                          .switches = expand_hosts(fields["Switches"]),
                          .nodes = expand_hosts(fields["Nodes"]),
                          .level = whole(fields["Level"])};
    }
    for (auto& [name, each] : switches)
        for (const std::string& below : each.switches)
            if (const auto at = switches.find(below); at != switches.end()) at->second.above = name;
    std::map<std::string, std::string> places;
    for (const auto& [name, leaf] : switches) {
        if (leaf.level != 0) continue;
        std::string path = name;
        std::string above = leaf.above;
        for (int steps = 0; !above.empty() && steps < 16; ++steps) {
            path = above + "/" + path;
            above = switches[above].above;
        }
        for (const std::string& node : leaf.nodes) places[node] = path;
    }
    return places;
}

}  // namespace stoker::slurm
