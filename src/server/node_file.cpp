#include "server/node_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "base/text.h"
#include "catalog/azure_answers.h"

namespace stoker {
namespace {

constexpr int kMostNodes = 10'000;
constexpr std::size_t kMostLevels = 8, kMostLevelName = 60, kMostDoctor = 260;

// Where the nodes of an entry hang, from the outermost level to the switch, and their device files.
class Placing {
public:
    explicit Placing(Problems& problems) : problems_(problems) {}

    // "row-1/rack-3"; a text is one level.
    std::string topology(const Node& entry) {
        const Node* node = entry.find("topology");
        if (node == nullptr) return {};
        std::vector<const Node*> levels;
        if (node->is_sequence())
            for (const auto& item : node->items) levels.push_back(item.get());
        else
            levels.push_back(node);
        std::string path;
        for (const Node* level : levels) {
            const std::string_view name = trim(level->text);
            const bool sound = (level->kind == NodeKind::string || level->kind == NodeKind::number) && !name.empty() &&
                               name.size() <= kMostLevelName && name.find('/') == std::string_view::npos &&
                               printable(name, kMostLevelName) == name;
            if (!sound)
                return wrong(*level,
                             fmt::format("topology: expected the name of a level, up to {} characters without "
                                         "a slash",
                                         kMostLevelName),
                             "write for example topology: [row-1, rack-3, leaf-7], the switch of the node last");
            path += (path.empty() ? "" : "/") + std::string(name);
        }
        if (levels.empty() || levels.size() > kMostLevels)
            return wrong(*node, fmt::format("topology: {} levels, expected 1 to {}", levels.size(), kMostLevels),
                         "write for example topology: [row-1, rack-3, leaf-7], the switch of the node last");
        return path;
    }

    // A device file for each GPU, in the order of their numbers.
    std::vector<std::string> devices(const Node& entry, int gpus, int count) {
        const Node* node = entry.find("devices");
        std::vector<std::string> files;
        if (node == nullptr) return files;
        constexpr const char* kExample = "write for example devices: [/dev/nvidia0, /dev/nvidia1]";
        if (!node->is_sequence() || static_cast<int>(node->items.size()) != gpus) {
            wrong(*node,
                  fmt::format("devices: expected a list of {} files, one for each of the node's GPUs, found {}", gpus,
                              node->is_sequence() ? std::to_string(node->items.size()) : to_string(node->kind)),
                  kExample);
            return files;
        }
        if (count > 1) {
            wrong(*node, fmt::format("devices: {} nodes cannot have the same devices", count),
                  "give each node an entry of its own");
            return files;
        }
        for (const auto& item : node->items) {
            const std::string path = item->text;
            struct stat status {};
            if (item->kind != NodeKind::string || !path.starts_with("/dev/") || path.find("/../") != std::string::npos)
                wrong(*item, fmt::format("devices: {} is no path below /dev", printable(path, 100)), kExample);
            else if (::stat(path.c_str(), &status) != 0)
                wrong(*item, fmt::format("devices: {}: {}", printable(path, 100), std::strerror(errno)),
                      "name files of this machine, where the server runs");
            else if (!S_ISCHR(status.st_mode))
                wrong(*item, fmt::format("devices: {} is no character device", printable(path, 100)), kExample);
            else if (const auto [at, fresh] = seen_.emplace(status.st_rdev, path); !fresh)
                wrong(*item,
                      fmt::format("devices: {} is the same device as {}, which is named above", printable(path, 100),
                                  printable(at->second, 100)),
                      "each GPU belongs to one node");
            files.push_back(path);
        }
        return files;
    }

