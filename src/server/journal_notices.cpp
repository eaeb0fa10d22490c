#include "server/journal_notices.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <future>

#include "base/text.h"
#include "io/files.h"
#include "io/worker.h"

namespace stoker {
namespace {

constexpr std::size_t kMostRecords = 2000;  // looked at between two turns of the core
constexpr double kReadLimitS = 30;

}  // namespace

std::uint64_t JournalNotices::read_cursor() {
    std::uint64_t cursor = 0, head = 0;
    (void)engine_.read([&](const EngineView& view) { head = view.state.seq; });
    if (const auto text = read_file(cursor_file_, 40)) {
        const std::string_view digits = trim(*text);
        const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), cursor);
        if (code == std::errc() && end == digits.data() + digits.size())
            return std::min(cursor, head);  // the journal may have been cut
    }
    save_cursor(head);
    return head;
}

void JournalNotices::save_cursor(std::uint64_t cursor) {
    if (cursor == saved_) return;
    saved_ = cursor;
    // Not saved: after a restart something is told twice, under the same id.
    if (write_file_atomic(cursor_file_, std::to_string(cursor) + "\n")) ::chmod(cursor_file_.c_str(), 0600);
}

std::optional<JournalNotices::Batch> JournalNotices::read_after(std::uint64_t after) {
    const auto promise = std::make_shared<std::promise<std::optional<Batch>>>();
    auto answer = promise->get_future();
    const Status asked = engine_.read_journal([promise, after, kind = kind_, pick = pick_](const EngineView& view) {
        Batch batch{.notices = {}, .last = after, .head = view.state.seq};
        if (after >= batch.head || view.journal == nullptr) return promise->set_value(std::move(batch));
        std::size_t looked_at = 0;
        const Status read = view.journal->read(after, [&](const JournalRecord& record) -> Result<bool> {
            batch.last = record.seq;
            if (record.kind == kind && !record.redacted) {
                TRY(const RecordBody body, decode_body(record.kind, record.format, record.body, record.seq));
                pick(view.state, record, body, batch.notices);
            }
            return ++looked_at < kMostRecords;
        });
        promise->set_value(read ? std::optional(std::move(batch)) : std::nullopt);
    });
    if (!asked) return std::nullopt;
    // An engine that ends drops what it was asked.
    if (answer.wait_for(std::chrono::duration<double>(kReadLimitS)) != std::future_status::ready) return std::nullopt;
    try {
        return answer.get();
    } catch (const std::future_error&) {
        return std::nullopt;
    }
}

NoticeThread::NoticeThread(Engine& engine, std::uint32_t kind, const char* name, std::function<void()> run) {
    watch_ = engine.watch([this, kind](std::span<const Record> records) {
        for (const Record& record : records) {
            if (kind_of(record.body) != kind) continue;
            {
                const std::lock_guard guard(mutex_);
                fresh_ = true;
            }
            return changed_.notify_all();
        }
    });
    thread_ = masked_thread(name, std::move(run));
}

NoticeThread::~NoticeThread() {
    watch_.reset();
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void NoticeThread::wake() {
    {
        const std::lock_guard guard(mutex_);
        fresh_ = true;
    }
    changed_.notify_all();
}

bool NoticeThread::pause(double seconds, bool until_fresh) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                      [&] { return stopping_ || (until_fresh && fresh_); });
    if (until_fresh) fresh_ = false;
    return !stopping_;
}

}  // namespace stoker
