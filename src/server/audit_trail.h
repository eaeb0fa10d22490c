// Who asked for what, from where, and what became of it: of every request that changes something, and of every one that
// was refused. Lines of JSON in FOLDER/audit, the newest in requests.jsonl; bounded in bytes, and in lines a second,
// since strangers cause them. What was changed stands in the journal, too, chained; what was refused stands only here.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/codec.h"
#include "base/result.h"

namespace stoker {

struct AuditLine {
    std::string at{};  // RFC 3339
    std::string who, method, path, operation;
    int status = 0;
    std::string peer, request, trace;
    std::int64_t left_out = 0;  // lines before this one that were too many in that second
};
template <class V>
void fields(V& visit, AuditLine& line) {
    visit("at", line.at);
    visit("left_out", line.left_out);
    visit("method", line.method);
    visit("operation", line.operation);
    visit("path", line.path);
    visit("peer", line.peer);
    visit("request", line.request);
    visit("status", line.status);
    visit("trace", line.trace);
    visit("who", line.who);
}

struct AuditOptions {
    std::string folder;  // of the server
    std::size_t file_bytes = 16u << 20;
    int older_files = 4;
    int lines_per_second = 2000;  // of refusals; what changed something always stands there
};
struct AuditQuestion {
    bool refused = false;  // those only
    std::string who;       // the beginning of who it was: "user/anna"
    std::string from, to;  // RFC 3339, as lines have it: from there on, and before; empty: no bound
    std::size_t skip = 0;  // of the newest that match
    std::size_t most = 100;
};

class AuditTrail {
public:
    static Result<std::shared_ptr<AuditTrail>> open(AuditOptions options);
    ~AuditTrail();
    AuditTrail(const AuditTrail&) = delete;
    AuditTrail& operator=(const AuditTrail&) = delete;

    static bool wants(std::string_view method, int status);
    static bool is_refusal(int status);
    // Any thread; never fails the request: what cannot be written is counted.
    void write(AuditLine line);
    // Newest first.
    Result<std::vector<AuditLine>> newest(const AuditQuestion& question) const;
    std::uint64_t lost() const;  // lines that could not be written, or were too many

private:
    explicit AuditTrail(AuditOptions options) : options_(std::move(options)) {}
    std::string file(int older) const;
    Status reopen();
    void rotate();

    const AuditOptions options_;
    mutable std::mutex mutex_;  // guards what follows
    int fd_ = -1;
    std::size_t bytes_ = 0;
    std::int64_t second_ = 0, in_second_ = 0, left_out_ = 0;
    std::uint64_t lost_ = 0;
};

}  // namespace stoker
