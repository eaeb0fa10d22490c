// Between a client and a server on Unix sockets: passes on what both say, and loses an answer when it is told to, as a
// connection that breaks behind the server's yes.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "io/process.h"

namespace stoker::contract {

class SocketRelay {
public:
    SocketRelay(std::string front, std::string back);
    ~SocketRelay();
    SocketRelay(const SocketRelay&) = delete;
    SocketRelay& operator=(const SocketRelay&) = delete;

    // To the next POST.
    void lose_next_answer() { lose_ = true; }

private:
    void serve();
    void carry(UniqueFd client);
    const std::string front_, back_;
    std::atomic<bool> lose_ = false, over_ = false;
    UniqueFd listener_;
    std::thread thread_;
    std::vector<std::thread> carriers_;
};

}  // namespace stoker::contract
