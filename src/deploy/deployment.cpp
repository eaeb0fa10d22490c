#include "deploy/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "catalog/names.h"
#include "deploy/fabric_environment.h"
#include "deploy/front.h"
#include "deploy/pinned.h"
#include "plan/platform.h"

namespace stoker {
namespace {

constexpr std::int64_t kWalltimeStep_s = 600;

class DeploymentMaker {
public:
    DeploymentMaker(const Candidate& candidate, const Workload& workload, const Catalog& catalog,
                    const DeploymentOptions& options)
        : candidate_(candidate),
          workload_(workload),
          catalog_(catalog),
          options_(options),
          node_(catalog.node_types()[static_cast<std::size_t>(candidate.node_type)]),
          here_(is_run_here(node_)) {}

    Result<Deployment> make() {
        // What is started here is started anyway, and its owner is told.
        if (candidate_.refused != Reason::none && !here_)
            return Error(ErrorKind::conflict, "the planner expects that it cannot run: " + candidate_.refusal);
        TRY_VOID(check_statements());
        out_.name = options_.name;
        out_.target = options_.target;
        out_.title = workload_.title();
        out_.kind = workload_.kind;
        out_.orchestrator = here_ ? Orchestrator::local : candidate_.orchestrator;
        out_.framework = candidate_.framework;
        out_.framework_version = workload_.framework_version;
        out_.model = workload_.model, out_.model_known = workload_.model_known;
        name_model();
        out_.precision = workload_.precision;
        out_.sensitive = workload_.sensitive;
        nodes();
        ranks();
        TRY_VOID(work());
        start();
        checkpoints();
        out_.prediction = prediction_of(candidate_, workload_, catalog_, options_);
        walltime();
        return std::move(out_);
    }

private:
    void because(std::string setting, std::string reason, std::string source) {
        out_.because.push_back({std::move(setting), std::move(reason), std::move(source)});
    }

    // The catalogue keeps models of one shape in one row: weights and name are those of the one that the file says.
    void name_model() {
        if (workload_.model_written.empty()) return;
        ModelSpec& model = out_.model;
        std::vector<std::string>& names = model.aliases;
        const std::string& written = workload_.model_written;
        const std::string folded = fold_name(written);
        const auto repository = [](const std::string& name) {
            return std::count(name.begin(), name.end(), '/') == 1 && name.find(' ') == std::string::npos;
        };
        const auto own = [](const std::string& name) { return fold_name(name.substr(name.find('/') + 1)); };
        names.push_back(std::exchange(model.name, written));
        auto first = names.end();
        // What answers people comes first: llama-3.3-70b is published as Llama-3.3-70B-Instruct only.
        for (const std::string_view tuned : {"", "instruct", "it", "chat"})
            if (first == names.end())
                first = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
                    return repository(name) && own(name) == folded + std::string(tuned);
                });
        // Of one that others packed, the weights that it was made of: ...-Instruct-FP8.
        if (first == names.end()) {
            std::size_t longest = 0;
            for (auto each = names.begin(); each != names.end(); ++each)
                if (const std::string name = own(*each);
                    repository(*each) && name.size() > longest && folded.starts_with(name)) {
                    longest = name.size();
                    first = each;
                }
        }
        if (first != names.end()) std::rotate(names.begin(), first, first + 1);
    }

    // Where the file says both how many it starts and how many are planned, the two have to agree.
    Status check_statements() const {
        if (!workload_.run || here_) return done();
        const RunSection& run = *workload_.run;
        Problems problems;
        const auto differ = [&](const char* key, double said, const char* other, double planned,
                                const std::map<std::string, SourcePos>& at) {
            const auto found = at.find(other);
            const std::string where = std::string(other) == "data" ? "layout.data" : std::string("where.") + other;
            if (said == planned) return;
            problems.push_back({fmt::format("run.{}: {:g} and {}: {:g} contradict each other{}", key, said, where,
                                            planned, found == at.end() ? "" : " (" + found->second.text() + ")"),
                                fmt::format("one of them has to go, or run.{} has to be {:g}", key, planned),
                                run.place(key)});
        };
        if (run.nodes && workload_.where.nodes)
            differ("nodes", *run.nodes, "nodes", *workload_.where.nodes, workload_.where.at);
        if (run.ranks && workload_.where.gpus && run.gpus.value_or(0) > 0)
            differ("ranks", *run.ranks * *run.gpus, "gpus", *workload_.where.gpus, workload_.where.at);
        if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
        return done();
    }

