#include "observe/gpu/exposition_check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"

namespace stoker {

namespace {

constexpr std::size_t kMostProblems = 200;

struct Family {
    std::string type;
    bool help = false, closed = false, sampled = false;
};
struct Buckets {
    double last_bound = -std::numeric_limits<double>::infinity(), last_count = 0;
    bool infinite = false;
    std::size_t line = 0;
};

bool name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool name_part(char c) {
    return name_start(c) || (c >= '0' && c <= '9');
}

class Checker {
public:
    Checker(std::string_view text, bool openmetrics, bool dcgm) : text_(text), open_(openmetrics), dcgm_(dcgm) {}

    ExpositionReport check() {
        if (text_.empty()) {
            problem(1, 1, "the page is empty");
            return std::move(report_);
        }
        if (text_.back() != '\n') problem(lines(), 1, "the last line does not end with a newline");
        std::size_t number = 0, begin = 0;
        while (begin < text_.size()) {
            std::size_t end = text_.find('\n', begin);
            if (end == std::string_view::npos) end = text_.size();
            line(text_.substr(begin, end - begin), ++number);
            begin = end + 1;
        }
        if (open_ && !ended_) problem(number, 1, "OpenMetrics ends with # EOF");
        for (const auto& entry : buckets_)
            if (!entry.second.infinite) problem(entry.second.line, 1, "a histogram without a bucket le=\"+Inf\"");
        report_.families = families_.size();
        return std::move(report_);
    }

private:
    std::size_t lines() const { return static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n')) + 1; }
    void problem(std::size_t at, std::size_t column, std::string message, bool lint = false) {
        if (report_.problems.size() < kMostProblems) report_.problems.push_back({at, column, std::move(message), lint});
    }

    void line(std::string_view text, std::size_t number) {
        if (ended_) return problem(number, 1, "something stands behind # EOF");
        if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos)
            return problem(number, bad + 1, "not UTF-8");
        if (text.find('\r') != std::string_view::npos) return problem(number, text.find('\r') + 1, "a carriage return");
        if (text.empty()) {
            if (open_) problem(number, 1, "an empty line");
            return;
        }
        if (text == "# EOF") {
            if (open_) ended_ = true;
            return;
        }
        if (text[0] == '#') return comment(text, number);
        sample(text, number);
    }

    Family& enter(const std::string& name, std::size_t number) {
        if (!current_.empty() && current_ != name) families_[current_].closed = true;
        Family& family = families_[name];
        if (family.closed && current_ != name)
            problem(number, 1, "the family " + name + " is torn apart: others stand between its lines");
        family.closed = false;
        current_ = name;
        return family;
    }

    void comment(std::string_view text, std::size_t number) {
        const bool help = text.starts_with("# HELP "), type = text.starts_with("# TYPE "),
                   unit = open_ && text.starts_with("# UNIT ");
        if (!help && !type && !unit) {
            if (open_) problem(number, 1, "OpenMetrics has no comments beside HELP, TYPE, UNIT and EOF");
            return;
        }
        const std::string_view rest = text.substr(7);
        const std::size_t space = rest.find(' ');
        const std::string name(rest.substr(0, space));
        if (!good_name(name)) return problem(number, 8, "no name of a metric: " + printable(name, 60));
        Family& family = enter(name, number);
        if (help) {
            if (family.help) problem(number, 1, "a second HELP of " + name);
            family.help = true;
            if (family.sampled) problem(number, 1, "HELP behind samples of " + name);
        } else if (type) {
            const std::string word(space == std::string_view::npos ? "" : trim(rest.substr(space + 1)));
            constexpr std::array<std::string_view, 9> kTypes = {
                "counter", "gauge", "histogram", "summary", "untyped", "unknown", "stateset", "info", "gaugehistogram"};
            if (std::find(kTypes.begin(), kTypes.end(), word) == kTypes.end() ||
                (!open_ && (word == "unknown" || word == "stateset" || word == "info" || word == "gaugehistogram")) ||
                (open_ && word == "untyped"))
                problem(number, 8 + name.size() + 1, "no type of a metric: " + printable(word, 30));
            if (!family.type.empty()) problem(number, 1, "a second TYPE of " + name);
            if (family.sampled) problem(number, 1, "TYPE behind samples of " + name);
            family.type = word;
            lint_name(name, word, number);
        }
    }

