#include "deploy/engines/several.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/engine_node.h"
#include "deploy/engines/merged_facts.h"
#include "io/worker.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

// Others are waited for at the start so long, so that what they were told wrongly is told at once.
constexpr double kFirstLookS = 3;
constexpr auto kMakeAgain = std::chrono::seconds(10), kObserveFor = std::chrono::seconds(10);
constexpr auto kAfterFault = std::chrono::seconds(1);
// One that did not answer the last time is not waited for longer than this, while the others wait with it.
constexpr double kOnProbationS = 2;
// Operations of which it is remembered where they went. Those that were released go first.
constexpr std::size_t kMostOwners = 100'000;

// One of them. What waits for it owns it, so that a call that is left behind finds it.
class Member {
public:
    Member(OneOfSeveral from, bool is_first)
        : name(std::move(from.name)), kind(std::move(from.kind)), first(is_first), make_(std::move(from.make)) {}

    const std::string name, kind;
    const bool first;

    std::shared_ptr<Driver> driver() const {
        const std::lock_guard guard(mutex_);
        return driver_;
    }
    std::string fault() const {
        const std::lock_guard guard(mutex_);
        return fault_;
    }
    void answered() { set_fault({}); }
    void failed(const Error& error) { set_fault(error.message()); }
    void set_fault(std::string fault) {
        const std::lock_guard guard(mutex_);
        fault_ = std::move(fault);
    }

    // Makes the driver if there is none.
    Status make() {
        const std::lock_guard one(making_);  // one that was left behind may still be at it
        if (driver()) return done();
        auto made = make_();
        const std::lock_guard guard(mutex_);
        if (!made) {
            fault_ = made.error().message();
            return made.error();
        }
        driver_ = std::move(*made);
        fault_.clear();
        return done();
    }

    Deadline patience(Deadline deadline) const {
        return fault().empty() ? deadline : std::min(deadline, after(kOnProbationS));
    }
    Outcome away() const {
        return {.certainty = Certainty::unknown,
                .cause = Cause::engine_away,
                .detail = fmt::format("the engine {} does not answer: {}", name, fault())};
    }
    Error away_error() const {
        return Error(ErrorKind::unavailable, fmt::format("the engine {} does not answer: {}", name, fault()));
    }

    std::string outside(const std::string& node) const {
        return first || node.empty() ? node : node_of_engine(node, name);
    }
    std::string inside(const std::string& node) const { return first ? node : node_on_engine(node, name); }
    bool has(const std::string& node) const { return !first && inside(node) != node; }

private:
    const std::function<Result<std::unique_ptr<Driver>>()> make_;
    std::mutex making_;
    mutable std::mutex mutex_;  // guards what follows
    std::shared_ptr<Driver> driver_;
    std::string fault_ = "it has not been reached yet";
};
using MemberPtr = std::shared_ptr<Member>;

class SeveralEngines final : public Driver {
public:
    explicit SeveralEngines(std::vector<OneOfSeveral> engines)
        : facts_(std::make_shared<MergedFacts>(engines.size())),
          making_(std::make_shared<WithinDeadline>(
              WithinDeadline::Options{.name = "stoker-engine", .most = engines.size() + 1})) {
        for (OneOfSeveral& each : engines)
            members_.push_back(std::make_shared<Member>(std::move(each), members_.empty()));
    }
    ~SeveralEngines() override {
        facts_->stop();
        making_->interrupt();
        for (const MemberPtr& each : members_)
            if (const auto driver = each->driver()) driver->interrupt();
        for (std::thread& each : observers_) each.join();
    }

