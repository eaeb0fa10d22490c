#include "serve/gateway/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <set>

#include "base/api_time.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "govern/keys.h"
#include "io/files.h"
#include "io/http/client_connection.h"
#include "io/http/resolve.h"
#include "io/process.h"
#include "io/worker.h"

namespace stoker::gateway {
namespace {

constexpr double kMostPrice = 1e6, kMostCount = 1e12, kResolveS = 5;
constexpr std::size_t kMostConfig = 8u << 20, kMostUpstreams = 256, kDigestText = 64;

struct PriceForm {
    std::optional<Usd> input, cached_input, output, request;
    std::map<std::string, SourcePos> at;
};
struct ModelForm {
    std::string name, upstream_model, key_env, endpoint;
    std::vector<std::string> upstreams, projects;
    std::optional<PriceForm> price;
    std::optional<int> default_output_tokens, max_outstanding;
    std::optional<Seconds> queue;
    std::map<std::string, SourcePos> at;
};
struct KeyForm {
    std::string name, sha256, project, expires;
    std::vector<std::string> models;
    std::optional<Role> role;
    std::optional<bool> revoked;
    std::optional<double> requests_per_minute, request_burst, tokens_per_minute, token_burst, concurrent;
    std::optional<Usd> budget;
    std::map<std::string, SourcePos> at;
};
struct LedgerForm {
    std::string folder;
    std::optional<Bytes> segment;
    std::map<std::string, SourcePos> at;
};
struct TimeoutForm {
    std::optional<Seconds> connect, first_byte, silence, head, idle, slow_consumer, drain;
    std::map<std::string, SourcePos> at;
};
enum class Reservation : std::uint8_t { likely, strict };
struct GatewayForm {
    std::string listen, tls_cert, tls_key;
    std::optional<int> threads, name, max_attempts;
    std::optional<Bytes> max_body, stream_buffer;
    std::optional<LedgerForm> ledger;
    std::optional<TimeoutForm> timeouts;
    std::optional<Reservation> reservation;
    std::optional<BudgetPeriod> budget_period;
    std::vector<ModelForm> models;
    std::vector<KeyForm> keys;
    std::map<std::string, SourcePos> at;
};

RecordTable<PriceForm> price_table() {
    RecordTable<PriceForm> t("price", "What a million tokens cost, in dollars; exact to a millionth of a dollar.");
    t.usd("input", &PriceForm::input, "A million prompt tokens.", "0.15", 0, kMostPrice);
    t.usd("cached_input", &PriceForm::cached_input,
          "Those that the upstream had cached; as input when nothing is said.", "0.03", 0, kMostPrice);
    t.usd("output", &PriceForm::output, "A million generated tokens.", "0.60", 0, kMostPrice);
    t.usd("request", &PriceForm::request, "A million requests, on top.", "10", 0, kMostPrice);
    return t;
}
RecordTable<ModelForm> model_table() {
    RecordTable<ModelForm> t("model", "A name that clients send, and the servers that answer for it.");
    t.text("name", &ModelForm::name, "What clients call it.", "demo").required();
    t.list_of_text("upstreams", &ModelForm::upstreams,
                   "Servers that speak the OpenAI API, http://HOST:PORT; equal to each other.",
                   "[\"http://127.0.0.1:18080\"]");
    t.text("endpoint", &ModelForm::endpoint,
           "In place of upstreams: an endpoint of stoker deploy --endpoint, under this name and at this price.",
           "chat");
    t.text("upstream_model", &ModelForm::upstream_model, "Its name there; the same when nothing is said.",
           "stoker-demo");
    t.text("key_env", &ModelForm::key_env, "The environment variable that holds the key for the upstreams.",
           "UPSTREAM_KEY");
    t.list_of_text("projects", &ModelForm::projects, "Whose keys see it; all when nothing is said.", "[\"research\"]");
    t.record("price", &ModelForm::price, price_table(), "What it costs; nothing when nothing is said.");
    t.count("default_output_tokens", &ModelForm::default_output_tokens,
            "Set aside for a request that names no limit; grows by 512 while it streams. 1024 when nothing is said.",
            "1024", 1, 1e7);
    t.count("max_outstanding", &ModelForm::max_outstanding,
            "Requests that one upstream gets at once; any number when nothing is said.", "256", 1, 1e6);
    t.seconds("queue", &ModelForm::queue,
              "How long a request waits where each upstream has max_outstanding; refused at once when nothing is said.",
              "30s", 0.1, 3600);
    return t;
}
RecordTable<KeyForm> key_table() {
    RecordTable<KeyForm> t("key", "Who may ask, for what, and how much. `stoker serve key NAME` makes one.");
    t.text("name", &KeyForm::name, "Of the person or the program; stands in the account.", "anna").required();
    t.text("sha256", &KeyForm::sha256, "Digest of the secret, 64 hex digits; the secret itself is nowhere kept.",
           "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae")
        .required();
    t.text("project", &KeyForm::project, "Whose models it sees, and whose account it is.", "research");
    t.list_of_text("models", &KeyForm::models,
                   "The only ones it may use; all that its project sees when nothing is said.", "[\"demo\"]");
    t.choice("role", &KeyForm::role,
             {{"viewer", Role::viewer},
              {"developer", Role::developer},
              {"operator", Role::operator_},
              {"admin", Role::admin},
              {"auditor", Role::auditor}},
             "developer when nothing is said; viewer and auditor list models and use none.", "developer");
    t.text("expires", &KeyForm::expires, "When it stops, UTC.", "2027-01-31T00:00:00Z");
    t.flag("revoked", &KeyForm::revoked, "It is refused at once, and its streams end within a second.");
    t.count("requests_per_minute", &KeyForm::requests_per_minute, "Requests; any number when nothing is said.", "600",
            1, kMostCount);
    t.count("request_burst", &KeyForm::request_burst, "Requests at once; ten seconds' worth when nothing is said.",
            "100", 1, kMostCount);
    t.count("tokens_per_minute", &KeyForm::tokens_per_minute, "Tokens in and out; any number when nothing is said.",
            "60k", 1, kMostCount);
    t.count("token_burst", &KeyForm::token_burst, "Tokens at once; ten seconds' worth when nothing is said.", "20k", 1,
            kMostCount);
    t.count("concurrent", &KeyForm::concurrent, "Requests at once; any number when nothing is said.", "8", 1, 1e6);
    t.usd("budget", &KeyForm::budget,
          "Money in a period (budget_period); no request begins or goes on that it does not cover.", "$20", 0, 1e7);
    return t;
}

const RecordTable<GatewayForm>& gateway_table() {
    static const RecordTable<GatewayForm> table = [] {
        RecordTable<GatewayForm> t(
            "gateway",
            "What a gateway is told to be: stoker serve --config gateway.yaml. Keys, models, "
            "limits and prices hold from the moment the file is changed; the rest from the next start.");
        t.text("listen", &GatewayForm::listen,
               "ADDRESS:PORT; 127.0.0.1:8080 when nothing is said. Elsewhere than on loopback only with TLS.",
               "127.0.0.1:8080");
        t.text("tls_cert", &GatewayForm::tls_cert, "Certificate chain, PEM.", "gateway.pem");
        t.text("tls_key", &GatewayForm::tls_key, "Its key, PEM.", "gateway-key.pem");
        t.count("threads", &GatewayForm::threads, "Event loops; 1 when nothing is said.", "4", 1, 256);
        t.count("name", &GatewayForm::name,
                "A number of its own, where there are several gateways; 0 when nothing is said.", "1", 0, 65535);
        t.count("max_attempts", &GatewayForm::max_attempts,
                "Replicas that a request may be tried on before its first byte; 2 when nothing is said.", "2", 1, 16);
        t.bytes("max_body", &GatewayForm::max_body, "Of a request; 32MiB when nothing is said.", "32MiB", 0, kGiB);
        t.bytes("stream_buffer", &GatewayForm::stream_buffer,
                "Held for a client that reads slowly; then its upstream is not read. 64KiB when nothing is said.",
                "64KiB", 0, 64 * kMiB);
        t.choice("reservation", &GatewayForm::reservation,
                 {{"likely", Reservation::likely}, {"strict", Reservation::strict}},
                 "How a prompt is counted before it is answered: likely takes 2.5 bytes a token, strict one, which "
                 "nothing exceeds.",
                 "likely");
        t.choice("budget_period", &GatewayForm::budget_period,
                 {{"month", BudgetPeriod::month}, {"day", BudgetPeriod::day}, {"total", BudgetPeriod::total}},
                 "Since when money is counted against budgets, UTC; month when nothing is said.", "month");
        RecordTable<LedgerForm> ledger("ledger", "The account on disk.");
        ledger.text("folder", &LedgerForm::folder,
                    "One for each gateway; relative to this file. `ledger` when nothing is said.", "ledger");
        ledger.bytes("segment", &LedgerForm::segment,
                     "Of one file, written with zeros ahead of its use; 16MiB when nothing is said.", "16MiB", 0, kGiB);
        t.record("ledger", &GatewayForm::ledger, ledger, "Where the account is kept.");
        RecordTable<TimeoutForm> times("timeouts", "How long is waited.");
        times.seconds("connect", &TimeoutForm::connect, "For an upstream to accept; 1s.", "1s", 0.01, 60);
        times.seconds("first_byte", &TimeoutForm::first_byte, "For the first byte of its answer; 120s.", "120s", 0.01,
                      86400);
        times.seconds("silence", &TimeoutForm::silence, "Between bytes of an answer; 30s.", "30s", 0.01, 86400);
        times.seconds("head", &TimeoutForm::head, "For the head of a request; 10s.", "10s", 0.1, 3600);
        times.seconds("idle", &TimeoutForm::idle, "For the next request; 75s.", "75s", 0.1, 86400);
        times.seconds("slow_consumer", &TimeoutForm::slow_consumer, "For a client that reads nothing; 30s.", "30s", 0.1,
                      3600);
        times.seconds("drain", &TimeoutForm::drain, "For streams after TERM; 300s.", "300s", 0, 86400);
        t.record("timeouts", &GatewayForm::timeouts, times, "How long is waited.");
        t.list_of("models", &GatewayForm::models, model_table(), "What can be asked for, beside endpoints.");
        t.list_of("keys", &GatewayForm::keys, key_table(), "Who may ask.").required();
        return t;
    }();
    return table;
}

SourcePos place(const std::map<std::string, SourcePos>& at, const char* key) {
    const auto found = at.find(key);
    return found == at.end() ? SourcePos{} : found->second;
}

std::uint64_t pico(const std::optional<Usd>& per_million) {
    return per_million ? static_cast<std::uint64_t>(per_million->micro()) : 0;
}

class Builder {
public:
    // `here`: where the gateway is to run; elsewhere only the text is judged.
    Builder(const GatewayForm& form, std::string folder, const EndpointBoards& endpoints, bool here)
        : form_(form), folder_(std::move(folder)), endpoints_(endpoints), here_(here) {}

