#include "observe/gpu/sampler.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include "base/text.h"
#include "io/small_process.h"
#include "io/worker.h"
#include "observe/gpu/call_pace.h"
#include "observe/gpu/read_gpu.h"

namespace stoker {

namespace {

using Clock = std::chrono::steady_clock;

// Threads and what they use are never taken apart: the process ends with _exit, whoever hangs.
struct Sampling {
    SampleBoard& board;
    const SamplerOptions& options;
    NvmlLibrary library;
};

// Announces the call to whoever watches from outside.
template <class... P, class... A>
int stamped(GpuCallStamp& stamp, const char* name, int (*function)(P...), A... arguments) {
    if (!function) return nvml::kFunctionNotFound;
    std::strncpy(stamp.call, name, sizeof stamp.call - 1);
    stamp.started_us.store(monotonic_clock_us(), std::memory_order_release);
    const int code = function(arguments...);
    stamp.started_us.store(0, std::memory_order_release);
    stamp.calls.fetch_add(1, std::memory_order_relaxed);
    return code;
}

void sleep_until_tick(Clock::time_point& next, double period_s) {
    const auto period = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(period_s));
    next += period;
    // A tick that was overrun is passed over, not made up for.
    while (next < Clock::now()) next += period;
    std::this_thread::sleep_until(next);
}

// One board and its instances, for as long as the process lives.
void sample_device(Sampling& sampling, nvml::Device device, std::size_t slot, int index,
                   std::vector<std::size_t> instance_slots) {
    SampleBoard& board = sampling.board;
    // A board and its instances share what is allowed of calls.
    const double budget_us =
        kGpuCallsUsPerS * sampling.options.period_s / static_cast<double>(1 + instance_slots.size());
    GpuReader reader(sampling.library.calls, board.stamps[2 + slot], device, budget_us);
    int code = reader.read_identity(index);
    board.publish(slot, reader.data());
    std::vector<std::unique_ptr<GpuReader>> instances;
    if (code == nvml::kOk) {
        const auto devices = reader.instances();
        for (std::size_t i = 0; i < std::min(devices.size(), instance_slots.size()); ++i) {
            auto& part = instances.emplace_back(
                std::make_unique<GpuReader>(sampling.library.calls, board.stamps[2 + slot], devices[i], budget_us));
            part->leave_out_board();
            part->read_identity(index);
            GpuSlotData& data = part->data();
            set_text(data.parent_uuid, reader.data().uuid);
            set_text(data.pci, reader.data().pci);
            unsigned id = 0;
            if (sampling.library.calls.gpu_instance &&
                sampling.library.calls.gpu_instance(devices[i], &id) == nvml::kOk)
                data.gpu_instance = static_cast<std::int32_t>(id);
            if (sampling.library.calls.compute_instance &&
                sampling.library.calls.compute_instance(devices[i], &id) == nvml::kOk)
                data.compute_instance = static_cast<std::int32_t>(id);
            // "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
            const std::string_view name = data.name;
            if (const std::size_t at = name.find("MIG "); at != std::string_view::npos)
                set_text(data.mig_profile, std::string(name.substr(at + 4)));
        }
        reader.read_start();
    }
    auto next = Clock::now();
    while (true) {
        if (reader.data().uuid[0] == 0) {  // it answered nothing when it was met
            code = reader.read_identity(index);
            if (code == nvml::kOk) reader.read_start();
        }
        reader.read();
        board.publish(slot, reader.data());
        for (std::size_t i = 0; i < instances.size(); ++i) {
            instances[i]->read();
            board.publish(instance_slots[i], instances[i]->data());
        }
        sleep_until_tick(next, sampling.options.period_s);
    }
}

void wait_for_events(Sampling& sampling, std::vector<nvml::Device> devices) {
    const NvmlCalls& calls = sampling.library.calls;
    GpuCallStamp& stamp = sampling.board.stamps[1];
    nvml::EventSet set = nullptr;
    if (stamped(stamp, "nvmlEventSetCreate", calls.event_set, &set) != nvml::kOk || !calls.wait_event) return;
    for (nvml::Device device : devices) {
        unsigned long long types = 0;
        if (stamped(stamp, "nvmlDeviceGetSupportedEventTypes", calls.event_types, device, &types) != nvml::kOk)
            continue;
        stamped(stamp, "nvmlDeviceRegisterEvents", calls.register_events, device, types & nvml::kEventXid, set);
    }
    while (true) {
        nvml::EventData event{};
        const int code = stamped(stamp, "nvmlEventSetWait_v2", calls.wait_event, set, &event, 500u);
        if (code == nvml::kTimeout) continue;
        if (code != nvml::kOk) {
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            continue;
        }
        if (event.type != nvml::kEventXid) continue;
        SampleBoard& board = sampling.board;
        const std::uint64_t at = board.events.load(std::memory_order_relaxed);
        GpuEvent& to = board.event[at % kGpuEvents];
        to.at_us = monotonic_clock_us();
        to.wall_us = wall_clock_us();
        to.code = event.data;
        to.gpu_instance = event.gpu_instance == ~0u ? -1 : static_cast<std::int32_t>(event.gpu_instance);
        to.compute_instance = event.compute_instance == ~0u ? -1 : static_cast<std::int32_t>(event.compute_instance);
        to.pci[0] = 0;
        for (std::size_t i = 0; i < devices.size(); ++i)
            if (devices[i] == event.device) set_text(to.pci, std::string_view(board.stamps[2 + i].pci));
        board.events.store(at + 1, std::memory_order_release);
    }
}

// What tells whether the boards are the same as at the start, in the same order and divided in the same way.
std::vector<std::string> look_at_boards(const NvmlCalls& calls, GpuCallStamp& stamp,
                                        const std::vector<std::string>& skip, std::vector<nvml::Device>* handles) {
    std::vector<std::string> found;
    unsigned count = 0;
    if (stamped(stamp, "nvmlDeviceGetCount_v2", calls.count, &count) != nvml::kOk) return {"?"};
    for (unsigned i = 0; i < std::min<unsigned>(count, kMostGpuSlots); ++i) {
        nvml::Device device = nullptr;
        // Before the handle of a board that hangs is asked for, there is nothing but its number to know it by.
        if (std::find(skip.begin(), skip.end(), "#" + std::to_string(i)) != skip.end()) {
            found.emplace_back("skipped");
            if (handles) handles->push_back(nullptr);
            continue;
        }
        const int code = stamped(stamp, "nvmlDeviceGetHandleByIndex_v2", calls.by_index, i, &device);
        std::string what = code == nvml::kOk ? "ok" : "return " + std::to_string(code);
        char uuid[96] = {};
        if (code == nvml::kOk && stamped(stamp, "nvmlDeviceGetUUID", calls.uuid, device, uuid,
                                         static_cast<unsigned>(sizeof uuid)) == nvml::kOk) {
            what += uuid;
            unsigned on = 0, next = 0;
            if (stamped(stamp, "nvmlDeviceGetMigMode", calls.mig_mode, device, &on, &next) == nvml::kOk) {
                what += on != 0 ? " mig" : "";
                nvml::Device part = nullptr;
                for (unsigned k = 0; on != 0 && k < 8; ++k)
                    if (stamped(stamp, "nvmlDeviceGetMigDeviceHandleByIndex", calls.mig_device, device, k, &part) ==
                        nvml::kOk)
                        what += "+";
            }
        }
        found.push_back(what);
        if (handles) handles->push_back(code == nvml::kOk ? device : nullptr);
    }
    return found;
}

// A board that is lost for now is the same board: it may come back under its handle.
bool same_boards(const std::vector<std::string>& before, const std::vector<std::string>& now) {
    if (before.size() != now.size()) return now.size() == 1 && now[0] == "?";
    for (std::size_t i = 0; i < now.size(); ++i)
        if (before[i] != now[i] && now[i] != "ok" && !now[i].starts_with("return")) return false;
    return true;
}

bool asked_to_end(const SampleBoard& board, pid_t parent) {
    return board.quit.load(std::memory_order_relaxed) != 0 || ::getppid() != parent;
}

}  // namespace