    Status start() {
        TRY_VOID(members_.front()->make());
        std::mutex mutex;
        std::optional<Error> wrong;
        on_each([&](const MemberPtr& member) {
            const auto made = making_->run<Status>(after(kFirstLookS), [member] { return member->make(); });
            if (!made || *made) return;
            // What no waiting mends.
            const ErrorKind kind = made->error().kind();
            if (kind != ErrorKind::invalid && kind != ErrorKind::not_found && kind != ErrorKind::unsupported) return;
            const std::lock_guard guard(mutex);
            Error error = made->error();
            if (!wrong) wrong = std::move(error).while_doing("starting the engine " + member->name);
        });
        if (wrong) return *wrong;
        for (std::size_t i = 0; i < members_.size(); ++i)
            observers_.push_back(masked_thread("stoker-facts", [this, i] { follow(i); }));
        return done();
    }

    Capabilities capabilities() const override { return members_.front()->driver()->capabilities(); }

    std::vector<EngineState> engines() const override {
        std::vector<EngineState> list;
        for (const MemberPtr& each : members_) {
            const auto driver = each->driver();
            list.push_back({.name = each->name,
                            .kind = each->kind,
                            .can = driver ? driver->capabilities() : Capabilities(),
                            .fault = each->fault()});
        }
        return list;
    }

    void belongs(const OperationId& launched, const std::string& engine) override {
        if (const MemberPtr member = named(engine)) remember(launched, member, true);
    }

