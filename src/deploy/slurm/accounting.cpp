#include "deploy/slurm/accounting.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/slurm/queue.h"

namespace stoker::slurm {
namespace {

// sacct tells whole seconds, and Slurm's clock and ours are two; ranks begin when srun has started all of them, and a
// job ends when its nodes are free again. What is beyond that, somebody should look at.
constexpr double kSecondsApart = 5, kShareApart = 0.01;

// "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=16G,node=2"; typed GPUs count where no sum is told.
HeldTotal read_tres(std::string_view text) {
    HeldTotal held;
    double typed = 0;
    bool sum = false;
    for (const std::string_view each : split(text, ',')) {
        const std::size_t equals = each.find('=');
        if (equals == std::string_view::npos) continue;
        const std::string_view key = each.substr(0, equals), number = each.substr(equals + 1);
        double value = 0;
        std::from_chars(number.data(), number.data() + number.size(), value);
        if (key == "cpu") held.cpus = value;
        if (key == "node") held.nodes = value;
        if (key == "gres/gpu") held.gpus = value, sum = true;
        if (key.starts_with("gres/gpu:")) typed += value;
    }
    if (!sum) held.gpus = typed;
    return held;
}

std::string apart(const TryHere& one, const HeldTotal& there, bool counts_gpus) {
    const HeldTotal& here = one.held;
    std::string why;
    const auto add = [&](const std::string& what) { why += (why.empty() ? "" : "; ") + what; };
    const double off = there.seconds - here.seconds;
    if (std::fabs(off) > std::max(kSecondsApart, kShareApart * std::max(here.seconds, there.seconds)))
        add(off > 0 ? fmt::format("its nodes were held {:.0f} s longer than its ranks ran", off)
                    : fmt::format("its ranks ran {:.0f} s longer than Slurm counts", -off));
    if (here.seconds <= 0 || there.seconds <= 0) return why;
    if (counts_gpus && here.gpus != there.gpus)
        add(fmt::format("{:g} GPU{} asked for, {:g} given", here.gpus, here.gpus == 1 ? "" : "s", there.gpus));
    // On some clusters whole nodes are given.
    if (there.cpus < here.cpus - 1e-9 || there.cpus > std::max(here.cpus, one.whole_cpus) + 1e-9)
        add(fmt::format("{:g} CPU{} asked for, {:g} given", here.cpus, here.cpus == 1 ? "" : "s", there.cpus));
    if (here.nodes != there.nodes)
        add(fmt::format("{:g} node{} here, {:g} there", here.nodes, here.nodes == 1 ? "" : "s", there.nodes));
    return why;
}

}  // namespace

Result<std::vector<AccountedJob>> read_accounting(std::string_view text) {
    const auto lines = split_lines(text);
    std::map<std::string, std::size_t, std::less<>> columns;
    if (!lines.empty()) {
        const auto heads = split(lines.front(), '|');
        for (std::size_t i = 0; i < heads.size(); ++i) columns.emplace(trim(heads[i]), i);
    }
    std::string missing;
    for (const std::string_view name : {"JobName", "State", "ElapsedRaw", "AllocTRES"})
        if (!columns.contains(name)) missing += (missing.empty() ? "" : ", ") + std::string(name);
    if (!missing.empty())
        return Error(ErrorKind::invalid, "no table of sacct: its first line does not name " + missing, {},
                     fmt::format("sacct -X -P -S now-30days -o {} > sacct.txt", kAccountingFields));
    std::vector<AccountedJob> jobs;
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const auto fields = split(lines[i], '|');
        const auto field = [&](const char* name) {
            const auto column = columns.find(name);
            return column == columns.end() || column->second >= fields.size() ? std::string_view()
                                                                              : trim(fields[column->second]);
        };
        const std::string_view name = field("JobName");
        if (!name.starts_with(kJobPrefix)) continue;
        const auto operation = OperationId::parse(std::string(name.substr(kJobPrefix.size())));
        if (!operation) continue;
        AccountedJob job{.number = std::string(columns.contains("JobIDRaw") ? field("JobIDRaw") : field("JobID")),
                         .state = std::string(field("State")),
                         .operation = *operation,
                         .held = read_tres(field("AllocTRES"))};
        const std::string_view seconds = field("ElapsedRaw");
        std::from_chars(seconds.data(), seconds.data() + seconds.size(), job.held.seconds);
        job.ended = phase_of(job.state.substr(0, job.state.find(' '))) == JobPhase::over;
        jobs.push_back(std::move(job));
    }
    return jobs;
}

std::vector<ComparedTry> compare_accounting(std::vector<TryHere> tries, const std::vector<AccountedJob>& jobs) {
    std::map<OperationId, std::vector<AccountedJob>> of;
    for (const AccountedJob& job : jobs) of[job.operation].push_back(job);
    // GPUs are in the accounting only where AccountingStorageTRES names them, which it does not by itself.
    const bool counts_gpus =
        std::any_of(jobs.begin(), jobs.end(), [](const AccountedJob& job) { return job.held.gpus > 0; });
    std::set<std::string> engines;
    for (const TryHere& each : tries)
        if (of.contains(each.operation)) engines.insert(each.engine);
    std::vector<ComparedTry> compared;
    for (TryHere& each : tries) {
        const auto found = of.find(each.operation);
        if (found == of.end()) {
            // One that never ran may have been refused by sbatch: then there was no job.
            if (engines.contains(each.engine) && each.held.seconds > 0)
                compared.push_back({.here = std::move(each),
                                    .jobs = {},
                                    .agreement = Agreement::only_here,
                                    .why = "the accounting has no job of it"});
            continue;
        }
        ComparedTry one{.here = std::move(each), .jobs = std::move(found->second)};
        of.erase(found);
        HeldTotal there;
        bool ended = one.here.ended;
        for (const AccountedJob& job : one.jobs) {
            ended = ended && job.ended;
            const double before = there.seconds;
            if (job.held.seconds >= before) there = job.held;  // what another one of this name held it for
            there.seconds = before + job.held.seconds;
        }
        one.why = ended ? apart(one.here, there, counts_gpus) : "it runs on";
        one.agreement = !ended ? Agreement::goes_on : one.why.empty() ? Agreement::agrees : Agreement::differs;
        compared.push_back(std::move(one));
    }
    for (auto& [operation, left] : of) {
        const bool held =
            std::any_of(left.begin(), left.end(), [](const AccountedJob& job) { return job.held.seconds > 0; });
        if (!held) continue;
        TryHere here{.run = {}, .engine = {}, .operation = operation};
        compared.push_back({.here = std::move(here),
                            .jobs = std::move(left),
                            .agreement = Agreement::only_there,
                            .why = "no try of this server in that time"});
    }
    return compared;
}

}  // namespace stoker::slurm
