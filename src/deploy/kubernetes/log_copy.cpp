#include "deploy/kubernetes/log_copy.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/local/gang_files.h"
#include "deploy/local/log_file.h"
#include "deploy/local/rank_start.h"
#include "io/files.h"
#include "io/process.h"

namespace stoker::kubernetes {
namespace {

constexpr std::size_t kFollowers = 64;
constexpr double kSilence = 3600;
constexpr std::chrono::milliseconds kPause(300), kLongestPause(5000);
constexpr std::size_t kNanos = 9, kLongestLine = 1 << 20;

// "2026-11-21T10:00:13.7Z" and "...13.736Z" sort as they follow each other only when both have as many digits.
std::string comparable(std::string_view time) {
    std::string text(time.substr(0, time.find('Z')));
    std::size_t point = text.find('.');
    if (point == std::string::npos) {
        point = text.size();
        text += '.';
    }
    text.resize(point + 1 + kNanos, '0');
    return text;
}

std::string key_of(const LogSource& source) {
    return source.pod + "/" + source.container;
}

}  // namespace

std::optional<OperationId> operation_of_mark(std::string_view name) {
    if (!name.ends_with(".at")) return std::nullopt;
    const std::size_t site = name.find('-');
    const std::size_t end = site == std::string_view::npos ? site : name.find('-', site + 1);
    return end == std::string_view::npos ? std::nullopt : OperationId::parse(name.substr(0, end));
}

std::chrono::milliseconds LogPause::after(bool answered) {
    next_ = answered ? kPause : std::clamp(2 * next_, kPause, kLongestPause);
    return next_;
}

void LogLines::begin_again() {
    seen_at_last_ = 0;
    rest_.clear();
}

std::string LogLines::line(std::string_view text) {
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return "";
    const std::string time = comparable(text.substr(0, blank));
    if (time < last_time_) return "";
    if (time == last_time_) {
        if (++seen_at_last_ <= at_last_time_) return "";
        ++at_last_time_;
    } else {
        last_time_ = time;
        at_last_time_ = seen_at_last_ = 1;
    }
    return std::string(text.substr(blank + 1));
}

std::string LogLines::take(std::string_view piece, std::vector<LogLine>* whole) {
    std::string out;
    rest_ += piece;
    std::size_t from = 0;
    for (std::size_t end; (end = rest_.find('\n', from)) != std::string::npos; from = end + 1) {
        const std::int64_t before = at_last_time_;
        const std::string time_before = last_time_;
        const std::string text = line(std::string_view(rest_).substr(from, end - from));
        if (before == at_last_time_ && time_before == last_time_) continue;
        if (whole != nullptr) whole->push_back({.text = text, .time = last_time_});
        out += text + "\n";
    }
    rest_.erase(0, from);
    if (rest_.size() > kLongestLine) out += take_rest();
    return out;
}

std::string LogLines::take_rest() {
    const std::string text = rest_.empty() ? "" : line(rest_);
    rest_.clear();
    return text;
}

struct LogCopies::State {
    std::shared_ptr<ApiClient> api;
    std::string space, folder;
    std::function<bool(const LogSource&)> ended;
    MeasureBook* measures = nullptr;
    std::atomic<bool> stopping = false;
    mutable std::mutex mutex;  // guards what follows
    std::set<std::string> busy, done;
    std::map<OperationId, std::set<std::string>> of;
    std::size_t turn = 0;