    void nodes() {
        NodeSet& nodes = out_.nodes;
        nodes.cloud = node_.cloud;
        nodes.machine = here_ ? kHere : node_.name;
        nodes.count = here_ ? 1 : candidate_.nodes;
        nodes.region = node_.cloud == kHere ? "" : candidate_.region;
        nodes.pricing = candidate_.pricing;
        if (candidate_.spot_service) nodes.kept = candidate_.spot_service->on_demand_nodes;
        nodes.os = workload_.where.os;
        nodes.mig = node_.mig;
        nodes.vcpus = node_.vcpus, nodes.cores = node_.cores;
        nodes.memory_bytes = std::floor(node_.memory.v);
        if (here_) nodes.vcpus *= candidate_.nodes, nodes.cores *= candidate_.nodes;
        if (here_) nodes.memory_bytes *= candidate_.nodes;
        nodes.fabric.ethernet_gbps = node_.ethernet_gbps;
        if (node_.has_gpu()) {
            const Accelerator& gpu = catalog_.accelerators()[static_cast<std::size_t>(node_.accelerator)];
            nodes.gpu = gpu.name, nodes.gpu_vendor = gpu.vendor;
            nodes.gpus = node_.accelerators;
            nodes.gpu_memory_bytes = std::floor(node_.accelerator_memory.v);
            nodes.fabric.scale_up_bandwidth = gpu.scale_up_bandwidth.v;
            nodes.fabric.scale_up_domain = node_.scale_up_domain;
        }
        if (nodes.count > 1) {
            const bool rdma = node_.rdma_gbps_per_gpu > 0 || node_.rdma_gbps_per_node > 0;
            nodes.fabric.kind = rdma && !node_.rdma.empty() && node_.rdma != "none" ? node_.rdma : "ethernet";
            if (rdma) nodes.fabric.generation = node_.rdma_generation;
            nodes.fabric.gbps_per_gpu = node_.rdma_gbps_per_gpu;
        } else if (here_ && candidate_.nodes > 1) {
            nodes.fabric.kind = "loopback";
        }
        placement();
        if (node_.cloud != kHere) {
            const ImageChoice image = choose_image(workload_, catalog_, node_, candidate_.orchestrator);
            nodes.image = image.name;
            if (!image.name.empty()) because("nodes.image", image.reason, "catalogue " + catalog_.version);
        }
        if (node_.cloud == "azure") nodes.disk = disk_of(workload_.disk, catalog_);
        if (nodes.spot())
            because(
                "nodes.pricing",
                candidate_.spot_service
                    ? fmt::format("where.spot is {}; about {:.0f} evictions a month are expected",
                                  to_string(workload_.where.spot), candidate_.spot_service->evictions)
                    : fmt::format("where.spot is {}; about {:.1f} evictions are expected",
                                  to_string(workload_.where.spot), candidate_.prediction.checkpoint.expected_evictions),
                place_in_file(workload_.where.at, "spot"));
    }

    void placement() {
        NodeSet& nodes = out_.nodes;
        if (nodes.count < 2) return;
        if (is_training(workload_.kind) || candidate_.replica.gpus() > devices_of_node()) {
            nodes.placement = NodePlacement::together;
            const bool infiniband = nodes.fabric.kind == "infiniband";
            because(
                "nodes.placement",
                infiniband && nodes.cloud == "azure"
                    ? "InfiniBand joins the VMs of one scale set in one zone only: Uniform, one placement group, "
                      "no overprovisioning"
                    : "every rank waits for every other in each step: close to each other, and all or none",
                infiniband && nodes.cloud == "azure" ? "learn.microsoft.com, Set up InfiniBand on HPC VMs" : "plan");
        } else if (candidate_.replicas > 1 && workload_.objective.survive_one_replica_lost) {
            nodes.placement = NodePlacement::apart;
            because("nodes.placement", "the replicas that are left carry the load when one node is lost",
                    place_in_file(workload_.objective.at, "survive_one_replica_lost"));
        }
    }

    double devices_of_node() const { return node_.has_gpu() ? std::max(1, node_.whole_gpus()) : 1; }

