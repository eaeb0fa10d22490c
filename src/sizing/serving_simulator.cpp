// The event loops behind simulate_serving: an engine's scheduler, and whole batches one after the other.
// Longer than 500 lines because the scheduler policies share one private state and its invariants, which a split would
// have to publish.
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "sizing/kv_cache.h"
#include "sizing/serving_step.h"
#include "sizing/serving_traffic.h"

namespace stoker {
namespace {

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
        max_running_ =
            static_cast<int>(std::clamp(std::floor(setup.max_sequences) * std::max(shape.data, 1), 1.0, 1e6));
        shared_ = shared_kv_tokens(setup);
        window_ = setup.sliding_window > 0 ? std::max(std::floor(setup.sliding_window), 1.0) : kNever;
        single_steps_ = load.single_steps;
        reserves_ = setup.policy == SchedulerPolicy::in_flight || setup.policy == SchedulerPolicy::fixed_batch;
        longest_ = static_cast<int>(
            std::min(std::round(std::max(setup.length_most, 1.0) * std::max(setup.output_tokens, 1.0)), 4e6));
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
        double ready = 0;          // past the tokeniser
        std::int64_t entered = 0;  // epoch at which it began to decode
        int prompt = 1, output = 1, generated = 0;
        int prefilled = 0, to_prefill = 0;  // tokens of this pass over the prompt
        int shared = 0;                     // tokens at the start of the prompt that the cache has for all
        int cached = 0;                     // tokens in the cache when it began to decode
        int blocks = 0;
        int before = kNone, after = kNone;  // in order of admission
        int bin_before = kNone, bin_after = kNone;
        std::int64_t last_epoch = 0;
        State state = State::waiting;
        bool grows = false;      // takes a new block now and then
        bool lengthens = false;  // its context grows with every step: the window is not full
    };
    Request& at(int id) { return requests_[static_cast<std::size_t>(id)]; }

    double blocks_for(double tokens) const { return std::ceil(std::min(tokens, window_) / block_); }
    // Whole blocks of a request's prompt that are in the cache already, in the share that the mean prompt has.
    int shared_of(double prompt) const {
        if (shared_ <= 0) return 0;
        const double share = std::min(shared_ * prompt / std::max(setup_.prompt_tokens, 1.0), prompt - 1);
        return static_cast<int>(std::floor(share / block_)) * block_;
    }

    void enter(int id, const RequestDraw& draw) {
        Request r;
        // What could never fit alone is cut, as an engine's maximum length does.
        const double room = window_ == kNever ? total_blocks_ * block_ : 1e9;
        r.output = static_cast<int>(
            std::clamp(draw.output, 1.0, std::max(1.0, std::min(room - 1, static_cast<double>(longest_)))));
        r.prompt = static_cast<int>(std::clamp(draw.prompt, 1.0, std::max(1.0, std::min(room - r.output, 1e9))));
        r.to_prefill = r.prompt;
        r.shared = shared_of(r.prompt);
        // One front end tokenises a burst one prompt after the other, so that its sequences do not march in step.
        const double front_s = setup_.front_request_s + draw.prompt * setup_.front_token_s;
        if (front_s > 0) r.ready = front_free_ = std::max(front_free_, traffic_.arrival(id)) + front_s;
        requests_.push_back(r);
        traffic_.sample_queue(id, id - next_waiting_ + static_cast<int>(returned_.size()));
    }

    // When the next request is past the front end; they come in order.
    double next_ready() const {
        const auto next = static_cast<std::size_t>(next_waiting_);
        return next < requests_.size() ? requests_[next].ready : kNever;
    }
    int head_of_queue() const {
        if (!returned_.empty()) return returned_.back();
        return next_ready() <= clock_ + 1e-12 ? next_waiting_ : kNone;
    }

