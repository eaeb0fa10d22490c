#include "deploy/local/rank_environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/table.h"
#include "base/text.h"
#include "base/thread_pools.h"

namespace stoker {
namespace {

constexpr const char* kHandedOn[] = {"PATH", "HOME",   "USER",   "LOGNAME", "SHELL",
                                     "LANG", "LC_ALL", "TMPDIR", "TZ",      "XDG_RUNTIME_DIR"};
constexpr const char* kUsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// The nodes in the order in which the ranks name them first.
std::vector<std::string> nodes_of(const LaunchOrder& order) {
    std::vector<std::string> nodes;
    for (const RankSpec& rank : order.gang.ranks)
        if (std::find(nodes.begin(), nodes.end(), rank.node) == nodes.end()) nodes.push_back(rank.node);
    return nodes;
}

bool is_file(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

std::map<std::string, std::string> rank_environment(const LaunchOrder& order, std::size_t rank, int master_port,
                                                    const std::string& hostfile,
                                                    const std::map<std::string, std::string>& own) {
    const std::vector<RankSpec>& ranks = order.gang.ranks;
    const RankSpec& spec = ranks[rank];
    const std::vector<std::string> nodes = nodes_of(order);
    std::size_t node = 0, local_rank = 0, local_size = 0;
    while (nodes[node] != spec.node) ++node;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i].node != spec.node) continue;
        if (i < rank) ++local_rank;
        ++local_size;
    }
    const auto text = [](auto number) { return std::to_string(number); };

    std::map<std::string, std::string> result{{"PATH", kUsualPath}};
    for (const char* key : kHandedOn)
        if (const auto it = own.find(key); it != own.end()) result[key] = it->second;
    if (order.user) {
        result.erase("XDG_RUNTIME_DIR");
        result["USER"] = result["LOGNAME"] =
            order.user->home.empty() ? std::to_string(order.user->uid) : order.user->name;
        const auto run = spec.environment.find("STOKER_RUN_DIR");
        if (!order.user->home.empty())
            result["HOME"] = order.user->home;
        else if (run != spec.environment.end())
            result["HOME"] = run->second;
    }
    const std::pair<const char*, std::string> given[] = {
        {"RANK", text(rank)},
        {"WORLD_SIZE", text(ranks.size())},
        {"LOCAL_RANK", text(local_rank)},
        {"LOCAL_WORLD_SIZE", text(local_size)},
        {"NODE_RANK", text(node)},
        {"GROUP_RANK", text(node)},
        {"SLURM_PROCID", text(rank)},
        {"SLURM_NTASKS", text(ranks.size())},
        {"SLURM_NODEID", text(node)},
        {"SLURM_LOCALID", text(local_rank)},
        {"SLURM_JOB_NUM_NODES", text(nodes.size())},
        {"SLURM_JOB_NODELIST", join(nodes, ",")},
        {"OMPI_COMM_WORLD_RANK", text(rank)},
        {"OMPI_COMM_WORLD_SIZE", text(ranks.size())},
        {"OMPI_COMM_WORLD_LOCAL_RANK", text(local_rank)},
        // Empty for a rank without devices: CUDA would take all of them otherwise.
        {"CUDA_VISIBLE_DEVICES", join(spec.devices, ",")},
        {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},  // numbers mean what nvidia-smi shows; by default the fastest is 0
        {"PYTHONUNBUFFERED", "1"},            // or a log stays empty for minutes, and its end is lost with a kill
    };
    for (const auto& [key, value] : given) result[key] = value;
    const int gpus = static_cast<int>(spec.devices.size());
    for (const auto& [key, value] :
         thread_pool_environment(planned_threads(spec.cpu_milli, gpus), gpus, spec.environment))
        result[key] = value;
    if (spec.devices.empty())
        for (const auto& [key, value] : kKeepMemory) result[key] = value;
    for (const auto& [key, value] : spec.environment) result[key] = value;
    // All nodes are this machine, and this port is free here: the order can only have guessed.
    result["MASTER_ADDR"] = "127.0.0.1";
    result["MASTER_PORT"] = text(master_port);
    result["STOKER_OP"] = order.operation.text();
    result["STOKER_RUN"] = order.gang.attempt.run.text();
    result["STOKER_ATTEMPT"] = text(order.gang.attempt.number);
    result["STOKER_EPOCH"] = text(order.gang.epoch);
    result["STOKER_HOSTFILE"] = hostfile;
    return result;
}

std::string hostfile_text(const LaunchOrder& order) {
    std::string file;
    for (const std::string& node : nodes_of(order)) {
        const auto slots = std::count_if(order.gang.ranks.begin(), order.gang.ranks.end(),
                                         [&](const RankSpec& rank) { return rank.node == node; });
        file += "localhost slots=" + std::to_string(slots) + "\n";
    }
    return file;
}

FoundProgram find_program(const std::string& program, const std::string& search_path, const std::string& folder) {
    namespace fs = std::filesystem;
    if (program.empty()) return {.problem = "the name of the program is empty"};
    if (program.find('/') != std::string::npos) {
        const std::string path = program[0] == '/' ? program : folder + "/" + program;
        if (is_file(path) && ::access(path.c_str(), X_OK) == 0) return {.path = path};
        if (is_file(path)) return {.problem = printable(path) + " is not executable (chmod +x makes it so)"};
        std::error_code code;
        return {.problem = fs::is_directory(path, code) ? printable(path) + " is a folder, not a program"
                                                        : "there is no program " + printable(path)};
    }
    std::string refused;
    std::vector<std::string> names;
    for (const std::string_view part : split(search_path, ':')) {
        const std::string place = part.empty() ? folder : std::string(part);
        const std::string path = place + "/" + program;
        if (is_file(path)) {
            if (::access(path.c_str(), X_OK) == 0) return {.path = path};
            if (refused.empty()) refused = path;
        }
    }
    if (!refused.empty()) return {.problem = printable(refused) + " is not executable (chmod +x makes it so)"};
    for (const std::string_view part : split(search_path, ':')) {
        std::error_code code;
        for (fs::directory_iterator it(part.empty() ? folder : std::string(part), code), end; !code && it != end;
             it.increment(code))
            names.push_back(it->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    const auto near = nearest(program, names);
    return {.problem = "no program named " + printable(program) + " in PATH" +
                       (near ? " (did you mean " + printable(*near) + "?)" : "")};
}

std::map<std::string, std::string> own_environment() {
    std::map<std::string, std::string> own;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (const std::size_t equals = text.find('='); equals != std::string_view::npos)
            own.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return own;
}

}  // namespace stoker
