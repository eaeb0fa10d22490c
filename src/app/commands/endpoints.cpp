// stoker endpoints: what answers for which model, and what people do about that.
#include "app/commands/endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "app/client/client.h"
#include "app/commands/commands.h"
#include "app/commands/deploy_endpoint.h"
#include "app/listing.h"
#include "base/api_time.h"
#include "base/codec.h"
#include "base/text.h"
#include "base/units.h"
#include "io/process.h"

namespace stoker {
namespace {

constexpr int kMostReplicas = 1000, kMostShare = 1000;
constexpr const char* kNobody = "no gateway keeps it now: stoker serve does";

std::optional<int> count_of(std::string_view text, int most) {
    int value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size() || value < 0 || value > most)
        return std::nullopt;
    return value;
}

std::string state_of(const Endpoint& endpoint, const std::optional<EndpointStatus>& status) {
    if (status) return status->state;
    return endpoint.stopped ? "stopped" : "unkept";
}

std::string revision_text(const Endpoint& endpoint, const std::optional<EndpointStatus>& status) {
    std::string text = std::to_string(endpoint.current);
    if (!endpoint.split.empty()) {
        text.clear();
        for (const auto& [number, share] : endpoint.split)
            text += fmt::format("{}{}={}", text.empty() ? "" : " ", number, share);
    } else if (status && status->revision != 0 && status->revision != endpoint.current) {
        text = fmt::format("{} -> {}", status->revision, endpoint.current);
    }
    return text;
}

Json first_json(const EndpointRevision& revision, std::string_view at) {
    const auto seconds = seconds_after_deploy(revision, at);
    return seconds ? Json(*seconds) : Json();
}
std::string first_text(const EndpointRevision& revision, std::string_view at) {
    const auto seconds = seconds_after_deploy(revision, at);
    return seconds ? format_seconds(Seconds(*seconds)) : "not yet";
}

Result<CommandOutput> list_all(Session& session, const EndpointFolder& folder) {
    TRY(const std::vector<Endpoint> endpoints, folder.list());
    FactTable listing{{{"endpoint", "endpoint"},
                       {"state", "state"},
                       {"revision", "revision"},
                       {"ready", "ready", Align::right},
                       {"level", "wanted", Align::right},
                       {"least", "least", Align::right},
                       {"most", "most", Align::right},
                       {"queued", "held", Align::right},
                       {"requests", "requests", Align::right},
                       {"first_token_s", ""},
                       {"", "first token after", Align::right},
                       {"engine", "server"}},
                      {}};
    for (const Endpoint& each : endpoints) {
        const auto status = fresh_status(folder, each.name);
        const EndpointRevision* revision = each.find(each.current);
        const auto number = [&](std::int64_t value) { return status ? Json(value) : Json(); };
        listing.rows.push_back({each.name, state_of(each, status), revision_text(each, status),
                                number(status ? status->ready : 0), number(status ? status->level : 0), each.least,
                                each.most, number(status ? status->queued : 0), number(status ? status->requests : 0),
                                revision != nullptr ? first_json(*revision, revision->first_token_at) : Json(),
                                revision != nullptr ? first_text(*revision, revision->first_token_at) : "",
                                revision != nullptr ? revision->engine : ""});
    }
    if (session.format != Format::text) return CommandOutput{dump(session, listing.json())};
    if (endpoints.empty())
        return CommandOutput{
            "there is no endpoint; stoker deploy FILE --endpoint makes one of a kind: inference file\n"};
    std::string text = listing.text(session.style);
    if (std::none_of(endpoints.begin(), endpoints.end(),
                     [&](const Endpoint& each) { return fresh_status(folder, each.name).has_value(); }))
        text += session.style.dim("no gateway keeps them now: stoker serve does") + "\n";
    return CommandOutput{text};
}

Json json_of(const Endpoint& endpoint, const std::optional<EndpointStatus>& status) {
    Json revisions = Json::array();
    for (const EndpointRevision& each : endpoint.revisions)
        revisions.push(Json::object()
                           .set("revision", each.number)
                           .set("created_at", each.created_at)
                           .set("engine", each.engine)
                           .set("first_ready_s", first_json(each, each.first_ready_at))
                           .set("first_token_s", first_json(each, each.first_token_at))
                           .set("model", each.model)
                           .set("source", each.source)
                           .set("planned", codec::write(each.promise)));
    Json out = Json::object()
                   .set("endpoint", endpoint.name)
                   .set("state", state_of(endpoint, status))
                   .set("current", endpoint.current)
                   .set("split", codec::write(endpoint.split))
                   .set("least", endpoint.least)
                   .set("most", endpoint.most)
                   .set("stopped", endpoint.stopped)
                   .set("revisions", std::move(revisions));
    out.set("status", status ? codec::write(*status) : Json());
    return out;
}

Result<CommandOutput> describe(Session& session, const EndpointFolder& folder, const std::string& name) {
    TRY(const Endpoint endpoint, folder.read(name));
    const auto status = fresh_status(folder, name);
    if (session.format != Format::text) return CommandOutput{dump(session, json_of(endpoint, status))};
    const Style& style = session.style;
    std::string text = fmt::format("{}  {}\n", style.bold(name), state_of(endpoint, status));
    const auto line = [&](const char* head, const std::string& words) {
        text += fmt::format("  {}{}\n", pad_right(head, 11), words);
    };
    line("revision", revision_text(endpoint, status));
    line("replicas", status ? fmt::format("{} ready of {} wanted ({}); {} to {}", status->ready, status->level,
                                          status->cause, endpoint.least, endpoint.most)
                            : fmt::format("{} to {}", endpoint.least, endpoint.most));
    if (!status) {
        line("", kNobody);
    } else {
        line("requests",
             fmt::format("{} answered, {} failed, {} held now", status->requests, status->failed, status->queued));
        if (!status->gateway.empty()) line("ask at", status->gateway + "/v1");
        line("a start", fmt::format("takes {}", format_seconds(Seconds(status->cold_start_s))));
        if (!status->last_failure.empty()) line("last fault", style.bad(printable(status->last_failure, 400)));
        if (!status->replicas.empty()) {
            FactTable table{{{"replica", "replica"},
                             {"run", "run"},
                             {"state", "state"},
                             {"in_flight", "now", Align::right},
                             {"taken", "taken", Align::right},
                             {"url", "address"},
                             {"why", ""}},
                            {}};
            for (const ReplicaStatus& each : status->replicas)
                table.rows.push_back(
                    {each.name, each.run, each.state, each.in_flight, each.taken, each.url, printable(each.why, 120)});
            text += "\n" + table.text(style);
        }
    }
    text += "\n";
    FactTable table{{{"revision", "revision"},
                     {"made", "made"},
                     {"first_ready_s", "ready after", Align::right},
                     {"first_token_s", "first token after", Align::right},
                     {"server", "server"},
                     {"of", "of"}},
                    {}};
    for (const EndpointRevision& each : endpoint.revisions)
        table.rows.push_back({std::to_string(each.number) + (each.number == endpoint.current ? " *" : ""),
                              each.created_at.substr(0, 19) + "Z", first_text(each, each.first_ready_at),
                              first_text(each, each.first_token_at), each.engine, printable(each.source, 200)});
    return CommandOutput{text + table.text(style)};
}

// A change of the file, told in words.
Result<CommandOutput> changed(Session& session, const Result<Endpoint>& endpoint, const std::string& words) {
    if (!endpoint) return endpoint.error();
    if (session.format != Format::text) return CommandOutput{dump(session, json_of(*endpoint, std::nullopt))};
    return CommandOutput{words};
}

Result<CommandOutput> scale(Session& session, const EndpointFolder& folder, const Args& args, const std::string& name) {
    TRY(const std::optional<double> idle_s, idle_option(args));
    if (args.positional.size() < 3 && !args.has("least") && !args.has("most") && !idle_s)
        return Error(ErrorKind::invalid, "to how many replicas?", {},
                     fmt::format("stoker endpoints scale {} 2, or --least 0 --most 4", name));
    if (args.positional.size() == 3 && (args.has("least") || args.has("most")))
        return Error(ErrorKind::invalid, "a number and --least or --most contradict each other", {},
                     "a number is both of them");
    std::optional<int> both;
    if (args.positional.size() == 3) {
        const auto number = count_of(args.positional[2], kMostReplicas);
        if (!number)
            return Error(ErrorKind::invalid,
                         fmt::format("'{}' is no number of replicas", printable(args.positional[2], 40)), {},
                         fmt::format("0 to {}", kMostReplicas));
        both = *number;
    }
    TRY(const int least, args.whole_number("least", 0, 0, kMostReplicas));
    TRY(const int most, args.whole_number("most", 1, 1, kMostReplicas));
    const auto endpoint = folder.change(name, false, [&](Endpoint& there) -> Status {
        return set_bounds(there,
                          both                ? both
                          : args.has("least") ? std::optional(least)
                                              : std::nullopt,
                          both               ? std::optional(std::max(1, *both))
                          : args.has("most") ? std::optional(most)
                                             : std::nullopt,
                          idle_s);
    });
    return changed(session, endpoint,
                   endpoint ? fmt::format("{} has {} to {} replicas{}\n", name, endpoint->least, endpoint->most,
                                          endpoint->least == 0 ? fmt::format(", and sleeps after {} without a request",
                                                                             format_seconds(Seconds(endpoint->idle_s)))
                                                               : "")
                            : "");
}

Result<CommandOutput> roll_back(Session& session, const EndpointFolder& folder, const Args& args,
                                const std::string& name) {
    std::optional<int> to;
    if (args.positional.size() == 3) {
        const auto number = count_of(args.positional[2], 1'000'000);
        if (!number)
            return Error(ErrorKind::invalid, fmt::format("'{}' is no revision", printable(args.positional[2], 40)), {},
                         fmt::format("stoker endpoints describe {} lists them", name));
        to = *number;
    }
    const auto endpoint = folder.change(name, false, [&](Endpoint& there) { return go_back(there, to); });
    return changed(session, endpoint,
                   endpoint ? fmt::format("{} goes to revision {}: its replicas start, then those that serve drain\n",
                                          name, endpoint->current)
                            : "");
}

Result<CommandOutput> split_load(Session& session, const EndpointFolder& folder, const Args& args,
                                 const std::string& name) {
    std::map<std::string, int> shares;
    for (std::size_t i = 2; i < args.positional.size(); ++i) {
        const std::string& word = args.positional[i];
        const std::size_t equals = word.find('=');
        const auto number = count_of(word.substr(0, equals), 1'000'000);
        const auto share = equals == std::string::npos ? std::nullopt : count_of(word.substr(equals + 1), kMostShare);
        if (!number || !share)
            return Error(ErrorKind::invalid, fmt::format("'{}' is not REVISION=SHARE", printable(word, 40)), {},
                         fmt::format("stoker endpoints split {} 1=90 2=10", name));
        shares[std::to_string(*number)] = *share;
    }
    if (std::none_of(shares.begin(), shares.end(), [](const auto& each) { return each.second > 0; }))
        return Error(ErrorKind::invalid, "no revision has a share", {},
                     fmt::format("stoker endpoints split {} 1=90 2=10; rollback gives all to one", name));
    const auto endpoint = folder.change(name, false, [&](Endpoint& there) -> Status {
        for (const auto& [number, share] : shares)
            if (there.find(std::atoi(number.c_str())) == nullptr)
                return Error(ErrorKind::not_found, fmt::format("{} has no revision {}", name, number), {},
                             fmt::format("stoker endpoints describe {} lists them", name));
        there.split = shares;
        return done();
    });
    return changed(
        session, endpoint,
        endpoint ? fmt::format("{} divides its requests: {}\n", name, revision_text(*endpoint, std::nullopt)) : "");
}

Result<CommandOutput> stop_or_start(Session& session, const EndpointFolder& folder, const std::string& name,
                                    bool stops) {
    const bool kept = fresh_status(folder, name).has_value();
    const auto endpoint = folder.change(name, false, [&](Endpoint& there) -> Status {
        there.stopped = stops;
        return done();
    });
    std::string words =
        stops ? fmt::format("{} stops: requests under way end first\n", name) : fmt::format("{} starts\n", name);
    if (!kept) words += fmt::format("note: {}; nothing happens before\n", kNobody);
    return changed(session, endpoint, words);
}

Result<CommandOutput> remove(Session& session, const EndpointFolder& folder, const std::string& name) {
    TRY(const Endpoint endpoint, folder.read(name));
    const auto now = fresh_status(folder, name);
    if (!endpoint.stopped || (now && !now->replicas.empty()))
        return Error(ErrorKind::conflict, fmt::format("{} is not stopped", name), {},
                     fmt::format("stoker endpoints stop {0}, and when stoker endpoints says stopped: stoker endpoints "
                                 "remove {0}",
                                 name));
    TRY_VOID(folder.remove(name));
    return CommandOutput{session.format == Format::text ? fmt::format("{} is removed, with its revisions\n", name)
                                                        : dump(session, Json::object().set("removed", name))};
}

Result<CommandOutput> run_endpoints(Session& session, const Args& args) {
    const std::string verb = args.positional.empty() ? "list" : args.positional[0];
    const auto is = [&](std::initializer_list<const char*> some) {
        return std::any_of(some.begin(), some.end(), [&](const char* each) { return verb == each; });
    };
    if (!is({"list", "describe", "scale", "stop", "start", "rollback", "split", "remove"}))
        return Error(ErrorKind::invalid, "stoker endpoints does not know '" + printable(verb, 40) + "'", {},
                     "list, describe, scale, stop, start, rollback, split or remove");
    for (const char* option : {"least", "most", "idle"})
        if (args.has(option) && verb != "scale")
            return Error(ErrorKind::invalid, fmt::format("--{} belongs to stoker endpoints scale", option));
    TRY(const std::string path, endpoints_path(args));
    const EndpointFolder folder(path);
    const std::size_t most = verb == "list" ? 1 : is({"scale", "rollback"}) ? 3 : verb == "split" ? 100 : 2;
    if (verb != "list" && args.positional.size() < 2)
        return Error(ErrorKind::invalid, fmt::format("stoker endpoints {} needs an endpoint", verb), {},
                     fmt::format("stoker endpoints {} NAME; stoker endpoints lists them", verb));
    if (args.positional.size() > most)
        return Error(ErrorKind::invalid, fmt::format("'{}' is one too many", printable(args.positional[most], 80)), {},
                     "stoker endpoints --help");
    if (verb == "list") return list_all(session, folder);
    const std::string& name = args.positional[1];
    if (verb == "describe") return describe(session, folder, name);
    if (verb == "scale") return scale(session, folder, args, name);
    if (verb == "rollback") return roll_back(session, folder, args, name);
    if (verb == "split") return split_load(session, folder, args, name);
    if (verb == "remove") return remove(session, folder, name);
    return stop_or_start(session, folder, name, verb == "stop");
}

}  // namespace

