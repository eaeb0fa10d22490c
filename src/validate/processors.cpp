#include "validate/processors.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"

namespace stoker::validate {

Result<Processors> Processors::read(std::string_view text, FileName file) {
    TRY(const Tsv table, Tsv::read(text, file));
    TRY(const std::size_t words, table.column("words"));
    TRY(const std::size_t name, table.column("name"));
    TRY(const std::size_t cores, table.column("cores"));
    TRY(const std::size_t ghz, table.column("ghz"));
    TRY(const std::size_t fp32, table.column("fp32_flop_per_cycle"));
    TRY(const std::size_t bf16, table.column("bf16_flop_per_cycle"));
    TRY(const std::size_t int8, table.column("int8_op_per_cycle"));
    TRY(const std::size_t memory, table.column("memory_gb_s"));
    Processors out;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        Processor p;
        p.words = lower(table.at(row, words));
        p.name = table.at(row, name);
        for (const auto& [column, to] :
             {std::pair{cores, &p.cores}, std::pair{ghz, &p.ghz}, std::pair{fp32, &p.fp32}, std::pair{bf16, &p.bf16},
              std::pair{int8, &p.int8}, std::pair{memory, &p.memory_gb_s}}) {
            if (table.at(row, column).empty() && (column == bf16 || column == int8)) continue;
            TRY(*to, table.number(row, column));
            if (!(*to > 0)) return table.error(row, column, "a number above 0 is wanted");
        }
        if (p.words.empty()) return table.error(row, words, "a part of the printed name is wanted");
        out.all_.push_back(std::move(p));
    }
    return out;
}

Result<Processors> Processors::embedded() {
    return read(embedded_bytes("calibration/processors.tsv"), "data/calibration/processors.tsv");
}

const Processor* Processors::find(std::string_view printed) const {
    const std::string text = lower(printed);
    const Processor* best = nullptr;
    for (const Processor& p : all_)
        if (text.find(p.words) != std::string::npos && (best == nullptr || p.words.size() > best->words.size()))
            best = &p;
    return best;
}

bool names_processor(std::string_view printed) {
    if (starts_with_ignore_case(printed, "cpu:") || starts_with_ignore_case(printed, "cpu ")) return true;
    const std::string text = lower(printed);
    return text.find("xeon") != std::string::npos || text.find("epyc") != std::string::npos;
}

Device device_of(const Processor& processor, const Catalog& catalog) {
    const DeviceConstants constants = device_constants(catalog);
    constexpr double kMemoryOfSocket = 256e9;
    Device device;
    device.gpu = false;
    device.launch_s = constants.cpu_launch_s;
    device.memory_efficiency = constants.memory_efficiency;
    device.sigma = constants.sigma_unmeasured;
    device.memory_bytes = kMemoryOfSocket * constants.cpu_usable_memory;
    device.memory_per_node = kMemoryOfSocket;
    device.memory_bytes_per_s = processor.memory_gb_s * 1e9;
    device.vcpus_per_node = static_cast<int>(2 * processor.cores);
    for (const Precision p : {Precision::fp16, Precision::bf16, Precision::int8, Precision::int4})
        device.weight_formats |= 1u << static_cast<unsigned>(p);
    for (const auto& [precision, per_cycle] :
         {std::pair{Precision::fp32, processor.fp32}, std::pair{Precision::bf16, processor.bf16},
          std::pair{Precision::int8, processor.int8}}) {
        const auto i = static_cast<std::size_t>(precision);
        device.peak_flops[i] = processor.cores * processor.ghz * 1e9 * per_cycle;
        device.matmul_flops[i] = device.peak_flops[i] * constants.cpu_efficiency;
        if (device.peak_flops[i] > 0) device.supports |= 1u << i;
    }
    return device;
}

}  // namespace stoker::validate
