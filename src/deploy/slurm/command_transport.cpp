// Slurm's own commands, which are on every machine that submits.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/slurm/cluster_settings.h"
#include "deploy/slurm/room.h"
#include "deploy/slurm/transport.h"
#include "io/run_program.h"

extern char** environ;

namespace stoker::slurm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kCallLimit = std::chrono::seconds(30);
constexpr const char* kNoImages =
    "this cluster runs no images: its srun knows no --container-image, which the plug-in Pyxis brings. Leave image "
    "out, or send the run to an engine that has them (--engine)";

bool is_handed_on(std::string_view entry) {
    for (const char* key : {"PATH=", "HOME=", "USER=", "LOGNAME=", "LD_LIBRARY_PATH=", "SLURM_CONF=", "TZ=", "TMPDIR="})
        if (entry.starts_with(key)) return true;
    return false;
}

std::string first_line(std::string_view text) {
    const auto lines = split_lines(trim(text));
    return lines.empty() ? std::string() : printable(lines.front(), 300);
}

class CommandTransport final : public Transport {
public:
    explicit CommandTransport(SlurmOptions options) : options_(std::move(options)) {}

    ClusterFacts facts(Deadline deadline) override {
        const auto settings = this->settings(deadline);
        ClusterFacts found{.can = capabilities_of(settings ? *settings : std::map<std::string, std::string>()),
                           .accounts = settings && settings->contains("AccountingStorageType") &&
                                       settings->at("AccountingStorageType") != "accounting_storage/none",
                           .no_images = {}};
        if (!settings) found.can.detail = "the controller has not answered: " + settings.error().message();
        const auto help = call({"srun", "--help"}, deadline);
        found.can.runs_images = help && help->output.find("--container-image") != std::string::npos;
        if (!found.can.runs_images) found.no_images = kNoImages;
        return found;
    }

    Outcome submit(const JobRequest&, const std::string& script, Deadline deadline) override {
        return read_submission(call({"sbatch", "--parsable", script}, deadline));
    }

    // Only ours come from the controller: but for root, to whom squeue 22.05 lets it tell all jobs, and then picks.
    Result<Listing> jobs(Deadline deadline) override {
        TRY(const ProgramResult ran,
            call({"squeue", "--noheader", "--all", "--me", "--states=all", "-o", kQueueFormat}, deadline));
        if (ran.exit_code != 0 || ran.cut) return Error(ErrorKind::unavailable, "squeue: " + first_line(ran.complaint));
        return Listing{
            .ours = read_queue(ran.output),
            .looked_through = static_cast<std::size_t>(std::count(ran.output.begin(), ran.output.end(), '\n')),
            .processor_s = ran.processor_s};
    }

    Status cancel(const OperationId& operation, Deadline deadline) override {
        const auto ran = call_well({"scancel", "--me", "--name=" + job_name(operation)}, deadline);
        return ran ? done() : Status(ran.error());
    }

    Result<std::vector<SlurmNode>> nodes(const std::string& name, Deadline deadline) override {
        std::vector<std::string> words{"scontrol", "-d", "show", "node", "-o"};
        if (!name.empty()) words.push_back(name);
        TRY(const ProgramResult ran, call_well(std::move(words), deadline));
        return read_nodes(ran.output, options_.gpu_models);
    }

    std::map<std::string, std::string> places(Deadline deadline) override {
        const auto shown = call({"scontrol", "show", "topology"}, deadline);
        return shown ? read_topology(shown->output) : std::map<std::string, std::string>();
    }

    Result<std::vector<std::string>> default_partitions(Deadline deadline) override {
        TRY(const ProgramResult ran, call({"scontrol", "show", "partition", "-o"}, deadline));
        std::vector<std::string> names;
        for (const std::string_view line : split_lines(ran.output)) {
            auto fields = read_fields(line);
            if (fields["Default"] == "YES") names.push_back(fields["PartitionName"]);
        }
        return names;
    }

    Result<std::vector<std::int64_t>> waiting(const std::vector<std::string>& partitions, Deadline deadline) override {
        std::vector<std::string> words{"squeue", "--noheader", "--states=PENDING", "-o", "%Q"};
        if (!partitions.empty()) words.push_back("--partition=" + join(partitions, ","));
        TRY(const ProgramResult ran, call_well(std::move(words), deadline));
        return read_waiting(ran.output);
    }

    std::string accounted_state(const OperationId& operation, Deadline deadline) override {
        const auto ran =
            call({"sacct", "-X", "-n", "-P", "-D", "-S", "now-30days", "--name=" + job_name(operation), "-o", "State"},
                 std::min(deadline, Clock::now() + std::chrono::seconds(5)));
        if (!ran || ran->exit_code != 0) return {};
        const auto lines = split_lines(trim(ran->output));
        return lines.empty() ? std::string() : std::string(trim(lines.back()));
    }

private:
    Result<ProgramResult> call(std::vector<std::string> arguments, Deadline deadline) const {
        ProgramCall call{.arguments = std::move(arguments), .environment = handed_on_environment(options_)};
        call.environment.emplace_back("SLURM_TIME_FORMAT=%s");
        return run_program(call, std::min(deadline, Clock::now() + kCallLimit));
    }
    // With what it complains of as an error.
    Result<ProgramResult> call_well(std::vector<std::string> arguments, Deadline deadline) const {
        const std::string name = arguments.front();
        TRY(ProgramResult ran, call(std::move(arguments), deadline));
        if (ran.exit_code != 0) return Error(ErrorKind::unavailable, name + ": " + first_line(ran.complaint));
        return ran;
    }
    Result<std::map<std::string, std::string>> settings(Deadline deadline) const {
        TRY(const ProgramResult ran, call_well({"scontrol", "show", "config"}, deadline));
        return read_settings(ran.output);
    }

    const SlurmOptions options_;
};

}  // namespace

std::vector<std::string> handed_on_environment(const SlurmOptions& options) {
    std::vector<std::string> environment;
    bool path = false;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (!is_handed_on(text) || (text.starts_with("SLURM_CONF=") && !options.config.empty())) continue;
        if (text.starts_with("PATH=")) {
            path = true;
            environment.push_back(
                fmt::format("PATH={}{}{}", options.commands, options.commands.empty() ? "" : ":", text.substr(5)));
            continue;
        }
        environment.emplace_back(text);
    }
    if (!path) environment.push_back(fmt::format("PATH={}:/usr/local/bin:/usr/bin:/bin", options.commands));
    if (!options.config.empty()) environment.push_back("SLURM_CONF=" + options.config);
    environment.emplace_back("LC_ALL=C.UTF-8");
    return environment;
}

std::unique_ptr<Transport> make_command_transport(const SlurmOptions& options) {
    return std::make_unique<CommandTransport>(options);
}

}  // namespace stoker::slurm
