#include "observe/output_steps.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::size_t kMostKinds = 32, kMostEarly = 64, kMostLine = 4000, kMostWithoutKind = 20'000, kMostKind = 60;
constexpr int kLeastRises = 3, kFarAhead = 4;

constexpr std::array<std::string_view, 24> kStepWords = {
    "step",           "steps",     "global_step", "globalstep", "train_step",  "training_step",
    "optimizer_step", "iteration", "iterations",  "iter",       "iters",       "it",
    "iter_num",       "num_iter",  "update",      "updates",    "num_updates", "batch",
    "batches",        "minibatch", "batch_idx",   "batch_id",   "i_batch",     "train_batch"};
constexpr std::array<std::string_view, 4> kEpochWords = {"epoch", "epochs", "ep", "epoch_num"};
// Not "test": it stands in names of programs and data sets.
constexpr std::array<std::string_view, 8> kOtherWords = {"eval",       "evaluating", "evaluation", "evaluate",
                                                         "validation", "validating", "val",        "valid"};

constexpr std::array<std::string_view, 4> kNoNumbers = {"nan", "inf", "infinity", "none"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::size_t past_blanks(std::string_view text, std::size_t at) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
    return at;
}

// A whole number at `at`: no part of a word, a decimal, a time or a date. Where it ends; nothing: none.
std::optional<std::size_t> whole_number(std::string_view text, std::size_t at, double& value) {
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == at || end - at > 12) return std::nullopt;
    const auto next = [&](std::size_t i) { return i < text.size() ? text[i] : ' '; };
    if (is_letter(next(end)) || next(end) == '%') return std::nullopt;
    if ((next(end) == '.' || next(end) == ',' || next(end) == ':' || next(end) == '-') && is_digit(next(end + 1)))
        return std::nullopt;
    value = 0;
    for (std::size_t i = at; i < end; ++i) value = value * 10 + (text[i] - '0');
    return end;
}

struct Fraction {
    double number = 0, of = 0;
    std::size_t at = 0, end = 0;
};

// "12/100", "12 / 100", "12 of 100" at `at`; a date or a path is none.
std::optional<Fraction> fraction_at(std::string_view text, std::size_t at) {
    Fraction found{.at = at};
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == at || end - at > 12 || (at > 0 && (text[at - 1] == '/' || text[at - 1] == '.' || text[at - 1] == '-')))
        return std::nullopt;
    for (std::size_t i = at; i < end; ++i) found.number = found.number * 10 + (text[i] - '0');
    std::size_t after = past_blanks(text, end);
    if (text.substr(after).starts_with("/"))
        after = past_blanks(text, after + 1);
    else if (text.substr(after).starts_with("of ") && after > end)
        after = past_blanks(text, after + 3);
    else
        return std::nullopt;
    const auto whole = whole_number(text, after, found.of);
    if (!whole || !(found.of >= 1) || found.number > found.of || text.substr(*whole).starts_with("/"))
        return std::nullopt;
    found.end = *whole;
    return found;
}

struct Word {
    std::size_t at = 0, end = 0;
    std::string text;  // in small letters
};

std::vector<Word> words_of(std::string_view line) {
    std::vector<Word> words;
    for (std::size_t i = 0; i < line.size();) {
        if (!is_letter(line[i])) {
            ++i;
            continue;
        }
        const std::size_t from = i;
        while (i < line.size() && is_letter(line[i])) ++i;
        // "4it" and "2d" are no words that count.
        if (from == 0 || !is_digit(line[from - 1]))
            words.push_back({.at = from, .end = i, .text = lower(line.substr(from, i - from))});
    }
    return words;
}

// What may stand between a word and its number.
std::size_t past_separators(std::string_view line, std::size_t at) {
    constexpr std::size_t kMost = 12;
    const std::size_t from = at;
    while (at < line.size() && at - from < kMost &&
           std::string_view(" \t:=#'\"[(>-").find(line[at]) != std::string_view::npos)
        ++at;
    return at;
}

void add_loss(std::string_view line, const std::vector<Word>& words, StepLine& out) {
    for (const Word& word : words) {
        if (!names_loss(word.text)) continue;
        const std::size_t at = past_separators(line, word.end);
        double value = 0;
        // "loss-scale" and "loss 3d" tell none.
        const std::size_t minus = at > 0 && line[at - 1] == '-' && at - 1 > word.end ? 1 : 0;
        if (number_at(line.substr(at - minus), value) == 0) continue;
        if (std::isfinite(value))
            out.values.emplace_back("loss", value);
        else
            out.lost = true;
        return;
    }
}

