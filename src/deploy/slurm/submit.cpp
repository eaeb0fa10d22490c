#include "deploy/slurm/submit.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/paths.h"
#include "base/text.h"
#include "base/tsv.h"
#include "catalog/gpu_names.h"
#include "deploy/image_name.h"
#include "deploy/local/launcher.h"
#include "deploy/slurm/queue.h"
#include "deploy/slurm_request.h"

namespace stoker::slurm {
namespace {

// Folders that the core tells ranks of (run/core): their work, checkpoints and what is left for people.
constexpr const char* kFolderVariables[] = {"STOKER_RUN_DIR", "STOKER_CHECKPOINT_DIR", "STOKER_ARTIFACT_DIR",
                                            "STOKER_GRAPH_DIR"};

bool can_be_written(std::string_view text) {
    return find_invalid_utf8(text) == std::string_view::npos && text.find('\0') == std::string_view::npos;
}

// How long the run may take; what comes on top is the grace that its ranks have to end in. 0: no limit.
std::int64_t limit_of(const GangSpec& gang) {
    const auto grace = gang.ranks[0].environment.find("STOKER_GRACE");
    if (gang.longest_s <= 0) return 0;
    const std::int64_t grace_s =
        grace == gang.ranks[0].environment.end() ? 0 : std::strtoll(grace->second.c_str(), nullptr, 10);
    return std::max<std::int64_t>(1, gang.longest_s - std::max<std::int64_t>(0, grace_s));
}

std::int64_t ceil_of(std::int64_t value, std::int64_t part) {
    return (value + part - 1) / part;
}

// Slurm gives every rank of a job the same.
struct Needs {
    std::int64_t cpus = 1, memory_mib = 0;
    int gpus = 0;
    std::string gpu_model;
};
Needs needs_of(const GangSpec& gang) {
    Needs needs;
    for (const RankSpec& rank : gang.ranks) {
        needs.cpus = std::max(needs.cpus, ceil_of(rank.cpu_milli, 1000));
        needs.memory_mib = std::max(needs.memory_mib, ceil_of(rank.memory_bytes, 1 << 20));
        needs.gpus = std::max(needs.gpus, rank.gpus);
        if (!rank.gpu_model.empty()) needs.gpu_model = rank.gpu_model;
    }
    return needs;
}

std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

std::string gres_type(const SlurmOptions& options, const std::string& model) {
    if (model.empty()) return "";
    for (const auto& [type, name] : options.gpu_models)
        if (name == model || type == model) return type;
    for (const auto& [type, name] : options.gpu_models)
        if (names_gpu(model, name) || names_gpu(model, type)) return type;
    return model;
}

std::vector<std::string> container_words(const GangSpec& gang, const std::string& program,
                                         const std::vector<std::string>& mounts) {
    std::vector<std::string> folders;
    const auto add = [&](const std::string& path) {
        const bool there = std::any_of(folders.begin(), folders.end(),
                                       [&](const std::string& folder) { return lies_in(path, folder); });
        if (!path.empty() && path != "/" && !there) folders.push_back(path);
    };
    for (const std::string& path : mounts) add(path);
    for (const std::string* path : {&gang.folder, &gang.log_folder}) add(*path);
    for (const RankSpec& rank : gang.ranks)
        for (const char* key : kFolderVariables)
            if (const auto found = rank.environment.find(key); found != rank.environment.end()) add(found->second);
    std::string list = program + ":" + program + ":ro";
    for (const std::string& path : folders) list += "," + path + ":" + path;
    // Where images have an entry point of their own, it would stand between us and the ranks.
    return {"--container-image=" + pyxis_image(gang.image), "--container-mounts=" + list, "--no-container-entrypoint"};
}

}  // namespace

std::string job_name(const OperationId& operation) {
    return std::string(kJobPrefix) + operation.text();
}

Outcome check_gang_for_slurm(const OperationId& operation, const GangSpec& gang) {
    const auto wrong = [](const std::string& why) { return rejected(Cause::user_error, why); };
    if (!OperationId::parse(operation.text())) return wrong("not an id of an operation: " + operation.text());
    if (!gang.attempt || gang.ranks.empty()) return wrong("a gang has an attempt and at least one rank");
    if (gang.nodes > 0 && gang.ranks.size() % static_cast<std::size_t>(gang.nodes) != 0)
        return wrong(fmt::format("{} ranks cannot be spread evenly over {} nodes", gang.ranks.size(), gang.nodes));
    for (const std::string* path : {&gang.folder, &gang.log_folder})
        if (!can_be_written(*path) || path->find('\n') != std::string::npos)
            return wrong("the name of a folder is not UTF-8, or has a line end in it");
    if (!gang.image.empty()) {
        if (const auto name = parse_image_name(gang.image, "/"); !name || enroot_name(*name).empty())
            return wrong(printable(gang.image, 200) +
                         ": containers of this cluster come from a registry; push the image to one");
        for (const std::string* path : {&gang.folder, &gang.log_folder})
            if (path->find_first_of(",:") != std::string::npos)
                return wrong(printable(*path) + " cannot be mounted into a container: it has a comma or a colon in it");
    }
    for (std::size_t i = 0; i < gang.ranks.size(); ++i) {
        const RankSpec& rank = gang.ranks[i];
        const auto bad = [&](const std::string& why) { return wrong(fmt::format("rank {}: {}", i, why)); };
        if (!rank.node.empty()) return bad("Slurm chooses the node, and " + printable(rank.node) + " is named");
        if (rank.arguments.empty()) return bad("there is no program to run");
        if (rank.gpus > 0 && rank.gpu_milli != 1000) return bad("this engine gives whole GPUs, not parts of them");
        for (const std::string& argument : rank.arguments)
            if (!can_be_written(argument)) return bad("the argument " + printable(argument) + " is not UTF-8");
        for (const auto& [key, value] : rank.environment)
            if (key.empty() || key.find('=') != std::string::npos || !can_be_written(key) || !can_be_written(value))
                return bad("the environment variable " + printable(key) + " cannot be set");
    }
    return confirmed();
}

JobRequest job_request(const OperationId& operation, const GangSpec& gang, const SlurmOptions& options,
                       const std::string& folder) {
    JobRequest job;
    const auto option = [&](std::string_view name, std::string_view value) {
        job.options.emplace_back(std::string(name), std::string(value));
    };
    const auto told = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) option(name, value);
    };
    const Needs needs = needs_of(gang);
    option("job-name", job_name(operation));
    option("comment", fmt::format("op={} run={} attempt={} epoch={}", operation.text(), gang.attempt.run.text(),
                                  gang.attempt.number, gang.epoch));
    told("partition", options.partition);
    told("account", options.account);
    told("qos", options.qos);
    told("reservation", options.reservation);
    told("constraint", options.constraint);
    const SlurmRequest request{.ranks = static_cast<std::int64_t>(gang.ranks.size()),
                               .nodes = gang.nodes,
                               .cpus = needs.cpus,
                               .memory_mib = needs.memory_mib,
                               .gpus = needs.gpus,
                               .gpu_type = gres_type(options, needs.gpu_model),
                               .one_switch = gang.one_switch,
                               .longest_s = gang.longest_s};
    for (const auto& [name, value] : slurm_options(request)) option(name, value);
    if (!gang.avoid.empty()) option("exclude", join(gang.avoid, ","));
    // Not right at the start of a run that is short.
    const std::int64_t limit = limit_of(gang);
    const std::int64_t notice = limit > 0 ? std::min<std::int64_t>(options.notice_s, limit / 2) : options.notice_s;
    // Of Slurm for a preemption, and for a limit of its own that is shorter than that of the run.
    if (notice > 0) option("signal", fmt::format("B:USR1@{}", notice));
    if (notice > 0 && limit > 0) job.notice_after_s = limit - notice;
    // A second start would be one that nobody asked for: another attempt is ours to make.
    option("no-requeue", "");
    option("kill-on-invalid-dep", "yes");
    option("chdir", folder);
    option("output", folder + "/batch.out");
    option("open-mode", "append");
    job.command = "exec";
    for (const std::string& word : options.program) job.command += " " + quoted(word);
    job.command += " slurm-step gang " + quoted(folder);
    if (!gang.image.empty())
        for (const std::string& each : options.mounts) job.command += " " + quoted(each);
    return job;
}

