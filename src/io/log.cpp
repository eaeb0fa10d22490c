#include "io/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "io/process.h"
#include "io/worker.h"

namespace stoker {
namespace {

// What is cut off is not looked at for secrets, so that a value of megabytes costs nothing.
constexpr std::size_t kMostValue = 2048, kLookedAt = 2 * kMostValue;
constexpr std::size_t kMostLine = 8192, kMostFields = 32, kMostHidden = 64, kLeastHidden = 8;
constexpr double kGoodbyeS = 2;

constexpr LogEvent kDropped{"log.dropped", LogLevel::warn, "lines", "These many lines did not fit into the queue."};

bool is_bare(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        const auto u = static_cast<unsigned char>(c);
        return u > ' ' && u != '"' && u != '=' && u != '\\' && u < 0x7F;
    });
}

// As a string of JSON, which logfmt's readers take as well. Every line end, control and byte that is no UTF-8 is
// written as something else, also those that terminals obey (C1) or editors take for a line end.
void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    while (!text.empty()) {
        const std::size_t bad = find_invalid_utf8(text);
        const std::string_view good = text.substr(0, bad);
        for (std::size_t i = 0; i < good.size(); ++i) {
            const auto c = static_cast<unsigned char>(good[i]);
            const auto next = i + 1 < good.size() ? static_cast<unsigned char>(good[i + 1]) : 0u;
            if (c == '"' || c == '\\') {
                out += '\\';
                out += good[i];
            } else if (c == '\n') {
                out += "\\n";
            } else if (c == '\t') {
                out += "\\t";
            } else if (c == '\r') {
                out += "\\r";
            } else if (c < 0x20 || c == 0x7F) {
                out += fmt::format("\\u{:04x}", c);
            } else if (c == 0xC2 && next >= 0x80 && next <= 0x9F) {
                out += fmt::format("\\u{:04x}", next);
                ++i;
            } else if (c == 0xE2 && (good.substr(i, 3) == "\u2028" || good.substr(i, 3) == "\u2029")) {
                out += good.substr(i, 3) == "\u2028" ? "\\u2028" : "\\u2029";
                i += 2;
            } else {
                out += good[i];
            }
        }
        if (bad == std::string_view::npos) break;
        out += "\\ufffd";
        text.remove_prefix(bad + 1);
    }
    out += '"';
}

// At most so many bytes, cut where a character begins; what was longer says so. `size` is that of the whole value.
std::string bounded(std::string_view text, std::size_t size) {
    if (text.size() <= kMostValue) return std::string(text);
    std::size_t end = kMostValue;
    while (end > kMostValue - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return std::string(text.substr(0, end)) + fmt::format("... ({} bytes)", size);
}

bool ends_secret(char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '&' || c == ';' || c == ',' || c == '"' || c == '\'' ||
           c == ')';
}

}  // namespace

LogField::LogField(std::string_view k, double v)
    : key(k), text(std::isfinite(v) ? fmt::format("{:.6g}", v) : "null"), number(true) {}

std::string without_secrets(std::string_view text) {
    // What stands before one. AccountKey and secret keys are also found as "..._key=".
    static constexpr std::string_view kBefore[] = {
        "sig=", "signature=", "token=", "password=", "passwd=", "secret=", "key=", "bearer ", "credential="};
    std::string out;
    if (text.find_first_of("=: ") == std::string_view::npos) return out.assign(text);  // each of them has one of these
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const std::string_view rest = text.substr(i);
        const auto* const before = std::find_if(std::begin(kBefore), std::end(kBefore), [&](std::string_view each) {
            return starts_with_ignore_case(rest, each);
        });
        if (before != std::end(kBefore) && rest.size() > before->size() && !ends_secret(rest[before->size()])) {
            out += rest.substr(0, before->size());
            out += "***";
            i += before->size();
            while (i < text.size() && !ends_secret(text[i])) ++i;
            continue;
        }
        if (rest.starts_with("://")) {
            out += "://";
            i += 3;
            const std::string_view host = text.substr(i, text.substr(i).find_first_of("/?# \t\n\"'"));
            if (const std::size_t at = host.rfind('@'); at != std::string_view::npos) {
                out += "***";
                i += at;
            }
            continue;
        }
        out += text[i++];
    }
    return out;
}

std::string log_line(LogFormat format, std::int64_t at_us, const LogEvent& event, const LogFields& fields) {
    const bool json = format == LogFormat::json;
    const std::string_view level = enum_names(event.level)[static_cast<std::size_t>(event.level)].second;
    const std::string at = rfc3339(at_us);
    std::string out = json ? fmt::format(R"({{"at":"{}","level":"{}","event":"{}")", at, level, event.name)
                           : fmt::format("{} {} {}", at, level, event.name);
    std::size_t count = 0;
    for (const LogField& field : fields) {
        if (field.text.empty()) continue;
        if (++count > kMostFields || out.size() > kMostLine) break;
        const std::string value =
            field.number
                ? field.text
                : bounded(without_secrets(std::string_view(field.text).substr(0, kLookedAt)), field.text.size());
        out += json ? fmt::format(",\"{}\":", field.key) : fmt::format(" {}=", field.key);
        if (field.number || (!json && is_bare(value)))
            out += value;
        else
            append_quoted(out, value);
    }
    out += json ? "}\n" : "\n";
    return out;
}

