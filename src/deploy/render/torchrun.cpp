// torchrun: one script, started on every node of the gang. torchrun starts the ranks and tells each who it is; the
// degrees of the layout are the program's to keep, so it finds them in its environment. Options with underscores:
// releases before 2.0 know no others, and later ones both.
#include <fmt/format.h>

#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {

std::string torchrun_refusal(const Deployment& deployment) {
    if (!deployment.training)
        return fmt::format("torchrun starts the ranks of a training, and this is {}", to_string(deployment.kind));
    return "";
}

std::vector<FileToWrite> torchrun_files(const Deployment& deployment) {
    const NodeSet& nodes = deployment.nodes;
    std::string script = "#!/bin/sh\n" + fmt::format("# {}\n", heading(deployment));
    const std::string program = program_usage(deployment);
    if (nodes.count > 1)
        script += fmt::format(
            "# Start it on each of the {} nodes, with the name of the first:\n"
            "#   MASTER_ADDR=NODE-0 ./{}.sh{}\n",
            nodes.count, deployment.name, program);
    else
        script += fmt::format("#   ./{}.sh{}\n", deployment.name, program);
    for (const std::string& note : deployment.notes) script += fmt::format("# {}\n", note);
    script += "set -eu\n\n" + preamble(deployment) + resume_exports(deployment);
    script += "exec " + torchrun_words(deployment, deployment.name,
                                       "\"${MASTER_ADDR:?name of the first node}:${MASTER_PORT:-29500}\"");
    script += program_words(deployment) + "\n";
    return {{deployment.name + ".sh", std::move(script), 0755}};
}

}  // namespace stoker
