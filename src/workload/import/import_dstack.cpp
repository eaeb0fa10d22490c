// dstack task and dev-environment YAML, as its reference of version 0.19 describes them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "workload/import/import_report.h"

namespace stoker {
namespace {

using import_detail::least_of;
using import_detail::shown;

constexpr int kDstackRestarts = 20;
// One rank is one node, and all of them are reached through this machine.
constexpr const char* kDstackVariables =
    "export DSTACK_NODE_RANK=\"$RANK\" DSTACK_NODES_NUM=\"$WORLD_SIZE\" DSTACK_MASTER_NODE_IP=\"$MASTER_ADDR\" "
    "DSTACK_RUN_NAME=\"$STOKER_RUN\" DSTACK_RUN_ID=\"$STOKER_RUN\" DSTACK_MPI_HOSTFILE=\"$STOKER_HOSTFILE\" "
    "DSTACK_WORKING_DIR=\"$PWD\" DSTACK_GPUS_PER_NODE={gpus} DSTACK_GPUS_NUM=$(( {gpus} * WORLD_SIZE ))\n"
    "DSTACK_NODES_IPS=\"$(_i=0; while [ $_i -lt \"$WORLD_SIZE\" ]; do echo \"$MASTER_ADDR\"; _i=$((_i+1)); done)\"\n"
    "export DSTACK_NODES_IPS\n";

class DstackReader {
public:
    explicit DstackReader(const Node& root) : root_(root) {
        out_.report.tool = "dstack";
        out_.run.foreign = true;
        out_.run.at[""] = root.pos;
    }

    Result<ImportedRun> read() {
        const Node* type = root_.find("type");
        const bool environment = type != nullptr && type->text == "dev-environment";
        for (const Member& member : root_.members) key(member.key, *member.value, member.key_pos);
        std::string script = join(lines_, "\n");
        if (environment) {
            // Nothing to run: the place is held until somebody stops it or its time is up.
            script += (script.empty() ? "" : "\n") + std::string("exec sleep infinity");
            out_.run.run_class =
                out_.run.run_class == RunClassWord::spot ? RunClassWord::spot : RunClassWord::interactive;
            out_.report.take(type->pos, "type: dev-environment", "class: interactive, and kept open");
        }
        if (script.empty()) problems_.push_back({"the task has no commands: there is nothing to start", "", root_.pos});
        if (!problems_.empty()) return Error(ErrorKind::invalid, std::move(problems_));
        const std::string gpus = std::to_string(static_cast<int>(std::ceil(out_.run.gpus.value_or(0))));
        script.insert(0, replace_all(kDstackVariables, "{gpus}", gpus));
        out_.run.command.script = true;
        // dstack joins the commands by &&.
        out_.run.command.interpreter = {out_.run.image.empty() ? "bash" : "sh", "-e", "-c"};
        out_.run.command.words = {{std::move(script), command_pos_}};
        out_.run.at["command"] = out_.run.command.pos = command_pos_;
        return std::move(out_);
    }

private:
    void drop(SourcePos pos, const std::string& what, std::string why) { out_.report.drop(pos, what, std::move(why)); }
    void take(SourcePos pos, const std::string& what, std::string became) {
        out_.report.take(pos, what, std::move(became));
    }
    RequiresForm& needs() {
        if (!out_.run.needs) out_.run.needs.emplace();
        return *out_.run.needs;
    }
    bool number(const Node& node, const std::string& key, std::string text, double low, double high, double& out) {
        Node value;
        value.kind = NodeKind::string;
        value.text = std::move(text);
        value.pos = node.pos;
        FieldInfo info;
        info.key = key, info.type = "count", info.low = low, info.high = high;
        return table_detail::read_number(value, info, out, problems_);
    }
    bool bytes(const Node& node, const std::string& key, const std::string& text, double& out) {
        Node value;
        value.kind = NodeKind::string;
        value.text = text;
        value.pos = node.pos;
        FieldInfo info;
        info.key = key, info.low = 1, info.high = 1e15;
        return table_detail::read_bytes(value, info, out, problems_);
    }

