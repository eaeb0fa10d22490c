// Seconds of one pass of the engine over mixed work, with all that is constant in a replica computed once.
// The simulator's inner loop: no allocation, a few dozen flops.
#pragma once

#include "sizing/collectives.h"
#include "sizing/serving.h"

namespace stoker {

// The work of one step. Pairs are (query, key) pairs of the prompts' attention; reads are the cached tokens they load.
struct StepWork {
    double decode = 0;        // sequences that get one token each
    double context = 0;       // sum of their contexts
    double queries = 1;       // tokens of a sequence that look at its context together: guesses that are checked
    double prompt = 0;        // prompt tokens
    double prompt_pairs = 0;  // sum over prompts of n (context before + n / 2)
    double prompt_reads = 0;  // sum over prompts of context before + n
    double sampled = 0;       // prompts that end in this step and so need logits

    void add_prompt(double n, double before, bool ends) noexcept {
        prompt += n;
        prompt_pairs += n * (before + n / 2);
        prompt_reads += before + n;
        sampled += ends ? 1 : 0;
    }
};

struct StepTerms {
    double weight_read = 0, compute = 0;  // of the matmuls: the longer one counts
    double attention_read = 0, attention_compute = 0;
    double attention = 0;  // decode and prompts, each the longer of its two
    double matmul = 0;     // reading and computing, overlapped
    double vector = 0, communication = 0, launch = 0, host = 0;
    double floor = 0;  // of everything but the host
    double total() const noexcept {
        const double work = matmul + attention + vector + communication + launch;
        return (work > floor ? work : floor) + host;
    }
};

// What steps that only decode have in common while as many sequences do: all but what follows their contexts.
struct DecodeTerms {
    StepTerms plain, check;  // check: of the tokens that were guessed ahead
    bool known = false;
};

// Borrows the setup, which must outlive it.
class StepModel {
public:
    StepModel(const ServingSetup& setup, ReplicaShape shape) noexcept;
    StepTerms terms(const StepWork& work) const noexcept;
    // Where tokens are guessed ahead, of one token on average.
    double seconds(const StepWork& work) const noexcept {
        return setup_->guessed > 0 && work.decode > 0 ? guessed_seconds(work) : terms(work).total();
    }
    // The same of a step that only decodes, to the bit. `shared` is of as many sequences: simulations take millions of
    // such steps.
    double decode_seconds(const StepWork& work, DecodeTerms& shared) const noexcept;
    // Decode tokens per step from which the matmuls stop being bound by reading weights (dense models).
    double balance_batch() const noexcept;

private:
    const ServingSetup* setup_;
    ReplicaShape shape_;
    double guessed_seconds(const StepWork& work) const noexcept;
    StepWork to_check(const StepWork& work) const noexcept;
    double with_guesses(double plain, double check, double prompts) const noexcept;
    double idle_groups(const StepWork& work) const noexcept;
    void fill_shared(const StepWork& work, StepTerms& out) const noexcept;
    void add_attention(const StepWork& work, StepTerms& out) const noexcept;
    double reduce_s(double ranks, const Group& group, double bytes) const noexcept;

    Group group_, all_group_;
    bool stages_inside_ = true;
    double ranks_ = 1;  // that share experts and MLP
    double read_dense_s_ = 0, read_head_s_ = 0, read_encoder_s_ = 0,
           read_expert_s_ = 0;                                       // per pass; of one routed expert in all layers
    double decode_token_s_ = 0, prompt_token_s_ = 0, sample_s_ = 0;  // compute of one token
    double decode_pair_s_ = 0, prompt_pair_s_ = 0, kv_read_s_ = 0;   // per pair, per cached token
    double touched_log_ = 0;                                         // ln(1 - K/E)
    double expert_spread_ = 0;                                       // of the busiest rank, in deviations of one expert
    double prompt_attention_s_ = 0;                                  // of prompt_token_s_
    double expert_ramp_s_ = 0;                                       // of one touched expert in all layers
    double activation_bytes_ = 0, launch_s_ = 0, prompt_floor_s_ = 0, ramp_s_ = 0, vector_s_ = 0;
};

}  // namespace stoker
