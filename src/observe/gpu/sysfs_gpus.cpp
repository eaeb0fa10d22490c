#include "observe/gpu/sysfs_gpus.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/worker.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;
using M = GpuMetric;

constexpr double kFirstPauseS = 0.1, kFirstWaitS = 1;

std::string sysfs_line(const fs::path& path) {
    const auto text = read_file(path.string(), 4096);
    return text ? std::string(trim(*text)) : "";
}

std::optional<double> sysfs_number_in(std::string_view text) {
    double value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}
std::optional<double> sysfs_number(const fs::path& path, double scale = 1) {
    const auto value = sysfs_number_in(sysfs_line(path));
    return value ? std::optional(*value * scale) : std::nullopt;
}

// A line "KEY=value" of uevent, or "key: value" of a file that counts.
std::string keyed_value(std::string_view text, std::string_view key) {
    for (const std::string_view line : split_lines(text))
        if (line.starts_with(key)) return std::string(trim(line.substr(key.size())));
    return "";
}

// "16.0 GT/s PCIe"
std::optional<double> link_generation(const fs::path& path) {
    const auto rate = sysfs_number(path);
    if (!rate) return std::nullopt;
    double generation = 1;
    for (const double least : {5.0, 8.0, 16.0, 32.0, 64.0}) generation += *rate >= least ? 1 : 0;
    return generation;
}

// The highest of "0: 500Mhz", "1: 2100Mhz *".
std::optional<double> highest_clock(const fs::path& path) {
    std::optional<double> most;
    const std::string text = sysfs_line(path);
    for (const std::string_view line : split_lines(text))
        if (const std::size_t at = line.find(": "); at != std::string_view::npos)
            if (const auto mhz = sysfs_number_in(line.substr(at + 2)); mhz && (!most || *mhz * 1e6 > *most))
                most = *mhz * 1e6;
    return most;
}

struct DrmCard {
    fs::path folder;  // /sys/class/drm/card0
    std::string driver, pci, id;
};

std::vector<DrmCard> drm_cards(const std::string& root) {
    std::vector<DrmCard> cards;
    std::error_code code;
    for (fs::directory_iterator entry(root + "/sys/class/drm", code), end; !code && entry != end;
         entry.increment(code)) {
        const std::string name = entry->path().filename().string();
        if (!name.starts_with("card") || name.find('-') != std::string::npos) continue;  // card0-DP-1: a screen
        const std::string uevent = sysfs_line(entry->path() / "device" / "uevent");
        DrmCard card{.folder = entry->path(),
                     .driver = keyed_value(uevent, "DRIVER="),
                     .pci = lower(keyed_value(uevent, "PCI_SLOT_NAME=")),
                     .id = lower(keyed_value(uevent, "PCI_ID="))};
        const bool intel = card.driver == "i915" || card.driver == "xe";
        // Intel's is a part of the processor at this address.
        if (card.driver == "amdgpu" || (intel && card.pci != "0000:00:02.0")) cards.push_back(std::move(card));
    }
    std::sort(cards.begin(), cards.end(), [](const DrmCard& a, const DrmCard& b) { return a.pci < b.pci; });
    return cards;
}

fs::path hwmon_folder(const fs::path& device) {
    std::error_code code;
    for (fs::directory_iterator entry(device / "hwmon", code), end; !code && entry != end; entry.increment(code))
        if (fs::exists(entry->path() / "name", code)) return entry->path();
    return device / "hwmon" / "none";
}

// By the labels of its sensors; the first where it has none.
std::optional<double> sysfs_sensor(const fs::path& hwmon, const char* kind,
                                   std::initializer_list<std::string_view> labels, const char* value, double scale) {
    for (const std::string_view label : labels)
        for (int i = 1; i <= 8; ++i) {
            const fs::path name = hwmon / fmt::format("{}{}_label", kind, i);
            const std::string told = sysfs_line(name);
            if (told != label) continue;
            if (const auto read = sysfs_number(hwmon / fmt::format("{}{}_{}", kind, i, value), scale)) return read;
        }
    return std::nullopt;
}

class SysfsReading {
public:
    explicit SysfsReading(GpuDevice& device) : device_(device) {}
    void set(M metric, std::optional<double> value) { device_.values[index_of(metric)] = value; }
    void set_percent(M metric, const fs::path& path) { set(metric, sysfs_number(path, 0.01)); }

private:
    GpuDevice& device_;
};

