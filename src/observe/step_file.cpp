#include "observe/step_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>

#include "base/document.h"
#include "base/text.h"
#include "io/process.h"
#include "observe/output_steps.h"
#include "observe/tracker_file.h"

namespace stoker {
namespace {

constexpr std::size_t kMostName = 64, kMostPattern = 1000, kMostHeartbeat = 256;

bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= kMostName && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
               c == '/' || c == '-';
    });
}

void put(StepLine& line, const std::string& name, double value) {
    if (!std::isfinite(value)) {
        line.lost = line.lost || names_loss(name);
        return;
    }
    if (name == "step")
        line.step = value;
    else if (name == "time")
        line.time_s = value;
    else if (name == "rank" && value >= 0 && value < 1e6 && value == std::floor(value))
        line.rank = static_cast<int>(value);
    else
        line.values.emplace_back(name, value);
}

// Python's json writes NaN and Infinity, which are no JSON: as strings they are read like those that others write.
std::string with_quoted_nonfinite(std::string_view line) {
    std::string out;
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const std::string_view rest = line.substr(i);
        if (quoted && line[i] == '\\' && i + 1 < line.size()) {
            out += line.substr(i++, 2);
            continue;
        }
        if (line[i] == '"') quoted = !quoted;
        const std::string_view word = quoted                          ? std::string_view()
                                      : rest.starts_with("NaN")       ? "NaN"
                                      : rest.starts_with("Infinity")  ? "Infinity"
                                      : rest.starts_with("-Infinity") ? "-Infinity"
                                                                      : std::string_view();
        if (word.empty()) {
            out += line[i];
            continue;
        }
        out.append("\"").append(word).append("\"");
        i += word.size() - 1;
    }
    return out;
}

bool has_value(const StepLine& line, std::string_view name) {
    return std::any_of(line.values.begin(), line.values.end(), [&](const auto& each) { return each.first == name; });
}

UniqueFd open_plain(const std::string& path, struct stat& status) {
    // A pipe or a device in the place of the file would make us wait.
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    return fd;
}

std::string read_at(int fd, std::size_t most, std::int64_t from) {
    std::string text(most, '\0');
    std::size_t have = 0;
    while (have < most) {
        const ssize_t got = ::pread(fd, text.data() + have, most - have, from + static_cast<std::int64_t>(have));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    return text;
}

}  // namespace

std::size_t number_at(std::string_view text, double& value) {
    const std::size_t sign = !text.empty() && text[0] == '+' ? 1 : 0;
    const auto [end, code] = std::from_chars(text.data() + sign, text.data() + text.size(), value);
    if (code != std::errc()) return 0;
    const auto length = static_cast<std::size_t>(end - text.data());
    // "nano" and "info" are words.
    if (!std::isfinite(value) && length < text.size() && std::isalnum(static_cast<unsigned char>(text[length])) != 0)
        return 0;
    return length;
}

bool names_loss(std::string_view name) {
    const std::string text = lower(name);
    const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
    return has("loss") && !has("val") && !has("test");
}

