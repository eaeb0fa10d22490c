// Longer than 500 lines because the scheduler policies share one private state and its invariants, which a split would
// have to publish.
#include "sizing/serving_simulator.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "sizing/kv_cache.h"
#include "sizing/serving_step.h"

namespace stoker {

// Marsaglia's polar method, one of the pair kept back for nobody: draws stay independent of call order.
double SplitMix::normal() noexcept {
    for (;;) {
        const double u = 2 * uniform() - 1, v = 2 * uniform() - 1, r = u * u + v * v;
        if (r < 1 && r > 0) return u * std::sqrt(-2 * std::log(r) / r);
    }
}

// Marsaglia and Tsang 2000, "A simple method for generating gamma variables"; shapes below 1 by their boost.
double SplitMix::gamma(double shape) noexcept {
    if (shape < 1) {
        const double boost = std::pow(uniform(), 1 / shape);
        return gamma(shape + 1) * boost;
    }
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
        const double x = normal(), root = 1 + c * x;
        if (root <= 0) continue;
        const double v = root * root * root;
        if (std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
    }
}

namespace {

double draw_length(SplitMix& random, LengthLaw law, double mean, double cv) noexcept {
    mean = std::max(mean, 1.0);
    if (!(cv > 0)) return std::round(mean);
    double length = 0;
    if (law == LengthLaw::gamma) {
        const double shape = 1 / (cv * cv);
        length = random.gamma(shape) * mean / shape;
    } else {
        const double variance = std::log1p(cv * cv);
        length = mean * std::exp(std::sqrt(variance) * random.normal() - variance / 2);
    }
    return std::clamp(std::round(length), 1.0, std::round(kLongestOverMean * mean));
}

}  // namespace

RequestDraw draw_request(const ServingSetup& setup, std::uint64_t seed, std::uint64_t index) noexcept {
    const std::uint64_t key = SplitMix::mix(seed * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL) + index * 4;
    SplitMix gaps(SplitMix::mix(key)), prompts(SplitMix::mix(key + 1)), outputs(SplitMix::mix(key + 2));
    RequestDraw draw;
    const double cv = setup.arrival_cv;
    if (cv == 1) {
        draw.gap = gaps.exponential();
    } else if (cv > 0) {
        const double shape = 1 / (cv * cv);
        draw.gap = gaps.gamma(shape) / shape;
    } else {
        draw.gap = 1;
    }
    draw.prompt = draw_length(prompts, setup.length_law, setup.prompt_tokens, setup.prompt_cv);
    draw.output = draw_length(outputs, setup.length_law, setup.output_tokens, setup.output_cv);
    return draw;
}

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kNone = -1;

// What both loops share: who arrives when, what is measured, and when the queue counts as growing without bound.
class Traffic {
public:
    Traffic(const ServingSetup& setup, const ServingLoad& load)
        : setup_(setup),
          load_(load),
          open_(load.requests_per_second > 0),
          in_flight_(std::max(std::floor(load.concurrency), 1.0)) {
        in_flight_ = std::min(in_flight_, 250000.0);
        const int wanted = std::clamp(load.requests, 20, 1000000);
        if (open_) {
            last_ = wanted;
            first_ = last_ / 10;
        } else {
            // A closed loop starts with a burst, which is no steady state: it is discarded too, and a few rounds
            // follow.
            const auto round = static_cast<int>(in_flight_);
            first_ = std::max(wanted / 10, round);
            last_ = first_ + std::max(wanted - wanted / 10, 3 * round);
        }
        // Behind the measured ones come as many again, so that the last measured ones run under the same load.
        capacity_ = 2 * last_;
        ttft_.reserve(static_cast<std::size_t>(last_));
        tpot_.reserve(static_cast<std::size_t>(last_));
        e2e_.reserve(static_cast<std::size_t>(last_));
        if (open_) {
            upcoming_ = draw_request(setup_, load_.seed, 0);
            next_arrival_ = upcoming_.gap / load_.requests_per_second;
        } else {
            for (double n = 0; n < in_flight_ && issued_ < capacity_; ++n) issue(0);
        }
    }

