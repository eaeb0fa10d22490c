#include "serve/batch/batches.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/codec.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "io/files.h"
#include "io/http/http_client.h"
#include "io/process.h"
#include "io/worker.h"
#include "serve/batch/batch_lines.h"
#include "serve/wire/json_cursor.h"

namespace stoker::batch {
namespace {

constexpr double kLineTimeoutS = 600, kLookEveryS = 1, kLongestPauseS = 60, kHopelessS = 3600;
constexpr std::size_t kMostRecord = 4u << 20, kMostLog = 2u << 30;
constexpr const char* kRecordEnding = ".batch";
constexpr const char* kLogEnding = ".log";

std::int64_t now_s() {
    return wall_clock_us() / 1'000'000;
}

std::int64_t retry_after_of(const HttpResponse& response) {
    const auto header = response.headers.find("retry-after");
    const auto seconds = header ? wire::json_integer(trim(*header)) : std::nullopt;
    return std::max<std::int64_t>(1, seconds.value_or(1));
}

}  // namespace

template <class V>
void fields(V& visit, BatchError& error) {
    visit("code", error.code);
    visit("line", error.line);
    visit("message", error.message);
}
template <class V>
void fields(V& visit, BatchRecord& record) {
    visit("cancelled_at", record.cancelled_at);
    visit("cancelling_at", record.cancelling_at);
    visit("completed", record.completed);
    visit("completed_at", record.completed_at);
    visit("created_at", record.created_at);
    visit("endpoint", record.endpoint);
    visit("ends_as", record.ends_as);
    visit("error_file_id", record.error_file_id);
    visit("errors", record.errors);
    visit("expired_at", record.expired_at);
    visit("expires_at", record.expires_at);
    visit("failed", record.failed);
    visit("failed_at", record.failed_at);
    visit("finalizing_at", record.finalizing_at);
    visit("id", record.id);
    visit("in_progress_at", record.in_progress_at);
    visit("input_file_id", record.input_file_id);
    visit("key", record.key);
    visit("metadata", record.metadata);
    visit("output_file_id", record.output_file_id);
    visit("project", record.project);
    visit("status", record.status);
    visit("tokens_cached", record.tokens_cached);
    visit("tokens_in", record.tokens_in);
    visit("tokens_out", record.tokens_out);
    visit("total", record.total);
}

struct BatchService::Batch {
    BatchRecord record;
    std::string input;  // while it runs; lines_ look into it
    std::vector<BatchLine> lines;
    enum class Line : std::uint8_t { waits, under_way, answered };
    std::vector<Line> states;
    std::size_t next = 0, under_way = 0;
    bool at_work = false;  // somebody validates or finalizes it
    UniqueFd log;
    std::string log_path;
};

BatchRecord& BatchService::view_of(Batch& batch) {
    return batch.record;
}

void BatchService::add(const BatchRecord& record) {
    auto batch = std::make_shared<Batch>();
    batch->record = record;
    batches_.push_back(std::move(batch));
}

BatchService::BatchService(BatchOptions options, std::unique_ptr<FileStore> files)
    : options_(std::move(options)), files_(std::move(files)) {}

Result<std::unique_ptr<BatchService>> BatchService::start(BatchOptions options) {
    TRY(auto files, FileStore::open(options.folder, options.most_bytes));
    auto service = std::unique_ptr<BatchService>(new BatchService(std::move(options), std::move(files)));
    TRY_VOID(service->read_what_is_there());
    for (int i = 0; i < service->options_.at_once; ++i)
        service->threads_.push_back(masked_thread("batch", [own = service.get()] { own->work(); }));
    return service;
}

BatchService::~BatchService() {
    {
        const std::lock_guard guard(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

Status BatchService::read_what_is_there() {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(options_.folder, none)) {
        const std::string path = entry.path().string();
        if (!path.ends_with(kRecordEnding)) continue;
        TRY(const std::string text, read_file(path, kMostRecord));
        auto batch = std::make_shared<Batch>();
        TRY(batch->record, codec::decode<BatchRecord>(trim(text), path));
        if (wire::find_endpoint(batch->record.endpoint) == nullptr) continue;  // of a version that had more
        batches_.push_back(std::move(batch));
    }
    std::sort(batches_.begin(), batches_.end(), [](const auto& a, const auto& b) {
        return a->record.created_at != b->record.created_at ? a->record.created_at < b->record.created_at
                                                            : a->record.id < b->record.id;
    });
    return done();
}

void BatchService::save(const BatchRecord& record) {
    std::error_code error;
    std::filesystem::create_directories(options_.folder, error);
    // Where it cannot be written the next process goes on from an older state, which is as true.
    (void)write_file_atomic(fmt::format("{}/{}{}", options_.folder, record.id, kRecordEnding),
                            codec::encode(record) + "\n");
}

bool BatchService::pause(double seconds) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return ends_; });
    return !ends_;
}

