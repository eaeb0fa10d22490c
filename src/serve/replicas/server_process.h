// One server process in a session of its own, so that all that it starts ends with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

struct ServerProgram {
    std::vector<std::string> command;      // "{port}" stands for the port
    std::vector<std::string> environment;  // beside what this process has
    std::string mark;                      // "STOKER_REPLICAS=...": by which it is found again
    std::string log;                       // stdout and stderr are appended to it
};

class ServerProcess {
public:
    // On a port that was free a moment ago.
    static Result<ServerProcess> start(const ServerProgram& program);
    ServerProcess(ServerProcess&& other) noexcept;
    ServerProcess& operator=(ServerProcess&&) = delete;
    ~ServerProcess();  // killed, with its session

    int pid() const { return pid_; }
    int port() const { return port_; }
    std::optional<std::string> ended();  // how: "exit code 3", "SIGKILL"; nothing: it runs
    void signal(int number);             // to its whole group

private:
    ServerProcess(int pid, int port) : pid_(pid), port_(port) {}
    int pid_ = 0;  // 0: moved from, or reaped
    int port_ = 0;
    std::optional<std::string> how_;
};

// Ends what carries the mark from an earlier time; how many there were.
std::size_t end_marked_processes(const std::string& mark);
// The last lines of a log, at most `most` bytes.
std::string end_of_log(const std::string& path, std::size_t most);

}  // namespace stoker
