#include "lint/shell/programs.h"

#include <algorithm>
#include <array>

#include "formats/sbatch_options.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

struct NamedProgram {
    std::string_view name;
    Program program;
};
// Sorted by name.
constexpr std::array kPrograms = std::to_array<NamedProgram>({
    {"accelerate", Program::maybe_launcher},
    {"accelerate-launch", Program::launcher},
    {"aphrodite", Program::launcher},
    {"apptainer", Program::singularity},
    {"aws", Program::cloud},
    {"axolotl", Program::maybe_launcher},
    {"az", Program::azure},
    {"bash", Program::shell},
    {"builtin", Program::prefix},
    {"catchsegv", Program::prefix},
    {"chrt", Program::prefix},
    {"command", Program::prefix},
    {"compute-sanitizer", Program::profiler},
    {"conda", Program::environment},
    {"dash", Program::shell},
    {"deepspeed", Program::launcher},
    {"deepspeed.py", Program::launcher},
    {"dlprof", Program::profiler},
    {"doas", Program::prefix},
    {"docker", Program::docker},
    {"ds", Program::launcher},
    {"dumb-init", Program::prefix},
    {"enroot", Program::singularity},
    {"env", Program::prefix},
    {"eval", Program::eval},
    {"exec", Program::prefix},
    {"gcloud", Program::cloud},
    {"horovodrun", Program::launcher},
    {"ionice", Program::prefix},
    {"ksh", Program::shell},
    {"llama-server", Program::launcher},
    {"llamafactory-cli", Program::maybe_launcher},
    {"lmdeploy", Program::maybe_launcher},
    {"mamba", Program::environment},
    {"megatron", Program::maybe_launcher},
    {"micromamba", Program::environment},
    {"mpiexec", Program::launcher},
    {"mpiexec.hydra", Program::launcher},
    {"mpirun", Program::launcher},
    {"mpirun.openmpi", Program::launcher},
    {"ncu", Program::profiler},
    {"nerdctl", Program::docker},
    {"nice", Program::prefix},
    {"nohup", Program::prefix},
    {"nsys", Program::profiler},
    {"numactl", Program::prefix},
    {"nv-nsight-cu-cli", Program::profiler},
    {"nvprof", Program::profiler},
    {"ollama", Program::maybe_launcher},
    {"orterun", Program::launcher},
    {"pipenv", Program::environment},
    {"pixi", Program::environment},
    {"podman", Program::docker},
    {"poetry", Program::environment},
    {"prlimit", Program::prefix},
    {"prun", Program::launcher},
    {"py-spy", Program::profiler},
    {"rocprof", Program::profiler},
    {"runuser", Program::user},
    {"salloc", Program::salloc},
    {"sbatch", Program::sbatch},
    {"screen", Program::terminal},
    {"setsid", Program::prefix},
    {"sglang", Program::maybe_launcher},
    {"sh", Program::shell},
    {"singularity", Program::singularity},
    {"srun", Program::srun},
    {"ssh", Program::remote},
    {"stdbuf", Program::prefix},
    {"strace", Program::profiler},
    {"su", Program::user},
    {"sudo", Program::prefix},
    {"swift", Program::maybe_launcher},
    {"taskset", Program::prefix},
    {"text-generation-launcher", Program::launcher},
    {"time", Program::prefix},
    {"timeout", Program::prefix},
    {"tini", Program::prefix},
    {"tmux", Program::terminal},
    {"torchrun", Program::launcher},
    {"tritonserver", Program::launcher},
    {"trtllm-serve", Program::launcher},
    {"unbuffer", Program::prefix},
    {"uv", Program::environment},
    {"vllm", Program::maybe_launcher},
    {"zsh", Program::shell},
});
static_assert(std::is_sorted(kPrograms.begin(), kPrograms.end(),
                             [](const NamedProgram& a, const NamedProgram& b) { return a.name < b.name; }));

// Where the names with this first letter begin.
constexpr auto kFirst = [] {
    std::array<std::uint8_t, 128> first{};
    first.fill(kPrograms.size());
    for (std::size_t k = kPrograms.size(); k-- > 0;)
        first[static_cast<unsigned char>(kPrograms[k].name[0])] = static_cast<std::uint8_t>(k);
    return first;
}();

}  // namespace

Program program_of(std::string_view name) {
    if (name.empty() || static_cast<unsigned char>(name[0]) >= kFirst.size()) return Program::other;
    for (std::size_t k = kFirst[static_cast<unsigned char>(name[0])];
         k < kPrograms.size() && kPrograms[k].name[0] == name[0]; ++k)
        if (kPrograms[k].name == name) return kPrograms[k].program;
    if (name.starts_with("python") && name.size() <= 12 && name.find(".py") == std::string_view::npos)
        return Program::python;
    return Program::other;
}

bool has_part(std::string_view text, std::initializer_list<std::string_view> list) {
    return std::any_of(list.begin(), list.end(), [&](std::string_view part) { return contains_nocase(text, part); });
}