    std::string place_in_file(const std::map<std::string, SourcePos>& at, const char* key) const {
        const auto found = at.find(key);
        return found == at.end() ? "plan" : found->second.text();
    }

    void ranks() {
        RankSet& ranks = out_.ranks;
        const int devices = static_cast<int>(devices_of_node());
        const bool gpu = node_.has_gpu();
        if (is_training(workload_.kind)) {
            ranks.count = candidate_.layout.gpus();
            ranks.per_node = ranks.count / out_.nodes.count;
            ranks.each.gpus = gpu ? 1 : 0;
        } else if (candidate_.replicas > 0) {
            const int size = candidate_.replica.gpus();
            const bool spans = size > devices;
            ranks.count = spans ? candidate_.nodes : candidate_.replicas;
            ranks.per_node = (ranks.count + out_.nodes.count - 1) / out_.nodes.count;
            ranks.each.gpus = !gpu ? 0 : spans ? devices : size;
        } else {
            ranks.count = out_.nodes.count;
            ranks.each.gpus = gpu ? devices : 0;
        }
        ranks.binding = !gpu ? GpuBinding::none : GpuBinding::by_local_rank;
        if (gpu && node_.accelerators < 1) ranks.binding = GpuBinding::share;
        if (gpu) ranks.each.gpu_model = out_.nodes.gpu;
        ranks.each.cpu_milli = 1000LL * out_.nodes.vcpus / std::max(1, ranks.per_node);
        ranks.each.memory_bytes = static_cast<std::int64_t>(out_.nodes.memory_bytes / std::max(1, ranks.per_node));
        if (here_ && options_.start != nullptr) {
            ranks.each = options_.start->per_rank;
            // One process may have several GPUs.
            if (gpu) ranks.count = ranks.per_node = options_.start->ranks;
            because("ranks.count", "the run section starts so many, on this machine the file says how it runs",
                    workload_.run ? workload_.run->place("ranks").text() : "the command line");
        }
    }

    Status work() {
        const int ranks = out_.ranks.count, all = out_.nodes.count * out_.ranks.per_node;
        if (is_training(workload_.kind)) {
            if (ranks != all)
                return Error(ErrorKind::conflict,
                             fmt::format("{} ranks cannot be spread evenly over {} nodes", ranks, out_.nodes.count));
            out_.training = TrainingWork{.layout = candidate_.layout,
                                         .global_batch = candidate_.layout.global_batch(),
                                         .sequence = workload_.sequence(),
                                         .steps = candidate_.prediction.steps,
                                         .method = workload_.method,
                                         .lora = workload_.lora,
                                         .optimizer = workload_.optimizer,
                                         .compiled = workload_.compiled,
                                         .flash_attention = workload_.flash_attention};
            layout_reasons();
            return done();
        }
        if (candidate_.replicas == 0) return done();
        ServingWork serving{.shape = candidate_.replica,
                            .replicas = candidate_.replicas,
                            .nodes_per_replica = std::max(1, out_.nodes.count / candidate_.replicas),
                            .kv_precision = workload_.kv_precision,
                            .requests_per_second = workload_.traffic.requests_per_second.value_or(0),
                            .requests = workload_.traffic.requests.value_or(0),
                            .concurrency = workload_.traffic.concurrency.value_or(0),
                            .latency = workload_.objective.latency};
        const Device device = make_device(catalog_, candidate_.node_type);
        TRY(const ServingSetup setup, make_serving_setup(workload_, catalog_, device));
        const ServingMemory memory = serving_memory(setup, candidate_.replica);
        if (setup.decoder) {
            serving.context_tokens = long_request(setup);
            serving.max_sequences = setup.max_sequences;
            serving.token_budget = memory.token_budget;
            serving.kv_tokens = memory.kv_tokens;
            serving.memory_fraction = setup.memory_fraction;
            because("serving.context_tokens",
                    fmt::format("means of {:.0f} and {:.0f} tokens and three standard deviations of each, which are as "
                                "large as the mean where the file does not say, as far as the model goes",
                                setup.prompt_tokens, setup.output_tokens),
                    place_in_file(workload_.traffic.at, "prompt_tokens"));
            because("serving.token_budget", "what the simulated engine takes into one step",
                    "docs/reference/model-inference.md");
        }
        out_.serving = serving;
        const double asked = workload_.traffic.requests_per_second.value_or(0);
        out_.front = front_of(workload_, catalog_, node_.cloud, candidate_.region,
                              asked > 0 ? asked : candidate_.prediction.requests_per_s);
        if (out_.front) front_notes();
        return done();
    }

