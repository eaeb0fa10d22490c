// Memory that the sampler fills and the agent reads: what was read last stays readable when the sampler hangs in the
// driver, and the agent never waits for it. One writer for each slot; a reader copies it and sees from the sequence
// number whether it was being written meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/process.h"
#include "observe/gpu/gpu_metrics.h"

namespace stoker {

enum class GpuValueStatus : std::int32_t { absent, ok, unsupported, refused, lost, nonsense, failed };
struct GpuValue {
    double value = 0;
    GpuValueStatus status = GpuValueStatus::absent;
    std::int16_t code = 0;    // what NVML returned
    std::uint16_t every = 0;  // readings until it is asked again; 0: read once
    std::int64_t at_us = 0;   // monotonic
};
struct GpuProcess {
    std::uint32_t pid = 0;
    std::int32_t gpu_instance = -1;
    std::int32_t sm_percent = -1;  // not told
    std::int32_t unused = 0;
    std::int64_t used_bytes = -1;  // not told
};

inline constexpr std::size_t kMostGpuSlots = 64, kMostGpuProcesses = 128, kMostGpuThreads = 66, kGpuEvents = 4096;

// A GPU, or an instance of one (MIG).
struct GpuSlotData {
    char uuid[96] = {}, parent_uuid[96] = {}, pci[32] = {}, name[96] = {}, vbios[32] = {}, serial[32] = {};
    char mig_profile[32] = {};  // "1g.10gb"
    std::int32_t index = 0, minor = -1, gpu_instance = -1, compute_instance = -1;
    std::int32_t last_return = 0;  // of the calls that every board answers
    std::int64_t read_at_us = 0;   // of its last whole reading; 0: none yet
    std::int64_t collect_us = 0;   // what that took
    std::uint32_t processes = 0, processes_left_out = 0;
    std::int32_t processes_return = 0;
    GpuProcess process[kMostGpuProcesses];
    GpuValue values[kGpuMetrics];
};
struct GpuEvent {
    std::int64_t at_us = 0, wall_us = 0;
    char pci[32] = {};
    std::uint64_t code = 0;
    std::int32_t gpu_instance = -1, compute_instance = -1;
};
// What a thread of the sampler is doing: written before each call, cleared after it.
struct GpuCallStamp {
    std::atomic<std::int64_t> started_us{0};  // 0: in no call
    std::atomic<std::int64_t> calls{0};
    char call[48] = {}, pci[32] = {};
};

enum class SamplerState : std::int32_t { starting, no_library, init_failed, up, changed };

struct SampleBoard {
    char magic[8] = {'S', 'T', 'K', 'G', 'P', 'U', '0', '2'};
    std::atomic<SamplerState> state{SamplerState::starting};
    std::atomic<std::int32_t> nvml_return{0}, quit{0}, slots{0};
    std::atomic<std::int64_t> heartbeat_us{0};
    std::int32_t cuda = 0;
    char reason[256] = {}, driver[96] = {}, nvml[96] = {}, library[128] = {};
    GpuCallStamp stamps[kMostGpuThreads];  // 0: the thread that enumerates; 1: events; 2 + slot
    struct Slot {
        std::atomic<std::uint32_t> sequence{0};
        GpuSlotData data;
    } slot[kMostGpuSlots];
    std::atomic<std::uint64_t> events{0};  // written so far
    GpuEvent event[kGpuEvents];

    void publish(std::size_t at, const GpuSlotData& data);
    // False: it was being written each time it was looked at.
    bool read(std::size_t at, GpuSlotData& out) const;
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

// Mapped, shared with whoever has the descriptor.
class SharedBoard {
public:
    static Result<SharedBoard> make();
    static Result<SharedBoard> open(int fd);
    SharedBoard(SharedBoard&& other) noexcept;
    SharedBoard& operator=(SharedBoard&& other) noexcept;
    ~SharedBoard();
    SampleBoard* operator->() const { return board_; }
    SampleBoard& operator*() const { return *board_; }
    int fd() const { return fd_.get(); }

private:
    SharedBoard(UniqueFd fd, SampleBoard* board) : fd_(std::move(fd)), board_(board) {}
    UniqueFd fd_;
    SampleBoard* board_ = nullptr;
};

// "00000000:1B:00.0", "0000:1b:00" and "PCI:0000:1b:00" are one address: "0000:1b:00.0".
std::string plain_pci(std::string_view text);
void set_text(char* to, std::size_t size, std::string_view text);
template <std::size_t N>
void set_text(char (&to)[N], std::string_view text) {
    set_text(to, N, text);
}

}  // namespace stoker
