#include "catalog/batches.h"

#include <algorithm>

#include "base/embedded.h"
#include "catalog/field_reader.h"
#include "catalog/tsv_rows.h"

namespace stoker {
namespace {

constexpr std::string_view kBatches = "models/batches.tsv";

const std::vector<PublishedBatch>& shipped_batches() {
    static const std::vector<PublishedBatch> rows = [] {
        auto read = read_batches(embedded_bytes(kBatches));
        CHECK(read.ok());  // batches_test reads the same bytes
        return std::move(read).value();
    }();
    return rows;
}

}  // namespace

Result<std::vector<PublishedBatch>> read_batches(std::string_view bytes) {
    Problems problems;
    TsvRows rows(kBatches, bytes, problems);
    const int model = rows.required_column("model"), mixture = rows.required_column("mixture"),
              below = rows.required_column("parameters_below"), sequences = rows.required_column("sequences"),
              sequence = rows.required_column("sequence"), gpus = rows.required_column("gpus"),
              source = rows.required_column("source");
    std::vector<PublishedBatch> read;
    double last[2] = {0, 0};
    bool wide = false;
    while (rows.next()) {
        rows.check_unique(model);
        PublishedBatch row{.model = rows.text(model),
                           .source = rows.text(source),
                           .mixture = rows.flag(mixture),
                           .parameters_below = rows.number(below),
                           .sequences = rows.number(sequences),
                           .sequence = rows.number(sequence),
                           .gpus = rows.number(gpus)};
        if (!(row.sequences > 0)) rows.problem(sequences, "a batch has sequences");
        if (!(row.sequence > 0)) rows.problem(sequence, "a sequence has tokens");
        if (row.source.empty()) rows.problem(source, "a figure has a source");
        double& largest = last[row.mixture ? 1 : 0];
        if (row.parameters_below > 0 && row.parameters_below <= largest)
            rows.problem(below, "classes of models ascend");
        largest = std::max(largest, row.parameters_below);
        wide |= row.gpus > 0;
        read.push_back(std::move(row));
    }
    if (problems.empty() && (!(last[0] > 0) || !(last[1] > 0) || !wide))
        rows.problem(gpus, "no row has a class, or none has GPUs");
    if (!problems.empty()) return error_of(std::move(problems));
    return read;
}

const PublishedBatch& published_batch(double parameters, bool mixture) {
    const PublishedBatch* largest = nullptr;
    for (const PublishedBatch& row : shipped_batches()) {
        if (!(row.parameters_below > 0) || row.mixture != mixture) continue;
        largest = &row;
        if (parameters < row.parameters_below) break;
    }
    return *largest;
}

const PublishedBatch& widest_published_batch() {
    const PublishedBatch* widest = nullptr;
    for (const PublishedBatch& row : shipped_batches())
        if (row.gpus > 0 && (widest == nullptr || row.tokens() / row.gpus < widest->tokens() / widest->gpus))
            widest = &row;
    return *widest;
}

}  // namespace stoker
