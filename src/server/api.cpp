// What every request passes before its handler: host, route, method, caller, role, content type, parameters.
#include "server/api.h"

#include <algorithm>
#include <chrono>
#include <shared_mutex>

#include <fmt/format.h>

#include "base/text.h"
#include "io/files.h"
#include "server/audit_trail.h"
#include "server/caller.h"
#include "server/console.h"
#include "server/handlers.h"
#include "server/log_events.h"
#include "server/router.h"
#include "server/service.h"
#include "server/single_sign_on.h"

namespace stoker {
namespace {

using namespace stoker::api;

// A page of a stranger can make a browser resolve its own name to our address; the Host then is that name. A numeric
// address cannot be rebound.
bool host_is_ours(const HttpRequest& request, const ApiOptions& options) {
    const auto header = request.headers.find("Host");
    if (!header) return true;  // a caller in this process; the server itself insists on one
    std::string host = lower(trim(*header));
    if (host.starts_with('[')) return host.find(']') != std::string::npos;
    if (const std::size_t colon = host.rfind(':'); colon != std::string::npos) host.resize(colon);
    if (host == "localhost") return true;
    if (!host.empty() && host.find_first_not_of("0123456789.") == std::string::npos) return true;
    return std::any_of(options.host_names.begin(), options.host_names.end(), [&](const std::string& name) {
        if (!name.starts_with("*.")) return equals_ignore_case(name, host);
        const std::size_t dot = host.find('.');
        return dot != std::string::npos && dot > 0 && equals_ignore_case(name.substr(1), host.substr(dot));
    });
}

bool is_json(std::string_view content_type) {
    const std::string type = lower(trim(content_type.substr(0, content_type.find(';'))));
    return type == "application/json";
}

class HttpApi final : public Api {
public:
    HttpApi(Engine& engine, ApiOptions options, PriceBook prices)
        : sign_on_(options.oidc ? options.oidc->form().issuer : ""),
          service_(std::make_shared<Service>(engine, std::move(options), std::move(prices))) {}
    ~HttpApi() override { service_->stop(); }
    void set_prices(PriceBook prices) override { service_->set_prices(std::move(prices)); }
    void stop() override {
        stopping_ = true;
        service_->stop();
    }

    void handle(HttpRequest request, HttpReply reply) override {
        const auto exchange = std::make_shared<Exchange>(std::move(request), std::move(reply));
        log_answer(*exchange);
        if (stopping_) return exchange->fail(Error(ErrorKind::unavailable, "the server is stopping"));
        if (!host_is_ours(exchange->request, service_->options()))
            return exchange->fail(
                Error(ErrorKind::denied, "this server does not answer to the host name that was asked for", {},
                      "use localhost or its address, or start it with stoker up --host-name NAME"),
                421);
        if (answer_console(*exchange, sign_on_)) return;
        Matched matched = match(exchange->request.method, exchange->request.path);
        if (matched.allowed.empty())
            return exchange->fail(Error(ErrorKind::not_found, "there is no " + printable(exchange->request.path, 200),
                                        {},
                                        matched.nearest.empty() ? "GET /api/v1/openapi.json lists what there is"
                                                                : "did you mean " + matched.nearest + "?"));
        if (exchange->request.method == "OPTIONS") {
            HttpResponse response{.status = 204, .content_type = "", .headers = {}, .body = ""};
            response.headers.add("Allow", join(matched.allowed, ", "));
            return exchange->send(std::move(response));
        }
        if (matched.route == nullptr) {
            HttpResponse response =
                problem_response(Error(ErrorKind::invalid,
                                       fmt::format("{} cannot be done with {}", printable(exchange->request.method, 20),
                                                   printable(exchange->request.path, 200)),
                                       {}, "it takes " + join(matched.allowed, ", ")),
                                 exchange->trace.id, 405);
            response.headers.add("Allow", join(matched.allowed, ", "));
            return exchange->send(std::move(response));
        }
        const Route& route = *matched.route;
        exchange->operation = route.operation;
        exchange->audited = route.audited;
        // Whoever asks for what is open to everybody is nobody.
        exchange->actor =
            route.access.is_open() ? Actor{.kind = PrincipalKind::user, .name = "nobody"} : service_->options().actor;
        if (!route.access.is_open() && !know_caller(*service_, exchange, route.changes)) return;
        // Before the request is looked at any closer: a refusal tells nothing of what there is.
        if (const auto& right = route.access.right(); right && !may(exchange->actor, *right))
            return exchange->fail(denial(exchange->actor, *right));
        exchange->parameters.path = std::move(matched.path);
        if (const Status read = read_query(route, exchange->request, exchange->parameters); !read)
            return exchange->fail(read.error());
        if (!body_is_right(route, exchange)) return;
        service_->watch_over(exchange, 0);
        service_->work(exchange, [service = service_.get(), &route, exchange] {
            if (run_is_reached(*service, exchange)) route.handler(*service, exchange);
        });
    }

private:
    // One event for each answer, whoever gives it, and a line of the audit trail for what changes something or is
    // refused. The exchange owns the callback, and is there while it runs.
    void log_answer(Exchange& exchange) {
        const std::shared_ptr<Log>& log = service_->options().log;
        const std::shared_ptr<AuditTrail>& audit = service_->options().audit;
        if (!log && !audit) return;
        exchange.on_status([log, audit, began = std::chrono::steady_clock::now(), &exchange](int status) {
            // Without the query: what is asked may be anything.
            const auto path = [&] { return exchange.request.path.substr(0, exchange.request.path.find('?')); };
            if (audit && AuditTrail::wants(exchange.request.method, status) && (exchange.audited || status >= 400)) {
                const std::string claimed = exchange.claimed();
                audit->write({.who = claimed.empty() ? exchange.actor.text() : "user/" + claimed + " by password",
                              .method = exchange.request.method,
                              .path = path(),
                              .operation = std::string(exchange.operation),
                              .status = status,
                              .peer = exchange.request.peer,
                              .request = exchange.request_id,
                              .trace = exchange.trace.id});
            }
            const LogEvent& event = status >= 500 ? log_event("request.failed") : log_event("request.done");
            if (!log || !log->wants(event.level)) return;
            const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
            log->write(event, {{"method", exchange.request.method},
                               {"path", path()},
                               {"status", status},
                               {"ms", took.count()},
                               {"request", exchange.request_id},
                               {"trace", exchange.trace.id},
                               {"peer", exchange.request.peer}});
        });
    }