    // Cache of what is prefilled now, or of the whole life where nothing may be preempted.
    double blocks_to_admit(const Request& r) const {
        return blocks_for((reserves_ ? static_cast<double>(r.prompt) + r.output : r.to_prefill) - r.shared);
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
        r.prefilled = r.shared;
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
        r.lengthens = r.cached + 1 < window_;
        growing_ += r.lengthens ? 1 : 0;
        r.grows = !reserves_ && r.cached < window_;
        if (r.grows) ++phases_[static_cast<std::size_t>(phase_of(r))];
        watch_window(id);
        insert(id, r.last_epoch);
    }

    void stop_decoding(int id) {
        Request& r = at(id);
        --decoding_;
        const double cached = static_cast<double>(cached_now(r));
        context_ -= held(cached);
        growing_ -= r.lengthens ? 1 : 0;
        if (r.grows) --phases_[static_cast<std::size_t>(phase_of(r))];
        if (!reserves_)
            r.blocks = static_cast<int>(blocks_for(cached - r.shared));  // what `grow` has taken for it meanwhile
        r.grows = r.lengthens = false;
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
            const double tokens = at(id).to_prefill - at(id).shared;
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
        if (k <= 1 || preempted_ || single_steps_) return 1;
        if (!filling_.empty()) k = std::clamp<std::int64_t>(filling_.front().first - epoch_, 1, k);
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
        const double until = std::min(traffic_.next_arrival(), next_ready()) - clock_;
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
        DecodeTerms* const shared = work.prompt <= 0 ? &shared_terms(work.decode) : nullptr;
        const double first_s =
            (shared != nullptr ? model_.decode_seconds(work, *shared) : model_.seconds(work)) * speed_;
        std::int64_t k = 1;
        double dt = first_s;
        if (shared != nullptr) {
            StepWork later = work;
            later.context += growing_;
            const double growth_s = model_.decode_seconds(later, *shared) * speed_ - first_s;
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

    DecodeTerms& shared_terms(double decode) {
        const auto at = static_cast<std::size_t>(decode);
        if (shared_terms_.size() <= at) shared_terms_.resize(at + 1);
        return shared_terms_[at];
    }

    // Every decoding sequence gets k tokens; those that have all of theirs leave.
    void advance(std::int64_t k) {
        if (!reserves_) grow(k);
        traffic_.produced(static_cast<double>(decoding_) * static_cast<double>(k));
        context_ += growing_ * static_cast<double>(k);
        epoch_ += k;
        settle_windows();
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

    // Under a sliding window contexts stop growing one by one, at epochs that are known when a sequence starts: the
    // heap has the first of them in front. Those of sequences that left meanwhile find nothing to do.
    void watch_window(int id) {
        const Request& r = at(id);
        if (!(window_ < kNever) || (!r.lengthens && !r.grows)) return;
        const auto full = static_cast<std::int64_t>(window_) - (r.lengthens ? 1 : 0);
        filling_.emplace_back(r.entered + full - r.cached, id);
        std::push_heap(filling_.begin(), filling_.end(), std::greater<>());
    }
    void settle_windows() {
        while (!filling_.empty() && filling_.front().first <= epoch_) {
            const int id = filling_.front().second;
            std::pop_heap(filling_.begin(), filling_.end(), std::greater<>());
            filling_.pop_back();
            Request& r = at(id);
            if (r.state != State::decoding) continue;
            const double cached = static_cast<double>(cached_now(r));
            if (r.lengthens && cached + 1 >= window_) {
                r.lengthens = false;
                --growing_;
                watch_window(id);
            } else if (r.grows && cached >= window_) {
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
        const double next = std::min(traffic_.next_arrival(), next_ready());
        if (next == kNever) return false;
        traffic_.pass(std::max(next - clock_, 0.0), false);
        clock_ = std::max(clock_, next);
        return true;
    }

    const ServingSetup& setup_;
    StepModel model_;
    Traffic traffic_;
    double speed_ = 1, clock_ = 0, front_free_ = 0;
    std::vector<Request> requests_;
    std::vector<int> heads_, completing_, returned_, phases_;  // returned_: preempted, the one to go first at the back
    std::vector<std::uint64_t> occupied_;
    std::vector<DecodeTerms> shared_terms_;              // by the sequences that decode
    std::vector<std::pair<std::int64_t, int>> filling_;  // epochs at which the window of a sequence is full
    std::int64_t epoch_ = 0, mask_ = 0;
    int block_ = 16, max_running_ = 1, longest_ = 1, next_waiting_ = 0, newest_ = kNone, partial_ = kNone;
    int running_ = 0, decoding_ = 0, growing_ = 0, batch_size_ = 0;
    double total_blocks_ = 0, free_blocks_ = 0, peak_blocks_ = 0, budget_ = 1, window_ = kNever, context_ = 0,
           shared_ = 0, decisions_left_ = 0;
    bool reserves_ = false, preempted_ = false, single_steps_ = false;
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

// The same of several behind one router: an idle one takes what comes at once; where all are busy, what waits is
// divided among them.
ServingOutcome simulate_pool(const ServingSetup& setup, const ServingLoad& load, const ServingMemory& memory) {
    struct Batch {
        double end = 0;
        int first = 0, past = 0;
        bool operator>(const Batch& other) const { return end > other.end; }
    };
    Traffic traffic(setup, load);
    const double speed = load.speed > 0 ? load.speed : 1;
    const auto servers = static_cast<std::size_t>(load.servers);
    double clock = 0;
    int head = 0;
    std::vector<Batch> running;  // a heap, the next to end in front
    const auto enter = [&](int id, const RequestDraw&) { traffic.sample_queue(id, id - head); };
    traffic.start(enter);
    while (!traffic.done()) {
        traffic.arrive(clock, enter);
        while (running.size() < servers && traffic.issued() > head) {
            const int waiting = traffic.issued() - head;
            const double share = std::ceil(static_cast<double>(waiting) / static_cast<double>(servers));
            const int n = static_cast<int>(std::min(share, memory.max_batch));
            const double dt = batch_seconds(setup, n) * speed;
            traffic.steps(1, n, dt);
            running.push_back({clock + dt, head, head + n});
            std::push_heap(running.begin(), running.end(), std::greater<>());
            head += n;
        }
        const double done_at = running.empty() ? kNever : running.front().end;
        const double next = std::min(done_at, traffic.next_arrival());
        if (next == kNever) break;
        traffic.pass(next - clock, !running.empty());
        clock = next;
        if (done_at > clock) continue;
        std::pop_heap(running.begin(), running.end(), std::greater<>());
        const Batch batch = running.back();
        running.pop_back();
        traffic.produced(batch.past - batch.first);
        for (int id = batch.first; id < batch.past; ++id) traffic.finish(id, clock, 1, clock, enter);
    }
    return traffic.report(clock, false);
}

// A prompt of millions of tokens is read in hundreds of steps, each of which is simulated: a search would take minutes.
// Fewer such requests show the same steady state; up to about 100,000 tokens a prompt as many as were asked for.
ServingLoad bounded(const ServingSetup& setup, ServingLoad load, const ServingMemory& memory) {
    constexpr double kPromptSteps = 100'000, kLeast = 200;
    if (setup.policy != SchedulerPolicy::chunked || load.whole_run || load.rounds > 0) return load;
    const double chunks = std::ceil(setup.prompt_tokens / std::max(std::floor(memory.token_budget), 1.0));
    if (chunks * load.requests > kPromptSteps)
        load.requests = std::min(load.requests, static_cast<int>(std::max(kLeast, kPromptSteps / chunks)));
    return load;
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
    if (!setup.decoder)
        return load.servers > 1 ? simulate_pool(setup, load, memory) : simulate_batches(setup, load, memory);
    return Engine(setup, shape, bounded(setup, load, memory), memory).run();
}

}  // namespace stoker
