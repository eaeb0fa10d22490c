// /v1/files and /v1/batches: requests that are handed in as a file and answered as one. Each line is an ordinary
// request of the key that handed it in, sent to the gateway itself, so that it is limited, routed and charged as any
// other. What is answered is on disk before the next line counts, and a process that follows goes on behind it.
//
//     validating ─► in_progress ─► finalizing ─► completed        failed: a line is wrong, none was sent
//                        └─► cancelling ─► cancelled    expired: not done by the end of its window
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/http/http.h"
#include "serve/batch/files.h"
#include "serve/wire/usage.h"

namespace stoker {
class HttpClient;
}

namespace stoker::batch {

enum class BatchStatus : std::uint8_t {
    validating,
    failed,
    in_progress,
    finalizing,
    completed,
    expired,
    cancelling,
    cancelled
};
constexpr std::array<std::pair<BatchStatus, std::string_view>, 8> enum_names(BatchStatus) {
    return {{{BatchStatus::validating, "validating"},
             {BatchStatus::failed, "failed"},
             {BatchStatus::in_progress, "in_progress"},
             {BatchStatus::finalizing, "finalizing"},
             {BatchStatus::completed, "completed"},
             {BatchStatus::expired, "expired"},
             {BatchStatus::cancelling, "cancelling"},
             {BatchStatus::cancelled, "cancelled"}}};
}

struct BatchError {
    std::string code, message;
    std::int64_t line = 0;
};
struct BatchRecord {
    std::string id, key, project, endpoint, input_file_id, output_file_id, error_file_id, metadata;  // JSON as it came
    BatchStatus status = BatchStatus::validating;
    BatchStatus ends_as = BatchStatus::completed;  // when its last lines are back
    std::int64_t created_at = 0, in_progress_at = 0, expires_at = 0, finalizing_at = 0, completed_at = 0, failed_at = 0,
                 expired_at = 0, cancelling_at = 0, cancelled_at = 0;
    std::int64_t total = 0, completed = 0, failed = 0, tokens_in = 0, tokens_cached = 0, tokens_out = 0;
    std::vector<BatchError> errors;
};

struct BatchOptions {
    std::string folder;
    int at_once = 4;                         // lines under way
    std::uint64_t most_bytes = 10ull << 30;  // of all files
    std::string server;                      // the gateway itself: "http://127.0.0.1:18080"
    std::string secret;                      // that it knows its own requests by
};

// Who asks: a key, and its project, whose files and batches it sees.
struct BatchCaller {
    std::string key, project;
};

class BatchService {
public:
    // Reads what is there and goes on with it. unavailable: the folder.
    static Result<std::unique_ptr<BatchService>> start(BatchOptions options);
    ~BatchService();  // what is under way is asked again by the next process
    BatchService(const BatchService&) = delete;
    BatchService& operator=(const BatchService&) = delete;

    static bool takes(std::string_view path);  // one of its routes
    HttpResponse answer(const HttpRequest& request, const BatchCaller& caller);

private:
    struct Batch;
    explicit BatchService(BatchOptions options, std::unique_ptr<FileStore> files);
    Status read_what_is_there();
    HttpResponse files_route(const HttpRequest& request, const BatchCaller& caller);
    HttpResponse batches_route(const HttpRequest& request, const BatchCaller& caller);
    HttpResponse create(const HttpRequest& request, const BatchCaller& caller);
    HttpResponse upload(const HttpRequest& request, const BatchCaller& caller);
    void work();
    std::shared_ptr<Batch> due(std::size_t& line);
    void validate(Batch& batch);
    bool run_line(Batch& batch, std::size_t line, HttpClient& client);
    void take_answer(Batch& batch, std::size_t line, bool good, const std::string& row, const wire::Usage& used);
    void finalize(Batch& batch);
    void save(const BatchRecord& record);
    void add(const BatchRecord& record);
    static BatchRecord& view_of(Batch& batch);
    bool pause(double seconds);  // false: it ends

    const BatchOptions options_;
    const std::unique_ptr<FileStore> files_;
    std::mutex mutex_;  // guards batches_ and what they hold
    std::condition_variable changed_;
    std::deque<std::shared_ptr<Batch>> batches_;
    std::size_t turn_ = 0;
    bool ends_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace stoker::batch
