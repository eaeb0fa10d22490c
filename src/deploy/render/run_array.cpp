#include "deploy/render/run_array.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "deploy/image_name.h"
#include "deploy/render/words.h"
#include "deploy/slurm_request.h"

namespace stoker {
namespace {

constexpr std::string_view kSecret = "secret://";
constexpr std::size_t kMostPoints = 1000;  // MaxArraySize of Slurm is 1001 where nobody raised it

bool is_secret(const std::string& value) {
    return value.starts_with(kSecret);
}

class RunScript {
public:
    explicit RunScript(const RunArray& runs) : runs_(runs), first_(runs.points.front().start) {
        common_ = first_.environment;
        for (const RunPoint& point : runs.points)
            std::erase_if(common_, [&](const auto& each) {
                const auto found = point.start.environment.find(each.first);
                return found == point.start.environment.end() || found->second != each.second;
            });
        same_command_ = std::all_of(runs.points.begin(), runs.points.end(),
                                    [&](const RunPoint& point) { return point.start.command == first_.command; });
    }

    std::string heading() const {
        return runs_.array ? fmt::format("{}: {} runs as an array, each queued and started again alone", runs_.name,
                                         runs_.points.size())
                           : fmt::format("{}: {} rank{}", runs_.name, first_.ranks, first_.ranks == 1 ? "" : "s");
    }

    // What all have, and then what the one of this number has; the program and its arguments are "$@" behind it.
    std::string settings(std::string_view number) const {
        std::string out;
        for (const auto& [name, value] : common_)
            if (is_secret(value))
                out += fmt::format(
                    "# A secret of the server: it is taken from where this is submitted.\n"
                    ": \"${{{}:?is a secret: export it first}}\"\nexport {}\n",
                    name, name);
            else
                out += fmt::format("export {}={}\n", name, shell_word(value));
        if (!out.empty()) out += "\n";
        if (!runs_.array) return out + words_of(first_) + "\n";
        if (same_command_) out += words_of(first_) + "\n";
        out += fmt::format("case \"${}\" in\n", number);
        for (std::size_t i = 0; i < runs_.points.size(); ++i) {
            const RunPoint& point = runs_.points[i];
            out += fmt::format("{})", i);
            if (!point.title.empty()) out += "  # " + printable(point.title, 100);
            for (const auto& [name, value] : point.start.environment)
                if (!common_.contains(name)) out += fmt::format("\n    export {}={}", name, shell_word(value));
            if (!same_command_) out += "\n    " + words_of(point.start);
            out += "\n    ;;\n";
        }
        return out + fmt::format("*)\n    echo \"there is no run number ${}\" >&2\n    exit 2\n    ;;\nesac\n", number);
    }

private:
    static std::string words_of(const StartSpec& start) {
        std::string out = "set --";
        for (const std::string& word : start.command) out += " " + shell_word(word);
        return out;
    }

