#include "lint/rules/common_cloud.h"

#include <cctype>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace stoker::lint {

namespace {

// "8 vCPU", "96 vcpus", "1900 GiB": the number before a unit, within a few words behind a size.
std::optional<double> doc002_number_before(std::string_view text, std::size_t unit) {
    std::size_t end = unit;
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '-')) --end;
    std::size_t begin = end;
    while (begin > 0 &&
           ((text[begin - 1] >= '0' && text[begin - 1] <= '9') || text[begin - 1] == ',' || text[begin - 1] == '.'))
        --begin;
    if (begin == end) return std::nullopt;
    std::string digits;
    for (const char c : text.substr(begin, end - begin))
        if (c != ',') digits += c;
    double value = 0;
    const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc{} && at == digits.data() + digits.size() ? std::optional(value) : std::nullopt;
}

// "Sixty-four vCPUs": the word before a unit; in English, to ninety-nine.
std::optional<double> doc002_word_before(std::string_view text, std::size_t unit) {
    constexpr std::string_view kOnes[] = {
        "",    "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
        "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
    constexpr std::string_view kTens[] = {"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
    std::size_t end = unit;
    while (end > 0 && text[end - 1] == ' ') --end;
    std::size_t begin = end;
    while (begin > 0 && (std::isalpha(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '-'))
        --begin;
    const std::string_view word = text.substr(begin, end - begin);
    const std::size_t dash = word.find('-');
    const auto ones = [&](std::string_view each) -> int {
        for (int i = 1; i < 20; ++i)
            if (equals_ignore_case(each, kOnes[i])) return i;
        return 0;
    };
    for (int i = 0; i < 8; ++i) {
        if (!equals_ignore_case(word.substr(0, dash), kTens[i])) continue;
        const int rest = dash == std::string_view::npos ? 0 : ones(word.substr(dash + 1));
        if (dash != std::string_view::npos && (rest == 0 || rest > 9)) return std::nullopt;
        return 10 * (i + 2) + rest;
    }
    const int few = ones(word);
    return few > 0 ? std::optional<double>(few) : std::nullopt;
}

}  // namespace

void check_doc002(const File& file, Report& report) {
    if (!file.kinds.has(Kind::markdown)) return;
    const std::string_view text = file.source().text();
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = text.substr(at, end - at);
        const std::size_t first = line.find("Standard_");
        // Two sizes in a line: which one the numbers are of cannot be told.
        if (first != std::string_view::npos && line.find("Standard_", first + 9) == std::string_view::npos) {
            std::size_t stop = first;
            while (stop < line.size() &&
                   (std::isalnum(static_cast<unsigned char>(line[stop])) || line[stop] == '_' || line[stop] == '-'))
                ++stop;
            const KnownSize* size = report.knowledge().size(line.substr(first, stop - first));
            const std::size_t unit = std::min(line.find("vCPU", stop), line.find("vcpu", stop));
            if (size && size->vcpus > 0 && unit != std::string_view::npos && unit - stop < 40) {
                auto said = doc002_number_before(line, unit);
                if (!said) said = doc002_word_before(line, unit);
                if (said && *said >= 1 && *said != size->vcpus)
                    report.add(file.source(),
                               {static_cast<std::uint32_t>(at + first), static_cast<std::uint32_t>(at + unit + 4)},
                               fmt::format("doc:{}@{}", size->name, *said),
                               fmt::format("{} has {} vCPUs, not {:g}", size->name, size->vcpus, *said));
            }
        }
        at = end + 1;
    }
}

}  // namespace stoker::lint
