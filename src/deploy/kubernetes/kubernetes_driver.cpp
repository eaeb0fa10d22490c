#include "deploy/kubernetes/kubernetes_driver.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/kubernetes/cluster_watch.h"
#include "deploy/kubernetes/log_copy.h"
#include "deploy/kubernetes/look_script.h"
#include "deploy/kubernetes/manifest.h"
#include "deploy/kubernetes/node_list.h"
#include "deploy/kubernetes/reasons.h"
#include "deploy/kubernetes/tender.h"
#include "deploy/local/launcher.h"
#include "deploy/local/local_answers.h"
#include "deploy/local/measure_file.h"
#include "deploy/local/rank_measures.h"
#include "deploy/shared_look.h"
#include "io/process.h"
#include "io/worker.h"

namespace stoker {
namespace kubernetes {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kFirstLook = 20;
constexpr Clock::duration kNodesAge = std::chrono::seconds(2);
constexpr auto kEndPause = std::chrono::milliseconds(50);
constexpr std::size_t kMostFacts = 1000, kMostRemoved = 64;

class KubernetesDriver final : public LocalAnswers<Driver> {
public:
    KubernetesDriver(KubernetesOptions options, std::shared_ptr<ApiClient> api)
        : options_(std::move(options)),
          api_(std::move(api)),
          paths_(options_.space),
          gangs_(options_.gang_wait_s),
          logs_(
              api_, options_.space, options_.folder, [this](const LogSource& source) { return has_ended(source); },
              measure_book_),
          watch_(api_, paths_, gangs_),
          tender_(api_, paths_, gangs_, logs_) {}

    // Finds what an earlier driver left.
    Status adopt() {
        std::error_code code;
        std::filesystem::create_directories(options_.folder, code);
        if (code)
            return Error(ErrorKind::unavailable, "cannot use the folder " + options_.folder + ": " + code.message());
        const Deadline deadline = after(kFirstLook);
        std::string version = "no answer yet";
        if (const auto said = api_->ask({.target = "/version"}, deadline)) {
            version = "Kubernetes " + printable(text_at(said->root(), "gitVersion"), 40);
            sidecars_ = knows_sidecars(said->root());
        }
        if (Status looked = watch_.look(deadline); !looked) {
            const ErrorKind kind = looked.error().kind();
            if (kind != ErrorKind::unavailable && kind != ErrorKind::timed_out)
                return std::move(looked).while_doing("listing Jobs and pods of the namespace " + options_.space);
            version += ": " + looked.error().message();
        }
        detail_ = fmt::format("{}, namespace {}{}", version, options_.space,
                              options_.queue.empty() ? "" : ", Kueue's queue " + options_.queue);
        watch_.start();
        tender_.start();
        return done();
    }

    Capabilities capabilities() const override {
        return {.gang = true,
                .follows_logs = true,
                .limits_memory = true,
                .isolates_devices = true,
                .runs_images = true,
                .kills_trees = true,
                .signal_notice_s = 86400,
                .queues = true,
                .binds = true,
                .preempts = true,
                .detail = detail_};
    }

    Result<std::vector<NodeInfo>> discover(Deadline deadline) override {
        TRY(const std::vector<KubeNode> all, list_nodes(*api_, deadline));
        std::vector<NodeInfo> found;
        for (const KubeNode& node : all) {
            if (node.unschedulable || !node.ready || !is_wanted(node)) continue;
            const auto amount = [&](const char* key) {
                const auto each = node.allocatable.find(key);
                return each == node.allocatable.end() ? 0.0 : each->second;
            };
            NodeInfo info{.name = node.name,
                          .cpu_milli = std::llround(amount("cpu") * 1000),
                          .memory_bytes = std::llround(amount("memory"))};
            const auto gpus = static_cast<int>(node.gpus());
            for (int i = 0; i < gpus && i < 1024; ++i)
                info.devices.push_back({.id = std::to_string(i), .model = gpu_model_of(node, options_)});
            if (const auto zone = node.labels.find("topology.kubernetes.io/zone"); zone != node.labels.end())
                info.topology = zone->second;
            found.push_back(std::move(info));
        }
        return found;
    }

    HealthReport check(const std::string& name, HealthLevel level, Deadline deadline) override {
        if (is_over(deadline)) return not_looked_at(name);
        const auto all = list_nodes(*api_, deadline);
        if (!all) return {};
        for (const KubeNode& node : *all)
            if (node.name == name) return report_of_node(node, level);
        return {};
    }

