#include "plan/precision_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stoker {
namespace {

std::string name_of(const NodeChoice& choice) {
    return choice.accelerator != nullptr ? choice.accelerator->name : "this CPU";
}

// The first few GPUs of the maker that have the units and that some size has, oldest first: A100, A10, L4.
std::vector<std::string> who_has(const Context& context, const Accelerator& lacking, Precision precision) {
    std::vector<const Accelerator*> found;
    for (const NodeType& node : context.catalog.node_types()) {
        if (!node.has_gpu()) continue;
        const Accelerator& gpu = context.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)];
        if (gpu.vendor == lacking.vendor && gpu.has(precision) && gpu.peak[static_cast<std::size_t>(precision)].v > 0)
            found.push_back(&gpu);
    }
    std::stable_sort(found.begin(), found.end(), [](const Accelerator* a, const Accelerator* b) {
        return a->year != b->year ? a->year < b->year : a->name < b->name;
    });
    std::vector<std::string> names;
    for (const Accelerator* gpu : found) {
        const std::string name = gpu->name.substr(0, gpu->name.find('-'));
        if (names.size() < 3 && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
}

}  // namespace

std::string precision_refusal(const Context& context, const NodeChoice& choice, Precision precision) {
    std::string text = fmt::format("{} has no {} units", name_of(choice), to_string(precision));
    // Nothing is known of a processor that a file only counts the cores of.
    if (choice.accelerator == nullptr && choice.node != nullptr && choice.node->cloud == "on-prem" &&
        precision == Precision::fp32)
        return "nobody said what this processor is, or has measured it: stoker doctor does, and its report goes under "
               "doctor: in the file of nodes";
    if (choice.accelerator == nullptr)
        return text + (choice.node != nullptr && choice.node->cloud == "this-machine" && precision == Precision::bf16
                           ? " that anybody has measured (stoker bench cpu --framework does); fp32 runs here"
                           : "; fp32 runs here");
    const std::vector<std::string> others = who_has(context, *choice.accelerator, precision);
    if (!others.empty()) text += fmt::format("; {} and later have them", fmt::join(others, ", "));
    const bool sixteen = precision == Precision::bf16 && choice.accelerator->has(Precision::fp16);
    if (sixteen) text += others.empty() ? "; fp16 runs here" : ", fp16 runs here";
    return text;
}

std::string weight_only_text(const ServingSetup& setup, const NodeChoice& choice) {
    return fmt::format("weight-only {}: {} has no units for it, so weights are kept in it and multiplied in {}",
                       to_string(setup.precision), name_of(choice), to_string(setup.compute_precision));
}

}  // namespace stoker