std::vector<std::string> TailReader::next() {
    std::vector<std::string> lines;
    struct stat status {};
    more_ = false;
    written_.clear();
    const UniqueFd fd = open_plain(path_, status);
    if (!fd) return lines;
    if (!known_ || status.st_dev != device_ || status.st_ino != inode_ || status.st_size < offset_) {
        device_ = status.st_dev;
        inode_ = status.st_ino;
        offset_ = 0;
        part_.clear();
        discarding_ = false;
        known_ = true;
    }
    const std::int64_t behind = status.st_size - offset_;
    if (behind > static_cast<std::int64_t>(limits_.max_behind)) {
        const std::int64_t skip = behind - static_cast<std::int64_t>(limits_.max_read);
        offset_ += skip;
        skipped_bytes_ += skip;
        part_.clear();
        discarding_ = true;  // we are in the middle of a line
    }
    const std::size_t wanted =
        std::min(static_cast<std::size_t>(std::max<std::int64_t>(0, status.st_size - offset_)), limits_.max_read);
    if (wanted == 0) return lines;
    const std::string text = read_at(fd.get(), wanted, offset_);
    std::int64_t at = offset_;
    offset_ += static_cast<std::int64_t>(text.size());
    more_ = offset_ < status.st_size;
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::size_t end = limits_.returns_end ? rest.find_first_of("\r\n") : rest.find('\n');
        const std::string_view piece = rest.substr(0, end);
        if (!discarding_ && part_.size() + piece.size() > limits_.max_line) {
            ++dropped_lines_;
            discarding_ = true;
            part_.clear();
        }
        if (!discarding_ && part_.empty()) part_at_ = at;
        if (!discarding_) part_ += piece;
        if (end == std::string_view::npos) break;
        at += static_cast<std::int64_t>(end) + 1;
        if (!discarding_) {
            // A bar writes its return first: the line has been there since it began.
            written_.push_back(rest[end] == '\r' ? part_at_ + 1 : at);
            lines.push_back(std::move(part_));
        }
        part_.clear();
        discarding_ = false;
        rest.remove_prefix(end + 1);
    }
    return lines;
}

void TailReader::skip_to_end() {
    struct stat status {};
    if (!open_plain(path_, status)) return;
    device_ = status.st_dev;
    inode_ = status.st_ino;
    known_ = true;
    offset_ = status.st_size;
    part_.clear();
    discarding_ = false;
}

std::optional<StepLine> parse_step_line(std::string_view line, const TailLimits& limits) {
    if (line.size() > limits.max_line) return std::nullopt;
    const std::string text = with_quoted_nonfinite(line);
    const auto document = Document::parse_json(
        text, "steps",
        {.max_bytes = text.size(), .max_nodes = limits.max_values * 8, .max_depth = 4, .max_aliases = 0});
    if (!document || !document->root().is_mapping()) return std::nullopt;
    StepLine out;
    for (const Member& member : document->root().members) {
        const Node& value = *member.value;
        double number = value.number;
        if (!is_name(member.key)) continue;
        if (value.kind == NodeKind::string) {
            if (number_at(value.text, number) != value.text.size() || std::isfinite(number)) continue;
        } else if (value.kind != NodeKind::number) {
            continue;
        }
        if (out.values.size() < limits.max_values) put(out, member.key, number);
    }
    return out;
}

Result<StepPattern> StepPattern::parse(std::string_view text) {
    const auto bad = [&](std::string why) {
        return Error(ErrorKind::invalid, "the step pattern \"" + printable(text, 100) + "\": " + std::move(why), {},
                     "an example: step {step} loss {loss}");
    };
    if (text.size() > kMostPattern) return bad("it is longer than 1000 characters");
    StepPattern pattern;
    bool has_step = false;
    for (std::size_t i = 0; i < text.size();) {
        if (is_blank(text[i])) {
            while (i < text.size() && is_blank(text[i])) ++i;
            pattern.parts_.push_back({.kind = Part::Kind::blanks, .text = {}});
        } else if (text[i] == '{') {
            const std::size_t end = text.find('}', i);
            if (end == std::string_view::npos) return bad("a { has no }");
            const std::string name(text.substr(i + 1, end - i - 1));
            if (!name.empty() && !is_name(name)) return bad("{" + printable(name, 40) + "} is not a name");
            if (!pattern.parts_.empty() && (pattern.parts_.back().kind == Part::Kind::number ||
                                            pattern.parts_.back().kind == Part::Kind::anything))
                return bad("two placeholders need something between them");
            has_step = has_step || name == "step";
            pattern.parts_.push_back({.kind = name.empty() ? Part::Kind::anything : Part::Kind::number, .text = name});
            i = end + 1;
        } else {
            std::string literal;
            while (i < text.size() && text[i] != '{' && !is_blank(text[i])) literal.push_back(text[i++]);
            pattern.parts_.push_back({.kind = Part::Kind::text, .text = std::move(literal)});
        }
    }
    if (!has_step) return bad("it has no {step}");
    return pattern;
}

