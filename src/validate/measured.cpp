#include "validate/measured.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "base/text.h"
#include "sizing/serving_setup.h"
#include "validate/hardware.h"
#include "validate/held_out.h"
#include "validate/inference.h"
#include "validate/job.h"
#include "validate/row.h"
#include "validate/shape.h"

namespace stoker::validate {
namespace {

using Counts = std::map<std::pair<std::string, std::string>, std::int64_t>;  // device, kind of work

std::string_view kind_of(const ModelSpec& model) {
    const bool generates = model.kind == ModelKind::decoder || model.kind == ModelKind::encoder_decoder;
    return generates ? "generation" : "inference";
}

// One batch that is run to its end says what a device can do, and little of the engines that serve with it today.
bool had_a_scheduler(std::string_view scenario) {
    const std::string text = lower(scenario);
    return text.find("static") == std::string::npos && !text.starts_with("low_latency") &&
           !text.starts_with("llama-bench");
}

Status count(const std::string& text, FileName file, bool serving, Hardware& hardware, Shapes& shapes, Counts& counts) {
    TRY(const Csv csv, Csv::read(text, file));
    TRY(const HeldOut apart, HeldOut::embedded());
    TRY(const HeldOut missed, HeldOut::missed());
    for (std::size_t i = 0; i < csv.rows(); ++i) {
        const Row row(csv, i);
        if (apart.has(row) || missed.has(row)) continue;
        const std::string_view printed = row.text("gpu_model");
        std::string device = "CPU";
        if (!printed.starts_with("CPU")) {
            const NamedDevice& named = hardware.find(printed, row.number("gpu_mem_gb").value_or(0));
            if (named.accelerator < 0 || named.part < 1) continue;
            device = hardware.catalog().accelerators()[static_cast<std::size_t>(named.accelerator)].name;
        }
        std::string kind = "training";
        if (serving) {
            const Shape shape = shapes.of(row, row.text("model"), row.whole("tp").value_or(1));
            if (!shape.refused.empty()) continue;
            kind = kind_of(shape.model);
            if (kind == "generation" && !had_a_scheduler(row.text("scenario"))) continue;
        }
        ++counts[{std::move(device), std::move(kind)}];
    }
    return done();
}

// What a source measured, and how many rows of it.
using Cases = std::map<std::array<std::string, 7>, std::int64_t>;

void count(const MeasuredCase& one, std::string_view source, Cases& cases) {
    ++cases[{std::string(to_string(one.work)), std::string(source), one.silicon, one.architecture, one.vendor,
             one.stack, one.network}];
}

Status count_jobs(const std::string& text, FileName file, Jobs& jobs, Cases& cases) {
    TRY(const Csv csv, Csv::read(text, file));
    TRY(const RowKind kind, validate::kind_of(csv, file));
    TRY(const HeldOut missed, HeldOut::missed());
    for (std::size_t i = 0; i < csv.rows(); ++i) {
        const Row row(csv, i);
        if (missed.has(row)) continue;
        const Job job = jobs.of(row, kind == RowKind::memory);
        if (job.refused.empty() && row.invalid().empty()) count(job.measured, row.text("source_group"), cases);
    }
    return done();
}

}  // namespace

Result<std::string> sources_tsv(const Catalog& catalog, const std::string& training_csv, const std::string& memory_csv,
                                const std::string& inference_csv) {
    Hardware hardware(catalog);
    Shapes shapes(catalog);
    Jobs jobs(hardware, shapes);
    Cases cases;
    TRY_VOID(count_jobs(training_csv, "data/validation/training.csv", jobs, cases));
    TRY_VOID(count_jobs(memory_csv, "data/validation/memory.csv", jobs, cases));
    TRY(const Csv csv, Csv::read(inference_csv, "data/validation/inference.csv"));
    TRY(const HeldOut missed, HeldOut::missed());
    for (const InferenceRequest& request : inference_requests(csv, hardware, shapes))
        if (request.setup && !request.lines.empty() && request.lines.front().refused.empty() &&
            !missed.has(Row(csv, request.lines.front().row)))
            count(serving_case(*request.device, request.workload, request.era),
                  Row(csv, request.lines.front().row).text("split_group"), cases);
    std::string text =
        "# What each source measured, counted from data/validation by ./dev fit --measured: by how far a plan lies "
        "from\n"
        "# all of them its intervals grow (src/sizing/nearness.h). Rows that are refused are left out.\n"
        "work\tsource\tsilicon\tarchitecture\tvendor\tstack\tnetwork\trows\n";
    for (const auto& [key, rows] : cases) text += fmt::format("{}\t{}\n", fmt::join(key, "\t"), rows);
    return text;
}

Result<std::string> measured_tsv(const Catalog& catalog, const std::string& training_csv,
                                 const std::string& inference_csv) {
    Hardware hardware(catalog);
    Shapes shapes(catalog);
    Counts counts;
    TRY_VOID(count(training_csv, "data/validation/training.csv", false, hardware, shapes, counts));
    TRY_VOID(count(inference_csv, "data/validation/inference.csv", true, hardware, shapes, counts));
    std::string text =
        "# Published rows by device and kind of work, counted from data/validation by ./dev fit --measured. "
        "generation: "
        "models that\n# make tokens one by one, by an engine with a scheduler; inference: all others that "
        "answer.\ndevice\tkind\trows\n";
    for (const auto& [key, rows] : counts) text += fmt::format("{}\t{}\t{}\n", key.first, key.second, rows);
    return text;
}

}  // namespace stoker::validate
