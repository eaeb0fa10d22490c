#include "run/decide/launch.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "deploy/engine_node.h"
#include "run/spec/run_folder.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

// Where the rank is among those of its node; nodes are numbered in the order in which ranks meet them.
struct RankPosition {
    int node_rank = 0, local_rank = 0;
};
struct GangLayout {
    std::vector<RankPosition> ranks;
    std::vector<int> of_node;  // ranks on each
    std::vector<std::string> names;
};

GangLayout layout_of(const Attempt& attempt) {
    GangLayout layout;
    std::map<std::string, int> numbers;
    for (const RankPlace& place : attempt.places) {
        const auto [at, fresh] = numbers.emplace(place.node, static_cast<int>(numbers.size()));
        if (fresh) {
            layout.of_node.push_back(0);
            layout.names.push_back(node_on_engine(place.node, attempt.engine));
        }
        int& count = layout.of_node[static_cast<std::size_t>(at->second)];
        layout.ranks.push_back({.node_rank = at->second, .local_rank = count++});
    }
    return layout;
}

// A driver that knows a free port puts it in its place. Below the range from which kernels draw ports by themselves.
int suggested_port(const OperationId& launch) {
    return 20000 + static_cast<int>(launch.seq % 10000);
}

std::vector<std::string> device_ids(const State& state, const RankPlace& place) {
    std::vector<std::string> ids;
    const auto node = state.nodes.find(place.node);
    if (node == state.nodes.end()) return ids;
    const auto& devices = node->second.info.devices;
    for (std::size_t i = 0; i < devices.size() && i < 32; ++i)
        if ((place.devices >> i & 1) != 0) ids.push_back(devices[i].id);
    return ids;
}

// lr-decay -> STOKER_PARAM_LR_DECAY
std::string parameter_variable(const std::string& name) {
    std::string variable = "STOKER_PARAM_";
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        variable += byte < 0x80 && std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
    }
    return variable;
}

// After which something is sure to end it, with the grace that its processes may take.
std::int64_t longest_s(const Run& run) {
    std::int64_t longest = 0;
    const auto by = [&](std::int64_t seconds) {
        if (seconds > 0 && (longest == 0 || seconds < longest)) longest = seconds;
    };
    if (run.spec.timeout_s > 0) by(std::max<std::int64_t>(1, run.spec.timeout_s - run.used_us / kSecondUs));
    by(run.spec.lease.hard_max_s);
    return longest == 0 ? 0 : longest + run.spec.grace_s;
}

}  // namespace

GangSpec gang_spec(const State& state, const Run& run, const Attempt& attempt, const std::string& log_root) {
    const AttemptId id{run.id, attempt.number};
    const RunSpec& spec = run.spec;
    const GangLayout layout = layout_of(attempt);
    const RunFolder own{log_root + "/" + run.id.text()};
    GangSpec gang{.attempt = id,
                  .epoch = state.epoch,
                  .folder = spec.folder.empty() ? own.path : spec.folder,
                  .log_folder = own.path + "/" + id.text(),
                  .image = spec.image,
                  .nodes = spec.nodes,
                  .one_switch = spec.topology == TopologyWish::require,
                  .longest_s = longest_s(run),
                  .measure = measure_spec(spec, own)};
    gang.engine = attempt.engine;
    gang.project = run.project.number;
    std::string nodes;
    for (const std::string& name : layout.names) nodes += (nodes.empty() ? "" : ",") + name;
    std::map<std::string, std::string> common = spec.environment;
    const auto set = [](auto& map, const char* key, const auto& value) {
        if constexpr (std::is_integral_v<std::decay_t<decltype(value)>>)
            map[key] = std::to_string(value);
        else
            map[key] = value;
    };
    const std::size_t size = attempt.places.size();
    set(common, "STOKER_OP", attempt.launch.text());
    set(common, "STOKER_RUN", run.id.text());
    set(common, "STOKER_ATTEMPT", id.text());
    set(common, "STOKER_EPOCH", state.epoch);
    set(common, "STOKER_GRACE", spec.grace_s);
    set(common, "STOKER_RUN_DIR", own.path);
    set(common, "STOKER_ARTIFACT_DIR", own.artifacts());
    set(common, "STOKER_METRICS_FILE", own.metrics());
    // What the steps of a graph share. A graph that is resumed goes on with the folder of the first.
    if (run.parent) common.emplace("STOKER_GRAPH_DIR", log_root + "/" + run.parent.text() + "/shared");
    for (const auto& [name, value] : spec.parameters) common[parameter_variable(name)] = value;
    // One number for all tasks of an array: scripts name a folder after it.
    if (run.parent && common.contains("SLURM_ARRAY_TASK_ID")) {
        common["SLURM_ARRAY_JOB_ID"] = std::to_string(run.parent.number);
        common["STOKER_ARRAY"] = run.parent.text();
    }
    if (!spec.checkpoint.folder.empty()) set(common, "STOKER_CHECKPOINT_DIR", own.checkpoints(spec));
    if (spec.checkpoint.interval_s > 0) set(common, "STOKER_CHECKPOINT_INTERVAL", spec.checkpoint.interval_s);
    if (!attempt.resume_from.empty()) set(common, "STOKER_RESUME_FROM", attempt.resume_from);
    set(common, "WORLD_SIZE", size);
    set(common, "MASTER_PORT", suggested_port(attempt.launch));
    set(common, "SLURM_NTASKS", size);
    // What follows from the nodes, an engine that chooses them adds itself.
    const bool bound = std::all_of(layout.names.begin(), layout.names.end(), [](const auto& n) { return !n.empty(); });
    if (bound) {
        set(common, "MASTER_ADDR", layout.names.size() == 1 ? std::string("127.0.0.1") : layout.names.front());
        set(common, "SLURM_NNODES", layout.names.size());
        set(common, "SLURM_JOB_NODELIST", nodes);
    }
    set(common, "OMPI_COMM_WORLD_SIZE", size);
    for (std::size_t i = 0; i < size; ++i) {
        const RankPosition at = layout.ranks[i];
        const int on_node = layout.of_node[static_cast<std::size_t>(at.node_rank)];
        RankSpec rank{.node = attempt.places[i].node,
                      .arguments = spec.command,
                      .environment = common,
                      .cpu_milli = spec.per_rank.cpu_milli,
                      .memory_bytes = spec.per_rank.memory_bytes,
                      .devices = device_ids(state, attempt.places[i]),
                      .gpus = spec.per_rank.gpus,
                      .gpu_milli = spec.per_rank.gpu_milli,
                      .gpu_model = spec.per_rank.gpu_model};
        for (const char* key : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}) set(rank.environment, key, i);
        if (!bound) {
            gang.ranks.push_back(std::move(rank));
            continue;
        }
        for (const char* key : {"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"})
            set(rank.environment, key, at.local_rank);
        for (const char* key : {"NODE_RANK", "GROUP_RANK", "SLURM_NODEID"}) set(rank.environment, key, at.node_rank);
        for (const char* key : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}) set(rank.environment, key, on_node);
        gang.ranks.push_back(std::move(rank));
    }
    return gang;
}

}  // namespace stoker
