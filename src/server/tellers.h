// Who is told of what happens in the journal, as the configuration says: budgets to one webhook, ends of runs to whom
// each run names. Signed with the same secret.
#pragma once

#include <functional>
#include <memory>

#include "server/run_notifier.h"
#include "server/server_config.h"
#include "server/webhook.h"

namespace stoker {

struct Tellers {
    std::unique_ptr<Webhook> budgets;  // null: no url
    std::unique_ptr<RunNotifier> runs;
    std::unique_ptr<RunNotifier> budget_mails;         // null: to nobody
    std::function<Status(const RunSpec&)> may_notify;  // of a submission
};

// The engine outlives them.
Result<Tellers> start_tellers(Engine& engine, const WebhookForm& webhook, const NotifyForm& notify,
                              const std::shared_ptr<Log>& log);

}  // namespace stoker
