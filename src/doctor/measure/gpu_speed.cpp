#include "doctor/measure/gpu_speed.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "base/document.h"
#include "base/embedded.h"
#include "base/text.h"
#include "doctor/measure/cuda_calls.h"
#include "io/files.h"

namespace stoker {

namespace {

constexpr std::size_t kCopyBytes = std::size_t{256} << 20, kReduceBytes = std::size_t{1} << 30;
constexpr unsigned kBlockThreads = 256, kBlocksEach = 8, kFirstRounds = 512, kMostRounds = 1u << 22;
constexpr double kLaunchS = 0.1;  // long beside what a launch costs, short beside what a watchdog allows
constexpr int kRateTimes = 5, kCopiesWithin = 16;
// Another program's context takes some hundred MiB, our own as well; more is somebody's work.
constexpr double kHeldShare = 0.05, kHeldLeast = 1 << 30;

double middle_rate(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

// "0-23,96-119".
cpu_set_t cpus_of_list(std::string_view list) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::string_view part : split(trim(list), ',')) {
        std::size_t first = 0, last = 0;
        const char* const end = part.data() + part.size();
        auto at = std::from_chars(part.data(), end, first);
        if (at.ec != std::errc()) continue;
        last = first;
        if (at.ptr != end && *at.ptr == '-') (void)std::from_chars(at.ptr + 1, end, last);
        for (std::size_t cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &set);
    }
    return set;
}

// The first call that fails ends what is done with a board; it is kept in words.
class CudaSteps {
public:
    CudaSteps(const CudaCalls& calls, std::string& problem) : calls_(calls), problem_(problem) {}
    bool did(int code, std::string_view call) {
        if (code == cuda::kOk) return true;
        if (problem_.empty()) problem_ = fmt::format("{}: {}", call, calls_.text_of(code));
        return false;
    }

private:
    const CudaCalls& calls_;
    std::string& problem_;
};

class BoardUnderTest {
public:
    BoardUnderTest(const CudaCalls& calls, int index, const std::string& root) : c_(calls), root_(root) {
        speed.index = index;
        ready_ = open();
    }

    bool usable() const { return ready_ && speed.problem.empty() && speed.in_use.empty(); }

    void measure_copies() {
        if (!usable() || !enter()) return;
        const cpu_set_t before = run_near_the_board();
        void* host = nullptr;
        if (did(c_.allocate_host(&host, kCopyBytes), "cuMemAllocHost")) {
            speed.to_board =
                rate_of(kCopyBytes, "cuMemcpyHtoDAsync", [&] { return c_.copy_to(one_, host, kCopyBytes, nullptr); });
            speed.from_board =
                rate_of(kCopyBytes, "cuMemcpyDtoHAsync", [&] { return c_.copy_from(host, one_, kCopyBytes, nullptr); });
            (void)c_.release_host(host);
        }
        (void)::sched_setaffinity(0, sizeof before, &before);
        // Several in a row, since one takes no longer than its launch.
        speed.memory = rate_of(2.0 * kCopyBytes * kCopiesWithin, "cuMemcpyDtoDAsync", [&] {
            int code = cuda::kOk;
            for (int i = 0; i < kCopiesWithin && code == cuda::kOk; ++i)
                code = c_.copy_within(two_, one_, kCopyBytes, nullptr);
            return code;
        });
    }

    // To one that it reaches directly; else nothing is measured: through the machine's memory it is another path.
    void measure_peer(const BoardUnderTest& peer) {
        if (!usable() || !peer.usable() || !enter()) return;
        int can = 0;
        if (!did(c_.can_access(&can, device_, peer.device_), "cuDeviceCanAccessPeer") || can == 0) return;
        const int enabled = c_.enable_peer(peer.context_, 0);
        if (enabled != cuda::kPeerAlreadyEnabled && !did(enabled, "cuCtxEnablePeerAccess")) return;
        const auto rate = rate_of(kCopyBytes, "cuMemcpyPeerAsync", [&] {
            return c_.copy_peer(peer.two_, peer.context_, one_, context_, kCopyBytes, nullptr);
        });
        if (rate && (!speed.to_peer || *rate < *speed.to_peer)) speed.to_peer = rate, speed.peer = peer.speed.index;
        if (rate && (!speed.to_best_peer || *rate > *speed.to_best_peer)) speed.to_best_peer = rate;
    }

