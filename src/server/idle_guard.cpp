#include "server/idle_guard.h"

#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/codec.h"
#include "base/text.h"
#include "base/units.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/worker.h"
#include "server/log_events.h"
#include "server/owner_file.h"

namespace stoker {
namespace {

constexpr double kLongestLookS = 60, kNoRulesS = 3600;
constexpr std::size_t kMostFileBytes = 16u << 20;
constexpr std::string_view kIdleFile = "/idle.json";

struct IdleFile {
    std::int64_t format = 1;
    std::vector<IdleRun> items;
};
template <class V>
void fields(V& visit, IdleFile& v) {
    visit("format", v.format);
    visit("items", v.items);
}

std::string seconds_text(std::int64_t us) {
    return format_seconds(Seconds(static_cast<double>(std::max<std::int64_t>(0, us)) / 1e6));
}

std::string held_text(int gpus, double cores) {
    std::string text = gpus > 0 ? fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s") : "";
    if (cores > 0) text += fmt::format("{}{:g} CPU{}", text.empty() ? "" : " and ", cores, cores == 1 ? "" : "s");
    return text.empty() ? "its place" : text;
}

}  // namespace

IdleGuard::IdleGuard(Engine& engine, IdleOptions options)
    : engine_(engine), options_(std::move(options)), file_(engine.folder() + std::string(kIdleFile)) {
    load();
    if (options_.by_itself) thread_ = masked_thread("stoker-idle", [this] { run(); });
}

IdleGuard::~IdleGuard() {
    stop();
}

void IdleGuard::stop() {
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    const std::lock_guard looking(look_mutex_);  // that of somebody else
}

void IdleGuard::use(IdleRules rules) {
    {
        const std::lock_guard guard(mutex_);
        rules_ = std::move(rules);
        fresh_ = true;
    }
    changed_.notify_all();
}

IdleRules IdleGuard::rules() const {
    const std::lock_guard guard(mutex_);
    return rules_;
}

void IdleGuard::run() {
    while (true) {
        double pause_s = kNoRulesS;
        for (const IdleRule& rule : rules())
            if (rule.furthest() != IdleStep::leave)
                pause_s =
                    std::min({pause_s, kLongestLookS, std::max(0.5, std::min(rule.after_s(), rule.notice_s()) / 4)});
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::duration<double>(pause_s), [&] { return stopping_ || fresh_; });
        if (stopping_) return;
        fresh_ = false;
        lock.unlock();
        look();
    }
}

std::optional<IdleScene> IdleGuard::see(const IdleRules& rules) const {
    std::set<RunId> remembered;
    for (const auto& [id, memory] : memory_) remembered.insert(id);
    const auto prices = options_.prices ? options_.prices() : std::make_shared<const PriceBook>();
    auto scene = idle_scene(engine_, rules, remembered, *prices);
    if (scene && options_.wall_us) {
        scene->now_us = options_.wall_us();
        for (WatchedRun& each : scene->live) each.subject.until_us = scene->now_us;
    }
    return scene;
}

void IdleGuard::look() {
    const IdleRules rules = this->rules();
    const std::lock_guard looking(look_mutex_);
    {
        const std::lock_guard guard(mutex_);
        if (stopping_) return;
    }
    std::vector<IdleStand> stands;
    if (!rules.empty() || !memory_.empty()) {
        const auto scene = see(rules);
        if (!scene) return;
        for (auto at = memory_.begin(); at != memory_.end();)
            at = scene->there.contains(at->first) ? std::next(at) : memory_.erase(at);
        for (const WatchedRun& each : scene->live) {
            IdleRun& memory = memory_[each.run];
            if (memory.attempt != each.attempt) {
                // It was started anew: what was known of the try before is over, what somebody asked for is not.
                memory = {.run = each.run,
                          .attempt = each.attempt,
                          .kept_until_us = memory.kept_until_us,
                          .kept_by = memory.kept_by};
            }
            look_at(each, memory, scene->now_us, stands);
            if (memory.since_us == 0 && memory.kept_until_us <= scene->now_us) memory_.erase(each.run);
        }
        look_at_parked(*scene, scene->now_us, stands);
        save();
    }
    const std::lock_guard guard(mutex_);
    stands_ = std::move(stands);
}

