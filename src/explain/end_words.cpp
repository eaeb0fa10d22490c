#include "explain/end_words.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "readings/last_words.h"

namespace stoker {
namespace {

constexpr std::size_t kMostRanks = 16;  // whose logs are read

struct FailedRank {
    int rank = 0;
    const RankStatus* status = nullptr;
};

// Those that failed by themselves, the first before the others.
std::vector<FailedRank> failed_ranks(const Attempt& attempt) {
    constexpr int kTold = 15;  // SIGTERM: the others are ended when one fails
    std::vector<FailedRank> failed;
    for (std::size_t i = 0; i < attempt.ranks.size(); ++i) {
        const RankStatus& rank = attempt.ranks[i];
        if (rank.ended && rank.cause == Cause::user_error && rank.signal != kTold && rank.exit_code != 0)
            failed.push_back({static_cast<int>(i), &rank});
    }
    std::stable_sort(failed.begin(), failed.end(),
                     [](const auto& a, const auto& b) { return a.status->ended_us < b.status->ended_us; });
    if (failed.size() > kMostRanks) failed.resize(kMostRanks);
    return failed;
}

// What a signal says where nobody said more; by signal(7) and what raises them.
struct SignalMeaning {
    int signal = 0;
    std::string_view name, what, fix;
};
constexpr SignalMeaning kSignals[] = {
    {4, "program-arch", "an instruction that this processor does not have", "a build for this processor (-march)"},
    {6, "program-failed", "the program aborted itself: a check of its own or of a library failed", ""},
    {7, "shm-full", "memory behind a file was not there: /dev/shm is full, or a mapped file was cut",
     "df -h /dev/shm; Docker: --shm-size=16g, Kubernetes: an emptyDir with medium: Memory at /dev/shm"},
    {8, "program-failed", "a division by zero in a library", ""},
    {9, "killed", "somebody killed it: a person, or a memory limit that is not Stoker's",
     "dmesg | grep -i oom on that node; more memory (run: memory)"},
    {11, "segfault", "the program touched memory that is not its own",
     "python -X faulthandler names the line; most often a compiled extension of another version"},
};
// Shells and containers tell the signal of what they ran as 128 and more.
const SignalMeaning* meaning_of_end(const RankStatus& status) {
    const int signal = status.signal ? *status.signal : status.exit_code.value_or(0) - 128;
    const auto* const found = std::find_if(std::begin(kSignals), std::end(kSignals),
                                           [&](const SignalMeaning& each) { return each.signal == signal; });
    return found == std::end(kSignals) ? nullptr : found;
}

std::string how_it_ended(const FailedRank& failed, std::size_t ranks) {
    const std::string who = ranks > 1 ? fmt::format("rank {}", failed.rank) : "it";
    return failed.status->signal
               ? fmt::format("{} was ended by signal {}", who, *failed.status->signal)
               : fmt::format("{} ended with exit code {}", who, failed.status->exit_code.value_or(-1));
}

ToldDiagnosis told_of(const Run& run, const FailedRank& failed, const LastWords& words) {
    const std::size_t ranks = run.attempts.back().ranks.size();
    ToldDiagnosis told{.name = words.name.empty() ? "program-failed" : std::string(words.name),
                       .what = words.what.empty() ? words.line : std::string(words.what),
                       .share_of_gap = std::nullopt,
                       .stops = true};
    if (!words.told) told.what = how_it_ended(failed, ranks) + ", and its output does not say why";
    const SignalMeaning* meaning = words.told ? nullptr : meaning_of_end(*failed.status);
    if (meaning != nullptr) {
        told.name = meaning->name;
        told.what = fmt::format("{}: {}", how_it_ended(failed, ranks), meaning->what);
    }
    if (!words.what.empty()) told.evidence.push_back(words.line);
    if (!words.told) told.evidence.push_back("the last line is: " + words.line);
    if (!words.where.empty()) told.evidence.push_back(words.where);
    if (words.told) told.evidence.push_back(how_it_ended(failed, ranks));
    const std::string logs =
        fmt::format("stoker logs {}{}", run.id.text(), ranks > 1 ? fmt::format(" --rank {}", failed.rank) : "");
    const std::string_view fix = meaning != nullptr ? meaning->fix : words.fix;
    told.fix = fix.empty() ? logs + " has the rest" : std::string(fix);
    if (ranks > 1) told.rank = failed.rank;
    return told;
}

std::string memory_text(std::int64_t bytes) {
    return bytes < (std::int64_t{1} << 30) ? fmt::format("{} MiB", bytes >> 20)
                                           : format_bytes_gib(Bytes(static_cast<double>(bytes)));
}

void tell_memory(const Run& run, ToldDiagnosis& told) {
    const std::int64_t limit = run.spec.per_rank.memory_bytes;
    told.name = "memory-limit";
    told.what = limit > 0
                    ? fmt::format("a rank reached its memory limit of {} and was killed for it", memory_text(limit))
                    : "the memory of the machine was used up, and it was killed for that";
    const auto& ranks = run.attempts.back().ranks;
    const auto peak = std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
        return a.peak_memory_bytes < b.peak_memory_bytes;
    });
    if (peak != ranks.end() && peak->peak_memory_bytes > 0)
        told.evidence.push_back(
            fmt::format("{} at its peak on rank {}", memory_text(peak->peak_memory_bytes), peak - ranks.begin()));
    if (run.spec.prediction && run.spec.prediction->memory_bytes > 0)
        told.evidence.push_back(memory_text(run.spec.prediction->memory_bytes) + " predicted");
    told.fix = limit > 0 ? fmt::format(
                               "more memory: --memory {}MiB (run: memory); or a smaller batch, fewer workers of "
                               "the loader",
                               (limit * 3 / 2) >> 20)
                         : "a smaller batch, fewer workers of the loader, or a larger machine; --memory (run: memory) "
                           "keeps a place for it";
}