    void front_notes() {
        const FrontWork& front = *out_.front;
        if (front.machine.empty())
            out_.notes.push_back("front: no machine for it is known there; it runs where there is no GPU");
        else
            out_.notes.push_back(
                fmt::format("front: {} x {}, ${:.2f} an hour, which the price of the plan does not have",
                            front.machines, front.machine, static_cast<double>(front.microusd_per_hour) / 1e6));
    }

    // Lengths that are not said to be alike are taken to differ as much as they are long.
    double long_request(const ServingSetup& setup) const {
        const auto longest = [](double mean, const std::optional<double>& cv) {
            return mean * (1 + 3 * cv.value_or(1));
        };
        const double tokens = longest(setup.prompt_tokens, workload_.traffic.prompt_tokens_cv) +
                              longest(setup.output_tokens, workload_.traffic.output_tokens_cv);
        const double whole = 256 * std::ceil(tokens / 256);
        return workload_.model.max_sequence > 0 ? std::min(whole, static_cast<double>(workload_.model.max_sequence))
                                                : whole;
    }

    void layout_reasons() {
        const ParallelLayout& layout = candidate_.layout;
        const Prediction& p = candidate_.prediction;
        const std::string used = fmt::format("{} of {} used", format_bytes_gib(Bytes(p.memory_bytes.mid)),
                                             format_bytes_gib(Bytes(p.memory_capacity_bytes)));
        const auto explain = [&](const char* key, const std::string& reason) {
            const auto pinned = workload_.layout.at.find(key);
            const bool said = pinned != workload_.layout.at.end();
            because(std::string("training.layout.") + key, said ? "as the file says; " + reason : reason,
                    said ? pinned->second.text() : "plan");
        };
        if (layout.tensor > 1) explain("tensor", fmt::format("{:.1f} GB sent a step and GPU", p.tensor_bytes / 1e9));
        if (layout.pipeline > 1)
            explain("pipeline", fmt::format("{:.1f} GB of activations sent a step and GPU", p.pipeline_bytes / 1e9));
        if (layout.zero > 0)
            explain("zero", fmt::format("{} divided over {} ranks; {}",
                                        layout.zero == 1   ? "optimizer states are"
                                        : layout.zero == 2 ? "optimizer states and gradients are"
                                                           : "weights, gradients and optimizer states are",
                                        layout.shard_ranks(), used));
        if (layout.recompute != Recompute::none)
            explain("recompute", "activations are computed again instead of kept; " + used);
        if (layout.micro_batches > 1)
            because("training.layout.micro_batches",
                    fmt::format("{} data parallel rank{} x {} x {} make the global batch of {:g}", layout.data,
                                layout.data == 1 ? "" : "s", layout.micro_batch, layout.micro_batches,
                                layout.global_batch()),
                    workload_.batch.at.empty() ? "plan" : workload_.batch.at.begin()->second.text());
    }

    // Program, environment and folder are the file's; the fabric's environment is set where the file does not.
    void start() {
        if (!here_) {
            for (FabricSetting& setting : fabric_environment(out_)) {
                because("environment." + setting.name, std::move(setting.reason), std::move(setting.source));
                out_.environment[setting.name] = std::move(setting.value);
            }
        }
        if (options_.start == nullptr) return;
        const StartSpec& start = *options_.start;
        for (const auto& [key, value] : start.environment) {
            const auto found = out_.environment.find(key);
            if (found != out_.environment.end() && found->second != value) {
                out_.notes.push_back(
                    fmt::format("environment {}: {} as the file says, in place of {}", key, value, found->second));
                const std::string setting = "environment." + key;
                std::erase_if(out_.because, [&](const Because& each) { return each.setting == setting; });
            }
            out_.environment[key] = value;
        }
        out_.command = start.command;
        out_.folder = start.folder;
        out_.image = start.image;
        out_.lease = start.lease;
        out_.policy = start.policy;
        out_.prerequisites = start.prerequisites;
        if (!here_) who_wins(start);
    }

