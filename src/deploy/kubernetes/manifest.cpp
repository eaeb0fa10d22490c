#include "deploy/kubernetes/manifest.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "base/document.h"
#include "base/embedded.h"
#include "base/paths.h"
#include "base/text.h"
#include "base/thread_pools.h"
#include "base/tsv.h"
#include "catalog/gpu_names.h"
#include "deploy/kubernetes/look_script.h"
#include "deploy/kubernetes/objects.h"
#include "deploy/kubernetes/rank_script.h"
#include "deploy/local/launcher.h"
#include "deploy/local/rank_environment.h"
#include "deploy/shared_words.h"

namespace stoker::kubernetes {
namespace {

constexpr std::size_t kMostScript = 120'000;  // Linux takes no argument over 128 KiB (MAX_ARG_STRLEN)
constexpr int kMostPods = 5000;
// By NVIDIA's GPU feature discovery, AMD's node labeller, GKE and AKS; the first that a node has tells its model.
constexpr std::array kModelLabels = {"nvidia.com/gpu.product", "amd.com/gpu.product-name",
                                     "cloud.google.com/gke-accelerator"};

bool can_be_written(std::string_view text) {
    return find_invalid_utf8(text) == std::string_view::npos && text.find('\0') == std::string_view::npos;
}

bool is_variable(std::string_view name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    return std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

// Keys of taints that mark pools of GPUs: data/engines/kubernetes_taints.tsv.
bool marks_gpus(std::string_view key) {
    static const std::string_view file = "engines/kubernetes_taints.tsv";
    static const auto table = Tsv::read(embedded_bytes(file), file);
    for (std::size_t i = 0; table && i < table->rows(); ++i)
        if (table->at(i, 0) == key) return true;
    return false;
}

// The kubelet reads $(X) as a variable and $$ as a dollar, in words and in values.
std::string escaped(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool meant = text[i] == '$' && i + 1 < text.size() && (text[i + 1] == '$' || text[i + 1] == '(');
        result += meant ? std::string("$$") : std::string(1, text[i]);
    }
    return result;
}

Json variables(const GangSpec& gang, const std::map<std::string, std::string>& shared, const PodShape& shape, int local,
               const std::string& name) {
    const auto text = [](auto number) { return std::to_string(number); };
    const RankSpec& first = gang.ranks[0];
    std::map<std::string, std::string> all =
        thread_pool_environment(planned_threads(first.cpu_milli, first.gpus), first.gpus, shared);
    all["PYTHONUNBUFFERED"] = "1";
    if (gang.ranks[0].gpus == 0) {
        for (const auto& [key, value] : kKeepMemory) all[key] = value;
        all["CUDA_VISIBLE_DEVICES"] = "";
    } else {
        all["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    }
    using Pairs = std::initializer_list<std::pair<const char*, std::string>>;
    for (const auto& [key, value] :
         Pairs{{"WORLD_SIZE", text(gang.ranks.size())},
               {"OMPI_COMM_WORLD_SIZE", text(gang.ranks.size())},
               {"MASTER_ADDR", shape.pods > 1 ? fmt::format("{}-0.{}", name, kRendezvous) : "127.0.0.1"},
               {"MASTER_PORT", "29500"},
               {"STOKER_OP", name.substr(name.find('-') + 1)},
               {"STOKER_RUN", gang.attempt.run.text()},
               {"STOKER_EPOCH", text(gang.epoch)}})
        all[key] = value;
    for (const auto& [key, value] : shared) all[key] = value;
    // Whatever the run says: the script counts by the first, and every engine says the last like this.
    for (const auto& [key, value] : Pairs{{"LOCAL_RANK", text(local)},
                                          {"OMPI_COMM_WORLD_LOCAL_RANK", text(local)},
                                          {"LOCAL_WORLD_SIZE", text(shape.per_pod)},
                                          {"STOKER_ATTEMPT", text(gang.attempt.number)}})
        all[key] = value;
    Json list = Json::array();
    for (const auto& [key, value] : all) list.push(Json::object().set("name", key).set("value", escaped(value)));
    return list;
}

Json words_of(const std::string& script, const GangSpec& gang) {
    Json words = Json::array();
    words.push("/bin/sh").push("-c").push(escaped(script)).push("stoker-rank");
    if (words_are_shared(gang))
        for (const std::string& word : gang.ranks[0].arguments) words.push(escaped(word));
    return words;
}

Json resources_of(const RankSpec& rank, const GpuPlace& place, bool devices) {
    Json requests = Json::object(), limits = Json::object();
    requests.set("cpu", fmt::format("{}m", std::max<std::int64_t>(1, rank.cpu_milli)));
    if (rank.memory_bytes > 0)
        for (Json* each : {&requests, &limits}) each->set("memory", std::to_string(rank.memory_bytes));
    if (rank.gpus > 0 && devices)
        for (Json* each : {&requests, &limits}) each->set(place.resource, std::to_string(rank.gpus));
    return Json::object().set("requests", std::move(requests)).set("limits", std::move(limits));
}

// What the largest rank asks for, since the pods of a Job are alike.
RankSpec largest_of(const GangSpec& gang) {
    RankSpec most;
    for (const RankSpec& rank : gang.ranks) {
        most.cpu_milli = std::max(most.cpu_milli, rank.cpu_milli);
        most.memory_bytes = std::max(most.memory_bytes, rank.memory_bytes);
        most.gpus = std::max(most.gpus, rank.gpus);
        if (!rank.gpu_model.empty()) most.gpu_model = rank.gpu_model;
    }
    return most;
}

// Where the step file of a pod that shares no folder with the server lies: a folder that its containers share. None:
// they see it anyway, or it would hide what the image has there.
std::string step_folder_of(const GangSpec& gang, const KubernetesOptions& options) {
    const std::string folder = gang.measure.lines.substr(0, gang.measure.lines.rfind('/'));
    if (!gang.measure.lines.starts_with('/') || folder.empty() || is_shared(options, folder)) return "";
    return lies_in(gang.folder, folder) ? "" : folder;
}

Json volumes_of(const KubernetesOptions& options, const GangSpec& gang, bool gpus, Json& mounts) {
    Json volumes = Json::array();
    const Json orders =
        Json::object()
            .set("path", "orders")
            .set("fieldRef", Json::object().set("fieldPath", fmt::format("metadata.annotations['{}']", kOrders)));
    volumes.push(Json::object()
                     .set("name", "orders")
                     .set("downwardAPI", Json::object().set("items", Json::array().push(orders))));
    mounts.push(Json::object().set("name", "orders").set("mountPath", kOrdersFolder).set("readOnly", true));
    if (gpus) {
        // NCCL and data loaders share memory between processes; the default is 64 MiB.
        volumes.push(Json::object().set("name", "shm").set("emptyDir", Json::object().set("medium", "Memory")));
        mounts.push(Json::object().set("name", "shm").set("mountPath", "/dev/shm"));
    }
    if (is_looked_at(gang.measure)) {
        volumes.push(Json::object().set("name", kMeasures).set("emptyDir", Json::object()));
        mounts.push(Json::object().set("name", kMeasures).set("mountPath", kMeasureFolder));
        if (const std::string folder = step_folder_of(gang, options); !folder.empty()) {
            volumes.push(Json::object().set("name", "steps").set("emptyDir", Json::object()));
            mounts.push(Json::object().set("name", "steps").set("mountPath", folder));
        }
    }
    for (std::size_t i = 0; i < options.shared.size(); ++i) {
        const SharedFolder& each = options.shared[i];
        const std::string name = fmt::format("shared-{}", i);
        Json volume = Json::object().set("name", name);
        if (each.claim.empty())
            volume.set("hostPath", Json::object().set("path", each.path).set("type", "Directory"));
        else
            volume.set("persistentVolumeClaim", Json::object().set("claimName", each.claim));
        volumes.push(std::move(volume));
        mounts.push(Json::object().set("name", name).set("mountPath", each.path));
    }
    return volumes;
}

Json place_of_pod(const GpuPlace& place, const KubernetesOptions& options, const GangSpec& gang, bool gpus, Json pod) {
    if (!options.node_selector.empty()) {
        Json selector = Json::object();
        for (const auto& [key, value] : options.node_selector) selector.set(key, value);
        pod.set("nodeSelector", std::move(selector));
    }
    Json tolerations = Json::array();
    bool any = false;
    for (const std::string& key : options.tolerate) {
        tolerations.push(Json::object().set("key", key).set("operator", "Exists"));
        any = true;
    }
    if (gpus)
        for (const KubeTaint& taint : place.tolerations) {
            tolerations.push(Json::object()
                                 .set("key", taint.key)
                                 .set("operator", "Equal")
                                 .set("value", taint.value)
                                 .set("effect", taint.effect));
            any = true;
        }
    if (any) pod.set("tolerations", std::move(tolerations));
    Json term = Json::object();
    const bool by_model = gpus && !place.label.empty();
    if (by_model) {
        Json values = Json::array();
        for (const std::string& each : place.products) values.push(each);
        term.set("matchExpressions",
                 Json::array().push(
                     Json::object().set("key", place.label).set("operator", "In").set("values", std::move(values))));
    }
    // By name, and one each: that is all that matchFields takes.
    if (!gang.avoid.empty()) {
        Json names = Json::array();
        for (const std::string& each : gang.avoid)
            names.push(Json::object()
                           .set("key", "metadata.name")
                           .set("operator", "NotIn")
                           .set("values", Json::array().push(each)));
        term.set("matchFields", std::move(names));
    }
    if (by_model || !gang.avoid.empty()) {
        pod.set("affinity",
                Json::object().set(
                    "nodeAffinity",
                    Json::object().set("requiredDuringSchedulingIgnoredDuringExecution",
                                       Json::object().set("nodeSelectorTerms", Json::array().push(std::move(term))))));
    }
    return pod;
}

// Beside the ranks from before they start until they have ended; it takes nothing from them that they were promised.
Json measuring_container(const GangSpec& gang, const PodShape& shape, const std::string& image, const Json& mounts) {
    const Json nothing = Json::object().set("cpu", "0").set("memory", "0");
    return Json::object()
        .set("name", kMeasures)
        .set("image", image)
        .set("restartPolicy", "Always")
        .set("command",
             Json::array().push("/bin/sh").push("-c").push(escaped(measures_script(gang.measure, shape.per_pod))))
        .set("env", Json::array().push(Json::object().set("name", "LC_ALL").set("value", "C")))
        .set("resources", Json::object().set("requests", nothing).set("limits", Json::object().set("memory", "64Mi")))
        .set("volumeMounts", mounts);
}

Json failure_policy() {
    // An eviction, a drain or a preemption ends the attempt as such, and is no failure of the work; the engine itself
    // starts nothing a second time. Index 0 stands in the Job's own words when its pods are gone.
    const Json disruption =
        Json::object()
            .set("action", "FailJob")
            .set("onPodConditions",
                 Json::array().push(Json::object().set("type", "DisruptionTarget").set("status", "True")));
    return Json::object().set("rules", Json::array().push(disruption));
}

}  // namespace

std::string container_name(int local_rank) {
    return fmt::format("rank-{}", local_rank);
}

const ContainerView* container_of(const PodView& pod, int local_rank) {
    const auto found = pod.containers.find(container_name(local_rank));
    return found == pod.containers.end() ? nullptr : &found->second;
}

bool is_shared(const KubernetesOptions& options, const std::string& path) {
    return std::any_of(options.shared.begin(), options.shared.end(),
                       [&](const SharedFolder& each) { return lies_in(path, each.path); });
}

PodShape shape_of(const GangSpec& gang) {
    const int ranks = static_cast<int>(gang.ranks.size());
    const bool looked_at = is_looked_at(gang.measure);
    if (gang.nodes > 0) return {.pods = gang.nodes, .per_pod = ranks / gang.nodes, .looked_at = looked_at};
    return {.pods = ranks, .per_pod = 1, .looked_at = looked_at};
}

std::string gpu_resource_of(const KubeNode& node) {
    for (const auto& [resource, value] : node.allocatable)
        if (value > 0 && is_gpu_resource(resource)) return resource;
    return {};
}

std::string gpu_model_of(const KubeNode& node, const KubernetesOptions& options) {
    for (const char* label : kModelLabels)
        if (const auto found = node.labels.find(label); found != node.labels.end()) {
            const auto known = options.gpu_models.find(found->second);
            return known == options.gpu_models.end() ? found->second : known->second;
        }
    return {};
}

GpuPlace gpu_place(const std::vector<KubeNode>& nodes, const KubernetesOptions& options, const std::string& model) {
    GpuPlace place;
    std::vector<std::string> offered;
    const auto add = [](std::vector<std::string>& list, const std::string& word) {
        if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
    };
    for (const KubeNode& node : nodes) {
        const std::string resource = gpu_resource_of(node), found = gpu_model_of(node, options);
        if (resource.empty()) continue;
        add(offered, found.empty() ? resource : resource + " (" + found + ")");
        if ((!model.empty() && !names_gpu(model, found)) || (!place.resource.empty() && resource != place.resource))
            continue;
        place.resource = resource;
        if (!model.empty())
            for (const char* label : kModelLabels)
                if (const auto value = node.labels.find(label); value != node.labels.end()) {
                    place.label = label;
                    add(place.products, value->second);
                    break;
                }
        for (const KubeTaint& taint : node.taints) {
            const bool known = std::any_of(place.tolerations.begin(), place.tolerations.end(),
                                           [&](const KubeTaint& each) { return each.text() == taint.text(); });
            if (!known && marks_gpus(taint.key)) place.tolerations.push_back(taint);
        }
    }
    place.offered = join(offered, ", ");
    return place;
}

Outcome check_gang_for_kubernetes(const OperationId& operation, const GangSpec& gang,
                                  const KubernetesOptions& options) {
    const auto wrong = [](const std::string& why) { return rejected(Cause::user_error, why); };
    if (!OperationId::parse(operation.text())) return wrong("not an id of an operation: " + operation.text());
    if (!gang.attempt || gang.ranks.empty()) return wrong("a gang has an attempt and at least one rank");
    if (gang.image.empty() && options.image.empty())
        return wrong("on Kubernetes a run needs an image: add image: to the file, or engine.image to server.yaml");
    if (gang.image.starts_with('/')) return wrong("the nodes cannot pull a folder: push the image to a registry");
    if (gang.nodes > 0 && gang.ranks.size() % static_cast<std::size_t>(gang.nodes) != 0)
        return wrong(fmt::format("{} ranks cannot be spread evenly over {} nodes", gang.ranks.size(), gang.nodes));
    if (shape_of(gang).pods > kMostPods) return wrong(fmt::format("more than {} pods", kMostPods));
    if (gang.one_switch)
        return wrong("this engine knows no switches: leave topology: require out, or name a node_selector of one");
    for (std::size_t i = 0; i < gang.ranks.size(); ++i) {
        const RankSpec& rank = gang.ranks[i];
        const auto bad = [&](const std::string& why) { return wrong(fmt::format("rank {}: {}", i, why)); };
        if (!rank.node.empty()) return bad("the scheduler chooses the node, and " + printable(rank.node) + " is named");
        if (rank.arguments.empty() || rank.arguments[0].empty()) return bad("there is no program to run");
        if (rank.gpus > 0 && rank.gpu_milli != 1000) return bad("this engine gives whole GPUs, not parts of them");
        for (const std::string& argument : rank.arguments)
            if (!can_be_written(argument)) return bad("the argument " + printable(argument) + " is not UTF-8");
        for (const auto& [key, value] : rank.environment)
            if (!is_variable(key) || !can_be_written(value))
                return bad("the environment variable " + printable(key) + " cannot be set");
    }
    const PodShape shape = shape_of(gang);
    const std::size_t size =
        std::max(rank_script(gang, shape.per_pod).size(), check_script(gang, shape.per_pod).size());
    if (size > kMostScript)
        return wrong(fmt::format("what its ranks do differs in {} bytes, and {} fit", size, kMostScript));
    return confirmed();
}

Json job_manifest(const OperationId& operation, const GangSpec& gang, const GpuPlace& place,
                  const KubernetesOptions& options) {
    const PodShape shape = shape_of(gang);
    const std::string name = job_name(operation);
    const RankSpec most = largest_of(gang);
    const bool gpus = most.gpus > 0;
    const std::string image = gang.image.empty() ? options.image : gang.image;
    Json labels = Json::object()
                      .set("app.kubernetes.io/managed-by", "stoker")
                      .set("app.kubernetes.io/name", gang.attempt.run.text())
                      .set(kSite, operation.site)
                      .set(kOperation, operation.text());
    Json mounts = Json::array();
    Json volumes = volumes_of(options, gang, gpus, mounts);
    // The same in each container, of however many ranks: made once.
    const std::map<std::string, std::string> shared = shared_environment(gang);
    const std::string script_of_rank = rank_script(gang, shape.per_pod);
    const auto container = [&](const std::string& named, const std::string& script, int local, bool devices) {
        Json made = Json::object()
                        .set("name", named)
                        .set("image", image)
                        .set("command", words_of(script, gang))
                        .set("env", variables(gang, shared, shape, local, name))
                        .set("resources", resources_of(most, place, devices))
                        .set("volumeMounts", mounts);
        if (gang.folder.starts_with('/')) made.set("workingDir", gang.folder);
        return made;
    };
    Json containers = Json::array();
    for (int local = 0; local < shape.per_pod; ++local)
        containers.push(container(container_name(local), script_of_rank, local, true));
    Json pod = Json::object()
                   .set("restartPolicy", "Never")
                   .set("subdomain", kRendezvous)
                   .set("terminationGracePeriodSeconds", std::max(1, options.notice_s))
                   .set("automountServiceAccountToken", false)
                   .set("enableServiceLinks", false);
    if (!options.service_account.empty()) pod.set("serviceAccountName", options.service_account);
    if (!options.priority_class.empty()) pod.set("priorityClassName", options.priority_class);
    if (!options.pull_secrets.empty()) {
        Json secrets = Json::array();
        for (const std::string& each : options.pull_secrets) secrets.push(Json::object().set("name", each));
        pod.set("imagePullSecrets", std::move(secrets));
    }
    pod = place_of_pod(place, options, gang, gpus, std::move(pod));
    Json before = Json::array().push(container(kCheck, check_script(gang, shape.per_pod), 0, false));
    if (shape.looked_at) before.push(measuring_container(gang, shape, image, mounts));
    pod.set("initContainers", std::move(before))
        .set("containers", std::move(containers))
        .set("volumes", std::move(volumes));
    Json job_labels = labels;
    if (!options.queue.empty()) job_labels.set(kQueueLabel, options.queue);
    return Json::object()
        .set("apiVersion", "batch/v1")
        .set("kind", "Job")
        .set("metadata",
             Json::object()
                 .set("name", name)
                 .set("labels", std::move(job_labels))
                 .set("annotations", Json::object().set(kGang, kept_gang(gang)).set(kEpoch, std::to_string(gang.epoch)))
                 .set("finalizers", Json::array().push(kFinalizer)))
        .set("spec", Json::object()
                         .set("suspend", shape.pods > 1 || !options.queue.empty())
                         .set("completionMode", "Indexed")
                         .set("completions", shape.pods)
                         .set("parallelism", shape.pods)
                         .set("backoffLimit", 0)
                         .set("podFailurePolicy", failure_policy())
                         .set("template", Json::object()
                                              .set("metadata", Json::object().set("labels", std::move(labels)))
                                              .set("spec", std::move(pod))));
}

Json rendezvous_service() {
    const Json managed = Json::object().set("app.kubernetes.io/managed-by", "stoker");
    return Json::object()
        .set("apiVersion", "v1")
        .set("kind", "Service")
        .set("metadata", Json::object().set("name", kRendezvous).set("labels", managed))
        .set("spec", Json::object()
                         .set("clusterIP", "None")
                         // Ranks look for the first before any of them is ready.
                         .set("publishNotReadyAddresses", true)
                         .set("selector", managed));
}

std::string kept_gang(const GangSpec& gang) {
    const PodShape shape = shape_of(gang);
    return Json::object()
        .set("run", gang.attempt.run.text())
        .set("attempt", static_cast<std::int64_t>(gang.attempt.number))
        .set("epoch", std::to_string(gang.epoch))
        .set("pods", shape.pods)
        .set("per_pod", shape.per_pod)
        .set("looked_at", shape.looked_at)
        .set("told", shape.told)
        .set("step_pattern", gang.measure.step_pattern)
        .set("interface", gang.measure.interface)
        .set("log_folder", gang.log_folder)
        .set("max_log_bytes", gang.max_log_bytes)
        .set("memory_bytes", largest_of(gang).memory_bytes)
        .dump(0);
}

Result<KeptGang> read_kept_gang(const OperationId& operation, std::string_view text) {
    TRY(const Document document, Document::parse_json(text, kGang));
    const Node& root = document.root();
    const auto number = [&](const char* key) {
        const Node* found = root.find(key);
        return found == nullptr ? 0.0 : found->number;
    };
    const auto run = RunId::parse(text_at(root, "run"));
    KeptGang kept;
    kept.order.operation = operation;
    kept.order.gang.attempt = {run.value_or(RunId{}), static_cast<std::uint32_t>(number("attempt"))};
    kept.order.gang.epoch = std::strtoull(std::string(text_at(root, "epoch")).c_str(), nullptr, 10);
    kept.order.gang.log_folder = text_at(root, "log_folder");
    kept.order.gang.max_log_bytes = static_cast<std::int64_t>(number("max_log_bytes"));
    kept.order.gang.measure.step_pattern = text_at(root, "step_pattern");
    kept.order.gang.measure.interface = text_at(root, "interface");
    const Node* looked_at = root.find("looked_at");
    const Node* told = root.find("told");
    kept.shape = {.pods = static_cast<int>(number("pods")),
                  .per_pod = static_cast<int>(number("per_pod")),
                  .looked_at = looked_at != nullptr && looked_at->boolean,
                  .told = number("pods") > 1 || (told != nullptr && told->boolean)};
    if (!run || kept.shape.pods < 1 || kept.shape.pods > kMostPods || kept.shape.per_pod < 1 ||
        kept.shape.per_pod > 1024)
        return Error(ErrorKind::invalid,
                     fmt::format("the annotation {} of {} was changed", kGang, job_name(operation)));
    kept.order.gang.ranks.resize(static_cast<std::size_t>(kept.shape.pods * kept.shape.per_pod));
    for (RankSpec& rank : kept.order.gang.ranks) rank.memory_bytes = static_cast<std::int64_t>(number("memory_bytes"));
    return kept;
}

}  // namespace stoker::kubernetes
