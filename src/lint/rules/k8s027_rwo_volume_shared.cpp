// ReadWriteOnce binds a volume to one node. Replicas that cannot share that node never start.
#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

// The access mode when it is the only one and allows one writer; null otherwise.
const Node* k8s027_one_writer(const Workload& claim) {
    const Node* modes = claim.object->at({"spec", "accessModes"});
    if (!modes || modes->count() != 1 || !modes->first->known) return nullptr;
    const std::string_view mode = modes->first->text;
    return mode == "ReadWriteOnce" || mode == "ReadWriteOncePod" ? modes->first : nullptr;
}

bool k8s027_kept_apart(const Node& pod) {
    for (const Node& term :
         children(pod.at({"affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"})))
        if (const Node* key = term.find("topologyKey"); key && key->text == "kubernetes.io/hostname") return true;
    return false;
}

}  // namespace

void check_k8s027(const Bundle& bundle, Report& report) {
    each_object(bundle, [&](const Workload& deployment) {
        if (deployment.kind != "Deployment" || !deployment.pod || !asks_accelerator(deployment)) return;
        std::int64_t replicas = deployment.replicas.as_int().value_or(1);
        each_object(bundle, [&](const Workload& scaler) {
            if (scaler.kind != "HorizontalPodAutoscaler") return;
            const Node* name = scaler.object->at({"spec", "scaleTargetRef", "name"});
            const auto most = Value::of(scaler.object->at({"spec", "maxReplicas"})).as_int();
            if (name && name->text == deployment.name && most) replicas = std::max(replicas, *most);
        });
        if (replicas < 2) return;
        for (const Node& volume : children(deployment.pod->find("volumes"))) {
            const Node* name = volume.at({"persistentVolumeClaim", "claimName"});
            const Node* read_only = volume.at({"persistentVolumeClaim", "readOnly"});
            if (!name || !name->known || (read_only && read_only->text == "true")) continue;
            each_object(bundle, [&](const Workload& claim) {
                if (claim.kind != "PersistentVolumeClaim" || claim.name != name->text) return;
                if (claim.name_space != deployment.name_space && !claim.name_space.empty()) return;
                const Node* mode = k8s027_one_writer(claim);
                if (!mode) return;
                std::int64_t devices = 0;
                for (const Container& each : deployment.containers) devices += accelerators_of(each).value_or(0);
                // Eight devices are a whole node of every size that is sold.
                const bool apart =
                    mode->text == "ReadWriteOncePod" || k8s027_kept_apart(*deployment.pod) || devices * replicas > 8;
                Finding* finding = report.add(
                    *name->source, name->span, deployment.address,
                    fmt::format("{} replicas mount one {} claim: {}", replicas, mode->text,
                                apart ? "the second cannot start, since the volume is bound to the first one's node"
                                      : "all of them must fit on the node that has the volume"));
                if (!finding) return;
                if (!apart && finding->severity == Severity::error) finding->severity = Severity::warning;
                finding->advice = "use ReadWriteMany storage or a claim per replica (StatefulSet)";
                report.relate(finding, *mode->source, mode->span, "the access mode of the claim");
            });
        }
    });
}

}  // namespace stoker::lint