    // The planner's choice stands in what is rendered; the file's where it is run.
    void who_wins(const StartSpec& start) {
        const RunSection* run = workload_.run ? &*workload_.run : nullptr;
        const auto place = [&](const char* key) {
            return run != nullptr && run->place(key).known() ? " (" + run->place(key).text() + ")" : std::string();
        };
        const auto told = [&](const char* key, double said, double planned, const char* what) {
            if (said != planned)
                out_.notes.push_back(
                    fmt::format("run.{}: {:g}{} is what stoker run starts here; the plan's {:g} {} "
                                "stand in what is rendered",
                                key, said, place(key), planned, what));
        };
        if (run == nullptr) return;
        if (run->ranks) told("ranks", start.ranks, out_.ranks.count, "ranks");
        if (run->ranks_per_node) told("ranks_per_node", *run->ranks_per_node, out_.ranks.per_node, "ranks a node");
        if (run->nodes) told("nodes", *run->nodes, out_.nodes.count, "nodes");
        if (run->gpus) told("gpus", *run->gpus, out_.ranks.each.gpus, "GPUs of a rank");
    }

    void checkpoints() {
        if (options_.start != nullptr) out_.checkpoint = options_.start->checkpoint;
        if (here_) return;
        const CheckpointPlan& plan = candidate_.prediction.checkpoint;
        out_.checkpoint_bytes = plan.bytes;
        CheckpointPolicy& policy = out_.checkpoint;
        if (policy.folder.empty()) {
            if (!is_training(workload_.kind) || !(plan.bytes > 0)) return;
            policy.folder = "checkpoints";
            if (!(plan.interval_s > 0))
                because(
                    "checkpoint.folder",
                    fmt::format("for the result: the run is too short for another checkpoint to pay, something fails "
                                "or is evicted every {}",
                                format_seconds(Seconds(plan.mtbf_s))),
                    "Daly 2006, doi:10.1016/j.future.2004.11.016");
        }
        // every: auto is computed for where the work runs, and here that is the plan's machines.
        const bool automatic = workload_.run && workload_.run->checkpoint && workload_.run->checkpoint->automatic;
        if ((policy.interval_s > 0 && !automatic) || !(plan.interval_s > 0)) return;
        policy.interval_s = static_cast<std::int64_t>(std::llround(plan.interval_s));
        because("checkpoint.interval_s",
                workload_.checkpoint.every
                    ? std::string("as the file says")
                    : fmt::format("something fails or is evicted every {}, and writing stalls for {}",
                                  format_seconds(Seconds(plan.mtbf_s)), format_seconds(Seconds(plan.stall_s))),
                workload_.checkpoint.every ? place_in_file(workload_.checkpoint.at, "every")
                                           : "Daly 2006, doi:10.1016/j.future.2004.11.016");
    }

    void walltime() {
        if (options_.start != nullptr && options_.start->timeout_s > 0) {
            out_.walltime_s = options_.start->timeout_s;
            return;
        }
        const double longest = out_.prediction.run_high_s;
        if (here_ || !(longest > 0)) return;
        out_.walltime_s = kWalltimeStep_s * static_cast<std::int64_t>(std::ceil(longest / kWalltimeStep_s));
        because("walltime_s", "the end of the 80 % interval in whole ten minutes: nine runs of ten end before it",
                "plan");
    }

    const Candidate& candidate_;
    const Workload& workload_;
    const Catalog& catalog_;
    const DeploymentOptions& options_;
    const NodeType& node_;
    const bool here_;  // ranks of this machine, each a node to the planner, or GPUs of one machine
    Deployment out_;
};

}  // namespace

std::string_view to_string(NodePlacement placement) {
    switch (placement) {
        case NodePlacement::any: return "any";
        case NodePlacement::together: return "together";
        case NodePlacement::apart: return "apart";
    }
    return "";
}

std::string_view to_string(GpuBinding binding) {
    switch (binding) {
        case GpuBinding::none: return "none";
        case GpuBinding::by_local_rank: return "by-local-rank";
        case GpuBinding::share: return "share";
    }
    return "";
}

Result<Deployment> make_deployment(const Candidate& candidate, const Workload& workload, const Catalog& catalog,
                                   const DeploymentOptions& options) {
    return DeploymentMaker(candidate, workload, catalog, options).make();
}

}  // namespace stoker
