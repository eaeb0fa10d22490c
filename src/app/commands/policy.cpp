// stoker policy, audit: which runs are taken, and who asked for what.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/commands/journal_export.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/api_time.h"
#include "base/embedded.h"
#include "base/text.h"
#include "base/units.h"
#include "io/process.h"
#include "server/views_admission.h"
#include "server/views_audit.h"

namespace stoker {
namespace {

constexpr std::size_t kMostRunsShown = 20;

Result<CommandOutput> list_rules(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    TRY(const auto list, get<api::AdmissionList>(*client, "/api/v1/admission"));
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(list))};
    if (list.items.empty())
        return CommandOutput{"no rules: every run is taken (stoker config set FILE, with admission: in it)\n"};
    std::vector<std::vector<std::string>> rows;
    for (const auto& each : list.items) rows.push_back({each.name, each.in_words, each.remedy});
    return CommandOutput{table_text(session.style, {{"rule"}, {"asks"}, {"what to do"}}, rows, 0)};
}

std::string test_text(Session& session, const api::AdmissionTest& test) {
    std::string text = fmt::format("would have refused {} of {} run{} since {}\n", test.refused, test.judged,
                                   test.judged == 1 ? "" : "s", test.from.substr(0, 16));
    if (!test.oldest.empty() && test.oldest > test.from)
        text += session.style.dim(
                    fmt::format("the oldest run that the server still keeps is of {}", test.oldest.substr(0, 16))) +
                "\n";
    std::vector<std::vector<std::string>> rows;
    for (const auto& each : test.rules) rows.push_back({each.name, std::to_string(each.refuses), each.in_words});
    text += "\n" + table_text(session.style, {{"rule"}, {"refuses", Align::right}, {"asks"}}, rows, 0);
    if (test.items.empty()) return text;
    rows.clear();
    for (const auto& each : test.items) {
        if (rows.size() == kMostRunsShown) break;
        rows.push_back(
            {each.run.text(), printable(each.name, 40), printable(each.user, 30), each.project,
             each.reasons.empty()
                 ? ""
                 : each.reasons.front() +
                       (each.reasons.size() > 1 ? fmt::format(" and {} more", each.reasons.size() - 1) : "")});
    }
    text += "\n" + table_text(session.style, {{"run"}, {"name"}, {"of"}, {"project"}, {"because"}}, rows, 0);
    if (test.refused > static_cast<std::int64_t>(rows.size()))
        text +=
            session.style.dim(fmt::format("and {} more; -o json has {} of them",
                                          test.refused - static_cast<std::int64_t>(rows.size()), test.items.size())) +
            "\n";
    return text;
}

Result<CommandOutput> test_rules(Session& session, const Args& args) {
    std::string text;
    const std::string file = args.positional.size() > 1 ? args.positional[1] : "";
    if (!file.empty()) {
        TRY(text, session.read_source(file));
        if (trim(text).empty()) return Error(ErrorKind::invalid, "there are no rules in it", {file, 1, 1});
    }
    const auto seconds = parse_seconds(args.get_or("last", "30d"));
    if (!seconds) return Error(ErrorKind::invalid, "--last: " + seconds.error().message(), {}, "write 30d, or 12h");
    TRY(const auto client, connect_to_look(args));
    auto answer = client->post("/api/v1/admission/test",
                               Json::object().set("text", text).set("last_s", static_cast<std::int64_t>(seconds->v)));
    if (!answer) {
        // The server calls it config; here it is a file, whose lines can be shown.
        std::vector<Problem> problems = answer.error().problems();
        for (Problem& problem : problems)
            if (problem.pos.file == "config") problem.pos.file = file == "-" ? std::string("stdin") : file;
        return Error(answer.error().kind(), std::move(problems));
    }
    TRY(const auto test, typed<api::AdmissionTest>(*answer));
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(test))};
    return CommandOutput{test_text(session, test)};
}

// Files of data/policy, with "# title: ..." in their first lines.
struct PolicyTemplate {
    std::string name, title;
    std::string_view text;
};
std::vector<PolicyTemplate> policy_templates() {
    constexpr std::string_view kFolder = "policy/", kEnd = ".yaml", kTitle = "# title:";
    std::vector<PolicyTemplate> all;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with(kFolder) || !file.path.ends_with(kEnd)) continue;
        PolicyTemplate one{
            .name = std::string(file.path.substr(kFolder.size(), file.path.size() - kFolder.size() - kEnd.size())),
            .title = "",
            .text = file.bytes};
        for (const std::string_view line : split_lines(file.bytes))
            if (line.starts_with(kTitle)) one.title = trim(line.substr(kTitle.size()));
        all.push_back(std::move(one));
    }
    return all;
}

Result<CommandOutput> show_template(Session& session, const Args& args) {
    const std::vector<PolicyTemplate> all = policy_templates();
    if (args.positional.size() < 2) {
        if (session.format != Format::text) {
            Json list = Json::array();
            for (const PolicyTemplate& each : all)
                list.push(Json::object().set("name", each.name).set("title", each.title));
            return CommandOutput{dump(session, Json::object().set("items", std::move(list)))};
        }
        std::vector<std::vector<std::string>> rows;
        for (const PolicyTemplate& each : all) rows.push_back({each.name, each.title});
        return CommandOutput{table_text(session.style, {{"template"}, {"for"}}, rows, 0) +
                             session.style.dim("stoker policy template NAME > server.yaml") + "\n"};
    }
    const std::string& wanted = args.positional[1];
    std::vector<std::string> names;
    for (const PolicyTemplate& each : all) {
        if (each.name == wanted) {
            if (session.format != Format::text)
                return CommandOutput{
                    dump(session, Json::object().set("name", each.name).set("text", std::string(each.text)))};
            return CommandOutput{std::string(each.text)};
        }
        names.push_back(each.name);
    }
    return Error(ErrorKind::invalid, fmt::format("there is no template {}", printable(wanted, 60)), {},
                 "it is " + join_or(names));
}

