#include "govern/waste.h"

#include <algorithm>

namespace stoker {
namespace {

enum class Moved : std::uint8_t { busy, reading, idle };

Moved moved(const WasteSample& sample, const WasteSubject& subject) {
    const bool known = sample.cores || sample.bytes_per_s || sample.gpus;
    const bool computes = sample.stepped || (sample.cores && *sample.cores > kBusyShareOfCores * subject.cores) ||
                          (sample.gpus && *sample.gpus > kBusyShareOfGpus * subject.gpus);
    // A GPU that is held and that nobody measures may be what works.
    if (!known || computes || (subject.gpus > 0 && !sample.gpus)) return Moved::busy;
    const bool reads = (sample.blocked && *sample.blocked > kBlockedThreads) ||
                       (sample.bytes_per_s && *sample.bytes_per_s > kBusyBytesPerS);
    return reads ? Moved::reading : Moved::idle;
}

}  // namespace

bool is_idle(const WasteSample& sample, const WasteSubject& subject) {
    return moved(sample, subject) == Moved::idle;
}

std::vector<WastePiece> judge_waste(const WasteSubject& subject) {
    std::vector<WastePiece> pieces;
    if (subject.until_us <= subject.began_us) return pieces;
    const std::int64_t ran =
        subject.running_us == 0 ? subject.until_us : std::clamp(subject.running_us, subject.began_us, subject.until_us);
    if (ran > subject.began_us) pieces.push_back({WasteCause::deployment, subject.began_us, ran});
    std::int64_t stretch = 0, stretch_end = 0;  // of idleness that is open
    const auto close = [&](bool at_end) {
        if (stretch_end - stretch >= kIdleAtLeastUs) {
            const bool forgotten = at_end && stretch_end - stretch >= kForgottenAfterUs;
            pieces.push_back({forgotten ? WasteCause::forgotten : WasteCause::no_work, stretch, stretch_end});
        }
        stretch = stretch_end = 0;
    };
    for (const WasteSample& sample : subject.samples) {
        const std::int64_t from = std::max({sample.from_us, ran, stretch_end}),
                           to = std::min(sample.to_us, subject.until_us);
        if (to <= from) continue;
        // A hole is time that nobody saw.
        if (stretch_end != 0 && from > stretch_end) close(false);
        switch (moved(sample, subject)) {
            case Moved::busy: close(false); break;
            case Moved::reading: {
                close(false);
                WastePiece* last = pieces.empty() ? nullptr : &pieces.back();
                if (last != nullptr && last->cause == WasteCause::waiting_for_data && last->to_us == from)
                    last->to_us = to;
                else
                    pieces.push_back({WasteCause::waiting_for_data, from, to});
                break;
            }
            case Moved::idle:
                if (stretch_end == 0) stretch = from;
                stretch_end = to;
                break;
        }
    }
    // What was measured last stands for the rest only where hardly anything is left.
    close(stretch_end + kIdleAtLeastUs >= subject.until_us);
    return pieces;
}

}  // namespace stoker
