#include "serve/fleet/board.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr double kMeanOver = 32;  // answers

}  // namespace

bool ReplicaLoad::answers_as(int endpoint, std::string_view model) {
    if (model.empty()) return true;  // it does not say
    const std::lock_guard lock(mutex_);
    const auto first = model_.emplace(endpoint, model).first;
    if (first->second != model) doubted_ = true;
    return first->second == model;
}

void ReplicaLoad::trust() {
    const std::lock_guard lock(mutex_);
    if (doubted_.exchange(false)) model_.clear();
}

void ReplicaBoard::arrived(double now_s, double prompt_tokens, double output_tokens) {
    const std::lock_guard lock(mutex_);
    meter_.arrived(now_s, prompt_tokens, output_tokens);
    last_active_s_ = now_s;
}

void ReplicaBoard::held(double now_s, std::int64_t requests, double prompt_tokens) {
    const std::lock_guard lock(mutex_);
    queued_ += requests;
    queued_tokens_ = queued_ == 0 ? 0 : std::max(0.0, queued_tokens_ + prompt_tokens);
    last_active_s_ = now_s;
}

void ReplicaBoard::ended(RequestSample sample) {
    const std::lock_guard lock(mutex_);
    last_active_s_ = std::max(last_active_s_, sample.at_s);
    ++requests_;
    failed_ += sample.failed ? 1 : 0;
    if (!sample.failed && sample.output_tokens > 0)
        mean_output_ += mean_output_ == 0 ? sample.output_tokens : (sample.output_tokens - mean_output_) / kMeanOver;
    if (sample.first_token_at_s > 0) {
        const auto first = first_tokens_.emplace(sample.revision, sample.first_token_at_s).first;
        first->second = std::min(first->second, sample.first_token_at_s);
    }
    samples_.push_back(std::move(sample));
    if (samples_.size() > kMostSamples) samples_.pop_front();
}

double ReplicaBoard::expected_output(double reserved) const {
    const std::lock_guard lock(mutex_);
    return mean_output_ > 0 ? std::min(mean_output_, reserved) : reserved;
}

ReplicaBoard::Reading ReplicaBoard::read(double now_s, const ScalePolicy& policy) const {
    const std::lock_guard lock(mutex_);
    return {.burst = meter_.rate(now_s, policy.burst_s),
            .fast = meter_.rate(now_s, policy.fast_s),
            .slow = meter_.rate(now_s, policy.slow_s),
            .queued = queued_,
            .queued_tokens = queued_tokens_,
            .last_active_s = last_active_s_,
            .requests = requests_,
            .failed = failed_};
}

std::vector<RequestSample> ReplicaBoard::samples(double since_s) const {
    const std::lock_guard lock(mutex_);
    std::vector<RequestSample> out;
    for (const RequestSample& sample : samples_)
        if (sample.at_s >= since_s) out.push_back(sample);
    return out;
}

std::map<int, double> ReplicaBoard::first_tokens() const {
    const std::lock_guard lock(mutex_);
    return first_tokens_;
}

int draw_revision(const std::vector<RevisionShare>& shares, SplitMix& random) {
    double sum = 0;
    for (const RevisionShare& each : shares) sum += each.share;
    double at = random.uniform() * sum;
    for (const RevisionShare& each : shares) {
        at -= each.share;
        if (at <= 0 && each.share > 0) return each.revision;
    }
    return shares.empty() ? 0 : shares.back().revision;
}

}  // namespace stoker
