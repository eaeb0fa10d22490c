#include "observe/gpu/gpu_watch.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "observe/gpu/nvml_library.h"
#include "observe/gpu/sampler.h"

extern char** environ;

namespace stoker {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kSecond = 1'000'000;
std::int64_t us(double seconds) {
    return static_cast<std::int64_t>(seconds * 1e6);
}

NvmlDown down_of(int code) {
    switch (code) {
        case nvml::kDriverNotLoaded: return NvmlDown::driver_not_loaded;
        case nvml::kNoPermission: return NvmlDown::no_permission;
        case nvml::kVersionMismatch: return NvmlDown::version_mismatch;
        default: return NvmlDown::init_failed;
    }
}

}  // namespace

GpuWatch::GpuWatch(GpuWatchOptions options)
    : options_(std::move(options)), kernel_(options_.root + "/dev/kmsg"), pause_s_(options_.restart_s) {}

GpuWatch::~GpuWatch() {
    for (const auto& sampler : samplers_) {
        sampler->board->quit = 1;
        if (process_state(sampler->pid) != 'D') ::kill(sampler->pid, SIGTERM);
    }
    for (const auto& sampler : samplers_) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
        if (stoker::reap(sampler->pid, limit)) continue;
        if (process_state(sampler->pid) != 'D') {
            ::kill(sampler->pid, SIGKILL);
            stoker::reap(sampler->pid, std::chrono::steady_clock::now() + std::chrono::milliseconds(200));
        }
    }
}

Status GpuWatch::start(const std::string& skips) {
    TRY(SharedBoard board, SharedBoard::make());
    // Everything that is allocated is allocated before the fork: other threads may hold the heap's locks.
    const std::string period = fmt::format("{}", options_.period_s);
    std::vector<std::string> words = {"stoker", "gpu-sampler", "--period", period};
    if (!skips.empty()) words.insert(words.end(), {"--skip", skips});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int fd = board.fd();
    const pid_t pid = ::fork();
    if (pid < 0)
        return Error(ErrorKind::exhausted, fmt::format("the sampler cannot be started: {}", std::strerror(errno)));
    if (pid == 0) {
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        const int null = ::open("/dev/null", O_RDWR);
        ::dup2(null, 0);
        ::dup2(null, 1);
        // Already there, it keeps its mark to be closed.
        if (::dup2(fd, 3) == 3 && ::fcntl(3, F_SETFD, 0) == 0) {
            ::close_range(4, ~0U, 0);
            ::execve(options_.program.c_str(), arguments.data(), environ);
        }
        ::_exit(127);
    }
    samplers_.push_back(std::make_unique<Sampler>(
        Sampler{.board = std::move(board), .pid = pid, .skips = skips, .started_us = monotonic_clock_us()}));
    return done();
}

void GpuWatch::end(Sampler& sampler) {
    sampler.board->quit = 1;
    if (!sampler.asked && process_state(sampler.pid) != 'D') ::kill(sampler.pid, SIGTERM);
    sampler.asked = true;
}

void GpuWatch::reap(std::int64_t now_us) {
    for (std::size_t i = samplers_.size(); i-- > 0;) {
        int status = 0;
        const pid_t ended = ::waitpid(samplers_[i]->pid, &status, WNOHANG);
        if (ended == 0) continue;
        const bool changed = WIFEXITED(status) && WEXITSTATUS(status) == kSamplerChanged;
        const bool first = i == 0;
        const bool lived = now_us - samplers_[i]->started_us > us(60 * options_.period_s);
        samplers_.erase(samplers_.begin() + static_cast<std::ptrdiff_t>(i));
        if (!first) continue;
        ++restarts_;
        if (changed) {  // the boards are others now: at once
            restart_at_us_ = now_us;
            continue;
        }
        if (lived) pause_s_ = options_.restart_s;
        trouble_ = NvmlDown::sampler_crashed;
        trouble_text_ = WIFSIGNALED(status) ? fmt::format("the sampler was ended by {}", signal_name(WTERMSIG(status)))
                                            : fmt::format("the sampler ended with exit code {}", WEXITSTATUS(status));
        restart_at_us_ = now_us + us(pause_s_);
        pause_s_ = std::min(options_.most_s, pause_s_ * 2);
    }
}