void IdleGuard::look_at(const WatchedRun& watched, IdleRun& memory, std::int64_t now_us,
                        std::vector<IdleStand>& stands) {
    const IdleRule& rule = watched.rule;
    WasteSubject subject = watched.subject;
    // Most runs work: the last minutes tell.
    subject.samples = samples_of_run(options_.series.get(), watched,
                                     std::max(subject.running_us, now_us - kIdleEvidenceUs - kLongestPieceUs), now_us);
    auto since = idle_since(subject);
    if (since) {
        subject.samples = samples_of_run(options_.series.get(), watched, subject.running_us, now_us);
        since = idle_since(subject);
    }
    // It moved, or nobody knows: what was told is void. Points that are put together shift a beginning a little.
    if (!since || *since > memory.since_us + 2 * piece_us(rule)) memory.told_us = 0;
    memory.since_us = since.value_or(0);
    memory.pauses = since ? pauses_before(subject, (now_us - *since) / 2) : 0;

    const std::int64_t start = std::max<std::int64_t>(0, subject.running_us - subject.began_us),
                       worked = since ? std::max<std::int64_t>(0, *since - subject.running_us) : 0;
    const IdleFacts facts{.since_us = memory.since_us,
                          .pauses = memory.pauses,
                          .again_us = start + (watched.goes_on ? std::min(worked, watched.checkpoint_us) : worked),
                          .ends_us = watched.ends_us,
                          .goes_on = watched.goes_on,
                          .told_us = memory.told_us,
                          .kept_until_us = memory.kept_until_us};
    IdleVerdict verdict = judge_idle(rule, facts, now_us);
    switch (verdict.act) {
        case IdleAct::none: break;
        case IdleAct::tell: {
            memory.told_us = now_us;
            std::string next;
            if (rule.furthest() == IdleStep::tell || (rule.furthest() == IdleStep::park && !watched.goes_on))
                next = "Nothing is done to it.";
            else if (watched.goes_on)
                next = fmt::format(
                    "In {} it may be parked: told to write a checkpoint, its places given back; stoker "
                    "release {} lets it go on from there.",
                    format_seconds(Seconds(rule.notice_s())), watched.run.text());
            else
                next = fmt::format("In {} it may be ended, since it writes no checkpoints.",
                                   format_seconds(Seconds(rule.notice_s())));
            tell(watched, memory, verdict, next, now_us);
            say(watched.run, "told", verdict.why);
            break;
        }
        case IdleAct::park: {
            const Actor actor = Actor::part("idle");
            const auto held = call(engine_, {.what = HoldRun{watched.run, true}, .actor = actor});
            if (!held) break;
            const auto evicted = call(engine_, {.what = EvictRun{watched.run, kReclaimNoticeS}, .actor = actor});
            if (!evicted) {
                // It has ended by itself meanwhile, or is on its way: nothing is held that we do not stop.
                (void)call(engine_, {.what = HoldRun{watched.run, false}, .actor = actor});
                break;
            }
            memory.parked_us = now_us;
            if (rule.parked_for) verdict.next_us = now_us + static_cast<std::int64_t>(rule.parked_for->value() * 1e6);
            tell(watched, memory, verdict,
                 fmt::format("It is parked: stoker release {} lets it go on from its newest checkpoint.{}",
                             watched.run.text(),
                             rule.parked_for ? " After " + format_seconds(*rule.parked_for) + " it is ended." : ""),
                 now_us);
            say(watched.run, "parked", verdict.why);
            break;
        }
        case IdleAct::stop:
            if (!call(engine_, {.what = CancelRun{watched.run}, .actor = Actor::part("idle")})) break;
            tell(watched, memory, verdict, "It is ended.", now_us);
            say(watched.run, "stopped", verdict.why);
            break;
    }
    memory.next_us = verdict.next_us;
    if (memory.since_us == 0 && memory.kept_until_us <= now_us) return;
    stands.push_back({.run = memory,
                      .name = watched.name,
                      .user = watched.user,
                      .project = watched.project,
                      .rule = in_words(rule),
                      .why = std::move(verdict.why),
                      .project_id = watched.project_id,
                      .cores = subject.cores,
                      .wrong = verdict.wrong,
                      .saved_s = verdict.saved_s,
                      .lost_s = verdict.lost_s,
                      .gpus = subject.gpus,
                      .microusd_per_hour = watched.microusd_per_hour});
}

