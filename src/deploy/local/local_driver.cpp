// Longer than 500 lines because it is the whole contract of an engine, each function of which a reader looks for here.
#include "deploy/local/local_driver.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "base/text.h"
#include "deploy/local/box.h"
#include "deploy/local/control.h"
#include "deploy/local/gang_end.h"
#include "deploy/local/image_store.h"
#include "deploy/local/launcher.h"
#include "deploy/local/local_answers.h"
#include "deploy/local/node_check.h"
#include "deploy/local/rank_measures.h"
#include "io/machine/network_namespace.h"
#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A keeper that lives and does not answer for this long is suspect.
constexpr auto kAnswerLimit = std::chrono::seconds(5);
// For burying a gang on the way, and for the last steps of a keeper; what does not end in this time is looked at again.
constexpr auto kBurialLimit = std::chrono::seconds(1);
// A machine that swaps takes its time to take processes apart.
constexpr auto kReleaseLimit = std::chrono::seconds(5);
// When the kernel's news are missed (no inotify left), a look at everything finds them.
constexpr int kLookEveryMs = 1000;
constexpr std::size_t kMostFacts = 1000;
// No operation releases these.
constexpr std::size_t kMostNoticeFacts = 4096;

class LocalDriver final : public LocalAnswers<Driver> {
public:
    LocalDriver(LocalOptions options, CgroupHost cgroups, TreeKind tree)
        : options_(std::move(options)),
          run_folder_(options_.folder + "/run"),
          cgroups_(std::move(cgroups)),
          tree_(tree),
          images_({.folder = options_.folder + "/images"}),
          checks_(options_.check),
          wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
          changes_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
          // Cursors of an earlier driver on this folder are lower, whatever it told; see observe().
          first_cursor_(static_cast<std::uint64_t>(wall_clock_us())),
          next_cursor_(first_cursor_) {
        options_.offer->wake_with([this] { wake(); });
    }
    ~LocalDriver() override { options_.offer->wake_with({}); }

    // Finds what an earlier driver left.
    Status adopt() {
        std::error_code code;
        fs::create_directories(run_folder_, code);
        ::chmod(run_folder_.c_str(), 0700);  // orders hold environments, and those may hold secrets
        if (is_other_user(options_.runs_as)) open_the_way(options_.folder);
        std::vector<std::string> names;
        for (fs::directory_iterator it(run_folder_, code), end; !code && it != end; it.increment(code))
            names.push_back(it->path().filename().string());
        if (code) return Error(ErrorKind::unavailable, "cannot use the folder " + run_folder_ + ": " + code.message());
        for (const std::string& name : names) {
            if (name.starts_with(kGone)) remove_tree(run_folder_ + "/" + name);
            const auto operation = OperationId::parse(name);
            if (operation && !remove_if_never_begun(run_folder_ + "/" + name)) watch(*operation);
        }
        images_.remove_leftovers();
        return done();
    }

    Capabilities capabilities() const override {
        Capabilities result{.gang = true,
                            .follows_logs = true,
                            .limits_memory = tree_ == TreeKind::cgroup && cgroups_.limits_memory(),
                            .isolates_devices = isolates_devices(),
                            .runs_images = why_no_images(tree_).empty(),
                            .kills_trees = tree_ != TreeKind::process_group,
                            .signal_notice_s = 86400,
                            .ranks_here = true,
                            .runs_as = is_other_user(options_.runs_as) ? options_.runs_as : "server"};
        switch (tree_) {
            case TreeKind::cgroup: result.detail = cgroups_.text(); break;
            case TreeKind::pid_namespace: result.detail = "pid namespace of each gang; no limits"; break;
            case TreeKind::process_group:
                result.detail = "process groups, and what descends from them while the keeper lives; no limits";
        }
        if (options_.isolate_network) result.detail += "; work reaches no network";
        return result;
    }

    Result<std::vector<NodeInfo>> discover(Deadline) override { return *nodes(); }

    Outcome prepare(const std::string& image, Deadline) override {
        if (const std::string why = why_no_images(tree_); !why.empty()) return rejected(Cause::user_error, why);
        Outcome outcome = images_.prepare(image);
        if (outcome.certainty == Certainty::confirmed) images_.tidy(bundles_in_use());
        return outcome;
    }

    HealthReport check(const std::string& name, HealthLevel level, Deadline deadline) override {
        if (is_over(deadline)) return not_looked_at(name);
        const auto nodes = this->nodes();
        for (const NodeInfo& node : *nodes)
            if (node.name == name) return checks_.check(node, level, deadline);
        return {};
    }

