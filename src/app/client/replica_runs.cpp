#include "app/client/replica_runs.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "app/client/submission.h"
#include "app/client/typed.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/http/client_connection.h"
#include "io/http/resolve.h"
#include "io/process.h"

namespace stoker {
namespace {

constexpr double kListS = 5, kProbeS = 1, kResolveS = 2, kReconnectS = 1;
constexpr const char *kEndpoint = "endpoint", *kRevision = "endpoint_revision", *kReplica = "endpoint_replica",
                     *kPort = "endpoint_port";
constexpr int kFirstPort = 20'000, kPorts = 20'000;  // of replicas on other machines, where nobody can be asked

std::string replaced(std::string text, const std::map<std::string, std::string>& words) {
    for (const auto& [word, value] : words)
        for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + value.size()))
            text.replace(at, word.size(), value);
    return text;
}

// One that nobody listens at now.
int free_port() {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (!fd || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
        return 0;
    return ntohs(address.sin_port);
}

// Seconds until a connection was open; negative: it was not.
double connect_time(const ReplicaAddress& to) {
    const UniqueFd fd(::socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return -1;
    const double begin_s = monotonic_seconds();
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.address), to.size) != 0) {
        if (errno != EINPROGRESS) return -1;
        pollfd wait{.fd = fd.get(), .events = POLLOUT, .revents = 0};
        if (::poll(&wait, 1, static_cast<int>(kProbeS * 1000)) != 1) return -1;
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) return -1;
    }
    return monotonic_seconds() - begin_s;
}

// Ticks of one line of /proc/PID/stat, and its session.
struct ProcessTicks {
    long session = 0;
    double ticks = 0;
};
std::optional<ProcessTicks> ticks_of(const std::string& pid) {
    const auto text = read_file("/proc/" + pid + "/stat", 4096);
    if (!text) return std::nullopt;
    const std::size_t close = text->rfind(')');
    if (close == std::string::npos) return std::nullopt;
    long session = 0;
    unsigned long user = 0, system = 0;
    // state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime
    if (std::sscanf(text->c_str() + close + 1, " %*c %*d %*d %ld %*d %*d %*u %*u %*u %*u %*u %lu %lu", &session, &user,
                    &system) != 3)
        return std::nullopt;
    return ProcessTicks{session, static_cast<double>(user + system)};
}

class ReplicaRuns final : public ReplicaHost {
public:
    ReplicaRuns(ConnectToServer connect, bool here) : connect_(std::move(connect)), here_(here) {}

    Result<std::string> start(const Endpoint& endpoint, const EndpointRevision& revision, const std::string& name,
                              const std::string& key) override {
        TRY(Client * client, this->client());
        TRY_VOID(know_engine(*client));
        // Asked again, it is the same request: with another port it would be another one.
        auto port = ports_.find(key);
        if (port == ports_.end()) {
            const int chosen =
                local_ ? free_port() : kFirstPort + static_cast<int>(std::hash<std::string>{}(key) % kPorts);
            if (chosen == 0) return Error(ErrorKind::exhausted, "this machine has no free port");
            port = ports_.emplace(key, chosen).first;
        }
        TRY(const RunSpec spec, replica_spec(endpoint, revision, name, local_ ? "127.0.0.1" : "0.0.0.0", port->second));
        auto submitted = submit(*client, spec, key, false,
                                endpoint.user.empty() ? ""
                                                      : fmt::format("project={}&as={}", url_encoded(endpoint.project),
                                                                    url_encoded(endpoint.user)));
        if (!submitted) {
            lost(submitted.error());
            return submitted.error();
        }
        ports_.erase(key);
        return submitted->run.text();
    }

    Status end(const std::string& run) override {
        TRY(Client * client, this->client());
        const auto told = client->post(fmt::format("/api/v1/runs/{}/cancel", url_encoded(run)), Json(), {}, kListS);
        if (told) return done();
        lost(told.error());
        return told.error();
    }

    Result<std::vector<ReplicaFact>> list(const Endpoint& endpoint) override {
        TRY(Client * client, this->client());
        TRY_VOID(know_engine(*client));
        std::vector<ReplicaFact> out;
        std::string cursor;
        do {
            std::string target = "/api/v1/runs?limit=500&name=" + url_encoded(replica_run_name(endpoint.name));
            for (const auto& [state, word] : enum_names(RunState{}))
                if (!ended(state)) target += "&state=" + std::string(word);
            if (!cursor.empty()) target += "&cursor=" + url_encoded(cursor);
            const auto document = client->get(target, kListS);
            if (!document) {
                lost(document.error());
                return document.error();
            }
            TRY(const auto page, typed<api::RunPage>(*document));
            for (const api::RunItem& item : page.items)
                // Of another person, it only looks like a replica: nobody's requests go there.
                if (auto fact = endpoint.user.empty() || endpoint.user == item.user ? fact_of(item) : std::nullopt)
                    out.push_back(std::move(*fact));
            cursor = page.next_cursor;
        } while (!cursor.empty());
        return out;
    }

