// What is known about a run, for rules that say why it is slower than planned. Everything may be absent; a rule that
// lacks what it needs is silent. Nothing here reads anything: it is filled from series, specification and prediction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// One measure over the time that is looked at.
struct MeasureSpread {
    double mean = 0, median = 0, low = 0, high = 0;  // low and high: 10 % and 90 % of the values
    std::size_t count = 0;
};
MeasureSpread spread_of(std::vector<double> values);

struct RankEvidence {
    int rank = 0;
    std::map<std::string, MeasureSpread, std::less<>> measures;  // by the names of measures() in watch.h
    const MeasureSpread* find(std::string_view name) const;
    std::optional<double> mean(std::string_view name) const;
};

struct Planned {
    std::optional<double> step_s, step_low_s, step_high_s;  // the 80 % interval
    std::optional<double> wait_s, collectives_s, memory_bytes;
    std::optional<double> processors;  // of a rank
};

struct Evidence {
    std::vector<RankEvidence> ranks;
    Planned planned;
    // Time of a step without its checkpoints; median over ranks.
    std::optional<double> step_s() const;
    // The mean of a measure over the ranks that have it.
    std::optional<double> mean(std::string_view name) const;
};

// What a rule found. `cost_s` is its part of a step, as far as it can be told; the gain of the fix is at most that.
struct Finding {
    std::string_view cause;             // "starved-input": stable, for the API
    std::string what;                   // one line
    std::vector<std::string> evidence;  // figures with units
    double cost_s = 0;
    std::string fix;
    std::optional<int> rank;
};
struct CauseVerdict {
    enum class Kind : std::uint8_t { silent, ruled_out, found } kind = Kind::silent;
    std::string reason;  // silent: what is missing; ruled_out: the figure that speaks against it
    std::optional<Finding> finding;
};
struct CauseRule {
    std::string_view cause;
    CauseVerdict (*judge)(const Evidence&);
};
// In the order in which they are told where they cost the same.
const std::vector<CauseRule>& cause_rules();

struct Explanation {
    std::vector<Finding> findings;  // the dearest first
    std::vector<std::pair<std::string_view, std::string>> ruled_out, not_known;
};
Explanation explain_gap(const Evidence& evidence);

CauseVerdict judge_starved_input(const Evidence& evidence);
CauseVerdict judge_cpu_limit(const Evidence& evidence);
CauseVerdict judge_memory_pressure(const Evidence& evidence);
CauseVerdict judge_straggler(const Evidence& evidence);
CauseVerdict judge_checkpoint_stalls(const Evidence& evidence);

}  // namespace stoker
