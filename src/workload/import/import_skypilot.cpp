// SkyPilot task YAML, as its documentation of version 0.10 describes it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "workload/import/import_report.h"

namespace stoker {
namespace {

using import_detail::least_of;
using import_detail::shown;

// What SkyPilot tells a task about itself, from what Stoker tells it. One rank is one node there, and all of them are
// reached through this machine.
constexpr const char* kSkyVariables =
    "export SKYPILOT_NODE_RANK=\"$RANK\" SKYPILOT_NUM_NODES=\"$WORLD_SIZE\" SKYPILOT_TASK_ID=\"$STOKER_RUN\" "
    "SKYPILOT_NUM_GPUS_PER_NODE={gpus}\n"
    "SKYPILOT_NODE_IPS=\"$(_i=0; while [ $_i -lt \"$WORLD_SIZE\" ]; do echo \"$MASTER_ADDR\"; _i=$((_i+1)); done)\"\n"
    "export SKYPILOT_NODE_IPS\n";

class SkypilotReader {
public:
    explicit SkypilotReader(const Node& root) : root_(root) {
        out_.report.tool = "SkyPilot";
        out_.from_current_folder = true;
        out_.run.foreign = true;
        out_.run.at[""] = root.pos;
    }

    Result<ImportedRun> read() {
        for (const Member& member : root_.members) key(member.key, *member.value, member.key_pos);
        RunSection& run = out_.run;
        if (trim(run_).empty() && trim(setup_).empty())
            problems_.push_back({"the task has no run and no setup: there is nothing to start", "", root_.pos});
        if (!problems_.empty()) return Error(ErrorKind::invalid, std::move(problems_));
        const std::string gpus = std::to_string(static_cast<int>(std::ceil(run.gpus.value_or(0))));
        // Always: a program that the script calls may look for them.
        std::string script = replace_all(kSkyVariables, "{gpus}", gpus);
        // A shell of its own, as there: what setup sets is gone afterwards.
        if (!trim(setup_).empty()) script += "(\n" + setup_ + "\n) || exit $?\n";
        run.command.script = true;
        run.command.interpreter = {"bash", "-c"};
        run.command.words = {{script + run_, run_pos_}};
        run.command.pos = run_pos_;
        run.at["command"] = run_pos_;
        if (run.ranks) run.nodes = run.ranks;
        return std::move(out_);
    }

private:
    void drop(SourcePos pos, const std::string& what, std::string why) { out_.report.drop(pos, what, std::move(why)); }
    void take(SourcePos pos, const std::string& what, std::string became) {
        out_.report.take(pos, what, std::move(became));
    }

    // The table of the run section reads amounts, so that a mistake reads as it does in our own file.
    template <class Set>
    void amount(const Node& node, const std::string& key, const std::string& ours, std::string text, Set set) {
        const std::size_t before = problems_.size();
        Node value;
        value.kind = NodeKind::string;
        value.text = std::move(text);
        value.pos = node.pos;
        FieldInfo info;
        info.key = key;
        set(value, info);
        if (problems_.size() == before) take(node.pos, key + ": " + shown(node), ours);
    }

    void key(const std::string& key, const Node& node, SourcePos pos) {
        RunSection& run = out_.run;
        if (node.kind == NodeKind::null) return;
        if (key == "name") {
            out_.name = node.text;
            take(pos, key, "name");
        } else if (key == "run" || key == "setup") {
            if (!node.is_scalar()) {
                problems_.push_back(
                    {fmt::format("{}: expected a script, found {}", key, to_string(node.kind)), "", node.pos});
                return;
            }
            (key == "run" ? run_ : setup_) = node.text;
            if (key == "run" || !run_pos_.known()) run_pos_ = node.pos;
            take(pos, key,
                 key == "run" ? "command, of one rank on each node" : "it runs before the command, in every rank");
        } else if (key == "num_nodes") {
            amount(node, key, "nodes, with one rank each", node.text, [&](const Node& value, FieldInfo& info) {
                double nodes = 0;
                info.type = "whole number", info.low = 1, info.high = kMostRanks;
                if (table_detail::read_number(value, info, nodes, problems_)) run.ranks = static_cast<int>(nodes);
            });
        } else if (key == "workdir") {
            if (!node.is_scalar())
                return drop(pos, key, "a git repository is not fetched; folder is a folder of this machine");
            run.folder = node.text;
            take(pos, key, "folder; it is used where it is, not copied");
        } else if (key == "envs" || key == "secrets") {
            import_detail::read_variables(node, key, out_);
        } else if (key == "resources") {
            if (node.is_mapping()) {
                for (const Member& member : node.members) resource(member.key, *member.value, member.key_pos);
            } else {
                drop(pos, key, "expected a mapping");
            }
        } else if (key == "file_mounts" || key == "volumes") {
            drop(pos, key, "nothing is copied or mounted: the run sees the files of the machine it runs on");
        } else if (key == "service" || key == "pool") {
            drop(pos, key, "a service is not served by run");
        } else {
            drop(pos, key,
                 key == "config" || key == "experimental" || key == "event_callback" ? "it is about SkyPilot itself"
                                                                                     : "no key that is known");
        }
    }