// What is to be done next: a line of a batch, or (line == npos) one to be made ready or closed.
std::shared_ptr<BatchService::Batch> BatchService::due(std::size_t& line) {
    const std::int64_t now = now_s();
    for (std::size_t i = 0; i < batches_.size(); ++i) {
        auto& batch = batches_[(turn_ + i) % batches_.size()];
        BatchRecord& record = batch->record;
        line = std::string::npos;
        if (batch->at_work) continue;
        const bool running = record.status == BatchStatus::in_progress || record.status == BatchStatus::cancelling;
        if (record.status == BatchStatus::validating || record.status == BatchStatus::finalizing ||
            (running && batch->input.empty())) {
            batch->at_work = true;
            return batch;
        }
        if (!running) continue;
        if (record.status == BatchStatus::in_progress && now >= record.expires_at)
            record.ends_as = BatchStatus::expired;
        const bool takes_more = record.status == BatchStatus::in_progress && record.ends_as == BatchStatus::completed;
        while (batch->next < batch->lines.size() && batch->states[batch->next] != Batch::Line::waits) ++batch->next;
        if (takes_more && batch->next < batch->lines.size()) {
            line = batch->next++;
            batch->states[line] = Batch::Line::under_way;
            ++batch->under_way;
            turn_ = (turn_ + i + 1) % batches_.size();  // fair among batches
            return batch;
        }
        if (batch->under_way > 0) continue;
        record.status = BatchStatus::finalizing;
        record.finalizing_at = now;
        batch->at_work = true;
        return batch;
    }
    return nullptr;
}

void BatchService::work() {
    std::unique_ptr<HttpClient> client;
    while (true) {
        std::size_t line = std::string::npos;
        std::shared_ptr<Batch> batch;
        {
            std::unique_lock lock(mutex_);
            while (!ends_ && !(batch = due(line))) changed_.wait_for(lock, std::chrono::duration<double>(kLookEveryS));
            if (ends_) return;
        }
        if (line != std::string::npos) {
            if (!client)
                if (auto made = HttpClient::make({.url = options_.server})) client = std::move(*made);
            if (!client || !run_line(*batch, line, *client)) client.reset();
            continue;
        }
        if (batch->record.status == BatchStatus::finalizing)
            finalize(*batch);
        else
            validate(*batch);
        const std::lock_guard guard(mutex_);
        batch->at_work = false;
        changed_.notify_all();
    }
}