    void measure_work() {
        if (!usable() || !enter()) return;
        // Long enough that a launch costs nothing beside it.
        for (rounds_ = kFirstRounds;; rounds_ *= 2) {
            const auto seconds = seconds_of("cuLaunchKernel", [&] { return launch(); });
            if (!seconds) return;
            if (*seconds >= kLaunchS || rounds_ >= kMostRounds) break;
        }
        speed.flops = rate_of(work_of_launch(), "cuLaunchKernel", [&] { return launch(); });
        (void)compare();
    }

    // One of the launches of a burn-in: begun on every board before any is waited for.
    bool begin_burn() {
        return usable() && rounds_ > 0 && enter() && did(c_.record(begin_, nullptr), "cuEventRecord") &&
               did(launch(), "cuLaunchKernel") && did(c_.record(end_, nullptr), "cuEventRecord");
    }
    void end_burn() {
        if (!usable() || !enter()) return;
        const auto seconds = waited();
        if (!seconds || !(*seconds > 0)) return;
        burnt_.push_back(work_of_launch() / *seconds);
        speed.burn_s += *seconds;
        (void)compare();
    }
    void sum_up_burn() {
        const std::size_t part = burnt_.size() / 4;
        if (part == 0) return;
        const auto of = [&](std::size_t from) {
            return middle_rate({burnt_.begin() + static_cast<std::ptrdiff_t>(from),
                                burnt_.begin() + static_cast<std::ptrdiff_t>(from + part)});
        };
        speed.first_flops = of(0), speed.last_flops = of(burnt_.size() - part);
    }

    bool enter() { return did(c_.set_current(context_), "cuCtxSetCurrent"); }

    GpuSpeed speed;

private:
    bool did(int code, std::string_view call) { return CudaSteps(c_, speed.problem).did(code, call); }

    bool open() {
        char name[128] = {}, pci[32] = {};
        if (!did(c_.device(&device_, speed.index), "cuDeviceGet") ||
            !did(c_.device_name(name, sizeof name - 1, device_), "cuDeviceGetName") ||
            !did(c_.device_pci(pci, sizeof pci - 1, device_), "cuDeviceGetPCIBusId"))
            return false;
        speed.name = name, speed.pci = lower(pci);
        int processors = 0;
        std::size_t free = 0, total = 0;
        if (!did(c_.device_attribute(&processors, cuda::kProcessors, device_), "cuDeviceGetAttribute") ||
            !did(c_.retain(&context_, device_), "cuDevicePrimaryCtxRetain") || !enter() ||
            !did(c_.memory_info(&free, &total), "cuMemGetInfo"))
            return false;
        const double held = static_cast<double>(total - free);
        if (held > std::max<double>(kHeldLeast, kHeldShare * static_cast<double>(total))) {
            speed.in_use = fmt::format("{:.1f} of its {:.0f} GiB are held", held / (1 << 30),
                                       static_cast<double>(total) / (1 << 30));
            return false;
        }
        blocks_ = static_cast<unsigned>(std::max(1, processors)) * kBlocksEach;
        results_.resize(std::size_t{blocks_} * kBlockThreads);
        return did(c_.allocate(&one_, kCopyBytes), "cuMemAlloc") && did(c_.allocate(&two_, kCopyBytes), "cuMemAlloc") &&
               did(c_.make_event(&begin_, 0), "cuEventCreate") && did(c_.make_event(&end_, 0), "cuEventCreate") &&
               load();
    }

    // Tensor cores where the board has them for bf16; the driver refuses what it cannot translate.
    bool load() {
        cuda::Module module = nullptr;
        speed.work = "bf16 products";
        work_each_ = 4.0 * 2 * 16 * 8 * 16 / 32;
        const std::string matrix(embedded_bytes("probe/gpu_matrix.ptx")), fma(embedded_bytes("probe/gpu_fma.ptx"));
        if (c_.load_module(&module, matrix.c_str()) != cuda::kOk) {
            speed.work = "fp32 multiply-adds";
            work_each_ = 8 * 2;
            if (!did(c_.load_module(&module, fma.c_str()), "cuModuleLoadData")) return false;
        }
        return did(c_.function(&work_, module, "work"), "cuModuleGetFunction");
    }

