#include "contract/queue_engine.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "io/process.h"

namespace stoker::contract {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(2);

Outcome say(Certainty certainty, Cause cause = Cause::none, std::string detail = {}) {
    detail.resize(std::min(detail.size(), kMaxDetailBytes));
    return {.certainty = certainty, .cause = cause, .detail = std::move(detail)};
}

}  // namespace

QueueController::QueueController(std::unique_ptr<Driver> nodes) : nodes_(std::move(nodes)) {
    thread_ = std::thread([this] { work(); });
}
QueueController::~QueueController() {
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
    }
    thread_.join();
}

void QueueController::work() {
    for (;;) {
        {
            const std::lock_guard guard(mutex_);
            if (stopping_) return;
            start_due();
        }
        std::this_thread::sleep_for(kLook);
    }
}

// Under the lock, so that a cancel meets a job that is pending or one that has started, and nothing in between.
void QueueController::start_due() {
    for (Job& job : jobs_) {
        if (job.started || now_s_ - job.submitted_s < wait_s_) continue;
        const auto offered = nodes_->discover(Clock::now() + std::chrono::seconds(1));
        if (!offered || offered->empty()) return;
        GangSpec gang = job.gang;
        for (std::size_t i = 0; i < gang.ranks.size(); ++i) gang.ranks[i].node = offered->at(i % offered->size()).name;
        if (only_ > 0) gang.ranks.resize(std::min(only_, gang.ranks.size()));
        only_ = 0;
        job.ranks = gang.ranks.size();
        job.started = nodes_->launch(*OperationId::parse(job.name), gang, Clock::now() + std::chrono::seconds(20));
    }
}

int QueueController::submit(const std::string& name, const GangSpec& gang) {
    const std::lock_guard guard(mutex_);
    jobs_.push_back({.number = next_, .name = name, .gang = gang, .submitted_s = now_s_});
    return next_++;
}
std::vector<QueueController::Job> QueueController::queue() const {
    const std::lock_guard guard(mutex_);
    return jobs_;
}
bool QueueController::cancel_pending(const std::string& name) {
    const std::lock_guard guard(mutex_);
    return std::erase_if(jobs_, [&](const Job& job) { return job.name == name && !job.started; }) > 0;
}
void QueueController::drop(const std::string& name) {
    const std::lock_guard guard(mutex_);
    std::erase_if(jobs_, [&](const Job& job) { return job.name == name; });
}
void QueueController::wait_for(double seconds) {
    const std::lock_guard guard(mutex_);
    wait_s_ = seconds;
}
void QueueController::advance(double seconds) {
    const std::lock_guard guard(mutex_);
    now_s_ += seconds;
}
double QueueController::now_s() const {
    const std::lock_guard guard(mutex_);
    return now_s_;
}
void QueueController::start_only(std::size_t ranks) {
    const std::lock_guard guard(mutex_);
    only_ = ranks;
}
void QueueController::forget_ended() {
    std::set<std::string> ended;
    if (const auto listing = nodes_->list_ours("", Clock::now() + std::chrono::seconds(5)))
        for (const Ours& each : listing->items)
            if (each.ended) ended.insert(each.operation.text());
    const std::lock_guard guard(mutex_);
    std::erase_if(jobs_, [&](const Job& job) {
        return job.started && (ended.contains(job.name) || job.started->certainty == Certainty::rejected);
    });
}
void QueueController::lose_pending() {
    const std::lock_guard guard(mutex_);
    std::erase_if(jobs_, [](const Job& job) { return !job.started; });
}
void QueueController::number_from(int number) {
    const std::lock_guard guard(mutex_);
    next_ = number;
}
void QueueController::lose_next_answer() {
    const std::lock_guard guard(mutex_);
    lose_answer_ = true;
}
bool QueueController::answer_is_lost() {
    const std::lock_guard guard(mutex_);
    return std::exchange(lose_answer_, false);
}
bool QueueController::accept_epoch(std::uint64_t epoch) {
    const std::lock_guard guard(mutex_);
    if (epoch < epoch_) return false;
    epoch_ = epoch;
    return true;
}

namespace {

// Keeps nothing that another one on the same controller would miss: what waits is in the controller's queue, how ranks
// ended is their own word on the nodes.
class QueueDriver final : public Driver {
public:
    explicit QueueDriver(std::shared_ptr<QueueController> controller)
        : controller_(std::move(controller)),
          first_cursor_(static_cast<std::uint64_t>(wall_clock_us())),
          next_cursor_(first_cursor_) {}

    Capabilities capabilities() const override {
        Capabilities can = nodes().capabilities();
        can.gang = false;  // a part may start
        can.queues = can.binds = true;
        can.ranks_here = false;
        can.keeps_history_s = 5;
        can.detail = "a queue over " + can.detail;
        return can;
    }
    Result<std::vector<NodeInfo>> discover(Deadline deadline) override { return nodes().discover(deadline); }
    HealthReport check(const std::string& node, HealthLevel level, Deadline deadline) override {
        return nodes().check(node, level, deadline);
    }