    Result<std::vector<NodeInfo>> discover(Deadline deadline) override {
        std::vector<std::vector<NodeInfo>> found(members_.size());
        on_each([&](const MemberPtr& member) {
            const auto driver = member->driver();
            if (!driver) return;
            auto nodes = driver->discover(member->patience(deadline));
            if (!nodes) return member->failed(nodes.error());
            member->answered();
            found[index_of(member)] = std::move(*nodes);
        });
        std::vector<NodeInfo> all;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            for (NodeInfo& node : found[i]) {
                node.name = members_[i]->outside(node.name);
                node.engine = members_[i]->name;
                all.push_back(std::move(node));
            }
        }
        return all;
    }

    // By those that run images; another one never gets a run that has one.
    Outcome prepare(const std::string& image, Deadline deadline) override {
        std::vector<std::optional<Outcome>> outcomes(members_.size());
        on_each([&](const MemberPtr& member) {
            const auto driver = member->driver();
            if (driver && driver->capabilities().runs_images)
                outcomes[index_of(member)] = driver->prepare(image, member->patience(deadline));
        });
        // A run may go to any of them: it is ready when it is on all that can have it.
        std::optional<Outcome> best;
        for (const auto& each : outcomes)
            if (each && (!best || weight_of(each->certainty) > weight_of(best->certainty))) best = *each;
        return best.value_or(Outcome{Certainty::rejected, Cause::user_error, "no engine that answers runs images"});
    }

    HealthReport check(const std::string& node, HealthLevel level, Deadline deadline) override {
        const MemberPtr member = member_of_node(node);
        const auto driver = member->driver();
        if (!driver) return {};
        HealthReport report = driver->check(member->inside(node), level, deadline);
        for (HealthCheck& each : report.checks) {
            each.node = member->outside(each.node);
            each.peer = member->outside(each.peer);
        }
        return report;
    }

    Outcome launch(const OperationId& operation, const GangSpec& asked, Deadline deadline) override {
        MemberPtr member = owner(operation);
        if (!member) member = asked.engine.empty() ? member_of(asked) : named(asked.engine);
        if (!member)
            return {Certainty::rejected, Cause::platform,
                    "there is no engine " + printable(asked.engine, 60) + " in the configuration of this server"};
        remember(operation, member, false);
        const auto driver = member->driver();
        if (!driver) return member->away();
        GangSpec gang = asked;
        gang.engine.clear();
        for (RankSpec& rank : gang.ranks) {
            for (const MemberPtr& other : members_)
                if (other != member && other->has(rank.node))
                    return {Certainty::rejected, Cause::platform,
                            fmt::format("a gang cannot be on {} and on {}", member->name, other->name)};
            rank.node = member->inside(rank.node);
        }
        std::vector<std::string> avoid;
        for (const std::string& node : gang.avoid)
            if (member_of_node(node) == member)
                avoid.push_back(member->inside(node));  // names without one are the first's
        gang.avoid = std::move(avoid);
        return told(member, driver->launch(operation, gang, deadline));
    }

    Outcome notify(const OperationId& launched, std::uint64_t epoch, int signal_number, Deadline deadline) override {
        const MemberPtr member = owner(launched);
        const auto driver = member ? member->driver() : nullptr;
        if (!member) return {Certainty::rejected, Cause::platform, "there is no gang " + launched.text()};
        if (!driver) return member->away();
        return told(member, driver->notify(launched, epoch, signal_number, deadline));
    }

    Outcome cancel(const OperationId& launched, std::uint64_t epoch, double grace_s, Deadline deadline) override {
        return wherever_it_is(launched,
                              [&](Driver& driver) { return driver.cancel(launched, epoch, grace_s, deadline); });
    }

    Outcome release(const OperationId& launched, Deadline deadline) override {
        Outcome outcome = wherever_it_is(launched, [&](Driver& driver) { return driver.release(launched, deadline); });
        if (outcome.certainty == Certainty::confirmed) {
            const std::lock_guard guard(mutex_);
            if (const auto found = owners_.find(launched); found != owners_.end()) found->second.released = true;
        }
        return outcome;
    }

    Status remove_checkpoint(const std::string& folder, Deadline deadline) override {
        return first_that_can<Status>([&](Driver& driver) { return driver.remove_checkpoint(folder, deadline); });
    }

    Result<OursListing> list_ours(const std::string& site, Deadline deadline) override {
        std::vector<std::optional<OursListing>> found(members_.size());
        on_each([&](const MemberPtr& member) {
            const auto driver = member->driver();
            if (!driver) return;
            auto listing = driver->list_ours(site, member->patience(deadline));
            if (!listing) return member->failed(listing.error());
            found[index_of(member)] = std::move(*listing);
        });
        OursListing all;
        std::map<OperationId, std::size_t> at;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            if (!found[i] || !found[i]->complete) all.silent.push_back(members_[i]->name);
            if (!found[i]) continue;
            for (const Ours& item : found[i]->items) {
                // Two engines may be two doors to one cluster: what went through the other one is not told twice.
                const MemberPtr mine = owner(item.operation);
                if (mine && mine != members_[i]) continue;
                if (!at.emplace(item.operation, i).second) continue;
                remember(item.operation, members_[i], false);
                all.items.push_back(item);
                all.items.back().engine = members_[i]->name;
            }
        }
        std::sort(all.items.begin(), all.items.end(),
                  [](const Ours& a, const Ours& b) { return a.operation < b.operation; });
        return all;
    }

    Result<std::vector<Fact>> observe(std::uint64_t cursor, Deadline deadline) override {
        return facts_->after(cursor, deadline, [this] { interrupt_members(); });
    }
    void interrupt() override {
        facts_->interrupt();
        interrupt_members();
    }

    // ---- questions
    Status look_for(const PrerequisitesSpec& wanted, const PrerequisitesPlace& place,
                    Deadline deadline) const override {
        const MemberPtr one = place.engine.empty() ? nullptr : named(place.engine);
        // It may go to any: what one of them has is there.
        Status first = Error(ErrorKind::unsupported, "no engine can tell what is there before the work runs");
        for (const MemberPtr& member : members_) {
            if (one && member != one) continue;
            const auto driver = member->driver();
            if (!driver) continue;
            Status met = driver->look_for(wanted, place, deadline);
            if (met) return met;
            // What one can tell goes before that another cannot.
            if (first.error().kind() == ErrorKind::unsupported) first = std::move(met);
        }
        return first;
    }
    Result<std::string> pin(const std::string& image, const ImagePlace& place, Deadline deadline) const override {
        // What this machine reaches says nothing of a cluster's registry.
        if (const MemberPtr one = place.engine.empty() ? nullptr : named(place.engine)) {
            const auto driver = one->driver();
            return driver ? driver->pin(image, place, deadline) : Questions::pin(image, place, deadline);
        }
        return first_that_can<Result<std::string>>([&](Driver& driver) { return driver.pin(image, place, deadline); });
    }
    Result<LogPiece> read_log(const LogPlace& log, const std::string& cursor, std::size_t most,
                              Deadline deadline) const override {
        return of_owner<Result<LogPiece>>(log.launched,
                                          [&](Driver& driver) { return driver.read_log(log, cursor, most, deadline); });
    }
    Result<LogPiece> tail_log(const LogPlace& log, std::size_t lines, std::size_t most,
                              Deadline deadline) const override {
        return of_owner<Result<LogPiece>>(log.launched,
                                          [&](Driver& driver) { return driver.tail_log(log, lines, most, deadline); });
    }
    Result<LogMatches> search_log(const LogPlace& log, const std::string& wanted, std::size_t most,
                                  Deadline deadline) const override {
        return of_owner<Result<LogMatches>>(
            log.launched, [&](Driver& driver) { return driver.search_log(log, wanted, most, deadline); });
    }
    Result<WorkFiles> list_files(const std::string& folder, std::size_t most, Deadline deadline) const override {
        return first_that_can<Result<WorkFiles>>(
            [&](Driver& driver) { return driver.list_files(folder, most, deadline); });
    }
    Result<FilePart> read_file(const std::string& folder, const std::string& path, std::int64_t from, std::size_t most,
                               Deadline deadline) const override {
        return first_that_can<Result<FilePart>>(
            [&](Driver& driver) { return driver.read_file(folder, path, from, most, deadline); });
    }
    Result<Measures> read_measures(const MeasuredGang& gang, const MeasureQuery& query,
                                   Deadline deadline) const override {
        const MemberPtr member = owner_or_first(gang.launched);
        const auto driver = member->driver();
        if (!driver) return member->away_error();
        MeasuredGang inside = gang;
        for (LiveRank& rank : inside.live) rank.node = member->inside(rank.node);
        auto measures = driver->read_measures(inside, query, deadline);
        if (measures)
            for (MeasureLine& line : measures->lines) line.node = member->outside(line.node);
        return measures;
    }
    Result<Checkpoints> list_checkpoints(const std::string& folder, Deadline deadline) const override {
        return first_that_can<Result<Checkpoints>>(
            [&](Driver& driver) { return driver.list_checkpoints(folder, deadline); });
    }