    Outcome launch(const OperationId& operation, const GangSpec& asked, Deadline deadline) override {
        GangSpec gang = asked;
        gangs_.mine(operation.site);
        if (gang.log_folder.empty()) gang.log_folder = options_.folder + "/" + operation.text();
        if (!gang.folder.empty()) gang.folder = absolute_path(gang.folder);
        gang.log_folder = absolute_path(gang.log_folder);
        if (Outcome sound = check_gang_for_kubernetes(operation, gang, options_);
            sound.certainty == Certainty::rejected)
            return sound;
        if (auto old = gangs_.refuse_epoch(gang.epoch)) return *old;
        GpuPlace place;
        const auto most = std::max_element(gang.ranks.begin(), gang.ranks.end(),
                                           [](const RankSpec& a, const RankSpec& b) { return a.gpus < b.gpus; });
        if (most->gpus > 0) {
            // What others read a moment ago offers what it did; that there is none is only believed of now.
            for (const auto age : {kNodesAge, Clock::duration::zero()}) {
                const auto all = launch_nodes_.get(Clock::now() - age, deadline, "what nodes there are",
                                                   [&] { return list_nodes(*api_, deadline); });
                if (!all) return unknown(all.error().message());
                place = gpu_place(**all, options_, most->gpu_model);
                if (!place.resource.empty()) break;
            }
            if (place.resource.empty())
                return rejected(Cause::no_capacity,
                                fmt::format("no node of the cluster offers {}; {}",
                                            most->gpu_model.empty() ? "GPUs" : most->gpu_model,
                                            place.offered.empty()
                                                ? "none has a GPU: is there a device plug-in?"
                                                : "there are: " + place.offered + "; engine.gpu_models names them"));
        }
        if (is_looked_at(gang.measure)) {
            const auto can = has_sidecars(deadline);
            if (!can) return unknown(can.error().message());
            if (!*can) gang.measure = {};
        }
        if (shape_of(gang).pods > 1)
            if (Outcome made = make_rendezvous(deadline); made.certainty != Certainty::confirmed) return made;
        return submit(operation, job_manifest(operation, gang, place, options_), deadline);
    }

    Outcome notify(const OperationId& launched, std::uint64_t epoch, int signal_number, Deadline deadline) override {
        gangs_.mine(launched.site);
        if (auto old = gangs_.refuse_epoch(epoch)) return *old;
        const auto there = fetch(launched, deadline);
        if (!there && there.error().kind() == ErrorKind::not_found)
            return rejected(Cause::platform, "there is no gang " + launched.text());
        if (!there) return unknown(there.error().message());
        if (gangs_.is_over(launched)) return rejected(Cause::platform, launched.text() + " has ended");
        if (!gangs_.has_begun(launched)) return rejected(Cause::platform, launched.text() + " has not started");
        if (Status kept = tender_.patch_job(launched, annotation_patch(kEpoch, std::to_string(epoch)), deadline); !kept)
            return unknown(kept.error().message());
        const std::string order = fmt::format("go {}:{}", wall_clock_us(), signal_number);
        int told = 0;
        for (const PodView& pod : gangs_.pods_of(launched)) {
            if (pod.over()) continue;
            if (Status sent = tender_.patch_pod(pod.name, annotation_patch(kOrders, order), deadline); !sent)
                return unknown(sent.error().message());
            ++told;
        }
        if (told == 0) return rejected(Cause::platform, launched.text() + " has no pod that runs");
        return confirmed(fmt::format("{} pods are told; each hands it on when its kubelet shows it the order", told));
    }

    Outcome cancel(const OperationId& launched, std::uint64_t epoch, double grace_s, Deadline deadline) override {
        gangs_.mine(launched.site);
        if (auto old = gangs_.refuse_epoch(epoch)) return *old;
        const auto there = fetch(launched, deadline);
        if (!there && there.error().kind() == ErrorKind::not_found) {
            gangs_.lost_job(launched);
            return confirmed("there is nothing of " + launched.text());
        }
        if (!there) return unknown(there.error().message());
        if (gangs_.is_over(launched)) return confirmed();
        Json patch = annotation_patch(kCalledOff, std::to_string(epoch));
        // Suspended, so that its controller makes no pod any more; what there is goes below, with our grace.
        if (there->ended == JobEnd::none) patch.set("spec", Json::object().set("suspend", true));
        if (Status told = tender_.patch_job(launched, patch, deadline); !told) return unknown(told.error().message());
        return wait_for_end(launched, grace_s, deadline);
    }

