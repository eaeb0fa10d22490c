#include "io/http/http_sink.h"

#include "io/http/http_wire.h"

namespace stoker::http {
namespace {

// The writing end of a stream.
class SessionStream final : public HttpStream {
public:
    SessionStream(std::shared_ptr<Mailbox> mailbox, std::weak_ptr<Answering> session,
                  std::shared_ptr<StreamState> state, std::size_t max_waiting)
        : mailbox_(std::move(mailbox)),
          session_(std::move(session)),
          state_(std::move(state)),
          max_waiting_(max_waiting) {}
    ~SessionStream() override { close(); }

    bool write(std::string piece) override {
        {
            const std::lock_guard lock(state_->mutex);
            if (state_->gone || state_->closed) return false;
            if (piece.empty()) return true;
            if (state_->waiting.size() + state_->sending > max_waiting_) {
                state_->gone = true;
                state_->waiting = {};
            } else {
                if (state_->chunked) {
                    append_http_chunk(state_->waiting, piece);
                } else {
                    state_->waiting += piece;
                }
                if (std::exchange(state_->pull_posted, true)) return !mailbox_->closed();
            }
        }
        return wake();
    }

    void close() override {
        {
            const std::lock_guard lock(state_->mutex);
            if (std::exchange(state_->closed, true) || state_->gone) return;
            if (std::exchange(state_->pull_posted, true)) return;
        }
        wake();
    }

    bool open() const override {
        const std::lock_guard lock(state_->mutex);
        return !state_->gone && !state_->closed && !mailbox_->closed();
    }

private:
    // False: there is no loop any more, or the stream was just cut off.
    bool wake() {
        const bool posted = mailbox_->post([session = session_] {
            if (const auto here = session.lock()) here->pull();
        });
        const std::lock_guard lock(state_->mutex);
        if (!posted) state_->gone = true;
        return !state_->gone;
    }

    std::shared_ptr<Mailbox> mailbox_;
    std::weak_ptr<Answering> session_;
    std::shared_ptr<StreamState> state_;
    std::size_t max_waiting_;
};

class SessionSink final : public HttpSink {
public:
    SessionSink(std::shared_ptr<Mailbox> mailbox, std::weak_ptr<Answering> session, bool http_1_0, bool head_only,
                std::size_t max_waiting)
        : mailbox_(std::move(mailbox)),
          session_(std::move(session)),
          http_1_0_(http_1_0),
          head_only_(head_only),
          max_waiting_(max_waiting) {}
    // An HttpReply that another one was assigned to leaves its sink behind.
    ~SessionSink() override {
        if (!answered_) send(http_problem(500, "the request was dropped without an answer"));
    }

    void send(HttpResponse response) override {
        if (answered_.exchange(true)) return;
        if (mailbox_->on_loop()) {
            if (const auto here = session_.lock()) here->answer(std::move(response));
            return;
        }
        mailbox_->post([session = session_, response = std::move(response)]() mutable {
            if (const auto here = session.lock()) here->answer(std::move(response));
        });
    }

    std::shared_ptr<HttpStream> stream(HttpResponse head) override {
        auto state = std::make_shared<StreamState>();
        state->chunked = !http_1_0_;
        state->gone = answered_.exchange(true) || head_only_ || !http_status_has_body(head.status);
        auto stream = std::make_shared<SessionStream>(mailbox_, session_, state, max_waiting_);
        auto begin = [session = session_, head = std::move(head), state]() mutable {
            if (const auto here = session.lock()) {
                here->begin_stream(std::move(head), state);
            } else {
                const std::lock_guard lock(state->mutex);
                state->gone = true;
            }
        };
        if (mailbox_->on_loop()) {
            begin();
        } else if (!mailbox_->post(std::move(begin))) {
            const std::lock_guard lock(state->mutex);
            state->gone = true;
        }
        return stream;
    }

private:
    std::shared_ptr<Mailbox> mailbox_;
    std::weak_ptr<Answering> session_;
    bool http_1_0_, head_only_;
    std::size_t max_waiting_;
    std::atomic<bool> answered_{false};
};

}  // namespace

bool Mailbox::post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (!wake_) return false;
    waiting_.push_back(std::move(work));
    if (waiting_.size() == 1) wake_();
    return true;
}

void Mailbox::close() {
    std::vector<std::function<void()>> dropped;  // destroyed without the lock: what they hold may post again
    const std::lock_guard lock(mutex_);
    closed_ = true;
    wake_ = nullptr;
    thread_ = std::thread::id{};
    dropped.swap(waiting_);
}

void Mailbox::drain() {
    std::vector<std::function<void()>> work;
    {
        const std::lock_guard lock(mutex_);
        work.swap(waiting_);
    }
    for (auto& one : work) one();
}

std::shared_ptr<HttpSink> make_sink(std::shared_ptr<Mailbox> mailbox, std::weak_ptr<Answering> session, bool http_1_0,
                                    bool head_only, std::size_t max_waiting) {
    return std::make_shared<SessionSink>(std::move(mailbox), std::move(session), http_1_0, head_only, max_waiting);
}

}  // namespace stoker::http
