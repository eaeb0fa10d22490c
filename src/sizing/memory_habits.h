// What code bases do with memory beyond the arithmetic of tensors: in which precision they keep states, which buffers
// they hold beside them, what they keep of logits, and when gradients exist. Told by words that a framework's text has.
#pragma once

#include <string_view>

namespace stoker {

class Catalog;
struct TrainingSetup;

struct MemoryHabits {
    // Per trained parameter
    double held_bytes = 0;    // beside weights, gradients and optimizer, all the time: reduction buckets
    double update_bytes = 0;  // while the optimizer updates: temporaries of all parameters at once
    // Per logit, beside TrainingSetup::logit_bytes, once a step has several micro-batches: the last one's, not yet
    // released
    double logit_bytes_again = 0;
    // Per token and hidden element
    double undivided = 0;           // of each layer: what tensor parallelism leaves whole
    double undivided_pipeline = 0;  // the share of it that is left where there is a pipeline
    // Equal runs of one code base show two levels of it, none and this; the share of runs that have this. 0: one level.
    double undivided_most = 0, undivided_most_share = 0;
    double stage_bytes = 0;  // of each micro-batch in flight: what a stage keeps of its input and output
    // Of what full recompute keeps: 2 where the residual stream is FP32. Under ZeRO-3 the other, which counts the copy
    // that a cast of the input makes.
    double checkpoint_elements = 1, checkpoint_elements_sharded = 1;
    // Of a layer's activations, what selective recompute keeps where it is a policy over operators (PyTorch: every
    // second product is computed again, and all that is no product). 0: it computes the attention core again, nothing
    // else.
    double selective_kept = 0;
    // Per token and feed-forward element: gradients inside a layer while its backward pass runs
    double live_gradient_bytes = 2;
    // Per score of attention that is not fused, without dropout: of the softmax in 16 bits alone, 2
    double score_bytes = 5;
    // Experts that the sharder leaves alone: divided by the expert degree only, and kept in this share of the bytes per
    // parameter that the others have, since what it does not manage is not cast to FP32 either.
    bool experts_unsharded = false;
    double expert_state_share = 1;
    // 4-bit layers keep their input for the backward pass, frozen as they are (MatMul4Bit of bitsandbytes saves it).
    // Seen in litgpt's rows; runs of Hugging Face, which compute layers again, show nothing of it.
    bool keeps_quantised_inputs = false;
    // Per trained parameter: gradients of a ZeRO-3 run that every rank keeps whole until the last micro-batch of a
    // step, where the loop reduces once a step (no_sync of Accelerate, no_backward_sync of Fabric,
    // set_requires_gradient_sync(False) of FSDP2, which keeps them in the precision of the reduction). 0: reduced every
    // micro-batch.
    double accumulated_bytes = 0;
    // Trained parameters at most that flat buffers beside the gradients hold: reduction buckets of DeepSpeed.
    double bucket_parameters = 0;
    // What goes to the host with the optimizer under ZeRO-3 where a run is offloaded: weights and gradients as well
    // (CPUOffload of FSDP, offload_param of DeepSpeed).
    bool offloads_weights = false;
    bool whole_logits =
        false;  // tensor ranks hold all logits, as where the head's output is replicated before the loss
    // TrainingSetup::reserve_least of what moves under ZeRO-3. 0: as elsewhere.
    double reserve_least_sharded = 0;
    bool gradients_released = false;  // set to none after each step: absent until the backward pass makes them
    bool norms_in_parts = false;      // RMSNorm and the gate run operator by operator and keep each result
    bool stages_by_cost = false;      // a pipeline is cut by parameters, and the head counts as layers
};

// The kinds of code bases that differ.
enum class CodeBaseKind { other, megatron, nanotron, hugging_face, fsdp, deepspeed, litgpt, torchtune };
CodeBaseKind code_base_kind(std::string_view framework) noexcept;  // the text in lower case

// Sets setup.habits, and what follows from it for logits; called once for each setup.
void set_memory_habits(std::string_view framework, const Catalog& catalog, TrainingSetup& setup);

// NF4 with double quantisation: 4 bits, one 8-bit scale for 64 of them and one FP32 scale for 256 of those (arXiv
// 2305.14314).
inline constexpr double kDoubleQuantisedBytes = 0.5 + 1.0 / 64 + 4.0 / (64 * 256);

// How the states of the trained parameters are stored.
enum class StateStorage {
    sixteen_bit,  // weights, gradients and both moments in 16 bits, no master copy
    full,         // all in FP32; a 16-bit copy exists only while layers compute
};
void store_states(StateStorage storage, TrainingSetup& setup) noexcept;

}  // namespace stoker