std::optional<StepLine> StepPattern::match_at(std::string_view line, std::size_t at) const {
    StepLine out;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const Part& part = parts_[i];
        switch (part.kind) {
            case Part::Kind::text:
                if (!line.substr(at).starts_with(part.text)) return std::nullopt;
                at += part.text.size();
                break;
            case Part::Kind::blanks: {
                const std::size_t from = at;
                while (at < line.size() && is_blank(line[at])) ++at;
                if (at == from && at != line.size() && at != 0) return std::nullopt;
                break;
            }
            case Part::Kind::number: {
                double value = 0;
                const std::size_t length = number_at(line.substr(at), value);
                // A loss may be nan; a step or a time is a number.
                if (length == 0 || (!std::isfinite(value) && !names_loss(part.text))) return std::nullopt;
                put(out, part.text, value);
                at += length;
                break;
            }
            case Part::Kind::anything: {
                // Up to what comes next, so that one pass suffices whatever the line holds.
                std::size_t end = at;
                const Part* next = i + 1 < parts_.size() ? &parts_[i + 1] : nullptr;
                while (end < line.size() && !is_blank(line[end]) &&
                       !(next && next->kind == Part::Kind::text && line.substr(end).starts_with(next->text)))
                    ++end;
                if (end == at) return std::nullopt;
                at = end;
                break;
            }
        }
    }
    return out;
}

std::optional<StepLine> StepPattern::match(std::string_view line) const {
    for (std::size_t at = 0; at <= line.size(); ++at) {
        // A number that begins inside of another number or word is not the one that was meant.
        const bool word = at > 0 && std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0;
        if (word && parts_.front().kind != Part::Kind::blanks) continue;
        if (auto found = match_at(line, at)) return found;
    }
    return std::nullopt;
}

namespace {

TailLimits of_source(StepSource::Kind kind, TailLimits limits) {
    limits.returns_end = kind == StepSource::Kind::output || kind == StepSource::Kind::counted;
    return limits;
}

}  // namespace

StepReader::StepReader(StepSource source, TailLimits limits)
    : source_(std::move(source)), limits_(limits), tail_(source_.path, of_source(source_.kind, limits)) {
    if (source_.kind == StepSource::Kind::counted) counted_ = std::make_shared<OutputSteps>();
    if (source_.kind == StepSource::Kind::tracker) tracker_ = TrackerFile::open(source_.path);
    if (source_.clock) watched_ = source_.clock->watch(source_.path);
}

std::optional<StepLine> StepReader::heartbeat(const std::string& text) {
    if (text.empty() || text == last_heartbeat_) return std::nullopt;
    last_heartbeat_ = text;
    StepLine line;
    double step = 0;
    if (text.front() == '{') {
        auto read = parse_step_line(text, limits_);
        if (!read || !read->step) {
            ++bad_lines_;
            return std::nullopt;
        }
        line = std::move(*read);
    } else if (number_at(text, step) == text.size() && std::isfinite(step)) {
        line.step = step;
    } else {
        ++bad_lines_;
        return std::nullopt;
    }
    return line;
}

std::vector<StepLine> StepReader::poll_heartbeat(double now_s) {
    struct stat status {};
    const UniqueFd fd = open_plain(source_.path, status);
    if (!fd) return {};
    auto line = heartbeat(std::string(trim(read_at(fd.get(), kMostHeartbeat, 0))));
    if (!line) return {};
    // When the file was written is nearer to the truth than when we looked.
    const double written =
        static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
    if (!line->time_s && std::abs(written - now_s) < 3600) line->time_s = written;
    return {std::move(*line)};
}

