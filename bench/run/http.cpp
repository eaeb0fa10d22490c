// The HTTP server beside its bound: CPU of the server per request and per streamed event, driven by wrk over loopback,
// and memory per idle connection. CPU per request is the figure to trust on a shared machine.
//   bench_http [SECONDS=5] [IDLE_CONNECTIONS=10000]
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "io/http/http_client.h"
#include "io/http/http_server.h"
#include "io/process.h"

using namespace stoker;

namespace {

struct CpuTime {
    double user_s, system_s;
};
CpuTime cpu_time() {
    rusage use{};
    ::getrusage(RUSAGE_SELF, &use);
    const auto seconds = [](timeval t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
    return {seconds(use.ru_utime), seconds(use.ru_stime)};
}

double resident_kb() {
    std::ifstream status("/proc/self/statm");
    double total = 0, resident = 0;
    status >> total >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

std::unique_ptr<HttpServer> serve(HttpHandler handler, HttpServerOptions options = {}) {
    auto server = HttpServer::start(std::move(options), std::move(handler));
    if (!server) fmt::print(stderr, "{}\n", server.error().text());
    CHECK(server.ok());
    return std::move(server).value();
}

// 64 connections, keep-alive. This process does nothing else meanwhile, so that its CPU time is the server's.
void bench_requests(int seconds) {
    const auto server = serve([](HttpRequest, HttpReply reply) {
        reply.send({.status = 200, .content_type = "text/plain", .headers = {}, .body = "Hello, world\n"});
    });
    const CpuTime before = cpu_time();
    const auto began = std::chrono::steady_clock::now();
    const std::string command =
        fmt::format("wrk -t1 -c64 -d{}s --latency http://127.0.0.1:{}/ 2>&1", seconds, server->port());
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string report;
    char buffer[4096];
    while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) report.append(buffer, size);
    if (::pclose(pipe) != 0) {
        fmt::print("wrk is missing (apt install wrk), or failed: {}\n", report);
        return;
    }
    const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const CpuTime after = cpu_time();
    const auto requests = static_cast<double>(server->stats().requests);
    const std::size_t p99 = report.find("99%");
    fmt::print("{:.0f} requests/s, p99 {}; {:.2f} us CPU a request ({:.2f} user)\n", requests / wall_s,
               p99 == std::string::npos ? "?" : report.substr(p99 + 3, report.find('\n', p99) - p99 - 3),
               (after.user_s - before.user_s + after.system_s - before.system_s) / requests * 1e6,
               (after.user_s - before.user_s) / requests * 1e6);
}

// A connection that is open and silent, after one request.
void bench_idle(int wanted) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    const int most = static_cast<int>(files.rlim_cur / 2) - 50;
    const int count = std::min(wanted, most);
    HttpServerOptions options;
    options.max_connections = static_cast<std::size_t>(count) + 10;
    const auto server = serve(
        [](HttpRequest, HttpReply reply) {
            reply.send({.status = 200, .content_type = "text/plain", .headers = {}, .body = "Hello, world\n"});
        },
        options);
    std::vector<UniqueFd> sockets;
    sockets.reserve(static_cast<std::size_t>(count));
    const double before_kb = resident_kb();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string request = "GET / HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n";
    for (int i = 0; i < count; ++i) {
        UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        char buffer[1024];
        if (!socket || ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
            ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0 ||
            ::recv(socket.get(), buffer, sizeof buffer, 0) <= 0)
            break;
        sockets.push_back(std::move(socket));
    }
    const double after_kb = resident_kb();
    const CpuTime idle_from = cpu_time();
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const CpuTime idle_to = cpu_time();
    const double idle = idle_to.user_s - idle_from.user_s + idle_to.system_s - idle_from.system_s;
    fmt::print("{} idle connections: {:.1f} KB resident each; {:.2f} % of a core to watch them\n", sockets.size(),
               (after_kb - before_kb) / static_cast<double>(sockets.size()), idle / 2 * 100);
}

// One stream, small events written as fast as its reader takes them.
void bench_stream(int events) {
    const auto server = serve(
        [events](HttpRequest, HttpReply reply) {
            const auto stream =
                reply.stream({.status = 200, .content_type = "text/event-stream", .headers = {}, .body = {}});
            std::thread([stream, events] {
                for (int i = 0; i < events; ++i) stream->write("data: {\"state\": \"running\"}\n\n");
                stream->close();
            }).detach();
        },
        {.max_waiting_bytes = 1u << 30});
    auto client = HttpClient::make({.url = fmt::format("http://127.0.0.1:{}", server->port()), .ca_pem = {}});
    std::size_t bytes = 0;
    HttpCall call;
    call.on_piece = [&](std::string_view piece) {
        bytes += piece.size();
        return true;
    };
    const CpuTime before = cpu_time();
    const auto began = std::chrono::steady_clock::now();
    const auto answer = (*client)->call(call);
    CHECK(answer.ok());
    const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const CpuTime after = cpu_time();
    fmt::print("{} events in one stream: {:.0f} events/s, {:.2f} us CPU an event, our reader included\n", events,
               events / wall_s, (after.user_s - before.user_s + after.system_s - before.system_s) / events * 1e6);
}

}  // namespace

int main(int argc, char** argv) {
    const int seconds = argc > 1 ? std::atoi(argv[1]) : 5;
    const int idle = argc > 2 ? std::atoi(argv[2]) : 10'000;
    for (int i = 0; i < 3; ++i) bench_requests(seconds);
    bench_stream(200'000);
    bench_idle(idle);
    return 0;
}
