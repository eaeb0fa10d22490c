#include "app/client/client.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "app/client/saved_logins.h"
#include "base/text.h"
#include "deploy/engines/engines.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/http/http_target.h"

namespace stoker {
namespace {

constexpr std::size_t kMaxAnswerBytes = 64u << 20;

class HttpTransport final : public Transport {
public:
    HttpTransport(std::unique_ptr<HttpClient> http, std::string token)
        : http_(std::move(http)), token_(std::move(token)) {}
    Result<HttpResponse> send(const HttpCall& call) override {
        HttpCall signed_call = call;
        if (!token_.empty()) signed_call.headers.add("Authorization", "Bearer " + token_);
        auto response = http_->call(signed_call);
        // Every answer of the API carries the trace: a proxy's page or a server of another kind does not.
        if (response && response->status < 300 && !response->headers.find("traceparent"))
            return Error(
                ErrorKind::unavailable, "what answers there is no Stoker server", {},
                "see --server, STOKER_SERVER and what stands between; stoker up prints the address of a server");
        return response;
    }

private:
    std::unique_ptr<HttpClient> http_;
    std::string token_;
};

// One answer of an API in this process, waited for.
class WaitingSink final : public HttpSink {
public:
    void send(HttpResponse response) override {
        std::lock_guard lock(mutex_);
        response_ = std::move(response);
        ready_.notify_all();
    }
    // Commands of this process ask for whole answers only.
    std::shared_ptr<HttpStream> stream(HttpResponse head) override {
        head.status = 406;
        head.body = "{\"detail\":\"streams are for sockets\"}";
        send(std::move(head));
        return nullptr;
    }
    std::optional<HttpResponse> wait(double seconds) {
        std::unique_lock lock(mutex_);
        ready_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return response_.has_value(); });
        return std::move(response_);
    }

private:
    std::mutex mutex_;  // guards response_
    std::condition_variable ready_;
    std::optional<HttpResponse> response_;
};

// As a socket would hand it over: the same target means the same here and there.
Result<HttpRequest> request_of(const HttpCall& call) {
    TRY(HttpTarget target, read_http_target(call.target));
    return HttpRequest{.method = call.method,
                       .target = call.target,
                       .path = std::move(target.path),
                       .query = std::move(target.query),
                       .headers = call.headers,
                       .body = call.body,
                       .peer = "in-process"};
}

class ApiTransport final : public Transport {
public:
    explicit ApiTransport(Api& api, std::string token = {}) : api_(api), token_(std::move(token)) {}
    Result<HttpResponse> send(const HttpCall& call) override {
        auto sink = std::make_shared<WaitingSink>();
        TRY(HttpRequest request, request_of(call));
        if (!token_.empty()) request.headers.add("Authorization", "Bearer " + token_);
        api_.handle(std::move(request), HttpReply(sink));
        auto response = sink->wait(call.timeout_s);
        if (!response) return Error(ErrorKind::timed_out, fmt::format("no answer within {:g} s", call.timeout_s));
        if (call.on_piece && response->status < 300) {
            call.on_piece(response->body);
            response->body.clear();
        }
        return std::move(*response);
    }

private:
    Api& api_;
    std::string token_;
};

// The journal of a folder, without a server: what was, as of its last record.
class OfflineEngine final : public Engine {
public:
    OfflineEngine(OfflineView view, std::string folder)
        : view_(std::move(view)), folder_(std::move(folder)), questions_(stoker::engines().front().look(folder_)) {}
    Status post(Command, Answer) override {
        return Error(ErrorKind::unavailable, "no server is running", {}, "stoker up starts one");
    }
    Status read(const std::function<void(const EngineView&)>& look) override {
        look({.state = view_.state,
              .now_us = view_.last_record_us,
              .journal = nullptr,
              .scheduler = scheduler_,
              .recovering = false,
              .folder = folder_,
              .offline = true});
        return done();
    }
    Status read_journal(std::function<void(const EngineView&)> look) override { return read(look); }
    std::shared_ptr<void> watch(Watcher) override { return nullptr; }
    EngineStats stats() const override { return {}; }
    const Capabilities& capabilities() const override { return capabilities_; }
    std::shared_ptr<const Questions> questions() const override { return questions_; }
    const std::string& folder() const override { return folder_; }
    void stop() override {}

private:
    OfflineView view_;
    std::string folder_;
    std::shared_ptr<const Questions> questions_;
    SchedulerOptions scheduler_;
    Capabilities capabilities_;
};

