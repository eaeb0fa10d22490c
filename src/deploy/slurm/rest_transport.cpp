// slurmrestd, over a Unix socket or https: the same questions, for sites that offer it and machines without Slurm's
// commands. Never a mixture of both: what it cannot say is not said.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "deploy/local/launcher.h"
#include "deploy/slurm/rest_wire.h"
#include "deploy/slurm/slurm_driver.h"
#include "deploy/slurm/transport.h"
#include "io/files.h"
#include "io/http/client_connection.h"
#include "io/http/http_client.h"
#include "io/process.h"

namespace stoker::slurm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kCallLimit = std::chrono::seconds(30);
constexpr auto kAgain = std::chrono::milliseconds(200);
constexpr double kConnectS = 5;
constexpr std::size_t kMostIdle = 4, kMostTokenBytes = 16384, kMostPemBytes = 1 << 20;
// slurm_errno.h of Slurm 22.05 (slurm-22-05-8-1): what no longer is, and what may be ended in a moment.
constexpr std::int64_t kNoSuchJob = 2017, kTryAgain = 2020, kAlreadyOver = 2021;
constexpr const char* kNoImages =
    "over slurmrestd nobody can tell whether this cluster has the plug-in Pyxis, which images need. Leave image out, "
    "let "
    "the engine use Slurm's commands (engine without rest), or send the run to an engine that has images (--engine)";

double seconds_until(Deadline deadline) {
    return std::max(0.0, std::chrono::duration<double>(deadline - Clock::now()).count());
}

