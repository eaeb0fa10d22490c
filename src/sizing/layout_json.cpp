#include "sizing/layout_json.h"

namespace stoker {

Json to_json(const ParallelLayout& l) {
    Json out = Json::object();
    out.set("tensor", l.tensor)
        .set("pipeline", l.pipeline)
        .set("virtual_stages", l.virtual_stages)
        .set("context", l.context)
        .set("expert", l.expert)
        .set("data", l.data)
        .set("shard_group", l.shard_ranks())
        .set("zero", static_cast<int>(l.zero))
        .set("micro_batch", l.micro_batch)
        .set("micro_batches", l.micro_batches)
        .set("recompute", to_string(l.recompute))
        .set("sequence_parallel", l.sequence_parallel)
        .set("offload", l.offload);
    if (l.recompute_layers > 0) out.set("recompute_layers", l.recompute_layers);
    return out;
}

}  // namespace stoker