void read_link(SysfsReading& told, const fs::path& device) {
    told.set(M::pcie_width, sysfs_number(device / "current_link_width"));
    told.set(M::pcie_max_width, sysfs_number(device / "max_link_width"));
    told.set(M::pcie_generation, link_generation(device / "current_link_speed"));
    told.set(M::pcie_max_generation, link_generation(device / "max_link_speed"));
}

void read_amd(const DrmCard& card, GpuDevice& device, SysfsReading& told) {
    const fs::path at = card.folder / "device", hwmon = hwmon_folder(at);
    const std::string product = sysfs_line(at / "product_name"), unique = sysfs_line(at / "unique_id");
    device.name = product.empty() ? "AMD GPU " + card.id : product;
    if (!unique.empty()) device.uuid = "amd-" + unique;
    device.vbios = sysfs_line(at / "vbios_version"), device.serial = sysfs_line(at / "serial_number");
    told.set_percent(M::utilization, at / "gpu_busy_percent");
    told.set_percent(M::memory_copy_busy, at / "mem_busy_percent");
    const auto size = sysfs_number(at / "mem_info_vram_total"), used = sysfs_number(at / "mem_info_vram_used");
    told.set(M::memory_size, size);
    told.set(M::memory_used, used);
    if (size && used) told.set(M::memory_free, *size - *used);
    told.set(M::temperature_gpu, sysfs_sensor(hwmon, "temp", {"junction", "edge"}, "input", 1e-3));
    told.set(M::temperature_memory, sysfs_sensor(hwmon, "temp", {"mem"}, "input", 1e-3));
    told.set(M::limit_slowdown, sysfs_sensor(hwmon, "temp", {"junction", "edge"}, "crit", 1e-3));
    told.set(M::limit_shutdown, sysfs_sensor(hwmon, "temp", {"junction", "edge"}, "emergency", 1e-3));
    told.set(M::limit_memory, sysfs_sensor(hwmon, "temp", {"mem"}, "crit", 1e-3));
    told.set(M::power_average, sysfs_number(hwmon / "power1_average", 1e-6));
    told.set(M::power_instant, sysfs_number(hwmon / "power1_input", 1e-6));
    told.set(M::power_limit, sysfs_number(hwmon / "power1_cap", 1e-6));
    told.set(M::power_limit_default, sysfs_number(hwmon / "power1_cap_default", 1e-6));
    told.set(M::power_limit_low, sysfs_number(hwmon / "power1_cap_min", 1e-6));
    told.set(M::power_limit_high, sysfs_number(hwmon / "power1_cap_max", 1e-6));
    told.set(M::clock_sm, sysfs_sensor(hwmon, "freq", {"sclk"}, "input", 1));
    told.set(M::clock_memory, sysfs_sensor(hwmon, "freq", {"mclk"}, "input", 1));
    told.set(M::clock_max_sm, highest_clock(at / "pp_dpm_sclk"));
    told.set(M::clock_max_memory, highest_clock(at / "pp_dpm_mclk"));
    told.set(M::pcie_replays, sysfs_number(at / "pcie_replay_count"));
    const std::string errors = sysfs_line(at / "ras" / "umc_err_count");
    told.set(M::ecc_uncorrected, sysfs_number_in(keyed_value(errors, "ue:")));
    told.set(M::ecc_corrected, sysfs_number_in(keyed_value(errors, "ce:")));
}