std::string job_script(const JobRequest& request) {
    std::string script = "#!/bin/sh\n";
    for (const auto& [name, value] : request.options) {
        script += "#SBATCH --" + name;
        // In double quotes as sbatch reads them; names of partitions and the like have none of their own.
        const bool plain = value.find_first_of(" \t\"#") == std::string::npos;
        if (!value.empty()) script += plain ? "=" + value : fmt::format("=\"{}\"", value);
        script += "\n";
    }
    if (request.notice_after_s > 0) script += fmt::format("export {}={}\n", kNoticeVariable, request.notice_after_s);
    return script + request.command + "\n";
}

std::vector<std::string> step_words(const GangSpec& gang, const std::string& folder, const std::string& program,
                                    const std::string& cpus, const std::vector<std::string>& mounts) {
    std::vector<std::string> words = {"srun",
                                      "--kill-on-bad-exit=0",
                                      "--wait=0",
                                      "--mpi=none",
                                      "--input=none",
                                      "--unbuffered",
                                      "--distribution=block",
                                      "--ntasks=" + std::to_string(gang.ranks.size()),
                                      "--output=" + folder + "/ranks.out",
                                      "--open-mode=append"};
    // Not handed on by srun itself since 22.05.
    if (!cpus.empty()) words.push_back("--cpus-per-task=" + cpus);
    if (!gang.image.empty())
        for (std::string& word : container_words(gang, program, mounts)) words.push_back(std::move(word));
    words.insert(words.end(), {program, "slurm-step", "rank"});
    return words;
}

