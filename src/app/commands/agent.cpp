// stoker agent: tells Prometheus what the GPUs of this machine do, whatever becomes of their driver.
#include <arpa/inet.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/output.h"
#include "app/commands/commands.h"
#include "app/commands/gpu_options.h"
#include "app/commands/gpu_table.h"
#include "app/commands/gpu_teller.h"
#include "app/session.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/http/http_server.h"
#include "io/small_process.h"
#include "io/stop_signal.h"
#include "io/worker.h"
#include "observe/gpu/gpu_pages.h"
#include "observe/gpu/gpu_watch.h"

namespace stoker {

namespace {

constexpr std::size_t kPages = 5;
constexpr std::uint64_t kStartedAfter = 2, kTidyEvery = 600;  // looks
enum class Page : std::uint8_t { native, native_open, dcgm, dcgm_open, gpus };

// What is known at one moment, and the texts made of it: each once, whoever asks for it first. No driver is called
// here.
class PageSnapshot {
public:
    PageSnapshot(GpuView view, std::shared_ptr<const GpuOwners> owners, GpuAllocations allocations,
                 std::shared_ptr<const GpuAssignments> assignments, DcgmOptions dcgm,
                 std::optional<AgentTelling> telling = {})
        : view_(std::move(view)),
          owners_(std::move(owners)),
          allocations_(std::move(allocations)),
          assignments_(std::move(assignments)),
          now_s_(monotonic_seconds()),
          dcgm_(std::move(dcgm)),
          telling_(telling) {}
    GpuReport report() const { return report_of(view_, *owners_, allocations_); }
    const std::string& text(Page page) const {
        const std::lock_guard lock(mutex_);
        std::optional<std::string>& text = texts_[static_cast<std::size_t>(page)];
        if (!text) text = render(page);
        return *text;
    }

private:
    std::vector<ExpositionFamily> native() const {
        auto families = native_gpu_families(view_, *owners_, allocations_, *assignments_, now_s_);
        if (telling_)
            for (ExpositionFamily& family : telling_families(*telling_)) families.push_back(std::move(family));
        return families;
    }
    std::string render(Page page) const {
        switch (page) {
            case Page::native: return prometheus_text(native());
            case Page::native_open: return openmetrics_text(native());
            case Page::dcgm: return prometheus_text(dcgm_gpu_families(view_, dcgm_, *assignments_));
            case Page::dcgm_open: return openmetrics_text(dcgm_gpu_families(view_, dcgm_, *assignments_));
            case Page::gpus: return gpu_json(view_, *owners_).dump(0) + "\n";
        }
        return "";
    }
    const GpuView view_;
    const std::shared_ptr<const GpuOwners> owners_;
    const GpuAllocations allocations_;
    const std::shared_ptr<const GpuAssignments> assignments_;
    const double now_s_;
    const DcgmOptions dcgm_;
    const std::optional<AgentTelling> telling_;  // none: no server is told
    mutable std::mutex mutex_;                   // guards texts_
    mutable std::array<std::optional<std::string>, kPages> texts_;
};

class PageBoard {
public:
    // Pages that somebody reads are made before the next one asks.
    void set(std::shared_ptr<const PageSnapshot> snapshot, double now_s) {
        for (std::size_t page = 0; page < kPages; ++page)
            if (now_s - asked_s_[page] < 90) (void)snapshot->text(static_cast<Page>(page));
        const std::lock_guard lock(mutex_);
        snapshot_ = std::move(snapshot);
    }
    std::string get(Page page) {
        asked_s_[static_cast<std::size_t>(page)] = monotonic_seconds();
        return newest()->text(page);
    }
    std::shared_ptr<const PageSnapshot> newest() const {
        const std::lock_guard lock(mutex_);
        return snapshot_;
    }

private:
    std::array<std::atomic<double>, kPages> asked_s_ = {-1000.0, -1000.0, -1000.0, -1000.0, -1000.0};
    mutable std::mutex mutex_;  // guards snapshot_
    std::shared_ptr<const PageSnapshot> snapshot_ = std::make_shared<PageSnapshot>(
        GpuView{}, std::make_shared<GpuOwners>(), GpuAllocations{}, std::make_shared<GpuAssignments>(), DcgmOptions{});
};

// Owners are looked up on a thread of their own: /proc of a process that hangs may hang, too.
class OwnerBoard {
public:
    std::shared_ptr<const GpuOwners> get() const {
        const std::lock_guard lock(mutex_);
        return owners_;
    }
    void ask(std::vector<std::uint32_t> pids) {
        if (busy_.exchange(true)) return;
        const bool taken = pool_.post([this, pids = std::move(pids)] {
            auto next = std::make_shared<GpuOwners>(*get());
            next->refresh(pids);
            const std::lock_guard lock(mutex_);
            owners_ = std::move(next);
            busy_ = false;
        });
        if (!taken) busy_ = false;
    }

private:
    mutable std::mutex mutex_;  // guards owners_
    std::shared_ptr<const GpuOwners> owners_ = std::make_shared<GpuOwners>();
    std::atomic<bool> busy_{false};
    WorkerPool pool_{{.name = "gpu-owners", .threads = 1, .most_waiting = 1}};
};

// So are those who were given GPUs: kubelet may hang.
class AssignmentBoard {
public:
    explicit AssignmentBoard(AssignmentOptions options) : options_(std::move(options)) {}
    std::shared_ptr<const GpuAssignments> get() const {
        const std::lock_guard lock(mutex_);
        return told_;
    }
    void ask() {
        if ((options_.kubelet_socket.empty() && options_.job_folder.empty()) || busy_.exchange(true)) return;
        const bool taken = pool_.post([this] {
            auto next = std::make_shared<GpuAssignments>(look_at_assignments(options_, *get(), monotonic_seconds()));
            const std::lock_guard lock(mutex_);
            told_ = std::move(next);
            busy_ = false;
        });
        if (!taken) busy_ = false;
    }

private:
    const AssignmentOptions options_;
    mutable std::mutex mutex_;  // guards told_
    std::shared_ptr<const GpuAssignments> told_ = std::make_shared<GpuAssignments>();
    std::atomic<bool> busy_{false};
    WorkerPool pool_{{.name = "gpu-assigned", .threads = 1, .most_waiting = 1}};
};

// kubelet is asked where it is, unless somebody said otherwise.
AssignmentOptions assignment_options(const Args& args, const std::string& root) {
    AssignmentOptions options;
    options.kubelet_socket = args.get_or("kubelet-socket", "");
    if (options.kubelet_socket.empty() && ::access((root + kKubeletSocket).c_str(), F_OK) == 0)
        options.kubelet_socket = root + kKubeletSocket;
    if (options.kubelet_socket == "none") options.kubelet_socket.clear();
    options.job_folder = args.get_or("hpc-job-mapping-dir", "");
    return options;
}

HttpResponse plain(int status, std::string body) {
    return {.status = status, .content_type = "text/plain; charset=utf-8", .headers = {}, .body = std::move(body)};
}

HttpResponse answer(const HttpRequest& request, PageBoard& pages, bool dcgm_first) {
    if (request.method != "GET" && request.method != "HEAD") {
        HttpResponse refused = plain(405, "GET alone is answered here\n");
        refused.headers.add("Allow", "GET, HEAD");
        return refused;
    }
    if (request.path == "/health" || request.path == "/healthz") return plain(200, "ok\n");
    if (request.path == "/gpus")
        return {.status = 200, .content_type = "application/json", .headers = {}, .body = pages.get(Page::gpus)};
    const bool native = request.path == "/metrics/native", dcgm = request.path == "/metrics/dcgm";
    if (request.path != "/metrics" && !native && !dcgm)
        return plain(404, "/metrics, /metrics/native, /metrics/dcgm, /gpus and /health are here\n");
    const bool open = wants_openmetrics(request.headers.find("accept").value_or(""));
    const bool theirs = dcgm || (!native && dcgm_first);
    return {
        .status = 200,
        .content_type = std::string(open ? kOpenMetricsType : kPrometheusType),
        .headers = {},
        .body = pages.get(theirs ? (open ? Page::dcgm_open : Page::dcgm) : (open ? Page::native_open : Page::native))};
}

Result<std::pair<std::string, std::uint16_t>> listen_address(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    const auto bad = [&] {
        return Error(ErrorKind::invalid, "no address to listen on: " + printable(text, 60), {},
                     "--listen 127.0.0.1:9400, --listen [::]:9400, or port 0 for any free one");
    };
    if (colon == std::string::npos) return bad();
    std::string address = text.substr(0, colon);
    const std::string port = text.substr(colon + 1);
    if (address.size() > 1 && address.front() == '[' && address.back() == ']')
        address = address.substr(1, address.size() - 2);
    if (address.empty()) address = "0.0.0.0";
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos ||
        std::stoi(port) > 65535)
        return bad();
    return std::pair(address, static_cast<std::uint16_t>(std::stoi(port)));
}

// Where somebody said which server is to be told.
Result<std::unique_ptr<GpuTeller>> teller_of(const Args& args, const PageBoard& board) {
    const char* server = std::getenv("STOKER_SERVER");
    const bool wanted = args.has("server") || args.has("folder") || (server != nullptr && *server != '\0');
    if (!wanted && (args.has("node") || args.has("tell-every") || args.has("token-file") || args.has("ca-file")))
        return Error(ErrorKind::invalid, "there is no server to tell", {}, "--server URL");
    if (!wanted) return std::unique_ptr<GpuTeller>();
    GpuTellerOptions options{.args = args, .node = args.get_or("node", usual_node_name())};
    if (!is_series_name(options.node))
        return Error(ErrorKind::invalid, printable(options.node, 80) + " is no name of a node", {},
                     "--node NAME: 64 letters, digits, dots, dashes and underscores at most, as stoker nodes has it");
    TRY(options.every_s, args.number("tell-every", options.every_s, 0.1, 3600));
    // A file that is not there, or a URL that is none, is told now; a server that is away later.
    if (args.has("server") || args.has("token-file") || args.has("ca-file")) {
        TRY(const ServerAddress address, server_address(args));
        TRY_VOID(client_at(address, ""));
    }
    return std::make_unique<GpuTeller>(std::move(options), [&board] { return board.newest()->report(); });
}

Result<CommandOutput> run_agent(Session& session, const Args& args) {
    TRY(GpuWatchOptions options, gpu_watch_options(args));
    TRY(const DcgmOptions dcgm, dcgm_options(args));
    TRY(const auto address, listen_address(args.get_or("listen", "127.0.0.1:9400")));
    const bool dcgm_first = args.get("compat").has_value();
    share_heaps(1);
    StopSignal stop;
    PageBoard board;
    OwnerBoard owners;
    AssignmentBoard assignments(assignment_options(args, options.root));
    TRY(const auto teller, teller_of(args, board));
    std::atomic<bool> ending{false};
    std::thread watcher = masked_thread("gpu-watch", [&] {
        GpuWatch watch(options);
        GpuAllocationWatch allocations;
        double looked_s = 0;
        GpuAllocations told;
        std::uint64_t tick = 0;
        auto next = std::chrono::steady_clock::now();
        while (!ending) {
            const GpuView view = watch.look();
            if (tick % kTidyEvery == kStartedAfter) give_back_startup_pages();
            if (tick++ % 5 == 0) {
                owners.ask(gpu_pids(view));
                assignments.ask();
            }
            if (const double now_s = monotonic_seconds(); now_s - looked_s >= 0.95) {
                looked_s = now_s;
                told = allocations.look(view, now_s);
            }
            board.set(std::make_shared<PageSnapshot>(view, owners.get(), told, assignments.get(), dcgm,
                                                     teller ? std::optional(teller->telling()) : std::nullopt),
                      monotonic_seconds());
            if (teller) teller->look(view, monotonic_seconds());
            next += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(options.period_s));
            while (!ending && std::chrono::steady_clock::now() < next)
                std::this_thread::sleep_until(
                    std::min(next, std::chrono::steady_clock::now() + std::chrono::milliseconds(200)));
        }
    });
    const auto finish = [&] {
        ending = true;
        watcher.join();
    };
    HttpServerOptions http{.address = address.first, .port = address.second};
    http.max_connections = 256;
    http.max_head_bytes = 8 * 1024;
    http.max_body_bytes = 1024;
    auto server = HttpServer::start(http, [&board, dcgm_first](HttpRequest request, HttpReply reply) {
        reply.send(answer(request, board, dcgm_first));
    });
    if (!server) {
        finish();
        return server.error();
    }
    const std::uint16_t port = (*server)->port();
    if (const auto file = args.get("port-file")) {
        if (const Status written = write_file_atomic(*file, std::to_string(port) + "\n"); !written) {
            finish();
            return written.error();
        }
    }
    if (!session.quiet) {
        const Status told = print_now(fmt::format("http://{}:{}/metrics\n", address.first, port));
        if (!told) {
            finish();
            return told.error();
        }
    }
    stop.wait();
    (*server)->stop(std::chrono::steady_clock::now() + std::chrono::seconds(2));
    finish();
    return CommandOutput{};
}

}  // namespace

