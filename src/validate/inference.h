// A row of published inference, ready to run on any thread and with any constants.
#pragma once

#include <memory>
#include <vector>

#include "sizing/serving.h"
#include "validate/hardware.h"
#include "validate/lines.h"
#include "validate/request_lengths.h"
#include "validate/shape.h"

namespace stoker::validate {

enum class InferenceScenario : std::uint8_t {
    offline,          // all requests offered at once
    batch,            // one batch, generated to its end: output tokens/s
    batch_total,      // the same, input and output tokens/s
    batch_ttft,       // the prefill of one batch
    closed_loop,      // so many requests in flight
    open_loop,        // so many requests per second, whatever is in flight
    sequence,         // one sequence, prompt in pieces (llama-bench)
    stream,           // one request at a time: its latency
    server,           // the highest rate within the limits of a benchmark
    examples,         // examples/s of batches of one size
    offline_examples  // the same at the largest batch
};

struct InferenceRequest {
    std::vector<Line> lines;
    // What the setup is made from, so that it can be made again with other constants.
    Workload workload;
    std::shared_ptr<const Device> device;
    int accelerator = -1;  // of the catalogue; -1: a processor
    EngineEra era = EngineEra::current;
    double most_sequences = 0;  // as the row states it; 0: the engine's own limit
    bool make_room = false;     // a device that is too small is taken to be large enough
    std::shared_ptr<const ServingSetup> setup;
    ReplicaShape shape;
    InferenceScenario scenario = InferenceScenario::offline;
    double batch = 1, prompt = 1, output = 1, replicas = 1, chunk = 0, rate = 0;
    double requests = 0;                      // that one replica gets in all; 0: not told
    const RequestLengths* lengths = nullptr;  // how unequal they are; null: nearly alike
    double beams = 1;                         // sequences generated for each prompt
    double split = 1;                         // devices that hold a part of the layers each and wait for each other
    double burst_share = 0;                   // of a closed loop's requests
    bool engine_unmeasured = false;           // no constant is of this engine
    bool in_step = false;                     // the clients of a closed loop send together in every round
    LatencySpec limits;
    bool unfit = false;
};

// Of every row, in their order; `setup` is empty where the row is refused.
std::vector<InferenceRequest> inference_requests(const Csv& csv, Hardware& hardware, Shapes& shapes);
// The setup with the constants of `catalog`; false: the model has no shape.
bool take_setup(InferenceRequest& request, const Catalog& catalog);
// In the order of the lines.
std::vector<double> figures_of(const InferenceRequest& request);

}  // namespace stoker::validate
