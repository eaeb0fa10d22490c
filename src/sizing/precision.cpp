#include "sizing/precision.h"

#include <fmt/format.h>

#include "base/text.h"
#include "sizing/serving_setup.h"

namespace stoker {
namespace {

bool trains_in(const Device& device, Precision p) {
    // Units that are no faster than plain FP32 are no reason to give up its range.
    return device.matmul(p) > 0 && (p == Precision::fp32 || device.matmul(p) >= device.matmul(Precision::fp32));
}

bool serves_in(const Workload& workload, const Device& device, Precision p) {
    const RuntimePrecision runtime = runtime_precision(device, p);
    if (!runtime.possible) return false;
    // Decoding reads weights, so a language model gains from small ones that are widened on the way. What is bound by
    // arithmetic gains nothing.
    const bool decoder = workload.model.kind == ModelKind::decoder || workload.model.kind == ModelKind::encoder_decoder;
    return decoder || (!runtime.weight_only && trains_in(device, p));
}

}  // namespace

Precision precision_on(const Workload& workload, const Device& device) {
    for (const Precision p : workload.precision_order)
        if (is_training(workload.kind) ? trains_in(device, p) : serves_in(workload, device, p)) return p;
    return workload.precision_order.empty() ? workload.precision : workload.precision_order.back();
}

Precision kv_precision_with(const Workload& workload, Precision weights) {
    return workload.kv_precision_given || workload.precision_order.empty() ? workload.kv_precision
                                                                           : kv_precision_beside(weights);
}

std::string why_precision(const Workload& workload, Precision taken, const Accelerator* accelerator) {
    if (workload.precision_order.empty() || taken == workload.precision_order.front()) return {};
    return fmt::format("precision {}, since none is given and {} has no {} units", to_string(taken),
                       accelerator != nullptr ? accelerator->name : "this CPU",
                       upper(to_string(workload.precision_order.front())));
}

}  // namespace stoker
