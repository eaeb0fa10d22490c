// A listening socket goes from a process to the one that takes its place: nobody who connects meanwhile is refused, he
// waits in the socket's queue. The old one offers it at FOLDER/handover.sock, for processes of the same user (or root).
//
//     new                                   old
//     connect                         ──►
//                                     ◄──   the socket, and who it is
//     looks whether it can start; if not, it leaves, and nothing has happened
//     go                              ──►
//                                     ◄──   bye; it ends as if told to
//     waits until the old one is gone
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "io/process.h"

namespace stoker {

class HandoverOffer {
public:
    // `taken` is called once, on a thread of its own, with the process that takes over.
    static Result<std::unique_ptr<HandoverOffer>> start(const std::string& folder, int socket,
                                                        std::function<void(pid_t)> taken);
    ~HandoverOffer();
    HandoverOffer(const HandoverOffer&) = delete;
    HandoverOffer& operator=(const HandoverOffer&) = delete;

private:
    HandoverOffer() = default;
    void serve();
    bool hand_to(int peer);

    std::string path_;
    int socket_ = -1;
    std::function<void(pid_t)> taken_;
    UniqueFd listening_, stop_read_, stop_write_;
    std::thread thread_;
};

// What is offered, taken; it is not over before go().
class Handover {
public:
    // not_found: nobody offers one.
    static Result<Handover> ask(const std::string& folder);

    int socket() const { return socket_.get(); }
    pid_t pid() const { return pid_; }
    // Returns when the old process is gone; timed_out: it is not, though it said that it goes.
    Status go(double seconds);

private:
    Handover(UniqueFd connection, UniqueFd socket, pid_t pid)
        : connection_(std::move(connection)), socket_(std::move(socket)), pid_(pid) {}
    UniqueFd connection_, socket_;
    pid_t pid_;
};

// Where a listening socket listens: numeric, and its port. invalid: it is none.
struct SocketPlace {
    std::string address;
    std::uint16_t port = 0;
};
Result<SocketPlace> place_of_socket(int socket);

}  // namespace stoker