// Reads its lines, and what of them is answered already.
void BatchService::validate(Batch& batch) {
    BatchRecord record;
    {
        const std::lock_guard guard(mutex_);
        record = batch.record;
    }
    const auto file = files_->find(record.input_file_id, record.project);
    auto text = file ? files_->content(*file) : Result<std::string>(file.error());
    std::vector<BatchLine> lines;
    std::vector<BatchError> errors;
    if (!text)
        errors.push_back({.code = "missing_file", .message = text.error().message()});
    else
        lines = read_batch_lines(*text, record.endpoint, errors);
    const bool anew = record.status == BatchStatus::validating;
    if (!errors.empty()) {
        const std::lock_guard guard(mutex_);
        batch.record.errors = std::move(errors);
        batch.record.status = BatchStatus::failed;
        batch.record.failed_at = now_s();
        save(batch.record);
        return;
    }
    const std::string log_path = fmt::format("{}/{}{}", options_.folder, record.id, kLogEnding);
    std::vector<Batch::Line> states(lines.size(), Batch::Line::waits);
    std::int64_t completed = 0, failed = 0;
    std::int64_t tokens_in = 0, tokens_cached = 0, tokens_out = 0;
    const wire::Meter meter = wire::find_endpoint(record.endpoint)->meter;
    std::size_t end = 0;
    if (const auto log = read_file(log_path, kMostLog)) {
        for (const BatchRow& row : read_batch_log(*log, lines.size(), end)) {
            if (states[row.line] == Batch::Line::answered) continue;
            states[row.line] = Batch::Line::answered;
            ++(row.good ? completed : failed);
            const wire::AnswerScan scan =
                row.good ? wire::scan_answer(meter, body_of_row(row.text)) : wire::AnswerScan{};
            if (!scan.usage) continue;
            tokens_in += scan.usage->in;
            tokens_cached += scan.usage->cached_in;
            tokens_out += scan.usage->out;
        }
    }
    UniqueFd log(::open(log_path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | O_APPEND, 0600));
    // What was torn is cut off, so that the next row begins a line.
    const bool writable = log && ::ftruncate(log.get(), static_cast<off_t>(end)) == 0;
    const std::lock_guard guard(mutex_);
    BatchRecord& now = batch.record;
    if (!writable) {
        now.errors.push_back({.code = "internal_error", .message = log_path + " cannot be written"});
        now.status = BatchStatus::failed;
        now.failed_at = now_s();
        return save(now);
    }
    // Views of the lines look into the text, whose bytes move with it only where they are not inside of the object.
    batch.input = std::move(*text);
    batch.lines = read_batch_lines(batch.input, record.endpoint, errors);
    batch.states = std::move(states);
    batch.log = std::move(log);
    batch.log_path = log_path;
    batch.next = 0;
    now.total = static_cast<std::int64_t>(batch.lines.size());
    now.completed = completed;
    now.failed = failed;
    now.tokens_in = tokens_in;
    now.tokens_cached = tokens_cached;
    now.tokens_out = tokens_out;
    if (anew && now.status == BatchStatus::validating) {
        now.status = BatchStatus::in_progress;
        now.in_progress_at = now_s();
    }
    save(now);
}

bool BatchService::run_line(Batch& batch, std::size_t line, HttpClient& client) {
    HttpCall call{.method = "POST", .target = batch.record.endpoint, .timeout_s = kLineTimeoutS};
    call.headers.add("Authorization", "Bearer " + options_.secret);
    call.headers.add("x-stoker-key", batch.record.key);
    call.headers.add("Content-Type", "application/json");
    call.body = std::string(batch.lines[line].body);
    call.give_up = [&] {
        const std::lock_guard guard(mutex_);
        return ends_;
    };
    const std::string& custom_id = batch.lines[line].custom_id;
    while (true) {
        const auto response = client.call(call);
        bool over = false;
        {
            const std::lock_guard guard(mutex_);
            if (ends_) {
                --batch.under_way;
                return false;
            }
            over = batch.record.status != BatchStatus::in_progress || now_s() >= batch.record.expires_at;
        }
        const bool busy = response && (response->status == 429 || response->status == 503);
        const std::int64_t wait_s = busy ? retry_after_of(*response) : 1;
        // What waits for a month, as money does, is an answer.
        if ((!response || (busy && wait_s < kHopelessS)) && !over) {
            if (!pause(std::min(static_cast<double>(wait_s), kLongestPauseS))) {
                const std::lock_guard guard(mutex_);
                --batch.under_way;
                return false;
            }
            if (!response) {
                const std::lock_guard guard(mutex_);
                --batch.under_way;
                batch.states[line] = Batch::Line::waits;
                batch.next = std::min(batch.next, line);
                return false;
            }
            continue;
        }
        const bool good = response && response->status / 100 == 2;
        if (!good && over) {  // it is told with those that were never sent
            const std::lock_guard guard(mutex_);
            --batch.under_way;
            changed_.notify_all();
            return response.ok();
        }
        const wire::Endpoint* endpoint = wire::find_endpoint(batch.record.endpoint);
        const auto scan = wire::scan_answer(endpoint->meter, response->body);
        const auto id = response->headers.find("x-request-id");
        take_answer(batch, line, good,
                    batch_row(custom_id, response->status, id ? *id : std::string_view(), response->body, scan.sound),
                    good ? scan.usage.value_or(wire::Usage{}) : wire::Usage{});
        return true;
    }
}