private:
    struct Owner {
        MemberPtr member;
        bool released = false;
    };

    // All at once, each on a thread of its own; each ends by its deadline, and so does this.
    template <class Call>
    void on_each(const Call& call) const {
        std::vector<std::thread> threads;
        for (std::size_t i = 1; i < members_.size(); ++i)
            threads.push_back(masked_thread("stoker-several", [&call, member = members_[i]] { call(member); }));
        call(members_.front());
        for (std::thread& each : threads) each.join();
    }
    std::size_t index_of(const MemberPtr& member) const {
        return static_cast<std::size_t>(std::find(members_.begin(), members_.end(), member) - members_.begin());
    }
    // What runs before anybody had several went to the first, which nobody named.
    MemberPtr named(const std::string& engine) const {
        if (engine.empty()) return members_.front();
        for (const MemberPtr& each : members_)
            if (each->name == engine) return each;
        return nullptr;
    }
    MemberPtr member_of_node(const std::string& node) const {
        for (const MemberPtr& each : members_)
            if (each->has(node)) return each;
        return members_.front();
    }
    MemberPtr member_of(const GangSpec& gang) const {
        return member_of_node(gang.ranks.empty() ? std::string() : gang.ranks.front().node);
    }

    void remember(const OperationId& operation, const MemberPtr& member, bool again) {
        const std::lock_guard guard(mutex_);
        if (again)
            owners_[operation] = {member, false};
        else
            owners_.try_emplace(operation, Owner{member, false});
        if (owners_.size() <= kMostOwners) return;
        const auto oldest =
            std::find_if(owners_.begin(), owners_.end(), [](const auto& each) { return each.second.released; });
        if (oldest != owners_.end()) owners_.erase(oldest);
    }
    MemberPtr owner(const OperationId& operation) const {
        const std::lock_guard guard(mutex_);
        const auto found = owners_.find(operation);
        return found == owners_.end() ? nullptr : found->second.member;
    }
    // Of what nobody remembers, the one that was there before there were several.
    MemberPtr owner_or_first(const OperationId& operation) const {
        const MemberPtr mine = owner(operation);
        return mine ? mine : members_.front();
    }

    static int weight_of(Certainty certainty) {
        return certainty == Certainty::unknown ? 2 : certainty == Certainty::rejected ? 0 : 1;
    }
    // Says whose words they are.
    static Outcome told(const MemberPtr& member, Outcome outcome) {
        if (outcome.certainty == Certainty::unknown && !outcome.detail.starts_with(member->name))
            outcome.detail = member->name + ": " + outcome.detail;
        return outcome;
    }

    // Of one that nobody knows, all have to say that nothing of it is left.
    template <class Call>
    Outcome wherever_it_is(const OperationId& launched, const Call& call) const {
        std::optional<Outcome> worst;
        const MemberPtr mine = owner(launched);
        for (const MemberPtr& member : members_) {
            if (mine && member != mine) continue;
            const auto driver = member->driver();
            Outcome outcome = driver ? told(member, call(*driver)) : member->away();
            if (!worst || worst->certainty == Certainty::confirmed) worst = std::move(outcome);
        }
        return *worst;
    }

    // Where it went; of one that nobody remembers, what the first says.
    template <class Answer, class Call>
    Answer of_owner(const OperationId& launched, const Call& call) const {
        const MemberPtr member = owner_or_first(launched);
        if (const auto driver = member->driver()) return call(*driver);
        return member->away_error();
    }
    template <class Answer, class Call>
    Answer first_that_can(const Call& call) const {
        std::optional<Answer> first;
        for (const MemberPtr& member : members_) {
            const auto driver = member->driver();
            if (!driver) continue;
            Answer answer = call(*driver);
            if (answer || answer.error().kind() != ErrorKind::unsupported) return answer;
            if (!first) first = std::move(answer);
        }
        return *first;
    }

    void interrupt_members() {
        for (const MemberPtr& each : members_)
            if (const auto driver = each->driver()) driver->interrupt();
    }

    // Its facts, for as long as this driver lives; and before that, itself.
    void follow(std::size_t source) {
        const MemberPtr member = members_[source];
        while (!member->driver()) {
            const auto made = making_->run<Status>(Clock::now() + kMakeAgain * 6, [member] { return member->make(); });
            if (made && *made) break;
            if (!facts_->pause(kMakeAgain)) return;
        }
        const auto driver = member->driver();
        while (const auto turn = facts_->next_turn(source)) {
            auto facts = driver->observe(turn->cursor, Clock::now() + kObserveFor);
            if (!facts) {
                member->failed(facts.error());
                if (!facts_->pause(kAfterFault)) return;
                continue;
            }
            for (Fact& fact : *facts) fact.node = member->outside(fact.node);
            facts_->add(source, *turn, std::move(*facts));
        }
    }

    const std::shared_ptr<MergedFacts> facts_;
    const std::shared_ptr<WithinDeadline> making_;
    std::vector<MemberPtr> members_;
    std::vector<std::thread> observers_;
    mutable std::mutex mutex_;  // guards what follows
    std::map<OperationId, Owner> owners_;
};

}  // namespace

Result<std::unique_ptr<Driver>> make_several(std::vector<OneOfSeveral> engines) {
    CHECK(!engines.empty());
    auto driver = std::make_unique<SeveralEngines>(std::move(engines));
    TRY_VOID(driver->start());
    return std::unique_ptr<Driver>(std::move(driver));
}

}  // namespace stoker