    // "HOST:PORT" of the doctor on the node.
    std::string doctor(const Node& entry, int count) {
        const Node* node = entry.find("doctor");
        if (node == nullptr) return {};
        constexpr const char* kExample = "write for example doctor: 10.0.0.7:7700, where `stoker doctor serve` listens";
        const std::string_view text = trim(node->text);
        const std::size_t colon = text.rfind(':');
        const std::string_view port = colon == std::string_view::npos ? "" : text.substr(colon + 1);
        unsigned number = 0;
        const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
        const bool sound = node->kind == NodeKind::string && colon > 0 && colon != std::string_view::npos &&
                           text.size() <= kMostDoctor && failed == std::errc() && end == port.data() + port.size() &&
                           number > 0 && number < 65536 && text.find_first_of(" \t/@") == std::string_view::npos &&
                           printable(text) == text;
        if (!sound) return wrong(*node, "doctor: expected HOST:PORT", kExample);
        if (count > 1)
            return wrong(*node, fmt::format("doctor: {} nodes cannot have the same one", count),
                         "give each node an entry of its own");
        return std::string(text);
    }

private:
    std::string wrong(const Node& node, std::string message, std::string remedy) {
        problems_.push_back({std::move(message), std::move(remedy), node.pos});
        return {};
    }