class OfflineTransport final : public Transport {
public:
    static Result<std::unique_ptr<Transport>> open(const std::string& folder) {
        auto read = read_offline(folder);
        // Nothing was ever run there.
        if (!read && read.error().kind() == ErrorKind::not_found) read = OfflineView{};
        if (!read) return read.error();
        OfflineView view = std::move(*read);
        auto transport = std::make_unique<OfflineTransport>();
        transport->engine_ = std::make_unique<OfflineEngine>(std::move(view), folder);
        ApiOptions options;
        std::error_code code;
        if (std::filesystem::exists(kept_prices(folder), code)) options.prices_file = kept_prices(folder);
        TRY(transport->api_, Api::make(*transport->engine_, std::move(options)));
        return std::unique_ptr<Transport>(std::move(transport));
    }
    Result<HttpResponse> send(const HttpCall& call) override { return ApiTransport(*api_).send(call); }

private:
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<Api> api_;
};

ErrorKind kind_of(int status) {
    switch (status) {
        case 401:
        case 403: return ErrorKind::denied;
        case 404: return ErrorKind::not_found;
        case 409:
        case 412: return ErrorKind::conflict;
        case 408:
        case 504: return ErrorKind::timed_out;
        case 413:
        case 429:
        case 507: return ErrorKind::exhausted;
        case 501: return ErrorKind::unsupported;
        case 502:
        case 503: return ErrorKind::unavailable;
        default: return status >= 500 ? ErrorKind::internal : ErrorKind::invalid;
    }
}

// Where in a text of the caller's something is wrong. Places in the request itself, which he did not write, say nothing
// to him.
SourcePos place_in(const Node& problem) {
    const std::string in = text_at(problem, "place.in");
    if (in.empty() || in == "body" || in == "query" || in == "header" || number_at(problem, "place.line") < 1)
        return {};
    return {in, static_cast<std::uint32_t>(number_at(problem, "place.line")),
            static_cast<std::uint32_t>(number_at(problem, "place.column"))};
}

Error error_of(const HttpResponse& response) {
    const ErrorKind kind = kind_of(response.status);
    const auto document = Document::parse_json(response.body, "answer");
    if (!document || !document->root().is_mapping())
        return Error(kind, fmt::format("the server answered {}", response.status));
    const Node& root = document->root();
    std::vector<Problem> problems;
    if (const Node* list = root.find("problems"); list != nullptr && list->is_sequence()) {
        for (const auto& item : list->items)
            problems.push_back(
                {.message = text_at(*item, "message"), .remedy = text_at(*item, "remedy"), .pos = place_in(*item)});
    }
    if (!problems.empty()) return Error(kind, std::move(problems));
    const std::string detail = text_at(root, "detail");
    return Error(kind, detail.empty() ? fmt::format("the server answered {}", response.status) : detail, {},
                 text_at(root, "remedy"));
}

}  // namespace

Result<std::unique_ptr<Client>> client_at(const ServerAddress& address, const std::string& folder) {
    TRY(auto http, HttpClient::make({.url = address.url, .ca_pem = address.ca_pem}));
    return std::make_unique<Client>(std::make_unique<HttpTransport>(std::move(http), address.token), folder, false);
}

Result<HttpResponse> Client::raw(const HttpCall& call) {
    TRY(HttpResponse response, transport_->send(call));
    if (response.status < 200 || response.status > 299) return error_of(response);
    return response;
}

Result<Document> Client::get(const std::string& target, double timeout_s) {
    TRY(const HttpResponse response, raw({.target = target, .timeout_s = timeout_s}));
    return Document::parse_json(response.body, "answer", {.max_bytes = kMaxAnswerBytes});
}

