#include "readings/gpu_limits.h"

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/tsv.h"

namespace stoker {

namespace {

const Tsv* table_of(const char* path) {
    struct Loaded {
        std::optional<Tsv> limits, xid;
    };
    static const Loaded loaded = [] {
        Loaded made;
        auto limits = Tsv::read(embedded_bytes("readings/limits.tsv"), "readings/limits.tsv");
        auto xid = Tsv::read(embedded_bytes("readings/xid.tsv"), "readings/xid.tsv");
        if (limits) made.limits = std::move(*limits);
        if (xid) made.xid = std::move(*xid);
        return made;
    }();
    const std::optional<Tsv>& table = std::string_view(path) == "xid" ? loaded.xid : loaded.limits;
    return table ? &*table : nullptr;
}

}  // namespace

std::optional<XidMeaning> xid_meaning(int code) {
    const Tsv* table = table_of("xid");
    for (std::size_t row = 0; table && row < table->rows(); ++row)
        if (table->at(row, 0) == std::to_string(code))
            return XidMeaning{table->at(row, 1), table->at(row, 3), table->at(row, 4), table->at(row, 2) == "fail"};
    return std::nullopt;
}

void judge_limit(ReadingBuilder& out, std::string_view name, const std::string& gpu, double value, ToolPlace place) {
    const Tsv* table = table_of("limits");
    for (std::size_t row = 0; table && row < table->rows(); ++row) {
        if (table->at(row, 0) != name) continue;
        const auto warn = table->number(row, 1), fail = table->number(row, 2);
        if (!warn || !fail || value < *warn) return;
        const bool heat = name == "gpu-temperature";
        out.check(
            std::string(name), place,
            {.verdict = value >= *fail ? HealthVerdict::fail : HealthVerdict::warn,
             .message = heat ? fmt::format("{} is at {:g} C: boards begin to lower their clocks a few degrees above",
                                           gpu, value)
                             : fmt::format("{} uses {:.0f} % of its memory: the next larger batch does not fit", gpu,
                                           100 * value),
             .fix = heat ? "look at clocks and reasons (nvidia-smi -q -d PERFORMANCE); in a cloud hand the node back, "
                           "at home look at fans and dust"
                         : "a smaller micro-batch, recompute, or a GPU with more memory, before it is an out-of-memory "
                           "error",
             .peer = gpu,
             .measured = value,
             .expected = *warn,
             .unit = std::string(table->at(row, 3)),
             .source = std::string(table->at(row, 4))});
        return;
    }
}

void judge_xid(ReadingBuilder& out, int code, const std::string& gpu, ToolPlace place) {
    const auto meaning = xid_meaning(code);
    out.repeated(
        "gpu-xid", fmt::format("{} {}", code, gpu), place,
        {.verdict = meaning && meaning->fails ? HealthVerdict::fail : HealthVerdict::warn,
         .message = meaning ? fmt::format("Xid {} on {}: {}", code, gpu, meaning->what)
                            : fmt::format("Xid {} on {}: nothing is published about this code here", code, gpu),
         .fix = meaning ? std::string(meaning->action) : "look it up: docs.nvidia.com/deploy/xid-errors",
         .peer = gpu,
         .source = meaning ? std::string(meaning->source) : ""});
}

}  // namespace stoker