    int capacity() const { return capacity_; }
    int issued() const { return issued_; }
    double next_arrival() const { return open_ && issued_ < capacity_ ? next_arrival_ : kNever; }
    bool done() const { return measured_ >= last_ - first_; }
    double arrival(int request) const { return arrivals_[static_cast<std::size_t>(request)]; }

    // Requests up to `now` join; `waiting` is how many have not been let in yet.
    template <typename Admit>
    void arrive(double now, Admit&& admit) {
        while (next_arrival_ <= now && open_ && issued_ < capacity_) {
            const RequestDraw draw = upcoming_;
            const double at = next_arrival_;
            upcoming_ = draw_request(setup_, load_.seed, static_cast<std::uint64_t>(issued_) + 1);
            next_arrival_ += upcoming_.gap / load_.requests_per_second;
            arrivals_.push_back(at);
            area_ += now - at;
            ++in_system_;
            if (issued_ == first_) open_window(at, now);
            admit(issued_++, draw);
        }
    }
    template <typename Admit>
    void start(Admit&& admit) {
        for (int i = 0; i < issued_; ++i) {
            RequestDraw draw = draw_request(setup_, load_.seed, static_cast<std::uint64_t>(i));
            if (!load_.burst)
                draw.output = std::ceil(draw.output * SplitMix(load_.seed + static_cast<std::uint64_t>(i)).uniform());
            admit(i, draw);
        }
    }
    // Time passes with a step of the engine running, or idle.
    void pass(double seconds, bool working) {
        area_ += seconds * in_system_;
        if (working) busy_ += seconds;
    }
    void steps(double count, double batch, double seconds) {
        outcome.steps += static_cast<std::int64_t>(count);
        ++outcome.decisions;
        batch_time_ += batch * seconds;
    }
    void produced(double tokens) { tokens_ += tokens; }
    // Queue length over time, by least squares on the arrivals: a steady state has no slope.
    void sample_queue(int request, int waiting) {
        if (request < first_ || request >= last_) return;
        const double x = request - first_, y = waiting;
        n_ += 1, sx_ += x, sy_ += y, sxx_ += x * x, sxy_ += x * y;
        if (waiting > std::max(500, last_ / 2)) overloaded_ = true;
    }
    // Returns whether the client of a closed loop asks again at once.
    template <typename Admit>
    void finish(int request, double first_token, double output, double now, Admit&& admit) {
        --in_system_;
        ++outcome.finished;
        outcome.tokens += static_cast<std::int64_t>(output);
        if (request >= first_ && request < last_) {
            const double arrived = arrival(request);
            ttft_.push_back(first_token - arrived);
            e2e_.push_back(now - arrived);
            if (output > 1) tpot_.push_back((now - first_token) / (output - 1));
            ++measured_;
        }
        if (window_open_) ++window_finished_;
        if (!open_ && issued_ < capacity_) {
            issue(now);
            if (issued_ - 1 == first_) open_window(now, now);
            admit(issued_ - 1, draw_request(setup_, load_.seed, static_cast<std::uint64_t>(issued_) - 1));
        }
    }

    ServingOutcome report(double now, bool bounded) {
        ServingOutcome& o = outcome;
        o.measured = static_cast<std::int64_t>(e2e_.size());
        percentiles(ttft_, o.ttft_p50, o.ttft_p95, o.ttft_p99, &o.ttft_mean);
        percentiles(tpot_, o.tpot_p50, o.tpot_p95, o.tpot_p99, nullptr);
        percentiles(e2e_, o.e2e_p50, o.e2e_p95, o.e2e_p99, &o.e2e_mean);
        const double span = now - window_start_;
        if (window_open_ && span > 0) {
            o.output_tokens_per_s = (tokens_ - window_tokens_) / span;
            o.requests_per_s = window_finished_ / span;
            o.mean_in_system = (area_ - window_area_) / span;
            o.busy = (busy_ - window_busy_) / span;
            o.mean_batch = busy_ > window_busy_ ? (batch_time_ - window_batch_time_) / (busy_ - window_busy_) : 0;
        }
        // Growth over the run of more than 3 % of the arrivals, and not just a handful.
        const double spread = n_ * sxx_ - sx_ * sx_;
        const double slope = spread > 0 ? (n_ * sxy_ - sx_ * sy_) / spread : 0;
        const bool growing = open_ && n_ > 0 && slope > 0.03 && sy_ / n_ > 4;
        o.saturated = overloaded_ || growing || (bounded && !done());
        return o;
    }

