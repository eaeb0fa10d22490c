// stoker config: what the server is told to be, its versions, and the way back.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/spec_differences.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/session.h"
#include "app/user_settings.h"
#include "base/text.h"
#include "base/text_diff.h"
#include "run/state/config_history.h"
#include "server/server_config.h"
#include "server/views_config.h"
#include "workload/workload.h"

namespace stoker {

namespace {

std::optional<std::uint64_t> version_number(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size() || number == 0) return std::nullopt;
    return number;
}

Result<std::uint64_t> version_named(const std::string& text) {
    const auto number = version_number(text);
    if (number) return *number;
    return Error(ErrorKind::invalid, fmt::format("'{}' is no version", printable(text, 40)), {},
                 "versions are numbered 1, 2, ...; stoker config history lists them");
}

struct NamedText {
    std::string name, text;
};

// A version by its number, or a file.
Result<NamedText> text_named(Session& session, Client& client, const std::string& word) {
    if (const auto version = version_number(word)) {
        TRY(auto found, get<api::ConfigText>(client, fmt::format("/api/v1/config/versions/{}", *version)));
        return NamedText{fmt::format("version {}", *version), std::move(found.text)};
    }
    TRY(std::string text, session.read_source(word));
    return NamedText{word, std::move(text)};
}

// Lists whose items have names by those, so that a node that moved in the list is the same node.
Json by_name(const Node& node) {
    if (node.is_mapping()) {
        Json::Object members;
        for (const Member& member : node.members) members.emplace_back(member.key, by_name(*member.value));
        return Json(std::move(members));
    }
    if (!node.is_sequence()) return json_of(node);
    const bool named = !node.items.empty() && std::all_of(node.items.begin(), node.items.end(), [](const auto& item) {
        const Node* name = item->is_mapping() ? item->find("name") : nullptr;
        return name != nullptr && name->is_scalar();
    });
    if (!named) return json_of(node);
    Json::Object members;
    for (const auto& item : node.items) members.emplace_back(item->find("name")->text, by_name(*item));
    return Json(std::move(members));
}

Result<Json> by_name_of(const NamedText& from) {
    if (says_nothing(from.text)) return Json::object();
    TRY(const Document document, Document::parse_yaml(from.text, from.name));
    return by_name(document.root());
}

Result<CommandOutput> show_config(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    if (args.positional.size() > 1) {
        TRY(const std::uint64_t version, version_named(args.positional[1]));
        TRY(const auto found, get<api::ConfigText>(*client, fmt::format("/api/v1/config/versions/{}", version)));
        if (session.format != Format::text) return CommandOutput{dump(session, codec::write(found))};
        return CommandOutput{found.text};
    }
    TRY(const auto view, get<api::ConfigView>(*client, "/api/v1/config"));
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(view))};
    if (args.has("text")) return CommandOutput{view.text};
    std::string text;
    if (client->offline())
        text = session.style.dim("no server is running: as the journal in " + client->folder() + " has it") + "\n";
    if (view.item.version == 0)
        text += "no configuration was ever set: the options of stoker up and the defaults are in force\n";
    else
        text +=
            fmt::format("version {}, {} by {}{}\n", view.item.version, view.item.set_at, printable(view.item.actor, 40),
                        view.item.note.empty() ? "" : ": " + printable(view.item.note, 200));
    std::vector<std::vector<std::string>> rows;
    for (const ConfigSetting& setting : view.settings)
        rows.push_back({setting.key, cut(printable(setting.value, 200), 56), replace_all(setting.source, "_", " "),
                        setting.pending_restart ? "changes with a restart" : ""});
    if (!rows.empty()) text += table_text(session.style, {{"key"}, {"in force"}, {"from"}, {""}}, rows, 0);
    if (!view.text.empty()) text += "\n" + view.text + (view.text.ends_with('\n') ? "" : "\n");
    return CommandOutput{text};
}

Result<HttpHeaders> condition_of(const Args& args) {
    HttpHeaders headers;
    if (args.has("if-version")) {
        TRY(const int version, args.whole_number("if-version", 0, 0, 2'000'000'000));
        headers.add("If-Match", fmt::format("\"{}\"", version));
    }
    return headers;
}

CommandOutput set_in_words(Session& session, const api::ConfigSet& set) {
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(set))};
    std::string text = set.repeated ? fmt::format("version {}: the same text is there already\n", set.version)
                                    : fmt::format("version {}\n", set.version);
    if (!set.applied.empty()) text += fmt::format("  in force now: {}\n", join(set.applied, ", "));
    if (!set.needs_restart.empty())
        text += fmt::format("  after a restart of the server: {}\n", join(set.needs_restart, ", "));
    if (!set.overridden.empty())
        text += fmt::format("  not in force, an option of stoker up goes before it: {}\n", join(set.overridden, ", "));
    return CommandOutput{text};
}