bool has_loss(const StepLine& line) {
    return line.lost || !line.values.empty();
}

std::string letters_of(std::string_view text, std::size_t most) {
    std::string out;
    for (const char c : text)
        if (is_letter(c) && out.size() < most) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

// "12/100 [00:03<00:20, 4.1it/s]" of tqdm, "12it [00:03, 4.1it/s]", "12/100 [=====>....]" of Keras, and of rich
// "━━━━ 12/100 0:00:03".
std::optional<CountedLine> read_bar(std::string_view line) {
    const auto bar = [&](double number, std::optional<double> of, std::string_view before) {
        const std::size_t percent = before.find('%');
        CountedLine found{.unit = CountedUnit::bar, .kind = "bar ", .number = number, .of = of, .line = {}};
        found.kind += letters_of(before.substr(0, percent == std::string_view::npos ? before.size() : percent), 40);
        if (of) found.kind += "/" + std::to_string(static_cast<long long>(*of));
        return found;
    };
    const auto clock = [&](std::size_t at) {  // "[00:"
        return at + 2 < line.size() && line[at] == '[' && is_digit(line[at + 1]) &&
               (line.substr(at + 2).starts_with(":") ||
                (is_digit(line[at + 2]) && line.substr(at + 3).starts_with(":")));
    };
    std::optional<CountedLine> drawn;
    const bool rich = line.find("\xe2\x94\x81") != std::string_view::npos;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (!is_digit(line[i]) || (i > 0 && (is_digit(line[i - 1]) || is_letter(line[i - 1])))) continue;
        if (const auto part = fraction_at(line, i)) {
            const std::size_t after = past_blanks(line, part->end);
            const bool keras = after + 1 < line.size() && line[after] == '[' &&
                               std::string_view("=>.").find(line[after + 1]) != std::string_view::npos;
            if (clock(after) || (keras && past_blanks(line, 0) == i))
                return bar(part->number, part->of, line.substr(0, i));
            if (rich) drawn = bar(part->number, part->of, line.substr(0, i));
            i = part->end;
            continue;
        }
        std::size_t end = i;
        double number = 0;
        while (end < line.size() && is_digit(line[end])) number = number * 10 + (line[end++] - '0');
        if (end - i <= 12 && line.substr(end).starts_with("it [") && clock(end + 3))
            return bar(number, std::nullopt, line.substr(0, i));
        i = end;
    }
    return drawn;
}

std::optional<CountedLine> read_json(std::string_view line) {
    auto read = parse_step_line(line);
    if (!read) return std::nullopt;
    CountedLine found{.kind = "json", .line = {}};
    found.line.lost = read->lost;
    for (const auto& [name, value] : read->values)
        if (names_loss(lower(name)) && found.line.values.empty()) found.line.values.emplace_back("loss", value);
    const auto whole = [](double value) { return value >= 0 && value == std::floor(value) && value < 1e12; };
    std::optional<double> number = read->step;
    for (const std::string_view word : kStepWords)
        for (const auto& [name, value] : read->values)
            if (!number && lower(name) == word && whole(value)) number = value;
    if (number) {
        found.number = *number;
        return found;
    }
    for (const auto& [name, value] : read->values)
        if (is_one_of(kEpochWords, lower(name)) && whole(value)) {
            found.unit = CountedUnit::epoch;
            found.number = value;
            return found;
        }
    if (!has_loss(found.line)) return std::nullopt;
    found.unit = CountedUnit::report;
    return found;
}

}  // namespace