// Who hangs, and whether the others can be read by a second sampler that leaves it alone.
void GpuWatch::care(std::int64_t now_us) {
    if (samplers_.empty()) {
        if (now_us < restart_at_us_) return;
        if (const Status started = start(""); !started) {
            trouble_ = NvmlDown::fork_failed;
            trouble_text_ = started.error().message();
            restart_at_us_ = now_us + us(pause_s_);
            pause_s_ = std::min(options_.most_s, pause_s_ * 2);
        }
        return;
    }
    for (const auto& sampler : samplers_) {
        const SampleBoard& board = *sampler->board;
        std::int64_t oldest = now_us;
        int in_calls = 0, at = -1;
        const int slots = std::min<int>(board.slots, kMostGpuSlots);
        for (int i = 0; i < slots; ++i) {
            const std::int64_t began = board.stamps[2 + i].started_us;
            if (began == 0) continue;
            ++in_calls;
            if (began < oldest) oldest = began, at = i;
        }
        const std::int64_t main_began = board.stamps[0].started_us;
        const bool main_stuck = main_began != 0 && now_us - main_began > us(options_.hung_s);
        const bool device_stuck = at >= 0 && now_us - oldest > us(options_.hung_s);
        if (!main_stuck && !device_stuck) {
            sampler->stuck_since_us = 0;
            continue;
        }
        if (sampler->stuck_since_us == 0) sampler->stuck_since_us = now_us;
        // One board alone: its thread waits, the others go on, and nothing else has to be done. Where the library's
        // lock is held by it, everything stands still; another process may get by without that board.
        const bool all = main_stuck && (slots == 0 || in_calls == slots);
        if (all && samplers_.size() == 1 && at >= 0 && slots > 1) {
            (void)start(fmt::format("#{}", at));
            break;
        }
        if (now_us - sampler->stuck_since_us > us(options_.end_after_s) && all) end(*sampler);
    }
    // The first one goes on again: the second is no longer needed.
    if (samplers_.size() == 2 && samplers_[0]->stuck_since_us == 0) end(*samplers_[1]);
}

void GpuWatch::count_xid(const std::string& pci, int code, std::int64_t now_us, bool from_kernel) {
    Recent& recent = recent_[{pci, code}];
    if (now_us - recent.at_us > 2 * kSecond) recent = {};
    recent.at_us = now_us;
    std::uint64_t& mine = from_kernel ? recent.kernel : recent.nvml;
    ++mine;
    // What the other one has told already is the same event.
    if (mine <= (from_kernel ? recent.nvml : recent.kernel)) return;
    GpuXids& of = xids_[pci];
    XidCount& count = of.codes.size() < 256 || of.codes.contains(code) ? of.codes[code] : of.codes[999];
    ++count.count;
    count.last_wall_us = wall_clock_us();
    of.last = code;
    ++of.classes[static_cast<std::size_t>(xid_action(code).kind)];
    if (code == 79) fallen_.insert(pci);
}

void GpuWatch::take_events(Sampler& sampler, GpuView&) {
    const SampleBoard& board = *sampler.board;
    const std::uint64_t written = board.events.load(std::memory_order_acquire);
    if (written - sampler.events_read > kGpuEvents - 64) {  // a storm: the ring was filled again before it was read
        const std::uint64_t kept = written - (kGpuEvents - 64);
        events_lost_ += kept - sampler.events_read;
        sampler.events_read = kept;
    }
    for (; sampler.events_read < written; ++sampler.events_read) {
        const GpuEvent& event = board.event[sampler.events_read % kGpuEvents];
        count_xid(std::string(event.pci, ::strnlen(event.pci, sizeof event.pci)), static_cast<int>(event.code),
                  event.at_us, false);
    }
    if (recent_.size() > 4096) recent_.clear();
}

void GpuWatch::take_kernel_log(GpuView& view) {
    const std::int64_t now_us = monotonic_clock_us();
    for (const KernelXid& xid : kernel_.poll()) count_xid(xid.pci, xid.code, now_us, true);
    view.kernel_log_up = kernel_.up();
    view.kernel_lost = kernel_.lost();
}

