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

// A finite number at the front of `text`; its length, or 0.
std::size_t number_at(std::string_view text, double& value) {
    const std::size_t sign = !text.empty() && text[0] == '+' ? 1 : 0;
    const auto [end, code] = std::from_chars(text.data() + sign, text.data() + text.size(), value);
    if (code != std::errc() || !std::isfinite(value)) return 0;
    return static_cast<std::size_t>(end - text.data());
}

void put(StepLine& line, const std::string& name, double value) {
    if (name == "step")
        line.step = value;
    else if (name == "time")
        line.time_s = value;
    else if (name == "rank" && value >= 0 && value < 1e6 && value == std::floor(value))
        line.rank = static_cast<int>(value);
    else
        line.values.emplace_back(name, value);
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

std::vector<std::string> TailReader::next() {
    std::vector<std::string> lines;
    struct stat status {};
    more_ = false;
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
    offset_ += static_cast<std::int64_t>(text.size());
    more_ = offset_ < status.st_size;
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        const std::string_view piece = rest.substr(0, end);
        if (!discarding_ && part_.size() + piece.size() > limits_.max_line) {
            ++dropped_lines_;
            discarding_ = true;
            part_.clear();
        }
        if (!discarding_) part_ += piece;
        if (end == std::string_view::npos) break;
        if (!discarding_) lines.push_back(std::move(part_));
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
    const auto document = Document::parse_json(
        line, "steps",
        {.max_bytes = limits.max_line, .max_nodes = limits.max_values * 8, .max_depth = 4, .max_aliases = 0});
    if (!document || !document->root().is_mapping()) return std::nullopt;
    StepLine out;
    for (const Member& member : document->root().members) {
        const Node& value = *member.value;
        if (value.kind != NodeKind::number || !std::isfinite(value.number) || !is_name(member.key)) continue;
        if (out.values.size() < limits.max_values) put(out, member.key, value.number);
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
                if (length == 0) return std::nullopt;
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

StepReader::StepReader(StepSource source, TailLimits limits)
    : source_(std::move(source)), limits_(limits), tail_(source_.path, limits) {}

std::vector<StepLine> StepReader::poll_heartbeat(double now_s) {
    struct stat status {};
    const UniqueFd fd = open_plain(source_.path, status);
    if (!fd) return {};
    const std::string text(trim(read_at(fd.get(), kMostHeartbeat, 0)));
    if (text.empty() || text == last_heartbeat_) return {};
    last_heartbeat_ = text;
    StepLine line;
    double step = 0;
    if (text.front() == '{') {
        auto read = parse_step_line(text, limits_);
        if (!read || !read->step) {
            ++bad_lines_;
            return {};
        }
        line = std::move(*read);
    } else if (number_at(text, step) == text.size()) {
        line.step = step;
    } else {
        ++bad_lines_;
        return {};
    }
    // When the file was written is nearer to the truth than when we looked.
    const double written =
        static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
    if (!line.time_s && std::abs(written - now_s) < 3600) line.time_s = written;
    return {std::move(line)};
}

void StepReader::add_step_time(std::vector<StepLine>& lines, double now_s) {
    // Lines that came together, without times, share the time since the ones before.
    for (std::size_t i = 0; i < lines.size(); ++i) {
        StepLine& line = lines[i];
        if (!line.step) continue;
        const double at = line.time_s.value_or(now_s);
        const double last = last_step_ ? *last_step_ : *line.step;
        const bool together = !line.time_s && i + 1 < lines.size() && lines[i + 1].step && !lines[i + 1].time_s;
        if (*line.step < last) last_step_ = last_s_ = std::nullopt;  // a new attempt counts from a checkpoint again
        if (together && last_step_) continue;
        const double steps = *line.step - last;
        if (last_step_ && last_s_ && steps > 0 && at > *last_s_ && !has_value(line, "step_s"))
            line.values.emplace_back("step_s", (at - *last_s_) / steps);
        if (!last_step_ || steps > 0) {
            last_step_ = line.step;
            last_s_ = at;
        }
    }
}

std::vector<StepLine> StepReader::poll(double now_s) {
    std::vector<StepLine> lines;
    if (source_.kind == StepSource::Kind::heartbeat) {
        lines = poll_heartbeat(now_s);
    } else {
        for (const std::string& text : tail_.next()) {
            if (trim(text).empty()) continue;
            std::optional<StepLine> line;
            if (source_.kind == StepSource::Kind::lines) {
                line = parse_step_line(text, limits_);
                if (!line) ++bad_lines_;
            } else if (source_.pattern) {
                line = source_.pattern->match(text);
            }
            if (line) lines.push_back(std::move(*line));
        }
    }
    add_step_time(lines, now_s);
    return lines;
}

}  // namespace stoker
