#include "deploy/local/rank_measures.h"

#include <charconv>

#include "io/process.h"
#include "observe/gpu/rank_gpus.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTableFor = std::chrono::milliseconds(100);
constexpr auto kForgotten = std::chrono::minutes(5);  // nobody has asked for so long
constexpr std::size_t kMostKept = 65'536;             // lines of a gang

}  // namespace

void RankMeasures::look_at_all(Clock::time_point now) {
    if (table_ && now < table_at_ + kTableFor) return;
    table_ = std::make_unique<ProcessTable>(ProcessTable::scan({}));
    table_at_ = Clock::now();
    std::erase_if(gangs_, [&](const auto& each) { return now >= each.second.asked + kForgotten; });
}

Result<Measures> RankMeasures::read(const MeasuredGang& asked, const MeasureQuery& query) {
    const std::lock_guard guard(mutex_);
    const auto now = Clock::now();
    auto found = gangs_.find(asked.launched);
    std::uint64_t after = 0;
    if (!query.cursor.empty()) {
        const char* end = query.cursor.data() + query.cursor.size();
        const auto [stopped, code] = std::from_chars(query.cursor.data(), end, after);
        if (code != std::errc() || stopped != end)
            return Error(ErrorKind::invalid, "no cursor of the measures of " + asked.launched.text());
    } else if (found != gangs_.end()) {
        gangs_.erase(found);
        found = gangs_.end();
    }
    Measures answer{.lines = {}, .next = std::to_string(after)};
    if (found == gangs_.end()) {
        if (asked.live.empty()) return answer;
        GangMeter meter(asked.measure, asked.log_folder,
                        {.roots = {},
                         .sample = {},
                         .from_s = query.cursor.empty() ? query.from_s : 1,
                         .gpus = gpus_of_this_machine()});
        found = gangs_.emplace(asked.launched, Gang(std::move(meter))).first;
        found->second.first = after;
    }
    Gang& gang = found->second;
    gang.asked = now;
    look_at_all(now);
    const std::int64_t at_us =
        std::chrono::duration_cast<std::chrono::microseconds>(table_at_.time_since_epoch()).count();
    // What was told is kept until the next question shows that it has arrived.
    for (; !gang.lines.empty() && gang.first < after; ++gang.first) gang.lines.pop_front();
    if (gang.lines.size() < kMostKept / 2)
        for (MeasureLine& line :
             gang.meter.look(*table_, at_us, asked.live, static_cast<double>(wall_clock_us()) / 1e6))
            gang.lines.push_back(std::move(line));
    for (; gang.lines.size() > kMostKept; ++gang.first) gang.lines.pop_front();
    answer.gap = after < gang.first;
    for (std::size_t i = 0; i < gang.lines.size() && i < query.most; ++i) answer.lines.push_back(gang.lines[i]);
    answer.next = std::to_string(gang.first + answer.lines.size());
    answer.more = answer.lines.size() < gang.lines.size();
    if (asked.live.empty() && !answer.more) gangs_.erase(found);
    return answer;
}

}  // namespace stoker