    ServingOutcome outcome;

private:
    void issue(double now) {
        arrivals_.push_back(now);
        ++in_system_;
        ++issued_;
    }
    void open_window(double start, double now) {
        window_open_ = true;
        window_start_ = start;
        window_area_ = area_ - (now - start) * in_system_;
        window_busy_ = busy_ - (now - start);
        window_tokens_ = tokens_;
        window_batch_time_ = batch_time_;
        window_finished_ = 0;
    }
    // Exact: the smallest sample that at least p of all do not exceed.
    static void percentiles(std::vector<double>& v, double& p50, double& p95, double& p99, double* mean) {
        if (v.empty()) return;
        if (mean) {
            double sum = 0;
            for (const double x : v) sum += x;
            *mean = sum / static_cast<double>(v.size());
        }
        auto from = v.begin();
        const auto at = [&](double p) {
            const double rank = std::max(std::ceil(p * static_cast<double>(v.size()) - 1e-9), 1.0);
            const auto place = v.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
            std::nth_element(from, place, v.end());
            from = place;
            return *place;
        };
        p50 = at(0.50);
        p95 = at(0.95);
        p99 = at(0.99);
    }

    const ServingSetup& setup_;
    const ServingLoad& load_;
    bool open_ = false, overloaded_ = false, window_open_ = false;
    double in_flight_ = 1;
    int first_ = 0, last_ = 0, capacity_ = 0, issued_ = 0, measured_ = 0;
    RequestDraw upcoming_;
    double next_arrival_ = kNever;
    std::vector<double> arrivals_, ttft_, tpot_, e2e_;
    double in_system_ = 0, area_ = 0, busy_ = 0, tokens_ = 0, batch_time_ = 0;
    double window_start_ = 0, window_area_ = 0, window_busy_ = 0, window_tokens_ = 0, window_batch_time_ = 0,
           window_finished_ = 0;
    double n_ = 0, sx_ = 0, sy_ = 0, sxx_ = 0, sxy_ = 0;
};

// One replica's engine. Sequences that decode advance in lockstep, so what each of them will do is known when it
// starts: its last token falls into a bin of a calendar, and its next cache block into one of `block` phases. A step
// then costs the same for 1 and for 1,000 sequences, and steps between two events are taken together, since their times
// form an arithmetic series.
class Engine {
public:
    Engine(const ServingSetup& setup, ReplicaShape shape, const ServingLoad& load, const ServingMemory& memory)
        : setup_(setup), model_(setup, shape), traffic_(setup, load), speed_(load.speed > 0 ? load.speed : 1) {
        block_ = static_cast<int>(std::clamp(setup.block_tokens, 1.0, 4096.0));
        total_blocks_ = free_blocks_ = std::min(std::floor(memory.kv_tokens / block_), 1e15);
        budget_ = std::max(std::floor(memory.token_budget), 1.0);
        max_running_ = static_cast<int>(std::clamp(std::floor(setup.max_sequences), 1.0, 1e6));
        window_ = setup.sliding_window > 0 ? std::max(std::floor(setup.sliding_window), 1.0) : kNever;
        reserves_ = setup.policy == SchedulerPolicy::in_flight || setup.policy == SchedulerPolicy::fixed_batch;
        longest_ = static_cast<int>(std::min(std::round(kLongestOverMean * std::max(setup.output_tokens, 1.0)), 4e6));
        if (!(setup.output_cv > 0))
            longest_ = static_cast<int>(std::min(std::round(std::max(setup.output_tokens, 1.0)), 4e6));
        const std::size_t bins = std::bit_ceil(static_cast<std::size_t>(longest_) + 64);
        mask_ = static_cast<std::int64_t>(bins) - 1;
        heads_.assign(bins, kNone);
        occupied_.assign(bins / 64, 0);
        phases_.assign(static_cast<std::size_t>(block_), 0);
        requests_.reserve(static_cast<std::size_t>(traffic_.capacity()));
        completing_.reserve(static_cast<std::size_t>(std::min(max_running_, traffic_.capacity())));
        returned_.reserve(static_cast<std::size_t>(std::min(max_running_, traffic_.capacity())));
        decisions_left_ = static_cast<double>(traffic_.capacity()) * (200 + 8 * setup.prompt_tokens / budget_) + 100000;
    }

