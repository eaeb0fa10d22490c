// Where the answers of a connection come from: HttpSink and HttpStream on any thread, the connection on its loop.
// Between them is a mailbox, so that an answer may come after the connection, or the server, has ended.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "io/http/http.h"

namespace stoker::http {

// Work for the loop from other threads. What arrives before the loop looks costs one wake-up together. May outlive the
// server: then nothing is taken any more.
class Mailbox {
public:
    // wake: from any thread, makes the loop call drain() soon.
    explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}
    bool post(std::function<void()> work);  // false: closed
    void close();
    bool closed() const { return closed_; }
    bool on_loop() const { return std::this_thread::get_id() == thread_; }

    // On the loop's thread only.
    void enter() { thread_ = std::this_thread::get_id(); }
    void drain();

private:
    std::mutex mutex_;            // guards wake_ and waiting_
    std::function<void()> wake_;  // empty when closed
    std::vector<std::function<void()>> waiting_;
    std::atomic<std::thread::id> thread_{};
    std::atomic<bool> closed_{false};
};

// A stream's pieces between the threads that write and the loop that sends.
struct StreamState {
    std::mutex mutex;     // guards all below
    std::string waiting;  // framed as it goes out
    std::size_t sending = 0;
    bool pull_posted = false;  // the loop will come
    bool closed = false;       // complete
    bool gone = false;         // nobody reads any more
    bool chunked = true;
};

// The connection, on the loop's thread.
class Answering {
public:
    virtual ~Answering() = default;
    virtual void answer(HttpResponse response) = 0;
    virtual void begin_stream(HttpResponse head, std::shared_ptr<StreamState> stream) = 0;
    virtual void pull() = 0;  // the stream has pieces, or ended
};

std::shared_ptr<HttpSink> make_sink(std::shared_ptr<Mailbox> mailbox, std::weak_ptr<Answering> session, bool http_1_0,
                                    bool head_only, std::size_t max_waiting);

}  // namespace stoker::http
