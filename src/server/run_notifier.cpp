#include "server/run_notifier.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "base/units.h"
#include "io/process.h"
#include "io/run_program.h"
#include "run/spec/secrets.h"
#include "run/state/rules.h"
#include "server/log_events.h"
#include "server/webhook.h"

namespace stoker {
namespace {

constexpr std::size_t kMostPending = 1000, kMostToldIds = 2000;
constexpr double kLookAgainS = 30;
constexpr std::string_view kMailPath = "PATH=/usr/sbin:/usr/lib:/usr/local/sbin:/usr/bin:/bin";

using Clock = std::chrono::steady_clock;

bool is_web(std::string_view to) {
    return to.starts_with("https://") || to.starts_with("http://");
}

// "r-7 nightly succeeded after 3 h"
std::string words_of(const Run& run) {
    std::string text = fmt::format("{} {} {}", run.id.text(), printable(run.spec.name, 200), to_string(run.state));
    if (run.started_us != 0)
        text += " after " + format_seconds(Seconds(static_cast<double>(run.ended_us - run.started_us) / 1e6));
    if (run.state == RunState::failed || run.state == RunState::expired)
        text += ": " + std::string(to_string(run.cause));
    if (!run.detail.empty()) text += fmt::format(" ({})", printable(run.detail, 500));
    return text;
}

void notices_of(const State& state, const JournalRecord& record, const RunMoved& moved,
                std::vector<JournalNotice>& out) {
    const Run* run = state.find(moved.run);
    if (run == nullptr || !run->spec.notify || !is_terminal(run->state)) return;
    // Only moves that end a run; of several in one moment the first tells, by its id.
    const auto moves = run_transitions();
    if (std::none_of(moves.begin(), moves.end(),
                     [&](const RunTransition& each) { return each.event == moved.event && is_terminal(each.to); }) ||
        run->ended_us != record.at_us)
        return;
    const bool well = run->state == RunState::succeeded;
    for (std::size_t i = 0; i < run->spec.notify->size(); ++i) {
        const NotifySpec& each = (*run->spec.notify)[i];
        if (each.on != NotifyOn::any && well != (each.on == NotifyOn::ok)) continue;
        JournalNotice notice{
            .seq = record.seq, .id = fmt::format("{}-{}-{}", state.site, run->id.text(), i), .body = "", .to = each.to};
        notice.text = words_of(*run);
        notice.subject = fmt::format("{} {} {}", run->id.text(), printable(run->spec.name, 100), to_string(run->state));
        notice.see = "stoker describe " + run->id.text();
        notice.body = Json::object()
                          .set("id", notice.id)
                          .set("event", "run.ended")
                          .set("at", rfc3339(run->ended_us))
                          .set("run", run->id.text())
                          .set("name", run->spec.name)
                          .set("user", run->spec.user)
                          .set("project", run->spec.project)
                          .set("state", to_string(run->state))
                          .set("cause", to_string(run->cause))
                          .set("detail", run->detail)
                          .set("used_s", static_cast<double>(run->used_us) / 1e6)
                          .set("text", notice.text)
                          .dump(0);
        out.push_back(std::move(notice));
    }
}

Status ended_well(const Result<ProgramResult>& ran, const std::string& name) {
    if (!ran) return ran.error();
    if (ran->exit_code == 0) return done();
    return Error(ErrorKind::unavailable,
                 fmt::format("{} left with {}: {}", name, ran->exit_code, printable(trim(ran->complaint), 300)));
}

class Notifier final : public RunNotifier {
public:
    struct About {
        const char* cursor;  // file of its place in the journal
        std::uint32_t kind;  // of record
        const char* thread;
        JournalNotices::Pick pick;
    };
    Notifier(Engine& engine, NotifyOptions options, About about)
        : options_(std::move(options)),
          journal_(engine, about.cursor, about.kind, std::move(about.pick)),
          thread_(engine, about.kind, about.thread, [this] { run(); }) {}

    void tell(std::vector<JournalNotice> notices) override {
        {
            const std::lock_guard guard(inbox_mutex_);
            for (JournalNotice& each : notices)
                if (inbox_.size() < kMostPending) inbox_.push_back(std::move(each));
        }
        thread_.wake();
    }

private:
    struct Pending {
        JournalNotice notice;
        int tries = 0;
        double wait_s = 0;
        Clock::time_point next;
    };

