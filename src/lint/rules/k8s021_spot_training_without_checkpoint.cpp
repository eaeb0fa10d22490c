// Spot nodes are taken back with seconds of notice: a training there that saves nothing starts over.
#include <array>

#include "base/text.h"
#include "lint/rules/common_containers.h"
#include "lint/shell/programs.h"

namespace stoker::lint {

namespace {

const Node* k8s021_spot(const Node& pod) {
    constexpr std::array<std::string_view, 5> kKeys = {"kubernetes.azure.com/scalesetpriority",
                                                       "cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible",
                                                       "eks.amazonaws.com/capacityType", "karpenter.sh/capacity-type"};
    const auto is_spot = [&](std::string_view key, std::string_view value) {
        for (const std::string_view each : kKeys)
            if (key == each) return equals_ignore_case(value, "spot") || value == "true";
        return false;
    };
    for (const Node& each : children(pod.find("nodeSelector")))
        if (is_spot(each.key, each.text)) return &each;
    for (const Node& each : children(pod.find("tolerations"))) {
        const Node *key = each.find("key"), *value = each.find("value");
        if (key && is_spot(key->text, value ? value->text : std::string_view("true"))) return key;
        if (key && key->text == "kubernetes.azure.com/scalesetpriority" && !value) return key;
    }
    return nullptr;
}

// Anything that keeps state: a claim, a bucket, or words about checkpoints and outputs.
bool k8s021_saves(const Workload& workload) {
    for (const Node& volume : children(workload.pod->find("volumes")))
        for (const std::string_view kind :
             {"persistentVolumeClaim", "csi", "nfs", "azureFile", "hostPath", "ephemeral"})
            if (volume.find(kind)) return true;
    if (workload.object->at({"spec", "volumeClaimTemplates"})) return true;
    const auto about_saving = [](std::string_view text) {
        for (const std::string_view word : {"checkpoint", "ckpt", "save", "resume", "output", "s3://", "gs://", "abfs",
                                            "blob.core", "az://", "hub_model"})
            if (contains_nocase(text, word)) return true;
        return false;
    };
    for (const Container& container : workload.containers) {
        for (const EnvVar& variable : container.environment)
            if (about_saving(variable.name) || (variable.value.present() && about_saving(variable.value.text)))
                return true;
        for (const Value& word : container.command)
            if (about_saving(word.text)) return true;
    }
    return false;
}

}  // namespace

void check_k8s021(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        const Node* spot = k8s021_spot(*workload.pod);
        if (!spot || !asks_accelerator(workload)) return;
        const Value* training = nullptr;
        for (const Container& container : workload.containers)
            if (!training) training = training_word(container);
        // A job of the training operators says by its kind what it is.
        const Node* kind = one_of(workload.kind, {"PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob",
                                                  "TrainJob", "ElasticJob"})
                               ? workload.object->find("kind")
                               : nullptr;
        const Value by_kind = kind && !training ? Value::of(kind) : Value();
        if (by_kind.present()) training = &by_kind;
        if (!training || !training->source || k8s021_saves(workload)) return;
        Finding* finding = report.add(*training->source, training->span, workload.address,
                                      "a training on spot nodes that saves no checkpoint: an eviction loses all of it");
        report.relate(finding, *spot->source, spot->span, "spot nodes");
        if (finding) finding->advice = "save checkpoints to a volume or to object storage, and resume from them";
    });
}

}  // namespace stoker::lint
