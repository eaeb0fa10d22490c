#include "workload/run_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "workload/foreign_words.h"
#include "workload/workload.h"

namespace stoker {
namespace {

constexpr double kDay = 86'400, kTenYears = 3653 * kDay;
constexpr double kMostMemory = 1125899906842624.0;  // 1 PiB

FieldInfo info_of(std::string key, std::string type, std::string description, std::string example) {
    FieldInfo info;
    info.key = std::move(key);
    info.type = std::move(type);
    info.description = std::move(description);
    info.example = std::move(example);
    return info;
}

void wrong(Problems& problems, SourcePos pos, std::string message, std::string remedy = {}) {
    problems.push_back({std::move(message), std::move(remedy), pos});
}

// Text of a scalar, as a person means it: numbers and true count as the letters they were written with.
bool read_scalar(const Node& node, const std::string& what, std::string& out, Problems& problems) {
    if (node.is_scalar() && node.kind != NodeKind::null) {
        out = node.kind == NodeKind::boolean && node.text.empty() ? (node.boolean ? "true" : "false") : node.text;
        return true;
    }
    wrong(problems, node.pos, fmt::format("{}: expected a text or a number, found {}", what, to_string(node.kind)),
          node.kind == NodeKind::null ? "write \"\" for an empty one" : "");
    return false;
}

void read_command(const Node& node, CommandForm& command, Problems& problems) {
    command.pos = node.pos;
    if (node.kind == NodeKind::string) {
        if (trim(node.text).empty()) return wrong(problems, node.pos, "command: it is empty");
        command.script = true;
        command.words = {{node.text, node.pos}};
        return;
    }
    if (!node.is_sequence() || node.items.empty()) {
        return wrong(problems, node.pos,
                     fmt::format("command: expected a text for the shell, or a list of the program and its arguments, "
                                 "found {}",
                                 node.is_sequence() ? "an empty list" : to_string(node.kind)),
                     "write for example command: python3 train.py --epochs 3");
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        std::string word;
        if (read_scalar(*node.items[i], fmt::format("command[{}]", i), word, problems))
            command.words.push_back({std::move(word), node.items[i]->pos});
    }
}

void read_texts(const Node& node, const std::string& key, std::map<std::string, PlacedText>& out, Problems& problems) {
    const std::string example = key == "labels" ? "labels: {team: vision}" : "environment: {DATA: /data, SEED: 7}";
    if (!node.is_mapping()) {
        return wrong(problems, node.pos,
                     fmt::format("{}: expected a mapping of names to texts, found {}", key, to_string(node.kind)),
                     "write for example " + example);
    }
    for (const Member& member : node.members) {
        std::string text;
        if (!read_scalar(*member.value, key + "." + printable(member.key, 60), text, problems)) continue;
        const bool unsound = member.key.empty() || std::any_of(member.key.begin(), member.key.end(), [](char c) {
                                 const auto byte = static_cast<unsigned char>(c);
                                 return byte <= ' ' || byte == 0x7f || c == '=';
                             });
        if (key == "environment" && unsound)
            wrong(problems, member.key_pos,
                  fmt::format("environment: '{}' is no name of a variable", printable(member.key, 60)),
                  "a name has no blank, no = and no control character");
        else
            out[member.key] = {std::move(text), member.value->pos};
    }
}

void read_codes(const Node& node, std::optional<std::vector<int>>& out, Problems& problems) {
    FieldInfo info = info_of("transient_exit_codes", "whole number", "", "75");
    info.low = 1, info.high = 255;
    std::vector<int> codes;
    for (const Node* item : table_detail::items_of(node, info, true, problems)) {
        double code = 0;
        if (table_detail::read_number(*item, info, code, problems)) codes.push_back(static_cast<int>(code));
    }
    out = std::move(codes);
}

void read_every(const Node& node, RunCheckpointForm& checkpoint, Problems& problems) {
    FieldInfo info = info_of("every", "duration", "", "30m");
    info.low = 1, info.high = kTenYears;
    if (node.kind == NodeKind::string && lower(trim(node.text)) == "auto") {
        checkpoint.automatic = true;
        return;
    }
    double seconds = 0;
    if (table_detail::read_seconds(node, info, seconds, problems)) checkpoint.every = Seconds(seconds);
}

RecordTable<RunUploadForm> run_upload_table() {
    RecordTable<RunUploadForm> table(
        "run upload",
        "Complete checkpoints go into an object store, too, while the run goes on; from there they come back when the "
        "machine is lost. Keys are read from the environment of the server, never from this file.");
    table
        .text("to", &RunUploadForm::to,
              "s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or file:///FOLDER; ?endpoint=URL and ?region=NAME for "
              "stores of one's own. The name of the server and of the run are put behind it.",
              "s3://models/checkpoints")
        .required();
    table.other_names({"url", "store", "bucket", "destination"});
    table.count("keep", &RunUploadForm::keep, "The newest complete ones that are kept in the store.", "5", 1, 1e6);
    table.other_names({"retain"});
    table.count("every", &RunUploadForm::every, "Each n-th checkpoint; each one when nothing is said.", "4", 1, 1e6);
    table.flag("at_end", &RunUploadForm::at_end, "The newest one, when the run has ended, whatever every says.");
    table.text("tier", &RunUploadForm::tier,
               "Access tier (Azure) or storage class (S3) of the files; the store's own when nothing is said.", "Cool");
    table.other_names({"storage_class", "access_tier"});
    return table;
}

RecordTable<RunCheckpointForm> run_checkpoint_table() {
    RecordTable<RunCheckpointForm> table(
        "run checkpoint", "Where the program writes checkpoints, which it finds as STOKER_CHECKPOINT_DIR.");
    table.text("folder", &RunCheckpointForm::folder,
               "Below the run's own folder when relative; checkpoints when nothing is said.", "checkpoints");
    table.other_names({"dir", "directory", "path", "output_dir"});
    table.custom(
        "every",
        info_of("every", "duration or auto",
                "How often the program is to write one, told as STOKER_CHECKPOINT_INTERVAL; auto: the interval "
                "that loses least, from the time to write one and the time between failures.",
                "10m"),
        read_every);
    table.other_names({"interval", "frequency", "period"});
    table.count("keep", &RunCheckpointForm::keep, "The newest complete ones that are kept.", "3", 1, 1e6);
    table.other_names({"retain", "save_total_limit", "max_to_keep"});
    table.record("upload", &RunCheckpointForm::upload, run_upload_table(),
                 "An object store that complete checkpoints are put into as well.");
    table.text("restore_from", &RunCheckpointForm::restore_from,
               "Where another run put its checkpoints (stoker describe shows it); the newest one is fetched before the "
               "start when the folder has none.",
               "s3://models/checkpoints/k3x7q/r-7");
    table.other_names({"resume_from", "load_from"});
    return table;
}

RecordTable<LeaseForm> lease_table() {
    RecordTable<LeaseForm> table("lease", "How long the work may hold its place, counted from its first start.");
    table.shorthand("a duration such as 4h, which is stop_after",
                    [](const Node& node, LeaseForm& lease, Problems& problems) {
                        if (node.kind != NodeKind::string && node.kind != NodeKind::number) return false;
                        FieldInfo info = info_of("lease", "duration", "", "4h");
                        info.low = 1, info.high = kTenYears;
                        double seconds = 0;
                        if (table_detail::read_seconds(node, info, seconds, problems))
                            lease.stop_after = Seconds(seconds);
                        lease.at["stop_after"] = node.pos;
                        return true;
                    });
    table.seconds("stop_after", &LeaseForm::stop_after,
                  "Then it writes a checkpoint and stops; a person may move this.", "4h", 1, kTenYears);
    table.other_names({"duration", "max_duration", "idle", "autostop"});
    table.seconds("hard_max", &LeaseForm::hard_max, "Then it is stopped whatever it does; nobody may move this.", "8h",
                  1, kTenYears);
    table.other_names({"max", "limit", "maximum"});
    return table;
}

RecordTable<ObserveForm> observe_table() {
    RecordTable<ObserveForm> table(
        "observe", "Where the steps of a program are seen that writes no STOKER_METRICS_FILE; each rank is looked at.");
    table.text("step_pattern", &ObserveForm::step_pattern,
               "A line of its output: {step}, {loss}, {step_s}, ... are numbers, {} is any word.",
               "\"step {step}/{} loss {loss}\"");
    table.other_names({"pattern", "regex", "log_pattern", "stdout_pattern"});
    table.text("heartbeat", &ObserveForm::heartbeat,
               "A file with the number of the last step, written anew after each; of rank 3 FILE.rank-3. Relative to "
               "the folder.",
               "heartbeat");
    table.other_names({"heartbeat_file", "step_file", "progress_file"});
    return table;
}

RecordTable<RequiresForm> requires_table() {
    RecordTable<RequiresForm> table("requires", "What must be there; looked at before anything is held.");
    table.list_of_text("commands", &RequiresForm::commands, "Programs found in PATH.", "[ffmpeg]");
    table.other_names({"programs", "binaries", "tools"});
    table.text("python", &RequiresForm::python, "The Python that the modules are looked for in.", "python3");
    table.list_of_text("python_modules", &RequiresForm::python_modules, "Modules that it can import.",
                       "[torch, numpy]");
    table.other_names({"modules", "packages", "pip"});
    table.list_of_text("paths", &RequiresForm::paths,
                       "Files and folders that can be read; relative to the working folder.", "[train.py, data/text]");
    table.other_names({"files", "folders", "inputs", "data"});
    table.bytes("disk", &RequiresForm::disk, "Free space where the run writes.", "20GiB", kMiB, kMostMemory);
    table.other_names({"storage", "disk_size", "free_disk"});
    table.text("driver", &RequiresForm::driver, "Lowest version of the NVIDIA driver.", "535.104");
    table.other_names({"nvidia_driver", "driver_version"});
    return table;
}

// The fields of a run and of a step, which are the same.
template <class T>
void add_run_fields(RecordTable<T>& table) {
    table.custom("command",
                 info_of("command", "text or list of text",
                         "What each rank runs. A text is run by sh -e -c, so that it ends at the first line that "
                         "fails; a list is a program and its arguments.",
                         "python3 train.py"),
                 [](const Node& node, T& run, Problems& problems) { read_command(node, run.command, problems); });
    table.other_names({"commands", "script", "entrypoint", "args", "cmd", "argv", "program"});
    table.custom("environment",
                 info_of("environment", "mapping of text", "Variables of every rank.", "{DATA: /data, SEED: 7}"),
                 [](const Node& node, T& run, Problems& problems) {
                     read_texts(node, "environment", run.environment, problems);
                 });
    table.other_names({"env", "envs", "variables", "env_vars", "export"});
    table.text("folder", &RunFields::folder,
               "Working folder, relative to this file; the folder of this file when nothing is said.", "code");
    table.other_names({"workdir", "working_dir", "workingDir", "working_directory", "cwd", "chdir"});
    table.text("image", &RunFields::image,
               "Container image of a registry, or a folder or file beside this file; the machine as it is when nothing "
               "is said.",
               "docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime");
    table.other_names({"container", "docker", "image_id", "container_image"});
    table.count("ranks", &RunFields::ranks, "Processes, which all start or none; 1 when nothing is said.", "2", 1,
                kMostRanks);
    table.other_names({"ntasks", "tasks", "processes", "world_size", "nproc", "workers", "replicas"});
    table.count("ranks_per_node", &RunFields::ranks_per_node, "Processes of one node, in place of ranks.", "8", 1,
                kMostRanksOfNode);
    table.other_names({"ntasks_per_node", "nproc_per_node", "tasks_per_node", "processes_per_node"});
    table.count("nodes", &RunFields::nodes,
                "Exactly so many nodes, the ranks spread evenly; as few as possible when nothing is said.", "2", 1,
                kMostRanks);
    table.other_names({"num_nodes", "nnodes", "node_count"});
    table.number("cpus", &RunFields::cpus, "CPU cores of one rank, 0.5 for a half; 1 when nothing is said.", "4", 0,
                 100'000);
    table.other_names({"cpu", "cores", "vcpus", "cpus_per_task", "threads", "cpus_per_rank"});
    table.bytes("memory", &RunFields::memory, "Memory of one rank; no limit when nothing is said.", "16GiB", kMiB,
                kMostMemory);
    table.other_names({"mem", "ram", "memory_per_rank"});
    table.number("gpus", &RunFields::gpus, "GPUs of one rank; 0.5 is a half of one.", "1", 0, 16);
    table.other_names({"num_gpus", "gpus_per_task", "gpu_count", "gres", "gpus_per_rank"});
    table.choice(
        "topology", &RunFields::topology, {{"prefer", TopologyWord::prefer}, {"require", TopologyWord::require}},
        "Ranks on several nodes: on as few switches as there is room for, or all on one switch; the nodes' file "
        "says where each hangs. prefer when nothing is said.");
    table.other_names({"placement", "switches", "network_tier"});
    table.text("gpu", &RunFields::gpu, "The GPU's model; any when nothing is said.", "H100");
    table.other_names({"gpu_model", "gpu_type", "gpu_name", "accelerator", "accelerators"});
    table.count("restarts", &RunFields::restarts,
                "How often it starts again after an error of its own or when memory ran out; 0 when nothing is said.",
                "3", 0, 1000);
    table.other_names({"max_restarts", "retry", "max_retries", "backoff_limit", "backoffLimit"});
    table.count("attempts", &RunFields::attempts, "Starts in all, whatever the cause, evictions included.", "20", 1,
                1000);
    table.other_names({"max_attempts", "tries"});
    table.seconds("timeout", &RunFields::timeout, "Longest time of all attempts together; no end when nothing is said.",
                  "12h", 1, kTenYears);
    table.other_names({"time", "walltime", "time_limit", "max_duration", "active_deadline_seconds"});
    table.seconds("grace", &RunFields::grace, "Between the signals TERM and KILL.", "30s", 0, kDay);
    table.other_names({"grace_period", "termination_grace_period"});
    table.custom(
        "transient_exit_codes",
        info_of("transient_exit_codes", "list of whole number",
                "Exit codes that mean \"try again\" and count as no error; 75 when nothing is said.", "[75]"),
        [](const Node& node, T& run, Problems& problems) { read_codes(node, run.transient_exit_codes, problems); });
    table.record("checkpoint", &RunFields::checkpoint, run_checkpoint_table(),
                 "How the program saves its progress, so that a restart goes on from there.");
    table.other_names({"checkpoints", "checkpointing"});
    table.record("requires", &RunFields::needs, requires_table(), "What must be there before it starts.");
    table.other_names({"prerequisites", "needs", "requirements"});
    table.record("observe", &RunFields::observe, observe_table(), "Where its steps are seen.");
    table.other_names({"observation", "monitor", "progress"});
}

RecordTable<RunStepForm> step_table() {
    RecordTable<RunStepForm> table("step", "One step of a graph. What it does not say is taken from run.");
    table.text("name", &RunStepForm::name, "Its name, which no other step has.", "train").required();
    table.other_names({"id", "step", "task"});
    const FieldInfo after = info_of("after", "list of text", "Steps that must have ended well before.", "[prepare]");
    table.custom("after", after, [after](const Node& node, RunStepForm& step, Problems& problems) {
        for (const Node* item : table_detail::items_of(node, after, true, problems)) {
            std::string name;
            if (table_detail::read_text(*item, after, name, problems)) step.after.push_back({name, item->pos});
        }
    });
    table.other_names({"depends_on", "dependencies", "dependsOn", "needs", "depends"});
    table.choice(
        "on_failure", &RunStepForm::on_failure,
        {{"fail", StepFailure::fail}, {"continue", StepFailure::continue_others}, {"ignore", StepFailure::ignore}},
        "fail: nothing more starts; continue: what does not depend on it goes on; ignore: it counts as done.");
    table.count("retries", &RunStepForm::retries, "How often it starts again after an error of its own.", "2", 0, 1000);
    add_run_fields(table);
    return table;
}

void read_sweep(const Node& node, std::vector<SweepParameter>& sweep, Problems& problems) {
    const std::string example = "write for example sweep: {lr: [1e-4, 3e-4], batch: [8, 16]}";
    if (!node.is_mapping() || node.members.empty()) {
        return wrong(problems, node.pos,
                     fmt::format("sweep: expected parameters with their values, found {}", to_string(node.kind)),
                     example);
    }
    for (const Member& member : node.members) {
        const std::string key = printable(member.key, 60);
        SweepParameter parameter{.name = member.key, .values = {}, .pos = member.key_pos};
        const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
        const auto word = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
        if (key.empty() || !letter(key.front()) || key.size() > 60 || !std::all_of(key.begin(), key.end(), word)) {
            wrong(problems, member.key_pos,
                  fmt::format("sweep: '{}' is no name of a parameter: letters, digits and _ only", key));
            continue;
        }
        if (!member.value->is_sequence() || member.value->items.empty()) {
            wrong(problems, member.value->pos, fmt::format("sweep.{}: expected a list of values", key), example);
            continue;
        }
        if (member.value->items.size() > kMaxPoints) {
            wrong(problems, member.value->pos,
                  fmt::format("sweep.{}: {} values, at most {}", key, member.value->items.size(), kMaxPoints));
            continue;
        }
        for (const auto& item : member.value->items) {
            std::string value;
            if (!read_scalar(*item, "sweep." + key, value, problems)) continue;
            if (value.size() > 1000)
                wrong(problems, item->pos,
                      fmt::format("sweep.{}: a value of {} bytes, at most 1,000", key, value.size()));
            else if (std::find(parameter.values.begin(), parameter.values.end(), value) != parameter.values.end())
                wrong(problems, item->pos, fmt::format("sweep.{}: {} stands there twice", key, printable(value, 40)));
            else
                parameter.values.push_back(std::move(value));
        }
        sweep.push_back(std::move(parameter));
    }
}

void read_array(const Node& node, RunSection& run, Problems& problems) {
    std::vector<int> indices;
    const auto add = [&](const Node& item) {
        std::string text;
        if (!read_scalar(item, "array", text, problems)) return;
        const bool one = node.is_sequence() && item.kind == NodeKind::number;  // [3, 7]: these two
        const auto parsed = parse_array(one ? text + "-" + text : text);
        if (!parsed)
            wrong(problems, item.pos, "array: " + parsed.error().message(), parsed.error().problems().front().remedy);
        else {
            indices.insert(indices.end(), parsed->indices.begin(), parsed->indices.end());
            if (parsed->parallel && !run.parallel) run.parallel = parsed->parallel;
        }
    };
    if (node.is_sequence()) {
        for (const auto& item : node.items) {
            if (indices.size() <= kMaxPoints) add(*item);
        }
    } else {
        add(node);
    }
    std::sort(indices.begin(), indices.end());
    if (const auto twice = std::adjacent_find(indices.begin(), indices.end()); twice != indices.end())
        wrong(problems, node.pos, fmt::format("array: index {} stands there twice", *twice));
    run.array = std::move(indices);
}

RecordTable<RunSection> make_run_section_table() {
    RecordTable<RunSection> table("run", "How the work is started: stoker run and stoker submit read this.");
    add_run_fields(table);
    table.record("lease", &RunSection::lease, lease_table(), "How long it may hold its place.");
    table.other_names({"autostop", "idle_duration"});
    table.seconds("queue_timeout", &RunSection::queue_timeout,
                  "Given up when it has not started by then; it waits for ever when nothing is said.", "2h", 1,
                  kTenYears);
    table.other_names({"max_wait", "start_timeout", "pending_timeout"});
    table.text("engine", &RunSection::engine,
               "Which of the server's engines it goes to; any, as when nothing is said, is the one where it starts "
               "first.",
               "slurm-b");
    table.other_names({"cluster", "cloud", "infra", "executor"});
    table.choice("class", &RunSection::run_class,
                 {{"guaranteed", RunClassWord::guaranteed},
                  {"interactive", RunClassWord::interactive},
                  {"spot", RunClassWord::spot}},
                 "Who goes first, in this order; spot is ended when a guaranteed run needs the place.");
    table.other_names({"priority_class", "qos", "run_class", "spot_policy", "use_spot"});
    table.number("priority", &RunSection::priority, "Within a class: each step weighs as much as an hour of waiting.",
                 "10", -100, 100);
    table.other_names({"nice", "weight"});
    table.custom(
        "labels",
        info_of("labels", "mapping of text", "For people and lists; nothing follows from them.", "{team: vision}"),
        [](const Node& node, RunSection& run, Problems& problems) {
            read_texts(node, "labels", run.labels, problems);
        });
    table.other_names({"tags", "annotations", "metadata"});
    table.custom("sweep",
                 info_of("sweep", "mapping of lists",
                         "One run for each combination of these values: ${lr} in command and environment, and the "
                         "variable STOKER_PARAM_LR.",
                         "{lr: [1e-4, 3e-4], batch: [8, 16]}"),
                 [](const Node& node, RunSection& run, Problems& problems) { read_sweep(node, run.sweep, problems); });
    table.other_names({"matrix", "grid", "parameters", "search_space", "with_param"});
    table.custom(
        "array",
        info_of("array", "count or range",
                "So many runs alike, or one for each index: STOKER_ARRAY_INDEX and SLURM_ARRAY_TASK_ID tell.", "0-9"),
        [](const Node& node, RunSection& run, Problems& problems) { read_array(node, run, problems); });
    table.other_names({"job_array", "indices", "array_size"});
    table.count("parallel", &RunSection::parallel, "At most so many runs of the sweep, the array or the steps at once.",
                "4", 1, 10'000);
    table.other_names({"max_parallel", "max_concurrent", "parallelism", "concurrency"});
    table.list_of("steps", &RunSection::steps, step_table(), "A graph: steps, each after what it names.");
    table.other_names({"tasks", "stages", "dag", "pipeline", "graph", "jobs"});
    return table;
}

struct RunFileForm {
    std::string name;
    RunSection run;
};

RecordTable<RunFileForm> make_run_file_table() {
    RecordTable<RunFileForm> table("run file", "A file that only runs something and plans nothing.");
    FieldInfo version = info_of("version", "one of", "Version of this format; left out, it is 1.", "1");
    version.choices = {"1"};
    table.custom("version", version, [](const Node& node, RunFileForm&, Problems& problems) {
        if (node.is_scalar() && node.text == "1") return;
        wrong(problems, node.pos,
              fmt::format("version: this Stoker reads version 1, not {}",
                          node.is_scalar() ? printable(node.text, 40) : std::string(to_string(node.kind))),
              "write version: 1, or use the Stoker that wrote the file");
    });
    table.text("name", &RunFileForm::name, "A name for people.", "nightly-embeddings");
    table.record("run", &RunFileForm::run, run_section_table(), "How the work is started.");
    return table;
}

Error sorted_error(Problems problems) {
    std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
        return std::pair(a.pos.line, a.pos.column) < std::pair(b.pos.line, b.pos.column);
    });
    return Error(ErrorKind::invalid, std::move(problems));
}

}  // namespace

SourcePos RunFields::place(std::string_view key) const {
    if (const auto found = at.find(std::string(key)); found != at.end()) return found->second;
    const auto record = at.find("");
    return record != at.end() ? record->second : SourcePos{};
}

const RecordTable<RunSection>& run_section_table() {
    static const RecordTable<RunSection> table = make_run_section_table();
    return table;
}

bool is_run_file(const Node& root) {
    if (!root.is_mapping() || root.find("run") == nullptr || root.find("kind") != nullptr) return false;
    const std::vector<std::string> planned = workload_record().keys();
    return std::none_of(root.members.begin(), root.members.end(), [&](const Member& member) {
        return member.key != "version" && member.key != "name" && member.key != "run" &&
               std::find(planned.begin(), planned.end(), member.key) != planned.end();
    });
}

Result<RunFile> read_run_file_form(const Document& document) {
    static const RecordTable<RunFileForm> table = make_run_file_table();
    const Node& root = document.root();
    Problems problems;
    RunFileForm form = table.read(root, problems);
    if (root.is_mapping()) check_run_section(form.run, problems);
    answer_foreign_words(root, problems);
    if (!problems.empty()) return sorted_error(std::move(problems));
    return RunFile{std::move(form.name), std::move(form.run)};
}

}  // namespace stoker
