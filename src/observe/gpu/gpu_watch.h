// Keeps a sampler running, and says what is known whatever becomes of it. Never calls the driver, never waits for it.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "observe/gpu/gpu_view.h"
#include "observe/gpu/sysfs_gpus.h"

namespace stoker {

struct GpuWatchOptions {
    double period_s = 1;
    double slow_s = 0.25, hung_s = 5;    // a call that lasts longer
    double restart_s = 5, most_s = 300;  // pause before a crashed sampler is started again, doubling
    double end_after_s = 30;             // a sampler that hangs is asked to end, once; it is never killed in a loop
    std::string root;                    // in front of /proc, /sys and /dev, for tests
    int expected = 0;                    // boards that the machine should have; 0: as many as were ever seen
    std::string program = "/proc/self/exe";
};

// One thread uses it, and lives as long: a sampler ends with the thread that started it.
class GpuWatch {
public:
    explicit GpuWatch(GpuWatchOptions options);
    ~GpuWatch();
    GpuWatch(const GpuWatch&) = delete;
    GpuWatch& operator=(const GpuWatch&) = delete;
    // To be called once a period; takes well under a millisecond.
    GpuView look();

private:
    struct Sampler {
        SharedBoard board;
        pid_t pid = 0;
        std::string skips;  // "": none
        std::uint64_t events_read = 0;
        std::int64_t started_us = 0, stuck_since_us = 0;
        bool asked = false;
    };
    struct Witness {
        std::set<std::string> boards, gone;
        bool up = false;
    };

    Status start(const std::string& skips);
    void end(Sampler& sampler);
    void reap(std::int64_t now_us);
    void care(std::int64_t now_us);
    void take_events(Sampler& sampler, GpuView& view);
    void take_kernel_log(GpuView& view);
    void count_xid(const std::string& pci, int code, std::int64_t now_us, bool from_kernel);
    void read_boards(const Sampler& sampler, GpuView& view, std::int64_t now_us);
    Witness look_at_pci();
    void add_sysfs(GpuView& view, std::int64_t now_us);
    void add_missing(GpuView& view, const Witness& witness);

    GpuWatchOptions options_;
    std::vector<std::unique_ptr<Sampler>> samplers_;  // at most two
    KernelLog kernel_;
    CounterKeeper counters_;
    std::map<std::string, GpuXids, std::less<>> xids_;
    // Told twice, by the driver and by the kernel: which of them told first, and how often, within two seconds.
    struct Recent {
        std::int64_t at_us = 0;
        std::uint64_t nvml = 0, kernel = 0;
    };
    std::map<std::pair<std::string, int>, Recent> recent_;
    std::uint64_t events_lost_ = 0;
    double pause_s_ = 0;
    std::int64_t restart_at_us_ = 0;
    int restarts_ = 0, most_seen_ = 0;
    NvmlDown trouble_ = NvmlDown::none;
    std::string trouble_text_;
    std::map<std::string, GpuDevice> known_;  // whole boards ever seen, by UUID
    std::unique_ptr<SysfsWatch> sysfs_;       // while there are boards of AMD or Intel
    std::int64_t sysfs_looked_us_ = 0;
    std::map<std::string, bool> pci_kinds_;  // devices on the bus, and whether they are boards of NVIDIA
    std::set<std::string> fallen_;           // PCI addresses of which the kernel said Xid 79
};

// What a look costs nobody else: one sampler started, waited for until it has read every board, and ended.
Result<GpuView> look_at_gpus_once(GpuWatchOptions options, double limit_s);

}  // namespace stoker