    ReplicaFact last_of(const std::string& run) override {
        ReplicaFact unknown{.run = run};
        const auto client = this->client();
        if (!client) return unknown;
        const auto document = (*client)->get("/api/v1/runs/" + url_encoded(run), kListS);
        if (!document) {
            lost(document.error());
            // The server knows no such run: it is gone.
            if (document.error().kind() == ErrorKind::not_found)
                unknown.phase = ReplicaPhase::ended, unknown.why = "the server does not know it";
            return unknown;
        }
        const auto view = typed<api::RunView>(*document);
        if (!view) return unknown;
        ReplicaFact fact{.run = run};
        if (!ended(view->run.state)) return fact;
        fact.phase = ReplicaPhase::ended;
        fact.why = fmt::format("{}: {}{}", enum_word(view->run.state), meaning_of(view->run.cause),
                               view->run.detail.empty() ? "" : ", " + view->run.detail);
        return fact;
    }

    Result<ReplicaAddress> address(const std::string& url) override {
        TRY(const auto server, http::read_server_url(url));
        TRY(const auto found,
            resolve(server.host, server.port,
                    std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int>(kResolveS * 1000))));
        ReplicaAddress out{.authority = server.authority};
        std::memcpy(&out.address, found->ai_addr, found->ai_addrlen);
        out.size = found->ai_addrlen;
        return out;
    }

    ReplicaProbe probe(const ServingTemplate& how, const std::string& url) override {
        ReplicaProbe out;
        const auto to = address(url);
        if (!to) {
            out.problem = to.error().message();
            return out;
        }
        out.connect_s = connect_time(*to);
        if (out.connect_s < 0) {
            out.problem = "nobody listens at " + url;
            return out;
        }
        const double begin_s = monotonic_seconds();
        const auto health = ask(url, how.health);
        out.answer_s = monotonic_seconds() - begin_s;
        out.well = health && health->status == 200 &&
                   (how.ready_word.empty() || health->body.find(how.ready_word) != std::string::npos);
        if (!out.well) {
            out.problem =
                health ? fmt::format("{}{} answers {}", url, how.health, health->status) : health.error().message();
            return out;
        }
        const auto listed = ask(url, how.models);
        const auto document = listed && listed->status == 200
                                  ? Document::parse_json(listed->body, "models")
                                  : Result<Document>(Error(ErrorKind::unavailable, "no answer"));
        const Node* data = document ? document->root().find("data") : nullptr;
        if (data != nullptr && data->is_sequence())
            for (const auto& item : data->items)
                if (std::string id = text_at(*item, "id"); !id.empty()) out.models.push_back(std::move(id));
        return out;
    }

    std::optional<EngineSignals> signals(const ServingTemplate& how, const std::string& url,
                                         const std::string& model) override {
        const auto answer = ask(url, how.metrics);
        if (!answer || answer->status != 200) return std::nullopt;
        const auto reading = read_engine_metrics(answer->body, model);
        if (!reading || !reading->engine) return std::nullopt;
        return reading->signals;
    }

    Processors processors(const std::vector<std::string>& runs) override {
        Processors out{.cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN))};
        if (!local_) return out;
        const auto stat = read_file("/proc/stat", 1 << 16);
        double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
        if (!stat || std::sscanf(stat->c_str(), "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle,
                                 &wait, &irq, &soft, &steal) < 8)
            return out;
        const double busy = user + nice + system + irq + soft, all = busy + idle + wait + steal;
        std::map<std::string, double> ticks;  // by pid
        std::map<long, bool> sessions;
        for (const std::string& run : runs)
            for (const long session : sessions_of(run)) sessions[session] = true;
        double used = 0;
        if (DIR* folder = sessions.empty() ? nullptr : ::opendir("/proc")) {
            while (const dirent* entry = ::readdir(folder)) {
                const std::string pid = entry->d_name;
                if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
                const auto now = ticks_of(pid);
                if (!now || !sessions.contains(now->session)) continue;
                ticks[pid] = now->ticks;
                const auto before = ticks_.find(pid);
                if (before != ticks_.end()) used += std::max(0.0, now->ticks - before->second);
            }
            ::closedir(folder);
        }
        if (all_ > 0 && all > all_) {
            out.busy = (busy - busy_) / (all - all_);
            // All ticks of all cores together are the time that passed, times the cores.
            if (!ticks_.empty() && !ticks.empty()) out.replicas_cores = used / (all - all_) * out.cores;
        }
        busy_ = busy;
        all_ = all;
        ticks_ = std::move(ticks);
        return out;
    }

