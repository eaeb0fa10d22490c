#include "serve/replicas/server_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "io/process.h"

extern char** environ;

namespace stoker {
namespace {

Result<int> free_port() {
    const UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (!probe || ::bind(probe.get(), raw, size) != 0 || ::getsockname(probe.get(), raw, &size) != 0)
        return Error(ErrorKind::unavailable, fmt::format("no free port: {}", std::strerror(errno)));
    return static_cast<int>(ntohs(address.sin_port));
}

// Where the program is: a path, or looked up in PATH.
Result<std::string> find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        if (::access(name.c_str(), X_OK) == 0) return name;
        return Error(ErrorKind::not_found, fmt::format("{} cannot be started: {}", name, std::strerror(errno)));
    }
    const char* path = std::getenv("PATH");
    for (const std::string_view folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
        std::string candidate = std::string(folder.empty() ? "." : folder) + "/" + name;
        if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return Error(ErrorKind::not_found, fmt::format("there is no program {} in PATH", name), {},
                 "install it, or write its path in the command");
}

}  // namespace

Result<ServerProcess> ServerProcess::start(const ServerProgram& program) {
    TRY(const int port, free_port());
    DetachedProgram detached;
    for (const std::string& word : program.command)
        detached.arguments.push_back(replace_all(word, "{port}", std::to_string(port)));
    TRY(detached.path, find_program(detached.arguments.front()));
    for (char** entry = environ; *entry != nullptr; ++entry) detached.environment.emplace_back(*entry);
    detached.environment.insert(detached.environment.end(), program.environment.begin(), program.environment.end());
    detached.environment.push_back(program.mark);
    const UniqueFd log(::open(program.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log) return Error(ErrorKind::unavailable, fmt::format("{}: {}", program.log, std::strerror(errno)));
    detached.standard_output = log.get();
    detached.error_file = program.log;
    TRY(const pid_t pid, start_detached(detached));
    return ServerProcess(pid, port);
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), port_(other.port_), how_(std::move(other.how_)) {}

ServerProcess::~ServerProcess() {
    if (pid_ == 0) return;
    ::kill(-pid_, SIGKILL);
    reap(pid_, std::chrono::steady_clock::now() + std::chrono::seconds(5));
}

std::optional<std::string> ServerProcess::ended() {
    if (pid_ == 0) return how_;
    const auto status = reap(pid_, std::chrono::steady_clock::now());
    if (!status) return std::nullopt;
    ::kill(-pid_, SIGKILL);  // what it started and left
    pid_ = 0;
    how_ = WIFSIGNALED(*status) ? signal_name(WTERMSIG(*status)) : fmt::format("exit code {}", WEXITSTATUS(*status));
    return how_;
}

void ServerProcess::signal(int number) {
    if (pid_ != 0) ::kill(-pid_, number);
}

std::size_t end_marked_processes(const std::string& mark) {
    const std::vector<pid_t> left = processes_with(mark);
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    return left.size();
}

std::string end_of_log(const std::string& path, std::size_t most) {
    const UniqueFd log(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!log) return {};
    const off_t size = ::lseek(log.get(), 0, SEEK_END);
    const off_t from = std::max<off_t>(0, size - static_cast<off_t>(most));
    std::string text(static_cast<std::size_t>(std::max<off_t>(size - from, 0)), '\0');
    const ssize_t got = ::pread(log.get(), text.data(), text.size(), from);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
}

}  // namespace stoker
