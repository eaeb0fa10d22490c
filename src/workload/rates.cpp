// How often requests come: told in words, and worked out from what is heard live.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "workload/workload_form.h"

namespace stoker {

std::string rate_text(double per_second, std::string_view unit, int digits) {
    constexpr double kFewest = 0.1;  // a second: what is rarer is told by the minute, the hour or the day
    constexpr std::pair<double, std::string_view> kSpans[] = {{1, "s"}, {60, "min"}, {3600, "h"}, {86400, "day"}};
    std::size_t i = 0;
    if (per_second > 0 && per_second < kFewest)
        for (i = 1; i + 1 < std::size(kSpans) && per_second * kSpans[i].first < 0.95;) ++i;
    const double count = per_second * kSpans[i].first;
    const std::string figure = fmt::format("{:.{}g}", count, i == 0 ? digits : std::min(digits, 3));
    return fmt::format("{} {}{}/{}", figure, unit, figure == "1" || unit.ends_with("s") ? "" : "s", kSpans[i].second);
}

std::optional<Range> parse_eviction_rate(std::string_view text) {
    constexpr double kMost = 60;         // a minute each: nothing could be done
    constexpr double kTwice = 2;         // what one figure stands for
    constexpr double kLowestShare = 10;  // of a bracket that begins at nothing
    std::string plain = replace_all(std::string(trim(text)), "\u2013", "-");
    for (const std::string_view word : {"/h", "per hour", "+"}) plain = replace_all(plain, word, "");
    const auto figure = [](std::string_view one, bool percent) -> std::optional<double> {
        const auto count = parse_count(trim(one));
        if (!count || !(*count >= 0)) return std::nullopt;
        return percent ? *count / 100 : *count;
    };
    const bool percent = plain.find('%') != std::string::npos;
    plain = replace_all(plain, "%", "");
    const std::size_t dash = plain.find('-', 1);
    if (dash == std::string::npos) {
        const auto mid = figure(plain, percent);
        if (!mid || !(*mid > 0) || *mid > kMost) return std::nullopt;
        return Range{*mid / kTwice, *mid, *mid * kTwice};
    }
    auto low = figure(std::string_view(plain).substr(0, dash), percent);
    const auto high = figure(std::string_view(plain).substr(dash + 1), percent);
    if (!low || !high || !(*high > 0) || *high > kMost || *low > *high) return std::nullopt;
    const double mid = *low > 0 ? std::sqrt(*low * *high) : *high / 2;
    return Range{std::max(*low, *high / kLowestShare), mid, *high};
}

// A recording is heard window by window, none of which knows of the others: a pile of hours is so many windows, and no
// context of hundreds of thousands of tokens.
static void cut_into_windows(WorkloadForm& w) {
    TrafficSpec& traffic = w.traffic;
    RequestShape& request = w.model.request;
    const double windows = std::ceil(traffic.audio->v / request.window_s - 1e-9);
    if (w.kind != WorkloadKind::batch_inference || !traffic.requests || traffic.prompt_tokens || windows < 2) return;
    w.assumptions.push_back(fmt::format("{} recordings of {} are {} windows of {}", format_thousands(*traffic.requests),
                                        format_seconds(*traffic.audio), format_thousands(*traffic.requests * windows),
                                        format_seconds(Seconds(request.window_s))));
    *traffic.requests *= windows;
    if (traffic.output_tokens) *traffic.output_tokens = std::max(1.0, *traffic.output_tokens / windows);
    traffic.audio = Seconds(request.window_s);
    request.unit = "audio window";
}

void fill_streams(WorkloadForm& w) {
    TrafficSpec& traffic = w.traffic;
    if (traffic.audio) cut_into_windows(w);
    if (!traffic.streams || !traffic.audio) return;
    traffic.requests_per_second = *traffic.streams / traffic.audio->v;
    w.assumptions.push_back(fmt::format("{} streams, each asking once in {} of audio, are {:.3g} requests/s",
                                        format_thousands(*traffic.streams), format_seconds(*traffic.audio),
                                        *traffic.requests_per_second));
}

}  // namespace stoker
