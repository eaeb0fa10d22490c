#include "app/commands/usage_sacct.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "app/client/run_text.h"
#include "app/client/typed.h"
#include "app/listing.h"
#include "base/api_time.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/slurm/accounting.h"
#include "io/files.h"
#include "io/run_program.h"
#include "io/worker.h"

namespace stoker {
namespace {

using slurm::Agreement;

constexpr std::size_t kMostComparedRuns = 5000;
constexpr std::int64_t kSacctDayUs = 86'400'000'000;
constexpr double kSacctLimitS = 120;
constexpr std::size_t kMostSacctBytes = 64 << 20;

struct SacctWindow {
    std::int64_t from_us = 0, to_us = 0;
};

Result<SacctWindow> sacct_window(const Args& args, std::int64_t now_us) {
    SacctWindow window{now_us - 30 * kSacctDayUs, now_us};
    for (const auto& [name, bound] : {std::pair("from", &window.from_us), std::pair("to", &window.to_us)}) {
        const auto text = args.get(name);
        if (!text) continue;
        const auto at = parse_rfc3339(text->size() == 10 ? *text + "T00:00:00Z" : *text);
        if (!at)
            return Error(ErrorKind::invalid, fmt::format("--{} is {}", name, printable(*text, 40)), {},
                         "a day such as 2026-11-01, or RFC 3339");
        *bound = *at;
    }
    return window;
}

// As sacct reads it: the time of this machine's zone.
std::string for_sacct(std::int64_t at_us) {
    const time_t seconds = at_us / 1'000'000;
    tm parts{};
    std::array<char, 32> text{};
    ::localtime_r(&seconds, &parts);
    ::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    return text.data();
}

Result<std::string> sacct_table(const std::string& where, const SacctWindow& window) {
    if (where != "sacct") return read_file(where, kMostSacctBytes);
    ProgramCall call{.arguments = {"sacct", "-X", "-P", "-S", for_sacct(window.from_us), "-E", for_sacct(window.to_us),
                                   "-o", slurm::kAccountingFields},
                     .environment = {}};
    for (const char* key : {"PATH", "HOME", "SLURM_CONF", "TZ"})
        if (const char* value = std::getenv(key)) call.environment.push_back(fmt::format("{}={}", key, value));
    auto ran = run_program(call, after(kSacctLimitS));
    if (!ran) return std::move(ran.error()).while_doing("asking sacct");
    if (ran->exit_code != 0 || ran->cut)
        return Error(ErrorKind::unavailable, "sacct: " + printable(trim(ran->complaint), 300), {},
                     fmt::format("where the cluster's accounting is: sacct -X -P -S now-30days -o {} > sacct.txt, and "
                                 "give that file",
                                 slurm::kAccountingFields));
    return std::move(ran->output);
}

slurm::TryHere sacct_try(const api::RunView& view, const api::AttemptView& attempt, const OperationId& operation) {
    slurm::TryHere one{.run = view.run.id.text(),
                       .engine = attempt.engine,
                       .number = static_cast<std::int64_t>(attempt.id.number),
                       .operation = operation,
                       .ended = !attempt.ended_at.empty()};
    const auto began = parse_rfc3339(attempt.running_at), ended = parse_rfc3339(attempt.ended_at);
    if (began && ended) one.held.seconds = static_cast<double>(*ended - *began) / 1e6;
    std::set<std::string> nodes;
    for (const api::RankView& rank : attempt.ranks) nodes.insert(rank.node);
    const double ranks = static_cast<double>(attempt.ranks.size());
    one.held.nodes = static_cast<double>(nodes.size());
    one.held.cpus = ranks * static_cast<double>(view.spec.per_rank.cpu_milli) / 1000;
    one.whole_cpus = ranks * std::ceil(static_cast<double>(view.spec.per_rank.cpu_milli) / 1000);
    one.held.gpus = ranks * view.spec.per_rank.gpus;
    return one;
}

// Tries that had anything of the window. False: there are more runs than are looked at.
Result<bool> tries_beside_sacct(Client& client, const SacctWindow& window, std::vector<slurm::TryHere>& tries) {
    std::string cursor;
    std::size_t runs = 0;
    do {
        TRY(const auto page,
            get<api::RunPage>(client, fmt::format("/api/v1/runs?limit=500{}{}",
                                                  cursor.empty() ? "" : "&cursor=", url_encoded(cursor))));
        for (const api::RunItem& run : page.items) {
            const auto ended = parse_rfc3339(run.ended_at);
            if (run.started_at.empty() || (ended && *ended < window.from_us)) continue;
            if (++runs > kMostComparedRuns) return false;
            TRY(const auto view, get<api::RunView>(client, "/api/v1/runs/" + run.id.text()));
            for (const api::AttemptView& attempt : view.attempts) {
                const auto operation = OperationId::parse(attempt.operation);
                const auto began = parse_rfc3339(attempt.running_at), over = parse_rfc3339(attempt.ended_at);
                if (!operation || (began && *began > window.to_us) || (over && *over < window.from_us)) continue;
                tries.push_back(sacct_try(view, attempt, *operation));
            }
        }
        cursor = page.next_cursor;
    } while (!cursor.empty());
    return true;
}

struct HeldBoth {
    double gpu_here = 0, gpu_there = 0, cpu_here = 0, cpu_there = 0;
};

std::string share_off(double here, double there) {
    if (here <= 0 && there <= 0) return "";
    if (here <= 0) return ", none here";
    const double off = 100 * (there - here) / here;
    return std::fabs(off) < 0.05 ? ", the same" : fmt::format(", {:+.1f} %", off);
}

}  // namespace

Result<CommandOutput> compare_with_sacct(Session& session, Client& client, const Args& args) {
    TRY(const auto first, get<api::RunPage>(client, "/api/v1/runs?limit=1"));
    TRY(const SacctWindow window, sacct_window(args, now_of(first.now, client.offline())));
    TRY(const std::string table, sacct_table(args.get_or("against", "sacct"), window));
    TRY(const auto jobs, slurm::read_accounting(table));
    std::vector<slurm::TryHere> tries;
    TRY(const bool all, tries_beside_sacct(client, window, tries));
    const auto compared = slurm::compare_accounting(std::move(tries), jobs);

    HeldBoth held;
    std::array<std::size_t, 5> counts{};
    Json items = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const slurm::ComparedTry& each : compared) {
        ++counts[static_cast<std::size_t>(each.agreement)];
        double there_s = 0, gpu_hours = 0, cpu_hours = 0;
        std::string numbers;
        for (const slurm::AccountedJob& job : each.jobs) {
            there_s += job.held.seconds, gpu_hours += job.held.gpu_hours(), cpu_hours += job.held.cpu_hours();
            numbers += (numbers.empty() ? "" : ",") + printable(job.number, 30);
        }
        if (each.agreement != Agreement::goes_on) {
            held.gpu_here += each.here.held.gpu_hours(), held.cpu_here += each.here.held.cpu_hours();
            held.gpu_there += gpu_hours, held.cpu_there += cpu_hours;
        }
        constexpr const char* kWords[] = {"agrees", "differs", "only_here", "only_there", "goes_on"};
        items.push(Json::object()
                       .set("run", each.here.run)
                       .set("try", each.here.number)
                       .set("operation", each.here.operation.text())
                       .set("job", numbers)
                       .set("result", kWords[static_cast<std::size_t>(each.agreement)])
                       .set("why", each.why)
                       .set("seconds", each.here.held.seconds)
                       .set("sacct_seconds", there_s)
                       .set("gpu_hours", each.here.held.gpu_hours())
                       .set("sacct_gpu_hours", gpu_hours)
                       .set("cpu_hours", each.here.held.cpu_hours())
                       .set("sacct_cpu_hours", cpu_hours));
        if (each.agreement == Agreement::agrees || each.agreement == Agreement::goes_on) continue;
        rows.push_back({each.here.run.empty() ? "-" : fmt::format("{}.{}", each.here.run, each.here.number),
                        numbers.empty() ? "-" : cut(numbers, 24),
                        each.here.run.empty() ? "-" : format_seconds(Seconds(each.here.held.seconds)),
                        each.jobs.empty() ? "-" : format_seconds(Seconds(there_s)), each.why});
    }
    const std::size_t good = counts[0], apart = counts[1] + counts[2] + counts[3], on = counts[4];
    const int code = apart == 0 ? 0 : 1;
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object()
                                               .set("items", std::move(items))
                                               .set("agree", static_cast<std::int64_t>(good))
                                               .set("apart", static_cast<std::int64_t>(apart))
                                               .set("go_on", static_cast<std::int64_t>(on))
                                               .set("all_looked_at", all)),
                             code};
    if (compared.empty()) return CommandOutput{"sacct and this server have no job of Stoker's in that time\n"};
    std::string text;
    if (!rows.empty())
        text = table_text(session.style, {{"try"}, {"job"}, {"here", Align::right}, {"sacct", Align::right}, {""}},
                          rows, 0);
    text += fmt::format("{} of {} tries that have ended agree{}\n", good, good + apart,
                        on == 0 ? "" : fmt::format("; {} run{} on", on, on == 1 ? "s" : ""));
    const auto hours = [&](const char* what, double here, double there) {
        if (here > 0 || there > 0)
            text +=
                fmt::format("{} hours: {:.4g} here, {:.4g} by sacct{}\n", what, here, there, share_off(here, there));
    };
    if (held.gpu_here > 0 && held.gpu_there <= 0)
        text +=
            "sacct counts no GPUs, so they were not compared: AccountingStorageTRES in slurm.conf has no gres/gpu\n";
    else
        hours("GPU", held.gpu_here, held.gpu_there);
    hours("CPU", held.cpu_here, held.cpu_there);
    text += session.style.dim(
                "Slurm counts from the moment it gives nodes until they are free again, and whole cores; here "
                "time counts from the start of the ranks to the end of the last") +
            "\n";
    if (!all)
        text += fmt::format("the newest {} runs were compared; --from and --to cut the time\n", kMostComparedRuns);
    return CommandOutput{text, code};
}

}  // namespace stoker