    ServingOutcome run() {
        traffic_.start([this](int id, const RequestDraw& draw) { enter(id, draw); });
        double left = decisions_left_;
        while (!traffic_.done() && left-- > 0) {
            if (!step()) break;
        }
        traffic_.outcome.peak_kv_share = total_blocks_ > 0 ? peak_blocks_ / total_blocks_ : 0;
        return traffic_.report(clock_, left <= 0);
    }

private:
    enum class State : std::uint8_t { waiting, prompt, decoding, finished };
    struct Request {
        double first_token = -1;
        std::int64_t entered = 0;  // epoch at which it began to decode
        int prompt = 1, output = 1, generated = 0;
        int prefilled = 0, to_prefill = 0;  // tokens of this pass over the prompt
        int cached = 0;                     // tokens in the cache when it began to decode
        int blocks = 0;
        int before = kNone, after = kNone;  // in order of admission
        int bin_before = kNone, bin_after = kNone;
        std::int64_t last_epoch = 0;
        State state = State::waiting;
        bool grows = false;  // takes a new block now and then
    };
    Request& at(int id) { return requests_[static_cast<std::size_t>(id)]; }

    double blocks_for(double tokens) const { return std::ceil(std::min(tokens, window_) / block_); }

    void enter(int id, const RequestDraw& draw) {
        Request r;
        // What could never fit alone is cut, as an engine's maximum length does.
        const double room = window_ == kNever ? total_blocks_ * block_ : 1e9;
        r.output = static_cast<int>(
            std::clamp(draw.output, 1.0, std::max(1.0, std::min(room - 1, static_cast<double>(longest_)))));
        r.prompt = static_cast<int>(std::clamp(draw.prompt, 1.0, std::max(1.0, std::min(room - r.output, 1e9))));
        r.to_prefill = r.prompt;
        requests_.push_back(r);
        traffic_.sample_queue(id, id - next_waiting_ + static_cast<int>(returned_.size()));
    }

    int head_of_queue() const {
        if (!returned_.empty()) return returned_.back();
        return next_waiting_ < static_cast<int>(requests_.size()) ? next_waiting_ : kNone;
    }

    // Cache of what is prefilled now, or of the whole life where nothing may be preempted.
    double blocks_to_admit(const Request& r) const {
        return reserves_ ? blocks_for(static_cast<double>(r.prompt) + r.output) : blocks_for(r.to_prefill);
    }

    // A sliver stays free, so that the newcomer is not thrown out by its elders' next blocks (vLLM's watermark of 1 %).
    bool fits(const Request& r) const {
        const double spare = reserves_ || running_ == 0 ? 0 : std::ceil(0.01 * total_blocks_);
        return blocks_to_admit(r) + spare <= free_blocks_;
    }

