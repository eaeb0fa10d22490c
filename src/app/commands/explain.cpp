// stoker explain: one page on every word that a plan uses.
#include <fmt/format.h>

#include <map>

#include "app/commands/commands.h"
#include "app/explain_pages.h"
#include "app/session.h"
#include "base/text.h"

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

Result<CommandOutput> run_explain(Session& session, const Args& args) {
    if (args.positional.empty())
        return CommandOutput{session.format == Format::text ? index_text(session.style) : dump(session, index_json()),
                             0};
    const std::string topic = join(args.positional, " ");
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
    CliCommand command{.name = "explain",
                       .summary = "a page on a term: what it is, in infrastructure words and in AI words",
                       .usage = "stoker explain [TOPIC]",
                       .description = "Every term that a plan prints has a page. Without a topic: the list of pages.",
                       .examples = {"stoker explain profile training", "stoker explain infiniband",
                                    "stoker explain tensor-cores", "stoker explain quota"},
                       .max_positional = 6,
                       .run = run_explain,
                       .completes = "topic"};
    return command;
}

}  // namespace stoker
