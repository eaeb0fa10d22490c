// What a server says of itself: one line an event, with fields.
//
//     2026-11-22T19:34:23.000120Z info run.evicted run=r-7 node=n-3 cause=preempted       logfmt
//     {"at":"2026-11-22T19:34:23.000120Z","level":"info","event":"run.evicted","run":"r-7",...}
//
// Events are rows of a table (server/log_events.h), so that their names and fields stay stable. A value can break no
// line, whoever wrote it; what looks like a secret is not written. Nobody who writes ever waits: lines go through a
// bounded queue to a thread, and what does not fit is counted and said.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stoker {

enum class LogLevel : std::uint8_t { debug, info, warn, error, off };
constexpr std::array<std::pair<LogLevel, std::string_view>, 5> enum_names(LogLevel) {
    return {{{LogLevel::debug, "debug"},
             {LogLevel::info, "info"},
             {LogLevel::warn, "warn"},
             {LogLevel::error, "error"},
             {LogLevel::off, "off"}}};
}
enum class LogFormat : std::uint8_t { logfmt, json };
constexpr std::array<std::pair<LogFormat, std::string_view>, 2> enum_names(LogFormat) {
    return {{{LogFormat::logfmt, "logfmt"}, {LogFormat::json, "json"}}};
}

// A row of a table of events. fields: all that it may have, "run, node, cause".
struct LogEvent {
    std::string_view name;
    LogLevel level;
    std::string_view fields;
    std::string_view meaning;
};

// Prints as ***, whatever it holds.
class Secret {
public:
    explicit Secret(std::string value) : value_(std::move(value)) {}
    const std::string& reveal() const { return value_; }

private:
    std::string value_;
};

struct LogField {
    std::string_view key;  // letters and _
    std::string text;
    bool number = false;  // or true and false: without quotes in JSON

    LogField(std::string_view k, std::string_view v) : key(k), text(v) {}
    LogField(std::string_view k, const std::string& v) : key(k), text(v) {}
    LogField(std::string_view k, const char* v) : key(k), text(v) {}
    LogField(std::string_view k, const Secret&) : key(k), text("***") {}
    LogField(std::string_view k, bool v) : key(k), text(v ? "true" : "false"), number(true) {}
    LogField(std::string_view k, double v);
    template <std::integral T>
    LogField(std::string_view k, T v) : key(k), text(std::to_string(v)), number(true) {}
};
using LogFields = std::vector<LogField>;

// The text with what looks like a secret replaced by ***: signatures and tokens in URLs, passwords before a host,
// Bearer tokens, keys of storage accounts.
std::string without_secrets(std::string_view text);
// One line with its end. Fields whose text is empty are left out.
std::string log_line(LogFormat format, std::int64_t at_us, const LogEvent& event, const LogFields& fields);

struct LogOptions {
    LogLevel level = LogLevel::info;
    LogFormat format = LogFormat::logfmt;
    std::string file;                            // empty: standard error
    std::int64_t max_bytes = 64 << 20;           // of a file; then it becomes FILE.1, and what was FILE.1 FILE.2
    int keep = 4;                                // old ones
    std::size_t most_waiting = 8192;             // lines
    std::function<void(std::string_view)> sink;  // in place of all of it, for tests; on the thread of the log
    std::function<std::int64_t()> now_us;        // empty: the clock
};

class Log {
public:
    // denied and not_found: the file cannot be opened.
    static Result<std::unique_ptr<Log>> open(LogOptions options);
    // Writes what waits, for two seconds at most; a disk or a pipe that hangs is left behind.
    ~Log();
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;

    bool wants(LogLevel level) const;
    LogLevel level() const;
    LogFormat format() const;
    // Any thread; for what is written from here on.
    void use(LogLevel level, LogFormat format);
    // Any thread; never waits for a disk. Of a level that nobody wants it costs nothing.
    void write(const LogEvent& event, const LogFields& fields);
    // This text is not written from here on, wherever it stands.
    void hide(const Secret& secret);
    std::uint64_t dropped() const;
    // Before the process ends at once: waits so long at most for what was written so far.
    void flush(double seconds);

private:
    struct Shared;
    explicit Log(std::shared_ptr<Shared> shared);
    const std::shared_ptr<Shared> shared_;
    struct Thread;
    std::unique_ptr<Thread> thread_;
};

}  // namespace stoker