    cpu_set_t run_near_the_board() const {
        cpu_set_t before;
        CPU_ZERO(&before);
        (void)::sched_getaffinity(0, sizeof before, &before);
        if (const auto list = read_file(root_ + "/sys/bus/pci/devices/" + speed.pci + "/local_cpulist", 4096)) {
            const cpu_set_t near = cpus_of_list(*list);
            cpu_set_t both;
            CPU_AND(&both, &before, &near);
            if (CPU_COUNT(&both) > 0) (void)::sched_setaffinity(0, sizeof both, &both);
        }
        return before;
    }

    double work_of_launch() const { return work_each_ * blocks_ * kBlockThreads * rounds_; }
    int launch() {
        void* parameters[] = {&two_, &rounds_};
        return c_.launch(work_, blocks_, 1, 1, kBlockThreads, 1, 1, 0, nullptr, parameters, nullptr);
    }
    std::optional<double> waited() {
        float ms = 0;
        if (!did(c_.wait_event(end_), "cuEventSynchronize") ||
            !did(c_.elapsed(&ms, begin_, end_), "cuEventElapsedTime"))
            return std::nullopt;
        return ms / 1e3;
    }
    std::optional<double> seconds_of(std::string_view call, const std::function<int()>& work) {
        if (!did(c_.record(begin_, nullptr), "cuEventRecord") || !did(work(), call) ||
            !did(c_.record(end_, nullptr), "cuEventRecord"))
            return std::nullopt;
        return waited();
    }
    std::optional<double> rate_of(double amount, std::string_view call, const std::function<int()>& work) {
        if (!seconds_of(call, work)) return std::nullopt;  // the first is slower
        std::vector<double> rates;
        for (int i = 0; i < kRateTimes; ++i) {
            const auto seconds = seconds_of(call, work);
            if (!seconds) return std::nullopt;
            if (*seconds > 0) rates.push_back(amount / *seconds);
        }
        if (rates.empty()) return std::nullopt;
        return middle_rate(std::move(rates));
    }

    // What the last launch wrote against what the first one did.
    bool compare() {
        if (!did(c_.copy_from(results_.data(), two_, results_.size() * sizeof results_[0], nullptr),
                 "cuMemcpyDtoHAsync") ||
            !did(c_.synchronize(), "cuCtxSynchronize"))
            return false;
        if (expected_.empty()) {
            expected_ = results_;
            return did(launch(), "cuLaunchKernel") && compare();
        }
        double wrong = 0;
        for (std::size_t i = 0; i < results_.size(); ++i) wrong += results_[i] == expected_[i] ? 0 : 1;
        speed.wrong = speed.wrong.value_or(0) + wrong;
        return true;
    }

