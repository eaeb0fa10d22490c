// Tells whoever a run names (`notify` of its spec) that it has ended: a POST, a mail by this machine's sendmail, or the
// program that server.yaml names. Each is tried again, more and more slowly, and given up after a while; one that does
// not answer keeps nobody else waiting. What was told is noted beside the journal; what was told and not noted is told
// once more, with the same id.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/log.h"
#include "run/engine/engine.h"
#include "server/journal_notices.h"

namespace stoker {

struct NotifyOptions {
    std::string folder;             // of the server: in it are addresses that nobody is shown
    std::string program;            // what `program` means; empty: nothing
    std::vector<std::string> urls;  // prefixes of what may be told; none: every address
    std::string secret;             // of the signature of a POST; empty: there is none
    std::string sendmail = "sendmail";
    double first_wait_s = 1, most_wait_s = 300, call_timeout_s = 10;
    int most_tries = 12;  // about half an hour
    // From its own thread, after each delivery, or when it was given up.
    std::function<void(const std::string& id, const std::string& to, int tries, const Status& outcome)> told;
};

// Whether it could ever be told, so that a submission is refused and not forgotten.
Status check_notify(const RunSpec& spec, const NotifyOptions& options);

class RunNotifier {
public:
    // The engine outlives it.
    static std::unique_ptr<RunNotifier> start(Engine& engine, NotifyOptions options);
    virtual ~RunNotifier() = default;  // waits for a call that is under way
    // What is no end of a run: told the same way, by whom it names, for as long as this one lives. Any thread.
    virtual void tell(std::vector<JournalNotice> notices) = 0;
};

// The same way, to everybody alike, what budgets reach: once for each mark, a mail to each address.
std::unique_ptr<RunNotifier> start_budget_mails(Engine& engine, NotifyOptions options,
                                                std::vector<std::string> addresses, const std::shared_ptr<Log>& log);

std::unique_ptr<RunNotifier> start_run_notifier(Engine& engine, NotifyOptions options, const std::shared_ptr<Log>& log);

}  // namespace stoker