GpuWatch::Witness GpuWatch::look_at_pci() {
    Witness witness;
    std::error_code code;
    // Not one byte more than is asked for: each word of a configuration space is a transaction on the bus, in a virtual
    // machine a trap to whoever emulates it. A buffered stream would take all 4,096 bytes of it, every second.
    const auto text_of = [](const fs::path& path, std::size_t bytes) {
        const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        std::string text(bytes, '\0');
        const ssize_t got = file ? ::read(file.get(), text.data(), bytes) : 0;
        text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
        return text;
    };
    const fs::directory_iterator devices(options_.root + "/sys/bus/pci/devices", code);
    if (code) return witness;
    witness.up = true;
    std::map<std::string, bool> kinds;
    for (const auto& entry : devices) {
        const std::string name = entry.path().filename().string();
        // What a device is, it is for as long as it is there.
        const auto known = pci_kinds_.find(name);
        const bool board = known != pci_kinds_.end() ? known->second : [&] {
            if (!text_of(entry.path() / "vendor", 8).starts_with("0x10de")) return false;
            const std::string kind = text_of(entry.path() / "class", 16);
            return kind.starts_with("0x0300") || kind.starts_with("0x0302");
        }();
        kinds.emplace(name, board);
        if (!board) continue;
        const std::string pci = plain_pci(name);
        witness.boards.insert(pci);
        // The vendor above comes from what the kernel remembers; the board itself answers here, or all bits do.
        const std::string config = text_of(entry.path() / "config", 4);
        if (config.size() >= 2 && config[0] == '\xff' && config[1] == '\xff') witness.gone.insert(pci);
    }
    pci_kinds_ = std::move(kinds);
    return witness;
}

void GpuWatch::read_boards(const Sampler& sampler, GpuView& view, std::int64_t now_us) {
    const SampleBoard& board = *sampler.board;
    const double wall_s = static_cast<double>(view.wall_us) * 1e-6;
    const auto slot = std::make_unique<GpuSlotData>();
    const auto text = [](const char* from, std::size_t size) { return std::string(from, ::strnlen(from, size)); };
    for (int i = 0; i < std::min<int>(board.slots, kMostGpuSlots); ++i) {
        if (!board.read(static_cast<std::size_t>(i), *slot)) continue;
        if (slot->uuid[0] == 0 && slot->last_return == 0) {
            // Not met yet, or it hangs before it said who it is; one that was skipped is told by the other sampler.
            const std::int64_t since = board.stamps[2 + i].started_us;
            if (since != 0 && now_us - since > us(options_.hung_s))
                slot->index = i;
            else {
                view.unread += sampler.skips.empty() ? 1 : 0;
                continue;
            }
        }
        GpuDevice device;
        device.uuid = text(slot->uuid, sizeof slot->uuid);
        // One that the first sampler hangs on is told by the first, all else by whichever read it last.
        const auto before = std::find_if(view.devices.begin(), view.devices.end(),
                                         [&](const GpuDevice& d) { return !d.uuid.empty() && d.uuid == device.uuid; });
        device.parent_uuid = text(slot->parent_uuid, sizeof slot->parent_uuid);
        device.pci = text(slot->pci, sizeof slot->pci);
        device.name = text(slot->name, sizeof slot->name);
        device.vbios = text(slot->vbios, sizeof slot->vbios);
        device.serial = text(slot->serial, sizeof slot->serial);
        device.mig_profile = text(slot->mig_profile, sizeof slot->mig_profile);
        device.index = slot->index, device.minor = slot->minor;
        device.gpu_instance = slot->gpu_instance, device.compute_instance = slot->compute_instance;
        device.collect_s = static_cast<double>(slot->collect_us) * 1e-6;
        const GpuCallStamp& stamp = board.stamps[2 + (device.whole() ? i : slot->index)];
        const std::int64_t began = stamp.started_us;
        const double in_call_s = began == 0 ? 0 : static_cast<double>(now_us - began) * 1e-6;
        if (slot->read_at_us != 0) device.age_s = std::max(0.0, static_cast<double>(now_us - slot->read_at_us) * 1e-6);
        // Slow calls make a reading longer than a period: as long as they come back, what they bring is fresh.
        const double fresh_s = 2 * options_.period_s + 2 * device.collect_s + options_.slow_s;
        device.state = slot->last_return == nvml::kGpuLost       ? GpuState::lost
                       : slot->last_return != 0                  ? GpuState::lost
                       : in_call_s > options_.hung_s             ? GpuState::hung
                       : in_call_s > options_.slow_s             ? GpuState::slow
                       : device.age_s && *device.age_s > fresh_s ? GpuState::stale
                                                                 : GpuState::ok;
        if (in_call_s > options_.slow_s) device.stuck_call = text(stamp.call, sizeof stamp.call);
        const auto rows = gpu_metric_rows();
        for (std::size_t m = 0; m < kGpuMetrics && device.state != GpuState::lost; ++m) {
            const GpuValue& value = slot->values[m];
            if (value.status != GpuValueStatus::ok) continue;
            const double age_s = static_cast<double>(now_us - value.at_us) * 1e-6;
            // Each comes with when it will be asked again: in the next reading, or later where its call is dear.
            const double often_s = options_.period_s * (value.every + (value.every <= 1 ? 1 : 2));
            const bool current =
                rows[m].tier == GpuTier::start || age_s <= often_s + 2 * device.collect_s + options_.slow_s;
            if (!current || device.state == GpuState::stale || device.state == GpuState::hung) {
                if (rows[m].tier != GpuTier::start) continue;
            }
            if (rows[m].counter) {
                const CounterKeeper::Told told = counters_.keep(device.uuid, rows[m].metric, value.value, wall_s);
                device.values[m] = told.value;
                device.counted_since[m] = told.since_s;
            } else {
                device.values[m] = value.value;
            }
            device.read_at_s[m] = static_cast<double>(value.at_us) * 1e-6;
        }
        device.processes_told = slot->processes_return == 0 && slot->read_at_us != 0 && device.state != GpuState::lost;
        device.processes_left_out = slot->processes_left_out;
        for (std::uint32_t p = 0;
             device.processes_told && p < std::min<std::uint32_t>(slot->processes, kMostGpuProcesses); ++p)
            device.processes.push_back(slot->process[p]);
        if (before == view.devices.end())
            view.devices.push_back(std::move(device));
        else if (before->state != GpuState::ok && device.state == GpuState::ok)
            *before = std::move(device);
    }
}