    // A run that does not belong to what the caller reaches is as good as none, whatever is asked of it.
    static bool run_is_reached(Service& service, const ExchangePtr& exchange) {
        const auto& path = exchange->parameters.path;
        if (exchange->actor.level == Level::provider || !path.contains("run")) return true;
        const auto id = RunId::parse(path.find("run")->second);
        std::optional<Error> error;
        const Status asked = service.engine().read([&](const EngineView& view) {
            const Run* run = id ? view.state.find(*id) : nullptr;
            if (run != nullptr && !reaches(exchange->actor, view.state.tenants.tenant_of(run->project)))
                error = Error(ErrorKind::not_found, "there is no run " + id->text());
        });
        if (!asked) error = asked.error();
        if (error) exchange->fail(*error);
        return !error;
    }

    bool body_is_right(const Route& route, const ExchangePtr& exchange) {
        const HttpRequest& request = exchange->request;
        if (route.body.empty()) {
            if (trim(request.body).empty()) return true;
            exchange->fail(Error(ErrorKind::invalid, fmt::format("{} {} takes no body", route.method, route.path)));
            return false;
        }
        if (request.body.empty() && !route.body_required) return true;
        if (request.body.size() > (1u << 20)) {
            exchange->fail(Error(ErrorKind::exhausted, "the body is larger than 1 MiB"), 413);
            return false;
        }
        const auto type = request.headers.find("Content-Type");
        if (type && is_json(*type)) return true;
        exchange->fail(Error(ErrorKind::invalid,
                             "the body is " + (type ? printable(*type, 100) : std::string("of no type")) +
                                 ", expected application/json",
                             {}, "send `Content-Type: application/json`"),
                       415);
        return false;
    }

    const std::string sign_on_;
    std::shared_ptr<Service> service_;
    std::atomic<bool> stopping_{false};
};

}  // namespace

Result<PriceBook> api::read_prices(const std::string& file) {
    if (file.empty()) return PriceBook();
    TRY(const std::string text, read_file(file, 4 << 20));
    return PriceBook::read(text, file);
}

Result<std::unique_ptr<Api>> Api::make(Engine& engine, ApiOptions options) {
    PriceBook prices = options.prices;
    if (!options.prices_file.empty()) {
        TRY(prices, api::read_prices(options.prices_file));
    }
    return std::unique_ptr<Api>(std::make_unique<HttpApi>(engine, std::move(options), std::move(prices)));
}

}  // namespace stoker