private:
    static bool ended(RunState state) {
        return state == RunState::succeeded || state == RunState::failed || state == RunState::cancelled ||
               state == RunState::expired;
    }

    Result<Client*> client() {
        if (client_) return client_.get();
        const double now_s = monotonic_seconds();
        if (now_s < next_connect_s_) return *why_not_;
        auto client = connect_();
        if (!client) {
            next_connect_s_ = now_s + kReconnectS;
            why_not_ = client.error();
            return client.error();
        }
        client_ = std::move(*client);
        return client_.get();
    }

    // A server that has gone may come back elsewhere.
    void lost(const Error& error) {
        if (error.kind() == ErrorKind::unavailable || error.kind() == ErrorKind::timed_out) client_.reset();
    }

    Status know_engine(Client& client) {
        if (known_) return done();
        auto version = get<api::VersionView>(client, "/api/v1/version");
        if (!version) {
            lost(version.error());
            return version.error();
        }
        if (lower(version->engine).find("kubernetes") != std::string::npos)
            return Error(ErrorKind::unsupported, "pods of a job have no address that a gateway outside can reach", {},
                         "stoker deploy FILE --render DIR --target kubernetes writes a Deployment with its Service, "
                         "whose address stands under upstreams: of gateway.yaml");
        // An engine that neither queues nor chooses nodes starts its work on the machine of its server.
        local_ = here_ && !version->queues && !version->binds;
        known_ = true;
        return done();
    }

    std::optional<ReplicaFact> fact_of(const api::RunItem& item) const {
        const auto label = [&](const char* name) {
            const auto found = item.labels.find(name);
            return found == item.labels.end() ? std::string() : found->second;
        };
        const int port = std::atoi(label(kPort).c_str());
        if (label(kReplica).empty() || port <= 0) return std::nullopt;  // somebody else's run of that name
        ReplicaFact fact{
            .name = label(kReplica), .revision = std::atoi(label(kRevision).c_str()), .run = item.id.text()};
        const bool runs = item.state == RunState::running || item.state == RunState::checkpointing;
        fact.phase = runs ? ReplicaPhase::running : ReplicaPhase::queued;
        if (runs)
            fact.url =
                fmt::format("http://{}:{}", local_ || item.nodes.empty() ? "127.0.0.1" : item.nodes.front(), port);
        else if (item.cause != Cause::none)
            fact.why = std::string(meaning_of(item.cause));
        return fact;
    }

    Result<HttpResponse> ask(const std::string& url, const std::string& path) {
        TRY(const auto http, HttpClient::make({.url = url, .connect_timeout_s = kProbeS}));
        return http->call({.target = path, .timeout_s = kProbeS, .max_body_bytes = 8u << 20});
    }

    // Of the ranks of a run here; kept, since they do not change.
    const std::vector<long>& sessions_of(const std::string& run) {
        auto known = sessions_.find(run);
        if (known != sessions_.end() && !known->second.empty()) return known->second;
        std::vector<long>& out = sessions_[run];
        const auto client = this->client();
        if (!client) return out;
        const auto document = (*client)->get("/api/v1/runs/" + url_encoded(run), kListS);
        const auto view = document ? typed<api::RunView>(*document) : Result<api::RunView>(document.error());
        if (!view || view->attempts.empty()) return out;
        for (const api::RankView& rank : view->attempts.back().ranks)
            if (const auto own = rank.pid > 0 ? ticks_of(std::to_string(rank.pid)) : std::nullopt)
                out.push_back(own->session);
        constexpr std::size_t kMostRuns = 1024;
        if (sessions_.size() > kMostRuns) sessions_.erase(sessions_.begin());
        return sessions_[run];
    }

    ConnectToServer connect_;
    std::unique_ptr<Client> client_;
    std::optional<Error> why_not_;
    double next_connect_s_ = 0;
    const bool here_;
    bool known_ = false;  // what its engine is
    bool local_ = true;
    std::map<std::string, int> ports_;  // by key, of those that were not answered yet
    std::map<std::string, std::vector<long>> sessions_;
    std::map<std::string, double> ticks_;
    double busy_ = 0, all_ = 0;
};

}  // namespace

std::string replica_run_name(const std::string& endpoint) {
    return "serve-" + endpoint;
}

Result<RunSpec> replica_spec(const Endpoint& endpoint, const EndpointRevision& revision, const std::string& name,
                             const std::string& host, int port) {
    TRY(RunSpec spec, parse_run_spec(revision.spec));
    TRY(const ServingTemplate* row, find_serving_template(revision.engine));
    const std::map<std::string, std::string> words = {
        {"{port}", std::to_string(port)}, {"{host}", host}, {"{name}", endpoint.name}};
    for (std::string& word : spec.command) word = replaced(std::move(word), words);
    for (auto& [key, value] : spec.environment) value = replaced(std::move(value), words);
    if (!row->port_variable.empty()) spec.environment[row->port_variable] = std::to_string(port);
    if (!row->host_variable.empty()) spec.environment[row->host_variable] = host;
    spec.name = replica_run_name(endpoint.name);
    spec.labels[kEndpoint] = endpoint.name;
    spec.labels[kRevision] = std::to_string(revision.number);
    spec.labels[kReplica] = name;
    spec.labels[kPort] = std::to_string(port);
    return spec;
}

std::unique_ptr<ReplicaHost> make_replica_runs(ConnectToServer connect, bool here) {
    return std::make_unique<ReplicaRuns>(std::move(connect), here);
}

}  // namespace stoker