    Problems& problems_;
    std::map<dev_t, std::string> seen_;
};

void add_nodes(const NodeType& type, const Catalog& catalog, const std::string& topology,
               const std::vector<std::string>& files, const std::string& doctor, std::vector<NodeInfo>& nodes) {
    const int count = std::max(1, type.available);
    for (int i = 1; i <= count && nodes.size() < kMostNodes; ++i) {
        NodeInfo node{.name = count == 1 ? type.name : fmt::format("{}-{}", type.name, i),
                      .cpu_milli = std::int64_t{1000} * type.vcpus,
                      .memory_bytes = static_cast<std::int64_t>(type.memory.v),
                      .topology = topology,
                      .doctor = doctor};
        if (type.ethernet_gbps > 0) node.link_bytes_per_s = std::llround(type.ethernet_gbps * 1e9 / 8);
        for (int gpu = 0; gpu < type.whole_gpus(); ++gpu)
            node.devices.push_back({.id = std::to_string(gpu),
                                    .model = catalog.accelerators()[static_cast<std::size_t>(type.accelerator)].name,
                                    .memory_bytes = static_cast<std::int64_t>(type.accelerator_memory.v),
                                    .file = files.empty() ? "" : files[static_cast<std::size_t>(gpu)]});
        nodes.push_back(std::move(node));
    }
}

}  // namespace

std::vector<NodeInfo> read_nodes(const Node& list, Catalog& catalog, Problems& problems) {
    std::vector<NodeInfo> nodes;
    Placing placing(problems);
    std::map<std::string, SourcePos> named;
    for (const auto& item : list.items) {
        const auto index = add_on_prem_node(*item, catalog);
        if (!index) {
            problems.insert(problems.end(), index.error().problems().begin(), index.error().problems().end());
            continue;
        }
        // Adding one may move the others.
        const NodeType& type = catalog.node_types()[static_cast<std::size_t>(*index)];
        if (host_is_assumed(type)) {
            // A plan may assume them; what is offered to runs may not.
            for (const char* key : {"vcpus", "memory"})
                if (item->find(key) == nullptr)
                    problems.push_back({fmt::format("\"{}\" is missing", key),
                                        "runs are given processors and memory of the node: say what it has",
                                        item->pos});
            continue;
        }
        const std::string topology = placing.topology(*item);
        const auto files = placing.devices(*item, type.whole_gpus(), std::max(1, type.available));
        const std::string doctor = placing.doctor(*item, std::max(1, type.available));
        std::vector<NodeInfo> fresh;
        add_nodes(type, catalog, topology, files, doctor, fresh);
        if (nodes.size() + static_cast<std::size_t>(std::max(1, type.available)) > kMostNodes) {
            problems.push_back({fmt::format("more than {} nodes", kMostNodes), "", item->pos});
            break;
        }
        for (NodeInfo& node : fresh) {
            if (const auto [at, is_new] = named.emplace(node.name, item->pos); !is_new) {
                problems.push_back({fmt::format("the node {} is named twice, first in line {}",
                                                printable(node.name, 100), at->second.line),
                                    "give each node a name of its own", item->pos});
                break;
            }
            nodes.push_back(std::move(node));
        }
    }
    return nodes;
}

std::shared_ptr<const RecordInfo> node_entry_record() {
    const auto row = [](std::string key, std::string type, std::string description, std::string example,
                        bool required = false) {
        FieldInfo info;
        info.key = std::move(key);
        info.type = std::move(type);
        info.description = std::move(description);
        info.example = std::move(example);
        info.required = required;
        return info;
    };
    auto record = std::make_shared<RecordInfo>();
    record->name = "node";
    record->description = "A machine that the server may give work to, as in the file of stoker up --nodes.";
    record->fields = {
        row("name", "text", "What it is called; with count, NAME-1, NAME-2 and so on.", "rack-1", true),
        row("vcpus", "whole number",
            "Logical processors. A plan of a machine with GPUs assumes 8 a GPU; a server has to know.", "96", true),
        row("memory", "bytes or number of GiB",
            "Host memory. A plan of a machine with GPUs assumes twice theirs; a server has to know.", "1900GiB", true),
        row("cores", "whole number", "Physical cores; half of vcpus when nothing is said.", "48"),
        row("gpu", "text or a mapping", "Model of its GPUs, by a name of the catalogue, or one of your own.",
            "H100-SXM"),
        row("gpus", "number", "How many.", "8"),
        row("nvlink", "yes/no", "Whether they are linked; as the model has it when nothing is said.", "true"),
        row("rdma", "mapping", "Its network between nodes.", "{gbps_per_gpu: 400, kind: infiniband}"),
        row("ethernet_gbps", "number", "Of the ordinary network.", "100"),
        row("count", "whole number", "So many nodes of this sort.", "4"),
        row("topology", "text or list of text", "Where it hangs, from the outermost level to its switch.",
            "[row-1, leaf-7]"),
        row("devices", "text or list of text", "Device files of its GPUs, in order.", "[/dev/nvidia0, /dev/nvidia1]"),
        row("doctor", "text", "Where stoker doctor serve listens on it.", "10.0.0.5:7411"),
        row("price_per_hour", "money", "What an hour of it costs, for plans.", "$18.40"),
        row("capex", "mapping", "Or its price and life, for plans.", "{price: $250k, years: 4}")};
    return record;
}

Result<std::vector<NodeInfo>> read_node_file(const Document& document, Catalog& catalog) {
    const Node* list = document.root().is_mapping() ? document.root().find("nodes") : &document.root();
    if (list == nullptr || !list->is_sequence() || list->items.empty())
        return Error(ErrorKind::invalid, "expected `nodes:` with a list", {document.root().pos.file, 1, 1},
                     "examples/on-prem-nodes.yaml shows one");
    Problems problems;
    std::vector<NodeInfo> nodes = read_nodes(*list, catalog, problems);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return nodes;
}

Result<std::vector<NodeInfo>> split_node(const NodeInfo& machine, int parts) {
    if (parts < 1 || parts > 1000) return Error(ErrorKind::invalid, fmt::format("{} nodes, expected 1 to 1000", parts));
    std::vector<NodeInfo> nodes;
    const std::size_t each = machine.devices.size() / static_cast<std::size_t>(parts);
    for (int i = 0; i < parts; ++i) {
        NodeInfo node{.name = fmt::format("{}-{}", machine.name, i + 1),
                      .cpu_milli = machine.cpu_milli / parts,
                      .memory_bytes = machine.memory_bytes / parts,
                      .boot_id = machine.boot_id};
        const auto first = machine.devices.begin() + static_cast<std::ptrdiff_t>(each * static_cast<std::size_t>(i));
        node.devices.assign(first, first + static_cast<std::ptrdiff_t>(each));
        nodes.push_back(std::move(node));
    }
    return nodes;
}

}  // namespace stoker