    Outcome release(const OperationId& launched, Deadline deadline) override {
        gangs_.mine(launched.site);
        for (bool first = true;; first = false) {
            const auto answer = api_->ask({.target = paths_.job(launched)}, deadline);
            if (!answer && answer.error().kind() == ErrorKind::not_found) break;
            if (!answer) return unknown(answer.error().message());
            const auto job = read_job(answer->root());
            if (!job) return rejected(Cause::platform, job_name(launched) + " is not ours");
            gangs_.see(*job);
            if (job->end.empty() && !gangs_.is_over(launched))
                return rejected(Cause::platform, launched.text() + " has not ended");
            if (first) remove_pods(launched, deadline);
            if (Status gone = remove(*job, answer->root(), deadline);
                !gone && gone.error().kind() != ErrorKind::conflict)
                return unknown(gone.error().message());
            if (Clock::now() >= deadline) return unknown("its Job is told to go, and is still there");
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        gangs_.forget(launched);
        logs_.forget(launched);
        return confirmed();
    }

    Result<OursListing> list_ours(const std::string& site, Deadline deadline) override {
        if (!gangs_.knows_its_site()) gangs_.mine(site);
        OursListing listing;
        std::set<OperationId> there;
        // A listing that begins now: what was made before it is in it.
        const auto listed =
            api_->list(paths_.jobs, "labelSelector=" + in_query(kManagedBy), deadline, [&](const Node& item) {
                const auto job = read_job(item);
                if (!job) return;
                there.insert(job->operation);
                gangs_.see(*job);
            });
        listing.complete = listed.ok();
        if (listed) {
            gangs_.only_jobs(there);
            for (const Ours& each : gangs_.known("")) there.insert(each.operation);
            logs_.only(there);
        }
        listing.items = gangs_.known(site);
        return listing;
    }

    Result<std::vector<Fact>> observe(std::uint64_t cursor, Deadline deadline) override {
        auto facts = gangs_.facts_after(cursor, kMostFacts, deadline);
        // What ranks did has its time by the clocks of the cluster: a server that is an hour ahead would charge
        // nothing.
        if (const std::int64_t ahead_us = api_->clock_ahead_us(); ahead_us != 0)
            for (Fact& fact : facts)
                if (fact.kind == FactKind::rank_started || fact.kind == FactKind::rank_ended ||
                    fact.kind == FactKind::gang_ended)
                    fact.at_us += ahead_us;
        return facts;
    }
    void interrupt() override { gangs_.wake(); }

    // ---- what lies in folders: known where pods see them by the same name
    Status look_for(const PrerequisitesSpec& wanted, const PrerequisitesPlace& place,
                    Deadline deadline) const override {
        // Programs and modules are those of the image.
        PrerequisitesSpec shared = wanted;
        shared.commands.clear();
        shared.python_modules.clear();
        shared.driver.clear();
        std::erase_if(shared.paths, [&](const std::string& path) {
            return !is_shared(path.starts_with('/') ? path : place.folder + "/" + path);
        });
        if (!is_shared(place.folder)) shared.disk_bytes = 0;
        return LocalAnswers<Driver>::look_for(shared, place, deadline);
    }
    Result<std::string> pin(const std::string& image, const ImagePlace&, Deadline deadline) const override {
        return pin_image_of_nodes(image, deadline);
    }
    Result<WorkFiles> list_files(const std::string& folder, std::size_t most, Deadline deadline) const override {
        if (!is_shared(folder)) return not_shared(folder);
        return LocalAnswers<Driver>::list_files(folder, most, deadline);
    }
    Result<FilePart> read_file(const std::string& folder, const std::string& path, std::int64_t from, std::size_t most,
                               Deadline deadline) const override {
        if (!is_shared(folder)) return not_shared(folder);
        return LocalAnswers<Driver>::read_file(folder, path, from, most, deadline);
    }
    Result<Checkpoints> list_checkpoints(const std::string& folder, Deadline deadline) const override {
        if (!is_shared(folder)) return not_shared(folder);
        return LocalAnswers<Driver>::list_checkpoints(folder, deadline);
    }
    // What the containers beside the ranks tell. Where a cluster has none: steps, from the copies of logs and from
    // files in a folder that pods share.
    Result<Measures> read_measures(const MeasuredGang& gang, const MeasureQuery& query, Deadline) const override {
        if (gangs_.is_looked_at(gang.launched) || has_measure_files(gang.log_folder))
            return read_measure_files(gang.log_folder, query);
        MeasuredGang here = gang;
        for (LiveRank& rank : here.live) rank.pid = 0;
        for (std::string* file : {&here.measure.lines, &here.measure.heartbeat})
            if (!is_shared(*file)) file->clear();
        here.measure.folders.clear();
        return measures_.read(here, query);
    }
    Status remove_checkpoint(const std::string& folder, Deadline) override {
        if (!is_shared(folder)) return not_shared(folder);
        if (remove_tree(folder)) return done();
        return Error(ErrorKind::unavailable, "cannot remove " + printable(folder));
    }

private:
    bool is_shared(const std::string& path) const { return kubernetes::is_shared(options_, path); }
    static Error not_shared(const std::string& folder) {
        return Error(ErrorKind::unsupported, printable(folder) + " lies in the pods", {},
                     "a folder that pods and server share is named as engine.shared in server.yaml");
    }
    bool is_wanted(const KubeNode& node) const {
        return std::all_of(options_.node_selector.begin(), options_.node_selector.end(), [&](const auto& each) {
            const auto found = node.labels.find(each.first);
            return found != node.labels.end() && found->second == each.second;
        });
    }

    // Init containers that run on beside the others: by default since 1.29; an older one would wait for their end.
    static bool knows_sidecars(const Node& version) {
        const std::string major(text_at(version, "major")), minor(text_at(version, "minor"));  // "29+" in some clouds
        const int first = std::atoi(major.c_str());
        return first > 1 || (first == 1 && std::atoi(minor.c_str()) >= 29);
    }
    Result<bool> has_sidecars(Deadline deadline) {
        if (!options_.measures) return false;
        if (const auto known = sidecars_.load()) return *known;
        TRY(const Document said, api_->ask({.target = "/version"}, deadline));
        const bool known = knows_sidecars(said.root());
        sidecars_ = known;
        return known;
    }

    // From the server, and not from what was seen last.
    Result<JobView> fetch(const OperationId& operation, Deadline deadline) {
        TRY(const Document answer, api_->ask({.target = paths_.job(operation)}, deadline));
        auto job = read_job(answer.root());
        if (!job) return Error(ErrorKind::not_found, job_name(operation) + " is not ours");
        gangs_.see(*job);
        return std::move(*job);
    }

    Outcome make_rendezvous(Deadline deadline) {
        if (rendezvous_) return confirmed();
        const auto made = api_->ask(
            {.method = "POST", .target = paths_.core + "/services", .body = rendezvous_service().dump(0)}, deadline);
        if (!made && made.error().kind() != ErrorKind::conflict) return refused(made.error());
        rendezvous_ = true;
        return confirmed();
    }

    static Outcome refused(const Error& error) {
        if (error.kind() == ErrorKind::unavailable || error.kind() == ErrorKind::timed_out)
            return unknown(error.message());
        return rejected(error.kind() == ErrorKind::denied ? Cause::platform : Cause::user_error, error.message());
    }

    Outcome submit(const OperationId& operation, const Json& job, Deadline deadline) {
        const auto made = api_->ask({.method = "POST", .target = paths_.jobs, .body = job.dump(0)}, deadline);
        if (made) {
            if (const auto view = read_job(made->root())) gangs_.see(*view);
            return accepted("Job " + job_name(operation));
        }
        // Its name is taken by the same operation, made before.
        if (made.error().kind() == ErrorKind::conflict) {
            const auto there = fetch(operation, deadline);
            if (!there) return unknown(there.error().message());
            return accepted("Job " + job_name(operation) + " was made before");
        }
        return refused(made.error());
    }

    static Outcome accepted(const std::string& detail) {
        return {.certainty = Certainty::accepted, .cause = Cause::engine_queue, .detail = detail};
    }

    Outcome wait_for_end(const OperationId& operation, double grace_s, Deadline deadline) {
        // 0 would take the pod from the API while its processes may still run.
        const auto grace = std::max<std::int64_t>(1, std::llround(std::ceil(std::min(grace_s, 86400.0))));
        std::set<std::string> told;
        for (;;) {
            std::set<std::string> there;
            std::vector<PodView> alive;
            const auto listed =
                api_->list(paths_.pods(), "labelSelector=" + in_query(std::string(kOperation) + "=" + operation.text()),
                           deadline, [&](const Node& item) {
                               const auto pod = read_pod(item);
                               if (!pod) return;
                               there.insert(pod->uid);
                               gangs_.see(*pod);
                               if (!pod->over()) alive.push_back(*pod);
                           });
            if (!listed) return unknown(listed.error().message());
            gangs_.only_pods_of(operation, there);
            for (const PodView& pod : alive) {
                if (told.count(pod.uid) > 0) continue;
                const auto answer =
                    api_->call({.method = "DELETE",
                                .target = fmt::format("{}?gracePeriodSeconds={}", paths_.pod(pod.name), grace)},
                               deadline);
                if (answer && (answer->status / 100 == 2 || answer->status == 404)) told.insert(pod.uid);
            }
            if (alive.empty())
                if (const auto job = fetch(operation, deadline); !job && job.error().kind() != ErrorKind::not_found)
                    return unknown(job.error().message());
            if (gangs_.is_over(operation)) return confirmed();
            if (Clock::now() >= deadline)
                return unknown(
                    alive.empty()
                        ? "its pods are gone, and its Job has not said so yet"
                        : fmt::format("{} of its pods are told to end, and are still there; on a node that is "
                                      "gone for good, delete the Node",
                                      alive.size()));
            std::this_thread::sleep_until(std::min<Clock::time_point>(deadline, Clock::now() + kEndPause));
        }
    }

    // They would go with their Job, some seconds later; of many that is left to the cluster.
    void remove_pods(const OperationId& operation, Deadline deadline) {
        const auto pods = gangs_.pods_of(operation);
        if (pods.size() > kMostRemoved) return;
        for (const PodView& pod : pods)
            (void)api_->call({.method = "DELETE", .target = paths_.pod(pod.name)}, deadline).ok();
    }

    // Without our finalizer, and then without the Job; its pods follow it.
    Status remove(const JobView& job, const Node& object, Deadline deadline) {
        Json others = Json::array();
        bool ours = false;
        if (const Node* metadata = object.find("metadata"))
            for (const auto& each : items_at(*metadata, "finalizers")) {
                ours = ours || each->text == kFinalizer;
                if (each->text != kFinalizer) others.push(each->text);
            }
        if (!job.deleting) {
            const auto answer = api_->call(
                {.method = "DELETE", .target = paths_.job(job.operation) + "?propagationPolicy=Background"}, deadline);
            if (!answer) return answer.error();
            if (answer->status / 100 != 2 && answer->status != 404) return error_of(*answer);
            if (ours) return done();  // and the next look finds it on its way
        }
        if (!ours) return done();
        const Json patch = Json::object().set(
            "metadata", Json::object().set("resourceVersion", job.version).set("finalizers", std::move(others)));
        const auto answer = api_->ask({.method = "PATCH",
                                       .target = paths_.job(job.operation),
                                       .body = patch.dump(0),
                                       .content_type = kMergePatch},
                                      deadline);
        if (!answer && answer.error().kind() != ErrorKind::not_found) return answer.error();
        return done();
    }

    bool has_ended(const LogSource& source) const {
        for (const PodView& pod : gangs_.pods_of(source.operation)) {
            if (pod.name != source.pod) continue;
            if (pod.over()) return true;
            if (source.from.rank < 0) return pod.measures.phase == ContainerPhase::ended;
            const auto found = pod.containers.find(source.container);
            return found != pod.containers.end() && found->second.phase == ContainerPhase::ended;
        }
        return true;
    }

    const KubernetesOptions options_;
    const std::shared_ptr<ApiClient> api_;
    SharedLook<std::vector<KubeNode>> launch_nodes_;  // of a thousand nodes each look is megabytes
    const Paths paths_;
    std::string detail_;
    std::atomic<bool> rendezvous_ = false;
    std::atomic<std::optional<bool>> sidecars_;  // nothing: the server has not been asked yet
    JobWatch gangs_;
    mutable RankMeasures measures_;
    MeasureBook measure_book_;
    // In this order: each ends before what it uses.
    LogCopies logs_;
    ClusterWatch watch_;
    Tender tender_;
};

}  // namespace
}  // namespace kubernetes

Result<std::unique_ptr<Driver>> make_kubernetes_driver(KubernetesOptions options) {
    options.folder = absolute_path(options.folder);
    TRY(kubernetes::Kubeconfig config, kubernetes::find_kubeconfig(options.kubeconfig, options.context));
    if (options.space.empty()) options.space = config.space.empty() ? "default" : config.space;
    for (SharedFolder& each : options.shared)
        while (each.path.size() > 1 && each.path.back() == '/') each.path.pop_back();
    TRY(auto api, kubernetes::ApiClient::make(std::move(config)));
    auto driver = std::make_unique<kubernetes::KubernetesDriver>(std::move(options), std::move(api));
    TRY_VOID(driver->adopt());
    return std::unique_ptr<Driver>(std::move(driver));
}

}  // namespace stoker
