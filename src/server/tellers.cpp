#include "server/tellers.h"

#include "base/text.h"
#include "io/files.h"
#include "server/log_events.h"

namespace stoker {
namespace {

Result<std::string> webhook_secret(const std::string& file) {
    constexpr std::size_t kMostSecret = 4096;
    TRY(const std::string text, read_file(file, kMostSecret));
    std::string secret(trim(text));
    if (secret.empty())
        return Error(ErrorKind::invalid, "the secret of the webhook is empty: " + file, {},
                     "openssl rand -hex 32 makes one");
    return secret;
}

}  // namespace

Result<Tellers> start_tellers(Engine& engine, const WebhookForm& webhook, const NotifyForm& notify,
                              const std::shared_ptr<Log>& log) {
    NotifyOptions runs{.folder = engine.folder(), .program = notify.program, .urls = notify.urls};
    Tellers tellers;
    if (!webhook.url.empty()) {
        TRY(runs.secret, webhook_secret(webhook.secret_file));
        if (log) log->hide(Secret(runs.secret));
        WebhookOptions options{.url = webhook.url, .secret = runs.secret};
        options.told = [log](const std::string& id, int tries, const Status& outcome) {
            if (!log) return;
            const auto many = static_cast<std::int64_t>(tries);
            if (outcome.ok())
                log->write(log_event("webhook.sent"), {{"id", id}, {"tries", many}});
            else
                log->write(log_event("webhook.failed"),
                           {{"id", id}, {"tries", many}, {"error", outcome.error().message()}});
        };
        TRY(tellers.budgets, Webhook::start(engine, std::move(options)));
    }
    if (!notify.sendmail.empty()) runs.sendmail = notify.sendmail;
    if (!notify.budgets.empty()) tellers.budget_mails = start_budget_mails(engine, runs, notify.budgets, log);
    tellers.may_notify = [runs](const RunSpec& spec) { return check_notify(spec, runs); };
    tellers.runs = start_run_notifier(engine, std::move(runs), log);
    return tellers;
}

}  // namespace stoker