void BatchService::take_answer(Batch& batch, std::size_t line, bool good, const std::string& row,
                               const wire::Usage& used) {
    const std::string text = fmt::format("{} {} {}\n", line, good ? "ok" : "bad", row);
    const int log = batch.log.get();
    const bool kept = write_all(log, text, batch.log_path).ok() && ::fdatasync(log) == 0;
    const std::lock_guard guard(mutex_);
    --batch.under_way;
    batch.states[line] = Batch::Line::answered;
    BatchRecord& record = batch.record;
    if (!kept) {
        record.errors.push_back({.code = "internal_error", .message = "answers cannot be written"});
        record.ends_as = BatchStatus::failed;
        record.status = BatchStatus::cancelling;
    } else {
        ++(good ? record.completed : record.failed);
        record.tokens_in += used.in;
        record.tokens_cached += used.cached_in;
        record.tokens_out += used.out;
    }
    changed_.notify_all();
}

void BatchService::finalize(Batch& batch) {
    BatchRecord record;
    {
        const std::lock_guard guard(mutex_);
        record = batch.record;
    }
    const std::string log_path = fmt::format("{}/{}{}", options_.folder, record.id, kLogEnding);
    std::vector<BatchError> errors;
    const auto file = files_->find(record.input_file_id, record.project);
    const auto input = file ? files_->content(*file) : Result<std::string>(file.error());
    const std::vector<BatchLine> lines =
        input ? read_batch_lines(*input, record.endpoint, errors) : std::vector<BatchLine>();
    std::size_t end = 0;
    const auto log = read_file(log_path, kMostLog);
    const std::vector<BatchRow> rows = log ? read_batch_log(*log, lines.size(), end) : std::vector<BatchRow>();
    const bool early = record.ends_as == BatchStatus::expired || record.ends_as == BatchStatus::cancelled;
    const BatchFiles made = batch_files(lines, rows, early ? enum_word(record.ends_as) : std::string_view());
    const auto keep = [&](const std::string& content, const char* kind, std::string& id) {
        if (content.empty()) return;
        const auto kept =
            files_->add(fmt::format("{}_{}.jsonl", record.id, kind), "batch_output", record.project, content);
        if (kept)
            id = kept->id;
        else
            errors.push_back({.code = "internal_error", .message = kept.error().message()});
    };
    std::string output, error;
    keep(made.output, "output", output);
    keep(made.errors, "error", error);
    const std::lock_guard guard(mutex_);
    BatchRecord& now = batch.record;
    now.output_file_id = output;
    now.error_file_id = error;
    now.completed = made.good;
    now.failed = made.bad;
    now.errors.insert(now.errors.end(), errors.begin(), errors.end());
    now.status = errors.empty() ? now.ends_as : BatchStatus::failed;
    const std::int64_t at = now_s();
    (now.status == BatchStatus::completed   ? now.completed_at
     : now.status == BatchStatus::expired   ? now.expired_at
     : now.status == BatchStatus::cancelled ? now.cancelled_at
                                            : now.failed_at) = at;
    save(now);
    batch.lines.clear();
    batch.input.clear();
    batch.log.reset();
    if (now.status != BatchStatus::failed) ::unlink(log_path.c_str());
}

}  // namespace stoker::batch