// What was parked stays so until somebody releases it, or its time is over.
void IdleGuard::look_at_parked(const IdleScene& scene, std::int64_t now_us, std::vector<IdleStand>& stands) {
    for (auto at = memory_.begin(); at != memory_.end();) {
        IdleRun& memory = at->second;
        const auto found = scene.parked.find(at->first);
        const bool live = std::any_of(scene.live.begin(), scene.live.end(),
                                      [&](const WatchedRun& each) { return each.run == at->first; });
        // On its way out it is neither; somebody else's hold is none of ours.
        if (memory.parked_us == 0 || live || found == scene.parked.end()) {
            ++at;
            continue;
        }
        const WatchedRun& watched = found->second;
        const std::int64_t ends =
            watched.rule.parked_for
                ? memory.parked_us + static_cast<std::int64_t>(watched.rule.parked_for->value() * 1e6)
                : 0;
        if (ends != 0 && now_us >= ends &&
            call(engine_, {.what = CancelRun{watched.run}, .actor = Actor::part("idle")})) {
            const std::string why = "parked for " + seconds_text(now_us - memory.parked_us);
            tell(watched, memory, {.act = IdleAct::stop, .why = why}, "It is ended.", now_us);
            say(watched.run, "stopped", why);
            at = memory_.erase(at);
            continue;
        }
        memory.next_us = ends;
        stands.push_back({.run = memory,
                          .name = watched.name,
                          .user = watched.user,
                          .project = watched.project,
                          .rule = in_words(watched.rule),
                          .why = fmt::format("parked since {}; stoker release {} lets it go on",
                                             rfc3339(memory.parked_us / kSecondUs * kSecondUs), watched.run.text()),
                          .project_id = watched.project_id});
        ++at;
    }
}

std::vector<IdleStand> IdleGuard::stands() const {
    const std::lock_guard guard(mutex_);
    return stands_;
}

std::optional<IdleStand> IdleGuard::parked(RunId run) const {
    const std::lock_guard guard(mutex_);
    for (const IdleStand& each : stands_)
        if (each.run.run == run && each.run.parked_us != 0) return each;
    return std::nullopt;
}

Status IdleGuard::keep(RunId run, std::int64_t for_s, const std::string& who) {
    const IdleRules rules = this->rules();
    {
        const std::lock_guard looking(look_mutex_);
        IdleRun& memory = memory_[run];  // so that what waits for its place is looked at, too
        const bool known = memory.run == run;
        memory.run = run;
        const auto scene = see(rules);
        const WatchedRun* watched = nullptr;
        if (scene) {
            for (const WatchedRun& each : scene->live)
                if (each.run == run) watched = &each;
            if (const auto found = scene->parked.find(run); found != scene->parked.end()) watched = &found->second;
        }
        const auto refuse = [&](Error error) -> Status {
            if (!known) memory_.erase(run);
            return error;
        };
        if (!scene) return refuse(Error(ErrorKind::unavailable, "the server ends"));
        if (watched == nullptr)
            return refuse(Error(
                ErrorKind::conflict,
                fmt::format("{} is not looked after: no rule of `idle` is about it, or it does not run", run.text()),
                {}, "stoker idle list shows the rules and what they are about"));
        if (memory.parked_us != 0 && watched->attempt == 0)
            return refuse(Error(ErrorKind::conflict, run.text() + " is parked already", {},
                                "stoker release " + run.text() + " lets it go on"));
        if (static_cast<double>(for_s) > watched->rule.longest_hold_s())
            return refuse(Error(ErrorKind::invalid,
                                fmt::format("{} may be kept for {} at once, not for {}", run.text(),
                                            format_seconds(Seconds(watched->rule.longest_hold_s())),
                                            format_seconds(Seconds(static_cast<double>(for_s)))),
                                {}, "keep it again before that is over, or ask whoever administers the server"));
        memory.attempt = watched->attempt;
        memory.kept_until_us = for_s == 0 ? 0 : scene->now_us + for_s * kSecondUs;
        memory.kept_by = for_s == 0 ? "" : who;
        memory.told_us = 0;  // when that is over it is told anew
        save();
        say(run, for_s == 0 ? "not kept" : "kept", who);
    }
    look();
    return done();
}