struct Log::Shared {
    LogOptions options;
    std::atomic<LogLevel> level = LogLevel::info;
    std::atomic<LogFormat> format = LogFormat::logfmt;
    std::mutex mutex;  // guards what follows
    std::condition_variable wake, quiet;
    std::deque<std::string> lines;
    std::vector<std::string> hidden;
    std::uint64_t dropped = 0, told = 0;
    bool stopping = false, writing = false;

    // ---- the writer's alone
    UniqueFd file;
    std::int64_t size = 0;

    Status open_file() {
        file = UniqueFd(::open(options.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600));
        if (!file)
            return Error(errno == ENOENT ? ErrorKind::not_found : ErrorKind::denied,
                         fmt::format("cannot write the log {}: {}", printable(options.file), std::strerror(errno)), {},
                         "name a file in a folder that is there and that this user may write to");
        struct stat status {};
        size = ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
        return done();
    }

    void rotate() {
        for (int i = options.keep; i > 0; --i) {
            const std::string from = i == 1 ? options.file : fmt::format("{}.{}", options.file, i - 1);
            ::rename(from.c_str(), fmt::format("{}.{}", options.file, i).c_str());
        }
        if (options.keep < 1) ::unlink(options.file.c_str());
        if (!open_file()) file = UniqueFd();  // tried again with the next lines; these are lost and counted
    }

    // False: it was not written.
    bool put(std::string_view text) {
        if (options.sink) {
            options.sink(text);
            return true;
        }
        int fd = 2;
        if (!options.file.empty()) {
            if (!file) (void)open_file();
            if (size > 0 && size + static_cast<std::int64_t>(text.size()) > options.max_bytes) rotate();
            // Also when nothing could be renamed: the bound holds, and what is lost is counted.
            if (!file || (size > 0 && size + static_cast<std::int64_t>(text.size()) > options.max_bytes)) return false;
            fd = file.get();
        }
        while (!text.empty()) {
            const ssize_t put = ::write(fd, text.data(), text.size());
            if (put < 0 && errno == EINTR) continue;
            if (put <= 0) return false;
            size += put;
            text.remove_prefix(static_cast<std::size_t>(put));
        }
        return true;
    }

    void work() {
        std::unique_lock lock(mutex);
        for (;;) {
            wake.wait(lock, [this] { return stopping || !lines.empty(); });
            if (lines.empty()) return;
            std::deque<std::string> batch;
            batch.swap(lines);
            const std::uint64_t lost = dropped - told;
            told = dropped;
            writing = true;
            lock.unlock();
            std::uint64_t failed = 0;
            for (const std::string& line : batch) failed += put(line) ? 0 : 1;
            if (lost > 0) put(log_line(format, options.now_us(), kDropped, {{"lines", lost}}));
            lock.lock();
            dropped += failed;
            writing = false;
            quiet.notify_all();
        }
    }
};

struct Log::Thread {
    WorkerPool pool{{.name = "stoker-log"}};
};

Log::Log(std::shared_ptr<Shared> shared) : shared_(std::move(shared)), thread_(std::make_unique<Thread>()) {
    thread_->pool.post([shared = shared_] { shared->work(); });
}

Result<std::unique_ptr<Log>> Log::open(LogOptions options) {
    auto shared = std::make_shared<Shared>();
    shared->level = options.level;
    shared->format = options.format;
    shared->options = std::move(options);
    if (!shared->options.now_us) shared->options.now_us = wall_clock_us;
    if (!shared->options.file.empty() && !shared->options.sink) TRY_VOID(shared->open_file());
    return std::unique_ptr<Log>(new Log(std::move(shared)));
}

Log::~Log() {
    {
        const std::lock_guard guard(shared_->mutex);
        shared_->stopping = true;
    }
    shared_->wake.notify_all();
    thread_->pool.drain(after(kGoodbyeS));
}

bool Log::wants(LogLevel level) const {
    return level >= shared_->level && level != LogLevel::off;
}

LogLevel Log::level() const {
    return shared_->level;
}

LogFormat Log::format() const {
    return shared_->format;
}

void Log::use(LogLevel level, LogFormat format) {
    shared_->level = level;
    shared_->format = format;
}

void Log::write(const LogEvent& event, const LogFields& fields) {
    if (!wants(event.level)) return;
    std::vector<std::string> hidden;
    {
        const std::lock_guard guard(shared_->mutex);
        hidden = shared_->hidden;
    }
    LogFields shown = fields;
    for (LogField& field : shown)
        for (const std::string& secret : hidden)
            if (!field.number) field.text = replace_all(field.text, secret, "***");
    std::string line = log_line(shared_->format, shared_->options.now_us(), event, shown);
    {
        const std::lock_guard guard(shared_->mutex);
        if (shared_->stopping || shared_->lines.size() >= shared_->options.most_waiting) {
            ++shared_->dropped;
            return;
        }
        shared_->lines.push_back(std::move(line));
    }
    shared_->wake.notify_one();
}

void Log::hide(const Secret& secret) {
    const std::lock_guard guard(shared_->mutex);
    // A short one would take words out of every line.
    if (secret.reveal().size() < kLeastHidden || shared_->hidden.size() >= kMostHidden) return;
    shared_->hidden.push_back(secret.reveal());
}

void Log::flush(double seconds) {
    std::unique_lock lock(shared_->mutex);
    shared_->quiet.wait_until(lock, after(seconds), [this] { return shared_->lines.empty() && !shared_->writing; });
}

std::uint64_t Log::dropped() const {
    const std::lock_guard guard(shared_->mutex);
    return shared_->dropped;
}

}  // namespace stoker
