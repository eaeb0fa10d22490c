// stoker gpu: what the GPUs of this machine do, who uses them, and what the driver answers.
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/commands/gpu_options.h"
#include "app/commands/gpu_table.h"
#include "app/session.h"
#include "base/embedded.h"
#include "base/style.h"
#include "base/text.h"
#include "io/files.h"
#include "io/run_program.h"
#include "observe/gpu/gpu_pages.h"
#include "observe/gpu/gpu_watch.h"
#include "observe/xid_actions.h"

extern char** environ;

namespace stoker {

namespace {

constexpr double kLookS = 20;  // the driver may take seconds to begin where nothing keeps it loaded

Result<CommandOutput> list(Session& session, const Args& args, bool processes) {
    TRY(GpuWatchOptions options, gpu_watch_options(args));
    TRY(const GpuView view, look_at_gpus_once(options, kLookS));
    GpuOwners owners;
    owners.refresh(gpu_pids(view));
    // Nothing there is an answer, and that what should be there is not, is "no".
    const bool answers = view.up() || view.without_nvidia();
    const int exit = answers ? (view.present < view.expected ? 1 : 0) : view.down == NvmlDown::library_absent ? 3 : 1;
    if (session.format != Format::text) return CommandOutput{dump(session, gpu_json(view, owners)), exit};
    return CommandOutput{
        processes ? gpu_process_table(view, owners, session.style) : gpu_table(view, owners, session.style), exit};
}

Result<CommandOutput> metrics(const Args& args) {
    TRY(GpuWatchOptions options, gpu_watch_options(args));
    TRY(const DcgmOptions dcgm, dcgm_options(args));
    GpuWatch watch(options);
    // A second reading brings what needs two: GPM, rates.
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kLookS);
    GpuView view;
    double settled_s = 0;
    while (std::chrono::steady_clock::now() < end) {
        view = watch.look();
        const bool never = !view.up() && view.down != NvmlDown::starting;
        if (never || settled_s > 2.5 * options.period_s) break;
        if (view.up() && view.present > 0) settled_s += 0.05;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    GpuOwners owners;
    owners.refresh(gpu_pids(view));
    const auto families = args.get("compat") ? dcgm_gpu_families(view, dcgm) : native_gpu_families(view, owners);
    return CommandOutput{args.has("openmetrics") ? openmetrics_text(families) : prometheus_text(families)};
}

// In a process of its own: it may hang in the driver, and is then ended from outside.
Result<Document> recorded(int repeat, double limit_s, std::string& text) {
    ProgramCall call{
        .arguments = {"/proc/self/exe", "gpu-sampler", "--record", std::to_string(repeat), "--period", "0.2"},
        .environment = {}};
    for (char** entry = environ; *entry; ++entry) call.environment.emplace_back(*entry);
    TRY(const ProgramResult result, run_program(call, std::chrono::steady_clock::now() +
                                                          std::chrono::milliseconds(static_cast<int>(limit_s * 1000)))
                                        .while_doing("recording the driver's calls"));
    if (result.exit_code != 0)
        return Error(ErrorKind::unavailable, fmt::format("the process that records ended with {}: {}", result.exit_code,
                                                         printable(trim(result.complaint), 300)));
    text = result.output;
    TRY(Document told, Document::parse_json(result.output, "recording"));
    // What it could not do it says as data: lines for a terminal no longer tell what is wrong from what to do.
    if (const Node* const problem = told.root().find("problem"))
        return Error(ErrorKind::unavailable, problem->text, {},
                     told.root().find("remedy") ? told.root().find("remedy")->text : "");
    return told;
}

std::string text_of(const Node& node, std::string_view key) {
    const Node* const found = node.find(key);
    return found ? found->text : "";
}

// What the agent would ask of each board and how often, by what the recording says it costs; recordings of before have
// no such part.
std::string paced_text(const Node& root, const Style& style) {
    std::string out;
    const Node* const boards = root.find("boards");
    if (!boards || !boards->is_sequence()) return out;
    for (const auto& board : boards->items) {
        const Node* const paced = board->find("paced");
        if (!paced || !paced->is_sequence()) continue;
        std::vector<std::vector<std::string>> rows;
        std::map<int, double> us_per_s;  // by how often
        double sum = 0;
        for (const auto& row : paced->items) {
            const auto number = [&](std::string_view key) { return row->find(key) ? row->find(key)->number : 0.0; };
            const int every = static_cast<int>(number("every"));
            rows.push_back({text_of(*row, "question"), fmt::format("{:.1f}", number("us")),
                            text_of(*row, "wanted_every") + " to " + text_of(*row, "most_every"), std::to_string(every),
                            fmt::format("{:.1f}", number("us_per_s"))});
            us_per_s[every] += number("us_per_s");
            sum += number("us_per_s");
        }
        std::vector<std::string> tiers;
        for (const auto& tier : us_per_s) tiers.push_back(fmt::format("{:.0f} every {} s", tier.second, tier.first));
        out += fmt::format("\nGPU {}: {:.0f} us of calls a second at one reading a second: {}\n",
                           text_of(*board, "index"), sum, join(tiers, ", "));
        out += table_text(style,
                          {{"question"},
                           {"us", Align::right},
                           {"may be asked every", Align::right},
                           {"is", Align::right},
                           {"us/s", Align::right}},
                          rows, 0);
    }
    return out;
}

std::string calls_text(const Node& root, const Style& style) {
    std::vector<std::vector<std::string>> rows;
    const auto us = [](const Node& node, std::string_view key) {
        return node.find(key) ? fmt::format("{:.1f}", node.find(key)->number / 1000) : "-";
    };
    std::string refused;
    for (const auto& call : root.find("calls")->items) {
        std::vector<std::string> returns;
        if (const Node* const told = call->find("returns"))
            for (const Member& entry : told->members) {
                returns.push_back(fmt::format("{} x{}", entry.key, entry.value->text));
            }
        // One of two forms that was taken is no structure that was refused.
        if (returns.size() == 1 && returns[0].starts_with("25 ")) refused += " " + text_of(*call, "call");
        rows.push_back({text_of(*call, "call"), text_of(*call, "count"), join(returns, ", "), us(*call, "ns_p50"),
                        us(*call, "ns_p99"), us(*call, "ns_most"), us(*call, "cpu_ns_p50")});
    }
    const Node* const init = root.find("init_ns");
    std::string out = fmt::format("{}\n  driver {}, NVML {}, CUDA {}; nvmlInit took {:.1f} ms\n",
                                  text_of(root, "library"), text_of(root, "driver"), text_of(root, "nvml"),
                                  text_of(root, "cuda"), init ? init->number / 1e6 : 0.0);
    for (const std::string_view key : {"missing", "older"}) {
        std::vector<std::string> names;
        for (const auto& name : root.find(key)->items) names.push_back(name->text);
        if (!names.empty())
            out += fmt::format("  {}: {}\n", key == "missing" ? "symbols it lacks" : "older names taken",
                               join(names, ", "));
    }
    out += refused.empty() ? "  no structure was refused for its version\n"
                           : "  structures refused for their version:" + refused + "\n";
    out += table_text(style,
                      {{"call"},
                       {"times", Align::right},
                       {"returns"},
                       {"p50 us", Align::right},
                       {"p99 us", Align::right},
                       {"most us", Align::right},
                       {"cpu us", Align::right}},
                      rows, 0);
    return out + paced_text(root, style);
}

// What a recording must have for calls_text and the profile.
Status check_recording(const Node& root, const std::string& name) {
    for (const std::string_view key : {"calls", "missing", "older"})
        if (!root.find(key) || !root.find(key)->is_sequence())
            return Error(ErrorKind::invalid,
                         fmt::format("{} is no recording of stoker gpu record: it has no list \"{}\"", name, key));
    if (!root.find("profile"))
        return Error(ErrorKind::invalid,
                     fmt::format("{} is no recording of stoker gpu record: it has no \"profile\"", name));
    return done();
}

Result<CommandOutput> record(Session& session, const Args& args, int least) {
    TRY(const int repeat, args.whole_number("repeat", least, 1, 1000));
    TRY(const double limit_s, args.number("limit", 120, 1, 3600));
    std::string text;
    TRY(const Document document, recorded(repeat, limit_s, text));
    if (const auto profile = args.get("profile")) {
        TRY_VOID(write_file_atomic(*profile, document.root().find("profile")->text));
    }
    if (const auto file = args.get("file")) {
        TRY_VOID(write_file_atomic(*file, text));
    }
    if (session.format != Format::text) return CommandOutput{text};
    return CommandOutput{calls_text(document.root(), session.style)};
}

Result<CommandOutput> replay(Session& session, const Args& args) {
    if (args.positional.size() != 2)
        return Error(ErrorKind::invalid, "stoker gpu replay needs a recording", {}, "stoker gpu replay FILE");
    TRY(const Document document, session.read_document(args.positional[1]));
    TRY_VOID(check_recording(document.root(), args.positional[1]));
    if (const auto profile = args.get("profile")) {
        TRY_VOID(write_file_atomic(*profile, document.root().find("profile")->text));
    }
    return CommandOutput{calls_text(document.root(), session.style)};
}

Result<CommandOutput> show_file(const Args& args) {
    if (args.positional.size() != 2) {
        std::string names;
        for (const EmbeddedFile& file : embedded_files())
            if (file.path.starts_with("gpu/") && (!file.path.ends_with(".tsv") || file.path.ends_with("_policy.tsv")))
                names += std::string(file.path.substr(4)) + "\n";
        return CommandOutput{names};
    }
    const EmbeddedFile* file = find_embedded("gpu/" + args.positional[1]);
    if (!file)
        return Error(ErrorKind::not_found, "there is no file " + printable(args.positional[1], 60), {},
                     "stoker gpu files lists them");
    return CommandOutput{std::string(file->bytes)};
}

// What codes of the driver's errors ask for: of all that are known, or of one.
Result<CommandOutput> show_xids(Session& session, const Args& args) {
    std::optional<int> only;
    if (args.positional.size() == 2) {
        int code = 0;
        const std::string& text = args.positional[1];
        const auto end = std::from_chars(text.data(), text.data() + text.size(), code);
        if (end.ec != std::errc() || end.ptr != text.data() + text.size() || code < 1)
            return Error(ErrorKind::invalid, printable(text, 40) + " is no code of an Xid", {}, "stoker gpu xid 79");
        only = code;
    }
    Json items = Json::array();
    std::vector<std::vector<std::string>> rows;
    const auto add = [&](int code, const XidAction& action) {
        items.push(Json::object()
                       .set("xid", static_cast<std::int64_t>(code))
                       .set("class", std::string(to_string(action.kind)))
                       .set("action", std::string(action.action)));
        rows.push_back({std::to_string(code), std::string(to_string(action.kind)), std::string(action.action)});
    };
    if (only)
        add(*only, xid_action(*only));
    else
        for (const auto& row : known_xids()) add(row.first, row.second);
    if (session.format != Format::text)
        return CommandOutput{dump(session, only ? items : Json::object().set("items", std::move(items)))};
    return CommandOutput{table_text(session.style, {{"xid", Align::right}, {"asks for"}, {"what to do"}}, rows, 0)};
}

Result<CommandOutput> run_gpu(Session& session, const Args& args) {
    const std::string verb = args.positional.empty() ? "list" : args.positional[0];
    if (verb != "replay" && verb != "files" && verb != "xid" && args.positional.size() > 1)
        return Error(ErrorKind::invalid, "stoker gpu " + verb + " takes no further words");
    if (verb == "list") return list(session, args, false);
    if (verb == "processes") return list(session, args, true);
    if (verb == "metrics") return metrics(args);
    if (verb == "record") return record(session, args, 20);
    if (verb == "abi-check") return record(session, args, 2);
    if (verb == "replay") return replay(session, args);
    if (verb == "files") return show_file(args);
    if (verb == "xid") return show_xids(session, args);
    return Error(ErrorKind::invalid, "stoker gpu knows no " + printable(verb, 40), {},
                 "list, processes, metrics, record, replay, abi-check, xid or files");
}

}  // namespace

CliCommand gpu_command() {
    CliCommand command{
        .name = "gpu",
        .summary = "what the GPUs of this machine do, who uses them, and what is wrong with them",
        .usage = "stoker gpu [list|processes|metrics|record|replay FILE|abi-check|xid [CODE]|files [NAME]] [options]",
        .description =
            "list: load, tensor cores, memory, temperature, power, clocks, state and who uses each GPU. processes: a "
            "row for each. "
            "metrics: what stoker agent serves, once. NVIDIA's driver is called in a process of its own, so that one "
            "that hangs is told and "
            "hangs nothing.\n\n"
            "record calls everything that is ever called, --repeat times, and says what each call returned and how "
            "long it took; "
            "--file keeps it, --profile writes the values for the test double. replay tells of such a file again. "
            "abi-check is a short "
            "record: which symbols the library lacks, and which structures it refuses. xid says what errors "
            "of the driver ask for. files lists alert rules, recording rules, dashboards and manifests, and prints the "
            "one that is named.\n\n"
            "AMD's and Intel's GPUs are read from what their kernel drivers show in /sys; that was not tried on a real "
            "board yet.\n\n"
            "Exit code 1: a GPU that should be there does not answer. 3: there is no driver here.",
        .examples = {"stoker gpu", "stoker gpu processes", "stoker gpu -o json | jq '.gpus[].values.power_instant'",
                     "stoker gpu metrics --compat dcgm", "stoker gpu xid 79",
                     "stoker gpu record --repeat 20 --file h200.json --profile h200.profile",
                     "stoker gpu files alerts.yaml > alerts.yaml"},
        .options = {{.name = "repeat", .value = "N", .help = "record: readings (20)"},
                    {.name = "limit", .value = "SECONDS", .help = "record: end it after this (120)"},
                    {.name = "file", .value = "FILE", .help = "record: keep it", .completes = "file"},
                    {.name = "profile",
                     .value = "FILE",
                     .help = "record, replay: values for the test double",
                     .completes = "file"},
                    {.name = "openmetrics", .help = "metrics: as OpenMetrics"}},
        .max_positional = 2,
        .subcommands = {"list", "processes", "metrics", "record", "replay", "abi-check", "xid", "files"},
        .run = run_gpu};
    add_gpu_options(command);
    return command;
}

}  // namespace stoker
