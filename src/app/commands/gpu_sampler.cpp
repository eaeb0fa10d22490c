// stoker gpu-sampler: started by whoever wants to know of GPUs, not by people. A process of its own, since a call to
// NVIDIA's driver may never come back.
#include "observe/gpu/sampler.h"

#include "app/commands/commands.h"
#include "base/text.h"
#include "doctor/measure/gpu_speed.h"
#include "observe/gpu/recording.h"

namespace stoker {

namespace {

constexpr int kBoardFd = 3;

Result<CommandOutput> run_sampler(Session&, const Args& args) {
    TRY(const int record, args.whole_number("record", 0, 0, 10'000));
    TRY(const double period_s, args.number("period", 1, 0.01, 3600));
    if (record > 0) {
        const auto recorded = record_gpus(record, period_s);
        if (recorded) return CommandOutput{recorded->dump(1) + "\n"};
        // Its caller makes an error of it again, with what to do apart from what is wrong.
        const auto& problems = recorded.error().problems();
        return CommandOutput{Json::object()
                                 .set("problem", recorded.error().message())
                                 .set("remedy", problems.empty() ? "" : problems.front().remedy)
                                 .dump(1) +
                             "\n"};
    }
    if (const auto level = args.get("measure")) {
        TRY(const double burn_s, args.number("burn-in", 0, 0, 86'400));
        return CommandOutput{to_json(measure_gpus({.level = *level == "full" ? HealthLevel::full : HealthLevel::quick,
                                                   .burn_s = burn_s,
                                                   .root = {}}))
                                 .dump(1) +
                             "\n"};
    }
    SamplerOptions options{.period_s = period_s, .skip = {}};
    if (const auto skip = args.get("skip"))
        for (const std::string_view word : split(*skip, ',')) options.skip.emplace_back(word);
    TRY(SharedBoard board, SharedBoard::open(kBoardFd));
    return CommandOutput{"", run_gpu_sampler(std::move(board), options)};
}

}  // namespace

CliCommand gpu_sampler_command() {
    return {.name = "gpu-sampler",
            .summary = "internal: reads the driver's figures into memory of the agent",
            .usage = "stoker gpu-sampler [--period SECONDS] [--skip #N,...]",
            .description =
                "Started with descriptor 3 on the memory to fill; with --record it prints a "
                "recording, with --measure how fast the GPUs are.",
            .options = {{.name = "period", .value = "SECONDS", .help = "between readings (1)"},
                        {.name = "skip", .value = "LIST", .help = "boards that are not asked for, as #0,#3"},
                        {.name = "record", .value = "N", .help = "read N times and print each call"},
                        {.name = "measure", .value = "LEVEL", .help = "quick or full: copies and products, by CUDA"},
                        {.name = "burn-in", .value = "SECONDS", .help = "measure: all boards at work for so long (0)"}},
            .run = run_sampler};
}

}  // namespace stoker
