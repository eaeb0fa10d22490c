#include "deploy/slurm/gang_watch.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "deploy/local/launcher.h"
#include "deploy/slurm/job_end.h"
#include "deploy/slurm/wire.h"
#include "io/process.h"

namespace stoker::slurm {
namespace {

using Clock = std::chrono::steady_clock;

// For what a job that has ended wrote last, on a file system that shows it late.
constexpr auto kLastWord = std::chrono::seconds(2);
// A guess of the scheduler changes with each of its rounds; of many that wait it is told so seldom that all of them
// together have no more to say than this in a second.
constexpr auto kEtaPause = std::chrono::seconds(30);
constexpr std::size_t kNumbersASecond = 50;

// An order that does nothing, and is answered by a host that lives; 0: it has one that it has not answered yet.
std::int64_t ask_whether_it_lives(const std::string& folder) {
    const auto order = read_order(folder);
    const auto answer = read_answer(folder);
    if (order && order->number != 0 && (!answer || answer->number != order->number)) return 0;
    const Order probe{.number = wall_clock_us(), .request = {.verb = ControlVerb::signal, .signal = 0}};
    return write_order(folder, probe) ? probe.number : 0;
}

}  // namespace

GangWatch::GangWatch(std::string folder, double settle_s, Accounted accounted)
    : folder_(std::move(folder)),
      settle_s_(settle_s),
      accounted_(std::move(accounted)),
      // Cursors of an earlier driver on this folder are lower, whatever it told.
      first_cursor_(static_cast<std::uint64_t>(wall_clock_us())),
      next_cursor_(first_cursor_) {}

void GangWatch::add(const OperationId& operation) {
    const std::lock_guard guard(mutex_);
    const auto [at, fresh] = gangs_.try_emplace(operation);
    if (!fresh && !at->second.order.gang.ranks.empty()) return;
    auto order = read_launch_order(folder_of(operation));
    if (!order) order = LaunchOrder{.operation = operation};
    highest_epoch_ = std::max(highest_epoch_, order->gang.epoch);
    for (RankSpec& rank : order->gang.ranks) rank = RankSpec{.node = rank.node};
    order->operation = operation;
    at->second.order = std::move(*order);
}

void GangWatch::forget(const OperationId& operation) {
    const std::lock_guard guard(mutex_);
    std::erase_if(facts_, [&](const auto& each) { return each.second.operation == operation; });
    gangs_.erase(operation);
}

bool GangWatch::begin_launch(const OperationId& operation) {
    const std::lock_guard guard(mutex_);
    return launching_.insert(operation).second;
}

void GangWatch::end_launch(const OperationId& operation) {
    const std::lock_guard guard(mutex_);
    launching_.erase(operation);
    woken_ = true;
    changed_.notify_all();
}

void GangWatch::submitted(const OperationId& operation) {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    if (found == gangs_.end()) return;
    found->second.submitted = Clock::now();
    found->second.lost = false;
}

std::optional<Outcome> GangWatch::refuse_epoch(std::uint64_t epoch) {
    const std::lock_guard guard(mutex_);
    if (epoch < highest_epoch_)
        return rejected(Cause::platform,
                        fmt::format("epoch {} is over: epoch {} has given orders", epoch, highest_epoch_));
    highest_epoch_ = epoch;
    return std::nullopt;
}

std::vector<OperationId> GangWatch::live() const {
    const std::lock_guard guard(mutex_);
    std::vector<OperationId> found;
    for (const auto& [operation, gang] : gangs_)
        if (!gang.over) found.push_back(operation);
    return found;
}

std::vector<OperationId> GangWatch::next_live(std::size_t most) {
    const std::lock_guard guard(mutex_);
    std::vector<OperationId> found;
    auto at = gangs_.upper_bound(last_looked_);
    for (std::size_t i = 0; i < gangs_.size() && found.size() < most; ++i, ++at) {
        if (at == gangs_.end()) at = gangs_.begin();
        last_looked_ = at->first;
        if (!at->second.over) found.push_back(at->first);
    }
    return found;
}

bool GangWatch::is_over(const OperationId& operation) const {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    return found == gangs_.end() || found->second.over;
}

bool GangWatch::is_lost(const OperationId& operation) const {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    return found != gangs_.end() && found->second.lost;
}

LaunchOrder GangWatch::order_of(const OperationId& operation) const {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    return found == gangs_.end() ? LaunchOrder{.operation = operation} : found->second.order;
}

std::optional<Ours> GangWatch::listed(const OperationId& operation, bool with_lost) const {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    if (found == gangs_.end() || (found->second.lost && !with_lost)) return std::nullopt;
    return Ours{.operation = operation,
                .epoch = found->second.order.gang.epoch,
                .ended = found->second.over,
                .waits = !found->second.over && !found->second.began};
}

bool GangWatch::wants_news() const {
    const std::lock_guard guard(mutex_);
    return std::any_of(gangs_.begin(), gangs_.end(), [](const auto& each) {
        return !each.second.over && (each.second.pending || each.second.gone || each.second.ends);
    });
}

std::vector<Fact> GangWatch::facts_after(std::uint64_t cursor, std::size_t most, Clock::time_point until) {
    std::unique_lock lock(mutex_);
    for (;;) {
        // Another driver's cursor: its facts may have been others, so all are told again.
        const bool foreign = cursor < first_cursor_ || cursor >= next_cursor_;
        std::vector<Fact> facts;
        for (auto it = foreign ? facts_.begin() : facts_.upper_bound(cursor); it != facts_.end() && facts.size() < most;
             ++it)
            facts.push_back(it->second);
        if (!facts.empty() || std::exchange(woken_, false)) return facts;
        if (changed_.wait_until(lock, until) == std::cv_status::timeout) return facts;
    }
}

void GangWatch::wake() {
    const std::lock_guard guard(mutex_);
    woken_ = true;
    changed_.notify_all();
}

void GangWatch::look_at(const OperationId& operation, const Queue* queue, bool launching) {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    if (found == gangs_.end() || found->second.over) return;
    Gang& gang = found->second;
    if (queue != nullptr && !launching && waits_as_before(gang, *queue)) return;
    const std::string folder = folder_of(operation);
    struct stat now {};
    if (::stat((folder + "/status.json").c_str(), &now) == 0 &&
        (queue != nullptr || now.st_ino != gang.seen.st_ino || now.st_mtim.tv_nsec != gang.seen.st_mtim.tv_nsec ||
         now.st_mtim.tv_sec != gang.seen.st_mtim.tv_sec)) {
        gang.seen = now;
        if (auto status = read_gang_status(folder)) take_status(gang, std::move(*status), queue);
    }
    if (!gang.over && queue != nullptr) hold_against(gang, *queue, launching);
}

void GangWatch::take_status(Gang& gang, GangStatus status, const Queue* queue) {
    const std::string folder = folder_of(gang.order.operation);
    gang.pending = false;
    const bool outside = path_exists(folder + "/outside");
    gang.ends = outside;
    // Ends of ranks have the same cause as that of the gang, which is not known yet.
    if (outside && status.state != GangState::ended) return;
    if (outside) {
        // Slurm knows why, as soon as it says that the job is over.
        const auto jobs = queue == nullptr ? std::vector<const Job*>() : queue->of(gang.order.operation);
        if (!gang.gone) gang.gone = Clock::now();
        const bool told = !jobs.empty() && jobs.front()->phase == JobPhase::over;
        const bool forgot = queue != nullptr && jobs.empty();
        if (!told && !forgot) {
            gang.seen = {};
            return;
        }
        status = with_cause_of_slurm(folder, std::move(status),
                                     told ? jobs.front()->state : accounted_(gang.order.operation));
    }
    tell_of(gang, status);
}

void GangWatch::tell_of(Gang& gang, const GangStatus& status) {
    for (Fact& fact : untold_facts(gang.order, status, gang.told)) tell(std::move(fact));
    gang.began = status.started;
    gang.over = status.state == GangState::ended;
}

void GangWatch::tell(Fact fact) {
    fact.cursor = next_cursor_++;
    facts_.emplace(fact.cursor, std::move(fact));
    woken_ = true;
    changed_.notify_all();
}

void GangWatch::hold_against(Gang& gang, const Queue& queue, bool launching) {
    const OperationId operation = gang.order.operation;
    if ((launching_.contains(operation) && !launching) || (gang.submitted && *gang.submitted >= queue.asked_at)) return;
    gang.waits_as.reset();
    const std::string folder = folder_of(operation);
    const auto jobs = queue.of(operation);
    const std::string claim = claim_of(folder);
    if (!jobs.empty() && jobs.front()->phase != JobPhase::over) {
        gang.gone.reset();
        gang.lost = false;
        gang.pending = claim.empty() && jobs.front()->phase == JobPhase::pending;
        if (gang.pending) tell_wait(gang, *jobs.front());
        return;
    }
    const std::string number = jobs.empty() ? "" : jobs.front()->number;
    std::string state = jobs.empty() ? "" : jobs.front()->state;
    if (claim.empty() && jobs.empty()) {
        // Lost before it began, or forgotten after it was ended without having begun: the accounting knows.
        state = accounted_(operation);
        gang.lost = state.empty() || phase_of(state) != JobPhase::over;
        if (gang.lost) return;
    }
    if (!gang.gone) {
        gang.gone = Clock::now();
        if (jobs.empty()) gang.probe = ask_whether_it_lives(folder);
    }
    // A controller that forgot a job has its node end it, a while later: until then it is not over.
    if (const auto answer = read_answer(folder); gang.probe != 0 && answer && answer->number == gang.probe) {
        gang.gone.reset();
        return;
    }
    if (claim.empty()) {
        const auto won = make_claim(folder, std::string(kServerClaim));
        if (!won || !*won) return;  // it began after all: the next look tells
    } else if (Clock::now() < *gang.gone + (jobs.empty() ? duration_of(settle_s_) : kLastWord)) {
        return;
    } else if (state.empty()) {
        state = accounted_(operation);
    }
    tell_of(gang, bury(folder, gang.order, !claim.empty() && claim != kServerClaim, state, number));
}

void GangWatch::take_room(Room room) {
    const std::lock_guard guard(mutex_);
    room_ = std::move(room);
    for (auto& [operation, gang] : gangs_) gang.waits_as.reset();
}

// Of thousands that wait nearly all do so for the same reason as a second ago: neither their files nor the table of
// reasons are read again.
bool GangWatch::waits_as_before(const Gang& gang, const Queue& queue) const {
    if (!gang.pending || !gang.waits_as) return false;
    const auto jobs = queue.of(gang.order.operation);
    // A start that was expected and has passed is another thing to tell.
    return jobs.size() == 1 && *jobs.front() == *gang.waits_as &&
           (gang.waits_as->starts_s == 0 || gang.waits_as->starts_s > wall_clock_us() / 1'000'000);
}

std::chrono::seconds GangWatch::pause_of_numbers() const {
    return std::max(kEtaPause, std::chrono::seconds(static_cast<std::int64_t>(gangs_.size() / kNumbersASecond)));
}

void GangWatch::tell_wait(Gang& gang, const Job& job) {
    const PendingReason reason = read_reason(job.reason);
    const auto now = Clock::now();
    const std::int64_t wall_s = wall_clock_us() / 1'000'000;
    const std::int64_t starts_s = job.starts_s > wall_s ? job.starts_s : 0;
    const std::string& why = job.state == "CONFIGURING" ? job.state : job.reason;
    const bool other_reason = gang.wait_reason != why || gang.wait_cause != reason.cause;
    // The first guess comes a round after the reason.
    const bool other_eta = std::abs(starts_s - gang.wait_starts_s) > 60;
    const std::string numbers = numbers_of(job, room_);
    const bool other_numbers = numbers != gang.wait_numbers;
    if (!other_reason && !other_eta && !other_numbers) {
        gang.waits_as = job;
        return;
    }
    const bool first = (other_eta && gang.wait_starts_s == 0) || (other_numbers && gang.wait_numbers.empty());
    if (!other_reason && !first && now < gang.wait_told + pause_of_numbers()) return;
    gang.wait_reason = why;
    gang.wait_numbers = numbers;
    gang.wait_cause = reason.cause;
    gang.wait_starts_s = starts_s;
    gang.wait_told = now;
    tell({.kind = FactKind::waits,
          .operation = gang.order.operation,
          .epoch = gang.order.gang.epoch,
          .at_us = wall_clock_us(),
          .cause = reason.cause,
          .seconds = starts_s == 0 ? 0 : static_cast<double>(starts_s - wall_s),
          .detail = detail_of(job, numbers)});
}

}  // namespace stoker::slurm
