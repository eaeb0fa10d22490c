#include "serve/endpoints/keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/enum_words.h"
#include "base/text.h"
#include "serve/fleet/breaker.h"
#include "serve/fleet/outliers.h"
#include "serve/tokens/tokenizer_cache.h"

namespace stoker {
namespace {

constexpr double kListEveryS = 1, kScaleEveryS = 1, kJudgeEveryS = 5;
constexpr double kDrainS = 300, kForgiveS = 60, kFirstPauseS = 0.5, kMostPauseS = 30;
constexpr double kPriorPrefillPerS = 4'000, kPriorDecodePerS = 400;  // where neither plan nor engine says

std::string key_of(SplitMix& random) {
    return fmt::format("{:016x}{:016x}", random.next(), random.next());
}

}  // namespace

EndpointKeeper::EndpointKeeper(Endpoint endpoint, ReplicaHost& host, std::uint64_t seed)
    : host_(host), random_(seed), cold_start_(60) {
    last_id_ = SplitMix::mix(seed) & 0xffffffffff;  // another gateway's replicas have other ids
    set(std::move(endpoint));
    level_ = endpoint_.stopped ? 0 : endpoint_.least;
    const EndpointRevision* now = endpoint_.find(endpoint_.current);
    if (now != nullptr)
        cold_start_ = ColdStart(now->cold_start_s > 0 ? now->cold_start_s : how(now->number).cold_start_s);
}

void EndpointKeeper::set(Endpoint endpoint) {
    const int before = endpoint_.current;
    endpoint_ = std::move(endpoint);
    if (serving_ == 0) serving_ = endpoint_.current;
    if (before != endpoint_.current || endpoint_.stopped) deaths_ = 0, next_start_s_ = 0;
    if (!endpoint_.stopped) level_ = std::clamp(level_, endpoint_.least, endpoint_.most);
    next_scale_s_ = 0;
}

const ServingTemplate& EndpointKeeper::how(int revision) const {
    const EndpointRevision* known = endpoint_.find(revision);
    const auto row = find_serving_template(known != nullptr ? known->engine : "command");
    return row ? **row : serving_templates().front();
}

int EndpointKeeper::count(int revision, bool ready_only) const {
    return static_cast<int>(std::count_if(replicas_.begin(), replicas_.end(), [&](const auto& each) {
        return each->revision == revision && !each->draining && (!ready_only || each->ready);
    }));
}

// How many of a revision there should be.
int EndpointKeeper::wanted(int revision) const {
    if (endpoint_.stopped || level_ == 0) return 0;
    if (!endpoint_.split.empty()) {
        double sum = 0, own = 0;
        for (const auto& [number, share] : endpoint_.split) {
            sum += share;
            if (number == std::to_string(revision)) own = share;
        }
        return own <= 0 ? 0 : std::max(1, static_cast<int>(std::lround(level_ * own / sum)));
    }
    if (revision == endpoint_.current) return level_;
    // The one that serves stays until the current one can.
    return revision == serving_ && endpoint_.find(revision) != nullptr ? std::min(level_, count(revision, false)) : 0;
}

bool EndpointKeeper::serves(int revision) const {
    if (endpoint_.split.empty()) return revision == serving_;
    const auto share = endpoint_.split.find(std::to_string(revision));
    return share != endpoint_.split.end() && share->second > 0;
}

double EndpointKeeper::weight_of(const Kept& replica, double now_s) const {
    if (!replica.ready) return 0;
    // One that served before this gateway came is warm.
    const double grown = replica.adopted ? 1 : slow_start_weight(now_s - replica.ready_s, replica.load->taken);
    return grown * replica.slow_share;
}

void EndpointKeeper::tick(double now_s) {
    if (begun_s_ < 0) begun_s_ = now_s;
    if (now_s >= next_list_s_) look_at_runs(now_s);
    for (const auto& each : replicas_) look_at(*each, now_s);
    if (now_s >= next_judge_s_) judge_replicas(now_s);
    const bool woken = level_ == 0 && !endpoint_.stopped && board_->read(now_s, {}).queued > 0;
    if (now_s >= next_scale_s_ || woken) {
        scale(now_s);
        see(now_s);
        next_scale_s_ = now_s + kScaleEveryS;
    }
    if (listed_) reach(now_s);
    put_up(now_s);
}

void EndpointKeeper::look_at_runs(double now_s) {
    next_list_s_ = now_s + kListEveryS;
    const auto facts = host_.list(endpoint_);
    if (!facts) {
        trouble_ = facts.error().message();
        return;
    }
    trouble_.clear();
    const bool first = !std::exchange(listed_, true);
    for (const ReplicaFact& fact : *facts) {
        const std::string number = fact.name.substr(std::min(fact.name.find('.'), fact.name.size() - 1) + 1);
        next_number_ = std::max(next_number_, std::atoi(number.c_str()) + 1);
        auto known = std::find_if(replicas_.begin(), replicas_.end(), [&](const auto& each) {
            return each->run.empty() ? each->name == fact.name : each->run == fact.run;
        });
        if (known == replicas_.end()) {  // of a gateway before this one
            replicas_.push_back(std::make_unique<Kept>());
            known = std::prev(replicas_.end());
            (*known)->name = fact.name;
            (*known)->revision = fact.revision;
            (*known)->id = ++last_id_;
            (*known)->asked_s = now_s;
            (*known)->adopted = fact.phase == ReplicaPhase::running;
            (*known)->draining = endpoint_.find(fact.revision) == nullptr;
            (*known)->drained_by_s = now_s;
        }
        Kept& kept = **known;
        kept.run = fact.run;
        kept.url = fact.url;
        kept.why = fact.why;
        if (fact.phase == ReplicaPhase::running && kept.phase == ReplicaPhase::queued) {
            kept.running_s = now_s;
            kept.next_probe_s = now_s;
        }
        kept.phase = fact.phase;
    }
    if (first) {
        // What an earlier gateway had serve, serves until the current revision can, and is as many as the load wanted.
        int live = 0, before = 0;
        for (const auto& each : replicas_)
            if (!each->draining) ++live, before = each->revision;
        if (live > 0 && count(endpoint_.current, false) == 0) serving_ = before;
        if (!endpoint_.stopped) level_ = std::clamp(std::max(level_, live), endpoint_.least, endpoint_.most);
    }
    for (const auto& each : replicas_) {
        if (each->run.empty()) continue;  // its start was not answered: asked again under the same key
        const bool there = std::any_of(facts->begin(), facts->end(), [&](const ReplicaFact& fact) {
            return fact.run == each->run && fact.phase != ReplicaPhase::ended;
        });
        // It was started after that list was made.
        if (there || (each->phase == ReplicaPhase::queued && now_s - each->asked_s < 2 * kListEveryS)) continue;
        const ReplicaFact last = host_.last_of(each->run);
        if (last.phase == ReplicaPhase::ended) gone(*each, last.why, now_s);
    }
    std::erase_if(replicas_, [](const auto& each) { return each->phase == ReplicaPhase::ended; });
}

// Its run has ended.
void EndpointKeeper::gone(Kept& replica, const std::string& why, double now_s) {
    replica.phase = ReplicaPhase::ended;
    if (replica.draining) return;
    if (replica.ready_s >= 0 && now_s - replica.ready_s >= kForgiveS) deaths_ = 0;
    next_start_s_ = now_s + std::min(kMostPauseS, kFirstPauseS * std::exp2(std::min(deaths_, 10)));
    ++deaths_;
    ++failures_;
    last_failure_ = fmt::format("replica {} ({}): {}", replica.name, replica.run, why);
}

// Those unlike the others: out, or half the work.
void EndpointKeeper::judge_replicas(double now_s) {
    next_judge_s_ = now_s + kJudgeEveryS;
    const OutlierPolicy policy;
    const std::vector<RequestSample> samples = board_->samples(now_s - policy.speed_window_s);
    std::vector<ReplicaRecord> records;
    for (const auto& each : replicas_) {
        if (!each->ready || each->draining) continue;
        ReplicaRecord record{.id = each->id, .ejected = each->failing};
        std::vector<double> first, further;
        for (const RequestSample& sample : samples) {
            if (sample.replica != each->id) continue;
            if (sample.at_s >= now_s - policy.rate_window_s) {
                ++record.requests;
                record.failures += sample.failed ? 1 : 0;
            }
            if (sample.upstream_ttft_s <= 0) continue;
            first.push_back(sample.upstream_ttft_s / std::max(1.0, sample.prompt_tokens - sample.cached_tokens));
            if (sample.tpot_s > 0) further.push_back(sample.tpot_s);
        }
        const auto median = [](std::vector<double>& values) {
            if (values.empty()) return 0.0;
            std::sort(values.begin(), values.end());
            return values[values.size() / 2];
        };
        record.timed_requests = static_cast<double>(first.size());
        record.ttft_s_per_prompt_token = median(first);
        record.time_per_output_token_s = median(further);
        records.push_back(record);
    }
    const auto verdicts = find_outliers(records, policy);
    for (const auto& each : replicas_) {
        each->ejected = false;
        each->slow_share = 1;
        for (const OutlierVerdict& verdict : verdicts) {
            if (verdict.id != each->id) continue;
            each->ejected = verdict.eject;
            if (!verdict.eject) each->slow_share = 0.5;
        }
    }
}

void EndpointKeeper::scale(double now_s) {
    if (endpoint_.stopped) {
        level_ = 0;
        return;
    }
    const ScalePolicy policy{.least = endpoint_.least, .most = endpoint_.most, .least_idle_s = endpoint_.idle_s};
    const ReplicaBoard::Reading reading = board_->read(now_s, policy);
    const double active_s = reading.last_active_s >= 0 ? reading.last_active_s : begun_s_;
    ServiceLoad load{.burst = reading.burst,
                     .fast = reading.fast,
                     .slow = reading.slow,
                     .waiting_prompt_tokens = reading.queued_tokens,
                     .queued = reading.queued,
                     .idle_s = now_s - active_s,
                     .cold_start_s = cold_start_.expected_s(),
                     .replicas = level_};
    double prefill = 0, decode = 0;
    int live = 0;
    for (const auto& each : replicas_) {
        load.in_flight += each->load->outstanding;
        load.waiting_prompt_tokens += static_cast<double>(std::max<std::int64_t>(0, each->load->waiting_prompt_tokens));
        if (each->draining) continue;
        load.starting += each->ready ? 0 : 1;
        prefill += each->prefill_tokens_per_s;
        decode += each->decode_tokens_per_s;
        ++live;
    }
    const EndpointRevision* revision = endpoint_.find(endpoint_.current);
    const auto of_one = [&](double sum, double planned, double prior) {
        return live > 0 && sum > 0 ? sum / live : planned > 0 ? planned : prior;
    };
    load.prefill_tokens_per_s =
        of_one(prefill, revision != nullptr ? revision->prefill_tokens_per_s : 0, kPriorPrefillPerS);
    load.decode_tokens_per_s =
        of_one(decode, revision != nullptr ? revision->decode_tokens_per_s : 0, kPriorDecodePerS);
    last_decision_ = decide_scale(load, policy, memory_, now_s);
    level_ = last_decision_.replicas;
}

void EndpointKeeper::start_one(int revision, double now_s) {
    const EndpointRevision* known = endpoint_.find(revision);
    if (known == nullptr) return;
    auto kept = std::make_unique<Kept>();
    kept->name = fmt::format("{}.{}", revision, next_number_++);
    kept->key = key_of(random_);
    kept->revision = revision;
    kept->id = ++last_id_;
    kept->asked_s = now_s;
    kept->prefill_tokens_per_s = known->prefill_tokens_per_s > 0 ? known->prefill_tokens_per_s : kPriorPrefillPerS;
    kept->decode_tokens_per_s = known->decode_tokens_per_s > 0 ? known->decode_tokens_per_s : kPriorDecodePerS;
    ++starts_;
    replicas_.push_back(std::move(kept));
}

// Starts and drains until there is what is wanted.
void EndpointKeeper::reach(double now_s) {
    // The current revision takes over when it can.
    if (serving_ != endpoint_.current &&
        (endpoint_.stopped || count(serving_, false) == 0 ||
         (level_ > 0 && count(endpoint_.current, true) >= std::min(level_, std::max(1, count(serving_, true))))))
        serving_ = endpoint_.current;
    std::vector<int> revisions;
    for (const EndpointRevision& each : endpoint_.revisions) revisions.push_back(each.number);
    for (const auto& each : replicas_)
        if (std::find(revisions.begin(), revisions.end(), each->revision) == revisions.end())
            revisions.push_back(each->revision);
    for (const int revision : revisions) {
        const int want = wanted(revision);
        int have = count(revision, false);
        for (; have < want && now_s >= next_start_s_; ++have) start_one(revision, now_s);
        for (; have > want; --have) {
            Kept* least = nullptr;  // one that is not ready, else the one with least to finish
            const auto rank = [](const Kept& each) {
                return std::pair(each.ready ? 1 : 0, static_cast<std::uint32_t>(each.load->outstanding));
            };
            for (const auto& each : replicas_)
                if (each->revision == revision && !each->draining && (least == nullptr || rank(*each) < rank(*least)))
                    least = each.get();
            least->draining = true;
            least->drained_by_s = now_s + kDrainS;
        }
    }
    for (const auto& each : replicas_) {
        if (!each->run.empty() || each->phase == ReplicaPhase::ended) continue;
        // Asked for without an answer, it may be there: it is asked for once more, and then ended.
        if (each->draining && !each->asked) {
            each->phase = ReplicaPhase::ended;
            continue;
        }
        const EndpointRevision* revision = endpoint_.find(each->revision);
        if (revision == nullptr || now_s < next_start_s_) continue;
        each->asked = true;
        const auto run = host_.start(endpoint_, *revision, each->name, each->key);
        if (run) {
            each->run = *run;
            each->asked_s = now_s;
            continue;
        }
        last_failure_ = fmt::format("replica {}: {}", each->name, run.error().message());
        const ErrorKind kind = run.error().kind();
        const bool refused = kind != ErrorKind::unavailable && kind != ErrorKind::timed_out;
        if (refused) gone(*each, run.error().message(), now_s);
        next_start_s_ = std::max(next_start_s_, now_s + kFirstPauseS);
    }
    std::erase_if(replicas_, [](const auto& each) { return each->phase == ReplicaPhase::ended && each->run.empty(); });
}

void EndpointKeeper::drain(Kept& replica, double now_s) {
    if (replica.told_to_end || replica.run.empty()) return;
    if (replica.load->outstanding > 0 && now_s < replica.drained_by_s) return;
    if (const auto ended = host_.end(replica.run); !ended && ended.error().kind() != ErrorKind::conflict) {
        trouble_ = ended.error().message();
        return;
    }
    replica.told_to_end = true;
}

void EndpointKeeper::read_tokenizer() {
    const EndpointRevision* revision = endpoint_.find(endpoint_.current);
    const std::string& file = revision == nullptr ? tokenizer_of_ : revision->tokenizer;
    if (file == tokenizer_of_) return;
    tokenizer_of_ = file;
    tokenizer_.reset();
    if (file.empty()) return;
    if (auto read = tokens::load_tokenizer(file)) tokenizer_ = std::move(*read);
}

void EndpointKeeper::put_up(double now_s) {
    auto view = std::make_shared<BoardView>();
    view->open = !endpoint_.stopped;
    view->hold_s = endpoint_.hold_s > 0 ? endpoint_.hold_s : cold_start_.budget_s();
    double first_s = cold_start_.expected_s();
    bool any = false;
    for (const auto& each : replicas_) {
        if (each->phase == ReplicaPhase::ended) continue;
        if (!each->ready) {
            if (!each->draining)
                first_s = std::min(first_s, std::max(1.0, cold_start_.expected_s() - (now_s - each->asked_s)));
            continue;
        }
        const bool takes = !each->draining && serves(each->revision);
        const double weight = weight_of(*each, now_s);
        const EndpointRevision* revision = endpoint_.find(each->revision);
        view->replicas.push_back({.id = each->id,
                                  .name = each->name,
                                  .revision = each->revision,
                                  .url = each->url,
                                  .authority = each->address.authority,
                                  .address = each->address.address,
                                  .address_size = each->address.size,
                                  .model = each->model,
                                  .state = !takes                           ? ReplicaState::draining
                                           : each->failing || each->ejected ? ReplicaState::ejected
                                           : weight < 1                     ? ReplicaState::slow_start
                                                                            : ReplicaState::ready,
                                  .weight = std::max(weight, 0.05),
                                  .prefill_tokens_per_s = each->prefill_tokens_per_s,
                                  .decode_tokens_per_s = each->decode_tokens_per_s,
                                  .max_outstanding = static_cast<std::uint32_t>(
                                      revision != nullptr ? std::max(0, revision->max_outstanding) : 0),
                                  .load = each->load});
        if (!takes) continue;
        any = true;
        view->tokens_per_s += each->prefill_tokens_per_s;
    }
    view->ready_in_s = any ? 0 : first_s;
    read_tokenizer();
    view->tokenizer = tokenizer_;
    for (const auto& [number, share] : endpoint_.split)
        if (share > 0) view->shares.push_back({std::atoi(number.c_str()), static_cast<double>(share)});
    board_->set_view(std::move(view));
}

void EndpointKeeper::see(double now_s) {
    Seen seen{.at_s = now_s, .connect_s = connect_s_, .answer_s = answer_s_};
    std::vector<std::string> runs;
    double engines = 0, running = 0, waiting = 0;
    for (const auto& each : replicas_) {
        seen.in_flight += each->load->outstanding;
        if (!each->ready) continue;
        runs.push_back(each->run);
        seen.ready += each->draining ? 0 : 1;
        const auto signals = each->signals.at(now_s);
        if (!signals) continue;
        if (signals->running || signals->waiting) {
            ++engines;
            running += signals->running.value_or(0);
            waiting += signals->waiting.value_or(0);
        }
        if (signals->kv_share) seen.kv_share = std::max(seen.kv_share, *signals->kv_share);
        if (signals->preemptions) {
            seen.tells_preemptions = true;
            if (each->preempted_before)
                seen.preemptions += std::max(0.0, *signals->preemptions - *each->preempted_before);
            each->preempted_before = *signals->preemptions;
        }
    }
    if (engines > 0) {
        seen.running = running / engines;
        seen.waiting = waiting / engines;
    }
    const ReplicaHost::Processors processors = host_.processors(runs);
    processors_cores_ = processors.cores;
    seen.host_busy = processors.busy;
    seen.replicas_cores = processors.replicas_cores;
    seen_.push_back(seen);
    while (!seen_.empty() && seen_.front().at_s < now_s - kWindowS) seen_.pop_front();
}

}  // namespace stoker
