// What Slurm's accounting says of our jobs, beside what is known here of the tries that they were. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace stoker::slurm {

// For sacct -o; what people ask for beyond that is passed over.
inline constexpr const char* kAccountingFields = "JobIDRaw,JobName,State,ElapsedRaw,AllocTRES";

// What was held, and for how long.
struct HeldTotal {
    double seconds = 0;
    double nodes = 0, cpus = 0, gpus = 0;
    double gpu_hours() const { return gpus * seconds / 3600; }
    double cpu_hours() const { return cpus * seconds / 3600; }
};
struct AccountedJob {
    std::string number, state;
    OperationId operation;
    HeldTotal held;
    bool ended = false;
};
// Of `sacct -X -P` with a heading. Jobs that carry no mark of ours are passed over; lines of one operation (a job that
// the controller lost, submitted again) stay as they are.
Result<std::vector<AccountedJob>> read_accounting(std::string_view text);

// A try of a run, by the server's journal.
struct TryHere {
    std::string run, engine;
    std::int64_t number = 0;
    OperationId operation;
    HeldTotal held;
    double whole_cpus = 0;  // with the cores of each rank whole, as Slurm gives them
    bool ended = false;
};
enum class Agreement : std::uint8_t { agrees, differs, only_here, only_there, goes_on };
struct ComparedTry {
    TryHere here;
    std::vector<AccountedJob> jobs;
    Agreement agreement = Agreement::agrees;
    std::string why;  // of what does not agree
};
// In the order of the tries, and behind them what only the accounting knows. A try is missed there only if another one
// of its engine is known: the others ran on engines that this accounting is not of.
std::vector<ComparedTry> compare_accounting(std::vector<TryHere> tries, const std::vector<AccountedJob>& jobs);

}  // namespace stoker::slurm
