#include "deploy/slurm/slurm_driver.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/local/launcher.h"
#include "deploy/local/local_answers.h"
#include "deploy/local/measure_file.h"
#include "deploy/local/rank_environment.h"
#include "deploy/slurm/cluster_settings.h"
#include "deploy/slurm/controller.h"
#include "deploy/slurm/gang_watch.h"
#include "deploy/slurm/job_end.h"
#include "deploy/slurm/released_gangs.h"
#include "deploy/slurm/submit.h"
#include "deploy/slurm/wire.h"
#include "io/files.h"
#include "io/process.h"

namespace stoker {
namespace slurm {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A host looks at its orders ten times a second.
constexpr auto kAnswerLimit = std::chrono::seconds(5);
// Between two looks at the files of what is live: a node's word is seen so soon.
constexpr auto kLook = std::chrono::milliseconds(50), kFileLook = std::chrono::milliseconds(20);
constexpr auto kObservePoll = std::chrono::seconds(5), kSettingsLimit = std::chrono::seconds(5);
constexpr auto kRoomPause = std::chrono::seconds(20);
// Behind what waits all users' jobs are looked through, for numbers alone: not a fiftieth of a processor for that, too.
constexpr int kRestOfRoom = 20;
constexpr std::size_t kMostFacts = 1000;
// At files in one of these looks: of more gangs each is looked at less often, and the queue says once a second what
// began.
constexpr std::size_t kMostLooks = 64;
class SlurmDriver final : public LocalAnswers<Driver> {
public:
    SlurmDriver(SlurmOptions options, std::unique_ptr<Transport> transport)
        : options_(std::move(options)),
          controller_(std::move(transport)),
          gangs_(options_.folder, options_.settle_s, [this](const OperationId& operation) {
              return facts_.accounts ? controller_.ask().accounted_state(operation, Clock::now() + kSettingsLimit)
                                     : std::string();
          }) {}

    // Finds what an earlier driver left.
    Status adopt() {
        std::error_code code;
        fs::create_directories(options_.folder, code);
        ::chmod(options_.folder.c_str(), 0700);
        for (const OperationId& operation : known_operations(code)) gangs_.add(operation);
        if (code)
            return Error(ErrorKind::unavailable, "cannot use the folder " + options_.folder + ": " + code.message());
        facts_ = controller_.ask().facts(Clock::now() + kSettingsLimit);
        return done();
    }

    Capabilities capabilities() const override { return facts_.can; }

    Result<std::vector<NodeInfo>> discover(Deadline deadline) override {
        TRY(std::vector<SlurmNode> all, controller_.ask().nodes({}, deadline));
        TRY(const std::vector<std::string> wanted, partitions(deadline));
        std::map<std::string, std::string> places;
        if (facts_.can.topology) places = controller_.ask().places(deadline);
        std::vector<NodeInfo> nodes;
        for (SlurmNode& node : all) {
            const bool in =
                wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
                    return std::find(node.partitions.begin(), node.partitions.end(), name) != node.partitions.end();
                });
            if (!in || !node.usable) continue;
            learn_types(node);
            if (const auto place = places.find(node.info.name); place != places.end())
                node.info.topology = place->second;
            nodes.push_back(std::move(node.info));
        }
        return nodes;
    }

    HealthReport check(const std::string& name, HealthLevel level, Deadline deadline) override {
        if (is_over(deadline)) return not_looked_at(name);
        const auto nodes = controller_.ask().nodes(name, deadline);
        return !nodes || nodes->empty() ? HealthReport() : report_of_node(nodes->front(), level);
    }

    Outcome launch(const OperationId& operation, const GangSpec& asked, Deadline deadline) override {
        if (Outcome sound = check_gang_for_slurm(operation, asked); sound.certainty == Certainty::rejected)
            return sound;
        if (!asked.image.empty() && !facts_.no_images.empty()) return rejected(Cause::user_error, facts_.no_images);
        GangSpec gang = asked;
        if (auto old = gangs_.refuse_epoch(gang.epoch)) return *old;
        if (!gangs_.begin_launch(operation)) return unknown("another thread is launching it");
        for (std::string* path : {&gang.folder, &gang.log_folder})
            if (!path->empty()) *path = absolute_path(*path);
        const std::string folder = folder_of(operation);
        if (gang.log_folder.empty()) gang.log_folder = folder;
        const bool fresh = ::mkdir(folder.c_str(), 0700) == 0;
        Outcome outcome = fresh ? submit(operation, gang, deadline)
                          : errno == EEXIST
                              ? launch_again(operation, gang, deadline)
                              : rejected(Cause::platform, "cannot make " + folder + ": " + std::strerror(errno));
        gangs_.end_launch(operation);
        return outcome;
    }

