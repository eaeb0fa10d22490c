#include "app/commands/gpu_teller.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include "app/client/typed.h"
#include "base/codec.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/random_bytes.h"
#include "io/worker.h"

namespace stoker {

namespace {

constexpr std::size_t kPointsAtOnce = 60;  // some 200 KB
constexpr double kAnswerWithinS = 10;
constexpr int kCallsAtOnce = 3;

}  // namespace

std::string usual_node_name() {
    for (const char* name : {"NODE_NAME", "SLURMD_NODENAME"})
        if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
}

GpuTeller::GpuTeller(GpuTellerOptions options, std::function<GpuReport()> now)
    : options_(std::move(options)),
      now_(std::move(now)),
      agent_(random_hex(8)),
      began_us_(wall_clock_us()),
      queue_(options_.every_s) {
    thread_ = masked_thread("gpu-teller", [this] { run(); });
}

GpuTeller::~GpuTeller() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        wake_.notify_all();
    }
    thread_.join();
}

void GpuTeller::look(const GpuView& view, double now_s) {
    const auto boards = readings_.of(view, now_s);
    const bool seen = view.up() ? view.unread == 0 : view.down != NvmlDown::starting;
    const std::lock_guard lock(mutex_);
    if (!seen && boards.empty()) return;
    queue_.add(boards, now_s);
    telling_.waiting = queue_.waiting(), telling_.lost = queue_.lost();
    if (!std::exchange(seen_, true)) wake_.notify_all();
}

AgentTelling GpuTeller::telling() const {
    const std::lock_guard lock(mutex_);
    return telling_;
}

void GpuTeller::run() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return ending_ || seen_; });
    // A thousand agents that began at once do not tell at once.
    std::minstd_rand random(static_cast<std::uint32_t>(began_us_ ^ ::getpid()));
    double pause_s = std::uniform_real_distribution<double>(0.3, 1.0)(random) * options_.every_s;
    while (!ending_) {
        lock.unlock();
        for (int calls = 0; calls < kCallsAtOnce && tell(); ++calls) {
            const std::lock_guard again(mutex_);
            if (ending_ || queue_.waiting() < kPointsAtOnce) break;
        }
        lock.lock();
        wake_.wait_for(lock, std::chrono::duration<double>(pause_s), [this] { return ending_; });
        pause_s = options_.every_s;
    }
}

Result<api::GpuReportTaken> GpuTeller::send(const GpuReport& report) {
    // Looked up each time: the server may have another port since, and the key may be another.
    TRY(ServerAddress address, server_address(options_.args));
    if (!client_ || address.url != address_.url || address.token != address_.token ||
        address.ca_pem != address_.ca_pem) {
        TRY(client_, client_at(address, ""));
        address_ = std::move(address);
    }
    HttpCall call{.method = "POST",
                  .target = fmt::format("/api/v1/nodes/{}/gpus", url_encoded(options_.node)),
                  .headers = {},
                  .body = codec::encode(report),
                  .timeout_s = kAnswerWithinS};
    call.headers.add("Content-Type", "application/json");
    TRY(const HttpResponse response, client_->raw(call));
    TRY(const Document document, Document::parse_json(response.body, "answer"));
    return typed<api::GpuReportTaken>(document);
}

bool GpuTeller::tell() {
    GpuReport report = now_();
    report.agent = agent_, report.began_us = began_us_, report.every_s = options_.every_s;
    {
        const std::lock_guard lock(mutex_);
        report.points = queue_.oldest(kPointsAtOnce, monotonic_seconds());
        report.points_lost = queue_.lost();
    }
    report.sent_us = wall_clock_us();
    const auto answer = send(report);
    say(answer ? "" : answer.error().message());
    const std::lock_guard lock(mutex_);
    if (answer) {
        queue_.kept_through(answer->through);
        telling_.last_us = report.sent_us, telling_.clock_ahead_s = answer->clock_ahead_s;
    } else {
        ++telling_.failed;
        client_.reset();
    }
    telling_.waiting = queue_.waiting();
    return answer.ok();
}

// Once when it changes, not every ten seconds.
void GpuTeller::say(const std::string& trouble) {
    if (trouble == trouble_) return;
    if (!trouble.empty())
        fmt::print(stderr, "the server does not hear of the GPUs of {}: {}; what is missed is told when it does\n",
                   options_.node, printable(trouble, 400));
    else if (!trouble_.empty())
        fmt::print(stderr, "the server hears of the GPUs of {} again\n", options_.node);
    trouble_ = trouble;
}

}  // namespace stoker