bool is_loopback(const std::string& host) {
    return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Error wrong(std::string what, std::string remedy) {
    return Error(ErrorKind::invalid, "engine.rest: " + std::move(what), {}, std::move(remedy));
}

class RestTransport final : public Transport {
public:
    RestTransport(const SlurmOptions& options, HttpClientOptions http, std::string user)
        : options_(options), rest_(options.rest), http_(std::move(http)), user_(std::move(user)) {
        // The folder of commands is this machine's.
        SlurmOptions of_job = options;
        of_job.commands.clear();
        environment_ = handed_on_environment(of_job);
    }

    // invalid: it answers, and will not do.
    Status probe(Deadline deadline) {
        const Status known = agree(deadline);
        return !known && known.error().kind() == ErrorKind::invalid ? known : done();
    }

    ClusterFacts facts(Deadline deadline) override {
        ClusterFacts found{.can = {.gang = true,
                                   .follows_logs = true,
                                   .kills_trees = true,
                                   .signal_notice_s = 86400,
                                   .queues = true,
                                   .binds = true},
                           .accounts = false,
                           .no_images = kNoImages};
        const auto ping = get("ping", deadline);
        const auto partitions = ping ? get("partitions", deadline) : Result<Document>(ping.error());
        if (!partitions) {
            found.can.detail = "slurmrestd has not answered: " + partitions.error().message();
            return found;
        }
        found.can.preempts = read_rest_partitions(partitions->root()).preempts;
        std::string release;
        if (const Node* meta = ping->root().find("meta"))
            if (const Node* slurm = meta->find("Slurm"))
                if (const Node* said = slurm->find("release")) release = printable(said->text, 40);
        found.can.detail = fmt::format(
            "Slurm {} over slurmrestd {}; not told by it: switches, limits of memory and devices, Pyxis, accounting",
            release, kRestVersion);
        return found;
    }

    Outcome submit(const JobRequest& request, const std::string&, Deadline deadline) override {
        auto body = submission_body(request, environment_);
        if (!body) {
            const auto& problem = body.error().problems().front();
            return rejected(Cause::user_error, problem.message + "; " + problem.remedy);
        }
        HttpCall call{.method = "POST", .target = path("job/submit"), .body = std::move(*body)};
        call.headers.add("Content-Type", "application/json");
        const auto answer = send(std::move(call), deadline);
        if (!answer) return unknown(answer.error().message());
        Outcome outcome = read_rest_submission(answer->status, answer->body);
        if (const Error why = error_of(*answer);
            outcome.certainty == Certainty::unknown && why.kind() == ErrorKind::denied)
            outcome.detail = why.message();
        return outcome;
    }

    Result<Listing> jobs(Deadline deadline) override {
        Listing found;
        TRY_VOID(each_job(deadline, [&](std::string_view item) {
            ++found.looked_through;
            if (auto job = read_rest_job(item, user_)) found.ours.push_back(std::move(*job));
        }));
        return found;
    }

    Status cancel(const OperationId& operation, Deadline deadline) override {
        for (;;) {
            TRY(const Listing known, jobs(deadline));
            bool again = false;
            for (const Job& job : known.ours) {
                if (job.operation != operation || job.phase == JobPhase::over) continue;
                TRY(again, end(job.number, deadline));
            }
            if (!again) return done();
            if (milliseconds_until(deadline) == 0)
                return Error(ErrorKind::timed_out, "slurmrestd: a job of " + operation.text() + " cannot be ended yet");
            std::this_thread::sleep_until(std::min<Clock::time_point>(deadline, Clock::now() + kAgain));
        }
    }

    Result<std::vector<SlurmNode>> nodes(const std::string& name, Deadline deadline) override {
        TRY(const Document answer, get(name.empty() ? "nodes" : "node/" + in_path(name), deadline));
        return read_rest_nodes(answer.root(), options_.gpu_models);
    }

    // Not told over REST.
    std::map<std::string, std::string> places(Deadline) override { return {}; }
    std::string accounted_state(const OperationId&, Deadline) override { return {}; }

    Result<std::vector<std::string>> default_partitions(Deadline deadline) override {
        TRY(const Document answer, get("partitions", deadline));
        return read_rest_partitions(answer.root()).defaults;
    }

    Result<std::vector<std::int64_t>> waiting(const std::vector<std::string>& partitions, Deadline deadline) override {
        std::vector<std::int64_t> priorities;
        TRY_VOID(each_job(deadline, [&](std::string_view item) {
            if (const auto priority = priority_of_waiting(item, partitions)) priorities.push_back(*priority);
        }));
        return priorities;
    }

private:
    static std::string path(const std::string& what) { return fmt::format("/slurm/{}/{}", kRestVersion, what); }
    // Names of nodes have nothing in them that a path could not.
    static std::string in_path(const std::string& name) {
        std::string safe;
        for (const char c : name)
            safe += c == '/' || c == '?' || c == '#' || c == '%' || static_cast<unsigned char>(c) <= ' '
                        ? fmt::format("%{:02X}", static_cast<unsigned char>(c))
                        : std::string(1, c);
        return safe;
    }

    // True: not in this moment.
    Result<bool> end(const std::string& number, Deadline deadline) {
        TRY(const HttpResponse answer, ask({.method = "DELETE", .target = path("job/" + number)}, deadline));
        const auto document = Document::parse_json(answer.body, "the answer of slurmrestd");
        const auto complaint = document ? complaint_in(document->root()) : std::nullopt;
        if (complaint && complaint->number == kTryAgain) return true;
        const bool gone = complaint && (complaint->number == kNoSuchJob || complaint->number == kAlreadyOver);
        if (gone || (answer.status / 100 == 2 && !complaint)) return false;
        return error_of(answer);
    }

    Status each_job(Deadline deadline, const std::function<void(std::string_view)>& take) {
        ArrayItems items("jobs", take);
        bool fits = true;
        HttpCall call{.target = path("jobs")};
        call.on_piece = [&](std::string_view piece) { return fits = items.feed(piece); };
        TRY(const HttpResponse answer, ask(std::move(call), deadline));
        if (!fits) return Error(ErrorKind::exhausted, "slurmrestd: what it says of a job is larger than 4 MiB");
        if (answer.status / 100 != 2) return error_of(answer);
        // Whole, and without a complaint: half of a queue would be a loss of the other half.
        TRY(const Document frame, Document::parse_json(items.frame(), "the answer of slurmrestd"));
        if (const auto complaint = complaint_in(frame.root())) return error_of(answer.status, complaint, "");
        if (frame.root().find("jobs") == nullptr)
            return Error(ErrorKind::unavailable, "slurmrestd: there are no jobs in what it says of jobs");
        return done();
    }

    Result<Document> get(const std::string& what, Deadline deadline) {
        TRY(const HttpResponse answer, ask({.target = path(what)}, deadline));
        if (answer.status / 100 != 2) return error_of(answer);
        ReadLimits limits;
        limits.max_bytes = HttpCall{}.max_body_bytes;
        TRY(Document document, Document::parse_json(answer.body, "the answer of slurmrestd", limits));
        if (const auto complaint = complaint_in(document.root())) return error_of(answer.status, complaint, "");
        return document;
    }

    Error error_of(const HttpResponse& answer) const {
        const auto document = Document::parse_json(answer.body, "the answer of slurmrestd");
        return error_of(answer.status, document ? complaint_in(document->root()) : std::nullopt, answer.body);
    }
    // What is to be done about it stands in the message: of an engine that does not answer people are shown no more.
    Error error_of(int status, const std::optional<RestComplaint>& complaint, std::string_view body) const {
        const std::string said =
            fmt::format("slurmrestd says {}: {}", status, complaint ? complaint->words : printable(trim(body), 300));
        if (!is_not_let_in(status, complaint)) return Error(ErrorKind::unavailable, said);
        return Error(ErrorKind::denied, why_not_let_in() + " (" + said + ")");
    }
    std::string why_not_let_in() const {
        if (rest_.token_file.empty())
            return "a slurmrestd on a socket lets in the user that runs it (-a rest_auth/local), and did not let us in";
        const auto token = read_token();
        const std::int64_t end_s = token ? end_of_token_s(*token) : 0;
        const bool over = end_s > 0 && end_s <= wall_clock_us() / 1'000'000;
        return fmt::format(
            "the token in {} {}; a new one: scontrol token username={} > {}", printable(rest_.token_file),
            over ? "ended at " + rfc3339(end_s * 1'000'000).substr(0, 19) + "Z" : "is not taken for " + rest_.user,
            rest_.user, printable(rest_.token_file));
    }

    // Once: which versions it speaks.
    Status agree(Deadline deadline) {
        {
            const std::lock_guard guard(mutex_);
            if (agreed_) return done();
        }
        TRY(const HttpResponse answer, send({.target = "/openapi/v3"}, deadline));
        if (answer.status / 100 != 2) return error_of(answer);
        const auto document = Document::parse_json(answer.body, "the answer of slurmrestd");
        const auto versions = document ? versions_in(document->root()) : std::vector<std::string>();
        if (versions.empty())
            return wrong(printable(rest_.url, 200) + " is no slurmrestd: it describes no API of Slurm",
                         "name the socket or the address that slurmrestd was started with");
        if (std::find(versions.begin(), versions.end(), kRestVersion) == versions.end())
            return wrong(
                fmt::format("slurmrestd speaks {}, and {} is what is known here", join(versions, ", "), kRestVersion),
                fmt::format("start it with -s openapi/{}, where it has that plug-in; or leave rest out, and the "
                            "engine uses Slurm's commands",
                            kRestVersion));
        const std::lock_guard guard(mutex_);
        agreed_ = true;
        return done();
    }

    // Not before it is known that it speaks the version of the path.
    Result<HttpResponse> ask(HttpCall call, Deadline deadline) {
        TRY_VOID(agree(deadline));
        return send(std::move(call), deadline);
    }

    Result<HttpResponse> send(HttpCall call, Deadline deadline) {
        call.timeout_s = seconds_until(std::min<Clock::time_point>(deadline, Clock::now() + kCallLimit));
        call.headers.add("Accept", "application/json");
        call.headers.add("User-Agent", "stoker");
        if (!rest_.token_file.empty()) {
            TRY(const std::string token, read_token());
            call.headers.add("X-SLURM-USER-NAME", rest_.user);
            call.headers.add("X-SLURM-USER-TOKEN", token);
        }
        TRY(auto http, borrow());
        auto answer = http->call(call);
        if (!answer) return unreachable(answer.error());
        const std::lock_guard guard(mutex_);
        if (idle_.size() < kMostIdle) idle_.push_back(std::move(http));
        return answer;
    }

    Error unreachable(const Error& why) const {
        std::string said = "slurmrestd: " + why.message();
        // Nothing else is denied before a word is spoken than its certificate.
        if (why.kind() == ErrorKind::denied)
            said += "; who is trusted: " + (rest_.ca_file.empty()
                                                ? "the system's authorities, and whom engine.rest.ca_file names"
                                                : printable(rest_.ca_file) + " (engine.rest.ca_file)");
        return Error(why.kind(), said);
    }

    Result<std::unique_ptr<HttpClient>> borrow() {
        {
            const std::lock_guard guard(mutex_);
            if (!idle_.empty()) {
                auto http = std::move(idle_.back());
                idle_.pop_back();
                return http;
            }
        }
        return HttpClient::make(http_);
    }

    // Each time: tokens last for hours, and whoever renews them writes the file again. Also as scontrol prints it.
    Result<std::string> read_token() const {
        TRY(const std::string text, read_file(rest_.token_file, kMostTokenBytes));
        constexpr std::string_view kPrinted = "SLURM_JWT=";
        std::string_view token = trim(text);
        if (token.starts_with(kPrinted)) token.remove_prefix(kPrinted.size());
        if (token.empty() || token.find_first_of(" \t\r\n") != std::string_view::npos)
            return Error(ErrorKind::invalid, printable(rest_.token_file) + " has no token in it", {},
                         "scontrol token username=" + rest_.user + " > " + rest_.token_file);
        return std::string(token);
    }

    const SlurmOptions options_;
    const SlurmRest rest_;
    const HttpClientOptions http_;
    const std::string user_;
    std::vector<std::string> environment_;
    std::mutex mutex_;  // guards what follows
    bool agreed_ = false;
    std::vector<std::unique_ptr<HttpClient>> idle_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_rest_transport(const SlurmOptions& options) {
    const SlurmRest& rest = options.rest;
    TRY_VOID(check_slurm_rest(rest));
    TRY(const http::ServerUrl server, http::read_server_or_socket(rest.url));
    HttpClientOptions http{.url = rest.url, .ca_pem = {}, .own = {}, .connect_timeout_s = kConnectS};
    if (!rest.ca_file.empty()) {
        auto pem = read_file(rest.ca_file, kMostPemBytes);
        if (!pem) return wrong(pem.error().message(), "ca_file names the certificate of whom to trust");
        http.ca_pem = std::move(*pem);
    }
    TRY([[maybe_unused]] const auto checked, HttpClient::make(http));
    std::string user = rest.user;
    if (user.empty()) {
        struct stat about {};
        // It lets in who runs it, and the jobs are that user's.
        if (::stat(server.socket.c_str(), &about) == 0) {
            if (!S_ISSOCK(about.st_mode))
                return wrong(printable(server.socket) + " is no socket",
                             "name the one that slurmrestd was started with");
            if (about.st_uid != ::geteuid())
                return wrong(
                    fmt::format("{} is of user {}, and jobs submitted there would be too; this server is of {}",
                                printable(server.socket), about.st_uid, ::geteuid()),
                    "start a slurmrestd as the user of this server, or name user and token_file");
        }
        user = fmt::format("#{}", ::geteuid());
    }
    auto transport = std::make_unique<RestTransport>(options, std::move(http), std::move(user));
    TRY_VOID(transport->probe(Clock::now() + std::chrono::seconds(5)));
    return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace stoker::slurm

namespace stoker {

Status check_slurm_rest(const SlurmRest& rest) {
    const auto server = http::read_server_or_socket(rest.url);
    if (!server) return slurm::wrong(server.error().message(), "unix:/run/slurmrestd.sock, or https://HOST:PORT");
    if (rest.token_file.empty() != rest.user.empty())
        return slurm::wrong("user and token_file go together",
                            rest.user.empty() ? "name the user whose token it is"
                                              : "scontrol token prints one: name the file that has it");
    const auto can_be_sent = [](const std::string& text) {
        return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
    };
    if (!can_be_sent(rest.user)) return slurm::wrong(printable(rest.user, 60) + " is no name of a user", "");
    if (server->socket.empty() && rest.token_file.empty())
        return slurm::wrong("slurmrestd takes nobody over TCP without a token",
                            "name user and token_file, or a socket: unix:/PATH");
    if (server->socket.empty() && !server->tls && !slurm::is_loopback(server->host))
        return slurm::wrong("a token would go over the network for everybody to read", "https://" + server->authority);
    if (!rest.ca_file.empty() && !server->tls)
        return slurm::wrong("only https has a use for ca_file", "leave it out, or write the url with https");
    return done();
}

}  // namespace stoker