Result<CommandOutput> policy_asked(Session& session, const Args& args) {
    const std::string& verb = args.positional[0];
    if (verb == "template") return show_template(session, args);
    if (verb == "test") return test_rules(session, args);
    if (verb == "list") return list_rules(session, args);
    return Error(ErrorKind::invalid, fmt::format("stoker policy cannot {}", printable(verb, 40)), {},
                 "list, test FILE or template NAME");
}

// All of it, page by page, oldest first: for another program.
Result<CommandOutput> export_requests(Client& client, const std::string& filter, const std::string& form) {
    constexpr std::size_t kPage = 10'000;
    // What comes in meanwhile would move the pages.
    const std::string until = "&to=" + url_encoded(rfc3339(wall_clock_us()));
    std::vector<std::string> lines;
    while (true) {
        TRY(const auto page,
            get<api::AuditPage>(client, fmt::format("/api/v1/audit?limit={}&skip={}{}{}", kPage, lines.size(), filter,
                                                    filter.find("&to=") == std::string::npos ? until : "")));
        for (const AuditLine& each : page.items)
            lines.push_back(form == "cef" ? request_cef(each) : codec::encode(each));
        if (page.items.size() < kPage) break;
    }
    std::string text;
    for (auto at = lines.rbegin(); at != lines.rend(); ++at) text += *at + "\n";
    return CommandOutput{text};
}

Result<CommandOutput> run_audit(Session& session, const Args& args) {
    TRY(const int limit, args.whole_number("limit", 50, 1, 1000));
    std::string filter;
    if (args.has("refused")) filter += "&refused=true";
    for (const char* name : {"who", "from", "to"})
        if (const auto value = args.get(name)) filter += fmt::format("&{}={}", name, url_encoded(*value));
    TRY(const auto client, connect(args));
    if (const auto form = args.get("as")) return export_requests(*client, filter, *form);
    TRY(const auto page, get<api::AuditPage>(*client, fmt::format("/api/v1/audit?limit={}{}", limit, filter)));
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(page))};
    if (page.items.empty()) return CommandOutput{"nothing\n"};
    std::vector<std::vector<std::string>> rows;
    for (const AuditLine& each : page.items)
        rows.push_back({each.at.substr(0, 19) + "Z", printable(each.who, 80), each.peer, each.method,
                        cut(printable(each.path, 200), 48), std::to_string(each.status)});
    std::string text =
        table_text(session.style, {{"when"}, {"who"}, {"from"}, {""}, {"what"}, {"answer", Align::right}}, rows, 0);
    if (page.lost > 0)
        text += session.style.dim(fmt::format("{} refusals since the start of the server were too many in one second, "
                                              "or could not be written",
                                              page.lost)) +
                "\n";
    return CommandOutput{text};
}

}  // namespace

CliCommand policy_command() {
    return with_client(
        {.name = "policy",
         .summary = "which runs are taken: the rules in force, and what others would have refused",
         .usage = "stoker policy list | test [FILE] [--last TIME] | template [NAME]",
         .description =
             "Rules stand under admission: in the configuration of the server, and so have its versions, differences "
             "and way back (stoker config). A run that breaks one is refused when it is submitted, with the rule, what "
             "it found, and what to do.\n"
             "test judges the runs that were submitted in the last 30 days by the rules in FILE, or by those in force, "
             "and changes nothing. template prints a configuration to start from. stoker plan --policy plans within "
             "the rules.",
         .examples = {"stoker policy list", "stoker policy test server.yaml --last 30d", "stoker policy test -o json",
                      "stoker policy template medical > server.yaml"},
         .options = {{.name = "last", .value = "TIME", .help = "test: how far back (30d)"}},
         .min_positional = 1,
         .max_positional = 2,
         .subcommands = {"list", "test", "template"},
         .run = policy_asked,
         .completes = "file"});
}

CliCommand audit_command() {
    return with_client(
        {.name = "audit",
         .summary = "who asked the server for what, from where, and what was refused",
         .usage = "stoker audit [--refused] [--who NAME] [--from TIME] [--to TIME] [--limit N | --as json|cef]",
         .description =
             "Newest first: every request that changes something, and every one that was refused. The server keeps "
             "some 80 MB of them in FOLDER/audit. What was changed stands in the journal, too, whose chain is verified "
             "offline (stoker journal verify).\n"
             "--as prints all of them, oldest first, a line each: JSON, or events of CEF for a SIEM.",
         .examples = {"stoker audit --refused", "stoker audit --who user/anna --limit 200", "stoker audit -o json",
                      "stoker audit --from 2026-11-01 --as cef > requests.cef"},
         .options = {{.name = "refused", .help = "only what was refused"},
                     {.name = "who", .value = "NAME", .help = "only of whom this is the beginning: user/anna, token/"},
                     {.name = "from", .value = "TIME", .help = "only since then: 2026-11-01 or RFC 3339"},
                     {.name = "to", .value = "TIME", .help = "only before then"},
                     {.name = "limit", .value = "N", .help = "lines, at most 1000 (50)"},
                     {.name = "as",
                      .value = "FORM",
                      .help = "all of them, a line each: json or cef",
                      .choices = {"json", "cef"}}},
         .run = run_audit});
}

}  // namespace stoker