    Outcome notify(const OperationId& launched, std::uint64_t epoch, int signal_number, Deadline deadline) override {
        if (!path_exists(folder_of(launched))) return rejected(Cause::platform, "there is no gang " + launched.text());
        if (auto old = gangs_.refuse_epoch(epoch)) return *old;
        gangs_.add(launched);
        gangs_.look_at(launched, nullptr);
        if (gangs_.is_over(launched)) return rejected(Cause::platform, launched.text() + " has ended");
        if (claim_of(folder_of(launched)).empty())
            return rejected(Cause::platform, launched.text() + " has not started");
        const auto number =
            give_order(launched, {.verb = ControlVerb::signal, .epoch = epoch, .signal = signal_number});
        if (!number) return unknown(number.error().message());
        const auto answer = wait_for_answer(launched, *number, std::min(deadline, Clock::now() + kAnswerLimit));
        if (answer) return answer->ok ? confirmed(answer->detail) : rejected(Cause::platform, answer->detail);
        gangs_.look_at(launched, nullptr);
        if (gangs_.is_over(launched)) return rejected(Cause::platform, launched.text() + " has ended");
        return unknown("its host has not answered");
    }

    Outcome cancel(const OperationId& launched, std::uint64_t epoch, double grace_s, Deadline deadline) override {
        if (auto old = gangs_.refuse_epoch(epoch)) return *old;
        const std::string folder = folder_of(launched);
        if (!path_exists(folder)) return clear_queue(launched, deadline);
        gangs_.add(launched);
        gangs_.look_at(launched, nullptr);
        const LaunchOrder order = gangs_.order_of(launched);
        // Whoever claims first decides whether it begins.
        const auto won = make_claim(folder, std::string(kServerClaim));
        if (!won) return unknown(won.error().message());
        if (*won) {
            call_off(folder, order);
            gangs_.look_at(launched, nullptr);
        }
        if (claim_of(folder) == kServerClaim) return clear_queue(launched, deadline);
        return end_host(launched, epoch, std::max(0.0, grace_s), deadline);
    }

    Outcome release(const OperationId& launched, Deadline deadline) override {
        const std::string folder = folder_of(launched);
        const bool there = path_exists(folder);
        if (there) {
            gangs_.add(launched);
            gangs_.look_at(launched, nullptr);
            if (!gangs_.is_over(launched)) {
                const auto queue = controller_.queue(Clock::now(), deadline);
                if (!queue) return unknown(queue.error().message());
                gangs_.look_at(launched, queue->get());
                const bool lost = gangs_.is_lost(launched);
                if (!lost && !gangs_.is_over(launched))
                    return rejected(Cause::platform, launched.text() + " has not ended");
                // What Slurm lost may come back with its memory, and must find that it is over.
                if (lost && !make_claim(folder, std::string(kServerClaim)).ok())
                    return unknown("cannot claim " + launched.text());
            }
            // A job that was called off, and waits on: its folder is what keeps it from starting.
            if (claim_of(folder) == kServerClaim)
                if (Outcome cleared = clear_queue(launched, deadline); cleared.certainty != Certainty::confirmed)
                    return cleared;
            if (!remove_gang_folder(folder)) return unknown("cannot remove " + folder + ": " + std::strerror(errno));
        }
        gangs_.forget(launched);
        released_.add(launched);
        return confirmed();
    }

    Status look_for(const PrerequisitesSpec& wanted, const PrerequisitesPlace& place,
                    Deadline deadline) const override {
        // Programs, modules and GPU drivers are those of the nodes, and this is not one: the ranks look there. Files
        // and folders are shared.
        PrerequisitesSpec shared = wanted;
        shared.commands.clear();
        shared.python_modules.clear();
        shared.driver.clear();
        return LocalAnswers<Driver>::look_for(shared, place, deadline);
    }
    Result<std::string> pin(const std::string& image, const ImagePlace& place, Deadline deadline) const override {
        // Where there are no containers the launch says so.
        return facts_.no_images.empty() ? pin_image_of_nodes(image, deadline) : Questions::pin(image, place, deadline);
    }

