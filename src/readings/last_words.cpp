#include "readings/last_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/enum_words.h"
#include "base/result.h"
#include "base/text.h"
#include "base/tsv.h"

namespace stoker {
namespace {

constexpr std::size_t kMostLine = 300;     // characters
constexpr std::size_t kNearTheEnd = 60;    // lines: what is said before them need not be why it ended
constexpr std::size_t kMostLines = 5'000;  // looked at

struct KnownWords {
    std::vector<std::string_view> parts;  // that follow each other in a line
    std::string_view name, what, fix;
    HealthLayer layer = HealthLayer::model;
    bool consequence = false;
};

const std::vector<KnownWords>& known_words() {
    static const std::vector<KnownWords> list = [] {
        std::vector<KnownWords> found;
        const auto table = Tsv::read(embedded_bytes("readings/last_words.tsv"), "readings/last_words.tsv");
        CHECK(table.ok() && table->header().size() == 8);  // our own data
        for (std::size_t row = 0; row < table->rows(); ++row) {
            KnownWords words{.parts = {},
                             .name = table->at(row, 0),
                             .what = table->at(row, 4),
                             .fix = table->at(row, 5) == "-" ? "" : table->at(row, 5),
                             .layer = enum_named<HealthLayer>(table->at(row, 2)).value_or(HealthLayer::model),
                             .consequence = table->at(row, 1) == "consequence"};
            std::string_view rest = table->at(row, 3);
            for (std::size_t at = rest.find(".."); at != std::string_view::npos; at = rest.find("..")) {
                words.parts.push_back(rest.substr(0, at));
                rest.remove_prefix(at + 2);
            }
            words.parts.push_back(rest);
            found.push_back(std::move(words));
        }
        return found;
    }();
    return list;
}

const KnownWords* known_in(std::string_view line) {
    for (const KnownWords& words : known_words()) {
        std::size_t at = 0;
        for (const std::string_view part : words.parts) {
            at = line.find(part, at);
            if (at == std::string_view::npos) break;
            at += part.size();
        }
        if (at != std::string_view::npos) return &words;
    }
    return nullptr;
}

// Colours, and what a bar wrote over.
std::string plain(std::string_view line) {
    if (const std::size_t over = line.find_last_of('\r'); over != std::string_view::npos && over + 1 < line.size())
        line.remove_prefix(over + 1);
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] != '\x1b') {
            if (line[i] != '\r') out += line[i];
            continue;
        }
        if (i + 1 < line.size() && line[i + 1] == '[')
            for (i += 2; i < line.size() && (line[i] < '@' || line[i] > '~');) ++i;
    }
    return out;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// "[rank3]: ", "[default3]:", "(EngineCore pid=12) ", "ERROR 06-12 07:16:23 [core.py:586] ", "3: " (srun -l).
std::string_view without_prefix(std::string_view line) {
    for (int round = 0; round < 4; ++round) {
        const std::size_t before = line.size();
        for (const std::string_view head : {"[rank", "[default"})
            if (line.starts_with(head)) {
                const std::size_t close = line.find("]:");
                if (close != std::string_view::npos && close > head.size() && close < head.size() + 7 &&
                    std::all_of(line.begin() + static_cast<std::ptrdiff_t>(head.size()),
                                line.begin() + static_cast<std::ptrdiff_t>(close), is_digit)) {
                    line.remove_prefix(close + 2);
                    if (line.starts_with(" ")) line.remove_prefix(1);
                }
            }
        if (line.starts_with("("))
            if (const std::size_t close = line.find(") ");
                close != std::string_view::npos && line.substr(0, close).find("pid=") != std::string_view::npos)
                line.remove_prefix(close + 2);
        for (const std::string_view level : {"ERROR ", "CRITICAL "})
            if (line.starts_with(level) && line.size() > level.size() && is_digit(line[level.size()]))
                if (const std::size_t close = line.find("] "); close < 80) line.remove_prefix(close + 2);
        std::size_t digits = 0;
        while (digits < line.size() && digits < 6 && is_digit(line[digits])) ++digits;
        if (digits > 0 && line.substr(digits).starts_with(": ")) line.remove_prefix(digits + 2);
        if (line.size() == before) break;
    }
    return line;
}

struct Said {
    std::size_t at = 0;  // which line
    std::string_view line;
    std::string where;
    const KnownWords* known = nullptr;
    bool from_before = false;  // it was raised because of the one before it
};

// "  File "/work/train.py", line 88, in step" -> "train.py:88, in step"; empty: of a library, or no such line.
std::string own_frame(std::string_view line) {
    line = trim(line);
    if (!line.starts_with("File \"")) return "";
    line.remove_prefix(6);
    const std::size_t quote = line.find('"');
    if (quote == std::string_view::npos) return "";
    std::string_view path = line.substr(0, quote), rest = line.substr(quote + 1);
    for (const std::string_view library : {"site-packages/", "dist-packages/", "/lib/python", "<frozen"})
        if (path.find(library) != std::string_view::npos) return "";
    if (const std::size_t slash = path.find_last_of('/'); slash != std::string_view::npos)
        path.remove_prefix(slash + 1);
    if (!rest.starts_with(", line ")) return "";
    rest.remove_prefix(7);
    std::size_t digits = 0;
    while (digits < rest.size() && is_digit(rest[digits])) ++digits;
    const std::string_view number = rest.substr(0, digits);
    rest.remove_prefix(digits);
    return fmt::format("{}:{}{}", path, number, rest.starts_with(", in <module>") ? "" : rest);
}

