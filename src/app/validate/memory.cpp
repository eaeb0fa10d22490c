#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/validate/predict.h"
#include "base/text.h"

namespace stoker::validate {
namespace {

// What a kind of measurement sees of the memory, and in which unit it is printed.
enum class Seen : std::uint8_t { allocated, reserved, driver, formula };
struct Kind {
    Seen seen = Seen::allocated;
    double unit = 1e9;
};

// The longest beginning that fits decides; anything else is taken for allocated bytes in GB.
Kind kind_of_memory(std::string_view printed) {
    const std::string text = lower(printed);
    const auto has = [&text](std::string_view part) { return text.find(part) != std::string::npos; };
    const bool binary = has("gib");
    Kind kind;
    kind.unit = binary ? kGiB : 1e9;
    if (text.starts_with("gib: params")) {
        kind.seen = Seen::formula;
    } else if (has("nvidia-smi")) {
        kind.seen = Seen::driver;
    } else if (has("memory reserved")) {
        kind.seen = Seen::reserved;
    }
    return kind;
}

double bytes_seen(const TrainingEstimate& e, Seen seen) {
    const auto of = [&e](MemoryTerm term) { return e.bytes[static_cast<std::size_t>(term)]; };
    switch (seen) {
        case Seen::allocated: return e.allocated_bytes;
        case Seen::reserved: return e.allocated_bytes + of(MemoryTerm::fragmentation);
        case Seen::driver: return e.memory_bytes;
        case Seen::formula:
            return of(MemoryTerm::weights) + of(MemoryTerm::gradients) + of(MemoryTerm::optimizer) +
                   of(MemoryTerm::activations);
    }
    return 0;
}

}  // namespace

Line predict_memory(const Row& row, Jobs& jobs, const Intervals& intervals) {
    Line line{.row = row.index(),
              .id = std::string(row.text("id")),
              .group = std::string(row.text("source_group")),
              .metric = "peak_mem_gb"};
    const std::string_view printed = row.text("mem_kind");
    if (says(printed, "percent of TP baseline")) {
        line.refused = "ratio row";
        return line;
    }
    const Job job = jobs.of(row, true);
    line.assumed = job.assumed;
    line.refused = !row.invalid().empty() ? fmt::format("invalid:{}", row.invalid()) : job.refused;
    if (!line.refused.empty()) return line;
    const Kind kind = kind_of_memory(printed);
    const double figure = bytes_seen(job.estimate, kind.seen) / kind.unit;
    if (!(figure > 0) || !std::isfinite(figure)) {
        line.refused = "unsupported:no peak";
        return line;
    }
    line.predict(figure, intervals.factors(line.metric, memory_interval(*job.setup, job.layout, job.estimate),
                                           line.assumed.size()));
    if (job.device_known) line.outcome = job.estimate.memory_bytes > job.setup->device.memory_bytes ? "oom" : "fit";
    return line;
}

}  // namespace stoker::validate
