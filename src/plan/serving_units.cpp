#include "plan/serving_units.h"

namespace stoker {

ServiceUnits units_of(const Workload& workload, const ServingSetup& setup) {
    if (setup.decoder && workload.traffic.audio)
        return {"hour of audio", workload.traffic.audio->v / 3600, "seconds of audio", workload.traffic.audio->v};
    if (setup.decoder) return {"M output tokens", setup.output_tokens / 1e6, "output tokens", setup.output_tokens};
    const std::string what = is_image(workload.model.kind) ? workload.model.request_unit() + "s" : "sequences";
    return {"1k " + what, 1e-3, what, 1};
}

}  // namespace stoker
