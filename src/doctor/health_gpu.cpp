#include "doctor/health_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "io/run_program.h"
#include "observe/health_lines.h"

extern char** environ;

namespace stoker {

namespace {

std::string board_text(const GpuSpeed& board) {
    return fmt::format("GPU {}{}", board.index, board.pci.empty() ? "" : " at " + board.pci);
}

HealthCheck gpu_check(const char* name, const char* unit, const std::string& node) {
    return {.layer = HealthLayer::device, .name = name, .node = node, .unit = unit};
}

using BoardFigure = std::function<std::optional<double>(const GpuSpeed&)>;

// Of the board that is slowest; nothing where none has the figure. `common`: what boards that are well have in common,
// where that is another figure.
std::optional<GpuCheck> slowest_board(const GpuSpeeds& speeds, HealthCheck check, const BoardFigure& figure,
                                      const std::function<std::string(const GpuSpeed&)>& detail,
                                      const BoardFigure& common = nullptr) {
    std::vector<double> values;
    const GpuSpeed* slowest = nullptr;
    for (const GpuSpeed& board : speeds.boards) {
        const auto value = figure(board);
        if (!value) continue;
        values.push_back(common ? common(board).value_or(*value) : *value);
        if (!slowest || *value < *figure(*slowest)) slowest = &board;
    }
    if (!slowest) return std::nullopt;
    GpuCheck found;
    check.measured = figure(*slowest);
    check.detail = detail(*slowest);
    if (values.size() > 1) check.detail += fmt::format("; the slowest of {}", values.size());
    const bool alike = std::all_of(speeds.boards.begin(), speeds.boards.end(), [&](const GpuSpeed& board) {
        return !figure(board) || (board.name == slowest->name && board.work == slowest->work);
    });
    if (const auto line = pool_line(values, false); line && alike)
        found.by_others = {.value = line->line,
                           .source = fmt::format("median of the {} GPUs minus 4 MAD", line->nodes),
                           .is_line = true};
    // A figure of no work at all (a copy) is of none.
    if (const auto fact = fact_of_gpu(slowest->name, check.name, check.unit == "FLOP/s" ? slowest->work : ""))
        found.by_model = {.value = fact->value, .source = fact->source, .is_line = fact->is_line};
    found.part.check = std::move(check);
    return found;
}

std::string both_ways(const GpuSpeed& board) {
    return fmt::format("{}: {:.3g} GB/s to it, {:.3g} from it, pinned", board_text(board), *board.to_board / 1e9,
                       *board.from_board / 1e9);
}

// A link that is slow has two ends; the board all of whose links are is the one to look at.
std::string slow_to_all(const GpuSpeeds& speeds, double slowest) {
    constexpr double kNear = 1.1;
    std::string text;
    std::size_t slow = 0;
    for (const GpuSpeed& board : speeds.boards)
        if (board.to_best_peer && *board.to_best_peer <= kNear * slowest) {
            text += fmt::format("{}GPU {}", text.empty() ? "" : ", ", board.index);
            ++slow;
        }
    return slow == 0 || slow == speeds.boards.size() ? "" : "; to every other slow: " + text;
}

// Boards on which a call failed, and those that somebody holds.
void add_not_measured(const GpuSpeeds& speeds, const std::string& node, std::vector<GpuCheck>& out) {
    for (const GpuSpeed& board : speeds.boards) {
        if (board.problem.empty() && board.in_use.empty()) continue;
        HealthCheck check = gpu_check("gpu-works", "count", node);
        check.verdict = board.problem.empty() ? HealthVerdict::skipped : HealthVerdict::fail;
        check.detail = board_text(board) + ": " + (board.problem.empty() ? board.in_use : board.problem);
        check.fix = board.problem.empty() ? "stoker gpu processes says who holds it; measure when it is free"
                                          : "dmesg | grep -i -e nvrm -e xid; stoker gpu; where it says that the system "
                                            "is not initialised: systemctl status nvidia-fabricmanager";
        out.push_back({.part = {.check = std::move(check), .expected = {}}, .by_model = {}, .by_others = {}});
    }
}

}  // namespace

std::optional<Expectation> by_model_or_others(const GpuCheck& check) {
    if (!check.by_model || !check.by_others) return check.by_model ? check.by_model : check.by_others;
    HealthCheck judged = check.part.check;
    judge_check(judged, check.by_model);
    return judged.verdict == HealthVerdict::fail ? check.by_model : check.by_others;
}

Result<GpuSpeeds> measure_gpus_apart(const GpuSpeedOptions& options, Deadline deadline) {
    ProgramCall call{.arguments = {"/proc/self/exe", "gpu-sampler", "--measure",
                                   options.level == HealthLevel::full ? "full" : "quick", "--burn-in",
                                   fmt::format("{:g}", options.burn_s)},
                     .environment = {}};
    for (char** entry = environ; *entry; ++entry) call.environment.emplace_back(*entry);
    TRY(const ProgramResult result, run_program(call, deadline));
    if (result.exit_code != 0)
        return Error(ErrorKind::unavailable, fmt::format("the process that measures ended with {}: {}",
                                                         result.exit_code, printable(trim(result.complaint), 200)));
    return read_gpu_speeds(result.output);
}

HealthCheck gpus_not_measured(const Error& error, const std::string& node) {
    HealthCheck check = gpu_check("gpu-works", "count", node);
    const bool hangs = error.kind() == ErrorKind::timed_out;
    check.verdict = hangs ? HealthVerdict::fail : HealthVerdict::skipped;
    check.detail = hangs ? "CUDA did not come back in time" : error.message();
    check.fix = hangs ? "dmesg | grep -i -e nvrm -e xid; a board that hangs takes a restart of the machine" : "";
    return check;
}

std::vector<GpuCheck> checks_of_gpus(const GpuSpeeds& speeds, const std::string& size, const std::string& node) {
    std::vector<GpuCheck> out;
    if (!speeds.library_problem.empty() || speeds.boards.empty()) {
        HealthCheck check = gpu_check("gpu-works", "count", node);
        check.detail = speeds.library_problem.empty() ? "CUDA finds no GPU" : speeds.library_problem;
        check.fix = "install NVIDIA's driver, or give the container its libraries (--gpus all)";
        out.push_back({.part = {.check = std::move(check), .expected = {}}, .by_model = {}, .by_others = {}});
        return out;
    }
    std::vector<SizeFact> facts;
    if (!size.empty())
        if (auto known = facts_of_size(size)) facts = std::move(*known);
    add_not_measured(speeds, node, out);
    const auto add = [&](std::optional<GpuCheck> found, const char* fix) {
        if (!found) return;
        found->part.check.fix = fix;
        for (const SizeFact& fact : facts)
            if (fact.name == found->part.check.name)
                found->part.expected = {.value = fact.value, .source = fact.source, .is_line = fact.is_line};
        out.push_back(std::move(*found));
    };
    const auto slower_way = [](const GpuSpeed& board) -> std::optional<double> {
        if (!board.to_board || !board.from_board) return std::nullopt;
        return std::min(*board.to_board, *board.from_board);
    };
    add(slowest_board(speeds, gpu_check("gpu-copy", "bytes/s", node), slower_way, both_ways),
        "stoker gpu -o json: pcie_generation and pcie_width under load; a narrow link is reseated or the node handed "
        "back");
    add(slowest_board(
            speeds, gpu_check("gpu-memory-copy", "bytes/s", node), [](const GpuSpeed& board) { return board.memory; },
            [](const GpuSpeed& board) { return board_text(board) + ": its memory, read and written by copies in it"; }),
        "nvidia-smi -q -d ECC,ROW_REMAPPER,CLOCK: memory that corrects or replaces rows, or a memory clock below that "
        "of the others");
    add(slowest_board(
            speeds, gpu_check("gpu-peer-copy", "bytes/s", node), [](const GpuSpeed& board) { return board.to_peer; },
            [&](const GpuSpeed& board) {
                return fmt::format("{} to GPU {}{}", board_text(board), board.peer,
                                   slow_to_all(speeds, *board.to_peer));
            },
            // One board that is slow makes the slowest path of every board slow.
            [](const GpuSpeed& board) { return board.to_best_peer; }),
        "nvidia-smi topo -m, nvidia-smi nvlink -s: links that are down, or another path than NVLink");
    add(slowest_board(
            speeds, gpu_check("gpu-arithmetic", "FLOP/s", node), [](const GpuSpeed& board) { return board.flops; },
            [](const GpuSpeed& board) { return board_text(board) + ": " + board.work; }),
        "nvidia-smi -q -d CLOCK,POWER,TEMPERATURE: clocks or a power limit below those of the others");
    const auto kept = [](const GpuSpeed& board) -> std::optional<double> {
        if (!board.first_flops || !board.last_flops || !(*board.first_flops > 0)) return std::nullopt;
        return *board.last_flops / *board.first_flops;
    };
    auto steady = slowest_board(speeds, gpu_check("gpu-steady", "share", node), kept, [](const GpuSpeed& board) {
        return fmt::format("{}: of its rate after {:.0f} s of {} on all boards at once", board_text(board),
                           board.burn_s, board.work);
    });
    if (steady) steady->by_others.reset();  // what any board must keep is known
    add(std::move(steady), "stoker gpu: temperature, power and what slows the clocks; the cooling of the node");
    if (std::any_of(speeds.boards.begin(), speeds.boards.end(),
                    [](const GpuSpeed& b) { return b.wrong.has_value(); })) {
        HealthCheck check = gpu_check("gpu-results", "count", node);
        double wrong = 0;
        const GpuSpeed* worst = nullptr;
        for (const GpuSpeed& board : speeds.boards) {
            wrong += board.wrong.value_or(0);
            if (board.wrong.value_or(0) > 0 && (!worst || *board.wrong > *worst->wrong)) worst = &board;
        }
        check.measured = wrong;
        check.detail = worst ? fmt::format("{} computed {:.0f} results differently from its first time",
                                           board_text(*worst), *worst->wrong)
                             : "the same work gave the same results each time";
        add(GpuCheck{.part = {.check = std::move(check), .expected = {}}, .by_model = {}, .by_others = {}},
            "a board that computes wrongly ruins a training in silence: take the node out and hand the board back");
    }
    if (speeds.boards.size() > 1) {
        HealthCheck check = gpu_check("gpu-all-reduce", "bytes/s", node);
        check.measured = speeds.all_reduce;
        check.detail = speeds.all_reduce
                           ? fmt::format("bus rate over {} GPUs, {:.0f} MiB, NCCL", speeds.boards.size(),
                                         speeds.all_reduce_bytes / (1 << 20))
                           : "not measured: " + (speeds.all_reduce_problem.empty() ? "not every GPU could be used"
                                                                                   : speeds.all_reduce_problem);
        add(GpuCheck{.part = {.check = std::move(check), .expected = {}}, .by_model = {}, .by_others = {}},
            speeds.all_reduce ? "nvidia-smi topo -m; NCCL_DEBUG=INFO says which transport was taken" : "");
    }
    return out;
}

}  // namespace stoker
