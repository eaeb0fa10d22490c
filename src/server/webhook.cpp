#include "server/webhook.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "govern/budget.h"
#include "govern/quota.h"
#include "io/clock.h"
#include "io/http/http_client.h"
#include "io/process.h"
#include "io/sha256.h"
#include "io/store/request_sign.h"
#include "server/journal_notices.h"

namespace stoker {
namespace {

constexpr std::size_t kMostUrl = 2000;
constexpr double kLookAgainS = 30;

std::string words_of(const State& state, const BudgetReached& body) {
    const std::string scope = scope_in_words(state.tenants, body.scope),
                      used = budget_amount(body.unit, body.used_micro),
                      limit = budget_amount(body.unit, body.limit_micro);
    if (body.mark == kMarkForecast)
        return fmt::format("{} has used {} of {} in {}, and what runs now will need more than is left", scope, used,
                           limit, body.month);
    if (body.mark == kMarkStopping)
        return fmt::format("{} has used {} of {} in {}: what runs is told to stop", scope, used, limit, body.month);
    return fmt::format("{} has used {} of {} in {}: {} %", scope, used, limit, body.month, body.mark);
}

class Sender final : public Webhook {
public:
    Sender(Engine& engine, WebhookOptions options, WebhookTarget target, std::unique_ptr<HttpClient> client)
        : options_(std::move(options)),
          target_(std::move(target)),
          client_(std::move(client)),
          journal_(engine, "webhook.cursor", BudgetReached::kKind,
                   [](const State& state, const JournalRecord& record, const RecordBody& body,
                      std::vector<JournalNotice>& out) {
                       out.push_back(budget_notice(state, record, std::get<BudgetReached>(body)));
                   }),
          thread_(engine, BudgetReached::kKind, "stoker-webhook", [this] { run(); }) {}

private:
    void run() {
        std::uint64_t after = from_;
        do {
            for (;;) {
                const auto batch = journal_.read_after(after);
                if (!batch) break;
                for (const JournalNotice& notice : batch->notices) {
                    if (!deliver(notice)) return;
                    journal_.save_cursor(notice.seq);
                }
                if (batch->last > after) journal_.save_cursor(after = batch->last);
                if (batch->last >= batch->head) break;
            }
        } while (thread_.pause(kLookAgainS, true));
    }

    // False: it ends.
    bool deliver(const JournalNotice& notice) {
        double wait = options_.first_wait_s;
        for (int tries = 1;; ++tries) {
            const Status outcome = send(notice);
            if (outcome.ok() || tries >= options_.most_tries) {
                if (options_.told) options_.told(notice.id, tries, outcome);
                return true;
            }
            if (!thread_.pause(wait, false)) return false;
            wait = std::min(2 * wait, options_.most_wait_s);
        }
    }
    Status send(const JournalNotice& notice) {
        return post_signed(*client_, target_, options_.secret, notice.id, notice.body, options_.call_timeout_s);
    }

    const WebhookOptions options_;
    const WebhookTarget target_;
    const std::unique_ptr<HttpClient> client_;           // of the thread
    JournalNotices journal_;                             // of the thread
    const std::uint64_t from_ = journal_.read_cursor();  // before anybody can go on: what comes from now on is told
    NoticeThread thread_;                                // the last: it begins at once
};

}  // namespace

JournalNotice budget_notice(const State& state, const JournalRecord& record, const BudgetReached& body) {
    JournalNotice notice{.seq = record.seq, .id = fmt::format("{}-{}", state.site, record.seq), .body = ""};
    notice.body = Json::object()
                      .set("id", notice.id)
                      .set("event", "budget.reached")
                      .set("at", rfc3339(record.at_us))
                      .set("scope", body.scope)
                      .set("scope_name", scope_in_words(state.tenants, body.scope))
                      .set("unit", enum_word(body.unit))
                      .set("month", body.month)
                      .set("mark", body.mark)
                      .set("used_micro", body.used_micro)
                      .set("limit_micro", body.limit_micro)
                      .set("rate_micro_per_h", body.rate_micro_per_h)
                      .set("text", words_of(state, body))
                      .dump(0);
    notice.text = words_of(state, body);
    notice.subject =
        fmt::format("budget of {}: {}", scope_in_words(state.tenants, body.scope),
                    body.mark == kMarkForecast || body.mark == kMarkStopping ? body.mark : body.mark + " %");
    notice.see = "stoker budget list";
    return notice;
}

std::string webhook_signature(std::string_view secret, std::int64_t unix_s, std::string_view body) {
    return fmt::format("t={},v1={}", unix_s, hex(hmac_sha256(secret, fmt::format("{}.{}", unix_s, body))));
}

Status post_signed(HttpClient& client, const WebhookTarget& target, const std::string& secret, const std::string& id,
                   const std::string& body, double timeout_s) {
    HttpCall call{.method = "POST", .target = target.path, .body = body};
    call.timeout_s = timeout_s;
    call.max_body_bytes = 64 << 10;
    call.headers.add("Content-Type", "application/json");
    call.headers.add("Idempotency-Key", id);
    if (!secret.empty()) {
        // Not within the call: g++ 12 then sees memcpy beyond the name (array-bounds, a false alarm).
        const std::string name = "Stoker-Signature";
        call.headers.add(name, webhook_signature(secret, wall_clock_us() / 1'000'000, body));
    }
    TRY(const HttpResponse response, client.call(call));
    if (response.status >= 200 && response.status < 300) return done();
    return Error(ErrorKind::unavailable, fmt::format("{} answered {}", target.origin, response.status));
}

Result<WebhookTarget> webhook_target(const std::string& url) {
    const std::size_t scheme = url.find("://");
    const bool known = url.starts_with("http://") || url.starts_with("https://");
    const bool plain = std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 127; });
    const std::size_t path = known ? url.find('/', scheme + 3) : std::string::npos;
    if (!known || !plain || url.size() > kMostUrl || url.size() == scheme + 3 || path == scheme + 3)
        return Error(ErrorKind::invalid, fmt::format("{} is no address of a web server", printable(url, 80)), {},
                     "https://chat.example.org/hooks/stoker");
    if (path == std::string::npos) return WebhookTarget{url, "/"};
    return WebhookTarget{url.substr(0, path), url.substr(path)};
}

Result<std::unique_ptr<Webhook>> Webhook::start(Engine& engine, WebhookOptions options) {
    TRY(WebhookTarget target, webhook_target(options.url));
    TRY(auto client, HttpClient::make({.url = target.origin, .ca_pem = ""}));
    return std::unique_ptr<Webhook>(
        std::make_unique<Sender>(engine, std::move(options), std::move(target), std::move(client)));
}

}  // namespace stoker