    void admit(int id) {
        if (!returned_.empty()) {
            returned_.pop_back();
        } else {
            ++next_waiting_;
        }
        Request& r = at(id);
        r.state = State::prompt;
        r.prefilled = 0;
        take(r, blocks_to_admit(r));
        r.before = newest_;
        r.after = kNone;
        if (newest_ != kNone) at(newest_).after = id;
        newest_ = id;
        ++running_;
    }

    void take(Request& r, double blocks) {
        r.blocks += static_cast<int>(blocks);
        free_blocks_ -= blocks;
        peak_blocks_ = std::max(peak_blocks_, total_blocks_ - free_blocks_);
    }

    void leave_running(int id) {
        Request& r = at(id);
        free_blocks_ += r.blocks;
        r.blocks = 0;
        if (r.before != kNone) at(r.before).after = r.after;
        if (r.after != kNone) at(r.after).before = r.before;
        if (newest_ == id) newest_ = r.before;
        r.before = r.after = kNone;
        --running_;
    }

    // Blocks that sequences take in the next decode step: those whose cached tokens fill their last block exactly.
    int phase_at(std::int64_t epoch) const { return static_cast<int>(((-epoch) % block_ + block_) % block_); }
    int phase_of(const Request& r) const {
        const std::int64_t shifted = (r.cached - r.entered) % block_;
        return static_cast<int>((shifted + block_) % block_);
    }
    int due(std::int64_t epoch) const { return phases_[static_cast<std::size_t>(phase_at(epoch))]; }

    std::int64_t cached_now(const Request& r) const { return r.cached + (epoch_ - r.entered); }
    double held(double cached) const { return std::min(cached + 1, window_); }

    void start_decoding(int id) {
        Request& r = at(id);
        r.state = State::decoding;
        r.entered = epoch_;
        r.cached = r.to_prefill;
        r.last_epoch = epoch_ + (r.output - r.generated);
        ++decoding_;
        context_ += held(r.cached);
        if (r.cached + 1 < window_) ++growing_;
        r.grows = !reserves_ && r.cached < window_;
        if (r.grows) ++phases_[static_cast<std::size_t>(phase_of(r))];
        insert(id, r.last_epoch);
    }

    void stop_decoding(int id) {
        Request& r = at(id);
        --decoding_;
        const double cached = static_cast<double>(cached_now(r));
        context_ -= held(cached);
        if (cached + 1 < window_) --growing_;
        if (r.grows) --phases_[static_cast<std::size_t>(phase_of(r))];
        if (!reserves_) r.blocks = static_cast<int>(blocks_for(cached));  // what `grow` has taken for it meanwhile
        r.grows = false;
        remove(id, r.last_epoch);
    }

    void insert(int id, std::int64_t epoch) {
        const auto bin = static_cast<std::size_t>(epoch & mask_);
        Request& r = at(id);
        r.bin_before = kNone;
        r.bin_after = heads_[bin];
        if (heads_[bin] != kNone) at(heads_[bin]).bin_before = id;
        heads_[bin] = id;
        occupied_[bin / 64] |= std::uint64_t{1} << (bin % 64);
    }

    void remove(int id, std::int64_t epoch) {
        const auto bin = static_cast<std::size_t>(epoch & mask_);
        Request& r = at(id);
        if (r.bin_after != kNone) at(r.bin_after).bin_before = r.bin_before;
        if (r.bin_before != kNone)
            at(r.bin_before).bin_after = r.bin_after;
        else
            heads_[bin] = r.bin_after;
        if (heads_[bin] == kNone) occupied_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
    }

    // Decode steps until the next sequence ends.
    std::int64_t steps_to_event() const {
        const std::size_t words = occupied_.size();
        const auto start = static_cast<std::size_t>((epoch_ + 1) & mask_);
        std::size_t word = start / 64;
        std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (start % 64));
        for (std::size_t i = 0; i <= words; ++i) {
            if (bits != 0) {
                const std::int64_t bin = static_cast<std::int64_t>(word * 64) + std::countr_zero(bits);
                return ((bin - epoch_ - 1) & mask_) + 1;
            }
            word = word + 1 == words ? 0 : word + 1;
            bits = occupied_[word];
        }
        return 1;
    }