    // Nobody asks for the rest of it, and what it left must not come back.
    bool is_forgotten(const OperationId& operation) const {
        const std::lock_guard guard(mutex);
        return of.count(operation) == 0;
    }
    std::string mark_of(const LogSource& source) const {
        const bool beside = source.from.rank < 0;
        return fmt::format("{}/{}-{}{}.at", folder, source.operation.text(), beside ? "pod-" : "",
                           beside ? source.index : source.from.rank);
    }
};

LogCopies::LogCopies(std::shared_ptr<ApiClient> api, std::string space, std::string folder,
                     std::function<bool(const LogSource&)> ended, MeasureBook& measures)
    : state_(std::make_shared<State>()),
      followers_({.name = "kube-logs", .threads = kFollowers}),
      others_({.name = "kube-more-logs", .threads = 1}) {
    state_->api = std::move(api);
    state_->space = std::move(space);
    state_->folder = std::move(folder);
    state_->ended = std::move(ended);
    state_->measures = &measures;
}

LogCopies::~LogCopies() {
    state_->stopping = true;
    followers_.stop();
    others_.stop();
}

void LogCopies::follow(const std::vector<LogSource>& sources) {
    std::vector<LogSource> left;
    for (const LogSource& source : sources) {
        if (source.log_folder.empty()) continue;
        {
            const std::lock_guard guard(state_->mutex);
            if (state_->done.count(key_of(source)) > 0 || !state_->busy.insert(key_of(source)).second) continue;
            state_->of[source.operation].insert(key_of(source));
        }
        if (followers_.post([this, source] { copy(source, true); })) continue;
        const std::lock_guard guard(state_->mutex);
        state_->busy.erase(key_of(source));
        left.push_back(source);
    }
    if (left.empty()) return;
    const LogSource source = left[state_->turn++ % left.size()];
    {
        const std::lock_guard guard(state_->mutex);
        if (!state_->busy.insert(key_of(source)).second) return;
    }
    if (!others_.post([this, source] { copy(source, false); })) {
        const std::lock_guard guard(state_->mutex);
        state_->busy.erase(key_of(source));
    }
}

bool LogCopies::is_done(const OperationId& operation, const std::vector<LogSource>& sources) const {
    const std::lock_guard guard(state_->mutex);
    if (const auto begun = state_->of.find(operation); begun != state_->of.end())
        for (const std::string& key : begun->second)
            if (state_->busy.count(key) > 0) return false;
    return std::all_of(sources.begin(), sources.end(), [&](const LogSource& source) {
        return source.log_folder.empty() || state_->done.count(key_of(source)) > 0;
    });
}

void LogCopies::forget(const OperationId& operation) {
    const std::lock_guard guard(state_->mutex);
    for (const std::string& key : state_->of[operation]) state_->done.erase(key);
    state_->of.erase(operation);
    std::error_code code;
    // Of some ranks nothing was read yet: numbers may be missing.
    const std::string begin = operation.text() + "-";
    for (const auto& entry : std::filesystem::directory_iterator(state_->folder, code))
        if (entry.path().filename().string().starts_with(begin)) std::filesystem::remove(entry.path(), code);
    state_->measures->forget(operation);
}

void LogCopies::only(const std::set<OperationId>& there) {
    const std::lock_guard guard(state_->mutex);
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator(state_->folder, code)) {
        const auto operation = operation_of_mark(entry.path().filename().string());
        if (operation && there.count(*operation) == 0 && state_->of.count(*operation) == 0)
            std::filesystem::remove(entry.path(), code);
    }
}

void LogCopies::copy(const LogSource& source, bool to_its_end) {
    const bool beside = source.from.rank < 0;  // of the ranks: measures, and no log
    const std::string path =
        beside ? std::string() : log_path(source.log_folder, static_cast<std::size_t>(source.from.rank));
    std::error_code code;
    std::filesystem::create_directories(source.log_folder, code);
    std::string time;
    std::int64_t count = 0;
    if (const auto mark = read_file(state_->mark_of(source), 1000)) {
        const auto words = split_words(*mark);
        // Of another pod of this rank nothing was read yet.
        if (words.size() == 3 && words[0] == key_of(source)) {
            time = words[1];
            count = std::strtoll(std::string(words[2]).c_str(), nullptr, 10);
        }
    }
    LogLines lines(time, count);
    BoundedLog bound(path, source.most_bytes);
    const auto write = [&](const std::string& text) {
        if (beside) return true;
        const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        return file && write_all(file.get(), text, path).ok();
    };
    const auto keep = [&](const std::string& text, const std::vector<LogLine>& whole) {
        if (text.empty()) return true;
        if (!write(text)) return false;
        if (beside || !source.from.measure.step_pattern.empty()) state_->measures->add(source.from, whole);
        (void)replace_file(state_->mark_of(source),
                           fmt::format("{} {} {}\n", key_of(source), lines.last_time(), lines.at_last_time()), false)
            .ok();
        if (!beside) bound.check();
        return true;
    };
    bool done = false;
    LogPause pause;
    while (!state_->stopping) {
        const bool had_ended = state_->ended(source);
        std::string target = fmt::format("/api/v1/namespaces/{}/pods/{}/log?container={}&timestamps=true{}",
                                         state_->space, source.pod, source.container, to_its_end ? "&follow=true" : "");
        if (!lines.last_time().empty())
            target += "&sinceTime=" + in_query(lines.last_time().substr(0, lines.last_time().find('.')) + "Z");
        lines.begin_again();
        const auto answer = state_->api->stream(
            target, kSilence, [&] { return state_->stopping.load() || state_->is_forgotten(source.operation); },
            [&](std::string_view piece) {
                std::vector<LogLine> whole;
                const std::string text = lines.take(piece, &whole);
                return keep(text, whole);
            });
        const bool answered = answer && answer->status / 100 == 2;
        if (answered) keep(lines.take_rest(), {});
        done = (answer && answer->status == 404) || (answered && had_ended);
        if (done || !to_its_end || state_->is_forgotten(source.operation)) break;
        // Once more as soon as it has ended.
        const auto until = std::chrono::steady_clock::now() + pause.after(answered);
        do std::this_thread::sleep_for(kPause);
        while (std::chrono::steady_clock::now() < until && !state_->stopping && had_ended == state_->ended(source));
    }
    const std::lock_guard guard(state_->mutex);
    state_->busy.erase(key_of(source));
    if (state_->of.count(source.operation) == 0)
        std::filesystem::remove(state_->mark_of(source), code);
    else if (done)
        state_->done.insert(key_of(source));
}

}  // namespace stoker::kubernetes
