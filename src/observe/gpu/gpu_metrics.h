// Every figure that is read of a GPU: its key, and how it is told in metrics. The table drives the sampler's slots,
// what /metrics says, `stoker gpu --help` and the check of dashboards. Values are in base units: bytes, seconds, hertz,
// watts, shares of 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stoker {

enum class GpuMetric : std::uint16_t {
    utilization,
    memory_copy_busy,
    encoder,
    decoder,
    sm_active,
    sm_occupancy,
    tensor_active,
    dram_active,
    graphics_active,
    fp64_active,
    fp32_active,
    fp16_active,
    int_active,
    memory_size,
    memory_used,
    memory_free,
    memory_reserved,
    bar1_size,
    bar1_used,
    temperature_gpu,
    temperature_memory,
    limit_slowdown,
    limit_shutdown,
    limit_memory,
    limit_gpu,
    temperature_margin,
    power_average,
    power_instant,
    power_limit,
    power_limit_default,
    power_limit_low,
    power_limit_high,
    energy,
    clock_sm,
    clock_graphics,
    clock_memory,
    clock_video,
    clock_max_sm,
    clock_max_graphics,
    clock_max_memory,
    clock_max_video,
    reason_idle,
    reason_app_clocks,
    reason_sw_power_cap,
    reason_hw_slowdown,
    reason_sync_boost,
    reason_sw_thermal,
    reason_hw_thermal,
    reason_power_brake,
    reason_display,
    reasons,
    time_sw_power_cap,
    time_thermal,
    time_sync_boost,
    time_sw_thermal,
    time_hw_thermal,
    time_power_brake,
    pcie_sent,
    pcie_received,
    pcie_sent_rate,
    pcie_received_rate,
    pcie_replays,
    pcie_correctable,
    pcie_width,
    pcie_generation,
    pcie_max_width,
    pcie_max_generation,
    nvlink_sent,
    nvlink_received,
    nvlink_rate,
    nvlink_sent_rate,
    nvlink_received_rate,
    nvlink_replays,
    nvlink_recoveries,
    nvlink_crc,
    nvlink_active,
    nvlink_expected,
    ecc_mode,
    ecc_corrected,
    ecc_uncorrected,
    ecc_corrected_life,
    ecc_uncorrected_life,
    remapped_corrected,
    remapped_uncorrected,
    remap_pending,
    remap_failed,
    banks_max,
    banks_high,
    banks_partial,
    banks_low,
    banks_none,
    retired_corrected,
    retired_uncorrected,
    retired_pending,
    recovery_action,
    fabric_healthy,
    performance_state,
    mig,
    persistence,
    vgpu_licence,
    count_
};
inline constexpr std::size_t kGpuMetrics = static_cast<std::size_t>(GpuMetric::count_);
inline constexpr std::size_t index_of(GpuMetric metric) {
    return static_cast<std::size_t>(metric);
}

enum class GpuTier : std::uint8_t { fast, slow, start };  // read each second, each minute, once
struct GpuMetricRow {
    GpuMetric metric;
    std::string_view key;     // "power_instant"
    std::string_view family;  // "stoker_gpu_power_watts"; empty: not told natively
    std::string_view labels;  // R"(window="instant")"
    std::string_view help;    // of the family, on its first row
    bool counter = false;
    GpuTier tier = GpuTier::fast;
};
// In the order of the enum; rows of one family stand together.
std::span<const GpuMetricRow> gpu_metric_rows();
std::optional<GpuMetric> find_gpu_metric(std::string_view key);

}  // namespace stoker