// Energy and time asleep, of which rates are made.
struct IntelCounters {
    std::optional<double> energy_j, idle_s;
};
IntelCounters read_intel(const DrmCard& card, GpuDevice& device, SysfsReading& told) {
    const fs::path at = card.folder / "device", hwmon = hwmon_folder(at);
    device.name = "Intel GPU " + card.id;
    const bool xe = card.driver == "xe";
    const fs::path gt = xe ? at / "tile0" / "gt0" : card.folder / "gt" / "gt0";
    told.set(M::clock_sm, sysfs_number(gt / (xe ? "freq0/act_freq" : "rps_act_freq_mhz"), 1e6));
    told.set(M::clock_max_sm, sysfs_number(gt / (xe ? "freq0/rp0_freq" : "rps_RP0_freq_mhz"), 1e6));
    // xe labels its sensors, i915 has one.
    const auto labelled = sysfs_sensor(hwmon, "temp", {"pkg"}, "input", 1e-3);
    told.set(M::temperature_gpu, labelled ? labelled : sysfs_number(hwmon / "temp1_input", 1e-3));
    told.set(M::temperature_memory, sysfs_sensor(hwmon, "temp", {"vram"}, "input", 1e-3));
    told.set(M::power_limit, sysfs_number(hwmon / "power1_max", 1e-6));
    told.set(M::power_limit_default, sysfs_number(hwmon / "power1_rated_max", 1e-6));
    const auto card_energy = sysfs_number(hwmon / "energy1_input", 1e-6);
    return {.energy_j = card_energy ? card_energy : sysfs_number(hwmon / "energy2_input", 1e-6),
            .idle_s = sysfs_number(gt / (xe ? "gtidle/idle_residency_ms" : "rc6_residency_ms"), 1e-3)};
}

}  // namespace

bool has_sysfs_gpus(const std::string& root) {
    return !drm_cards(root).empty();
}

std::vector<GpuDevice> SysfsGpus::read(double now_s) {
    std::vector<GpuDevice> devices;
    for (const DrmCard& card : drm_cards(root_)) {
        const double began_s = monotonic_seconds();
        GpuDevice device;
        device.driver = card.driver, device.pci = plain_pci(card.pci), device.uuid = "pci-" + device.pci;
        device.state = GpuState::ok;
        device.age_s = 0;
        SysfsReading told(device);
        read_link(told, card.folder / "device");
        if (card.driver == "amdgpu") {
            read_amd(card, device, told);
        } else {
            const IntelCounters counted = read_intel(card, device, told);
            told.set(M::energy, counted.energy_j);
            const auto before = last_.find(card.pci);
            if (const double passed_s = before == last_.end() ? 0 : now_s - before->second.at_s; passed_s > 0) {
                const Last& last = before->second;
                if (counted.energy_j && last.energy_j && *counted.energy_j >= *last.energy_j)
                    told.set(M::power_average, (*counted.energy_j - *last.energy_j) / passed_s);
                if (counted.idle_s && last.idle_s && *counted.idle_s >= *last.idle_s)
                    told.set(M::utilization, std::clamp(1 - (*counted.idle_s - *last.idle_s) / passed_s, 0.0, 1.0));
            }
            last_[card.pci] = {.at_s = now_s, .energy_j = counted.energy_j, .idle_s = counted.idle_s};
        }
        device.collect_s = monotonic_seconds() - began_s;
        devices.push_back(std::move(device));
    }
    return devices;
}

struct SysfsWatch::Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<GpuDevice> devices;
    double read_s = 0;  // 0: never
    bool ending = false;
};

SysfsWatch::SysfsWatch(const std::string& root, double period_s) : shared_(std::make_shared<Shared>()) {
    masked_thread("sysfs-gpus", [shared = shared_, root, period_s] {
        SysfsGpus gpus(root);
        (void)gpus.read(monotonic_seconds());
        for (double pause_s = kFirstPauseS;; pause_s = period_s) {
            {
                std::unique_lock lock(shared->mutex);
                if (shared->changed.wait_for(lock, std::chrono::duration<double>(pause_s),
                                             [&] { return shared->ending; }))
                    return;
            }
            const double now_s = monotonic_seconds();
            auto devices = gpus.read(now_s);
            const std::lock_guard lock(shared->mutex);
            shared->devices = std::move(devices), shared->read_s = now_s;
            shared->changed.notify_all();
        }
    }).detach();
}

SysfsWatch::~SysfsWatch() {
    const std::lock_guard lock(shared_->mutex);
    shared_->ending = true;
    shared_->changed.notify_all();
}

std::vector<GpuDevice> SysfsWatch::latest(bool first) const {
    std::unique_lock lock(shared_->mutex);
    if (first)
        shared_->changed.wait_for(lock, std::chrono::duration<double>(kFirstWaitS),
                                  [&] { return shared_->read_s != 0; });
    std::vector<GpuDevice> devices = shared_->devices;
    for (GpuDevice& device : devices) device.age_s = std::max(0.0, monotonic_seconds() - shared_->read_s);
    return devices;
}

}  // namespace stoker