    void preempt_newest() {
        const int id = newest_;
        Request& r = at(id);
        if (r.state == State::decoding) {
            r.generated = r.output - static_cast<int>(r.last_epoch - epoch_);
            stop_decoding(id);
        }
        if (partial_ == id) partial_ = kNone;
        leave_running(id);
        r.state = State::waiting;
        r.to_prefill = r.prompt + r.generated;  // recompute: what it wrote is read again as prompt
        returned_.push_back(id);
        traffic_.outcome.preemptions += 1;
    }

    void prefill(int id, double tokens, StepWork& work) {
        Request& r = at(id);
        const int n = static_cast<int>(tokens);
        const bool ends = r.prefilled + n >= r.to_prefill;
        const double before = std::min<double>(r.prefilled, window_);
        if (window_ == kNever) {
            work.add_prompt(n, before, ends);
        } else {
            work.prompt += n;
            work.prompt_pairs += n * std::min(r.prefilled + n / 2.0, window_);
            work.prompt_reads += before + n;
            work.sampled += ends ? 1 : 0;
        }
        r.prefilled += n;
        if (ends) {
            completing_.push_back(id);
            if (partial_ == id) partial_ = kNone;
        } else {
            partial_ = id;
        }
    }

    // Admits in order of arrival while tokens, places and blocks last. Whole prompts unless chunked; the first one may
    // exceed the budget then, or it would never run.
    void admit_prompts(double budget, StepWork& work) {
        const bool chunked = setup_.policy == SchedulerPolicy::chunked;
        while (budget >= 1 && partial_ == kNone && running_ < max_running_) {
            const int id = head_of_queue();
            if (id == kNone || !fits(at(id))) return;
            const double tokens = at(id).to_prefill;
            if (!chunked && tokens > budget && work.prompt > 0) return;
            const double n = chunked ? std::min(tokens, budget) : tokens;
            admit(id);
            prefill(id, n, work);
            budget -= n;
        }
    }

    // Blocks of the sequences that decode, at the cost of the newest.
    bool make_room() {
        bool preempted = false;
        while (decoding_ > 0 && due(epoch_) > free_blocks_) {
            preempt_newest();
            preempted = true;
        }
        return preempted;
    }

    StepWork plan_step() {
        StepWork work;
        preempted_ = make_room();  // no newcomer in the same step
        switch (setup_.policy) {
            case SchedulerPolicy::chunked: {
                double budget = budget_ - decoding_;
                free_blocks_ -= due(epoch_);  // set aside while prompts are admitted
                if (partial_ != kNone && budget >= 1) {
                    const Request& r = at(partial_);
                    const double n = std::min<double>(r.to_prefill - r.prefilled, budget);
                    prefill(partial_, n, work);
                    budget -= n;
                }
                if (!preempted_) admit_prompts(budget, work);
                free_blocks_ += due(epoch_);
                work.decode = decoding_;
                break;
            }
            case SchedulerPolicy::prefill_first:
                if (!preempted_) {
                    free_blocks_ -= due(epoch_);
                    admit_prompts(budget_, work);
                    free_blocks_ += due(epoch_);
                }
                if (work.prompt <= 0) work.decode = decoding_;
                break;
            case SchedulerPolicy::in_flight:
                admit_prompts(budget_ - decoding_, work);
                work.decode = decoding_;
                break;
            case SchedulerPolicy::fixed_batch:
                if (running_ == 0) {
                    admit_prompts(kNever, work);
                    batch_size_ = running_;
                } else {
                    work.decode = batch_size_;  // those that are done still take their row
                }
                break;
        }
        if (work.decode > 0) work.context = context_;
        return work;
    }

