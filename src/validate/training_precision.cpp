#include <fmt/format.h>

#include <initializer_list>
#include <string>

#include "base/text.h"
#include "validate/job.h"
#include "validate/stated.h"

namespace stoker::validate {
namespace {

bool says_type(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

}  // namespace

Precision training_precision(const Row& row, const Device& device, std::vector<std::string>& assumed,
                             std::string& refused) {
    std::string text = lower(row.text("precision"));
    const auto has_unit = [&](Precision p) { return device.matmul(p) > 0; };
    const auto first_of = [&](std::initializer_list<Precision> order) {
        for (const Precision p : order)
            if (has_unit(p)) return p;
        return Precision::fp32;
    };
    if (text.empty()) {
        // What is tuned for a benchmark multiplies its transformer layers in FP8 where the device can.
        const std::string arch = lower(row.text("arch"));
        const bool narrow =
            stated(row, "vendor_tuned") && (arch == "bert" || arch == "gpt" || arch == "llama" || arch == "moe");
        const Precision p = narrow ? first_of({Precision::fp8, Precision::bf16, Precision::fp16, Precision::tf32})
                                   : first_of({Precision::bf16, Precision::fp16, Precision::tf32});
        assumed.push_back(fmt::format("precision: {}", to_string(p)));
        return p;
    }
    Precision wanted = Precision::fp32;
    if (says_type(text, "fp8") || says_type(text, "float8") || says_type(text, "fp4")) {
        wanted = Precision::fp8;
        if (says_type(text, "fp4"))
            assumed.push_back("precision: fp8, for which alone a training rate is known below 16 bits");
    } else if (says_type(text, "bf16") || says_type(text, "bfloat16")) {
        wanted = Precision::bf16;
    } else if (says_type(text, "fp16") || says_type(text, "float16") || says_type(text, "amp") ||
               says_type(text, "mixed")) {
        wanted = Precision::fp16;
    } else if (says_type(text, "tf32")) {
        return first_of({Precision::tf32, Precision::fp32});  // "fp32/tf32": TF32 from Ampere on, FP32 before
    } else if (says_type(text, "fp32") || says_type(text, "float32")) {
        wanted = Precision::fp32;
    } else {
        refused = fmt::format("unsupported:precision {}", printable(row.text("precision"), 40));
        return wanted;
    }
    if (has_unit(wanted)) return wanted;
    const Precision other = wanted == Precision::fp8 ? first_of({Precision::bf16, Precision::fp16})
                                                     : first_of({Precision::fp16, Precision::bf16});
    assumed.push_back(fmt::format("precision: {} on a device without {}", to_string(other), to_string(wanted)));
    return other;
}

bool trained_in_own_type(const Row& row) {
    const std::string text = lower(row.text("precision"));
    return (says_type(text, "bf16") || says_type(text, "bfloat16")) && !says_type(text, "amp") &&
           !says_type(text, "mixed");
}

}  // namespace stoker::validate