Result<Document> Client::post(const std::string& target, const Json& body, const HttpHeaders& headers,
                              double timeout_s) {
    HttpCall call{.method = "POST", .target = target, .headers = headers, .timeout_s = timeout_s};
    if (!body.is_null()) {
        call.body = body.dump(0);
        call.headers.add("Content-Type", "application/json");
    }
    TRY(const HttpResponse response, raw(call));
    return Document::parse_json(response.body.empty() ? "{}" : response.body, "answer");
}

Result<Document> Client::put(const std::string& target, const Json& body, const HttpHeaders& headers) {
    HttpCall call{.method = "PUT", .target = target, .headers = headers, .body = body.dump(0), .timeout_s = 60};
    call.headers.add("Content-Type", "application/json");
    TRY(const HttpResponse response, raw(call));
    return Document::parse_json(response.body.empty() ? "{}" : response.body, "answer");
}

const std::vector<OptionSpec>& client_options() {
    static const std::vector<OptionSpec> options = {
        {.name = "folder",
         .value = "DIR",
         .help = "where the server keeps its journal (STOKER_FOLDER, else ~/.local/state/stoker)",
         .completes = "dir"},
        {.name = "server", .value = "URL", .help = "a server elsewhere (STOKER_SERVER)"},
        {.name = "token-file",
         .value = "FILE",
         .help = "its token, or a key (STOKER_TOKEN holds it itself; else what stoker login kept)",
         .completes = "file"},
        {.name = "ca-file", .value = "FILE", .help = "whom to trust for https", .completes = "file"},
    };
    return options;
}

CliCommand with_client(CliCommand command) {
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

std::string folder_option(const Args& args) {
    return args.get_or("folder", "");
}

Result<std::unique_ptr<Client>> connect(const Args& args) {
    return connect_with(args, "");
}

Result<ServerAddress> server_address(const Args& args, const std::string& token_given) {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
    };
    TRY(const std::string folder, state_folder(folder_option(args)));
    ServerAddress address;
    address.url = args.get_or("server", args.has("folder") ? "" : variable("STOKER_SERVER"));
    const bool elsewhere = !address.url.empty();
    if (!elsewhere) {
        TRY(address, server_of(folder));
    }
    // A file that was named and is not there is no absent server.
    const auto read_named = [](const std::string& file, std::size_t most) -> Result<std::string> {
        auto text = read_file(file, most);
        if (!text && text.error().kind() == ErrorKind::not_found) {
            Problems problems = text.error().problems();
            return Error(ErrorKind::invalid, std::move(problems));
        }
        return text;
    };
    if (const auto file = args.get("token-file")) {
        TRY(const std::string text, read_named(*file, 1 << 16));
        address.token = std::string(trim(text));
    } else if (const std::string token = variable("STOKER_TOKEN");
               !token.empty() && (elsewhere || variable("STOKER_SERVER").empty())) {
        // Not the one that goes with a server elsewhere.
        address.token = token;
    }
    if (!token_given.empty()) {
        address.token = token_given == "-" ? "" : token_given;
    } else if (elsewhere && address.token.empty()) {
        TRY(const SavedLogin login, saved_login(address.url));
        address.token = login.token;
    }
    if (const auto file = args.get("ca-file")) {
        TRY(address.ca_pem, read_named(*file, 1 << 20));
    }
    return address;
}

Result<std::unique_ptr<Client>> connect_with(const Args& args, const std::string& token_given) {
    TRY(const std::string folder, state_folder(folder_option(args)));
    TRY(const ServerAddress address, server_address(args, token_given));
    const bool elsewhere = address.pid == 0;
    TRY(auto client, client_at(address, folder));
    // A server that was killed leaves its address behind.
    const auto alive = client->get("/readyz", 5);
    if (!alive && !elsewhere && alive.error().kind() == ErrorKind::unavailable) {
        if (const auto reached = client->raw({.target = "/healthz", .timeout_s = 5}); !reached)
            return Error(ErrorKind::not_found, "no server is running on " + folder);
    }
    // And another may have taken its port since. (A process that is out of sight in a container answers to its token.)
    if (alive && !elsewhere && address.pid > 0 && ::kill(static_cast<pid_t>(address.pid), 0) != 0 && errno == ESRCH)
        if (const auto known = client->get("/api/v1/whoami", 5); !known && known.error().kind() == ErrorKind::denied)
            return Error(ErrorKind::not_found, "no server is running on " + folder);
    return client;
}