void StepReader::complete(std::vector<StepLine>& lines, double now_s) {
    // The first of a look: that is when it began, however many follow.
    const auto lost = std::find_if(lines.begin(), lines.end(), [](const StepLine& line) { return line.lost; });
    if (lost != lines.end()) lost->values.emplace_back("not_finite", lost->step.value_or(0));
    // Lines that came together share the time since the ones before: without times, or with one of several.
    std::vector<StepLine*> share;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        StepLine& line = lines[i];
        if (!line.step) continue;
        const double at = line.time_s.value_or(now_s);
        if (last_step_ && *line.step < *last_step_) {  // a new attempt counts from a checkpoint again
            last_step_ = last_s_ = std::nullopt;
            share.clear();
        }
        const double last = last_step_.value_or(*line.step);
        const bool together = i + 1 < lines.size() && lines[i + 1].step && *lines[i + 1].step >= *line.step &&
                              lines[i + 1].time_s.value_or(now_s) <= at;
        if (!has_value(line, "step_s")) share.push_back(&line);
        if (together && last_step_) continue;
        const double steps = *line.step - last;
        if (last_step_ && last_s_ && steps > 0 && at > *last_s_)
            for (StepLine* each : share) each->values.emplace_back("step_s", (at - *last_s_) / steps);
        share.clear();
        if (!last_step_ || steps > 0) {
            last_step_ = line.step;
            last_s_ = at;
        }
    }
}

std::optional<StepLine> StepReader::read(const std::string& text) {
    if (source_.kind == StepSource::Kind::heartbeat) return heartbeat(std::string(trim(text)));
    if (trim(text).empty()) return std::nullopt;
    if (source_.kind == StepSource::Kind::output) return source_.pattern ? source_.pattern->match(text) : std::nullopt;
    auto line = parse_step_line(text, limits_);
    if (!line) ++bad_lines_;
    return line;
}

// The lines that the last look at the file found, with when they were written.
std::vector<StepLine> StepReader::take_output(const std::vector<std::string>& texts, double now_s) {
    std::vector<StepLine> lines;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        std::optional<double> when;
        if (source_.clock) when = source_.clock->when(source_.path, tail_.written()[i]);
        if (when) when = std::min(*when, now_s);
        if (counted_ != nullptr) {
            for (StepLine& each : counted_->take(texts[i], when)) lines.push_back(std::move(each));
        } else if (auto line = read(texts[i])) {
            if (!line->time_s) line->time_s = when;
            lines.push_back(std::move(*line));
        }
    }
    complete(lines, now_s);
    return lines;
}

std::vector<StepLine> StepReader::take(const std::vector<std::string>& texts, double now_s) {
    std::vector<StepLine> lines;
    if (counted_ != nullptr) {
        for (const std::string& text : texts)
            for (StepLine& each : counted_->take(text, std::nullopt)) lines.push_back(std::move(each));
        complete(lines, now_s);
        return lines;
    }
    for (const std::string& text : texts)
        if (auto line = read(text)) lines.push_back(std::move(*line));
    complete(lines, now_s);
    return lines;
}

std::vector<StepLine> StepReader::poll(double now_s) {
    if (source_.kind == StepSource::Kind::tracker) {
        std::vector<StepLine> lines = tracker_ == nullptr ? std::vector<StepLine>() : tracker_->poll();
        complete(lines, now_s);
        return lines;
    }
    if (source_.kind == StepSource::Kind::output || source_.kind == StepSource::Kind::counted) {
        if (source_.clock && watched_ == nullptr) watched_ = source_.clock->watch(source_.path);
        return take_output(tail_.next(), now_s);
    }
    if (source_.kind != StepSource::Kind::heartbeat) return take(tail_.next(), now_s);
    std::vector<StepLine> lines = poll_heartbeat(now_s);
    complete(lines, now_s);
    return lines;
}

}  // namespace stoker
