#include <fmt/core.h>
#include <chrono>
#include "app/validate/predict.h"
#include "io/files.h"
#include "sizing/terms.h"
using namespace stoker;
using namespace stoker::validate;
int main(int argc, char** argv) {
    auto catalog = Catalog::embedded();
    std::string path = argc > 1 ? argv[1] : "data/validation/training.csv";
    auto text = read_file(path, 1u << 28);
    auto csv = Csv::read(*text, path);
    Catalog c = *catalog;
    for (int i = 2; i + 1 < argc; i += 2) { const Constant* k = c.constant(argv[i]); if (!k) { fmt::print(stderr, "no {}\n", argv[i]); return 2; } Constant n = *k; n.value = std::stod(argv[i + 1]); c.replace_constant(n); }
    Hardware hardware(c); Shapes shapes(c); Jobs jobs(hardware, shapes);
    auto intervals = Intervals::embedded();
    std::vector<Line> lines;
    for (std::size_t i = 0; i < csv->rows(); ++i) lines.push_back(predict_training(Row(*csv, i), jobs, *intervals));
    compare(RowKind::training, *csv, lines);
    fmt::print("id,group,metric,predicted,measured,step,mb,m,gbs");
    for (int t = 0; t < kTimeTerms; ++t) fmt::print(",{}", info(static_cast<TimeTerm>(t)).name);
    fmt::print(",layout,assumed\n");
    for (const Line& l : lines) {
        if (!l.predicted || !l.measured) continue;
        const Job job = jobs.of(Row(*csv, l.row), false);
        fmt::print("{},{},{},{:.6g},{:.6g},{:.6g},{},{},{:g}", l.id, l.group, l.metric, l.value, *l.measured, job.estimate.step_s, job.layout.micro_batch, job.layout.micro_batches, job.global_batch);
        for (double s : job.estimate.seconds) fmt::print(",{:.5g}", s);
        std::string a; for (auto& x : l.assumed) a += x + "; ";
        for (char& ch : a) if (ch == '"') ch = '\'';
        fmt::print(",\"{}\",\"{}\"\n", describe(job.layout), a);
    }
}
