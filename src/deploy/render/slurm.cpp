// slurm: a batch script for sbatch. A training is one job of all its nodes, with torchrun on each; what is independent
// is an array, so that a lost share is queued again alone.
#include <fmt/format.h>

#include <algorithm>

#include "deploy/image_name.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

// Enough for a checkpoint between the signal and the end, and never the whole of a short job.
constexpr std::int64_t kNotice_s = 120, kLeastNotice_s = 10;

class SlurmScript {
public:
    explicit SlurmScript(const Deployment& deployment) : d_(deployment), array_(!d_.training && d_.ranks.count > 1) {}

    std::string text() {
        out_ = "#!/bin/bash\n" + head_comment(d_);
        out_ += fmt::format("#   sbatch {}.sbatch{}\n", d_.name, program_usage(d_));
        directives();
        out_ += "\nset -eu\n\n";
        if (array_)
            out_ += fmt::format(
                "# The share of this task, as stoker run tells it.\n"
                "export STOKER_ARRAY_INDEX=$SLURM_ARRAY_TASK_ID STOKER_ARRAY_COUNT={}\n\n",
                d_.ranks.count);
        out_ += preamble(d_) + resume_exports(d_);
        if (d_.nodes.count > 1 && d_.training)
            out_ +=
                "# The first node is where ranks meet; the port is this job's, beside others on the node.\n"
                "nodes=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
                "export MASTER_ADDR=\"${MASTER_ADDR:-${nodes%%[[:space:]]*}}\"\n"
                "export MASTER_PORT=\"${MASTER_PORT:-$((20000 + SLURM_JOB_ID % 10000))}\"\n\n";
        step();
        return std::move(out_);
    }

private:
    void directive(std::string_view text) { out_ += fmt::format("#SBATCH --{}\n", text); }
    bool resumes() const { return d_.training && !d_.checkpoint.folder.empty(); }
    std::int64_t notice_s() const {
        const std::int64_t wanted = std::max(kNotice_s, d_.policy.grace_s);
        return d_.walltime_s > 0 ? std::max(kLeastNotice_s, std::min(wanted, d_.walltime_s / 10)) : wanted;
    }

    void directives() {
        if (d_.walltime_s <= 0)
            out_ +=
                "# stoker: ignore[SLM009] reason=\"the plan is of this machine and says no time for a cluster: add "
                "--time\"\n";
        directive(fmt::format("job-name={}", d_.name));
        directive(array_ ? fmt::format("output={}-%A_%a.out", d_.name) : fmt::format("output={}-%j.out", d_.name));
        if (array_) {
            out_ += "# Each share is a job of its own: one that is lost is queued again alone.\n";
            directive(fmt::format("array=0-{}", d_.ranks.count - 1));
        }
        directive(fmt::format("nodes={}", array_ ? 1 : d_.nodes.count));
        if (d_.training) {
            out_ += fmt::format("# torchrun starts the {} rank{} of a node, so Slurm starts one task there.\n",
                                d_.ranks.per_node, d_.ranks.per_node == 1 ? "" : "s");
        }
        directive("ntasks-per-node=1");
        const int gpus = array_ ? d_.ranks.each.gpus : gpus_per_node(d_);
        if (gpus > 0)
            directive(d_.nodes.mig ? fmt::format("gres=gpu:{}:{}", d_.nodes.mig->profile, gpus)
                                   : fmt::format("gres=gpu:{}", gpus));
        if (takes_whole_nodes(d_) && (!array_ || d_.ranks.per_node == 1)) {
            out_ += "# The plan counts on whole nodes: 0 is all the memory that a node has.\n";
            directive("exclusive");
            directive("mem=0");
        } else {
            const std::int64_t ranks = array_ ? 1 : d_.ranks.per_node;
            directive(fmt::format("cpus-per-task={}", ranks * whole_cpus(d_.ranks.each)));
            // Of a part of a machine its share of what slurm.conf gives out, which is not all that there is.
            const std::int64_t memory = ranks * whole_mib(d_.ranks.each.memory_bytes);
            if (memory > 0) directive(fmt::format("mem={}M", d_.nodes.mig ? memory * 95 / 100 : memory));
        }
        if (d_.walltime_s > 0) {
            out_ += reason_of(d_, "walltime_s");
            directive("time=" + clock_time(d_.walltime_s));
        }
        if (d_.policy.topology && d_.nodes.count > 1) {
            const bool require = *d_.policy.topology == TopologyWish::require;
            out_ += require ? "# The file asks for one switch, or not at all.\n"
                            : "# The file prefers one switch: half an hour is waited for it (sbatch, --switches).\n";
            directive(require ? "switches=1" : "switches=1@00:30:00");
        }
        if (resumes()) {
            out_ += "# A job whose node fails, or that is preempted, goes back into the queue and resumes.\n";
            directive("requeue");
            directive("open-mode=append");
            out_ += fmt::format(
                "# {} s before the time limit this script is told, so that the ranks can write a checkpoint.\n",
                notice_s());
            directive(fmt::format("signal=B:USR1@{}", notice_s()));
        } else if (array_) {
            directive("requeue");
        }
    }