    const CudaCalls& c_;
    const std::string root_;
    bool ready_ = false;
    cuda::Device device_ = 0;
    cuda::Context context_ = nullptr;
    cuda::Function work_ = nullptr;
    cuda::Event begin_ = nullptr, end_ = nullptr;
    cuda::Memory one_ = 0, two_ = 0;
    unsigned blocks_ = 0, rounds_ = 0;
    double work_each_ = 0;  // of one thread in one round
    std::vector<std::uint32_t> results_, expected_;
    std::vector<double> burnt_;
};

using BoardsUnderTest = std::vector<std::unique_ptr<BoardUnderTest>>;

void burn_boards(BoardsUnderTest& boards, double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    const auto longest = [&] {
        double most = 0;
        for (const auto& board : boards) most = std::max(most, board->speed.burn_s);
        return most;
    };
    do {
        bool any = false;
        for (const auto& board : boards) any = board->begin_burn() || any;
        if (!any) return;
        for (const auto& board : boards) board->end_burn();
    } while (longest() < seconds && std::chrono::steady_clock::now() < end);
    for (const auto& board : boards) board->sum_up_burn();
}

// The sum of all boards on all boards, as nccl-tests measures it: bus rate is 2 (n - 1) / n of what each one sends.
void measure_all_reduce(const CudaCalls& c, BoardsUnderTest& boards, GpuSpeeds& told) {
    const auto nccl = open_nccl();
    if (!nccl) {
        told.all_reduce_problem = nccl.error().message();
        return;
    }
    const std::size_t n = boards.size();
    std::vector<int> devices;
    std::vector<cuda::Memory> memory(n, 0);
    std::vector<cuda::Event> begin(n, nullptr), end(n, nullptr);
    std::vector<NcclCalls::Communicator> ranks(n, nullptr);
    CudaSteps steps(c, told.all_reduce_problem);
    for (std::size_t i = 0; i < n; ++i) {
        devices.push_back(boards[i]->speed.index);
        if (!boards[i]->enter() || !steps.did(c.allocate(&memory[i], kReduceBytes), "cuMemAlloc") ||
            !steps.did(c.make_event(&begin[i], 0), "cuEventCreate") ||
            !steps.did(c.make_event(&end[i], 0), "cuEventCreate"))
            return;
    }
    const auto did = [&](int code, std::string_view call) {
        if (code == 0) return true;
        told.all_reduce_problem = fmt::format("{}: {} ({})", call, nccl->error_text(code), code);
        return false;
    };
    if (!did(nccl->init_all(ranks.data(), static_cast<int>(n), devices.data()), "ncclCommInitAll")) return;
    std::vector<double> rates;
    for (int turn = 0; turn <= kRateTimes; ++turn) {
        for (std::size_t i = 0; i < n; ++i)
            if (!boards[i]->enter() || !steps.did(c.record(begin[i], nullptr), "cuEventRecord")) return;
        if (!did(nccl->begin_group(), "ncclGroupStart")) return;
        for (std::size_t i = 0; i < n; ++i) {
            void* const at = reinterpret_cast<void*>(memory[i]);
            if (!did(nccl->all_reduce(at, at, kReduceBytes / sizeof(float), kNcclFloat, kNcclSum, ranks[i], nullptr),
                     "ncclAllReduce"))
                return;
        }
        if (!did(nccl->end_group(), "ncclGroupEnd")) return;
        float slowest = 0;
        for (std::size_t i = 0; i < n; ++i) {
            float ms = 0;
            if (!boards[i]->enter() || !steps.did(c.record(end[i], nullptr), "cuEventRecord") ||
                !steps.did(c.wait_event(end[i]), "cuEventSynchronize") ||
                !steps.did(c.elapsed(&ms, begin[i], end[i]), "cuEventElapsedTime"))
                return;
            slowest = std::max(slowest, ms);
        }
        if (turn > 0 && slowest > 0)
            rates.push_back(static_cast<double>(kReduceBytes) / (slowest / 1e3) * 2 * static_cast<double>(n - 1) /
                            static_cast<double>(n));
    }
    for (const NcclCalls::Communicator rank : ranks) (void)nccl->destroy(rank);
    for (std::size_t i = 0; i < n; ++i)
        if (boards[i]->enter()) (void)c.release(memory[i]);
    if (rates.empty()) return;
    told.all_reduce = middle_rate(std::move(rates)), told.all_reduce_bytes = static_cast<double>(kReduceBytes);
}

constexpr std::pair<const char*, std::optional<double> GpuSpeed::*> kGpuFigures[] = {
    {"to_board_bytes_per_s", &GpuSpeed::to_board},
    {"from_board_bytes_per_s", &GpuSpeed::from_board},
    {"memory_bytes_per_s", &GpuSpeed::memory},
    {"to_peer_bytes_per_s", &GpuSpeed::to_peer},
    {"to_best_peer_bytes_per_s", &GpuSpeed::to_best_peer},
    {"flops", &GpuSpeed::flops},
    {"first_flops", &GpuSpeed::first_flops},
    {"last_flops", &GpuSpeed::last_flops},
    {"wrong_results", &GpuSpeed::wrong},
};
constexpr std::pair<const char*, std::string GpuSpeed::*> kGpuWords[] = {{"name", &GpuSpeed::name},
                                                                         {"pci", &GpuSpeed::pci},
                                                                         {"in_use", &GpuSpeed::in_use},
                                                                         {"problem", &GpuSpeed::problem},
                                                                         {"work", &GpuSpeed::work}};

}  // namespace

