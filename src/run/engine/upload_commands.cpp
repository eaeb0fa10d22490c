// What the core makes of uploads and of checkpoints that are fetched.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "run/core/core.h"

namespace stoker {
namespace {

constexpr std::size_t kMostUploadText = 1000;

}  // namespace

Result<Ack> Core::on(const BeginUpload& begin) {
    const Run* run = state_.find(begin.run);
    if (run == nullptr) return no_such_run(state_, begin.run);
    if (begin.step < 0 || begin.url.empty() || begin.url.size() > 2 * kMostUploadText)
        return Error(ErrorKind::invalid, "an upload needs a step and a place");
    if (run->stored && run->stored->uploading >= 0) {
        if (run->stored->uploading == begin.step) return ack(run->id);
        return Error(ErrorKind::conflict, fmt::format("the upload of step {} has not ended", run->stored->uploading));
    }
    emit(CheckpointUploading{.run = run->id, .step = begin.step, .url = begin.url});
    return ack(run->id);
}

Result<Ack> Core::on(const EndUpload& end) {
    const Run* run = state_.find(end.run);
    if (run == nullptr) return no_such_run(state_, end.run);
    if (!run->stored || run->stored->uploading != end.step) return Ack{.repeated = true};
    emit(CheckpointStored{
        .run = run->id, .step = end.step, .bytes = end.bytes, .fault = printable(end.fault, kMostUploadText)});
    return ack(run->id);
}

Result<Ack> Core::on(const SawRestore& saw) {
    const auto found = looked_.find(saw.run);
    if (found == looked_.end() || found->second.asked != saw.asked) return Ack{.repeated = true};
    auto& restores = options_.scheduler.restores;
    std::erase_if(restores, [&](const auto& each) { return each.first == saw.run; });
    restores.emplace_back(saw.run, saw.note);
    // From here on it holds nobody up.
    auto& unreadable = options_.scheduler.unreadable;
    const auto place = std::lower_bound(unreadable.begin(), unreadable.end(), saw.run);
    if (place != unreadable.end() && *place == saw.run) return Ack{};
    unreadable.insert(place, saw.run);
    changed_ = true;
    return Ack{};
}

void Core::no_longer_unreadable(RunId run) {
    std::erase(options_.scheduler.unreadable, run);
    std::erase_if(options_.scheduler.restores, [&](const auto& each) { return each.first == run; });
}

}  // namespace stoker
