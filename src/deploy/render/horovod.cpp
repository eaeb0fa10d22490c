// horovod: one mpirun from the first node, a hostfile, and the environment handed to every rank.
#include <fmt/format.h>

#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {

std::string horovod_refusal(const Deployment& d) {
    if (!d.training) return fmt::format("Horovod trains, and this is {}", to_string(d.kind));
    const ParallelLayout& layout = d.training->layout;
    if (layout.tensor * layout.pipeline * layout.context * layout.expert > 1 || layout.zero > 0)
        return fmt::format(
            "the layout is {}, and Horovod keeps all of the model on every rank: layout: {{zero: 0}} and framework: "
            "pytorch plan for that",
            describe(layout));
    return "";
}

std::vector<FileToWrite> horovod_files(const Deployment& d) {
    std::string out = "#!/bin/sh\n" + head_comment(d);
    out += fmt::format("# On the first node; the others are reached by ssh without a password.\n#   ./{}.sh{}\n",
                       d.name, program_usage(d));
    out += std::string("set -eu\n\n") + (d.nodes.count > 1 ? "here=$(cd \"$(dirname \"$0\")\" && pwd)\n" : "");
    out += preamble(d) + resume_exports(d);
    out += fmt::format("exec mpirun -np {} ", d.ranks.count);
    if (d.nodes.count > 1) out += fmt::format("--hostfile \"$here/hostfile\" --map-by ppr:{}:node ", d.ranks.per_node);
    // Ranks bind themselves to devices; MPI would bind them to cores, and the loaders with them.
    out += "--bind-to none \\\n    -mca pml ob1 -mca btl ^openib";
    const auto found = d.environment.find("NCCL_SOCKET_IFNAME");
    if (found != d.environment.end())
        out += fmt::format(" -mca btl_tcp_if_include {0} -mca oob_tcp_if_include {0}", found->second);
    out += " \\\n    -x PATH -x LD_LIBRARY_PATH";
    for (const auto& [key, value] : work_environment(d)) out += " \\\n    -x " + key;
    if (!d.checkpoint.folder.empty()) out += " \\\n    ${STOKER_RESUME_FROM:+-x STOKER_RESUME_FROM}";
    out += " \\\n    " + program_words(d) + "\n";
    std::vector<FileToWrite> files{{d.name + ".sh", out, 0755}};
    if (d.nodes.count > 1) {
        std::string hosts = "# One line a node: its name, and how many ranks it starts. Put the nodes' names in.\n";
        for (int node = 0; node < d.nodes.count; ++node)
            hosts += fmt::format("NODE-{} slots={}\n", node, d.ranks.per_node);
        files.push_back({"hostfile", hosts});
    }
    return files;
}

}  // namespace stoker