Result<CommandOutput> set_config(Session& session, const Args& args) {
    const std::string& file = args.positional[1];
    TRY(std::string text, session.read_source(file));
    TRY(const auto client, connect(args));
    TRY(const HttpHeaders headers, condition_of(args));
    const Json body = Json::object().set("text", std::move(text)).set("note", args.get_or("note", ""));
    auto answer = client->put("/api/v1/config", body, headers);
    if (!answer) {
        // The server calls it config; here it is a file, whose lines can be shown.
        std::vector<Problem> problems = answer.error().problems();
        for (Problem& problem : problems)
            if (problem.pos.file == "config") problem.pos.file = file == "-" ? std::string("stdin") : file;
        return Error(answer.error().kind(), std::move(problems));
    }
    TRY(const auto set, typed<api::ConfigSet>(*answer));
    return set_in_words(session, set);
}

Result<CommandOutput> roll_back(Session& session, const Args& args) {
    TRY(const std::uint64_t version, version_named(args.positional[1]));
    TRY(const auto client, connect(args));
    TRY(const HttpHeaders headers, condition_of(args));
    const Json body =
        Json::object().set("version", static_cast<std::int64_t>(version)).set("note", args.get_or("note", ""));
    TRY(const auto set, post<api::ConfigSet>(*client, "/api/v1/config/rollback", body, headers));
    return set_in_words(session, set);
}

Result<CommandOutput> list_versions(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    TRY(const auto list, get<api::ConfigVersionList>(*client, "/api/v1/config/versions"));
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(list))};
    if (list.items.empty()) return CommandOutput{"no configuration was ever set\n"};
    std::vector<std::vector<std::string>> rows;
    for (const api::ConfigItem& item : list.items) {
        std::vector<std::string> options;
        for (const auto& [key, words] : item.overrides) options.push_back(printable(words, 100));
        rows.push_back({std::to_string(item.version), item.set_at.substr(0, 19) + "Z", cut(printable(item.actor), 16),
                        item.digest.substr(0, 10), cut(printable(item.note), 34), cut(join(options, " "), 24)});
    }
    return CommandOutput{table_text(
        session.style, {{"version", Align::right}, {"when"}, {"who"}, {"sha256"}, {"note"}, {"options"}}, rows, 0)};
}

Result<CommandOutput> show_difference(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    TRY(const NamedText before, text_named(session, *client, args.positional[1]));
    NamedText after;
    if (args.positional.size() > 2) {
        TRY(after, text_named(session, *client, args.positional[2]));
    } else {
        TRY(auto newest, get<api::ConfigView>(*client, "/api/v1/config"));
        after = {fmt::format("version {}", newest.item.version), std::move(newest.text)};
    }
    const std::string unified = unified_diff(before.text, after.text, before.name, after.name);
    if (session.format == Format::text)
        return CommandOutput{unified.empty() ? fmt::format("{} and {} are the same\n", before.name, after.name)
                                             : unified};
    TRY(Json from, by_name_of(before));
    TRY(Json to, by_name_of(after));
    Json keys = Json::array();
    for (const Difference& each : differences_of({from, to}))
        keys.push(Json::object().set("key", each.path).set("before", each.values[0]).set("after", each.values[1]));
    return CommandOutput{dump(session, Json::object()
                                           .set("from", before.name)
                                           .set("to", after.name)
                                           .set("keys", std::move(keys))
                                           .set("unified", unified))};
}

Result<CommandOutput> check_config(Session& session, const Args& args) {
    const std::string& file = args.positional[1];
    TRY(const std::string text, session.read_source(file));
    const auto catalog = [&session]() -> Result<Catalog> {
        TRY(const Catalog* known, session.catalog());
        return *known;
    };
    TRY([[maybe_unused]] const ServerConfig config, read_server_config(text, file == "-" ? "stdin" : file, catalog));
    return CommandOutput{fmt::format("{} is a configuration\n", file)};
}

Result<CommandOutput> user_home(Session& session, const Args& args) {
    TRY(UserSettings settings, load_user_settings());
    if (args.positional.size() > 1) {
        settings.home.clear();
        if (args.positional[1] != "none") {
            TRY(const Catalog* catalog, session.catalog());
            TRY(settings.home, place_named(*catalog, args.positional[1]));
        }
        TRY_VOID(save_user_settings(settings));
    }
    if (session.format != Format::text) return CommandOutput{dump(session, Json::object().set("home", settings.home))};
    return CommandOutput{settings.home.empty() ? "no home: plans take well-known regions\n" : settings.home + "\n"};
}