    Outcome launch(const OperationId& operation, const GangSpec& asked, Deadline deadline) override {
        GangSpec gang = asked;
        const std::string digest = digest_of_image(asked.image);
        if (!digest.empty()) {
            gang.image = images_.bundle_of(asked.image);
            if (gang.image.empty()) {
                const Outcome state = prepare(asked.image, deadline);
                return state.certainty == Certainty::rejected
                           ? state
                           : rejected(Cause::platform, "the image " + asked.image + " is not here: " + state.detail);
            }
        }
        const auto nodes = this->nodes();
        if (Outcome sound = check_gang(operation, gang, *nodes, tree_); sound.certainty == Certainty::rejected)
            return sound;
        {
            const std::lock_guard guard(mutex_);
            if (gang.epoch < highest_epoch_)
                return rejected(Cause::platform, "epoch " + std::to_string(gang.epoch) + " is over: epoch " +
                                                     std::to_string(highest_epoch_) + " has launched");
            highest_epoch_ = gang.epoch;
            if (!launching_.insert(operation).second) return unknown("another thread is launching it");
        }
        auto user = user_of_runs(options_.runs_as, asked.project);
        if (!user) return rejected(Cause::platform, user.error().message());
        LaunchOrder order{.operation = operation,
                          .gang = gang,
                          .tree = tree_,
                          .cgroups = cgroups_,
                          .max_processes = options_.max_processes,
                          .isolate_devices = isolates_devices(),
                          .own_network = options_.isolate_network,
                          .image_digest = digest,
                          // An image names its user, and nothing of the server is to be seen in there.
                          .user = gang.image.empty() ? *user : std::nullopt,
                          .status_retry_s = options_.status_retry_s};
        for (const RankSpec& rank : gang.ranks) order.device_files.push_back(files_of_devices(*nodes, rank));
        // What a root inside of an image leaves is nobody else's.
        if (*user && !gang.image.empty() && !gang.log_folder.empty())
            ::chmod(fs::path(gang.log_folder).parent_path().c_str(), 0700);
        Outcome outcome = launch_gang(folder_of(operation), std::move(order), options_.keeper, deadline);
        {
            const std::lock_guard guard(mutex_);
            launching_.erase(operation);
        }
        if (path_exists(folder_of(operation))) {
            watch(operation);
            refresh(operation);
        }
        wake();
        return outcome;
    }

    Outcome notify(const OperationId& launched, std::uint64_t epoch, int signal_number, Deadline deadline) override {
        if (!path_exists(folder_of(launched))) return rejected(Cause::platform, "there is no gang " + launched.text());
        watch(launched);
        auto answer = order(launched, {.verb = ControlVerb::signal, .epoch = epoch, .signal = signal_number}, deadline);
        if (!answer && refresh(launched, deadline) == GangState::ended)
            return rejected(Cause::platform, launched.text() + " has ended");
        if (!answer) return unknown(answer.error().message());
        return answer->ok ? confirmed(answer->detail) : rejected(Cause::platform, answer->detail);
    }

    Outcome cancel(const OperationId& launched, std::uint64_t epoch, double grace_s, Deadline deadline) override {
        if (!path_exists(folder_of(launched))) return confirmed("there is nothing of " + launched.text());
        watch(launched);
        if (refresh(launched, deadline) == GangState::ended) return confirmed();
        const auto answer_by = std::min(deadline, Clock::now() + kAnswerLimit);
        const ControlRequest stop{.verb = ControlVerb::stop, .epoch = epoch, .grace_s = std::max(0.0, grace_s)};
        for (;;) {
            auto client = ControlClient::connect(folder_of(launched), answer_by);
            auto answer = client ? client->ask(stop, answer_by) : Result<ControlAnswer>(client.error());
            if (answer && !answer->ok) return rejected(Cause::platform, answer->detail);
            if (answer) client->wait_for_end(deadline);
            if (refresh(launched, deadline) == GangState::ended) {
                wake();
                return confirmed();
            }
            // A keeper that has just begun does not listen yet; one that ends does not any more.
            const int wait = milliseconds_until(answer_by, 10);
            if (!answer && wait == 0) {
                const std::string trouble = keeper_trouble(folder_of(launched));
                return trouble.empty() ? unknown("suspect: " + answer.error().message()) : in_trouble(trouble);
            }
            if (answer && milliseconds_until(deadline) == 0) break;
            ::poll(nullptr, 0, wait);
        }
        const auto status = read_gang_status(folder_of(launched));
        if (const std::string trouble = keeper_trouble(folder_of(launched)); !trouble.empty())
            return in_trouble(trouble);
        return unknown("told to end, and still there" + (status ? ": " + status->detail : std::string()));
    }

