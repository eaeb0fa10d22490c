// The autoscaler on the Azure LLM traces of 2023 (Azure/AzurePublicDataset, CC BY 4.0), beside a schedule by somebody
// who knew the trace: share of requests within the objective, replica-hours, starts and stops.
//
//     bench_scale AzureLLMInferenceTrace_conv.csv.gz [prefill/s decode/s stream/s cold_s spare fast_s slow_s drain_s
//     kept_s]
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "base/tsv.h"
#include "io/gzip.h"
#include "serve/fleet/scale_replay.h"

namespace stoker {
namespace {

// "2023-11-16 18:15:46.6805900" as seconds since midnight: the traces are an hour of one day.
Result<double> second_of_day(std::string_view text) {
    int hour = 0, minute = 0;
    double second = 0;
    if (text.size() < 19 ||
        std::sscanf(std::string(text.substr(11)).c_str(), "%d:%d:%lf", &hour, &minute, &second) != 3)
        return Error(ErrorKind::invalid, fmt::format("'{}' is no time stamp", text));
    return hour * 3600 + minute * 60 + second;
}

Result<std::vector<TraceRequest>> read_trace(const std::string& path) {
    TRY(const std::string text, read_plain_or_gzip(path, 256u << 20));
    TRY(const Tsv rows, Tsv::read_csv(text, path));
    TRY(const std::size_t at, rows.column("TIMESTAMP"));
    TRY(const std::size_t in, rows.column("ContextTokens"));
    TRY(const std::size_t out, rows.column("GeneratedTokens"));
    std::vector<TraceRequest> trace;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
        TRY(const double second, second_of_day(rows.at(row, at)));
        TRY(const double prompt, rows.number(row, in));
        TRY(const double output, rows.number(row, out));
        trace.push_back({second, prompt, output});
    }
    const double first = trace.empty() ? 0 : trace.front().at_s;
    for (TraceRequest& request : trace) request.at_s -= first;
    return trace;
}

int run(int argc, char** argv) {
    if (argc < 2)
        return std::fputs(
                   "usage: bench_scale TRACE [prefill decode stream cold_s spare fast_s slow_s drain_s kept_s]\n",
                   stderr),
               2;
    const auto trace = read_trace(argv[1]);
    if (!trace) return std::fputs((trace.error().text() + "\n").c_str(), stderr), 2;
    auto number = [&](int i, double otherwise) { return argc > i ? std::atof(argv[i]) : otherwise; };
    const ReplicaModel model{number(2, 4'000), number(3, 400), number(4, 30), number(5, 60)};
    const ScalePolicy policy{.least = 0,
                             .most = 64,
                             .burst_s = number(11, ScalePolicy{}.burst_s),
                             .fast_s = number(7, ScalePolicy{}.fast_s),
                             .slow_s = number(8, ScalePolicy{}.slow_s),
                             .spare = number(6, ScalePolicy{}.spare),
                             .drain_s = number(9, ScalePolicy{}.drain_s),
                             .most_kept_s = number(10, ScalePolicy{}.most_kept_s)};
    const ServingObjective objective;
    auto show = [&](const char* name, const ScaleReplayResult& r, double bound) {
        fmt::print(
            "{:<12} {:.2f} % met  {:.3f} replica-hours ({:.2f} x)  at most {}  {} starts {} stops {} reversals  TTFT "
            "p50 {:.2f} p99 {:.2f} s\n",
            name, 100 * r.met_share(), r.replica_seconds / 3600, r.replica_seconds / bound, r.most, r.starts, r.stops,
            r.reversals, r.ttft_p50_s, r.ttft_p99_s);
    };
    double work = 0;
    for (const TraceRequest& r : *trace)
        work += r.prompt_tokens / model.prefill_tokens_per_s + r.output_tokens / model.decode_tokens_per_s;
    const std::vector<int> levels = clairvoyant_levels(*trace, model, objective, 0.99);
    const ScaleReplayResult best = replay_levels(*trace, model, objective, levels);
    const ScaleReplayResult ours = replay_scaling(*trace, model, objective, policy, levels.front());
    fmt::print("{} requests, {:.0f} s, {:.3f} replica-hours of work\n", trace->size(), trace->back().at_s, work / 3600);
    show("clairvoyant", best, best.replica_seconds);
    show("decide_scale", ours, best.replica_seconds);
    return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
    return stoker::run(argc, argv);
}