    Result<GatewayConfig> build() {
        config_.setup = std::make_shared<Setup>();
        if (!form_.listen.empty()) config_.listen = form_.listen;
        options();
        timeouts();
        for (const ModelForm& model : form_.models) add_model(model);
        add_endpoints();
        for (const KeyForm& key : form_.keys) add_key(key);
        if (here_ && config_.setup->models.empty() && problems_.empty())
            problem("models: expected at least one, or an endpoint",
                    "stoker deploy FILE --endpoint makes an endpoint of a kind: inference file",
                    place(form_.at, "models"));
        if (form_.keys.empty())
            problem("keys: expected at least one", "`stoker serve key NAME` makes one and says what to write here",
                    place(form_.at, "keys"));
        if (!problems_.empty()) return Error(ErrorKind::invalid, std::move(problems_));
        return std::move(config_);
    }

private:
    void problem(std::string message, std::string remedy, SourcePos pos) {
        problems_.push_back({std::move(message), std::move(remedy), pos});
    }
    std::string path(const std::string& name) const {
        return name.starts_with('/') || folder_.empty() ? name : folder_ + "/" + name;
    }
    void options() {
        GatewayOptions& o = config_.options;
        o.threads = form_.threads.value_or(1);
        o.name = static_cast<std::uint64_t>(form_.name.value_or(0));
        o.ledger_folder = path(form_.ledger && !form_.ledger->folder.empty() ? form_.ledger->folder : "ledger");
        if (form_.ledger && form_.ledger->segment)
            o.ledger_segment_bytes = static_cast<std::uint64_t>(form_.ledger->segment->v);
        o.budget_period = form_.budget_period.value_or(BudgetPeriod::month);
        o.account_from_unix_us = budget_period_start_us(o.budget_period, wall_clock_us());
        Setup& setup = *config_.setup;
        setup.max_attempts = form_.max_attempts.value_or(setup.max_attempts);
        if (form_.max_body) setup.max_body_bytes = static_cast<std::size_t>(form_.max_body->v);
        if (form_.stream_buffer) setup.stream_buffer_bytes = static_cast<std::size_t>(form_.stream_buffer->v);
        at_least("max_body", form_.max_body, 1024, form_.at);
        at_least("stream_buffer", form_.stream_buffer, 4096, form_.at);
        if (form_.ledger) at_least("segment", form_.ledger->segment, 64 * kKiB, form_.ledger->at);
        setup.strict_tokens = form_.reservation == Reservation::strict;
        if (form_.tls_cert.empty() != form_.tls_key.empty())
            return problem("tls_cert and tls_key are given together or not at all", "",
                           place(form_.at, form_.tls_cert.empty() ? "tls_key" : "tls_cert"));
        read_pem("tls_cert", form_.tls_cert, o.certificate_pem);
        read_pem("tls_key", form_.tls_key, o.key_pem);
    }
    void at_least(const char* key, const std::optional<Bytes>& value, double low,
                  const std::map<std::string, SourcePos>& at) {
        if (value && value->v < low)
            problem(fmt::format("{}: expected at least {:.0f} bytes, found {:.0f}", key, low, value->v), "",
                    place(at, key));
    }
    void read_pem(const char* key, const std::string& name, std::string& out) {
        if (name.empty() || !here_) return;
        auto text = read_file(path(name), 1u << 20);
        if (text)
            out = std::move(*text);
        else
            problem(std::string(key) + ": " + text.error().message(), "", place(form_.at, key));
    }
    void timeouts() {
        if (!form_.timeouts) return;
        const TimeoutForm& f = *form_.timeouts;
        Timeouts& t = config_.setup->timeouts;
        const auto put = [](double& to, const std::optional<Seconds>& from) {
            if (from) to = from->v;
        };
        put(t.connect_s, f.connect);
        put(t.first_byte_s, f.first_byte);
        put(t.silence_s, f.silence);
        put(t.head_s, f.head);
        put(t.idle_s, f.idle);
        put(t.slow_consumer_s, f.slow_consumer);
        put(config_.drain_s, f.drain);
    }
    void add_upstream(ModelSetup& model, const std::string& url, SourcePos pos) {
        const auto server = http::read_server_url(url);
        if (!server)
            return problem("upstreams: " + server.error().message(), "write for example http://127.0.0.1:18080", pos);
        if (server->tls)
            return problem(
                "upstreams: " + printable(url, 200) + " speaks TLS, which this gateway does not speak to upstreams",
                "put a local proxy (stunnel, HAProxy) in between, and name it with http://", pos);
        if (!here_) return;
        const auto addresses = resolve(server->host, server->port, after(kResolveS));
        if (!addresses) return problem("upstreams: " + addresses.error().message(), "", pos);
        UpstreamSetup upstream{.id = name_id(url), .url = url, .authority = server->authority};
        std::memcpy(&upstream.address, (*addresses)->ai_addr, (*addresses)->ai_addrlen);
        upstream.address_size = (*addresses)->ai_addrlen;
        model.upstreams.push_back(std::move(upstream));
    }
    void add_model(const ModelForm& form) {
        ModelSetup model{.id = name_id(form.name),
                         .name = form.name,
                         .upstream_name = form.upstream_model,
                         .projects = form.projects};
        if (form.name.size() > 256) return problem("name: at most 256 bytes", "", place(form.at, "name"));
        if (!form.endpoint.empty())
            add_board(form, model);
        else if (form.upstreams.empty() || form.upstreams.size() > kMostUpstreams)
            problem(fmt::format("upstreams: expected 1 to {}", kMostUpstreams), "", place(form.at, "upstreams"));
        else
            for (const std::string& url : form.upstreams) add_upstream(model, url, place(form.at, "upstreams"));
        if (!form.key_env.empty() && here_) {
            const char* secret = std::getenv(form.key_env.c_str());
            if (secret == nullptr || *secret == '\0' || printable(secret, 4096) != secret)
                problem(fmt::format("key_env: the environment has no usable {}", printable(form.key_env, 60)),
                        "set it where the gateway is started", place(form.at, "key_env"));
            else
                model.authorization = std::string("Bearer ") + secret;
        }
        if (form.price) {
            model.price = {.in_picousd = pico(form.price->input),
                           .cached_in_picousd =
                               form.price->cached_input ? pico(form.price->cached_input) : pico(form.price->input),
                           .out_picousd = pico(form.price->output),
                           .request_picousd = pico(form.price->request)};
            model.price_version = static_cast<std::uint32_t>(
                name_id(fmt::format("{} {} {} {}", model.price.in_picousd, model.price.cached_in_picousd,
                                    model.price.out_picousd, model.price.request_picousd)));
        }
        model.default_output_tokens = static_cast<std::uint32_t>(form.default_output_tokens.value_or(1024));
        model.max_outstanding = static_cast<std::uint32_t>(form.max_outstanding.value_or(0));
        if (form.queue && !form.max_outstanding)
            problem("queue: without max_outstanding nothing is ever full",
                    "say max_outstanding as well, or leave it out", place(form.at, "queue"));
        if (form.queue) model.queue_s = form.queue->v;
        if (!config_.setup->models.emplace(form.name, std::move(model)).second)
            problem(fmt::format("models: '{}' is there twice", printable(form.name, 100)), "", place(form.at, "name"));
    }
    void add_board(const ModelForm& form, ModelSetup& model) {
        for (const auto& [said, key] : {std::pair(!form.upstreams.empty(), "upstreams"),
                                        std::pair(!form.upstream_model.empty(), "upstream_model"),
                                        std::pair(form.max_outstanding.has_value(), "max_outstanding"),
                                        std::pair(form.queue.has_value(), "queue")})
            if (said)
                problem(fmt::format("{}: of an endpoint it is known already", key), "leave it out",
                        place(form.at, key));
        if (!here_) return;
        const auto found = endpoints_.find(form.endpoint);
        if (found == endpoints_.end())
            return problem(fmt::format("endpoint: there is none named '{}'", printable(form.endpoint, 100)),
                           "stoker endpoints lists them, stoker deploy FILE --endpoint makes one",
                           place(form.at, "endpoint"));
        model.board = found->second;
        named_endpoints_.insert(form.endpoint);
    }
    // Those that no model of the file stands for.
    void add_endpoints() {
        for (const auto& [name, board] : endpoints_) {
            if (named_endpoints_.contains(name)) continue;
            if (const auto model = config_.setup->models.find(name); model != config_.setup->models.end()) {
                problem(fmt::format("models: '{}' is an endpoint, too", name),
                        fmt::format("write endpoint: {} there in place of upstreams, or give it another name", name),
                        place(form_.at, "models"));
                continue;
            }
            config_.setup->models.emplace(name, ModelSetup{.id = name_id(name), .name = name, .board = board});
        }
    }
    void add_key(const KeyForm& form) {
        Setup& setup = *config_.setup;
        KeySetup key{.id = name_id("key " + form.name),
                     .project = form.project.empty() ? "default" : form.project,
                     .models = form.models};
        if (!is_principal_name(form.name))
            return problem("name: expected letters, digits and . _ - @, up to 64", "", place(form.at, "name"));
        const std::string digest = lower(form.sha256);
        if (digest.size() != kDigestText || digest.find_first_not_of("0123456789abcdef") != std::string::npos)
            return problem("sha256: expected 64 hex digits", "`stoker serve key NAME` makes a key and prints them",
                           place(form.at, "sha256"));
        if (setup.tenants.key_of_sha256.contains(digest) ||
            std::any_of(setup.keys.begin(), setup.keys.end(), [&](const KeySetup& each) { return each.id == key.id; }))
            return problem(fmt::format("keys: '{}' or its digest is there twice", form.name), "",
                           place(form.at, "name"));
        for (const std::string& model : form.models)
            if (here_ && !setup.models.contains(model))
                problem(fmt::format("models: there is no '{}'", printable(model, 100)), "name one of this file",
                        place(form.at, "models"));
        key.entry = {.id = KeyId{setup.keys.size() + 1},
                     .name = form.name,
                     .service = true,
                     .role = form.role.value_or(Role::developer),
                     .level = Level::project,
                     .sha256 = digest,
                     .revoked = form.revoked.value_or(false)};
        if (!form.expires.empty()) {
            const auto at = parse_rfc3339(form.expires);
            if (!at)
                problem("expires: expected a time as 2027-01-31T00:00:00Z", "", place(form.at, "expires"));
            else
                key.entry.expires_us = *at;
        }
        const auto whole = [](const std::optional<double>& value) {
            return static_cast<std::int64_t>(value.value_or(0));
        };
        key.limits.requests = {.limit = whole(form.requests_per_minute), .burst = whole(form.request_burst)};
        key.limits.tokens = {.limit = whole(form.tokens_per_minute), .burst = whole(form.token_burst)};
        key.limits.concurrent = whole(form.concurrent);
        if (form.budget) key.limits.budget_picousd = std::max<std::uint64_t>(1, pico(form.budget) * 1'000'000);
        setup.tenants.add(key.entry);
        setup.keys.push_back(std::move(key));
    }