    const RunArray& runs_;
    const StartSpec& first_;
    std::map<std::string, std::string> common_;
    bool same_command_ = true;
};

std::string why_unlike(const RunArray& runs) {
    const StartSpec& a = runs.points.front().start;
    for (const RunPoint& point : runs.points) {
        const StartSpec& b = point.start;
        const bool alike = a.ranks == b.ranks && a.nodes == b.nodes && a.image == b.image && a.folder == b.folder &&
                           a.timeout_s == b.timeout_s && a.per_rank.gpus == b.per_rank.gpus &&
                           a.per_rank.cpu_milli == b.per_rank.cpu_milli &&
                           a.per_rank.memory_bytes == b.per_rank.memory_bytes &&
                           a.per_rank.gpu_model == b.per_rank.gpu_model;
        if (!alike) return "its runs need different things, and the jobs of an array are alike";
        if (b.per_rank.gpus > 0 && b.per_rank.gpu_milli != 1000)
            return "a rank takes part of a GPU, and queues give whole ones";
    }
    if (runs.points.size() > kMostPoints)
        return fmt::format("{} runs are more than an array holds ({})", runs.points.size(), kMostPoints);
    return {};
}

// ---- Slurm
std::string sbatch_of(const RunArray& runs) {
    const RunScript script(runs);
    const StartSpec& start = runs.points.front().start;
    const RankNeeds& needs = start.per_rank;
    std::string out = "#!/bin/bash\n# " + script.heading() + ".\n";
    out += fmt::format("#   sbatch {}.sbatch\n", runs.name);
    const auto directive = [&](std::string_view text) { out += fmt::format("#SBATCH --{}\n", text); };
    directive("job-name=" + runs.name);
    directive(fmt::format("output={}-{}.out", runs.name, runs.array ? "%A_%a" : "%j"));
    if (runs.array)
        directive(fmt::format("array=0-{}{}", runs.points.size() - 1,
                              runs.parallel > 0 ? fmt::format("%{}", runs.parallel) : ""));
    const SlurmRequest request{.ranks = start.ranks,
                               .nodes = start.nodes,
                               .cpus = (needs.cpu_milli + 999) / 1000,
                               .memory_mib = (needs.memory_bytes + (1 << 20) - 1) >> 20,
                               .gpus = needs.gpus,
                               .gpu_type = {},
                               .one_switch = start.policy.topology == TopologyWish::require && start.ranks > 1,
                               .longest_s = start.timeout_s};
    if (needs.gpus > 0 && !needs.gpu_model.empty())
        out += fmt::format(
            "# Of the kind {}: where the cluster has several, its type belongs before the number (sinfo -o %G).\n",
            needs.gpu_model);
    for (const auto& [name, value] : slurm_options(request)) directive(name + "=" + value);
    if (start.policy.attempts > 1) {
        out += "# When its node fails, or it makes room for others, it goes back into the queue.\n";
        directive("requeue");
        directive("open-mode=append");
    } else {
        directive("no-requeue");
    }
    out += "\nset -eu\n\n";
    if (!start.folder.empty() && start.folder != ".") out += fmt::format("cd {}\n\n", shell_word(start.folder));
    out += script.settings("SLURM_ARRAY_TASK_ID") + "\n";
    std::string container;
    if (!start.image.empty()) {
        out += "# --container-... are Pyxis' options: the site has to have the plug-in.\n";
        container = fmt::format(" --container-image={} --container-mounts=\"$PWD:$PWD\" --container-workdir=\"$PWD\"",
                                shell_word(pyxis_image(start.image)));
    }
    if (start.ranks == 1)
        return out + fmt::format("exec srun --cpus-per-task=\"$SLURM_CPUS_PER_TASK\"{} \"$@\"\n", container);
    out +=
        "# The first node is where ranks meet; the port is this job's, beside others on the node.\n"
        "nodes=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
        "export MASTER_ADDR=\"${nodes%%[[:space:]]*}\"\n"
        "export MASTER_PORT=\"$((20000 + SLURM_JOB_ID % 10000))\"\n"
        "# What ranks are told by stoker run, from what Slurm tells its tasks.\n";
    return out + fmt::format(
                     "exec srun --cpus-per-task=\"$SLURM_CPUS_PER_TASK\" --kill-on-bad-exit=1{} \\\n"
                     "    sh -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID \\\n"
                     "        NODE_RANK=$SLURM_NODEID exec \"$@\"' rank \"$@\"\n",
                     container);
}

// ---- Kubernetes
std::string why_not_on_kubernetes(const RunArray& runs) {
    const StartSpec& start = runs.points.front().start;
    if (start.image.empty()) return "a pod needs an image: add run: {image: registry.example/trainer:1.4}";
    if (start.ranks > 1)
        return "each run is a gang of several ranks: an engine of kind kubernetes starts them, slurm says it as a file";
    return {};
}

std::string manifest_of(const RunArray& runs) {
    const RunScript script(runs);
    const StartSpec& start = runs.points.front().start;
    const RankNeeds& needs = start.per_rank;
    const std::string name = dns_label(runs.name, 50);
    const int restarts = std::max(0, std::min(start.policy.restarts, start.policy.attempts - 1));
    std::string out = fmt::format("# {}.\n#   kubectl apply -f {}.yaml\n", script.heading(), runs.name);
    out += fmt::format(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {0}\n  labels:\n    app.kubernetes.io/name: {0}\n"
        "    app.kubernetes.io/managed-by: stoker\nspec:\n",
        name);
    if (runs.array) {
        out += fmt::format("  completionMode: Indexed\n  completions: {}\n  parallelism: {}\n", runs.points.size(),
                           runs.parallel > 0 ? runs.parallel : static_cast<int>(runs.points.size()));
        out += fmt::format(
            "  # Each run by itself: one that fails ends no other one (Kubernetes 1.29 or later).\n"
            "  backoffLimitPerIndex: {}\n",
            restarts);
    } else {
        out += fmt::format("  backoffLimit: {}\n", restarts);
    }
    out +=
        "  # A pod that a drain or a preemption takes away is no failure of its run.\n"
        "  podFailurePolicy:\n    rules:\n    - action: Ignore\n"
        "      onPodConditions: [{type: DisruptionTarget, status: \"True\"}]\n"
        "  # A day later its pods and their logs go.\n"
        "  ttlSecondsAfterFinished: 86400\n";
    out +=
        fmt::format("  template:\n    metadata:\n      labels:\n        app.kubernetes.io/name: {}\n    spec:\n", name);
    out += "      restartPolicy: Never\n      automountServiceAccountToken: false\n";
    out += fmt::format("      terminationGracePeriodSeconds: {}\n", std::max<std::int64_t>(1, start.policy.grace_s));
    if (start.timeout_s > 0) out += fmt::format("      activeDeadlineSeconds: {}\n", start.timeout_s);
    if (needs.gpus > 0) {
        if (!needs.gpu_model.empty())
            out += fmt::format(
                "      # Of the kind {}: a nodeSelector on nvidia.com/gpu.product, where nodes have several.\n",
                needs.gpu_model);
        out +=
            "      tolerations:\n"
            "      # The taint that AKS documents for GPU pools, and NVIDIA's own.\n"
            "      - {key: sku, operator: Equal, value: gpu, effect: NoSchedule}\n"
            "      - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n";
    }
    out += fmt::format("      containers:\n      - name: work\n        image: {}\n", yaml_word(start.image));
    if (!start.folder.empty() && start.folder.starts_with('/'))
        out += fmt::format("        workingDir: {}\n", yaml_word(start.folder));
    std::string secrets;
    for (const auto& [key, value] : start.environment)
        if (is_secret(value))
            secrets += fmt::format("        - name: {}\n          valueFrom: {{secretKeyRef: {{name: {}, key: {}}}}}\n",
                                   key, name, dns_label(key));
    if (!secrets.empty())
        out += fmt::format("        # kubectl create secret generic {} --from-literal=KEY=VALUE\n        env:\n{}",
                           name, secrets);
    out += "        command:\n        - /bin/sh\n        - -c\n        - |\n";
    RunArray plain = runs;
    for (RunPoint& point : plain.points)
        std::erase_if(point.start.environment, [](const auto& each) { return is_secret(each.second); });
    out += indented("set -eu\n" + RunScript(plain).settings("JOB_COMPLETION_INDEX") + "exec \"$@\"\n", "          ");
    const std::string memory =
        needs.memory_bytes > 0 ? fmt::format("            memory: {}Mi\n", whole_mib(needs.memory_bytes)) : "";
    const std::string gpus = needs.gpus > 0 ? fmt::format("            nvidia.com/gpu: {}\n", needs.gpus) : "";
    out += fmt::format("        resources:\n          requests:\n            cpu: {}m\n{}{}", needs.cpu_milli, memory,
                       gpus);
    if (!memory.empty() || !gpus.empty()) out += "          limits:\n" + memory + gpus;
    if (needs.gpus > 0)
        out +=
            "        volumeMounts:\n        - {name: shm, mountPath: /dev/shm}\n"
            "      volumes:\n"
            "      # Data loaders and NCCL share memory between processes; the default is 64 MiB.\n"
            "      - {name: shm, emptyDir: {medium: Memory}}\n";
    return out;
}

}  // namespace

Result<std::vector<FileToWrite>> run_array_files(const RunArray& runs, std::string_view target) {
    const bool slurm = target == "slurm", kubernetes = target == "kubernetes";
    std::string why = runs.points.empty() ? "it has no run" : why_unlike(runs);
    if (why.empty() && kubernetes) why = why_not_on_kubernetes(runs);
    if (why.empty() && !slurm && !kubernetes)
        why = "the file has no plan, only what to run: slurm and kubernetes can say that";
    if (!why.empty())
        return Error(ErrorKind::unsupported, fmt::format("{} cannot say this: {}", target, why), {},
                     kubernetes || slurm ? "" : "kind, model and data tell what is planned; then every target can");
    if (slurm) return std::vector<FileToWrite>{{runs.name + ".sbatch", sbatch_of(runs), 0755}};
    return std::vector<FileToWrite>{{runs.name + ".yaml", manifest_of(runs), 0644}};
}

}  // namespace stoker