std::optional<EndpointStatus> fresh_status(const EndpointFolder& folder, const std::string& name) {
    return folder.fresh_status(name, wall_clock_us());
}

CliCommand endpoints_command() {
    return {.name = "endpoints",
            .summary = "endpoints: what answers for which model, how many replicas, which revision",
            .usage = "stoker endpoints [list|describe|scale|stop|start|rollback|split|remove] [NAME] [options]",
            .description =
                "stoker deploy FILE --endpoint makes an endpoint, and each time that something of it is different "
                "another revision; stoker serve answers for it and keeps its replicas.\n"
                "scale: how many there may be; one number is both bounds. stop: requests under way end, then the "
                "replicas; the endpoint stays and start brings it back. rollback: the revision before, or the one "
                "that is named; what serves stays until it is ready. split: requests by shares among revisions. "
                "remove: of a stopped one, with its revisions.",
            .examples = {"stoker endpoints", "stoker endpoints describe chat",
                         "stoker endpoints scale chat --least 0 --most 4", "stoker endpoints rollback chat",
                         "stoker endpoints split chat 1=90 2=10", "stoker endpoints stop chat"},
            .options = {{.name = "folder",
                         .value = "DIR",
                         .help = "where the server keeps its journal (STOKER_FOLDER, else ~/.local/state/stoker)",
                         .completes = "dir"},
                        {.name = "least", .value = "N", .help = "of scale: replicas at least; 0 lets it sleep"},
                        {.name = "most", .value = "N", .help = "of scale: replicas at most"},
                        {.name = "idle",
                         .value = "TIME",
                         .help = "of scale: without a request for so long it sleeps, where least is 0 (5m)"}},
            .max_positional = 100,
            .subcommands = {"list", "describe", "scale", "stop", "start", "rollback", "split", "remove"},
            .run = run_endpoints};
}

}  // namespace stoker