Result<CommandOutput> user_residency(Session& session, const Args& args) {
    TRY(UserSettings settings, load_user_settings());
    if (args.positional.size() > 1) {
        settings.residency.clear();
        TRY(const Catalog* catalog, session.catalog());
        for (std::size_t i = 1; i < args.positional.size(); ++i) {
            if (args.positional[i] == "none") continue;
            TRY(std::string place, place_named(*catalog, args.positional[i]));
            settings.residency.push_back(std::move(place));
        }
        TRY_VOID(save_user_settings(settings));
    }
    if (session.format != Format::text) {
        Json list = Json::array();
        for (const std::string& place : settings.residency) list.push(place);
        return CommandOutput{dump(session, Json::object().set("residency", std::move(list)))};
    }
    return CommandOutput{settings.residency.empty() ? "no residency: data may be anywhere\n"
                                                    : join(settings.residency, ", ") + "\n"};
}

Result<CommandOutput> user_evictions(Session& session, const Args& args) {
    TRY(UserSettings settings, load_user_settings());
    if (args.positional.size() > 1) {
        const std::string& rate = args.positional[1];
        if (rate != "none" && !parse_eviction_rate(rate))
            return Error(
                ErrorKind::invalid,
                fmt::format("'{}' does not say how often one spot node is taken away in an hour", printable(rate, 40)),
                {}, "write 0.1, \"0.02 - 0.4\" or 5-10%: more than zero, at most 60");
        settings.evictions = rate == "none" ? "" : rate;
        TRY_VOID(save_user_settings(settings));
    }
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object().set("evictions", settings.evictions))};
    return CommandOutput{settings.evictions.empty() ? "no rate of your own: plans take the catalogue's\n"
                                                    : settings.evictions + "\n"};
}

struct ConfigVerb {
    const char* name;
    std::size_t least, most;  // words behind it
    const char* words;
    Result<CommandOutput> (*run)(Session&, const Args&);
};
constexpr ConfigVerb kConfigVerbs[] = {
    {"show", 0, 1, "[VERSION]", show_config},
    {"set", 1, 1, "FILE", set_config},
    {"history", 0, 0, "", list_versions},
    {"diff", 1, 2, "A [B]", show_difference},
    {"rollback", 1, 1, "VERSION", roll_back},
    {"check", 1, 1, "FILE", check_config},
    {"home", 0, 1, "[REGION|GEOGRAPHY|none]", user_home},
    {"residency", 0, 2, "[GEOGRAPHY...|none]", user_residency},
    {"evictions", 0, 1, "[RATE|none]", user_evictions},
};

Result<CommandOutput> run_config(Session& session, const Args& args) {
    const std::string& verb = args.positional[0];
    for (const ConfigVerb& each : kConfigVerbs) {
        if (verb != each.name) continue;
        const std::size_t words = args.positional.size() - 1;
        if (words < each.least || words > each.most)
            return Error(ErrorKind::invalid,
                         fmt::format("stoker config {} takes {}", verb, each.most == 0 ? "nothing more" : each.words),
                         {}, fmt::format("stoker config {} {}", verb, each.words));
        for (const char* option : {"note", "if-version"})
            if (args.has(option) && verb != "set" && verb != "rollback")
                return Error(ErrorKind::invalid, fmt::format("--{} is for set and rollback", option));
        if (args.has("text") && (verb != "show" || words > 0))
            return Error(ErrorKind::invalid, "--text is for show without a version");
        return each.run(session, args);
    }
    return Error(ErrorKind::invalid, "stoker config knows no " + printable(verb, 40), {},
                 "show, set, history, diff, rollback or check; home and residency are your own settings");
}

}  // namespace

CliCommand config_command() {
    CliCommand command{
        .name = "config",
        .summary = "the configuration of the server: show, set, compare, roll back",
        .usage =
            "stoker config show [VERSION] | set FILE | history | diff A [B] | rollback VERSION | check FILE |\n"
            "       stoker config home [REGION|GEOGRAPHY|none] | residency [GEOGRAPHY...|none] | evictions [RATE|none]",
        .description =
            "The configuration is a YAML text (docs/reference/server.md): nodes, prices, bounds, backups. Each change "
            "of it is a version in the journal, with who made it, when and why, and none is ever changed.\n"
            "set and rollback answer when the new version is on disk; what can change while the server runs holds "
            "then, and the rest is named. rollback makes a new version with an older text. diff takes versions or "
            "files, and compares with the newest version when one is given; -o json tells the keys that differ. "
            "check looks at a file without a server, on this machine.\n"
            "home and residency are yours and need no server: plans whose file names no regions look there first, and "
            "never put your data elsewhere.",
        .examples = {"stoker config show", "stoker config set server.yaml --note 'two more nodes'",
                     "stoker config diff 3", "stoker config rollback 3", "stoker config show 2 > server.yaml"},
        .options = {{.name = "note", .value = "TEXT", .help = "set, rollback: why, for the history"},
                    {.name = "if-version",
                     .value = "N",
                     .help = "set, rollback: only when N is the newest version, else exit 3"},
                    {.name = "text", .help = "show: only the text of the newest version"}},
        .min_positional = 1,
        .max_positional = 3,
        .subcommands = {"show", "set", "history", "diff", "rollback", "check", "home", "residency", "evictions"},
        .run = run_config,
        .completes = "file"};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