void IdleGuard::tell(const WatchedRun& watched, const IdleRun& memory, const IdleVerdict& verdict,
                     const std::string& what, std::int64_t now_us) const {
    if (!options_.tell) return;
    const char* state = verdict.act == IdleAct::tell ? "idle" : verdict.act == IdleAct::park ? "parked" : "ended";
    const std::string price =
        watched.microusd_per_hour > 0
            ? fmt::format(" at ${:.2f} an hour", static_cast<double>(watched.microusd_per_hour) / 1e6)
            : "";
    const std::string text =
        fmt::format("{} {} of {} in {} held {}{}: {}. {}", watched.run.text(), printable(watched.name, 200),
                    printable(watched.user, 100), watched.project,
                    held_text(watched.subject.gpus, watched.subject.cores), price, verdict.why, what);
    std::vector<JournalNotice> notices;
    std::set<std::string> all(watched.notify.begin(), watched.notify.end());
    for (const std::string& each : options_.mails) all.insert(std::string(kNotifyMail) + each);
    for (const std::string& to : all) {
        JournalNotice notice;
        notice.id = fmt::format("{}-{}-{}-{}-{}", watched.run.text(), state, memory.since_us / kSecondUs,
                                now_us / kSecondUs, notices.size());
        notice.to = to;
        notice.subject = fmt::format("{} {} is {}", watched.run.text(), printable(watched.name, 100), state);
        notice.text = text;
        notice.see = verdict.act == IdleAct::tell ? "stoker idle keep " + watched.run.text() + " --for 8h"
                                                  : "stoker describe " + watched.run.text();
        notice.body = Json::object()
                          .set("id", notice.id)
                          .set("event", fmt::format("run.{}", state))
                          .set("at", rfc3339(now_us))
                          .set("run", watched.run.text())
                          .set("name", watched.name)
                          .set("user", watched.user)
                          .set("project", watched.project)
                          .set("idle_since", rfc3339(memory.since_us))
                          .set("gpus", watched.subject.gpus)
                          .set("cpus", watched.subject.cores)
                          .set("cost_microusd_per_hour", watched.microusd_per_hour)
                          .set("text", notice.text)
                          .dump(0);
        notices.push_back(std::move(notice));
    }
    if (!notices.empty()) options_.tell(std::move(notices));
}

void IdleGuard::say(RunId run, std::string_view act, const std::string& why) const {
    if (options_.log) options_.log->write(log_event("run.idle"), {{"run", run.text()}, {"act", act}, {"detail", why}});
}

void IdleGuard::load() {
    const auto text = read_file(file_, kMostFileBytes);
    if (!text) return;
    // A file that is damaged tells nobody twice: at worst somebody is told once more.
    const auto kept = codec::decode<IdleFile>(*text, "idle.json");
    if (!kept || kept->format != 1) return;
    for (const IdleRun& each : kept->items) memory_[each.run] = each;
    saved_ = *text;
}

void IdleGuard::save() {
    IdleFile file;
    for (const auto& [id, memory] : memory_) file.items.push_back(memory);
    std::string text = codec::encode(file);
    if (text == saved_) return;
    if (!write_for_owner(file_, text)) return;
    saved_ = std::move(text);
}

}  // namespace stoker
