// stoker usage: who used how much, and what it cost.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/run_text.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/session.h"

namespace stoker {

namespace {

std::string hours(double value) {
    return value == 0 ? "-" : value < 0.01 ? fmt::format("{:.4f}", value) : fmt::format("{:.2f}", value);
}

Result<CommandOutput> run_usage(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    std::string target = "/api/v1/usage?by=" + args.get_or("by", "user");
    for (const char* name : {"from", "to"})
        if (const auto value = args.get(name)) target += fmt::format("&{}={}", name, url_encoded(*value));
    TRY(const Document document, client->get(target));
    if (session.format != Format::text) return CommandOutput{dump(session, json_of(document.root()))};
    TRY(const auto usage, typed<api::UsageView>(document));
    std::vector<std::vector<std::string>> rows;
    bool unpriced = false;
    const auto row = [&](const api::UsageLine& line, const std::string& name) {
        unpriced = unpriced || !line.priced;
        rows.push_back({name, hours(line.gpu_hours), hours(line.cpu_hours), hours(line.node_hours),
                        line.priced || line.cost_microusd > 0
                            ? money_text(line.cost_microusd) + (line.priced ? "" : " and more")
                            : "no price"});
    };
    for (const api::UsageLine& line : usage.items) row(line, line.key);
    if (usage.items.size() != 1) row(usage.total, "in all");
    std::string text = table_text(session.style,
                                  {{usage.by},
                                   {"GPU hours", Align::right},
                                   {"CPU hours", Align::right},
                                   {"node hours", Align::right},
                                   {"cost", Align::right}},
                                  rows, 0);
    text += session.style.dim(fmt::format("{}{}{}", usage.from.empty() ? "until " : usage.from + " to ", usage.to,
                                          usage.source.empty() ? "" : ", prices: " + usage.source)) +
            "\n";
    if (unpriced) text += "some of it has no price: stoker up --prices FILE\n";
    return CommandOutput{text};
}

}  // namespace

CliCommand usage_command() {
    CliCommand command{
        .name = "usage",
        .summary = "who held what for how long, and what it cost",
        .usage = "stoker usage [options]",
        .description =
            "Sums the intervals in which runs held machines, by user, project, node or run: from the moment a place "
            "was taken to the moment it was given back. Cost is interval times price book (stoker up --prices).",
        .examples = {"stoker usage", "stoker usage --by run --from 2026-11-01", "stoker usage --by node -o json"},
        .options = {{.name = "by",
                     .value = "WHAT",
                     .help = "one line for each (user)",
                     .choices = {"user", "project", "node", "run"}},
                    {.name = "from", .value = "DATE", .help = "since then: 2026-11-01 or RFC 3339"},
                    {.name = "to", .value = "DATE", .help = "until then"}},
        .run = run_usage};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