    Outcome launch(const OperationId& id, const GangSpec& gang, Deadline) override {
        if (!controller_->accept_epoch(gang.epoch)) return say(Certainty::rejected, Cause::platform, "an old epoch");
        for (const RankSpec& rank : gang.ranks)
            if (!rank.node.empty())
                return say(Certainty::rejected, Cause::user_error, "nobody but the engine chooses " + rank.node);
        // The engine may have forgotten it; what ran has left its word.
        if (!find_job(id) && !is_on_nodes(id)) controller_->submit(id.text(), gang);
        if (controller_->answer_is_lost()) return say(Certainty::unknown, Cause::none, "connection reset by peer");
        return say(Certainty::accepted, Cause::capacity_busy, "(Resources)");
    }
    Outcome notify(const OperationId& id, std::uint64_t epoch, int signal, Deadline deadline) override {
        if (!controller_->accept_epoch(epoch)) return say(Certainty::rejected, Cause::platform, "an old epoch");
        if (const auto job = find_job(id); job && !job->started)
            return say(Certainty::rejected, Cause::platform, "it has not started");
        return nodes().notify(id, epoch, signal, deadline);
    }
    Outcome cancel(const OperationId& id, std::uint64_t epoch, double grace_s, Deadline deadline) override {
        if (!controller_->accept_epoch(epoch)) return say(Certainty::rejected, Cause::platform, "an old epoch");
        if (controller_->cancel_pending(id.text())) return say(Certainty::confirmed);
        return nodes().cancel(id, epoch, grace_s, deadline);
    }
    Outcome release(const OperationId& id, Deadline deadline) override {
        const auto job = find_job(id);
        if (job && !job->started) return say(Certainty::rejected, Cause::platform, "it waits");
        Outcome outcome = nodes().release(id, deadline);
        if (outcome.certainty == Certainty::confirmed) {
            controller_->drop(id.text());
            const std::lock_guard guard(mutex_);
            std::erase_if(facts_, [&](const Fact& fact) { return fact.operation == id; });
        }
        return outcome;
    }

    Result<Measures> read_measures(const MeasuredGang& gang, const MeasureQuery& query,
                                   Deadline deadline) const override {
        return nodes().read_measures(gang, query, deadline);
    }

    Result<OursListing> list_ours(const std::string& site, Deadline deadline) override {
        TRY(OursListing listing, nodes().list_ours(site, deadline));
        for (const QueueController::Job& job : controller_->queue()) {
            const OperationId id = *OperationId::parse(job.name);
            if (!site.empty() && id.site != site) continue;
            const auto there = std::find_if(listing.items.begin(), listing.items.end(),
                                            [&](const Ours& each) { return each.operation == id; });
            if (there == listing.items.end()) {
                const bool failed = job.started && job.started->certainty == Certainty::rejected;
                listing.items.push_back({.operation = id, .epoch = job.gang.epoch, .ended = failed, .waits = !failed});
            } else {
                there->waits = !there->ended && job.ranks < job.gang.ranks.size();
            }
        }
        return listing;
    }

    Result<std::vector<Fact>> observe(std::uint64_t cursor, Deadline deadline) override {
        for (;;) {
            look();
            {
                const std::lock_guard guard(mutex_);
                const bool foreign = cursor < first_cursor_ || cursor >= next_cursor_;
                std::vector<Fact> after;
                for (const Fact& fact : facts_)
                    if (foreign || fact.cursor > cursor) after.push_back(fact);
                if (!after.empty() || interrupted_.exchange(false) || Clock::now() >= deadline) return after;
            }
            std::this_thread::sleep_for(kLook);
        }
    }
    void interrupt() override {
        interrupted_ = true;
        nodes().interrupt();
    }

private:
    Driver& nodes() const { return controller_->nodes(); }
    std::optional<QueueController::Job> find_job(const OperationId& id) const {
        for (QueueController::Job& job : controller_->queue())
            if (job.name == id.text()) return std::move(job);
        return std::nullopt;
    }
    bool is_on_nodes(const OperationId& id) const {
        const auto listing = nodes().list_ours(id.site, Clock::now() + std::chrono::seconds(5));
        return listing && std::any_of(listing->items.begin(), listing->items.end(),
                                      [&](const Ours& each) { return each.operation == id; });
    }

    void tell(Fact fact) {
        fact.cursor = next_cursor_++;
        facts_.push_back(std::move(fact));
    }

    // The queue first: a wait comes before the start that ends it.
    void look() {
        const auto jobs = controller_->queue();
        const std::lock_guard guard(mutex_);
        for (const QueueController::Job& job : jobs) {
            const OperationId id = *OperationId::parse(job.name);
            if (told_.insert(id).second)
                tell({.kind = FactKind::waits,
                      .operation = id,
                      .epoch = job.gang.epoch,
                      .at_us = wall_clock_us(),
                      .cause = Cause::capacity_busy,
                      .detail = "(Resources)"});
            // It failed before any rank had a process that could leave word.
            if (job.started && job.started->certainty == Certainty::rejected && ended_.insert(id).second)
                tell({.kind = FactKind::gang_ended,
                      .operation = id,
                      .epoch = job.gang.epoch,
                      .at_us = wall_clock_us(),
                      .cause = job.started->cause,
                      .detail = job.started->detail});
        }
        auto more = nodes().observe(nodes_cursor_, Clock::now());
        if (!more) return;
        for (Fact& fact : *more) {
            nodes_cursor_ = std::max(nodes_cursor_, fact.cursor);
            tell(std::move(fact));
        }
    }

    const std::shared_ptr<QueueController> controller_;
    std::mutex mutex_;  // guards what follows
    std::vector<Fact> facts_;
    std::set<OperationId> told_, ended_;
    std::uint64_t nodes_cursor_ = 0;
    const std::uint64_t first_cursor_;
    std::uint64_t next_cursor_;
    std::atomic<bool> interrupted_ = false;
};

}  // namespace

std::unique_ptr<Driver> make_queue_driver(std::shared_ptr<QueueController> controller) {
    return std::make_unique<QueueDriver>(std::move(controller));
}

}  // namespace stoker::contract