CliCommand agent_command() {
    CliCommand command{
        .name = "agent",
        .summary = "serve what the GPUs of this machine do to Prometheus",
        .usage = "stoker agent [--listen ADDRESS:PORT] [options]",
        .description =
            "Serves /metrics from what was read last: a scrape never waits for the driver. /metrics/native and "
            "/metrics/dcgm have the names of "
            "Stoker and of dcgm-exporter; --compat dcgm puts the latter on /metrics. Prometheus' text and OpenMetrics, "
            "as the scraper asks. "
            "/gpus is the same as JSON, /health says that the agent lives.\n\n"
            "The driver is called in a process of its own. One GPU that is lost or hangs changes nothing for the "
            "others; errors of the driver (Xid) "
            "are counted from its events and from the kernel log. It needs no rights beyond reading /dev/nvidia* and "
            "/dev/kmsg; what it may not "
            "read is told by stoker_agent_witness_up.\n\n"
            "With --server it also tells a Stoker server every ten seconds what these GPUs do: stoker top --fleet and "
            "stoker nodes show it, and the health gate there takes a node out whose GPU fails. Its key needs no more "
            "than the role agent. While the server is away the last hour is kept, and told when it is back.",
        .examples = {"stoker agent",
                     "stoker agent --server https://stoker.example.org --token-file /etc/stoker/agent.key",
                     "stoker agent --listen 0.0.0.0:9400 --compat dcgm",
                     "stoker agent --compat dcgm --hpc-job-mapping-dir /run/gpu-jobs",
                     "stoker agent --listen 127.0.0.1:0 --port-file /run/stoker-agent.port",
                     "curl -s 127.0.0.1:9400/metrics | grep stoker_gpu_power_watts"},
        .options = {{.name = "listen", .value = "ADDRESS:PORT", .help = "where (127.0.0.1:9400); port 0: any free one"},
                    {.name = "port-file", .value = "FILE", .help = "write the port there", .completes = "file"},
                    {.name = "kubelet-socket",
                     .value = "PATH",
                     .help = "kubelet, which tells whose pods have which GPU; none: not asked",
                     .completes = "file"},
                    {.name = "node",
                     .value = "NAME",
                     .help = "this machine, as the server knows it (NODE_NAME, its name)"},
                    {.name = "tell-every", .value = "SECONDS", .help = "between two reports to the server (10)"},
                    {.name = "hpc-job-mapping-dir",
                     .value = "FOLDER",
                     .help = "a file for each GPU with its jobs of Slurm",
                     .completes = "file"}},
        .run = run_agent};
    add_gpu_options(command);
    return with_client(std::move(command));
}

}  // namespace stoker