Result<std::unique_ptr<Client>> connect_to_look(const Args& args) {
    auto client = connect(args);
    if (client || client.error().kind() != ErrorKind::not_found) return client;
    TRY(const std::string folder, state_folder(folder_option(args)));
    TRY(auto transport, OfflineTransport::open(folder));
    return std::make_unique<Client>(std::move(transport), folder, true);
}

Result<Client*> Reconnect::operator()() {
    constexpr double kGiveUpS = 600;
    const double begin_s = monotonic_seconds();
    bool told = false;
    for (double pause_s = 0.1;; pause_s = std::min(2.0, pause_s * 1.5)) {
        auto client = connect(args_);
        if (client) {
            client_ = std::move(*client);
            if (told) fmt::print(stderr, "{:<8} the server is back\n", "");
            return client_.get();
        }
        const ErrorKind kind = client.error().kind();
        const bool may_pass = kind == ErrorKind::not_found || kind == ErrorKind::unavailable ||
                              kind == ErrorKind::timed_out || kind == ErrorKind::conflict;
        if (!may_pass || monotonic_seconds() - begin_s > kGiveUpS) return client.error();
        if (!quiet_ && !std::exchange(told, true))
            fmt::print(stderr, "{:<8} the server does not answer; what runs goes on, and this waits for the next one\n",
                       "");
        if (stop_ != nullptr && stop_->wait_for(pause_s))
            return Error(ErrorKind::unavailable, "no server is running", {}, "what runs goes on; stoker up");
        if (stop_ == nullptr) std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
    }
}

std::unique_ptr<Client> client_of(Server& server, const std::string& folder) {
    return std::make_unique<Client>(std::make_unique<ApiTransport>(server.api(), server.token()), folder, false);
}

const Node* part(const Node& node, std::string_view path) {
    const Node* at = &node;
    for (const std::string_view key : split(path, '.')) {
        if (!at->is_mapping()) return nullptr;
        at = at->find(key);
        if (at == nullptr) return nullptr;
    }
    return at->kind == NodeKind::null ? nullptr : at;
}

std::string text_at(const Node& node, std::string_view path) {
    const Node* found = part(node, path);
    return found != nullptr && found->is_scalar() ? found->text : std::string();
}

double number_at(const Node& node, std::string_view path, double otherwise) {
    const Node* found = part(node, path);
    return found != nullptr && found->kind == NodeKind::number ? found->number : otherwise;
}

bool flag_at(const Node& node, std::string_view path) {
    const Node* found = part(node, path);
    return found != nullptr && found->kind == NodeKind::boolean && found->boolean;
}

Json json_of(const Node& node) {
    switch (node.kind) {
        case NodeKind::null: return Json();
        case NodeKind::boolean: return Json(node.boolean);
        case NodeKind::string: return Json(node.text);
        case NodeKind::number:
            if (node.text.find_first_of(".eE") == std::string::npos && node.text.size() < 19)
                return Json(static_cast<std::int64_t>(std::strtoll(node.text.c_str(), nullptr, 10)));
            return Json(node.number);
        case NodeKind::sequence: {
            Json list = Json::array();
            for (const auto& item : node.items) list.push(json_of(*item));
            return list;
        }
        case NodeKind::mapping: {
            Json::Object members;
            for (const Member& member : node.members) members.emplace_back(member.key, json_of(*member.value));
            return Json(std::move(members));
        }
    }
    return Json();
}

std::string url_encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '_' || c == '.' || c == '~';
        if (plain)
            out += c;
        else
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

}  // namespace stoker