GpuSpeeds measure_gpus(const GpuSpeedOptions& options) {
    GpuSpeeds told;
    const auto calls = open_cuda();
    if (!calls) {
        told.library_problem = calls.error().message();
        return told;
    }
    CudaSteps steps(*calls, told.library_problem);
    int count = 0;
    if (!steps.did(calls->init(0), "cuInit") || !steps.did(calls->device_count(&count), "cuDeviceGetCount"))
        return told;
    BoardsUnderTest boards;
    for (int i = 0; i < count; ++i) boards.push_back(std::make_unique<BoardUnderTest>(*calls, i, options.root));
    for (const auto& board : boards) board->measure_copies();
    for (int i = 0; i < count; ++i)
        for (int j = 1; j < (options.level == HealthLevel::full ? count : std::min(count, 2)); ++j)
            boards[static_cast<std::size_t>(i)]->measure_peer(*boards[static_cast<std::size_t>((i + j) % count)]);
    for (const auto& board : boards) board->measure_work();
    if (options.burn_s > 0) burn_boards(boards, options.burn_s);
    if (count > 1 && std::all_of(boards.begin(), boards.end(), [](const auto& board) { return board->usable(); }))
        measure_all_reduce(*calls, boards, told);
    for (const auto& board : boards) told.boards.push_back(std::move(board->speed));
    return told;
}

Json to_json(const GpuSpeeds& speeds) {
    Json boards = Json::array();
    for (const GpuSpeed& board : speeds.boards) {
        Json one = Json::object().set("index", board.index).set("peer", board.peer).set("burn_s", board.burn_s);
        for (const auto& [key, member] : kGpuWords)
            if (!(board.*member).empty()) one.set(key, board.*member);
        for (const auto& [key, member] : kGpuFigures)
            if (board.*member) one.set(key, *(board.*member));
        boards.push(std::move(one));
    }
    Json told = Json::object()
                    .set("library_problem", speeds.library_problem)
                    .set("boards", std::move(boards))
                    .set("all_reduce_bytes", speeds.all_reduce_bytes)
                    .set("all_reduce_problem", speeds.all_reduce_problem);
    if (speeds.all_reduce) told.set("all_reduce_bytes_per_s", *speeds.all_reduce);
    return told;
}

Result<GpuSpeeds> read_gpu_speeds(const std::string& json) {
    TRY(const Document document, Document::parse_json(json, "measurement of the GPUs"));
    const Node& root = document.root();
    const Node* const boards = root.find("boards");
    if (!boards || !boards->is_sequence()) return Error(ErrorKind::invalid, "no measurement of GPUs: it has no boards");
    const auto figure = [](const Node& node, std::string_view key) -> std::optional<double> {
        const Node* const found = node.find(key);
        return found && found->kind == NodeKind::number ? std::optional(found->number) : std::nullopt;
    };
    const auto word = [](const Node& node, std::string_view key) {
        const Node* const found = node.find(key);
        return found ? found->text : std::string();
    };
    GpuSpeeds told;
    told.library_problem = word(root, "library_problem");
    told.all_reduce = figure(root, "all_reduce_bytes_per_s");
    told.all_reduce_bytes = figure(root, "all_reduce_bytes").value_or(0);
    told.all_reduce_problem = word(root, "all_reduce_problem");
    for (const auto& item : boards->items) {
        GpuSpeed board;
        board.index = static_cast<int>(figure(*item, "index").value_or(0));
        board.peer = static_cast<int>(figure(*item, "peer").value_or(-1));
        board.burn_s = figure(*item, "burn_s").value_or(0);
        for (const auto& [key, member] : kGpuWords) board.*member = word(*item, key);
        for (const auto& [key, member] : kGpuFigures) board.*member = figure(*item, key);
        told.boards.push_back(std::move(board));
    }
    return told;
}

}  // namespace stoker