    // Each rank is looked at by its host, on its node.
    Result<Measures> read_measures(const MeasuredGang& gang, const MeasureQuery& query, Deadline) const override {
        return read_measure_files(gang.log_folder, query);
    }

    Status remove_checkpoint(const std::string& folder, Deadline) override {
        if (remove_tree(folder)) return done();
        return Error(ErrorKind::unavailable, "cannot remove " + printable(folder));
    }

    Result<OursListing> list_ours(const std::string& site, Deadline deadline) override {
        OursListing listing;
        const auto queue = controller_.queue(Clock::now(), deadline);
        listing.complete = queue.ok();
        std::error_code code;
        std::set<OperationId> here;
        for (const OperationId& operation : known_operations(code)) {
            if (!site.empty() && operation.site != site) continue;
            here.insert(operation);
            gangs_.add(operation);
            gangs_.look_at(operation, queue ? queue->get() : nullptr);
            if (auto listed = gangs_.listed(operation, !queue.ok())) listing.items.push_back(*listed);
        }
        if (code) return Error(ErrorKind::unavailable, "cannot list " + options_.folder + ": " + code.message());
        // Jobs whose folder is gone: of a server whose disk was put back; not those that we released and that Slurm has
        // not yet seen end.
        if (queue) {
            here.merge(released_.still_there(**queue));
            for (const Job& job : (*queue)->jobs)
                if (job.phase != JobPhase::over && (site.empty() || job.operation.site == site) &&
                    here.insert(job.operation).second)
                    listing.items.push_back({.operation = job.operation, .waits = job.phase == JobPhase::pending});
        }
        std::sort(listing.items.begin(), listing.items.end(),
                  [](const Ours& a, const Ours& b) { return a.operation < b.operation; });
        return listing;
    }

    Result<std::vector<Fact>> observe(std::uint64_t cursor, Deadline deadline) override {
        for (;;) {
            for (const OperationId& operation : gangs_.next_live(kMostLooks)) gangs_.look_at(operation, nullptr);
            poll_if_due(deadline);
            auto facts =
                gangs_.facts_after(cursor, kMostFacts, std::min<Clock::time_point>(deadline, Clock::now() + kLook));
            if (!facts.empty() || interrupted_.exchange(false) || Clock::now() >= deadline) return facts;
        }
    }

    void interrupt() override {
        interrupted_ = true;
        gangs_.wake();
    }

private:
    std::string folder_of(const OperationId& operation) const { return gangs_.folder_of(operation); }

    std::vector<OperationId> known_operations(std::error_code& code) const {
        std::vector<OperationId> found;
        for (fs::directory_iterator it(options_.folder, code), end; !code && it != end; it.increment(code)) {
            const std::string name = it->path().filename().string();
            if (const auto operation = OperationId::parse(name)) found.push_back(*operation);
            if (name.starts_with(kGone)) remove_tree(it->path().string());
        }
        return found;
    }

    // The one of the engine; the cluster's usual one where none is named. None: all nodes.
    Result<std::vector<std::string>> partitions(Deadline deadline) {
        std::vector<std::string> names;
        if (!options_.partition.empty()) {
            for (const std::string_view name : split(options_.partition, ',')) names.emplace_back(name);
            return names;
        }
        return controller_.ask().default_partitions(deadline);
    }

    // ---- launch
    Outcome submit(const OperationId& operation, const GangSpec& gang, Deadline deadline) {
        const std::string folder = folder_of(operation);
        const auto give_up = [&](Cause cause, std::string_view why) {
            remove_gang_folder(folder);
            return rejected(cause, why);
        };
        const LaunchOrder order{.operation = operation, .gang = gang};
        const JobRequest request = job_request(operation, gang, with_types(), folder);
        const std::string script = folder + "/job.sh";
        for (const Status& written : {replace_file(folder + "/launch.json", to_json(order).dump(0), true),
                                      replace_file(script, job_script(request), true), write_order(folder, {})})
            if (!written) return give_up(Cause::platform, written.error().message());
        gangs_.add(operation);
        const Outcome outcome = controller_.ask().submit(request, script, deadline);
        if (outcome.certainty == Certainty::rejected) {
            gangs_.forget(operation);
            return give_up(outcome.cause, outcome.detail);
        }
        gangs_.submitted(operation);
        poll_now_ = true;
        if (outcome.certainty == Certainty::unknown) return outcome;
        (void)replace_file(folder + "/submitted", outcome.detail + "\n", false).ok();
        return accepted("job " + outcome.detail);
    }

