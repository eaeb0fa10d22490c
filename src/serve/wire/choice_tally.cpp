#include "serve/wire/choice_tally.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace stoker::wire {
namespace {

std::uint32_t tokens_of(double value) {
    return static_cast<std::uint32_t>(
        std::clamp(value, 0.0, static_cast<double>(std::numeric_limits<std::uint32_t>::max())));
}

}  // namespace

void ChoiceTally::take_pieces() {
    for (const ChoiceSeen& piece : pieces_) {
        Choice& one = choices_[piece.index];
        one.text_bytes += piece.text_bytes;
        one.at_limit = one.at_limit || piece.at_limit;
        one.finished = one.finished || piece.finished;
        if (piece.finished) ended_.push_back(piece.index);
    }
}

void ChoiceTally::see_event(const AnswerScan& scan) {
    take_pieces();
    const std::vector<ChoiceSeen> here = std::exchange(pieces_, {});
    if (!scan.usage) return;
    if (here.size() == 1) {
        choices_[here[0].index].told = scan.usage;
        while_growing_ = true;
        return;
    }
    // Behind the end of a single one it is that one's; behind those of several it is of all.
    if (here.empty() && ended_.size() == 1)
        choices_[ended_[0]].told = scan.usage;
    else
        whole_ = scan.usage;
    ended_.clear();
}

void ChoiceTally::see_answer(const AnswerScan& scan) {
    take_pieces();
    pieces_.clear();
    whole_ = scan.usage;
    in_one_piece_ = true;
    timed_alone_ = scan.usage && scan.timed_out_tokens == scan.usage->out;
}

std::uint64_t ChoiceTally::finished() const {
    return static_cast<std::uint64_t>(
        std::count_if(choices_.begin(), choices_.end(), [](const auto& each) { return each.second.finished; }));
}

// Where something says so: the engine's own clock, an answer that alone took as much as was told, or our count.
bool ChoiceTally::tells_of_first(const OwnCounts& own) const {
    const bool others = std::any_of(std::next(choices_.begin()), choices_.end(),
                                    [](const auto& each) { return each.second.text_bytes > 0; });
    if (!others) return false;
    if (timed_alone_) return true;
    const auto& [index, first] = *choices_.begin();
    if (first.at_limit && longest_ && whole_->out == *longest_) return true;
    if (!own.exact) return false;
    double all = 0;
    for (const auto& [at, each] : choices_) all += own.written(at, each.text_bytes);
    const double told = whole_->out;
    return told * told < all * own.written(index, first.text_bytes);  // nearer to it, as a ratio
}

TalliedUsage ChoiceTally::added_up(const Choices& choices, const OwnCounts& own) const {
    double told_tokens = 0, told_bytes = 0;
    bool fills = false;  // who ends at the limit has as much as was asked for, and not as much as there was room for
    for (const auto& [index, each] : choices) {
        if (!each.told) continue;
        told_tokens += each.told->out;
        told_bytes += static_cast<double>(each.text_bytes);
        fills = fills || (each.at_limit && longest_ && each.told->out == *longest_);
    }
    TalliedUsage sum;
    bool untold = false;  // a prompt
    double in = 0, cached = 0, out = 0, reasoning = 0;
    for (auto at = choices.begin(); at != choices.end();) {
        std::optional<Usage> read;  // of one prompt, which is read once however many answers it has
        for (const std::uint32_t prompt = at->first / each_; at != choices.end() && at->first / each_ == prompt; ++at) {
            const Choice& one = at->second;
            if (one.told) {
                out += one.told->out;
                reasoning += one.told->reasoning;
                read = read ? Usage{.in = std::max(read->in, one.told->in),
                                    .cached_in = std::min(read->cached_in, one.told->cached_in)}
                            : *one.told;
            } else if (one.text_bytes > 0) {
                sum.counted = true;
                const auto bytes = static_cast<double>(one.text_bytes);
                out += one.at_limit && fills                              ? static_cast<double>(*longest_)
                       : own.exact || told_tokens == 0 || told_bytes == 0 ? own.written(at->first, one.text_bytes)
                                                                          : std::ceil(bytes * told_tokens / told_bytes);
            }
        }
        untold = untold || !read;
        in += read ? read->in : 0;
        cached += read ? read->cached_in : 0;
    }
    if (untold) in = std::max<double>(in, own.prompt);
    sum.counted = sum.counted || untold;
    sum.used = {tokens_of(in), tokens_of(cached), tokens_of(out), tokens_of(reasoning)};
    return sum;
}

std::optional<TalliedUsage> ChoiceTally::total(const OwnCounts& own) const {
    const bool of_first = in_one_piece_ && whole_ && choices_.size() > 1 && tells_of_first(own);
    if (whole_ && !of_first) return TalliedUsage{.used = *whole_};
    Choices choices = choices_;
    if (of_first) choices.begin()->second.told = whole_;
    if (std::ranges::none_of(choices, [](const auto& each) { return each.second.told.has_value(); }))
        return std::nullopt;
    TalliedUsage sum = added_up(choices, own);
    if (!while_growing_) return sum;
    // Some say with each chunk what all have come to: whichever is nearer to what was delivered.
    Usage most;
    double counted = 0;
    for (const auto& [index, each] : choices) {
        if (each.told && each.told->out >= most.out) most = *each.told;
        counted += own.written(index, each.text_bytes);
    }
    const auto off = [&](std::uint32_t out) { return std::abs(std::log((out + 1.0) / (counted + 1.0))); };
    return off(most.out) < off(sum.used.out) ? TalliedUsage{.used = most} : sum;
}

}  // namespace stoker::wire