    // Decode steps to take at once: until a sequence ends, a block is missing, or an arrival could be let in.
    std::int64_t run_length(double first_s, double growth_s) const {
        std::int64_t k = steps_to_event();
        if (k <= 1 || preempted_) return 1;
        if (window_ < kNever) k = 1;  // contexts stop growing one by one
        if (!reserves_) {
            // Blocks of a whole round of phases are enough for every round.
            double room = free_blocks_ - due(epoch_);
            std::int64_t i = 1;
            double round = 0;
            for (const int n : phases_) round += n;
            if (round > 0) {
                const auto rounds = static_cast<std::int64_t>(std::min(std::max(room / round - 1, 0.0), 1e9));
                i += rounds * block_;
                room -= static_cast<double>(rounds) * round;
                while (i < k && due(epoch_ + i) <= room) room -= due(epoch_ + i++);
                k = std::min(k, i);
            }
        }
        const bool door_open =
            setup_.policy != SchedulerPolicy::fixed_batch && head_of_queue() == kNone && running_ < max_running_;
        if (!door_open || k <= 1) return k;
        const double until = traffic_.next_arrival() - clock_;
        if (span(k, first_s, growth_s) <= until) return k;
        // The first step that ends at or after the arrival.
        const double b = first_s - growth_s / 2;
        const double root =
            growth_s > 0 ? (-b + std::sqrt(b * b + 2 * growth_s * std::max(until, 0.0))) / growth_s : until / first_s;
        auto n = static_cast<std::int64_t>(std::clamp(root, 1.0, static_cast<double>(k)));
        while (n > 1 && span(n - 1, first_s, growth_s) >= until) --n;
        while (n < k && span(n, first_s, growth_s) < until) ++n;
        return n;
    }
    static double span(std::int64_t k, double first_s, double growth_s) {
        const auto n = static_cast<double>(k);
        return n * first_s + growth_s * n * (n - 1) / 2;
    }

    bool step() {
        traffic_.arrive(clock_, [this](int id, const RequestDraw& draw) { enter(id, draw); });
        completing_.clear();
        const StepWork work = plan_step();
        if (work.prompt <= 0 && work.decode <= 0) return idle();
        const double first_s = model_.seconds(work) * speed_;
        std::int64_t k = 1;
        double dt = first_s;
        if (work.prompt <= 0) {
            StepWork later = work;
            later.context += growing_;
            const double growth_s = model_.seconds(later) * speed_ - first_s;
            k = run_length(first_s, growth_s);
            dt = span(k, first_s, growth_s);
        }
        clock_ += dt;
        traffic_.pass(dt, true);
        traffic_.steps(static_cast<double>(k), work.decode + work.sampled, dt);
        if (work.decode > 0) advance(k);
        complete_prompts();
        return true;
    }

    // Every decoding sequence gets k tokens; those that have all of theirs leave.
    void advance(std::int64_t k) {
        if (!reserves_) grow(k);
        traffic_.produced(static_cast<double>(decoding_) * static_cast<double>(k));
        context_ += growing_ * static_cast<double>(k);
        epoch_ += k;
        if (window_ < kNever) settle_windows();
        const auto bin = static_cast<std::size_t>(epoch_ & mask_);
        while (heads_[bin] != kNone) {
            const int id = heads_[bin];
            stop_decoding(id);
            end(id);
        }
    }

    // New blocks of the next k steps. Whose they are is settled when a sequence leaves: they follow from its cached
    // tokens.
    void grow(std::int64_t k) {
        const std::int64_t rounds = k / block_;
        if (rounds > 0) {
            double round = 0;
            for (const int n : phases_) round += n;
            free_blocks_ -= static_cast<double>(rounds) * round;
        }
        for (std::int64_t i = rounds * block_; i < k; ++i) free_blocks_ -= due(epoch_ + i);
        CHECK(free_blocks_ >= 0);
        peak_blocks_ = std::max(peak_blocks_, total_blocks_ - free_blocks_);
    }