std::optional<Outcome> read_refusal(const std::string& said) {
    const std::string low = lower(said);
    static const std::string_view file = "engines/slurm_refusals.tsv";
    static const auto table = Tsv::read(embedded_bytes(file), file);
    for (std::size_t i = 0; table && i < table->rows(); ++i) {
        if (low.find(lower(table->at(i, 0))) == std::string::npos) continue;
        if (table->at(i, 1) == "yes") return unknown(said);
        const std::string_view remedy = table->at(i, 3);
        return rejected(parse_cause(table->at(i, 2)).value_or(Cause::user_error),
                        said + (remedy == "-" ? "" : "; " + std::string(remedy)));
    }
    return std::nullopt;
}

Outcome read_submission(const Result<ProgramResult>& ran) {
    if (!ran) {
        // Killed while it waited: the controller may have taken the job all the same.
        return ran.error().kind() == ErrorKind::not_found ? rejected(Cause::platform, ran.error().message())
                                                          : unknown(ran.error().message());
    }
    const std::string said = std::string(trim(ran->complaint));
    if (ran->exit_code == 0) {
        const std::string_view number = trim(ran->output);
        const std::string_view digits = number.substr(0, number.find(';'));
        if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
            return unknown("sbatch said: " + std::string(number));
        return confirmed(digits);
    }
    if (auto known = read_refusal(said)) return *known;
    // Ended by a signal, or without a word: nobody knows how far it came.
    if (ran->exit_code > 128 || lower(said).find("error") == std::string::npos)
        return unknown(fmt::format("sbatch ended with {}: {}", ran->exit_code, said));
    return rejected(Cause::user_error, said);
}

}  // namespace stoker::slurm
