#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

// Where Slurm lists its plug-ins; null when the bundle has none, or one that takes in files which are not seen.
const File* plugin_list(const Bundle& bundle) {
    const File* found = nullptr;
    for (const File* file : bundle.files) {
        if (file_name_of(*file) != "plugstack.conf") continue;
        for (const Command& command : file->script.commands) {
            if (command.name() == "include") return nullptr;
            for (const Value& word : command.words)
                if (contains_nocase(word.text, "pyxis")) return nullptr;
        }
        found = file;
    }
    return found;
}

bool names_container(std::string_view option) {
    return option.starts_with("container-image") || option.starts_with("container-mounts");
}

// The first option of the file that only the plug-in knows.
Value container_option(const File& file) {
    Value found;
    for_each_part(file, [&](const File& part) {
        if (found.present()) return;
        for (const Directive& directive : part.script.directives)
            if (directive.prefix == "#SBATCH" && !directive.after_command && names_container(directive.option)) {
                found = Value::known_text(directive.option, directive.span, part.source());
                return;
            }
        for (const Command& command : part.script.commands) {
            if (command.name() != "srun" && command.name() != "sbatch" && command.name() != "salloc") continue;
            for (const Value& word : command.words)
                if (word.text.starts_with("--") && names_container(word.text.substr(2)) && word.source) {
                    found = word;
                    return;
                }
        }
    });
    return found;
}

}  // namespace

void check_slm018(const Bundle& bundle, Report& report) {
    const File* plugins = plugin_list(bundle);
    if (!plugins) return;
    for (const File* file : bundle.files) {
        if (!file->kinds.any({Kind::slurm, Kind::launch}) || file == plugins) continue;
        const Value option = container_option(*file);
        if (option.absent()) continue;
        Finding* finding =
            report.add(*option.source, option.span, script_address(*file) + "#container",
                       "--container-image is an option of the pyxis plug-in, which this cluster's plugstack.conf does "
                       "not load: srun refuses it");
        if (!finding) continue;
        report.relate(finding, plugins->source(), plugins->source().line_at(0), "the plug-ins that are loaded");
        finding->advice = "add \"required /usr/local/lib/slurm/spank_pyxis.so\" to plugstack.conf and install enroot";
    }
}

}  // namespace stoker::lint
