#include "app/commands/doctor_cloud.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "app/client/client.h"
#include "app/client/typed.h"
#include "base/api_time.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "deploy/render/words.h"
#include "io/files.h"
#include "readings/forgotten.h"
#include "run/state/states.h"
#include "server/views.h"
#include "server/views_endpoints.h"
#include "server/views_nodes.h"

namespace stoker {
namespace {

constexpr std::size_t kMostListBytes = 256u << 20, kMostLists = 256;

// As it is called, and as the files that are rendered of it shorten that.
void add_work(HeldNames& held, const std::string& name) {
    held.work.insert(lower(name));
    for (const std::size_t most : {20u, 30u, 40u}) held.work.insert(dns_label(name, most));
}

// Nodes, and work that has not ended.
Result<HeldNames> names_of(Client& client) {
    HeldNames held;
    TRY(const auto nodes, get<api::NodeList>(client, "/api/v1/nodes"));
    for (const api::NodeView& node : nodes.items) held.nodes.insert(lower(node.name));
    std::string states;
    for (const auto& [state, word] : enum_names(RunState{}))
        if (!is_terminal(state)) states += fmt::format("&state={}", word);
    std::string cursor;
    do {
        TRY(const auto page,
            get<api::RunPage>(client, fmt::format("/api/v1/runs?limit=500{}{}{}", states,
                                                  cursor.empty() ? "" : "&cursor=", url_encoded(cursor))));
        for (const api::RunItem& run : page.items) {
            held.work.insert(lower(run.id.text()));
            add_work(held, run.name);
        }
        cursor = page.next_cursor;
    } while (!cursor.empty());
    TRY(const auto endpoints, get<api::EndpointList>(client, "/api/v1/endpoints"));
    for (const api::EndpointItem& each : endpoints.items)
        if (!each.stopped) add_work(held, each.name);
    return held;
}

// None: nobody was named, and no server runs here.
Result<std::optional<HeldNames>> ask_server(const Args& args) {
    const bool named = args.has("server") || args.has("folder") || std::getenv("STOKER_SERVER") != nullptr;
    std::error_code code;
    if (const auto folder = args.get("folder"); folder && !std::filesystem::is_directory(*folder, code))
        return Error(ErrorKind::invalid, fmt::format("--folder {} is no folder", printable(*folder)));
    const auto client = named ? connect_to_look(args) : connect(args);
    if (!client && !named) return std::optional<HeldNames>();
    if (!client) return client.error();
    TRY(HeldNames held, names_of(**client));
    return std::optional(std::move(held));
}

std::string command_of(const ForgottenThing& found) {
    std::string out;
    for (const std::string& word : found.remove) out += (out.empty() ? "" : " ") + shell_word(word);
    return out;
}

std::string monthly(const ForgottenThing& found) {
    if (!found.usd_per_month) return "unpriced";
    return *found.usd_per_month == 0 ? "free" : format_usd(Usd::from_double(*found.usd_per_month)) + " a month";
}

std::string text_of(const ForgottenReport& report, std::size_t files, const Style& style) {
    std::size_t sure = 0;
    for (const ForgottenThing& each : report.things) sure += each.sure() ? 1 : 0;
    const auto things = [](std::size_t n) { return fmt::format("{} thing{}", n, n == 1 ? "" : "s"); };
    std::string out = fmt::format(
        "{} of {} in {} file{} {} forgotten: {} a month{}\n", style.bold(things(sure)), report.looked_at, files,
        files == 1 ? "" : "s", sure == 1 ? "is" : "are", format_usd(Usd::from_double(report.usd_per_month)),
        report.unpriced > 0 ? fmt::format(", without {} that the catalogue has no price of", report.unpriced) : "");
    if (report.things.size() > sure)
        out += fmt::format("{} more to ask about: {} a month\n", report.things.size() - sure,
                           format_usd(Usd::from_double(report.perhaps_usd_per_month)));
    if (report.held > 0) out += fmt::format("{} held by this server\n", report.held);
    for (const ForgottenThing& each : report.things) {
        const CloudThing& thing = each.thing;
        std::string what = fmt::format("{} {}", enum_word(thing.kind), printable(thing.name, 100));
        std::string where;
        for (const std::string& word :
             {thing.cloud, thing.kind == ThingKind::node_pool ? "" : thing.group, thing.cluster,
              thing.region.empty() ? thing.zone : thing.region, thing.type == "" ? "" : thing.type})
            if (!word.empty() && word != thing.name) where += (where.empty() ? "" : ", ") + printable(word, 80);
        if (thing.gib > 0) where += fmt::format(", {:g} GiB", thing.gib);
        out += fmt::format("\n{}  {}\n", each.sure() ? style.bad(what) : style.warn(what), where);
        for (const WhyForgotten& why : each.why) out += fmt::format("  why      {}\n", why.what);
        out += fmt::format("  costs    {}{}{}\n", monthly(each), each.price_note.empty() ? "" : ": " + each.price_note,
                           each.age_days ? fmt::format("; made {} d ago", *each.age_days) : "");
        const std::string command = command_of(each);
        out += fmt::format("  remove   {}\n", command.empty() ? "the list does not say where it is" : command);
        out +=
            style.dim(fmt::format("  from     {}:{}:{}", printable(thing.file, 200), thing.line, thing.column)) + "\n";
    }
    if (!report.things.empty())
        out +=
            "\nNothing was removed: ask whoever may know, then run the lines above. What hangs on a machine (its disk, "
            "interface, address) may stay behind it: take the lists anew.\n";
    for (const std::string& note : report.notes)
        for (bool first = true; const std::string& line : wrap(note, 110))
            out += (std::exchange(first, false) ? "note: " : "      ") + line + "\n";
    return out;
}

Json json_of(const ForgottenReport& report) {
    Json things = Json::array();
    for (const ForgottenThing& each : report.things) {
        const CloudThing& thing = each.thing;
        Json why = Json::array();
        for (const WhyForgotten& one : each.why)
            why.push(Json::object().set("reason", one.reason).set("sure", one.sure).set("what", one.what));
        things.push(Json::object()
                        .set("kind", enum_word(thing.kind))
                        .set("cloud", thing.cloud)
                        .set("name", printable(thing.name, 200))
                        .set("id", printable(thing.id, 1000))
                        .set("region", printable(thing.region, 80))
                        .set("type", printable(thing.type, 200))
                        .set("said", printable(thing.said, 80))
                        .set("sure", each.sure())
                        .set("why", std::move(why))
                        .set("age_days", each.age_days ? Json(*each.age_days) : Json())
                        .set("usd_per_month", each.usd_per_month ? Json(*each.usd_per_month) : Json())
                        .set("price_note", each.price_note)
                        .set("remove", command_of(each))
                        .set("file", thing.file)
                        .set("line", static_cast<std::int64_t>(thing.line))
                        .set("column", static_cast<std::int64_t>(thing.column)));
    }
    Json notes = Json::array();
    for (const std::string& note : report.notes) notes.push(note);
    return Json::object()
        .set("looked_at", static_cast<std::int64_t>(report.looked_at))
        .set("held", static_cast<std::int64_t>(report.held))
        .set("usd_per_month", report.usd_per_month)
        .set("perhaps_usd_per_month", report.perhaps_usd_per_month)
        .set("unpriced", static_cast<std::int64_t>(report.unpriced))
        .set("things", std::move(things))
        .set("notes", std::move(notes));
}

}  // namespace

Result<CommandOutput> find_forgotten_things(Session& session, const Args& args) {
    const std::vector<std::string> names = args.all("read");
    if (names.empty())
        return Error(ErrorKind::invalid, "which lists?", {},
                     "az vm list -d -o json > vms.json; az disk list -o json > disks.json; stoker doctor cloud --read "
                     "vms.json disks.json");
    if (names.size() > kMostLists)
        return Error(ErrorKind::invalid, fmt::format("more than {} files", kMostLists), {}, "name fewer at once");
    TRY(const Catalog* catalog, session.catalog());
    std::vector<CloudList> lists;
    Problems problems;
    for (const std::string& name : names) {
        auto text = read_file(name, kMostListBytes);
        const std::string shown = name == "-" ? "stdin" : name;
        if (text) session.sources[shown] = *text;
        auto list = text ? read_cloud_list(session.sources[shown], shown) : Result<CloudList>(text.error());
        if (list)
            lists.push_back(std::move(*list));
        else
            problems.insert(problems.end(), list.error().problems().begin(), list.error().problems().end());
    }
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    TRY(const std::optional<HeldNames> held, ask_server(args));
    const ForgottenReport report =
        find_forgotten(std::move(lists), *catalog, held ? &*held : nullptr, parse_rfc3339(session.today).value_or(0));
    const bool any = !report.things.empty() && report.things.front().sure();
    if (session.format != Format::text) return CommandOutput{dump(session, json_of(report)), any ? 1 : 0};
    return CommandOutput{text_of(report, names.size(), session.style), any ? 1 : 0};
}

}  // namespace stoker
