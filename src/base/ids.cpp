#include "base/ids.h"

#include <algorithm>

namespace stoker {
namespace {
// In ASCII order, so that texts of equal length sort as their numbers do.
constexpr std::string_view kDigits = "234567abcdefghijklmnopqrstuvwxyz";
constexpr std::size_t kSite = 5, kShortest = 6;
}  // namespace

std::string OperationId::text() const {
    std::string digits;
    for (std::uint64_t left = seq; left > 0; left >>= 5) digits += kDigits[left & 31];
    digits.append(kShortest - std::min(kShortest, digits.size()), kDigits[0]);
    std::reverse(digits.begin(), digits.end());
    return site + "-" + digits;
}

std::optional<OperationId> OperationId::parse(std::string_view text) {
    if (text.size() < kSite + 1 + kShortest || text.size() > kSite + 1 + 13 || text[kSite] != '-') return std::nullopt;
    OperationId id{.site = std::string(text.substr(0, kSite)), .seq = 0};
    for (const char c : id.site)
        if (kDigits.find(c) == std::string_view::npos) return std::nullopt;
    for (const char c : text.substr(kSite + 1)) {
        const std::size_t digit = kDigits.find(c);
        if (digit == std::string_view::npos || id.seq >> 59 != 0) return std::nullopt;
        id.seq = id.seq << 5 | digit;
    }
    // One text per id: an extra leading zero digit would be another text for the same one.
    return id.text() == text ? std::optional(std::move(id)) : std::nullopt;
}

}  // namespace stoker