bool env_name(std::string_view text) {
    if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

std::optional<Launcher> launcher_of_program(std::string_view name) {
    if (name == "torchrun") return Launcher::torchrun;
    if (name == "deepspeed" || name == "ds" || name == "deepspeed.py") return Launcher::deepspeed;
    if (name == "accelerate-launch") return Launcher::accelerate;
    if (one_of(name, {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "horovodrun", "mpirun.openmpi", "prun"}))
        return Launcher::mpirun;
    if (name == "text-generation-launcher") return Launcher::tgi;
    if (name == "trtllm-serve") return Launcher::trtllm;
    if (name == "tritonserver") return Launcher::triton;
    if (one_of(name, {"llama-server", "aphrodite"})) return Launcher::other_server;
    return std::nullopt;
}
std::optional<Launcher> launcher_of_module(std::string_view name) {
    if (name == "torch.distributed.run" || name == "torch.distributed.elastic.run") return Launcher::torchrun;
    if (name == "torch.distributed.launch") return Launcher::torch_launch;
    if (name == "deepspeed" || name == "deepspeed.launcher.runner") return Launcher::deepspeed;
    if (name == "accelerate.commands.launch") return Launcher::accelerate;
    if (name == "vllm.entrypoints.openai.api_server" || name == "vllm.entrypoints.api_server" ||
        name == "vllm.entrypoints.cli.main")
        return Launcher::vllm;
    if (name == "sglang.launch_server") return Launcher::sglang;
    if (name.starts_with("dynamo.") || name.starts_with("fastchat.serve") || name.starts_with("lmdeploy.serve"))
        return Launcher::other_server;
    return std::nullopt;
}

bool trains_by_name(std::string_view program) {
    return has_part(base_name_of(program),
                    {"train", "finetun", "fine_tun", "fine-tun", "_sft", "sft_", "grpo", "rlhf"});
}
bool trains_by_option(std::string_view name) {
    return one_of(name, {"deepspeed", "fsdp", "fp16", "bf16", "tensor-model-parallel-size",
                         "pipeline-model-parallel-size", "micro-batch-size", "per-device-train-batch-size",
                         "mixed-precision", "deepspeed-config", "dist-backend"});
}

bool launcher_switch(Launcher launcher, std::string_view name) {
    switch (launcher) {
        case Launcher::torchrun:
        case Launcher::torch_launch:
            return one_of(name, {"standalone", "no-python", "run-path", "use-env", "m", "module", "h", "help"});
        case Launcher::deepspeed:
            return one_of(name,
                          {"no-local-rank", "no-ssh-check", "no-ssh", "force-multi", "save-pid", "module", "no-python",
                           "bind-cores-to-rank", "elastic-training", "h", "help", "enable-elastic-training", "m"});
        case Launcher::accelerate:
            return one_of(name, {"multi-gpu",
                                 "use-deepspeed",
                                 "use-fsdp",
                                 "cpu",
                                 "tpu",
                                 "use-megatron-lm",
                                 "mps",
                                 "quiet",
                                 "q",
                                 "m",
                                 "module",
                                 "no-python",
                                 "same-network",
                                 "debug",
                                 "ipex",
                                 "downcast-bf16",
                                 "h",
                                 "help",
                                 "use-xpu",
                                 "tpu-use-cluster",
                                 "fp16",
                                 "mpirun-ccl",
                                 "enable-cpu-affinity"});
        default: return false;
    }
}
bool mpi_switch(std::string_view name) {
    return one_of(name, {"allow-run-as-root",
                         "oversubscribe",
                         "bind-to-none",
                         "tag-output",
                         "report-bindings",
                         "v",
                         "verbose",
                         "display-map",
                         "display-allocation",
                         "nooversubscribe",
                         "use-hwthread-cpus",
                         "q",
                         "bynode",
                         "byslot",
                         "help",
                         "h",
                         "V",
                         "version",
                         "l",
                         "merge-stderr-to-stdout",
                         "nolocal",
                         "do-not-launch",
                         "timestamp-output",
                         "prepend-rank",
                         "pernode",
                         "hybrid"});
}
bool srun_takes_value(std::string_view name, bool dashes) {
    if (!dashes) {
        if (name.size() > 1) return false;  // -N2
        return std::string_view("ABbCcDdeFGgiJLMmNnopqrSTtWwxa").find(name[0]) != std::string_view::npos;
    }
    if (const sbatch::Found known = sbatch::find_option(name)) return known.named->takes == sbatch::Takes::value;
    if (name.starts_with("container-"))
        return one_of(name, {"container-image", "container-mounts", "container-workdir", "container-name",
                             "container-save", "container-env", "container-id"});
    return one_of(name,
                  {"mpi",     "cpu-bind",         "cpu_bind",    "mem-bind",   "mem_bind",     "epilog",
                   "prolog",  "task-prolog",      "task-epilog", "jobid",      "het-group",    "relative",
                   "threads", "max-exit-timeout", "gpu-bind",    "accel-bind", "slurmd-debug", "kill-on-invalid-dep",
                   "multi",   "pack-group",       "wait"});
}
bool docker_switch(std::string_view name, bool dashes) {
    if (!dashes) return name.find_first_not_of("itdPq") == std::string_view::npos;
    return one_of(name, {"rm", "privileged", "init", "read-only", "no-healthcheck", "oom-kill-disable", "publish-all",
                         "detach", "interactive", "tty", "sig-proxy", "quiet", "help"});
}
bool singularity_switch(std::string_view name, bool dashes) {
    if (!dashes) return name.find_first_not_of("cCefipu") == std::string_view::npos;
    return one_of(name, {"nv",     "rocm",       "writable", "writable-tmpfs", "contain",  "rw",
                         "root",   "containall", "cleanenv", "no-home",        "fakeroot", "userns",
                         "ipc",    "pid",        "net",      "nvccli",         "no-privs", "keep-privs",
                         "compat", "unsquash",   "no-init",  "disable-cache",  "no-eval",  "uts"});
}

}  // namespace stoker::lint