    std::string container() const {
        if (d_.image.empty()) return "";
        std::string mounts = "$PWD:$PWD";
        // What is written elsewhere would be lost with the container.
        if (d_.checkpoint.folder.starts_with('/')) mounts += ",$STOKER_CHECKPOINT_DIR:$STOKER_CHECKPOINT_DIR";
        if (d_.environment.count("NCCL_TOPO_FILE") > 0) mounts += ",/opt/microsoft:/opt/microsoft:ro";
        return fmt::format(" \\\n    --container-image={} --container-mounts=\"{}\" --container-workdir=\"$PWD\"",
                           shell_word(pyxis_image(d_.image)), mounts);
    }

    void step() {
        if (!d_.image.empty()) {
            if (d_.checkpoint.folder.starts_with('/'))
                out_ += "# Mounted into the container, so it has to be there.\nmkdir -p \"$STOKER_CHECKPOINT_DIR\"\n";
            out_ +=
                "# --container-... are Pyxis' options. Where the site has no plug-in of it the job ends here and says "
                "so:\n# its program on the bare node would be another one.\n"
                "if ! srun --help 2>&1 | grep -e --container-image > /dev/null; then\n"
                "    echo 'error: srun knows no --container-image: this cluster has no Pyxis (plugstack.conf)' >&2\n"
                "    echo '  ask for it, or take image out of the run section and install the program on the nodes' "
                ">&2\n    exit 1\nfi\n";
        }
        std::string srun = "srun";
        if (d_.training) {
            // Within the notice, or the time limit would come first.
            const std::int64_t wait_s = std::clamp<std::int64_t>(d_.policy.grace_s, 1, notice_s() / 2);
            out_ += fmt::format(
                "# Unbound: the one task of a node would be kept on one core, with all ranks in it. When a node ends,\n"
                "# the others have {} s to write what they have.\n",
                wait_s);
            srun += fmt::format(" --cpu-bind=none --wait={}", wait_s);
        } else if (!takes_whole_nodes(d_) || array_) {
            if (!takes_whole_nodes(d_) || d_.ranks.per_node > 1) srun += " --cpus-per-task=\"$SLURM_CPUS_PER_TASK\"";
        }
        srun += container() + " \\\n";
        std::string program = "    " + program_words(d_);
        if (d_.training)
            program = indented(
                torchrun_words(d_, "\"$SLURM_JOB_ID\"", "\"$MASTER_ADDR:$MASTER_PORT\"") + program_words(d_) + "\n",
                "    ");
        while (!program.empty() && program.back() == '\n') program.pop_back();
        if (!resumes()) {
            out_ += "exec " + srun + program + "\n";
            return;
        }
        out_ += srun + program + " &\nstep=$!\n\n";
        out_ += fmt::format(
            "# TERM asks the ranks for a checkpoint (srun would end them itself, so scancel tells them). Before the "
            "time\n"
            "# limit the job then goes back into the queue; {} starts are the limit, for one that never gets "
            "anywhere.\n"
            "again=\n"
            "trap 'again=1; scancel --signal=TERM \"$SLURM_JOB_ID.0\"' USR1\n"
            "trap 'scancel --signal=TERM \"$SLURM_JOB_ID.0\"' TERM\n"
            "while kill -0 \"$step\" 2>/dev/null; do\n"
            "    wait \"$step\" || true  # a signal ends the wait, not the step\n"
            "done\n"
            "code=0\n"
            "wait \"$step\" || code=$?\n"
            "if [ -n \"$again\" ] && [ \"$code\" -ne 0 ] && [ \"${{SLURM_RESTART_COUNT:-0}}\" -lt {} ]; then\n"
            "    trap - TERM\n"
            "    scontrol requeue \"$SLURM_JOB_ID\"\n"
            "    sleep 60  # requeue ends this script; one that ends before may be taken for the job's end\n"
            "fi\n"
            "exit \"$code\"\n",
            d_.policy.attempts, d_.policy.attempts - 1);
    }

    const Deployment& d_;
    const bool array_;
    std::string out_;
};

}  // namespace

std::string slurm_refusal(const Deployment& deployment) {
    if (deployment.kind == WorkloadKind::inference)
        return "a job of Slurm has an end, and a service has none; kubernetes and vllm say it";
    if (deployment.kind == WorkloadKind::notebook)
        return "a notebook is a machine for a person, and this is a queue; cloud-init and az say it";
    if (deployment.nodes.os == "windows") return "Slurm starts work on Linux, and where.os is windows";
    return "";
}

std::vector<FileToWrite> slurm_files(const Deployment& deployment) {
    return {{deployment.name + ".sbatch", SlurmScript(deployment).text(), 0755}};
}

}  // namespace stoker
