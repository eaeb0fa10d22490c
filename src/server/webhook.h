// Tells somebody else's server what a budget reached: one signed POST for each record budget.reached.
//
// The place in the journal up to which everything was told is a file of its own beside it, so that nothing is forgotten
// with a restart; what was sent and not noted is sent once more, with the same id. A receiver that does not answer with
// 2xx is tried again, more and more slowly, and given up after `most_tries`; what comes later waits meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/http/http_client.h"
#include "run/engine/engine.h"
#include "server/journal_notices.h"

namespace stoker {

struct WebhookOptions {
    std::string url;     // with its path; empty: none
    std::string secret;  // of the signature
    double first_wait_s = 1, most_wait_s = 300, call_timeout_s = 10;
    int most_tries = 16;  // about an hour
    // From its own thread, after each delivery, or when it was given up: the id, how many tries, and why not.
    std::function<void(const std::string& id, int tries, const Status& outcome)> told;
};

// "t=1700000000,v1=" and HMAC-SHA256 in hex over "1700000000." and the body.
std::string webhook_signature(std::string_view secret, std::int64_t unix_s, std::string_view body);

// What a record about a budget is worth telling, as a hook and in words.
JournalNotice budget_notice(const State& state, const JournalRecord& record, const BudgetReached& body);

// The origin and the path of an address. invalid: it is no http:// or https:// URL.
struct WebhookTarget {
    std::string origin, path;
};
Result<WebhookTarget> webhook_target(const std::string& url);

// Once, with Idempotency-Key and, where there is a secret, the signature; done when it is answered with 2xx.
Status post_signed(HttpClient& client, const WebhookTarget& target, const std::string& secret, const std::string& id,
                   const std::string& body, double timeout_s);

class Webhook {
public:
    // The engine outlives it.
    static Result<std::unique_ptr<Webhook>> start(Engine& engine, WebhookOptions options);
    virtual ~Webhook() = default;  // waits for a call that is under way
};

}  // namespace stoker
