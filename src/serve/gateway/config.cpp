#include "serve/gateway/config.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

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
#include "serve/gateway/config_form.h"
#include "serve/gateway/upstream_address.h"
#include "serve/tokens/tokenizer_cache.h"

namespace stoker::gateway {
namespace {

constexpr double kResolveS = 5, kPercent = 100, kDayS = 86400;
constexpr std::size_t kMostConfig = 8u << 20, kMostUpstreams = 256, kDigestText = 64;

SourcePos place(const std::map<std::string, SourcePos>& at, const char* key) {
    const auto found = at.find(key);
    return found == at.end() ? SourcePos{} : found->second;
}

template <class Form>
KeyLimits limits_of(const Form& form) {
    const auto whole = [](const std::optional<double>& value) { return static_cast<std::int64_t>(value.value_or(0)); };
    KeyLimits limits;
    limits.requests = {.limit = whole(form.requests_per_minute), .burst = whole(form.request_burst)};
    limits.tokens = {.limit = whole(form.tokens_per_minute), .burst = whole(form.token_burst)};
    limits.concurrent = whole(form.concurrent);
    if (form.budget)
        limits.budget_picousd =
            std::max<std::uint64_t>(1, static_cast<std::uint64_t>(form.budget->micro()) * 1'000'000);
    return limits;
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
        for (const ModelForm& model : form_.models) check_fallback(model);
        for (const ProjectForm& project : form_.projects) add_project(project);
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
        if (form_.ledger) o.ledger_database = form_.ledger->database;
        if (form_.ledger && form_.ledger->segment)
            o.ledger_segment_bytes = static_cast<std::uint64_t>(form_.ledger->segment->v);
        const BatchForm batches = form_.batches.value_or(BatchForm{});
        o.batch_at_once = batches.at_once.value_or(o.batch_at_once);
        if (o.batch_at_once > 0) o.batch_folder = path(batches.folder.empty() ? "batches" : batches.folder);
        if (batches.space) o.batch_bytes = static_cast<std::uint64_t>(batches.space->v);
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
        for (const std::string& origin : form_.origins) add_origin(origin);
        if (form_.traces) add_traces(*form_.traces);
        if (form_.access_log) {
            const AccessLogForm& form = *form_.access_log;
            o.access_log.file = path(form.file);
            o.access_log.format = form.format.value_or(o.access_log.format);
            if (form.max_bytes) o.access_log.max_bytes = static_cast<std::int64_t>(form.max_bytes->v);
            at_least("max_bytes", form.max_bytes, 64 * kKiB, form.at);
            o.access_log.keep = form.keep.value_or(o.access_log.keep);
        }
        if (form_.shared_limits) add_shared_limits(*form_.shared_limits);
        read_pem("tls_cert", form_.tls_cert, o.certificate_pem, form_.at);
        read_pem("tls_key", form_.tls_key, o.key_pem, form_.at);
    }
    void add_origin(const std::string& origin) {
        const bool plain = split_url(origin).path.empty() && !origin.ends_with('/');
        if (origin != "*" && (!plain || !http::read_server_url(origin)))
            problem("origins: '" + printable(origin, 200) + "' is nowhere that a web page comes from",
                    "scheme, host and port as https://chat.example.org, without a slash at the end",
                    place(form_.at, "origins"));
        config_.setup->origins.push_back(origin);
    }
    void add_shared_limits(const SharedLimitsForm& form) {
        SharedLimits& shared = config_.options.shared_limits;
        if (!form_.name)
            problem("shared_limits: each of the gateways needs a number of its own", "add name: 1, say",
                    place(form_.at, "shared_limits"));
        shared.home = form.home;
        if (!form.home.empty()) {
            const auto server = http::read_server_url(form.home);
            const bool loopback =
                server && (server->host == "localhost" || server->host == "::1" || server->host.starts_with("127."));
            if (!server)
                problem("home: " + server.error().message(), "write for example https://gateway-1.example:8443",
                        place(form.at, "home"));
            else if (!server->tls && !loopback)
                problem("home: the secret would go there in the clear", "name an https URL", place(form.at, "home"));
        }
        read_pem("ca", form.ca, shared.ca_pem, form.at);
        if (here_) shared.secret = secret_of(form.secret_env, place(form.at, "secret_env"), "secret_env");
    }
    void add_traces(const TraceForm& form) {
        TraceOptions& traces = config_.options.traces;
        traces.to = form.to;
        traces.share = form.share.value_or(kPercent) / kPercent;
        if (const auto server = http::read_server_url(form.to); !server)
            problem("to: " + server.error().message(), "write for example http://127.0.0.1:4318", place(form.at, "to"));
        if (form.header_env.empty() || !here_) return;
        traces.header = secret_of(form.header_env, place(form.at, "header_env"), "header_env");
        const std::size_t colon = traces.header.find(':');
        if (!traces.header.empty() &&
            (colon == 0 ||
             traces.header.find_first_not_of(' ', colon == std::string::npos ? colon : colon + 1) == std::string::npos))
            problem("header_env: expected a header as NAME: VALUE", "", place(form.at, "header_env"));
    }
    std::string secret_of(const std::string& variable, SourcePos pos, const char* key) {
        const char* secret = std::getenv(variable.c_str());
        if (secret != nullptr && *secret != '\0' && printable(secret, 4096) == secret) return secret;
        problem(fmt::format("{}: the environment has no usable {}", key, printable(variable, 60)),
                "set it where the gateway is started", pos);
        return "";
    }
    void at_least(const char* key, const std::optional<Bytes>& value, double low,
                  const std::map<std::string, SourcePos>& at) {
        if (value && value->v < low)
            problem(fmt::format("{}: expected at least {:.0f} bytes, found {:.0f}", key, low, value->v), "",
                    place(at, key));
    }
    void read_pem(const char* key, const std::string& name, std::string& out,
                  const std::map<std::string, SourcePos>& at) {
        if (name.empty() || !here_) return;
        auto text = read_file(path(name), 1u << 20);
        if (text)
            out = std::move(*text);
        else
            problem(std::string(key) + ": " + text.error().message(), "", place(at, key));
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
        const UpstreamUrl parts = split_url(url);
        const auto server = http::read_server_url(parts.server);
        if (!server)
            return problem("upstreams: " + server.error().message(), "write for example http://127.0.0.1:18080", pos);
        for (const std::string_view word : split(std::string_view(parts.path).substr(parts.path.empty() ? 0 : 1), '/'))
            if (!parts.path.empty() && !is_path_word(word))
                return problem("upstreams: '" + printable(parts.path, 200) + "' is no path before /v1",
                               "letters, digits and . _ - between the slashes; no query", pos);
        if (!here_) return;
        const auto addresses = resolve(server->host, server->port, after(kResolveS));
        if (!addresses) return problem("upstreams: " + addresses.error().message(), "", pos);
        UpstreamSetup upstream{
            .id = name_id(url), .url = url, .authority = server->authority, .path = parts.path, .host = server->host};
        if (server->tls) {
            upstream.tls = tls_of(model_ca_, pos);
            upstream.id = name_id(url + "\n" + model_ca_);  // a connection is for those who trust the same
        }
        config_.setup->names_hosts =
            config_.setup->names_hosts || server->host.find_first_not_of("0123456789.:") != std::string::npos;
        std::memcpy(&upstream.address, (*addresses)->ai_addr, (*addresses)->ai_addrlen);
        upstream.address_size = (*addresses)->ai_addrlen;
        model.upstreams.push_back(std::move(upstream));
    }
    // One context for all that trust the same, so that sessions are resumed and memory is small.
    std::shared_ptr<SSL_CTX> tls_of(const std::string& ca_pem, SourcePos pos) {
        auto& known = tls_[ca_pem];
        if (!known) known = upstream_tls(ca_pem);
        if (!known) problem("ca: there is no certificate in it", "name a file of certificates, PEM", pos);
        return known;
    }
    void check_fallback(const ModelForm& form) {
        for (const std::string& name : form.fallback)
            if (name == form.name || (here_ && !config_.setup->models.contains(name)))
                problem(fmt::format("fallback: {}", name == form.name
                                                        ? "a model does not stand in for itself"
                                                        : fmt::format("there is no model '{}'", printable(name, 100))),
                        "name other models of this file, or endpoints", place(form.at, "fallback"));
    }
    void add_objective(const ModelForm& form, ServiceObjective& out) {
        if (!form.objective) return;
        const ObjectiveForm& said = *form.objective;
        if (said.first_token) out.first_token_s = said.first_token->v;
        if (said.answer) out.answer_s = said.answer->v;
        out.met = said.met.value_or(95) / kPercent;
        out.availability = said.availability.value_or(99.9) / kPercent;
        out.window_s = said.days.value_or(28) * kDayS;
    }
    void add_project(const ProjectForm& form) {
        if (form.name.empty() || form.name.size() > 128)
            return problem("name: expected 1 to 128 bytes", "", place(form.at, "name"));
        ProjectSetup project{.id = name_id(form.name), .name = form.name, .limits = limits_of(form)};
        if (!config_.setup->projects.emplace(form.name, std::move(project)).second)
            problem(fmt::format("projects: '{}' is there twice", printable(form.name, 100)), "",
                    place(form.at, "name"));
    }
    void add_model(const ModelForm& form) {
        ModelSetup model{.id = name_id(form.name),
                         .name = form.name,
                         .upstream_name = form.upstream_model,
                         .projects = form.projects};
        if (form.name.size() > 256) return problem("name: at most 256 bytes", "", place(form.at, "name"));
        model.fallback = form.fallback;
        model.api_version = form.api_version;
        model.cap_id = name_id("cap " + form.name);
        if (form.cap)
            model.cap_picousd = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(form.cap->micro()) * 1'000'000);
        add_objective(form, model.objective);
        if (!form.api_version.empty() && (!is_path_word(form.api_version) || !is_path_word(form.upstream_model)))
            problem(
                "api_version: goes with upstream_model, the name of a deployment; both of letters, digits and . _ -",
                "leave it out for the path /openai/v1", place(form.at, "api_version"));
        model_ca_.clear();
        read_pem("ca", form.ca, model_ca_, form.at);
        if (!form.endpoint.empty())
            add_board(form, model);
        else if (form.upstreams.empty() || form.upstreams.size() > kMostUpstreams)
            problem(fmt::format("upstreams: expected 1 to {}", kMostUpstreams), "", place(form.at, "upstreams"));
        else
            for (const std::string& url : form.upstreams) add_upstream(model, url, place(form.at, "upstreams"));
        if (!form.tokenizer.empty() && here_) {
            if (auto read = tokens::load_tokenizer(path(form.tokenizer)))
                model.tokenizer = std::move(*read);
            else
                problem("tokenizer: " + read.error().message(), "leave it out, and bytes are counted",
                        place(form.at, "tokenizer"));
        }
        if (!form.key_env.empty() && here_) {
            if (const std::string secret = secret_of(form.key_env, place(form.at, "key_env"), "key_env");
                !secret.empty())
                append_key(model.authorization, form.key_header.value_or(KeyHeader::authorization), secret);
        }
        if (form.key_header && form.key_env.empty())
            problem("key_header: says how the key of key_env is sent", "add key_env, or leave it out",
                    place(form.at, "key_header"));
        if (form.price) {
            model.price = {.in_picousd = pico(form.price->input),
                           .cached_in_picousd =
                               form.price->cached_input ? pico(form.price->cached_input) : pico(form.price->input),
                           .out_picousd = pico(form.price->output),
                           .request_picousd = pico(form.price->request),
                           .image_picousd = pico(form.price->image) * 1'000'000};
            model.price_version = static_cast<std::uint32_t>(
                name_id(fmt::format("{} {} {} {} {}", model.price.in_picousd, model.price.cached_in_picousd,
                                    model.price.out_picousd, model.price.request_picousd, model.price.image_picousd)));
        }
        model.default_output_tokens = static_cast<std::uint32_t>(form.default_output_tokens.value_or(1024));
        model.max_outstanding = static_cast<std::uint32_t>(form.max_outstanding.value_or(0));
        if (form.queue && !form.max_outstanding)
            problem("queue: without max_outstanding nothing is ever full",
                    "say max_outstanding as well, or leave it out", place(form.at, "queue"));
        if (form.queue) model.queue_s = form.queue->v;
        const bool alone = form.endpoint.empty() && form.upstreams.size() < 2;
        if (form.hedge && (alone || form_.max_attempts.value_or(2) < 2))
            problem(alone ? "hedge: one upstream has no second beside it"
                          : "hedge: with max_attempts: 1 a request goes to one replica only",
                    alone ? "name another one in upstreams, or leave it out" : "allow 2, or leave it out",
                    place(form.at, "hedge"));
        if (form.hedge) model.hedge_s = form.hedge->v;
        if (!config_.setup->models.emplace(form.name, std::move(model)).second)
            problem(fmt::format("models: '{}' is there twice", printable(form.name, 100)), "", place(form.at, "name"));
    }
    static void append_key(std::string& out, KeyHeader header, const std::string& secret) {
        switch (header) {
            case KeyHeader::authorization: out += "authorization: Bearer "; break;
            case KeyHeader::api_key: out += "api-key: "; break;
            case KeyHeader::x_api_key: out += "x-api-key: "; break;
        }
        out.append(secret).append("\r\n");
    }
    void add_board(const ModelForm& form, ModelSetup& model) {
        for (const auto& [said, key] :
             {std::pair(!form.upstreams.empty(), "upstreams"),
              std::pair(!form.upstream_model.empty(), "upstream_model"),
              std::pair(!form.api_version.empty(), "api_version"), std::pair(!form.ca.empty(), "ca"),
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
        key.limits = limits_of(form);
        key.project_id = name_id(key.project);
        if (const auto project = setup.projects.find(key.project); project != setup.projects.end()) {
            key.project_limited = true;
            key.project_limits = project->second.limits;
        }
        setup.tenants.add(key.entry);
        setup.keys.push_back(std::move(key));
    }

    const GatewayForm& form_;
    std::string folder_;
    const EndpointBoards& endpoints_;
    bool here_;
    std::set<std::string> named_endpoints_;
    std::map<std::string, std::shared_ptr<SSL_CTX>> tls_;  // by whom it trusts
    std::string model_ca_;                                 // of the model that is read
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

std::int64_t budget_period_end_us(BudgetPeriod period, std::int64_t now_us) {
    if (period == BudgetPeriod::total) return 0;
    const std::int64_t start_us = budget_period_start_us(period, now_us);
    // Into the next one, whatever the month's length; its begin is the end of this one.
    const std::int64_t days = period == BudgetPeriod::day ? 1 : 32;
    return budget_period_start_us(period, start_us + days * 86'400'000'000LL);
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
