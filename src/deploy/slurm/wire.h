// How the ranks of a gang and its host on the first node talk: one line of JSON at a time, over a TCP connection that
// each rank opens. No file system is between them, so nothing waits for one to show what another node wrote.
//
//   rank -> host   hello (key, rank, node, local and node rank), ready or refused, started, measured, told, ended
//   host -> rank   order, go, signal, stop
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/document.h"
#include "base/json.h"
#include "base/result.h"
#include "io/process.h"

namespace stoker::slurm {

inline constexpr const char* kHostVariable = "STOKER_GANG_HOST";  // ADDRESS:PORT
inline constexpr const char* kKeyVariable = "STOKER_GANG_KEY";

// One end. For a poll() loop: lines come out whole, and what cannot be written at once is kept.
class Wire {
public:
    explicit Wire(UniqueFd socket);
    static Result<Wire> connect(const std::string& host, double limit_s);

    int fd() const { return socket_.get(); }
    bool open() const { return static_cast<bool>(socket_); }
    bool wants_to_write() const { return !out_.empty(); }
    void say(const Json& message);
    // Reads and writes what can be without waiting; false once the other end is gone.
    bool turn();
    // The next whole message; one that is no JSON ends the connection.
    std::optional<Document> next();
    // Until all is written or the limit.
    void flush(double limit_s);
    void close() { socket_.reset(); }

private:
    void write_some();
    UniqueFd socket_;
    std::string in_, out_;
};

// A TCP port that nobody has, held; with a backlog it listens. unavailable: there is none.
Result<UniqueFd> listen_anywhere(int& port, int backlog);

// Beyond a year it is for ever; more would overflow the clock.
std::chrono::steady_clock::duration duration_of(double seconds);

// A member as text or number; empty and 0 where there is none.
std::string text_of(const Node& message, std::string_view key);
std::int64_t number_of(const Node& message, std::string_view key);

}  // namespace stoker::slurm
