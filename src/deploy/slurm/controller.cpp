#include "deploy/slurm/controller.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/slurm/submit.h"

extern char** environ;

namespace stoker::slurm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kCallLimit = std::chrono::seconds(30);

// What a person set for these commands (SQUEUE_FORMAT, SBATCH_PARTITION), and the job that a server itself runs in,
// would change what is asked and what is answered.
bool is_handed_on(std::string_view entry) {
    for (const char* key : {"PATH=", "HOME=", "USER=", "LOGNAME=", "LD_LIBRARY_PATH=", "SLURM_CONF=", "TZ=", "TMPDIR="})
        if (entry.starts_with(key)) return true;
    return false;
}

std::string first_line(std::string_view text) {
    const auto lines = split_lines(trim(text));
    return lines.empty() ? std::string() : printable(lines.front(), 300);
}

}  // namespace

std::vector<const Job*> Queue::of(const OperationId& operation) const {
    std::vector<const Job*> found;
    for (const Job& job : jobs)
        if (job.operation == operation) found.push_back(&job);
    std::stable_sort(found.begin(), found.end(), [](const Job* a, const Job* b) {
        return (a->phase != JobPhase::over) > (b->phase != JobPhase::over);
    });
    return found;
}

Controller::Controller(SlurmOptions options) : options_(std::move(options)) {}

Result<ProgramResult> Controller::call(std::vector<std::string> arguments, Deadline deadline) const {
    ProgramCall call{.arguments = std::move(arguments), .environment = {}};
    bool path = false;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (!is_handed_on(text) || (text.starts_with("SLURM_CONF=") && !options_.config.empty())) continue;
        if (text.starts_with("PATH=")) {
            path = true;
            call.environment.push_back(
                fmt::format("PATH={}{}{}", options_.commands, options_.commands.empty() ? "" : ":", text.substr(5)));
            continue;
        }
        call.environment.emplace_back(text);
    }
    if (!path) call.environment.push_back(fmt::format("PATH={}:/usr/local/bin:/usr/bin:/bin", options_.commands));
    if (!options_.config.empty()) call.environment.push_back("SLURM_CONF=" + options_.config);
    call.environment.emplace_back("SLURM_TIME_FORMAT=%s");
    call.environment.emplace_back("LC_ALL=C.UTF-8");
    return run_program(call, std::min(deadline, Clock::now() + kCallLimit));
}

Result<std::shared_ptr<const Queue>> Controller::queue(Clock::time_point since, Deadline deadline) {
    std::unique_lock lock(mutex_);
    for (;;) {
        if (newest_ && newest_->asked_at >= since) return newest_;
        if (!asking_) break;
        if (changed_.wait_until(lock, deadline) == std::cv_status::timeout)
            return Error(ErrorKind::timed_out, "squeue did not answer in time");
    }
    asking_ = true;
    lock.unlock();
    auto fresh = std::make_shared<Queue>();
    fresh->asked_at = Clock::now();
    const auto ran = call({"squeue", "--noheader", "--all", "--me", "--states=all", "-o", kQueueFormat}, deadline);
    lock.lock();
    asking_ = false;
    changed_.notify_all();
    if (!ran) return ran.error();
    if (ran->exit_code != 0 || ran->cut) return Error(ErrorKind::unavailable, "squeue: " + first_line(ran->complaint));
    fresh->jobs = read_queue(ran->output);
    newest_ = fresh;
    return newest_;
}

Result<std::map<std::string, std::string>> Controller::settings(Deadline deadline) const {
    TRY(const ProgramResult ran, call({"scontrol", "show", "config"}, deadline));
    if (ran.exit_code != 0) return Error(ErrorKind::unavailable, "scontrol: " + first_line(ran.complaint));
    return read_settings(ran.output);
}

Status Controller::cancel(const OperationId& operation, Deadline deadline) const {
    TRY(const ProgramResult ran, call({"scancel", "--me", "--name=" + job_name(operation)}, deadline));
    if (ran.exit_code != 0) return Error(ErrorKind::unavailable, "scancel: " + first_line(ran.complaint));
    return done();
}

std::string Controller::accounted_state(const OperationId& operation, Deadline deadline) const {
    const auto ran =
        call({"sacct", "-X", "-n", "-P", "-D", "-S", "now-30days", "--name=" + job_name(operation), "-o", "State"},
             std::min(deadline, Clock::now() + std::chrono::seconds(5)));
    if (!ran || ran->exit_code != 0) return {};
    const auto lines = split_lines(trim(ran->output));
    return lines.empty() ? std::string() : std::string(trim(lines.back()));
}

bool asks_for_room(const Queue& queue) {
    return std::any_of(queue.jobs.begin(), queue.jobs.end(), [](const Job& job) {
        const Cause cause = read_reason(job.reason).cause;
        return job.phase == JobPhase::pending &&
               (cause == Cause::capacity_busy || cause == Cause::order_behind || cause == Cause::node_unhealthy);
    });
}

Result<Room> Controller::room(const std::vector<std::string>& partitions, Deadline deadline) const {
    TRY(const ProgramResult nodes, call({"scontrol", "-d", "show", "node", "-o"}, deadline));
    if (nodes.exit_code != 0) return Error(ErrorKind::unavailable, "scontrol: " + first_line(nodes.complaint));
    Room found = read_room(nodes.output, partitions);
    std::vector<std::string> words{"squeue", "--noheader", "--states=PENDING", "-o", "%Q"};
    if (!partitions.empty()) words.push_back("--partition=" + join(partitions, ","));
    if (const auto waiting = call(std::move(words), deadline); waiting && waiting->exit_code == 0)
        read_waiting(waiting->output, found);
    return found;
}

bool Controller::has_pyxis(Deadline deadline) const {
    const auto help = call({"srun", "--help"}, deadline);
    return help && help->output.find("--container-image") != std::string::npos;
}

}  // namespace stoker::slurm