    void run() {
        do {
            const bool more = look();
            if (!deliver_due()) break;
            save();
            if (!thread_.pause(more ? 0 : until_next(), true)) break;
        } while (true);
        last_round();
    }

    // True: there is more to look at.
    bool look() {
        if (pending_.size() >= kMostPending) return false;
        {
            const std::lock_guard guard(inbox_mutex_);
            for (JournalNotice& notice : inbox_) take(std::move(notice));
            inbox_.clear();
        }
        auto batch = journal_.read_after(after_);
        if (!batch) return false;
        for (JournalNotice& notice : batch->notices) take(std::move(notice));
        after_ = std::max(after_, batch->last);
        return batch->last < batch->head;
    }
    // What is still owed is read again after a restart.
    void save() {
        std::uint64_t cursor = after_;
        for (const Pending& each : pending_)
            if (each.notice.seq != 0) cursor = std::min(cursor, each.notice.seq - 1);
        journal_.save_cursor(cursor);
    }

    // The end that the server ends with, as that of stoker run, is told too; whoever does not take it hears of it from
    // the next server.
    void last_round() {
        (void)look();
        for (std::size_t i = 0; i < pending_.size();) {
            const JournalNotice& notice = pending_[i].notice;
            if (pending_[i].tries > 0) {
                ++i;
                continue;
            }
            if (!send(notice).ok()) break;
            if (options_.told) options_.told(notice.id, notice.to, 1, done());
            pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
        }
        save();
    }

    void take(JournalNotice notice) {
        if (!ids_.insert(notice.id).second) return;
        order_.push_back(notice.id);
        if (order_.size() > kMostToldIds) {
            ids_.erase(order_.front());
            order_.pop_front();
        }
        pending_.push_back({.notice = std::move(notice), .wait_s = options_.first_wait_s, .next = Clock::now()});
    }

    double until_next() const {
        double wait = kLookAgainS;
        for (const Pending& each : pending_)
            wait = std::min(wait, std::chrono::duration<double>(each.next - Clock::now()).count());
        return std::max(wait, 0.0);
    }

    // False: it ends.
    bool deliver_due() {
        // One that did not answer is asked once in a round, whoever else has something for it.
        std::set<std::string> silent;
        for (std::size_t i = 0; i < pending_.size();) {
            Pending& each = pending_[i];
            if (each.next > Clock::now() || silent.contains(each.notice.to)) {
                ++i;
                continue;
            }
            if (!thread_.pause(0, false)) return false;
            const Status outcome = send(each.notice);
            ++each.tries;
            const bool never = !outcome.ok() && (outcome.error().kind() == ErrorKind::denied ||
                                                 outcome.error().kind() == ErrorKind::not_found);
            if (outcome.ok() || never || each.tries >= options_.most_tries) {
                if (options_.told) options_.told(each.notice.id, each.notice.to, each.tries, outcome);
                pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
                continue;
            }
            silent.insert(each.notice.to);
            each.next =
                Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(each.wait_s));
            each.wait_s = std::min(2 * each.wait_s, options_.most_wait_s);
            ++i;
        }
        return true;
    }

    Clock::time_point by() const {
        return Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.call_timeout_s));
    }

    Status send(const JournalNotice& notice) {
        // What may be told can have changed since it was submitted.
        RunSpec asked;
        asked.notify = {{notice.to, NotifyOn::any}};
        TRY_VOID(check_notify(asked, options_));
        if (is_web(notice.to)) {
            TRY(const std::string address, read_notify(options_.folder, notice.to));
            TRY(const WebhookTarget target, webhook_target(address));
            TRY(auto client, HttpClient::make({.url = target.origin, .ca_pem = ""}));
            return post_signed(*client, target, options_.secret, notice.id, notice.body, options_.call_timeout_s);
        }
        ProgramCall call{.arguments = {options_.program}, .environment = {std::string(kMailPath)}, .most_bytes = 4096};
        call.input = notice.body + "\n";
        if (notice.to.starts_with(kNotifyMail)) {
            const std::string address = notice.to.substr(kNotifyMail.size());
            call.arguments = {options_.sendmail, "-i", "--", address};
            call.input = fmt::format(
                "To: {}\nSubject: {}\nMessage-ID: <{}@stoker>\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n"
                "Content-Type: text/plain; charset=utf-8\n\n{}\n\n{}\n",
                address, header_text(notice.subject), notice.id, notice.text, notice.see);
        }
        return ended_well(run_program(call, by()), call.arguments.front());
    }

    // A header is ASCII.
    static std::string header_text(std::string_view text) {
        std::string plain;
        for (const char c : text) plain += c >= ' ' && static_cast<unsigned char>(c) < 127 ? c : '?';
        return plain;
    }

    const NotifyOptions options_;
    std::mutex inbox_mutex_;            // guards what follows
    std::vector<JournalNotice> inbox_;  // that nobody has looked at
    std::vector<Pending> pending_;      // of the thread, as what follows
    std::set<std::string> ids_;
    std::deque<std::string> order_;
    JournalNotices journal_;
    std::uint64_t after_ = journal_.read_cursor();  // before anybody can go on: what ends from now on is told
    NoticeThread thread_;                           // the last: it begins at once
};

}  // namespace

