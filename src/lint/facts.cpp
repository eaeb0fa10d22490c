#include "lint/facts.h"

namespace stoker::lint {

const Value& Resource::get(Attr attr) const {
    static const Value absent;
    for (const auto& [name, value] : attributes)
        if (name == attr) return value;
    return absent;
}

std::vector<const Value*> Resource::all(Attr attr) const {
    std::vector<const Value*> found;
    for (const auto& [name, value] : attributes)
        if (name == attr) found.push_back(&value);
    return found;
}

void Resource::set(Attr attr, Value value) {
    if (value.present()) attributes.emplace_back(attr, value);
}

const LaunchOption* Launch::option(std::string_view name) const {
    const LaunchOption* found = nullptr;
    for (const LaunchOption& option : options)
        if (option.name == name) found = &option;
    return found;
}

const Quantity* Container::limit(std::string_view resource) const {
    for (const Quantity& quantity : resources)
        if (quantity.limit && quantity.resource == resource) return &quantity;
    return nullptr;
}

const Quantity* Container::request(std::string_view resource) const {
    for (const Quantity& quantity : resources)
        if (!quantity.limit && quantity.resource == resource) return &quantity;
    return nullptr;
}

const EnvVar* Container::env(std::string_view wanted) const {
    const EnvVar* found = nullptr;
    for (const EnvVar& variable : environment)
        if (variable.name == wanted) found = &variable;
    return found;
}

bool is_accelerator_resource(std::string_view key) {
    for (const std::string_view whole :
         {"nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "habana.ai/gaudi", "aws.amazon.com/neuron",
          "aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice", "alpha.kubernetes.io/nvidia-gpu",
          "nvidia.com/gpu.shared", "cloud-tpus.google.com/v2", "huawei.com/Ascend910", "iluvatar.ai/vgpu",
          "hygon.com/dcunum", "metax-tech.com/gpu", "metax-tech.com/sgpu", "cambricon.com/mlu"})
        if (key == whole) return true;
    // Other vendors and schedulers: iluvatar.ai/BI-V150-vgpu, volcano.sh/vgpu, example.com/gpu.
    if (const std::size_t slash = key.find('/'); slash != std::string_view::npos && key.ends_with("gpu")) return true;
    return key.starts_with("nvidia.com/mig-") || key.starts_with("gpu.intel.com/") || key.starts_with("squat.ai/");
}

}  // namespace stoker::lint
