#include "validate/benchmarks.h"

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"

namespace stoker::validate {

Result<Benchmarks> Benchmarks::read(std::string_view text, FileName file) {
    TRY(const Tsv table, Tsv::read(text, file));
    TRY(const std::size_t name, table.column("benchmark"));
    TRY(const std::size_t model, table.column("model"));
    TRY(const std::size_t prompt, table.column("prompt_tokens"));
    TRY(const std::size_t output, table.column("output_tokens"));
    TRY(const std::size_t beams, table.column("beams"));
    TRY(const std::size_t steps, table.column("steps"));
    TRY(const std::size_t ttft, table.column("limit_ttft_s"));
    TRY(const std::size_t tpot, table.column("limit_tpot_s"));
    TRY(const std::size_t latency, table.column("limit_latency_s"));
    Benchmarks out;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        Benchmark b;
        b.name = table.at(row, name);
        b.model = table.at(row, model);
        TRY(b.prompt_tokens, table.number(row, prompt));
        TRY(b.output_tokens, table.number(row, output));
        TRY(b.beams, table.number(row, beams));
        TRY(b.steps, table.number(row, steps));
        if (!(b.beams >= 1)) return table.error(row, beams, "a width of 1 or more is wanted");
        for (const auto& [column, limit] : {std::pair{ttft, &b.limit_ttft_s}, std::pair{tpot, &b.limit_tpot_s},
                                            std::pair{latency, &b.limit_latency_s}}) {
            if (table.at(row, column).empty()) continue;
            TRY(*limit, table.number(row, column));
        }
        out.all_.push_back(std::move(b));
    }
    return out;
}

Result<Benchmarks> Benchmarks::embedded() {
    return read(embedded_bytes("calibration/benchmarks.tsv"), "data/calibration/benchmarks.tsv");
}

const Benchmark* Benchmarks::find(std::string_view model, bool interactive) const {
    for (const std::string_view target : {"-99.9", "-99"})
        if (model.ends_with(target)) model.remove_suffix(target.size());
    // The interactive scenario has limits of its own, under the name of the benchmark or under one of its own.
    const std::string tight = fmt::format("{}-interactive", model);
    if (interactive)
        for (const Benchmark& b : all_)
            if (equals_ignore_case(b.name, tight)) return &b;
    for (const Benchmark& b : all_)
        if (equals_ignore_case(b.name, model)) return &b;
    return nullptr;
}

}  // namespace stoker::validate
