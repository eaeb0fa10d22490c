#include "lint/rules/common_layout.h"

namespace stoker::lint {

namespace {

// The function whose body a command stands in: the nearest head at the beginning of a line above it. Empty: none.
std::string_view function_around(const File& part, const Command& command) {
    const std::string_view text = part.source().text();
    for (std::size_t end = command.span.begin; end > 0;) {
        const std::size_t newline = text.rfind('\n', end - 1);
        const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
        std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
        if (begin < command.span.begin && line.starts_with('}')) return {};
        if (line.starts_with("function ")) line = line.substr(9);
        const std::size_t size = line.find_first_of(" \t({");
        if (size != 0 && size != std::string_view::npos && line.find('{') != std::string_view::npos &&
            (line.substr(size, 2) == "()" || text.substr(begin, 9) == "function "))
            return line.substr(0, size);
        if (begin == 0) return {};
        end = begin - 1;
    }
    return {};
}

// Called by the batch script itself, not by a shell that srun or ssh starts elsewhere.
bool called_here(const File& part, std::string_view function) {
    const File* const scripts[] = {&part, part.call ? part.call->caller : nullptr};
    bool called = false;
    for (const File* each : scripts) {
        if (!each) continue;
        const std::string_view text = each->source().text();
        for (const std::string_view handed : {"export -f ", "declare -f", "typeset -f", "declare -fx"})
            if (text.find(handed) != std::string_view::npos) return false;
        for (const Command& command : each->script.commands) {
            if (command.name() != function || command.words.front().source != &each->source()) continue;
            if (command.in_function || command.in_background || command.in_substitution) return false;
            called = true;
        }
    }
    return called;
}

}  // namespace

// A batch script runs on the first node of its allocation; only srun (or mpirun, ssh) starts anything on the others.
void check_slm019(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    for_each_launch(file, [&](const File& part, const Launch& launch, const std::string& address) {
        if (launch.under_srun || launch.open || !launch.trains() || &part != batch) return;
        if (launch.launcher != Launcher::torchrun && launch.launcher != Launcher::torch_launch &&
            launch.launcher != Launcher::accelerate)
            return;
        const auto nodes = batch_nodes(*batch, component_of(*batch, launch));
        if (!nodes || nodes->count < 2) return;
        if (launch.command >= 0) {
            const Command& command = part.script.commands[static_cast<std::size_t>(launch.command)];
            // Beside a host that ssh or srun names in the same pipeline, or in a function that may be run elsewhere.
            if (command.in_background || command.in_substitution) return;
            if (command.in_function) {
                const std::string_view function = function_around(part, command);
                if (function.empty() || !called_here(part, function)) return;
            }
            for (const Value& word : command.words)
                if (word.is("ssh") || word.is("srun") || word.is("pdsh") || word.is("mpirun") || word.is("mpiexec"))
                    return;
        }
        // Waiting for one node on purpose.
        if (literal_int(launch.nodes) == std::optional<std::int64_t>(1) || launch.option("standalone")) return;
        Finding* finding = report.add(*launch.source, launch.word, address + "#node",
                                      "this runs on the first of " + std::to_string(nodes->count) +
                                          " nodes: without srun nothing is started on the others");
        if (!finding) return;
        report.relate(finding, *nodes->value.source, nodes->value.span, "nodes of the batch");
        finding->advice =
            "srun --ntasks-per-node=1 torchrun --nnodes $SLURM_NNODES --rdzv-backend c10d --rdzv-endpoint $HEAD:29500 "
            "...";
    });
}

}  // namespace stoker::lint
