// stoker doctor: is this machine, its network and its disk what they should be; and of a run: which layer is to blame.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "app/client/client.h"
#include "app/client/output.h"
#include "app/client/run_health.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/commands/doctor_cloud.h"
#include "app/doctor_read.h"
#include "app/session.h"
#include "base/text.h"
#include "deploy/engines/engines.h"
#include "doctor/health_baseline.h"
#include "doctor/health_check.h"
#include "doctor/health_text.h"
#include "doctor/measure/link_server.h"
#include "doctor/measure/link_speed.h"
#include "doctor/this_machine.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/machine/machine.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "io/stop_signal.h"
#include "io/terminal.h"
#include "observe/health_lines.h"
#include "server/server.h"

namespace stoker {

namespace {

constexpr double kQuickLimitS = 6, kFullLimitS = 75;  // far above what is usual; a hanging disk ends there
constexpr double kGpuLimitS = 90;                     // eight boards without persistence take half a minute to begin
constexpr std::size_t kMostPeers = 64, kLeastToken = 8;
constexpr const char* kUsualListen = "127.0.0.1:7411";

Result<std::string> token_in_file(const std::string& file) {
    TRY(const std::string text, read_file(file, 1 << 12));
    std::string token(trim(text));
    if (token.size() < kLeastToken)
        return Error(ErrorKind::invalid, fmt::format("{} holds no token of {} characters or more", file, kLeastToken),
                     {}, "openssl rand -hex 16 > " + file);
    return token;
}

// The token of the file; made where there is no such file yet.
Result<std::string> own_token(const std::string& file, bool& made) {
    std::error_code code;
    if (std::filesystem::exists(file, code)) return token_in_file(file);
    const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const std::string token = random_hex(16), text = token + "\n";
    if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return Error(ErrorKind::unavailable, fmt::format("cannot write {}: {}", file, std::strerror(errno)));
    made = true;
    return token;
}

Result<CommandOutput> serve_links(Session& session, const Args& args) {
    TRY(const ListenAddress listen, parse_listen(args.get_or("listen", kUsualListen)));
    const auto file = args.get("link-token");
    std::string token;
    bool made = false;
    if (file) {
        TRY(token, own_token(*file, made));
    } else if (!listen.loopback()) {
        return Error(
            ErrorKind::invalid,
            fmt::format("listening on {} needs a token: anybody who reaches it could fill the network", listen.address),
            {}, "--link-token link.token, which is made if it is not there; the other node needs a copy");
    }
    StopSignal stop;
    TRY(const auto server, LinkServer::start({.address = listen.address, .port = listen.port, .token = token}));
    // Who listens everywhere is reached by the name of the machine.
    const bool everywhere = listen.address == "0.0.0.0" || listen.address == "::";
    const std::string place = host_and_port(everywhere ? this_node().name : listen.address, server->port());
    const std::string line =
        fmt::format("stoker doctor --peer {}{}", place, file ? " --link-token " + *file : std::string());
    if (session.format == Format::text) {
        TRY_VOID(
            print_now(fmt::format("answers network tests at {}; ctrl-c ends it\n  at the other node: {}\n{}",
                                  host_and_port(listen.address, server->port()), line,
                                  made ? fmt::format("  {} was made: copy it there first\n", *file) : std::string())));
    } else {
        TRY_VOID(print_now(dump(session, Json::object()
                                             .set("address", listen.address)
                                             .set("port", static_cast<int>(server->port()))
                                             .set("try", line))));
    }
    stop.wait();
    if (!session.quiet) {
        const LinkServerCounts counts = server->counts();
        fmt::print(stderr, "{} measurements answered, {} with a wrong token, {} refused\n", counts.sessions,
                   counts.denied, counts.refused);
    }
    return CommandOutput{};
}

// What --size says, of the thresholds and of the catalogue.
Status take_size(Session& session, const std::string& size, HealthTarget& target) {
    const auto facts = facts_of_size(size);
    TRY(const Catalog* catalog, session.catalog());
    const auto index = catalog->find_node_type(size);
    if (!facts && !index) return index.error();
    target.size = facts ? size : "";
    if (!index) return done();
    const NodeType& node = catalog->node_types()[static_cast<std::size_t>(*index)];
    if (node.ethernet_gbps > 0) {
        target.link_bytes_per_s = node.ethernet_gbps * 1e9 / 8;
        target.link_source = fmt::format("the network of {}, {:g} Gbit/s", node.name, node.ethernet_gbps);
    }
    if (facts) return done();
    // No thresholds are published; what the size has is known all the same.
    target.node.cpu_milli = std::int64_t{node.vcpus} * 1000;
    target.node.memory_bytes = static_cast<std::int64_t>(node.memory.v);
    if (node.has_gpu()) target.node.devices.resize(static_cast<std::size_t>(node.whole_gpus()));
    return done();
}

Result<HealthTarget> target_of(Session& session, const Args& args) {
    HealthTarget target;
    const NodeInfo here = this_node();
    target.node.name = here.name;
    target.node.devices = here.devices;  // that the kernel's driver has found: nvidia-smi must find them too
    target.peers = args.all("peer");
    if (target.peers.size() > kMostPeers)
        return Error(ErrorKind::invalid, fmt::format("more than {} peers", kMostPeers), {}, "name fewer at once");
    for (const std::string& peer : target.peers)
        if (auto place = parse_host_port(peer); !place) return std::move(place).while_doing("reading --peer").error();
    if (const auto file = args.get("link-token")) {
        TRY(target.token, token_in_file(*file));
    }
    if (const auto size = args.get("size")) TRY_VOID(take_size(session, *size, target));
    TRY(const double gbps, args.number("link-gbps", 0, 0.001, 1e5));
    if (gbps > 0) {
        target.link_bytes_per_s = gbps * 1e9 / 8;
        target.link_source = fmt::format("--link-gbps {:g}", gbps);
    }
    TRY(target.mtu, args.whole_number("mtu", 0, 576, 65536));
    std::error_code code;
    target.folder = std::filesystem::absolute(args.get_or("disk", "."), code).lexically_normal().string();
    if (target.folder.size() > 1 && target.folder.ends_with('/')) target.folder.pop_back();
    if (args.has("disk") && !std::filesystem::is_directory(target.folder, code))
        return Error(ErrorKind::invalid, fmt::format("--disk {} is no folder", printable(target.folder)));
    if (const auto path = this_machine_path()) add_usual(*path, discover_machine(), target);
    return target;
}

struct LookedAt {
    HealthReport report;
    HealthHeading heading;
};

LookedAt look(Session& session, const Args& args, HealthTarget& target) {
    const bool full = args.has("full");
    ProgressLine progress(!session.quiet);
    target.progress = [&](std::string_view what) { progress.update(-1, what); };
    const bool gpus = target.gpus || (full && target.device && !target.node.devices.empty());
    const double begin = monotonic_seconds(),
                 limit = (full ? kFullLimitS : kQuickLimitS) + (gpus ? kGpuLimitS + target.burn_in_s : 0);
    LookedAt looked;
    looked.report = check_node(
        target, full ? HealthLevel::full : HealthLevel::quick,
        std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(1000 * limit)));
    looked.heading = {.node = target.node.name,
                      .level = full            ? "full"
                               : target.gentle ? "gentle"
                                               : "quick",
                      .seconds = monotonic_seconds() - begin};
    target.progress = {};
    return looked;
}

// 1: something failed. 3: nothing did, but what was asked for by name could not be looked at.
int exit_of(const HealthReport& report) {
    if (report.verdict() == HealthVerdict::fail) return 1;
    if (report.verdict() == HealthVerdict::skipped) return 3;
    for (const HealthCheck& check : report.checks)
        if (!check.peer.empty() && check.name == "link-bandwidth" && check.verdict == HealthVerdict::skipped &&
            !check.measured)
            return 3;
    return 0;
}

Result<CommandOutput> check_this_machine(Session& session, const Args& args, std::string_view part) {
    TRY(HealthTarget target, target_of(session, args));
    if (!part.empty()) {
        target.network = part == "network";
        target.device = !target.network;
        target.machine = false;
        target.cpu = part == "cpu";
        target.disk = part == "disk";
        target.gpus = part == "gpu";
    }
    TRY(target.burn_in_s, args.number("burn-in", 0, 0, 86'400));
    if (target.burn_in_s > 0 && !part.empty() && part != "gpu")
        return Error(ErrorKind::invalid, "--burn-in is for `stoker doctor gpu`");
    const LookedAt looked = look(session, args, target);
    std::string kept;
    if (args.has("baseline")) {
        TRY(const std::string path, this_machine_path());
        TRY(const std::size_t figures,
            keep_usual(path, discover_machine(), args.has("full") ? HealthLevel::full : HealthLevel::quick,
                       looked.report, target.folder, session.today));
        kept = fmt::format("{} figures are now what is usual here; stoker doctor --forget removes them\n", figures);
    }
    // With --baseline the answer is what is kept; nothing was there to hold it against.
    const int exit =
        args.has("baseline") && looked.report.verdict() == HealthVerdict::skipped ? 0 : exit_of(looked.report);
    if (session.format != Format::text)
        return CommandOutput{dump(session, health_json(looked.report, looked.heading)), exit};
    return CommandOutput{health_text(looked.report, looked.heading, session.style) + kept, exit};
}

Result<CommandOutput> check_run(Session& session, const Args& args, RunId id) {
    TRY(HealthTarget target, target_of(session, args));
    TRY(const auto client, connect_to_look(args));
    TRY(const auto view, get<api::RunView>(*client, "/api/v1/runs/" + id.text()));
    TRY(const auto explanation,
        get<api::ExplanationView>(*client, fmt::format("/api/v1/runs/{}/explanation", id.text())));
    const bool goes_on = !is_terminal(view.run.state) && !view.attempts.empty();
    target.gentle = goes_on;
    // What runs elsewhere says nothing about this machine, and the other way round.
    target.device = !args.has("server");
    std::error_code code;
    if (!args.has("disk")) {
        target.folder.clear();
        for (const std::string& folder : {view.spec.checkpoint.folder, view.folder})
            if (target.folder.empty() && !folder.empty() && std::filesystem::is_directory(folder, code))
                target.folder = folder;
    }
    target.network = !target.peers.empty();
    const LookedAt looked = look(session, args, target);
    TRY(const auto nodes, get<api::NodeList>(*client, "/api/v1/nodes"));
    HealthReport of_nodes = health_of_nodes(view, nodes.items);
    of_nodes.checks.insert(of_nodes.checks.end(), looked.report.checks.begin(), looked.report.checks.end());
    const HealthReport report = by_layers(health_of_explanation(explanation), std::move(of_nodes));
    const HealthCheck* blamed = to_blame(report);
    const RunCost cost = cost_of_trouble(view, explanation, blamed);
    if (session.format != Format::text) {
        Json json = health_json(report, looked.heading);
        json.set("run", id.text()).set("state", to_string(view.run.state)).set("goes_on", goes_on);
        if (cost.per_hour_usd) json.set("cost_per_hour_usd", *cost.per_hour_usd);
        json.set("share_of_step", cost.share);
        return CommandOutput{dump(session, json), exit_of(report)};
    }
    std::string text = fmt::format("{} {}{}; ", session.style.bold(id.text()), to_string(view.run.state),
                                   goes_on ? ", so that nothing here was loaded" : "");
    text +=
        health_text(report, looked.heading, session.style) + "\n" + conclusion_text(view, blamed, cost, session.style);
    return CommandOutput{text, exit_of(report)};
}

Result<CommandOutput> run_doctor(Session& session, const Args& args) {
    if (!args.positional.empty() && args.positional[0] == "cloud") {
        for (const char* other : {"full", "peer", "link-token", "link-gbps", "mtu", "disk", "baseline", "forget",
                                  "listen", "size", "burn-in"})
            if (args.has(other))
                return Error(ErrorKind::invalid, fmt::format("cloud looks at lists; --{} measures here", other));
        return find_forgotten_things(session, args);
    }
    if (args.has("read")) {
        for (const OptionSpec& option : client_options())
            if (args.has(option.name))
                return Error(ErrorKind::invalid,
                             fmt::format("--read looks at files; --{} is for a server", option.name));
        return read_tools(session, args);
    }
    const std::string word = args.positional.empty() ? "" : args.positional[0];
    const auto for_others = [&](const std::vector<OptionSpec>& options, std::string_view what) -> Status {
        for (const OptionSpec& option : options)
            if (args.has(option.name))
                return Error(ErrorKind::invalid, fmt::format("--{} is for `stoker doctor {}`", option.name, what));
        return done();
    };
    const auto run = RunId::parse(word);
    if (!run) TRY_VOID(for_others(client_options(), "RUN"));
    if (word == "serve") return serve_links(session, args);
    TRY_VOID(for_others({{.name = "listen"}}, "serve"));
    if (args.has("forget")) {
        TRY(const std::string path, this_machine_path());
        TRY_VOID(forget_usual(path, discover_machine()));
        return CommandOutput{"what was usual here is forgotten\n"};
    }
    if (run) {
        if (args.has("baseline"))
            return Error(ErrorKind::invalid, "--baseline keeps what is usual of a machine, not of a run");
        return check_run(session, args, *run);
    }
    return check_this_machine(session, args, word);
}

}  // namespace

CliCommand doctor_command() {
    CliCommand command{
        .name = "doctor",
        .summary = "network, machine and disk against what they should be; a run's trouble by layer",
        .usage =
            "stoker doctor [cpu | disk | gpu | network | serve | RUN] [options]\n"
            "       stoker doctor --read FILE... [--size SIZE]\n"
            "       stoker doctor cloud --read FILE... [--server URL | --folder DIR]",
        .description =
            "Measures for two seconds (--full: up to a minute): links to the peers that are named, then what the "
            "machine "
            "has, one core's matrix products and memory, and the disk. Each is held against what is known: --size or "
            "--link-gbps, what this machine did before (--baseline, or stoker bench cpu), or what any machine must do. "
            "What nobody knows is shown and not judged: it never passes.\n"
            "gpu measures NVIDIA's boards through the driver: copies to, from and between them, products (from the "
            "A100 on those of tensor cores), whether the same work gives the same results, and, where NCCL is "
            "installed, the sum over all of them; --full adds twenty seconds of work on all of them at once, "
            "--burn-in as long as you like. A board that somebody uses is left alone.\n"
            "serve is the far end of the network test. RUN is looked at network first, then device, then model, and "
            "the "
            "first layer at fault is named with what it costs; while it goes on, nothing here is loaded. Of the nodes "
            "that it ran on, what the server's last check found is shown.\n"
            "--read takes what tools printed, from files (- is stdin), and measures nothing: nvidia-smi (table, -q -x, "
            "--query-gpu CSV, topo -m), logs with NCCL_DEBUG=INFO, ib_write_bw, nccl-tests, dcgmi diag, kubectl get "
            "pods, nodes and events -o json, az vm list-skus, list-usage and extension show, az network nic show, "
            "kernel logs with Xid "
            "lines, the text of a DCGM exporter; and the script of the run, whose line is named that a log speaks of. "
            "Each file is known by its content, annotated by its lines and held against --size; all are concluded "
            "together, network first.\n"
            "cloud takes what a cloud lists (az resource, vm -d, disk, group, network public-ip and network nic list, "
            "az "
            "aks nodepool list, aws ec2 describe-instances, -volumes and -addresses, gcloud compute instances, disks "
            "and "
            "addresses list; all as JSON) and says what nobody seems to want any more: disks that no machine has, "
            "machines that are stopped and billed, pools that never empty, what was to end, and what is marked "
            "managed-by=stoker and no node, run or endpoint of the server that is named. With its age, what it costs a "
            "month by the catalogue and the line that removes it; it removes nothing itself, and ends with 1 when "
            "something is forgotten for certain.\n"
            "Ends with 0 when nothing failed, 1 when something did, 2 when a file is not recognised or breaks off, 3 "
            "when a peer that was named could not be measured, or nothing in the files could be judged.",
        .examples = {"stoker doctor", "stoker doctor serve --listen 10.0.0.5:7411 --link-token link.token",
                     "stoker doctor network --peer 10.0.0.5:7411 --link-token link.token --link-gbps 10",
                     "stoker doctor --full --size Standard_ND96isr_H100_v5", "stoker doctor --full --baseline",
                     "stoker doctor disk --disk /scratch",
                     "stoker doctor gpu --burn-in 600 --size Standard_ND96isr_H100_v5", "stoker doctor r-12",
                     "stoker doctor cloud --read vms.json disks.json addresses.json groups.json",
                     "stoker doctor --read ib.txt nccl.log train.sh --size Standard_ND96isr_H100_v5",
                     "kubectl get pods,nodes,events -A -o json | stoker doctor --read -"},
        .options = {{.name = "read",
                     .value = "FILE...",
                     .help = "read what tools printed, or what a cloud lists, and conclude",
                     .repeats = true,
                     .completes = "file",
                     .many = true},
                    {.name = "full", .help = "measure for up to a minute, on all cores"},
                    {.name = "burn-in",
                     .value = "SECONDS",
                     .help = "gpu: all GPUs at work for so long (with --full 20, else 0)"},
                    {.name = "peer",
                     .value = "HOST:PORT",
                     .help = "measure the link to `stoker doctor serve` there",
                     .repeats = true},
                    {.name = "link-token",
                     .value = "FILE",
                     .help = "the token that both ends of a link share",
                     .completes = "file"},
                    {.name = "link-gbps", .value = "N", .help = "what a link should carry, in Gbit/s"},
                    {.name = "mtu", .value = "BYTES", .help = "the MTU that the path should have"},
                    {.name = "size",
                     .value = "SIZE",
                     .help = "hold the machine, or the files, against this size of the catalogue",
                     .completes = "size"},
                    {.name = "disk", .value = "DIR", .help = "where the disk is tried (.)", .completes = "dir"},
                    {.name = "baseline", .help = "keep what is measured as what is usual here"},
                    {.name = "forget", .help = "remove what --baseline kept"},
                    {.name = "listen", .value = "ADDRESS:PORT", .help = "where serve listens (127.0.0.1:7411)"}},
        .max_positional = 1,
        .subcommands = {"cloud", "cpu", "disk", "gpu", "network", "serve"},
        .run = run_doctor,
        .completes = "run"};
    for (const OptionSpec& option : client_options()) command.options.push_back(option);
    return command;
}

}  // namespace stoker
