// The output of any program (a log of Slurm, kubectl logs, a terminal): what it said last, and what that means.
#include <fmt/format.h>

#include <algorithm>

#include "readings/last_words.h"
#include "readings/tool_reader.h"

namespace stoker {
namespace {

constexpr std::size_t kMostTail = 256u << 10;  // bytes at its end; the reason stands there

// The end of a text, from a whole line on.
std::string_view tail_of(std::string_view text) {
    if (text.size() <= kMostTail) return text;
    text.remove_prefix(text.size() - kMostTail);
    const std::size_t line = text.find('\n');
    return line == std::string_view::npos ? text : text.substr(line + 1);
}

}  // namespace

bool ends_with_an_error(std::string_view text) {
    const auto words = last_words(tail_of(text));
    return words && words->told && (!words->name.empty() || !words->where.empty());
}

Result<ToolReading> read_program_log(std::string_view text, const std::string& file, const ToolContext&) {
    ReadingBuilder out(Tool::program_log, file);
    const std::string_view tail = tail_of(text);
    const auto words = last_words(tail);
    if (!words) return out.broken({1, 1}, "it is empty", "the output of the program, to its end");
    const auto before = static_cast<std::size_t>(
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.size() - tail.size()), '\n'));
    const std::string where = words->where.empty() ? "" : fmt::format(" ({})", words->where);
    const std::string message =
        words->what.empty() ? words->line + where : fmt::format("{}: {}{}", words->what, words->line, where);
    out.check(words->name.empty() ? "program-failed" : std::string(words->name),
              {static_cast<std::uint32_t>(before + words->number), 1},
              {.layer = words->layer,
               .verdict = words->consequence ? HealthVerdict::warn : HealthVerdict::fail,
               .message = message,
               .fix = std::string(words->fix)});
    return out.finish(words->what.empty() ? words->line : std::string(words->what));
}

}  // namespace stoker