// Each exception whose traceback was printed, in the order of the text.
std::vector<Said> exceptions_in(const std::vector<std::string_view>& lines) {
    std::vector<Said> found;
    bool within = false, chained = false;
    std::string where;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string_view line = lines[i];
        if (line.find("was the direct cause of the following exception") != std::string_view::npos ||
            line.find("During handling of the above exception") != std::string_view::npos)
            chained = true;
        if (line.find("Traceback (most recent call last)") != std::string_view::npos) {
            within = true;
            where.clear();
            continue;
        }
        if (!within) continue;
        if (line.empty() || line.front() == ' ' || line.front() == '\t') {
            if (std::string frame = own_frame(line); !frame.empty()) where = std::move(frame);
            continue;
        }
        found.push_back({.at = i, .line = line, .where = where, .known = known_in(line), .from_before = chained});
        within = chained = false;
    }
    return found;
}

bool sounds_like_an_error(std::string_view line) {
    const std::string text = lower(line);
    constexpr std::array<std::string_view, 14> kWords = {"error",      "fatal",   "failed",    "cannot", "can't",
                                                         "abort",      "what():", "not found", "denied", "no such",
                                                         "terminated", "killed",  "panic",     "invalid"};
    return std::any_of(kWords.begin(), kWords.end(),
                       [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

LastWords words_of(const Said& said, const std::vector<std::string_view>& lines) {
    std::string text(trim(said.line));
    // "Error(s) in loading state_dict for Net:" goes on in the next line.
    if (text.ends_with(":") && said.at + 1 < lines.size() && !trim(lines[said.at + 1]).empty())
        text += " " + std::string(trim(lines[said.at + 1]));
    LastWords words{.line = printable(text, kMostLine), .number = said.at + 1, .where = said.where};
    if (said.known != nullptr) {
        words.name = said.known->name;
        words.what = said.known->what;
        words.fix = said.known->fix;
        words.layer = said.known->layer;
        words.consequence = said.known->consequence;
    }
    return words;
}

std::optional<LastWords> words_in(std::vector<std::string> texts) {
    while (!texts.empty() && trim(texts.back()).empty()) texts.pop_back();
    if (texts.empty()) return std::nullopt;
    std::vector<std::string_view> lines;
    lines.reserve(texts.size());
    for (const std::string& text : texts) lines.push_back(without_prefix(text));

    const std::vector<Said> raised = exceptions_in(lines);
    const auto is_root = [](const Said& said) { return said.known == nullptr || !said.known->consequence; };
    auto last = std::find_if(raised.rbegin(), raised.rend(), is_root);
    // The last line near the end that somebody wrote down, and that no traceback has.
    std::optional<Said> known, of_others;
    const std::size_t from = lines.size() > kNearTheEnd ? lines.size() - kNearTheEnd : 0;
    for (std::size_t i = lines.size(); i-- > from && !known;) {
        const KnownWords* words = known_in(lines[i]);
        if (words == nullptr) continue;
        Said said{.at = i, .line = lines[i], .where = "", .known = words};
        if (!words->consequence)
            known = said;
        else if (!of_others)
            of_others = said;
    }
    if (last != raised.rend()) {
        // Of a chain the one that is known.
        for (auto each = last; each->known == nullptr && each->from_before && std::next(each) != raised.rend();) {
            ++each;
            if (each->known != nullptr && !each->known->consequence) return words_of(*each, lines);
        }
        if (last->known == nullptr && known && known->at > last->at) return words_of(*known, lines);
        return words_of(*last, lines);
    }
    if (known) return words_of(*known, lines);
    if (!raised.empty()) return words_of(raised.back(), lines);
    if (of_others) return words_of(*of_others, lines);
    for (std::size_t i = lines.size(); i-- > from;)
        if (sounds_like_an_error(lines[i])) return words_of({.at = i, .line = lines[i], .where = ""}, lines);
    LastWords words = words_of({.at = lines.size() - 1, .line = lines.back(), .where = ""}, lines);
    words.told = false;
    return words;
}

}  // namespace

std::optional<LastWords> last_words(std::string_view tail) {
    std::vector<std::string> texts;
    std::vector<std::string_view> all = split_lines(tail);
    const std::size_t before = all.size() > kMostLines ? all.size() - kMostLines : 0;
    for (std::size_t i = before; i < all.size(); ++i) texts.push_back(plain(all[i]));
    auto words = words_in(std::move(texts));
    if (words) words->number += before;
    return words;
}

}  // namespace stoker