int run_gpu_sampler(SharedBoard shared, const SamplerOptions& options) {
    const pid_t parent = ::getppid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    SampleBoard& board = *shared;
    const auto period = std::chrono::duration<double>(options.period_s);
    // Until there is a library and a driver: they may come later.
    NvmlLibrary library;
    while (true) {
        if (asked_to_end(board, parent)) return 0;
        board.heartbeat_us = monotonic_clock_us();
        if (!library.calls.init) {
            auto opened = open_nvml();
            if (!opened) {
                set_text(board.reason, opened.error().message());
                board.state = SamplerState::no_library;
                std::this_thread::sleep_for(period);
                continue;
            }
            library = std::move(*opened);
            set_text(board.library, library.path);
        }
        const int code = stamped(board.stamps[0], "nvmlInit_v2", library.calls.init);
        board.nvml_return = code;
        if (code == nvml::kOk) break;
        set_text(board.reason, nvml_return_text(code));
        board.state = SamplerState::init_failed;
        std::this_thread::sleep_for(period);
    }
    stamped(board.stamps[0], "nvmlSystemGetDriverVersion", library.calls.driver_version, board.driver,
            static_cast<unsigned>(sizeof board.driver));
    stamped(board.stamps[0], "nvmlSystemGetNVMLVersion", library.calls.nvml_version, board.nvml,
            static_cast<unsigned>(sizeof board.nvml));
    int cuda = 0;
    if (stamped(board.stamps[0], "nvmlSystemGetCudaDriverVersion_v2", library.calls.cuda_version, &cuda) == nvml::kOk)
        board.cuda = cuda;
    Sampling sampling{.board = board, .options = options, .library = std::move(library)};
    std::vector<nvml::Device> handles;
    const auto before = look_at_boards(sampling.library.calls, board.stamps[0], options.skip, &handles);
    std::size_t next_slot = handles.size();
    for (std::size_t i = 0; i < handles.size(); ++i) {
        if (!handles[i]) {  // it shows at its handle that a board is bad, and nothing else is known of it
            GpuSlotData data;
            data.index = static_cast<std::int32_t>(i);
            data.last_return = before[i].starts_with("return") ? std::atoi(before[i].c_str() + 7) : 0;
            board.publish(i, data);
            continue;
        }
        std::vector<std::size_t> parts;
        for (const char letter : before[i])
            if (letter == '+' && next_slot < kMostGpuSlots) parts.push_back(next_slot++);
        masked_thread("gpu" + std::to_string(i), [&sampling, device = handles[i], i, parts] {
            sample_device(sampling, device, i, static_cast<int>(i), parts);
        }).detach();
    }
    board.slots = static_cast<std::int32_t>(next_slot);
    board.state = SamplerState::up;
    masked_thread("gpu-events", [&sampling, handles] {
        std::vector<nvml::Device> there;
        for (nvml::Device device : handles)
            if (device) there.push_back(device);
        wait_for_events(sampling, there);
    }).detach();
    // Whether they are the same costs calls, too: where these are dear they are made less often.
    CallPace looks(0.1 * kGpuCallsUsPerS * options.period_s *
                   static_cast<double>(std::max<std::size_t>(1, handles.size())));
    looks.add({1, 10});
    std::uint64_t tick = 0;
    for (bool first = true; !asked_to_end(board, parent); first = false, ++tick) {
        board.heartbeat_us = monotonic_clock_us();
        std::this_thread::sleep_for(period);
        if (first) give_back_startup_pages();
        if (!looks.due(0, tick)) continue;
        const std::int64_t began_us = monotonic_clock_us();
        const auto now = look_at_boards(sampling.library.calls, board.stamps[0], options.skip, nullptr);
        looks.took(0, tick, static_cast<double>(monotonic_clock_us() - began_us), false);
        looks.plan();
        if (!same_boards(before, now)) {
            board.state = SamplerState::changed;
            ::_exit(kSamplerChanged);
        }
    }
    ::_exit(0);
}

}  // namespace stoker