    void learn_types(const SlurmNode& node) {
        const std::lock_guard guard(types_mutex_);
        gpu_types_.insert(node.gpu_types.begin(), node.gpu_types.end());
    }
    // Types that nobody gave a name of the catalogue are their own.
    SlurmOptions with_types() {
        SlurmOptions options = options_;
        const std::lock_guard guard(types_mutex_);
        for (const std::string& type : gpu_types_) options.gpu_models.emplace(type, type);
        return options;
    }

    static Outcome accepted(const std::string& detail) {
        return {.certainty = Certainty::accepted, .cause = Cause::engine_queue, .detail = detail};
    }

    // Its folder is there: the same launch made before, or tried.
    Outcome launch_again(const OperationId& operation, const GangSpec& gang, Deadline deadline) {
        const std::string folder = folder_of(operation);
        gangs_.add(operation);
        const auto queue = controller_.queue(Clock::now(), deadline);
        gangs_.look_at(operation, queue ? queue->get() : nullptr, true);
        if (const auto status = read_gang_status(folder); status && status->state == GangState::ended)
            return status->started ? accepted("it was launched before") : rejected(status->cause, status->detail);
        if (const std::string who = claim_of(folder); !who.empty()) return accepted("it was begun before, by " + who);
        if (!queue) return unknown(queue.error().message());
        for (const Job* job : (*queue)->of(operation))
            if (job->phase != JobPhase::over) return accepted("job " + job->number + " was submitted before");
        return submit(operation, gang, deadline);
    }

    // ---- ending
    // No job of this name waits or runs in Slurm any more. For what has no folder, or never begins because of its
    // claim.
    Outcome clear_queue(const OperationId& operation, Deadline deadline) {
        for (bool told = false;;) {
            const auto queue = controller_.queue(Clock::now(), deadline);
            if (!queue) return unknown(queue.error().message());
            const auto jobs = (*queue)->of(operation);
            if (jobs.empty() || jobs.front()->phase == JobPhase::over)
                return confirmed(told ? "" : "there is nothing of " + operation.text());
            if (!told)
                if (const Status cancelled = controller_.ask().cancel(operation, deadline); !cancelled)
                    return unknown(cancelled.error().message());
            told = true;
            if (milliseconds_until(deadline) == 0)
                return unknown("job " + jobs.front()->number + " was cancelled, and is " + jobs.front()->state);
            pause(deadline, std::chrono::milliseconds(100));
        }
    }

    // The host ends its ranks; Slurm ends a host that does not answer.
    Outcome end_host(const OperationId& operation, std::uint64_t epoch, double grace_s, Deadline deadline) {
        if (gangs_.is_over(operation)) return confirmed();
        const auto number = give_order(operation, {.verb = ControlVerb::stop, .epoch = epoch, .grace_s = grace_s});
        if (!number) return unknown(number.error().message());
        const auto answer_by = Clock::now() + kAnswerLimit;
        const auto end_by = Clock::now() + duration_of(grace_s) + kAnswerLimit;
        for (bool answered = false, told_slurm = false;;) {
            gangs_.look_at(operation, nullptr);
            if (gangs_.is_over(operation)) return confirmed();
            if (!answered)
                if (const auto answer = read_answer(folder_of(operation)); answer && answer->number == *number) {
                    if (!answer->ok) return rejected(Cause::platform, answer->detail);
                    answered = true;
                }
            const auto now = Clock::now();
            if (now >= deadline) return unknown("told to end, and still there");
            if (now >= (answered ? end_by : answer_by)) {
                if (!std::exchange(told_slurm, true))
                    if (const Status cancelled = controller_.ask().cancel(operation, deadline); !cancelled)
                        return unknown("its host does not answer, and neither does Slurm: " +
                                       cancelled.error().message());
                if (const auto queue = controller_.queue(now - duration_of(0.5), deadline))
                    gangs_.look_at(operation, queue->get());
            }
            pause(deadline, kFileLook);
        }
    }

    Result<std::int64_t> give_order(const OperationId& operation, const ControlRequest& request) {
        std::int64_t before = last_order_, number = 0;
        do number = std::max(before + 1, wall_clock_us());
        while (!last_order_.compare_exchange_weak(before, number));
        TRY_VOID(write_order(folder_of(operation), {.number = number, .request = request}));
        return number;
    }
    std::optional<Answer> wait_for_answer(const OperationId& operation, std::int64_t number, Deadline deadline) const {
        for (;;) {
            if (auto answer = read_answer(folder_of(operation)); answer && answer->number == number) return answer;
            if (milliseconds_until(deadline) == 0) return std::nullopt;
            pause(deadline, kFileLook);
        }
    }
    static void pause(Deadline deadline, Clock::duration most) {
        std::this_thread::sleep_until(std::min<Clock::time_point>(deadline, Clock::now() + most));
    }