    bool allowed(std::string_view name) const {
        return dcgm_ && (name.starts_with("DCGM_FI_") || name.starts_with("DCGM_EXP_"));
    }

    void lint_name(const std::string& name, std::string_view type, std::size_t number) {
        if (allowed(name)) return;
        if (type == "counter" && !open_ && !name.ends_with("_total"))
            problem(number, 8, "a counter's name ends with _total", true);
        if (type != "counter" && name.ends_with("_total"))
            problem(number, 8, "only a counter's name ends with _total", true);
        for (std::size_t i = 1; i < name.size(); ++i)
            if (name[i] >= 'A' && name[i] <= 'Z' && name[i - 1] >= 'a' && name[i - 1] <= 'z')
                return problem(number, 8, "a name in camelCase: " + name, true);
        constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kUnits = {{{"milliseconds", "seconds"},
                                                                                           {"microseconds", "seconds"},
                                                                                           {"nanoseconds", "seconds"},
                                                                                           {"minutes", "seconds"},
                                                                                           {"hours", "seconds"},
                                                                                           {"kilobytes", "bytes"},
                                                                                           {"megabytes", "bytes"},
                                                                                           {"gigabytes", "bytes"},
                                                                                           {"percent", "ratio"},
                                                                                           {"megahertz", "hertz"},
                                                                                           {"milliwatts", "watts"},
                                                                                           {"fahrenheit", "celsius"}}};
        for (const std::string_view word : split(name, '_'))
            for (const auto& unit : kUnits)
                if (word == unit.first)
                    problem(number, 8, "use " + std::string(unit.second) + " in place of " + std::string(word), true);
    }

    static bool good_name(std::string_view name) {
        return !name.empty() && (name_start(name[0]) || name[0] == ':') &&
               std::all_of(name.begin(), name.end(), [](char c) { return name_part(c) || c == ':'; });
    }

    // The family that a sample belongs to, by the suffixes of its type.
    std::string family_of(const std::string& name) const {
        if (const auto found = families_.find(name);
            found != families_.end() && !(open_ && found->second.type == "counter"))
            return name;
        for (const std::string_view suffix : {"_total", "_created", "_bucket", "_count", "_sum", "_info"}) {
            if (!name.ends_with(suffix)) continue;
            const std::string base = name.substr(0, name.size() - suffix.size());
            const auto found = families_.find(base);
            if (found == families_.end()) continue;
            const std::string& type = found->second.type;
            const bool counted = type == "histogram" || type == "summary" || type == "gaugehistogram";
            if ((open_ && type == "counter" && (suffix == "_total" || suffix == "_created")) ||
                (open_ && type == "info" && suffix == "_info") || (counted && suffix != "_total" && suffix != "_info"))
                return base;
        }
        return name;
    }

    void sample(std::string_view text, std::size_t number) {
        std::size_t at = 0;
        while (at < text.size() && (name_part(text[at]) || text[at] == ':')) ++at;
        const std::string name(text.substr(0, at));
        if (!good_name(name)) return problem(number, 1, "no name of a metric: " + printable(text, 60));
        std::map<std::string, std::string> labels;
        if (at < text.size() && text[at] == '{' && !read_labels(text, at, number, labels)) return;
        if (at >= text.size() || text[at] != ' ') return problem(number, at + 1, "a blank and a value are missing");
        while (at < text.size() && text[at] == ' ') ++at;
        const std::size_t end = std::min(text.find(' ', at), text.size());
        const auto value = number_of(text.substr(at, end - at));
        if (!value) return problem(number, at + 1, "no number: " + printable(text.substr(at, end - at), 40));
        if (std::isnan(*value)) problem(number, at + 1, "NaN: a value that is not known is left out");
        if (end < text.size()) {
            const std::string_view stamp = trim(text.substr(end));
            if (!open_ || !stamp.starts_with("#"))
                if (!number_of(stamp)) return problem(number, end + 2, "no time stamp: " + printable(stamp, 40));
        }
        const std::string of = family_of(name);
        Family& family = enter(of, number);
        if (family.type.empty()) problem(number, 1, "no TYPE of " + of, true), family.type = "untyped";
        if (!family.help) problem(number, 1, "no HELP of " + of, true), family.help = true;
        family.sampled = true;
        ++report_.samples;
        if (open_ && family.type == "counter" && !name.ends_with("_total") && !name.ends_with("_created"))
            problem(number, 1, "a sample of a counter ends with _total in OpenMetrics");
        if (family.type == "counter" && *value < 0) problem(number, at + 1, "a counter below zero");
        std::string key = name;
        for (const auto& label : labels) key += '\x01' + label.first + '\x02' + label.second;
        if (!seen_.insert(key).second) problem(number, 1, "the same sample twice");
        if (family.type == "histogram" && name.ends_with("_bucket")) bucket(labels, of, *value, number);
    }