    const GatewayForm& form_;
    std::string folder_;
    const EndpointBoards& endpoints_;
    bool here_;
    std::set<std::string> named_endpoints_;
    GatewayConfig config_;
    Problems problems_;
};

}  // namespace

std::int64_t budget_period_start_us(BudgetPeriod period, std::int64_t now_us) {
    if (period == BudgetPeriod::total) return 0;
    const std::time_t now = static_cast<std::time_t>(now_us / 1'000'000);
    std::tm day{};
    ::gmtime_r(&now, &day);
    day.tm_hour = day.tm_min = day.tm_sec = 0;
    if (period == BudgetPeriod::month) day.tm_mday = 1;
    return static_cast<std::int64_t>(::timegm(&day)) * 1'000'000;
}

namespace {

Result<GatewayConfig> read_gateway(std::string_view text, const std::string& name, const std::string& folder,
                                   const EndpointBoards& endpoints, bool here) {
    if (text.size() > kMostConfig)
        return Error(ErrorKind::invalid,
                     fmt::format("the file has {} bytes, at most {} are taken", text.size(), kMostConfig),
                     {name, 0, 0});
    TRY(const Document document, Document::parse_yaml(text, name));
    Problems problems;
    const GatewayForm form = gateway_table().read(document.root(), problems);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return Builder(form, folder, endpoints, here).build();
}

}  // namespace

Result<GatewayConfig> read_gateway_config(std::string_view text, const std::string& name, const std::string& folder,
                                          const EndpointBoards& endpoints) {
    return read_gateway(text, name, folder, endpoints, true);
}

Problems gateway_config_problems(std::string_view text, const std::string& name) {
    const auto read = read_gateway(text, name, "", {}, false);
    return read ? Problems{} : read.error().problems();
}

const RecordInfo& gateway_config_record() {
    return gateway_table().info();
}

std::string gateway_config_reference() {
    return "# Configuration of a gateway\n\nGenerated by `stoker schema gateway-reference`; how it is used stands in\n"
           "[the guide](../guides/gateway.md).\n\n" +
           gateway_config_record().reference_markdown();
}

}  // namespace stoker::gateway