Status check_notify(const RunSpec& spec, const NotifyOptions& options) {
    if (!spec.notify) return done();
    for (const NotifySpec& each : *spec.notify) {
        if (each.to == kNotifyProgram && options.program.empty())
            return Error(ErrorKind::denied, "notify: this server names no program", {},
                         "notify: {program: /usr/local/bin/tell} in server.yaml, and a restart");
        if (!is_web(each.to) || options.urls.empty()) continue;
        TRY(const std::string address, read_notify(options.folder, each.to));
        if (const auto target = webhook_target(address); !target) return target.error();
        if (std::none_of(options.urls.begin(), options.urls.end(),
                         [&](const std::string& prefix) { return address.starts_with(prefix); }))
            return Error(ErrorKind::denied,
                         fmt::format("notify: this server tells nobody at {}", printable(each.to, 80)), {},
                         "it may: " + printable(join(options.urls, ", "), 400));
    }
    return done();
}

std::unique_ptr<RunNotifier> RunNotifier::start(Engine& engine, NotifyOptions options) {
    return std::make_unique<Notifier>(
        engine, std::move(options),
        Notifier::About{
            .cursor = "notify.cursor",
            .kind = RunMoved::kKind,
            .thread = "stoker-notify",
            .pick = [](const State& state, const JournalRecord& record, const RecordBody& body,
                       std::vector<JournalNotice>& out) { notices_of(state, record, std::get<RunMoved>(body), out); }});
}

static void log_what_is_told(NotifyOptions& options, const std::shared_ptr<Log>& log) {
    options.told = [log](const std::string& id, const std::string& to, int tries, const Status& outcome) {
        if (!log) return;
        const auto many = static_cast<std::int64_t>(tries);
        if (outcome.ok())
            log->write(log_event("notify.sent"), {{"id", id}, {"to", to}, {"tries", many}});
        else
            log->write(log_event("notify.failed"),
                       {{"id", id}, {"to", to}, {"tries", many}, {"error", outcome.error().message()}});
    };
}

std::unique_ptr<RunNotifier> start_run_notifier(Engine& engine, NotifyOptions options,
                                                const std::shared_ptr<Log>& log) {
    log_what_is_told(options, log);
    return RunNotifier::start(engine, std::move(options));
}

std::unique_ptr<RunNotifier> start_budget_mails(Engine& engine, NotifyOptions options,
                                                std::vector<std::string> addresses, const std::shared_ptr<Log>& log) {
    log_what_is_told(options, log);
    return std::make_unique<Notifier>(
        engine, std::move(options),
        Notifier::About{
            .cursor = "budget_mails.cursor",
            .kind = BudgetReached::kKind,
            .thread = "stoker-mails",
            .pick = [addresses = std::move(addresses)](const State& state, const JournalRecord& record,
                                                       const RecordBody& body, std::vector<JournalNotice>& out) {
                for (std::size_t i = 0; i < addresses.size(); ++i) {
                    JournalNotice notice = budget_notice(state, record, std::get<BudgetReached>(body));
                    notice.id += fmt::format("-{}", i);
                    notice.to = std::string(kNotifyMail) + addresses[i];
                    out.push_back(std::move(notice));
                }
            }});
}

}  // namespace stoker