    void key(const std::string& key, const Node& node, SourcePos pos) {
        RunSection& run = out_.run;
        if (key == "type" || node.kind == NodeKind::null) return;
        if (key == "name") {
            out_.name = node.text;
            take(pos, key, "name");
        } else if (key == "commands" || key == "init") {
            command_pos_ = node.pos;
            for (const auto& item : node.items) {
                if (item->is_scalar())
                    lines_.push_back(item->text);
                else
                    problems_.push_back(
                        {fmt::format("{}: expected a command, found {}", key, to_string(item->kind)), "", item->pos});
            }
            if (node.kind == NodeKind::string) lines_.push_back(node.text);
            take(pos, key, "command, of one rank on each node");
        } else if (key == "env") {
            import_detail::read_variables(node, key, out_);
        } else if (key == "image") {
            run.image = node.text;
            take(pos, key, "image");
        } else if (key == "working_dir") {
            run.folder = node.text;
            run.at["folder"] = node.pos;
            take(pos, key, "folder");
        } else if (key == "nodes") {
            double nodes = 0;
            if (!number(node, key, node.text, 1, kMostRanks, nodes)) return;
            run.nodes = run.ranks = static_cast<int>(nodes);
            take(pos, key, "nodes, with one rank each");
        } else if (key == "resources") {
            for (const Member& member : node.members) resource(member.key, *member.value, member.key_pos);
        } else if (key == "spot_policy") {
            const std::string word = lower(node.text);
            run.run_class = word == "spot" ? RunClassWord::spot : run.run_class;
            if (word == "auto")
                drop(pos, "spot_policy: auto", "a run is of one class; class: spot lets guaranteed ones go first");
            else
                take(pos, key, word == "spot" ? "class: spot" : "class: guaranteed");
        } else if (key == "max_duration" || key == "stop_duration") {
            duration(key, node, pos);
        } else if (key == "retry" || key == "retry_policy") {
            retry(node, pos);
        } else if (key == "python" || key == "nvcc") {
            drop(pos, key, "the machine as it is, or an image, says which one there is");
        } else if (key == "ports" || key == "ide" || key == "inactivity_duration" || key == "ssh_key") {
            drop(pos, key, "nothing is forwarded: ports of this machine are open to the run as they are");
        } else if (key == "backends" || key == "regions" || key == "availability_zones" || key == "instance_types" ||
                   key == "reservation" || key == "fleets" || key == "max_price" || key == "creation_policy" ||
                   key == "idle_duration" || key == "instances") {
            drop(pos, key, "Stoker chooses the place by what the run needs");
        } else if (key == "volumes" || key == "repos" || key == "files" || key == "docker") {
            drop(pos, key, "nothing is copied or mounted: the run sees the files of the machine it runs on");
        } else if (key == "tags") {
            for (const Member& member : node.members)
                if (member.value->is_scalar()) run.labels[member.key] = {member.value->text, member.value->pos};
            take(pos, key, "labels");
        } else if (key == "priority") {
            drop(pos, key, "0 to 100 there; priority of the run section weighs hours of waiting");
        } else if (key == "entrypoint" || key == "shell" || key == "user" || key == "privileged" ||
                   key == "single_branch" || key == "registry_auth" || key == "home_dir") {
            drop(pos, key, "it is about the container that dstack starts");
        } else if (key == "utilization_policy" || key == "startup_order" || key == "stop_criteria" ||
                   key == "schedule") {
            drop(pos, key, "there is nothing like it here");
        } else {
            drop(pos, key, "no key that is known");
        }
    }

    // off, -1, 2h, or seconds.
    void duration(const std::string& key, const Node& node, SourcePos pos) {
        const std::string word = lower(node.text);
        if (word == "off" || word == "-1" || word == "false") return take(pos, key, "no limit");
        const bool bare = word.find_first_not_of("0123456789") == std::string::npos;
        const auto seconds = parse_seconds(bare ? word + "s" : word);
        if (!seconds || seconds->v < 1) {
            problems_.push_back(
                {fmt::format("{}: expected a duration such as 2h, found {}", key, shown(node)), "", node.pos});
            return;
        }
        (key == "max_duration" ? out_.run.timeout : out_.run.grace) = *seconds;
        take(pos, fmt::format("{}: {}", key, shown(node)), key == "max_duration" ? "timeout" : "grace");
    }

    void retry(const Node& node, SourcePos pos) {
        bool on_error = node.kind == NodeKind::boolean && node.boolean;
        if (const Node* events = node.find("on_events"))
            on_error = std::any_of(events->items.begin(), events->items.end(),
                                   [](const auto& item) { return item->text == "error"; });
        else if (node.is_mapping())
            on_error = true;
        if (on_error) out_.run.restarts = kDstackRestarts;
        take(pos, "retry",
             on_error ? fmt::format("restarts: {}", kDstackRestarts)
                      : std::string("an evicted run always starts again"));
        if (const Node* limit = node.find("duration"))
            drop(limit->pos, "retry.duration: " + shown(*limit),
                 "attempts are counted, not hours; timeout limits all of them together");
    }