// What ended it was not its program: a limit that it was given, or its machine.
std::optional<ToldDiagnosis> end_by_others(const Run& run) {
    if (run.state != RunState::failed && run.state != RunState::expired) return std::nullopt;
    ToldDiagnosis told{.share_of_gap = std::nullopt, .stops = true};
    told.what = run.detail.empty() ? std::string(meaning_of(run.cause)) : run.detail;
    told.name = replace_all(to_string(run.cause), "_", "-");
    switch (run.cause) {
        case Cause::oom: tell_memory(run, told); return told;
        case Cause::timeout:
            told.name = "time-limit";
            told.fix =
                "a longer --timeout (run: timeout); with checkpoints (run: checkpoint) the next goes on where this "
                "one ended: stoker resume " +
                run.id.text();
            return told;
        case Cause::lease:
            told.name = "lease-ended";
            told.fix = fmt::format("a longer lease (run: lease), or stoker lease {} while it runs", run.id.text());
            return told;
        case Cause::node_lost:
        case Cause::lost_contact:
            told.fix = "stoker nodes says what is known of the machine; more tries: --attempts (run: attempts)";
            return told;
        case Cause::device_fault:
            told.fix = "stoker nodes and stoker doctor on that machine; it takes no work until it is repaired";
            return told;
        case Cause::evicted:
        case Cause::preempted:
            told.fix = "more tries (run: attempts), checkpoints between them (run: checkpoint), or class: guaranteed";
            return told;
        default: return std::nullopt;
    }
}

}  // namespace

std::optional<ToldDiagnosis> end_in_words(const Run& run, const LogTail& tail) {
    if (run.attempts.empty()) return std::nullopt;
    if (auto limit = end_by_others(run)) return limit;
    struct Told {
        FailedRank who;
        LastWords words;
    };
    std::optional<Told> best;
    const auto worth = [](const LastWords& words) { return !words.told ? 0 : words.consequence ? 1 : 2; };
    for (const FailedRank& failed : failed_ranks(run.attempts.back())) {
        const auto text = tail(failed.rank);
        if (!text) continue;
        auto words = last_words(*text);
        if (words && (!best || worth(*words) > worth(best->words))) best = Told{failed, std::move(*words)};
        if (best && worth(best->words) == 2) break;
    }
    if (!best) return std::nullopt;
    return told_of(run, best->who, best->words);
}

}  // namespace stoker