    void bucket(const std::map<std::string, std::string>& labels, const std::string& family, double count,
                std::size_t number) {
        const auto bound_text = labels.find("le");
        if (bound_text == labels.end()) return problem(number, 1, "a bucket without le");
        const auto bound = number_of(bound_text->second);
        if (!bound) return problem(number, 1, "le is no number: " + printable(bound_text->second, 30));
        std::string key = family;
        for (const auto& label : labels)
            if (label.first != "le") key += '\x01' + label.first + '\x02' + label.second;
        Buckets& of = buckets_[key];
        of.line = number;
        if (*bound <= of.last_bound) problem(number, 1, "buckets are not in the order of their bounds");
        if (count < of.last_count) problem(number, 1, "a bucket counts fewer than the one before it");
        of.last_bound = *bound, of.last_count = count;
        of.infinite = of.infinite || std::isinf(*bound);
    }

    bool read_labels(std::string_view text, std::size_t& at, std::size_t number,
                     std::map<std::string, std::string>& labels) {
        ++at;
        while (at < text.size() && text[at] != '}') {
            const std::size_t begin = at;
            if (!name_start(text[at])) return problem(number, at + 1, "no name of a label"), false;
            while (at < text.size() && name_part(text[at])) ++at;
            const std::string name(text.substr(begin, at - begin));
            if (at + 1 >= text.size() || text[at] != '=' || text[at + 1] != '"')
                return problem(number, at + 1, "=\" is missing behind " + name), false;
            at += 2;
            std::string value;
            for (; at < text.size() && text[at] != '"'; ++at) {
                if (text[at] != '\\') {
                    value += text[at];
                    continue;
                }
                if (++at >= text.size() || (text[at] != '\\' && text[at] != '"' && text[at] != 'n'))
                    return problem(number, at, "only \\\\, \\\" and \\n are escapes"), false;
                value += text[at] == 'n' ? '\n' : text[at];
            }
            if (at >= text.size())
                return problem(number, text.size(), "the quote of " + name + " is not closed"), false;
            ++at;
            if (!labels.emplace(name, value).second) problem(number, begin + 1, "the label " + name + " twice");
            bool camel = false;
            for (std::size_t i = 1; i < name.size(); ++i)
                camel = camel || (name[i] >= 'A' && name[i] <= 'Z' && name[i - 1] >= 'a' && name[i - 1] <= 'z');
            if (camel && !(dcgm_ && name == "modelName"))
                problem(number, begin + 1, "a label in camelCase: " + name, true);
            if (at < text.size() && text[at] == ',') {
                ++at;
                if (open_ && at < text.size() && text[at] == '}') problem(number, at, "a comma at the end of labels");
                continue;
            }
            if (at >= text.size() || text[at] != '}') return problem(number, at + 1, "a comma or } is missing"), false;
        }
        if (at >= text.size()) return problem(number, text.size(), "} is missing"), false;
        ++at;
        return true;
    }

    static std::optional<double> number_of(std::string_view text) {
        if (text == "+Inf" || text == "Inf") return std::numeric_limits<double>::infinity();
        if (text == "-Inf") return -std::numeric_limits<double>::infinity();
        if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
        if (text.starts_with('+')) text.remove_prefix(1);
        if (text.empty() || !(text[0] == '-' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9')))
            return std::nullopt;
        double value = 0;
        const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
        if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
        return value;
    }

    std::string_view text_;
    bool open_, dcgm_, ended_ = false;
    ExpositionReport report_;
    std::map<std::string, Family> families_;
    std::map<std::string, Buckets> buckets_;
    std::set<std::string> seen_;
    std::string current_;
};

}  // namespace

bool ExpositionReport::broken() const {
    return std::any_of(problems.begin(), problems.end(), [](const ExpositionProblem& p) { return !p.lint; });
}

ExpositionReport check_exposition(std::string_view text, bool openmetrics, bool dcgm) {
    return Checker(text, openmetrics, dcgm).check();
}

}  // namespace stoker
