#include "check/ignore_rules.h"

#include <algorithm>

#include "base/text.h"

namespace stoker {

namespace {

bool in_named_class(std::string_view name, char c) {
    const bool small = c >= 'a' && c <= 'z', large = c >= 'A' && c <= 'Z', digit = c >= '0' && c <= '9';
    if (name == "alpha") return small || large;
    if (name == "digit") return digit;
    if (name == "alnum") return small || large || digit;
    if (name == "lower") return small;
    if (name == "upper") return large;
    if (name == "space") return c == ' ' || (c >= '\t' && c <= '\r');
    if (name == "xdigit") return digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (name == "punct") return c > ' ' && c < 127 && !small && !large && !digit;
    return false;
}

// One [...] at pattern[at]; moves `at` behind it. False and at = npos when it does not end: git then matches nothing.
bool class_matches(std::string_view pattern, std::size_t& at, char c) {
    std::size_t i = at + 1;
    bool negated = false, hit = false, first = true;
    if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) negated = true, ++i;
    for (;; first = false) {
        if (i >= pattern.size()) {
            at = std::string_view::npos;
            return false;
        }
        if (pattern[i] == ']' && !first) break;
        if (pattern.substr(i).starts_with("[:")) {
            const std::size_t end = pattern.find(":]", i + 2);
            if (end != std::string_view::npos) {
                hit = hit || in_named_class(pattern.substr(i + 2, end - i - 2), c);
                i = end + 2;
                continue;
            }
        }
        if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
        const char low = pattern[i++];
        char high = low;
        if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
            ++i;
            if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
            high = pattern[i++];
        }
        hit = hit || (low <= c && c <= high);
    }
    at = i + 1;
    return hit != negated;
}

// Within one part of a path. A star is retried one character later when what follows does not fit: linear times linear.
bool part_matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, retry = 0;
    while (t < text.size()) {
        bool fits = false;
        std::size_t next = p;
        if (p < pattern.size()) {
            if (pattern[p] == '*') {
                star = p++;
                retry = t;
                continue;
            }
            if (pattern[p] == '?') {
                fits = true, ++next;
            } else if (pattern[p] == '[') {
                fits = class_matches(pattern, next, text[t]);
                if (next == std::string_view::npos) return false;
            } else if (pattern[p] == '\\' && p + 1 < pattern.size()) {
                fits = pattern[p + 1] == text[t], next += 2;
            } else {
                fits = pattern[p] == text[t], ++next;
            }
        }
        if (fits) {
            p = next, ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1, t = ++retry;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view path) {
    const std::vector<std::string_view> want = split(pattern, '/'), have = split(path, '/');
    // reach[j]: the pattern's parts so far match the first j parts of the path.
    std::vector<char> reach(have.size() + 1), next;
    reach[0] = 1;
    for (std::size_t i = 0; i < want.size(); ++i) {
        next.assign(have.size() + 1, 0);
        if (want[i] == "**") {
            const bool last = i + 1 == want.size() && i > 0;  // "a/**" is what is in a, not a itself
            bool open = false;
            for (std::size_t j = 0; j <= have.size(); ++j) {
                if (open || (!last && reach[j])) next[j] = 1;
                open = open || reach[j];
            }
        } else {
            for (std::size_t j = 0; j < have.size(); ++j)
                if (reach[j] && part_matches(want[i], have[j])) next[j + 1] = 1;
        }
        reach.swap(next);
    }
    return reach[have.size()] != 0;
}

IgnoreFile::IgnoreFile(std::string folder, std::string_view text) : folder_(std::move(folder)) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    for (std::string_view line : split_lines(text)) {
        // Blanks at the end do not count, unless the last one is escaped.
        while (!line.empty() && (line.back() == ' ' || line.back() == '\t') &&
               !(line.size() > 1 && line[line.size() - 2] == '\\'))
            line.remove_suffix(1);
        if (line.empty() || line[0] == '#') continue;
        Pattern pattern;
        if (line[0] == '!') pattern.negated = true, line.remove_prefix(1);
        if (line.ends_with('/')) pattern.folders_only = true, line.remove_suffix(1);
        pattern.anchored = line.find('/') != std::string_view::npos;
        if (line.starts_with('/')) line.remove_prefix(1);
        if (line.empty()) continue;
        pattern.glob = line;
        patterns_.push_back(std::move(pattern));
    }
}

IgnoreFile::Verdict IgnoreFile::judge(std::string_view path, bool is_folder) const {
    if (!folder_.empty()) path.remove_prefix(std::min(path.size(), folder_.size() + 1));
    const std::size_t slash = path.rfind('/');
    const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
    for (auto pattern = patterns_.rbegin(); pattern != patterns_.rend(); ++pattern) {
        if (pattern->folders_only && !is_folder) continue;
        if (glob_matches(pattern->glob, pattern->anchored ? path : name))
            return pattern->negated ? Verdict::kept : Verdict::ignored;
    }
    return Verdict::none;
}

}  // namespace stoker