    // Under a sliding window contexts stop growing at different steps; few models have one, so they are counted anew.
    void settle_windows() {
        growing_ = 0;
        context_ = 0;
        for (int id = newest_; id != kNone; id = at(id).before) {
            Request& r = at(id);
            if (r.state != State::decoding) continue;
            const double cached = static_cast<double>(cached_now(r));
            context_ += held(cached);
            if (cached + 1 < window_) ++growing_;
            if (r.grows && cached >= window_) {
                --phases_[static_cast<std::size_t>(phase_of(r))];
                r.grows = false;
            }
        }
    }

    void complete_prompts() {
        for (const int id : completing_) {
            Request& r = at(id);
            if (r.first_token < 0) r.first_token = clock_;
            ++r.generated;
            traffic_.produced(1);
            if (r.generated >= r.output) {
                end(id);
            } else {
                start_decoding(id);
            }
        }
        completing_.clear();
    }

    void end(int id) {
        Request& r = at(id);
        CHECK(r.state != State::finished);
        leave_running(id);
        r.state = State::finished;
        const double first_token = r.first_token, output = r.output;
        traffic_.finish(id, first_token, output, clock_,
                        [this](int next, const RequestDraw& draw) { enter(next, draw); });
    }

    bool idle() {
        const double next = traffic_.next_arrival();
        if (next == kNever) return false;
        traffic_.pass(std::max(next - clock_, 0.0), false);
        clock_ = std::max(clock_, next);
        return true;
    }

    const ServingSetup& setup_;
    StepModel model_;
    Traffic traffic_;
    double speed_ = 1, clock_ = 0;
    std::vector<Request> requests_;
    std::vector<int> heads_, completing_, returned_, phases_;  // returned_: preempted, the one to go first at the back
    std::vector<std::uint64_t> occupied_;
    std::int64_t epoch_ = 0, mask_ = 0;
    int block_ = 16, max_running_ = 1, longest_ = 1, next_waiting_ = 0, newest_ = kNone, partial_ = kNone;
    int running_ = 0, decoding_ = 0, growing_ = 0, batch_size_ = 0;
    double total_blocks_ = 0, free_blocks_ = 0, peak_blocks_ = 0, budget_ = 1, window_ = kNever, context_ = 0,
           decisions_left_ = 0;
    bool reserves_ = false, preempted_ = false;
};

// Encoders, CNNs, embedding: whatever waits goes into the next batch, up to the largest.
ServingOutcome simulate_batches(const ServingSetup& setup, const ServingLoad& load, const ServingMemory& memory) {
    Traffic traffic(setup, load);
    const double speed = load.speed > 0 ? load.speed : 1;
    double clock = 0;
    int head = 0;
    const auto enter = [&](int id, const RequestDraw&) { traffic.sample_queue(id, id - head); };
    traffic.start(enter);
    while (!traffic.done()) {
        traffic.arrive(clock, enter);
        const int waiting = traffic.issued() - head;
        if (waiting <= 0) {
            const double next = traffic.next_arrival();
            if (next == kNever) break;
            traffic.pass(next - clock, false);
            clock = next;
            continue;
        }
        const int n = static_cast<int>(std::min<double>(waiting, memory.max_batch));
        const double dt = batch_seconds(setup, n) * speed;
        clock += dt;
        traffic.pass(dt, true);
        traffic.steps(1, n, dt);
        traffic.produced(n);
        const int end = head + n;
        while (head < end) traffic.finish(head++, clock, 1, clock, enter);
    }
    return traffic.report(clock, false);
}

}  // namespace

ServingOutcome simulate_serving(const ServingSetup& setup, ReplicaShape shape, const ServingLoad& load) {
    const bool asked = load.requests_per_second > 0 || load.concurrency >= 1;
    if (!asked) return {};
    const ServingMemory memory = serving_memory(setup, shape);
    if (memory.refused != Reason::none) {
        ServingOutcome out;
        out.saturated = true;
        return out;
    }
    if (!setup.decoder) return simulate_batches(setup, load, memory);
    return Engine(setup, shape, load, memory).run();
}

}  // namespace stoker
