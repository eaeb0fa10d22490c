// CMP001-CMP005: one reservation of devices, looked at from five sides.
#include <array>

#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

bool compose_extends(const Container& service) {
    return service.node->find("extends") != nullptr;
}

// Servers that end at once without a GPU. Others (Ollama, Triton) fall back to the CPU.
bool compose_needs_gpu(std::string_view image) {
    if (contains_nocase(image, "cpu") || contains_nocase(image, "neuron") || contains_nocase(image, "tpu"))
        return false;
    for (const std::string_view name : {"vllm/vllm-openai", "nvcr.io/nim/", "lmsysorg/sglang", "tensorrt-llm",
                                        "text-generation-inference", "openmmlab/lmdeploy"})
        if (contains_nocase(image, name)) return true;
    return false;
}

bool compose_trains(const Container& service) {
    if (training_word(service)) return true;
    if (!service.image.known() || service.built_here) return false;
    for (const std::string_view name :
         {"nvcr.io/nvidia/pytorch", "nvcr.io/nvidia/nemo", "pytorch/pytorch", "deepspeed/deepspeed", "horovod/horovod",
          "axolotl", "nvcr.io/nvidia/tensorflow"})
        if (contains_nocase(service.image.text, name)) return true;
    return false;
}

const Node* compose_reserved(const Container& service) {
    return service.node->at({"deploy", "resources", "reservations", "devices"});
}

}  // namespace

void check_cmp001(const File& file, Report& report) {
    each_service(file, [&](const Container& service) {
        if (!service.image.known() || service.built_here || accelerator_of(service) || compose_extends(service)) return;
        if (service.node->find("runtime") || service.node->find("devices") || service.node->find("privileged")) return;
        if (const Node* deploy = service.node->find("deploy"); deploy && (compose_reserved(service) || !deploy->known))
            return;
        if (!compose_needs_gpu(service.image.text)) return;
        for (const WordList& command : commands_of(service))
            if (option_of(*command.words, {"--device"}).is("cpu")) return;
        Finding* finding = report.add(service.image, service.address,
                                      fmt::format("{} needs a GPU, and the service reserves none", service.image.text));
        if (finding)
            finding->advice = "reserve devices under deploy.resources.reservations.devices, with capabilities: [gpu]";
    });
}

void check_cmp002(const File& file, Report& report) {
    each_service(file, [&](const Container& service) {
        for (const Node& device : children(compose_reserved(service))) {
            const Node *count = device.find("count"), *ids = device.find("device_ids");
            if (!count || !ids) continue;
            Finding* finding = report.add(*count->source, count->key_span, service.address,
                                          "count and device_ids exclude each other in one reservation: compose refuses "
                                          "the file");
            report.relate(finding, *ids->source, ids->key_span, "device_ids");
            if (!count->merged && count->parent == ids->parent && source_line_is_own(*count))
                report.fix(finding, *count->source, FixClass::unsafe, "keep device_ids",
                           {{lines_of(*count->source, count->whole()), ""}});
        }
    });
}

void check_cmp003(const File& file, Report& report) {
    each_service(file, [&](const Container& service) {
        for (const Node& device : children(compose_reserved(service))) {
            if (!device.is_object() || device.find("capabilities") || !device.first) continue;
            const Node& key = *device.first;
            Finding* finding = report.add(*key.source, key.key_span, service.address,
                                          "a reserved device without capabilities: compose refuses the file");
            if (!finding) continue;
            finding->advice = "add capabilities: [gpu]";
            if (auto edit = line_before(key, "capabilities: [gpu]"))
                report.fix(finding, *key.source, FixClass::safe, "add capabilities: [gpu]", {std::move(*edit)});
        }
    });
}

void check_cmp004(const File& file, Report& report) {
    each_service(file, [&](const Container& service) {
        const Quantity* device = accelerator_of(service);
        if (!device || compose_extends(service)) return;
        const bool all = device->amount.is("all") || device->amount.is("-1");
        if (!all && accelerators_of(service).value_or(1) < 2) return;
        const Node* ipc = service.node->find("ipc");
        if (service.node->find("shm_size") || (ipc && ipc->text != "none" && ipc->text != "private")) return;
        for (const Node& each : children(service.node->find("tmpfs")))
            if (each.text.starts_with("/dev/shm")) return;
        for (const Node& each : children(service.node->find("volumes"))) {
            const Node* target = each.find("target");  // the long form
            if ((target ? target : &each)->text.find("/dev/shm") != std::string_view::npos) return;
        }
        if (!compose_trains(service)) return;
        Finding* finding = report.add(*device->amount.source, device->key_span, service.address,
                                      "a training on several GPUs with the default 64 MiB of /dev/shm: NCCL and data "
                                      "loaders run out of it");
        if (!finding) return;
        finding->advice = "set shm_size or ipc: host";
        if (const Node* image = service.node->find("image"))
            if (auto edit = line_before(*image, "shm_size: 16gb"))
                report.fix(finding, *image->source, FixClass::safe, "set shm_size: 16gb", {std::move(*edit)});
    });
}

void check_cmp005(const File& file, Report& report) {
    each_service(file, [&](const Container& service) {
        const Node* runtime = service.node->find("runtime");
        if (!runtime || runtime->text != "nvidia") return;
        const Node* reserved = compose_reserved(service);
        if (!reserved || !reserved->first) return;
        Finding* finding = report.add(*runtime->source, runtime->whole(), service.address,
                                      "runtime: nvidia beside a device reservation: the reservation alone does it");
        report.relate(finding, *reserved->source, reserved->key_span, "the reservation");
        if (finding && !runtime->merged && source_line_is_own(*runtime))
            report.fix(finding, *runtime->source, FixClass::safe, "remove runtime: nvidia",
                       {{lines_of(*runtime->source, runtime->whole()), ""}});
    });
}

}  // namespace stoker::lint
