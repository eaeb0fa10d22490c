#include "lint/rules/common_cloud.h"

#include <cctype>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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
                const auto said = doc002_number_before(line, unit);
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
