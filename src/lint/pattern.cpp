#define PCRE2_CODE_UNIT_WIDTH 8
#include "lint/pattern.h"

#include <pcre2.h>

#include <algorithm>

namespace stoker::lint {

namespace {

constexpr std::size_t kMostPattern = 512, kMostPatternText = 64u << 10;
constexpr std::uint32_t kMostPatternWork = 50'000, kMostPatternMemory = 2'000;  // matches; KiB

}  // namespace

std::optional<TextPattern> TextPattern::read(std::string_view expression) {
    if (expression.size() > kMostPattern) return std::nullopt;
    int error = 0;
    PCRE2_SIZE at = 0;
    pcre2_code* made = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                                     PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
    if (made == nullptr) return std::nullopt;
    TextPattern pattern;
    pattern.code_ = std::shared_ptr<void>(made, [](void* p) { pcre2_code_free(static_cast<pcre2_code*>(p)); });
    return pattern;
}

std::vector<TextPattern::Group> TextPattern::match(std::string_view text, std::size_t from) const {
    std::vector<Group> groups;
    if (text.size() > kMostPatternText || from > text.size()) return groups;
    const auto* code = static_cast<const pcre2_code*>(code_.get());
    const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> found(
        pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);
    const std::unique_ptr<pcre2_match_context, void (*)(pcre2_match_context*)> bounds(
        pcre2_match_context_create(nullptr), pcre2_match_context_free);
    if (!found || !bounds) return groups;
    pcre2_set_match_limit(bounds.get(), kMostPatternWork);
    pcre2_set_heap_limit(bounds.get(), kMostPatternMemory);
    const int rc =
        pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, 0, found.get(), bounds.get());
    if (rc <= 0) return groups;
    const PCRE2_SIZE* spans = pcre2_get_ovector_pointer(found.get());
    const std::uint32_t count = pcre2_get_ovector_count(found.get());
    for (std::uint32_t k = 0; k < count; ++k) {
        Group group;
        group.matched = static_cast<int>(k) < rc && spans[2 * k] != PCRE2_UNSET && spans[2 * k + 1] >= spans[2 * k];
        if (group.matched) group.begin = spans[2 * k], group.end = spans[2 * k + 1];
        groups.push_back(group);
    }
    std::uint32_t names = 0, size = 0;
    PCRE2_SPTR table = nullptr;
    pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &names);
    pcre2_pattern_info(code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(code, PCRE2_INFO_NAMETABLE, &table);
    for (std::uint32_t k = 0; k < names; ++k) {
        const std::size_t number = static_cast<std::size_t>(table[k * size] << 8 | table[k * size + 1]);
        if (number < groups.size()) groups[number].name = reinterpret_cast<const char*>(table + k * size + 2);
    }
    return groups;
}

std::optional<std::string> TextPattern::replaced(std::string_view text, std::string_view with, bool all,
                                                 bool dollar) const {
    std::string out;
    std::size_t from = 0;
    for (int round = 0; round < 1000 && from <= text.size(); ++round) {
        const std::vector<Group> groups = match(text, from);
        if (groups.empty()) break;
        out += text.substr(from, groups[0].begin - from);
        const auto put = [&](std::string_view name) {
            for (std::size_t k = 0; k < groups.size(); ++k)
                if (groups[k].matched && (name == std::to_string(k) || (!name.empty() && name == groups[k].name)))
                    out += text.substr(groups[k].begin, groups[k].end - groups[k].begin);
        };
        for (std::size_t k = 0; k < with.size(); ++k) {
            const char c = with[k];
            if (dollar && c == '$' && k + 1 < with.size()) {
                std::size_t begin = k + 1, end = begin;
                if (with[begin] == '{') {
                    end = with.find('}', begin);
                    if (end == std::string_view::npos) return std::nullopt;
                    put(with.substr(begin + 1, end - begin - 1));
                    k = end;
                    continue;
                }
                while (end < with.size() &&
                       ((with[end] >= '0' && with[end] <= '9') || (with[end] >= 'a' && with[end] <= 'z') ||
                        (with[end] >= 'A' && with[end] <= 'Z') || with[end] == '_'))
                    ++end;
                put(with.substr(begin, end - begin));
                k = end - 1;
            } else if (!dollar && c == '\\' && k + 1 < with.size()) {
                const char next = with[++k];
                if (next >= '0' && next <= '9')
                    put(std::string_view(&with[k], 1));
                else
                    out += next == 'n' ? '\n' : next;
            } else if (!dollar && c == '&') {
                put("0");
            } else {
                out += c;
            }
        }
        if (groups[0].end == groups[0].begin) {
            if (groups[0].end < text.size()) out += text[groups[0].end];
            from = groups[0].end + 1;
        } else {
            from = groups[0].end;
        }
        if (out.size() > kMostPatternText) return std::nullopt;
        if (!all) break;
    }
    if (from < text.size()) out += text.substr(from);
    return out;
}

}  // namespace stoker::lint
