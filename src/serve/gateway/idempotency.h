// Requests that a client names with an Idempotency-Key, so that it may send one again without knowing what became of
// the first: while it runs the second is told so, and once it is answered the second gets the same answer and costs
// nothing. In memory, for a day and up to a bound; of this process. Any thread.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace stoker::gateway {

struct KeptAnswer {
    int status = 0;
    std::string type, body;  // both empty: it was a stream, or too long to be kept
    std::string request_id;
    bool whole() const { return !type.empty(); }
};

class IdempotencyBook {
public:
    enum class Found : std::uint8_t { fresh, running, other_body, answered };
    struct Look {
        Found found = Found::fresh;
        std::shared_ptr<const KeptAnswer> answer;  // of answered
        std::string request_id;                    // of running
    };
    static constexpr std::size_t kMostKept = 1u << 20;  // bytes of one body

    explicit IdempotencyBook(std::size_t most_bytes = 64u << 20) : most_bytes_(most_bytes) {}

    // fresh: it is running from now on, until one of the two below.
    Look begin(const std::string& name, std::string_view body_digest, std::string_view request_id, std::int64_t now_us);
    void answered(const std::string& name, KeptAnswer answer);
    void abandoned(const std::string& name);  // it may be tried again

private:
    struct Entry {
        std::string name, digest, request_id;
        std::shared_ptr<const KeptAnswer> answer;  // null: it runs
        std::int64_t at_us = 0;
        std::size_t bytes() const { return 256 + name.size() + (answer ? answer->body.size() : 0); }
    };
    using Entries = std::list<Entry>;  // the oldest first
    void drop(Entries::iterator at);

    const std::size_t most_bytes_;
    std::mutex mutex_;  // guards all below
    Entries entries_;
    std::unordered_map<std::string, Entries::iterator> by_name_;
    std::size_t bytes_ = 0;
};

// One request's hold on its name: let go without an answer, it may be tried again.
class IdempotencyClaim {
public:
    IdempotencyClaim() = default;
    IdempotencyClaim(IdempotencyBook& book, std::string name) : book_(&book), name_(std::move(name)) {}
    IdempotencyClaim(const IdempotencyClaim&) = delete;
    IdempotencyClaim& operator=(const IdempotencyClaim&) = delete;
    ~IdempotencyClaim() {
        if (book_ != nullptr) book_->abandoned(name_);
    }
    void answered(KeptAnswer answer) {
        if (book_ != nullptr) book_->answered(name_, std::move(answer));
        book_ = nullptr;
    }

private:
    IdempotencyBook* book_ = nullptr;
    std::string name_;
};

}  // namespace stoker::gateway