    // ---- looking
    // One request for all jobs; none while nothing is live.
    void poll_if_due(Deadline deadline) {
        const auto now = Clock::now();
        if (now < last_poll_ + duration_of(rest_s_)) return;
        if (!poll_now_.exchange(false) &&
            now < last_poll_ + duration_of(gangs_.wants_news() ? options_.poll_s : options_.idle_poll_s))
            return;
        const std::vector<OperationId> operations = gangs_.live();
        if (operations.empty() && released_.none()) return;
        last_poll_ = now;
        const auto queue = controller_.queue(now, std::min<Clock::time_point>(deadline, now + kObservePoll));
        if (!queue) return;  // it is asked again, and what is live stays so
        rest_s_ = rest_after_s(**queue);
        end_what_lingers(**queue, deadline);
        look_at_room_if_due(**queue, now);
        for (const OperationId& operation : operations) gangs_.look_at(operation, queue->get());
    }

    void end_what_lingers(const Queue& queue, Deadline deadline) {
        for (const OperationId& operation : released_.lingering(queue))
            (void)controller_.ask().cancel(operation, deadline).ok();
    }

    // Seldom: of a large cluster these are no small questions.
    void look_at_room_if_due(const Queue& queue, Clock::time_point now) {
        if (!asks_for_room(queue) || now < last_room_ + room_pause_) return;
        last_room_ = now;
        const Deadline deadline = now + kObservePoll;
        const auto names = partitions(deadline);
        auto room = names ? controller_.room(*names, deadline) : Result<Room>(names.error());
        if (!room) return;
        room_pause_ = std::max<Clock::duration>(
            kRoomPause, kRestOfRoom * duration_of(rest_after_s({.looked_through = room->waiting.size()})));
        gangs_.take_room(std::move(*room));
    }

    const SlurmOptions options_;
    Controller controller_;
    ClusterFacts facts_;
    GangWatch gangs_;
    std::mutex types_mutex_;
    std::set<std::string> gpu_types_;  // of gres, as the nodes have them
    ReleasedGangs released_;
    std::atomic<std::int64_t> last_order_ = 0;
    // Of the one thread that observes.
    Clock::time_point last_poll_{}, last_room_{};
    double rest_s_ = 0;
    Clock::duration room_pause_ = kRoomPause;
    std::atomic<bool> poll_now_ = false, interrupted_ = false;
};

}  // namespace
}  // namespace slurm

namespace {

Status look_for_commands(const SlurmOptions& options) {
    // Told now: Slurm's commands look for a minute for a file that is not there, each time.
    if (!options.config.empty() && ::access(options.config.c_str(), R_OK) != 0)
        return Error(ErrorKind::invalid, "cannot read " + printable(options.config) + ": " + std::strerror(errno), {},
                     "engine.config in server.yaml names the slurm.conf of the cluster");
    const char* path = std::getenv("PATH");
    if (find_program("sbatch", options.commands + ":" + (path == nullptr ? "" : path), "/").path.empty())
        return Error(ErrorKind::unavailable, "there is no sbatch here", {},
                     "run the server on a machine that submits to the cluster, or name the folder of Slurm's commands "
                     "as engine.commands in server.yaml");
    return done();
}

}  // namespace

Result<std::unique_ptr<Driver>> make_slurm_driver(SlurmOptions options) {
    options.folder = absolute_path(options.folder);
    std::unique_ptr<slurm::Transport> transport;
    if (!options.rest.url.empty()) {
        TRY(transport, slurm::make_rest_transport(options));
    } else {
        TRY_VOID(look_for_commands(options));
        transport = slurm::make_command_transport(options);
    }
    if (options.program.empty()) {
        std::error_code code;
        const std::string self = std::filesystem::read_symlink("/proc/self/exe", code).string();
        if (code) return Error(ErrorKind::unavailable, "cannot tell which program this is: " + code.message());
        options.program = {self};
    }
    auto driver = std::make_unique<slurm::SlurmDriver>(std::move(options), std::move(transport));
    TRY_VOID(driver->adopt());
    return std::unique_ptr<Driver>(std::move(driver));
}

}  // namespace stoker