std::optional<CountedLine> read_counted_line(std::string_view line) {
    line = line.substr(0, kMostLine);
    const std::size_t begin = past_blanks(line, 0);
    if (begin < line.size() && line[begin] == '{')
        if (auto found = read_json(line.substr(begin))) return found;
    const std::vector<Word> words = words_of(line);
    const Word* other = nullptr;
    for (const Word& word : words)
        if (other == nullptr && is_one_of(kOtherWords, word.text)) other = &word;
    CountedLine found;
    if (auto bar = read_bar(line)) {
        if (other != nullptr && line.substr(0, other->at).find('%') == std::string_view::npos &&
            line.substr(0, other->at).find('/') == std::string_view::npos)
            return std::nullopt;
        add_loss(line, words, bar->line);
        return bar;
    }
    add_loss(line, words, found.line);
    const Word* epoch = nullptr;
    for (const Word& word : words) {
        const bool step = is_one_of(kStepWords, word.text);
        if (!step && !is_one_of(kEpochWords, word.text)) continue;
        const std::size_t at = past_separators(line, word.end);
        double number = 0;
        const auto part = fraction_at(line, at);
        const auto whole = part ? std::optional(part->end) : whole_number(line, at, number);
        if (!whole) continue;
        if (part) number = part->number;
        if (!step) {
            if (epoch == nullptr) {
                epoch = &word;
                found.number = number;
                found.of = part ? std::optional(part->of) : std::nullopt;
            }
            continue;
        }
        if (other != nullptr && other->at < word.at) return std::nullopt;
        found.unit = CountedUnit::step;
        found.kind = word.text;
        found.number = number;
        found.of = part ? std::optional(part->of) : std::nullopt;
        return found;
    }
    if (other != nullptr && (epoch == nullptr || other->at < epoch->at)) return std::nullopt;
    // "Epoch: [0][ 10/5005]", "Epoch 1 | 10/100 | loss 2.3", "Train Epoch: 1 [640/60000 (1%)]".
    if (epoch != nullptr) {
        const std::size_t from = past_separators(line, epoch->end);
        std::size_t i = from;
        if (const auto own = fraction_at(line, from))
            i = own->end;
        else
            while (i < line.size() && is_digit(line[i])) ++i;
        for (; i < line.size(); ++i) {
            if (!is_digit(line[i]) || is_digit(line[i - 1]) || is_letter(line[i - 1])) continue;
            const auto part = fraction_at(line, i);
            if (!part) continue;
            const std::size_t after = past_blanks(line, part->end);
            found.number = part->number;
            found.of = part->of;
            // Samples, of which a step has many: its lines are what can be counted.
            const bool samples = line.substr(after).starts_with("(");
            found.unit = samples ? CountedUnit::report : CountedUnit::step;
            found.kind = samples ? "samples of an epoch" : "part of an epoch";
            return found;
        }
        found.unit = CountedUnit::epoch;
        found.kind = epoch->text;
        return found;
    }
    if (!has_loss(found.line)) return std::nullopt;
    found.unit = CountedUnit::report;
    found.kind = "report";
    // Without what stands for a number: a loss that becomes nan is told by the same line.
    for (const Word& word : words)
        if (found.kind.size() < kMostKind && !is_one_of(kNoNumbers, word.text))
            found.kind += " " + word.text.substr(0, kMostKind);
    return found;
}

// A step says more than an epoch, and both than a report.
bool OutputSteps::better(const Kind& one, const Kind& other) const {
    const auto weight = [](CountedUnit unit) {
        return unit == CountedUnit::step || unit == CountedUnit::bar ? 0 : unit == CountedUnit::report ? 1 : 2;
    };
    const int a = weight(one.unit), b = weight(other.unit);
    return a != b ? a < b : one.rises > kFarAhead * other.rises;
}

std::vector<StepLine> OutputSteps::take(std::string_view text, std::optional<double> time_s) {
    // Much was written and nothing counts: it is not looked at any longer.
    if (chosen_.empty() && lines_ > kMostWithoutKind) return {};
    ++lines_;
    auto counted = read_counted_line(text);
    if (!counted) return {};
    auto found = kinds_.find(counted->kind);
    if (found == kinds_.end()) {
        if (kinds_.size() >= kMostKinds) return {};
        found = kinds_.emplace(counted->kind, Kind{.unit = counted->unit, .last = {}, .early = {}}).first;
    }
    Kind& kind = found->second;
    double number = counted->unit == CountedUnit::report ? kind.last.value_or(0) + 1 : counted->number;
    if (kind.last && number == *kind.last) return {};     // a bar is drawn again
    const bool again = kind.last && number < *kind.last;  // the next epoch
    if (again) kind.offset += std::max(kind.of, *kind.last);
    kind.rises += kind.last && (!again || kind.of > 0) ? 1 : 0;
    kind.last = number;
    kind.of = counted->of.value_or(0);
    StepLine line = std::move(counted->line);
    line.step = number + kind.offset;
    line.time_s = time_s;
    line.values.emplace_back("inferred", static_cast<double>(kind.unit));
    if (found->first == chosen_) return {std::move(line)};
    kind.early.push_back(std::move(line));
    if (kind.early.size() > kMostEarly) kind.early.erase(kind.early.begin());
    if (kind.rises < kLeastRises) return {};
    if (!chosen_.empty() && !better(kind, kinds_.at(chosen_))) return {};
    chosen_ = found->first;
    return std::exchange(kind.early, {});
}

}  // namespace stoker