// Boards of AMD and Intel, behind those of NVIDIA.
void GpuWatch::add_sysfs(GpuView& view, std::int64_t now_us) {
    constexpr std::int64_t kLookAgainUs = 30 * kSecond;  // a driver that is loaded later
    const bool first = !sysfs_;
    if (!sysfs_ && (sysfs_looked_us_ == 0 || now_us - sysfs_looked_us_ > kLookAgainUs)) {
        sysfs_looked_us_ = now_us;
        if (has_sysfs_gpus(options_.root)) sysfs_ = std::make_unique<SysfsWatch>(options_.root, options_.period_s);
    }
    if (!sysfs_) return;
    int index = 0;
    for (const GpuDevice& device : view.devices) index = std::max(index, device.index + 1);
    for (GpuDevice& device : sysfs_->latest(first)) {
        device.index = index++;
        device.state = *device.age_s > options_.hung_s                                              ? GpuState::hung
                       : *device.age_s > 2 * options_.period_s + device.collect_s + options_.slow_s ? GpuState::stale
                                                                                                    : GpuState::ok;
        if (device.state == GpuState::hung) device.stuck_call = "its files in /sys";
        if (device.state != GpuState::ok) device.values = {};
        for (const GpuMetricRow& row : gpu_metric_rows())
            if (auto& value = device.values[index_of(row.metric)]; row.counter && value) {
                const auto told =
                    counters_.keep(device.uuid, row.metric, *value, static_cast<double>(view.wall_us) * 1e-6);
                value = told.value, device.counted_since[index_of(row.metric)] = told.since_s;
            }
        view.devices.push_back(std::move(device));
    }
}

