// stoker template: workload files to start from, as they stand in data/templates.
#include <fmt/format.h>

#include <filesystem>

#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/workload_templates.h"
#include "base/embedded.h"
#include "base/text.h"
#include "catalog/names.h"
#include "io/files.h"

namespace stoker {

namespace {

Result<WorkloadTemplate> find_template(const std::string& name) {
    std::vector<std::string> names;
    for (WorkloadTemplate& each : workload_templates()) {
        if (fold_name(each.name) == fold_name(name)) return std::move(each);
        names.push_back(each.name);
    }
    return Error(ErrorKind::invalid,
                 fmt::format("no template named {}{}", printable(name, 60), did_you_mean(name, names)), {},
                 "stoker template list shows them");
}

Result<CommandOutput> list(Session& session) {
    FactTable listing{{{"name", "template"}, {"group", "group"}, {"title", "for"}}, {}};
    for (const WorkloadTemplate& each : workload_templates())
        listing.rows.push_back({each.name, each.group, each.title});
    if (session.format != Format::text) return CommandOutput{dump(session, listing.json()), 0};
    return CommandOutput{listing.text(session.style) + "\n  " +
                             session.style.dim("stoker template new NAME FILE, then stoker plan FILE") + "\n",
                         0};
}

Result<CommandOutput> create(Session& session, const Args& args, const WorkloadTemplate& chosen) {
    if (args.positional.size() > 2 && args.has("save"))
        return Error(ErrorKind::invalid, "the file is named twice, by its place and by --save");
    const std::string path =
        args.positional.size() > 2 ? args.positional[2] : args.get_or("save", chosen.name + ".yaml");
    std::error_code error;
    if (std::filesystem::exists(path, error) && !args.has("force")) {
        return Error(ErrorKind::invalid, fmt::format("{} is there already", path), {},
                     "name another file, or --force to replace it");
    }
    TRY_VOID(write_file_atomic(path, chosen.text));
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object().set("template", chosen.name).set("written", path)), 0};
    return CommandOutput{fmt::format("written to {}\nnext: edit it, then  stoker plan {}\n", path, path), 0};
}

Result<CommandOutput> run_template(Session& session, const Args& args) {
    if (args.positional[0] == "list") return list(session);
    if (args.positional.size() < 2)
        return Error(ErrorKind::invalid,
                     fmt::format("stoker template {} needs the NAME of a template", args.positional[0]), {},
                     "stoker template list shows them");
    if (args.positional.size() > 2 && args.positional[0] != "new")
        return Error(ErrorKind::invalid, fmt::format("stoker template {} takes one NAME", args.positional[0]), {},
                     "stoker template new NAME FILE writes a file");
    TRY(const WorkloadTemplate chosen, find_template(args.positional[1]));
    if (args.positional[0] == "new") return create(session, args, chosen);
    if (session.format != Format::text) {
        return CommandOutput{dump(session, Json::object()
                                               .set("template", chosen.name)
                                               .set("title", chosen.title)
                                               .set("group", chosen.group)
                                               .set("text", chosen.text)),
                             0};
    }
    return CommandOutput{std::string(chosen.text), 0};
}

}  // namespace

Result<CommandOutput> show_templates(Session& session, const std::string& name) {
    Args args;
    args.positional = name.empty() ? std::vector<std::string>{"list"} : std::vector<std::string>{"show", name};
    return run_template(session, args);
}

CliCommand template_command() {
    return {
        .name = "template",
        .summary = "workload files to start from",
        .usage = "stoker template list | show NAME | new NAME [FILE]",
        .description = "A template is a complete workload file for a common job, with its choices commented.",
        .examples = {"stoker template list", "stoker template show medical-imaging",
                     "stoker template new chatbot job.yaml"},
        .options = {{.name = "save", .value = "FILE", .help = "new: the same as FILE (NAME.yaml)", .completes = "file"},
                    {.name = "force", .help = "new: replace a file that is there"}},
        .min_positional = 1,
        .max_positional = 3,
        .subcommands = {"list", "show", "new"},
        .run = run_template};
}

}  // namespace stoker
