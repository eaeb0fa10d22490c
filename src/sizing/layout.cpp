#include "sizing/layout.h"

#include <fmt/format.h>

namespace stoker {

std::string_view to_string(Recompute recompute) {
    switch (recompute) {
        case Recompute::none: return "none";
        case Recompute::selective: return "selective";
        case Recompute::full: return "full";
    }
    return "none";
}

std::string describe(const ParallelLayout& layout) {
    std::string text;
    const auto add = [&text](std::string part) {
        if (!text.empty()) text += ", ";
        text += part;
    };
    if (layout.tensor > 1)
        add(fmt::format("tensor {}{}", layout.tensor, layout.sequence_parallel ? " with sequence parallel" : ""));
    if (layout.pipeline > 1) {
        add(layout.virtual_stages > 1
                ? fmt::format("pipeline {} interleaved {}", layout.pipeline, layout.virtual_stages)
                : fmt::format("pipeline {}", layout.pipeline));
    }
    if (layout.context > 1) add(fmt::format("context {}", layout.context));
    if (layout.expert > 1) add(fmt::format("expert {}", layout.expert));
    const int ranks = layout.data * layout.context;
    if (ranks > 1 && layout.zero == 3) {
        add(layout.shard_ranks() < ranks
                ? fmt::format("HSDP {} x {}", ranks / layout.shard_ranks(), layout.shard_ranks())
                : fmt::format("FSDP over {}", ranks));
    } else if (ranks > 1 && layout.zero > 0) {
        add(layout.shard_ranks() < ranks
                ? fmt::format("data {} with ZeRO-{} over {}", layout.data, layout.zero, layout.shard_ranks())
                : fmt::format("data {} with ZeRO-{}", layout.data, layout.zero));
    } else if (layout.data > 1) {
        add(fmt::format("data {}", layout.data));
    }
    if (text.empty()) add("one device");
    add(layout.micro_batches > 1 ? fmt::format("micro-batch {} x {}", layout.micro_batch, layout.micro_batches)
                                 : fmt::format("micro-batch {}", layout.micro_batch));
    if (layout.recompute == Recompute::full && layout.recompute_layers > 0)
        add(fmt::format("full recompute of {} layer{} a {}", layout.recompute_layers,
                        layout.recompute_layers == 1 ? "" : "s",
                        layout.virtual_stages > 1 ? "chunk"
                        : layout.pipeline > 1     ? "stage"
                                                  : "model"));
    else
        add(layout.recompute == Recompute::none ? std::string("no recompute")
                                                : fmt::format("{} recompute", to_string(layout.recompute)));
    if (layout.offload) add("optimizer on the host");
    return text;
}

}  // namespace stoker
