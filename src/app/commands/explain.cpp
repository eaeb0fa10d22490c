// stoker explain: one page on every word that a plan uses; and a run held against its plan.
#include <fmt/format.h>

#include <map>

#include "app/client/client.h"
#include "app/client/explanation_against.h"
#include "app/client/explanation_text.h"
#include "app/client/explanation_timeline.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/commands/deploy_endpoint.h"
#include "app/commands/endpoints.h"
#include "app/explain_pages.h"
#include "app/rule_view.h"
#include "app/session.h"
#include "base/text.h"
#include "io/files.h"

namespace stoker {

namespace {

std::string index_text(const Style& style) {
    std::map<std::string, std::vector<const ExplainPage*>> groups;
    for (const ExplainPage& page : explain_pages()) groups[page.group].push_back(&page);
    std::string text;
    for (const auto& [group, pages] : groups) {
        text += (text.empty() ? "" : "\n") + style.bold(group) + "\n";
        std::vector<std::vector<std::string>> rows;
        for (const ExplainPage* page : pages) rows.push_back({page->name, page->title});
        const std::string table = table_text(style, {{pad_right("", 22)}, {""}}, rows);
        text += table.substr(table.find('\n') + 1);
    }
    return text + "\n  " + style.dim("stoker explain TOPIC") + "\n";
}

Json index_json() {
    Json array = Json::array();
    for (const ExplainPage& page : explain_pages()) {
        Json aliases = Json::array();
        for (const std::string& alias : page.aliases) aliases.push(alias);
        array.push(Json::object()
                       .set("topic", page.name)
                       .set("title", page.title)
                       .set("group", page.group)
                       .set("aliases", aliases));
    }
    return array;
}

std::vector<OptionSpec> explain_options() {
    std::vector<OptionSpec> options = client_options();
    options.push_back(
        {.name = "again", .help = "of a run that ended: judge what is left of its series, not what was kept"});
    options.push_back({.name = "against",
                       .value = "RUN",
                       .help = "hold the run against another one: each term of both, and which causes only one has"});
    options.push_back({.name = "html",
                       .value = "FILE",
                       .help = "also write one self-contained page with a picture of the steps",
                       .completes = "file"});
    return options;
}

Result<api::ExplanationView> explanation_of(Client& client, const Args& args, RunId id) {
    TRY(const Document document,
        client.get(fmt::format("/api/v1/runs/{}/explanation{}", id.text(), args.has("again") ? "?again=true" : "")));
    return typed<api::ExplanationView>(document);
}

Result<CommandOutput> explain_one_run(Session& session, const Args& args, RunId id) {
    TRY(const auto client, connect_to_look(args));
    if (const auto against = args.get("against")) {
        TRY(const RunId other, find_run(*client, std::string(*against)));
        TRY(const auto mine, explanation_of(*client, args, id));
        TRY(const auto theirs, explanation_of(*client, args, other));
        if (session.format != Format::text) return CommandOutput{dump(session, against_json(mine, theirs)), 0};
        return CommandOutput{against_text(mine, theirs, session.style), 0};
    }
    TRY(const Document document,
        client->get(fmt::format("/api/v1/runs/{}/explanation{}", id.text(), args.has("again") ? "?again=true" : "")));
    TRY(const auto view, typed<api::ExplanationView>(document));
    if (const auto html = args.get("html")) TRY_VOID(write_file_atomic(*html, explanation_html(view)));
    if (session.format != Format::text) return CommandOutput{dump(session, json_of(document.root())), 0};
    return CommandOutput{explanation_text(view, session.style), 0};
}

Result<CommandOutput> run_explain(Session& session, const Args& args) {
    if (args.positional.size() == 1)
        if (const auto id = RunId::parse(args.positional[0])) return explain_one_run(session, args, *id);
    if (args.positional.size() == 1 && is_endpoint_name(args.positional[0])) {
        // A word of ours goes before an endpoint that is called like it, unless its folder is named.
        const std::string& name = args.positional[0];
        if (args.has("folder") || (find_rule(name) == nullptr && !find_page(name))) {
            TRY(const std::string path, endpoints_path(args));
            const EndpointFolder folder(path);
            auto endpoint = folder.read(name);
            if (endpoint) return explain_endpoint(session, folder, *endpoint);
            if (endpoint.error().kind() != ErrorKind::not_found) return endpoint.error();
        }
    }
    // The name of a run, where it is no word of ours; without a server or a folder there is none.
    if (args.positional.size() == 1 && find_rule(args.positional[0]) == nullptr && !find_page(args.positional[0]))
        if (const auto client = connect_to_look(args))
            if (const auto id = find_run(**client, args.positional[0])) return explain_one_run(session, args, *id);
    for (const OptionSpec& option : explain_options())
        if (args.has(option.name))
            return Error(ErrorKind::invalid, fmt::format("--{} is for `stoker explain RUN`", option.name), {},
                         "a run is written like r-7");
    if (args.positional.empty())
        return CommandOutput{session.format == Format::text ? index_text(session.style) : dump(session, index_json()),
                             0};
    const std::string topic = join(args.positional, " ");
    if (const lint::RulePage* rule = find_rule(topic))
        return CommandOutput{
            session.format == Format::text ? rule_text(*rule, session.style) : dump(session, rule_json(*rule)), 0};
    TRY(const Catalog* catalog, session.catalog());
    auto found = find_page(topic);
    if (!found) {  // not a term but a thing of the catalogue: say where its card is
        const char* table = catalog->find_node_type(topic)     ? "sizes"
                            : catalog->find_accelerator(topic) ? "gpus"
                                                               : nullptr;
        if (table != nullptr)
            return Error(ErrorKind::invalid, fmt::format("no page on '{}', which is in the catalogue", topic), {},
                         fmt::format("stoker catalog {} {}", table, topic));
        return std::move(found).error();
    }
    const ExplainPage* page = *found;
    if (session.format != Format::text) {
        const Style plain;
        return CommandOutput{dump(session, Json::object()
                                               .set("topic", page->name)
                                               .set("title", page->title)
                                               .set("group", page->group)
                                               .set("text", page->body)
                                               .set("facts", facts_of_page(page->name, *catalog, plain))),
                             0};
    }
    std::string text = session.style.bold(page->title) + "\n" + render_page(page->body, session.style);
    const std::string facts = facts_of_page(page->name, *catalog, session.style);
    if (!facts.empty())
        text += "\n" + facts + "  " +
                session.style.dim(fmt::format("from catalogue {} of {}", catalog->version, catalog->as_of)) + "\n";
    return CommandOutput{text, 0};
}

}  // namespace

CliCommand explain_command() {
    CliCommand command{
        .name = "explain",
        .summary = "a run or an endpoint against its plan, and why; or a page on a term",
        .usage = "stoker explain [TOPIC | RUN | ENDPOINT] [options]",
        .description =
            "Of a run: step, input, collectives, memory, time and cost as measured beside the plan, "
            "and what explains the difference, each diagnosis with its evidence, its part and a fix; "
            "else what was ruled out, and what could not be known. With a server, or from what it "
            "left in the folder. A run is judged when it ends, and an hour later, when its seconds are "
            "gone, that is what is shown.\n"
            "Of an endpoint: first and further tokens, tokens a second and cost as measured over the last ten minutes "
            "beside the plan, and why it is slower, each cause with its evidence and a fix.\n"
            "Of a term: what it is, in infrastructure words and in AI words. Every term that a plan "
            "prints has a page. Without a topic: the list of pages.\n"
            "Of a rule of stoker check, by its id: why it fires, what ignoring it costs, its source, and "
            "examples.",
        .examples = {"stoker explain r-7", "stoker explain r-7 --html r-7.html", "stoker explain r-9 --against r-7",
                     "stoker explain chat", "stoker explain r-7 -o json | jq '.causes[].cause'",
                     "stoker explain profile training", "stoker explain infiniband", "stoker explain tensor-cores",
                     "stoker explain NET001"},
        .max_positional = 6,
        .run = run_explain,
        .completes = "topic"};
    command.options = explain_options();
    return command;
}

}  // namespace stoker