    void resource(const std::string& key, const Node& node, SourcePos pos) {
        RunSection& run = out_.run;
        const std::string path = "resources." + key;
        if (node.kind == NodeKind::null) return;
        if (key == "accelerators") {
            import_detail::read_accelerators(node, path, out_);
        } else if (key == "cpus") {
            amount(node, path, "cpus", least_of(node), [&](const Node& value, FieldInfo& info) {
                double cpus = 0;
                info.type = "count", info.low = 0.001, info.high = 100'000;
                if (table_detail::read_number(value, info, cpus, problems_)) run.cpus = cpus;
            });
        } else if (key == "memory" || key == "disk_size") {
            std::string text = least_of(node);
            // A bare number is GB.
            if (text.find_first_not_of("0123456789.") == std::string::npos) text += "GB";
            amount(node, path, key == "memory" ? "memory" : "requires.disk", text,
                   [&](const Node& value, FieldInfo& info) {
                       double bytes = 0;
                       info.low = 1, info.high = 1e15;
                       if (!table_detail::read_bytes(value, info, bytes, problems_)) return;
                       if (key == "memory")
                           run.memory = Bytes(bytes);
                       else
                           needs().disk = Bytes(bytes);
                   });
        } else if (key == "use_spot") {
            if (node.kind == NodeKind::boolean && node.boolean) run.run_class = RunClassWord::spot;
            take(pos, path, node.boolean ? "class: spot" : "class: guaranteed");
        } else if (key == "image_id") {
            if (!node.is_scalar() || !node.text.starts_with("docker:"))
                return drop(pos, path, "an image of a VM; the machine is there already");
            run.image = node.text.substr(7);
            take(pos, path, "image");
        } else if (key == "job_recovery" || key == "spot_recovery") {
            const Node* restarts = node.find("max_restarts_on_errors");
            if (restarts == nullptr || restarts->kind != NodeKind::number || restarts->number < 0 ||
                restarts->number > 1000)
                return drop(pos, path, "an evicted run always starts again, from its last checkpoint");
            run.restarts = static_cast<int>(restarts->number);
            take(pos, path, fmt::format("restarts: {}", *run.restarts));
        } else if (key == "any_of" || key == "ordered") {
            if (!node.is_sequence() || node.items.empty() || !node.items.front()->is_mapping())
                return drop(pos, path, "expected a list of resources");
            for (const Member& member : node.items.front()->members)
                resource(member.key, *member.value, member.key_pos);
            for (std::size_t i = 1; i < node.items.size(); ++i)
                drop(node.items[i]->pos, path, "the first one of the list is taken");
        } else if (key == "autostop") {
            drop(pos, path, "a run gives its place back when it ends; lease says how long it may last");
        } else if (key == "labels") {
            for (const Member& member : node.members)
                if (member.value->is_scalar()) run.labels[member.key] = {member.value->text, member.value->pos};
            take(pos, path, "labels");
        } else if (key == "cloud" || key == "infra" || key == "region" || key == "zone" || key == "instance_type" ||
                   key == "network_tier" || key == "disk_tier" || key == "local_disk") {
            drop(pos, path, "Stoker chooses the place by what the run needs");
        } else if (key == "ports") {
            drop(pos, path, "ports of this machine are open to the run as they are");
        } else if (key == "priority") {
            drop(pos, path, "class and priority of the run section have another scale");
        } else {
            drop(pos, path, "no key that is known");
        }
    }

    RequiresForm& needs() {
        if (!out_.run.needs) out_.run.needs.emplace();
        return *out_.run.needs;
    }

    const Node& root_;
    ImportedRun out_;
    Problems problems_;
    std::string run_, setup_;
    SourcePos run_pos_;
};

}  // namespace

Result<ImportedRun> import_skypilot(const Document& document) {
    return SkypilotReader(document.root()).read();
}

}  // namespace stoker
