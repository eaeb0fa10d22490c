// Identifiers. Short, typed, per installation: a RunId is no NodeId. Drawn from counters, never at random, so that a
// replay gives the same ones.
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

namespace ids_detail {
// A decimal number without sign or leading zeros; 0 is no id.
inline std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || value == 0 || text.front() == '0')
        return std::nullopt;
    return value;
}
}  // namespace ids_detail

template <char Letter>
struct Id {
    std::uint64_t number = 0;  // 0: none

    std::string text() const { return std::string(1, Letter) + "-" + std::to_string(number); }
    static std::optional<Id> parse(std::string_view text) {
        if (text.size() < 3 || text[0] != Letter || text[1] != '-') return std::nullopt;
        const auto number = ids_detail::number(text.substr(2));
        return number ? std::optional(Id{*number}) : std::nullopt;
    }
    explicit operator bool() const { return number != 0; }
    friend auto operator<=>(const Id&, const Id&) = default;
};

using RunId = Id<'r'>;
using NodeId = Id<'n'>;
using LeaseId = Id<'l'>;
using UserId = Id<'u'>;

// The n-th try of a run: a-7.2.
struct AttemptId {
    RunId run;
    std::uint32_t number = 0;
    std::string text() const { return "a-" + std::to_string(run.number) + "." + std::to_string(number); }
    static std::optional<AttemptId> parse(std::string_view text) {
        const std::size_t dot = text.find('.');
        if (!text.starts_with("a-") || dot == std::string_view::npos) return std::nullopt;
        const auto run = ids_detail::number(text.substr(2, dot - 2)),
                   attempt = ids_detail::number(text.substr(dot + 1));
        if (!run || !attempt || *attempt > UINT32_MAX) return std::nullopt;
        return AttemptId{{*run}, static_cast<std::uint32_t>(*attempt)};
    }
    explicit operator bool() const { return number != 0; }
    friend auto operator<=>(const AttemptId&, const AttemptId&) = default;
};

// An effect on the outside: "k3x7q-0004jz", the installation and the journal number of the intent in base 32. The
// effect carries it (environment, job name, label, tag), so that a restart finds it by listing. 12 characters of
// [a-z2-7] and a dash fit the names of every engine.
struct OperationId {
    std::string site;       // 5 characters
    std::uint64_t seq = 0;  // of the record that intended it
    std::string text() const;
    static std::optional<OperationId> parse(std::string_view text);
    friend auto operator<=>(const OperationId&, const OperationId&) = default;
};

}  // namespace stoker