// Boards that were there, or that the PCI bus shows, and that the driver does not tell of.
void GpuWatch::add_missing(GpuView& view, const Witness& witness) {
    std::set<std::string> told;
    for (GpuDevice& device : view.devices) {
        if (device.whole() && !device.uuid.empty()) {
            GpuDevice& known = known_[device.uuid];
            known.uuid = device.uuid, known.pci = device.pci, known.name = device.name, known.index = device.index;
            known.minor = device.minor, known.driver = device.driver;
        } else if (device.uuid.empty()) {
            // Lost before it said who it is: what is known of the board of that number.
            for (const auto& entry : known_)
                if (entry.second.index == device.index) {
                    device.uuid = entry.second.uuid, device.pci = entry.second.pci, device.name = entry.second.name;
                }
        }
        if (witness.gone.contains(device.pci)) device.state = GpuState::lost;
        if (device.state == GpuState::lost) device.values = {};
        told.insert(device.uuid);
    }
    const auto of_nvidia = [](const GpuDevice& device) { return device.driver.empty(); };
    const bool never_told =
        !view.up() && std::none_of(view.devices.begin(), view.devices.end(), of_nvidia) &&
        std::none_of(known_.begin(), known_.end(), [&](const auto& entry) { return of_nvidia(entry.second); });
    if (never_told) {
        // NVIDIA's driver has never told of a board: what the bus shows is all there is of them.
        int index = 0;
        for (const GpuDevice& device : view.devices) index = std::max(index, device.index + 1);
        for (const std::string& pci : witness.boards) {
            GpuDevice device;
            device.pci = pci, device.index = index++;
            view.devices.push_back(std::move(device));
        }
    }
    for (const auto& entry : known_)
        if (!told.contains(entry.first)) view.devices.push_back(entry.second);
    for (const GpuDevice& device : view.devices)
        if (device.whole() && (device.state == GpuState::ok || device.state == GpuState::slow)) ++view.present;
    int boards = 0;
    for (const GpuDevice& device : view.devices) boards += device.whole() ? 1 : 0;
    most_seen_ = std::max({most_seen_, boards, static_cast<int>(witness.boards.size())});
    view.expected = options_.expected > 0 ? options_.expected : most_seen_;
    std::stable_sort(view.devices.begin(), view.devices.end(), [](const GpuDevice& a, const GpuDevice& b) {
        if (a.index != b.index) return a.index < b.index;
        return a.gpu_instance < b.gpu_instance;
    });
}

GpuView GpuWatch::look() {
    const std::int64_t now_us = monotonic_clock_us();
    GpuView view;
    view.wall_us = wall_clock_us();
    reap(now_us);
    care(now_us);
    for (const auto& sampler : samplers_) {
        take_events(*sampler, view);
        read_boards(*sampler, view, now_us);
    }
    if (samplers_.empty()) {
        view.down = trouble_ == NvmlDown::none ? NvmlDown::starting : trouble_;
        view.detail = trouble_text_;
    } else {
        const SampleBoard& board = *samplers_.back()->board;
        switch (board.state.load()) {
            case SamplerState::starting:
                view.down = samplers_[0]->stuck_since_us != 0 ? NvmlDown::driver_locked
                            : trouble_ == NvmlDown::none      ? NvmlDown::starting
                                                              : trouble_;
                view.detail = view.down == NvmlDown::driver_locked
                                  ? std::string(board.stamps[0].call) + " does not come back"
                                  : trouble_text_;
                break;
            case SamplerState::no_library:
                view.down = NvmlDown::library_absent;
                view.detail = board.reason;
                break;
            case SamplerState::init_failed: {
                const bool stuck = samplers_[0]->stuck_since_us != 0;
                view.down = stuck ? NvmlDown::driver_locked : down_of(board.nvml_return);
                view.detail = board.reason;
                break;
            }
            case SamplerState::changed:
            case SamplerState::up: {
                const bool any = std::any_of(view.devices.begin(), view.devices.end(), [](const GpuDevice& d) {
                    return d.state == GpuState::ok || d.state == GpuState::slow || d.state == GpuState::lost;
                });
                const bool stuck = samplers_[0]->stuck_since_us != 0 && !any;
                view.down = stuck ? NvmlDown::driver_locked : NvmlDown::none;
                if (stuck) view.detail = "every call to the driver hangs";
                if (!stuck) trouble_ = NvmlDown::none;
                break;
            }
        }
        view.driver = board.driver, view.nvml = board.nvml, view.library = board.library;
        view.cuda = board.cuda;
    }
    take_kernel_log(view);
    add_sysfs(view, now_us);
    const Witness witness = look_at_pci();
    view.pci_up = witness.up;
    add_missing(view, witness);
    view.xids = xids_;
    view.events_lost = events_lost_;
    view.samplers = static_cast<int>(samplers_.size());
    view.restarts = restarts_;
    return view;
}

Result<GpuView> look_at_gpus_once(GpuWatchOptions options, double limit_s) {
    GpuWatch watch(options);
    const std::int64_t end_us = monotonic_clock_us() + us(limit_s);
    while (true) {
        GpuView view = watch.look();
        const bool told = view.down == NvmlDown::none && view.unread == 0 &&
                          std::all_of(view.devices.begin(), view.devices.end(), [](const GpuDevice& d) {
                              return d.age_s.has_value() || d.state == GpuState::lost || d.state == GpuState::hung;
                          });
        const bool never = view.down != NvmlDown::none && view.down != NvmlDown::starting;
        if (told || never || monotonic_clock_us() > end_us) return view;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

}  // namespace stoker
