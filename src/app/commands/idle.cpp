// stoker idle: runs that hold machines and do nothing, and keeping one of them.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/run_text.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/text.h"
#include "base/units.h"
#include "server/views_idle.h"

namespace stoker {
namespace {

std::string idle_holds(const api::IdleRunView& run) {
    std::string text = run.gpus > 0 ? fmt::format("{} GPU{}", run.gpus, run.gpus == 1 ? "" : "s") : "";
    if (run.cpus > 0) text += fmt::format("{}{:g} CPU", text.empty() ? "" : ", ", run.cpus);
    return text.empty() ? "-" : text;
}

std::string idle_table(Session& session, const api::IdleList& list) {
    std::string text;
    if (list.items.empty()) {
        text = list.rules.empty() ? "" : "nothing that runs is idle\n";
    } else {
        std::vector<std::vector<std::string>> rows;
        for (const api::IdleRunView& run : list.items)
            rows.push_back({run.run.text(), run.name, run.user, run.project, run.state,
                            run.idle_s > 0 ? format_seconds(Seconds(run.idle_s)) : "-", idle_holds(run),
                            run.cost_microusd_per_hour > 0 ? money_text(run.cost_microusd_per_hour) : "-", run.why});
        text = table_text(session.style,
                          {{"run"},
                           {"name"},
                           {"who"},
                           {"project"},
                           {""},
                           {"idle for", Align::right},
                           {"holds", Align::right},
                           {"an hour", Align::right},
                           {"what becomes of it"}},
                          rows, 1);
    }
    if (list.rules.empty())
        return text +
               session.style.dim(
                   "no rules that you may see: runs that do nothing are left alone "
                   "(`idle` in the configuration of the server)") +
               "\n";
    for (const std::string& rule : list.rules) text += session.style.dim("rule  " + rule) + "\n";
    return text;
}

Result<CommandOutput> idle_shown(Session& session, const api::IdleList& list) {
    return CommandOutput{session.format == Format::text ? idle_table(session, list)
                                                        : dump(session, codec::write(list))};
}

Result<CommandOutput> run_idle(Session& session, const Args& args) {
    const std::string& verb = args.positional[0];
    if (verb == "list") {
        if (args.positional.size() > 1 || args.has("for"))
            return Error(ErrorKind::invalid, "stoker idle list shows all of them", {}, "stoker idle keep RUN --for 8h");
        TRY(const auto client, connect(args));
        TRY(const auto list, get<api::IdleList>(*client, "/api/v1/idle"));
        return idle_shown(session, list);
    }
    if (args.positional.size() != 2)
        return Error(ErrorKind::invalid, fmt::format("stoker idle {}: which run?", verb), {},
                     fmt::format("stoker idle {} r-7", verb));
    const auto text = args.get("for");
    double seconds = 0;
    if (verb == "keep") {
        if (!text)
            return Error(ErrorKind::invalid, "for how long?", {},
                         fmt::format("stoker idle keep {} --for 8h", printable(args.positional[1], 60)));
        TRY(const Seconds given, parse_seconds(*text));
        if (given.value() < 1)
            return Error(ErrorKind::invalid, fmt::format("--for is {}, expected at least 1s", printable(*text, 40)));
        seconds = given.value();
    } else if (text) {
        return Error(ErrorKind::invalid, "stoker idle drop takes no --for", {}, "stoker idle keep RUN --for 8h");
    }
    TRY(const auto client, connect(args));
    TRY(const RunId run, find_run(*client, args.positional[1]));
    TRY(const auto list, post<api::IdleList>(*client, "/api/v1/runs/" + run.text() + "/keep",
                                             Json::object().set("for_s", static_cast<std::int64_t>(seconds))));
    if (session.format != Format::text) return idle_shown(session, list);
    if (list.items.empty() || list.items.front().kept_until.empty())
        return CommandOutput{run.text() + " is not kept any more: it is told again before anything is done to it\n"};
    return CommandOutput{fmt::format("{} is left alone until {}\n", run.text(), list.items.front().kept_until)};
}

}  // namespace

CliCommand idle_command() {
    return with_client(
        {.name = "idle",
         .summary = "runs that hold machines and do nothing: list, keep, drop",
         .usage = "stoker idle list | keep RUN --for TIME | drop RUN",
         .description =
             "By the rules under `idle` of the configuration, whoever runs something in which nothing moves is told; "
             "later it may be parked (it is told to write a checkpoint, gives its places back and is held until "
             "stoker release) or, where it writes none, ended. That is done only where the idle time that it saves is "
             "more than the work that it may lose, by the chance that the run would have gone on by itself: the "
             "longer it has been idle, and the fewer pauses it made before, the smaller that is. What nobody measures "
             "counts as busy.\n"
             "keep leaves a run alone for a while, as long as its rule allows; drop takes that back.",
         .examples = {"stoker idle list", "stoker idle keep r-7 --for 8h", "stoker idle drop r-7"},
         .options = {{.name = "for", .value = "TIME", .help = "keep: so long, from now"}},
         .min_positional = 1,
         .max_positional = 2,
         .subcommands = {"list", "keep", "drop"},
         .run = run_idle});
}

}  // namespace stoker