    void resource(const std::string& key, const Node& node, SourcePos pos) {
        RunSection& run = out_.run;
        const std::string path = "resources." + key;
        if (node.kind == NodeKind::null) return;
        double value = 0;
        if (key == "cpu") {
            const Node* count = node.is_mapping() ? node.find("count") : &node;
            if (count == nullptr) return drop(pos, path, "it has no count");
            std::string text = count->text;
            if (const std::size_t colon = text.rfind(':'); colon != std::string::npos)
                text.erase(0, colon + 1);  // x86:4
            Node plain;
            plain.text = text;
            if (number(*count, path, least_of(plain), 0.001, 100'000, value))
                run.cpus = value, take(pos, path, fmt::format("cpus: {:g}", value));
        } else if (key == "memory") {
            if (bytes(node, path, least_of(node), value))
                run.memory = Bytes(value), take(pos, path + ": " + shown(node), "memory");
        } else if (key == "disk") {
            const Node* size = node.is_mapping() ? node.find("size") : &node;
            if (size == nullptr) return drop(pos, path, "it has no size");
            if (bytes(*size, path, least_of(*size), value))
                needs().disk = Bytes(value), take(pos, path, "requires.disk");
        } else if (key == "gpu") {
            gpu(node, path, pos);
        } else if (key == "shm_size") {
            drop(pos, path, "/dev/shm is the machine's");
        } else {
            drop(pos, path, "no key that is known");
        }
    }

    // "H100:8", "24GB", "A100:40GB:2", 2, or {name, count, memory}.
    void gpu(const Node& node, const std::string& path, SourcePos pos) {
        RunSection& run = out_.run;
        run.at["gpus"] = run.at["gpu"] = node.pos;
        double count = 1;
        if (node.is_mapping()) {
            for (const Member& member : node.members) {
                const Node& value = *member.value;
                const Node& first = value.is_sequence() && !value.items.empty() ? *value.items.front() : value;
                if (member.key == "name") {
                    run.gpu = first.text;
                    for (std::size_t i = 1; i < value.items.size(); ++i)
                        drop(value.items[i]->pos, path + ".name: " + shown(*value.items[i]),
                             "the first one of the list is taken");
                } else if (member.key == "count") {
                    if (!number(value, path + ".count", least_of(value), 0, 16, count)) return;
                } else {
                    drop(member.key_pos, path + "." + member.key, "a GPU is asked for by its model");
                }
            }
        } else {
            for (const std::string_view part : split(node.text, ':')) {
                Node plain;
                plain.text = std::string(part);
                const std::string least = least_of(plain);
                const bool memory =
                    upper(part).find("GB") != std::string::npos || upper(part).find("TB") != std::string::npos;
                const std::string vendor = lower(part);
                if (vendor == "nvidia" || vendor == "amd" || vendor == "google" || vendor == "tenstorrent") {
                    if (vendor != "nvidia")
                        drop(pos, path + ": " + shown(node), "a GPU is asked for by its model, not by who makes it");
                } else if (memory) {
                    drop(pos, path + ": " + shown(node), "a GPU is asked for by its model, not by its memory");
                } else if (!least.empty() && least.find_first_not_of("0123456789") == std::string::npos) {
                    if (!number(node, path, least, 0, 16, count)) return;
                } else {
                    const std::size_t comma = part.find(',');
                    run.gpu = std::string(part.substr(0, comma));
                    if (comma != std::string_view::npos)
                        drop(pos, path + ": " + shown(node), "the first one of the list is taken");
                }
            }
        }
        run.gpus = count;
        take(pos, path + ": " + shown(node),
             fmt::format("gpu: {}, gpus: {:g}", run.gpu.empty() ? "any" : run.gpu, count));
        if (count == 0) run.gpu.clear();
    }

    const Node& root_;
    ImportedRun out_;
    Problems problems_;
    std::vector<std::string> lines_;
    SourcePos command_pos_;
};

}  // namespace

Result<ImportedRun> import_dstack(const Document& document) {
    return DstackReader(document.root()).read();
}

}  // namespace stoker
