// Looks after runs that hold machines and do nothing, by the rules under `idle:` of the configuration: tells whom it
// concerns, parks what can go on later (it is told to write a checkpoint, gives its places back, and is held), and ends
// what cannot, where that saves more than it may lose (govern/idle.h). What it did stands in the journal as the
// commands of part "idle"; whom it told and what somebody keeps stands in FOLDER/idle.json.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "govern/idle.h"
#include "io/log.h"
#include "observe/series.h"
#include "run/engine/engine.h"
#include "server/idle_scene.h"
#include "server/journal_notices.h"

namespace stoker {

// One run that is idle, kept or parked.
struct IdleRun {
    RunId run;
    std::uint32_t attempt = 0;
    std::int64_t since_us = 0, told_us = 0, kept_until_us = 0, parked_us = 0, next_us = 0;
    std::string kept_by{};
    int pauses = 0;
};
template <class V>
void fields(V& visit, IdleRun& v) {
    visit("attempt", v.attempt);
    visit("kept_by", v.kept_by);
    visit("kept_until_us", v.kept_until_us);
    visit("next_us", v.next_us);
    visit("parked_us", v.parked_us);
    visit("pauses", v.pauses);
    visit("run", v.run);
    visit("since_us", v.since_us);
    visit("told_us", v.told_us);
}

// As it was at the last look.
struct IdleStand {
    IdleRun run;
    std::string name{}, user{}, project{}, rule{}, why{};
    ProjectId project_id{};
    double cores = 0, wrong = 0, saved_s = 0, lost_s = 0;
    int gpus = 0;
    std::int64_t microusd_per_hour = 0;
};

struct IdleOptions {
    std::shared_ptr<SeriesStore> series{};
    std::function<std::shared_ptr<const PriceBook>()> prices{};  // none: nothing has a price
    std::function<void(std::vector<JournalNotice>)> tell{};      // whom a notice names; none: nobody
    std::vector<std::string> mails{};                            // told of each, beside the run's own `notify`
    std::shared_ptr<Log> log{};
    std::function<std::int64_t()> wall_us{};  // for tests; empty: this machine's
    bool by_itself = true;                    // looks again and again; else when it is told to
};

class IdleGuard {
public:
    // The engine outlives it.
    IdleGuard(Engine& engine, IdleOptions options);
    ~IdleGuard();
    IdleGuard(const IdleGuard&) = delete;
    IdleGuard& operator=(const IdleGuard&) = delete;

    void stop();  // ends a look that is under way; nobody is told or taken anything afterwards
    void use(IdleRules rules);
    IdleRules rules() const;
    void look();  // once
    std::vector<IdleStand> stands() const;
    // What it made of a run that waits: none, it did nothing to it.
    std::optional<IdleStand> parked(RunId run) const;
    // Leaves it alone until then; 0: no longer. conflict: no rule is about it, or it is over; invalid: longer than its
    // rule lets anybody.
    Status keep(RunId run, std::int64_t for_s, const std::string& who);

private:
    std::optional<IdleScene> see(const IdleRules& rules) const;
    void look_at(const WatchedRun& watched, IdleRun& memory, std::int64_t now_us, std::vector<IdleStand>& stands);
    void look_at_parked(const IdleScene& scene, std::int64_t now_us, std::vector<IdleStand>& stands);
    void tell(const WatchedRun& watched, const IdleRun& memory, const IdleVerdict& verdict, const std::string& what,
              std::int64_t now_us) const;
    void say(RunId run, std::string_view act, const std::string& why) const;
    void load();
    void save();
    void run();

    Engine& engine_;
    const IdleOptions options_;
    const std::string file_;

    mutable std::mutex look_mutex_;  // one look at a time; guards what follows
    std::map<RunId, IdleRun> memory_;
    std::string saved_;

    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    IdleRules rules_;
    std::vector<IdleStand> stands_;
    bool stopping_ = false, fresh_ = false;
    std::thread thread_;
};

}  // namespace stoker