    Outcome release(const OperationId& launched, Deadline deadline) override {
        const std::string folder = folder_of(launched);
        if (path_exists(folder)) {
            watch(launched);
            if (refresh(launched, deadline) != GangState::ended)
                return rejected(Cause::platform, launched.text() + " still runs");
            const auto by = std::min(deadline, Clock::now() + kReleaseLimit);
            // It writes nothing after its last status, and leaves.
            for (const UniqueFd keeper = find_keeper(folder); !has_ended(keeper) && milliseconds_until(by) > 0;)
                ::poll(nullptr, 0, 1);
            if (const auto order = read_launch_order(folder); order && order->tree == TreeKind::cgroup) {
                while (!remove_groups(*order)) {
                    if (milliseconds_until(by) == 0)
                        return unknown("a control group of " + launched.text() + " is still in use");
                    ::poll(nullptr, 0, 5);
                }
            }
            if (!remove_gang_folder(folder)) return unknown("cannot remove " + folder + ": " + std::strerror(errno));
        }
        const std::lock_guard guard(mutex_);
        std::erase_if(facts_, [&](const auto& each) { return each.second.operation == launched; });
        if (const auto it = gangs_.find(launched); it != gangs_.end()) {
            if (it->second->change_watch >= 0) ::inotify_rm_watch(changes_.get(), it->second->change_watch);
            gangs_.erase(it);
        }
        return confirmed();
    }

    Status remove_checkpoint(const std::string& folder, Deadline) override {
        std::error_code code;
        fs::remove_all(folder, code);
        if (!code) return done();
        return Error(ErrorKind::unavailable, "cannot remove " + printable(folder) + ": " + code.message());
    }

    Result<OursListing> list_ours(const std::string& site, Deadline deadline) override {
        OursListing listing;
        std::error_code code;
        for (fs::directory_iterator it(run_folder_, code), end; !code && it != end; it.increment(code)) {
            const auto operation = OperationId::parse(it->path().filename().string());
            if (!operation || (!site.empty() && operation->site != site)) continue;
            watch(*operation);
            const GangState state = refresh(*operation, deadline);
            std::uint64_t epoch = 0;
            {
                const std::lock_guard guard(mutex_);
                if (const auto gang = gangs_.find(*operation); gang != gangs_.end())
                    epoch = gang->second->order.gang.epoch;
            }
            listing.items.push_back({.operation = *operation, .epoch = epoch, .ended = state == GangState::ended});
        }
        if (code) return Error(ErrorKind::unavailable, "cannot list " + run_folder_ + ": " + code.message());
        std::sort(listing.items.begin(), listing.items.end(),
                  [](const Ours& a, const Ours& b) { return a.operation < b.operation; });
        return listing;
    }

    Result<std::vector<Fact>> observe(std::uint64_t cursor, Deadline deadline) override {
        auto look_at_all = Clock::time_point{};
        for (;;) {
            if (Clock::now() >= look_at_all) {
                for (const OperationId& operation : unfinished()) refresh(operation);
                look_at_all = Clock::now() + std::chrono::milliseconds(kLookEveryMs);
            }
            pass_on_notices();
            std::vector<Fact> facts;
            {
                const std::lock_guard guard(mutex_);
                // Another driver's cursor: its facts may have been others, so all are told again.
                const bool foreign = cursor < first_cursor_ || cursor >= next_cursor_;
                for (auto it = foreign ? facts_.begin() : facts_.upper_bound(cursor);
                     it != facts_.end() && facts.size() < kMostFacts; ++it)
                    facts.push_back(it->second);
            }
            if (!facts.empty() || interrupted_.exchange(false) || Clock::now() >= deadline) return facts;
            for (const OperationId& operation : wait_for_changes(std::min(deadline, look_at_all))) refresh(operation);
        }
    }

    Result<Measures> read_measures(const MeasuredGang& gang, const MeasureQuery& query, Deadline) const override {
        return measures_.read(gang, query);
    }

    void interrupt() override {
        interrupted_ = true;
        checks_.interrupt();
        wake();
    }

private:
    struct Gang {
        LaunchOrder order;  // without arguments and environments
        std::shared_ptr<UniqueFd> keeper;
        int change_watch = -1;
        Told told;
        GangState state = GangState::starting;
    };

    std::shared_ptr<const std::vector<NodeInfo>> nodes() {
        auto offered = options_.offer->get();
        const std::lock_guard guard(nodes_mutex_);
        if (offered != offered_) {
            nodes_ = std::make_shared<const std::vector<NodeInfo>>(complete_nodes(*offered));
            offered_ = std::move(offered);
        }
        return nodes_;
    }

    // The machine goes, and so does every node that is a part of it.
    void pass_on_notices() {
        std::uint64_t seen = 0;
        {
            const std::lock_guard guard(mutex_);
            seen = notices_seen_;
        }
        const auto notices = options_.offer->notices_after(seen);
        if (notices.empty()) return;
        const auto all = nodes();
        const std::lock_guard guard(mutex_);
        for (const MachineNotice& notice : notices) {
            if (notice.number <= notices_seen_) continue;
            notices_seen_ = notice.number;
            for (const NodeInfo& node : *all) {
                const std::uint64_t cursor = next_cursor_++;
                facts_.emplace(cursor, Fact{.cursor = cursor,
                                            .kind = FactKind::notice,
                                            .at_us = notice.at_us,
                                            .seconds = notice.seconds,
                                            .node = node.name,
                                            .detail = notice.detail});
                notice_cursors_.push_back(cursor);
            }
            for (; notice_cursors_.size() > kMostNoticeFacts; notice_cursors_.pop_front())
                facts_.erase(notice_cursors_.front());
        }
    }

    bool isolates_devices() const {
        return options_.isolate_devices && tree_ == TreeKind::cgroup && cgroups_.limits_devices();
    }

    std::string folder_of(const OperationId& operation) const { return run_folder_ + "/" + operation.text(); }

    void wake() {
        const std::uint64_t one = 1;
        (void)(::write(wake_.get(), &one, sizeof one) > 0);
    }

    Result<ControlAnswer> order(const OperationId& launched, const ControlRequest& request, Deadline deadline) {
        const auto by = std::min(deadline, Clock::now() + kAnswerLimit);
        TRY(ControlClient client, ControlClient::connect(folder_of(launched), by));
        return client.ask(request, by);
    }

    void watch(const OperationId& operation) {
        const std::lock_guard guard(mutex_);
        if (gangs_.contains(operation)) return;
        auto gang = std::make_shared<Gang>();
        gang->order.operation = operation;
        gang->change_watch = ::inotify_add_watch(changes_.get(), folder_of(operation).c_str(), IN_MOVED_TO);
        gangs_[operation] = std::move(gang);
    }

    std::vector<std::string> bundles_in_use() {
        const std::lock_guard guard(mutex_);
        std::vector<std::string> bundles;
        for (const auto& [operation, gang] : gangs_)
            if (gang->state != GangState::ended && !gang->order.gang.image.empty())
                bundles.push_back(gang->order.gang.image);
        std::sort(bundles.begin(), bundles.end());
        bundles.erase(std::unique(bundles.begin(), bundles.end()), bundles.end());
        return bundles;
    }

    std::vector<OperationId> unfinished() {
        const std::lock_guard guard(mutex_);
        std::vector<OperationId> operations;
        for (const auto& [operation, gang] : gangs_)
            if (gang->state != GangState::ended) operations.push_back(operation);
        return operations;
    }

    // Reads the folder, buries the gang when its keeper is gone, and remembers the facts that are new.
    GangState refresh(const OperationId& operation, Deadline deadline = Deadline::max()) {
        std::shared_ptr<Gang> gang;
        bool launching = false;
        LaunchOrder order;
        std::shared_ptr<UniqueFd> keeper;
        {
            const std::lock_guard guard(mutex_);
            const auto it = gangs_.find(operation);
            if (it == gangs_.end()) return GangState::starting;
            gang = it->second;
            if (gang->state == GangState::ended) return gang->state;
            launching = launching_.contains(operation);
            keeper = gang->keeper;
            order = gang->order;
        }
        const std::string folder = folder_of(operation);
        const Deadline by = std::min(deadline, Clock::now() + kBurialLimit);
        if (order.gang.ranks.empty()) {
            if (auto read = read_launch_order(folder)) order = std::move(*read);
            for (RankSpec& rank : order.gang.ranks) rank = {.node = rank.node, .memory_bytes = rank.memory_bytes};
        }
        auto status = read_gang_status(folder);
        if (!launching && !(status && status->state == GangState::ended)) {
            if (!keeper) keeper = std::make_shared<UniqueFd>(find_keeper(folder));
            if (has_ended(*keeper)) {
                keeper.reset();
                if (auto buried = bury(folder, order, by)) status = std::move(buried);
            } else if (!status && status.error().kind() == ErrorKind::invalid) {
                // A status that cannot be read while the keeper lives: it knows.
                if (auto answer = this->order(operation, {}, by)) status = parse_gang_status(answer->status, folder);
            }
        }
        const std::lock_guard guard(mutex_);
        gang->keeper = keeper;
        gang->order = order;
        highest_epoch_ = std::max(highest_epoch_, order.gang.epoch);
        if (!status) return gang->state;
        if (!gangs_.contains(operation)) return status->state;  // released meanwhile
        for (Fact& fact : untold_facts(order, *status, gang->told)) {
            fact.cursor = next_cursor_++;
            facts_.emplace(fact.cursor, std::move(fact));
        }
        if (gang->state != GangState::ended) gang->state = status->state;
        return gang->state;
    }

    // The gangs of which the kernel has news: a new status, or the end of the keeper.
    std::set<OperationId> wait_for_changes(Deadline deadline) {
        std::vector<pollfd> waits = {{.fd = changes_.get(), .events = POLLIN, .revents = 0},
                                     {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
        std::vector<std::pair<OperationId, std::shared_ptr<UniqueFd>>> keepers;
        {
            const std::lock_guard guard(mutex_);
            for (const auto& [operation, gang] : gangs_) {
                if (!gang->keeper || gang->state == GangState::ended) continue;
                keepers.emplace_back(operation, gang->keeper);  // keeps the descriptor open while we wait
                waits.push_back({.fd = gang->keeper->get(), .events = POLLIN, .revents = 0});
            }
        }
        ::poll(waits.data(), waits.size(), milliseconds_until(deadline));
        std::set<OperationId> changed;
        for (std::size_t i = 0; i < keepers.size(); ++i)
            if (waits[i + 2].revents != 0) changed.insert(keepers[i].first);
        std::uint64_t count = 0;
        (void)(::read(wake_.get(), &count, sizeof count) > 0);
        alignas(inotify_event) std::array<char, 16384> block{};
        for (ssize_t got = 0; (got = ::read(changes_.get(), block.data(), block.size())) > 0;) {
            const std::lock_guard guard(mutex_);
            for (ssize_t at = 0; at < got;) {
                inotify_event event{};
                std::memcpy(&event, block.data() + at, sizeof event);
                at += static_cast<ssize_t>(sizeof event + event.len);
                for (const auto& [operation, gang] : gangs_)
                    if (gang->change_watch == event.wd) changed.insert(operation);
            }
        }
        return changed;
    }

    const LocalOptions options_;
    const std::string run_folder_;
    const CgroupHost cgroups_;
    const TreeKind tree_;
    ImageStore images_;
    NodeChecks checks_;
    mutable RankMeasures measures_;
    const UniqueFd wake_, changes_;
    std::mutex mutex_;  // guards what follows
    std::map<OperationId, std::shared_ptr<Gang>> gangs_;
    std::set<OperationId> launching_;
    std::map<std::uint64_t, Fact> facts_;  // by cursor
    const std::uint64_t first_cursor_;
    std::uint64_t next_cursor_, highest_epoch_ = 0, notices_seen_ = 0;
    std::deque<std::uint64_t> notice_cursors_;
    std::mutex nodes_mutex_;  // guards what follows: what the offer means, made when it changes
    std::shared_ptr<const std::vector<NodeInfo>> offered_, nodes_;
    std::atomic<bool> interrupted_ = false;
};

}  // namespace

Result<std::unique_ptr<Driver>> make_local_driver(LocalOptions options) {
    if (options.folder.empty()) return Error(ErrorKind::invalid, "the local engine needs a folder");
    options.folder = absolute_path(options.folder);
    if (!options.offer) options.offer = std::make_shared<NodeOffer>(std::move(options.nodes));
    CgroupHost cgroups = options.tree && *options.tree != TreeKind::cgroup ? CgroupHost() : discover_cgroups();
    TRY(const TreeKind tree, choose_tree(options.tree, cgroups));
    TRY_VOID(check_runs_as(options.runs_as, options.folder));
    if (options.isolate_network && !own_networks_work())
        return Error(ErrorKind::denied, "isolate_network: network namespaces cannot be made here", {},
                     "start the server as root (in a container with CAP_SYS_ADMIN), or leave isolate_network out");
    auto driver = std::make_unique<LocalDriver>(std::move(options), std::move(cgroups), tree);
    TRY_VOID(driver->adopt());
    return std::unique_ptr<Driver>(std::move(driver));
}

}  // namespace stoker
