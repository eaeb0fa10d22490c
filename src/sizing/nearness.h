// How far what is asked lies from what somebody has measured and published: data/calibration/sources.tsv, counted from
// data/validation by ./dev fit --measured. Every 80 % interval grows with it.
#pragma once

#include <string>
#include <string_view>

#include "catalog/catalog.h"
#include "sizing/device.h"

namespace stoker {

enum class MeasuredWork { training, memory, serving };
std::string_view to_string(MeasuredWork work) noexcept;

// What makes one measured run like another, beside its size.
struct MeasuredCase {
    MeasuredWork work = MeasuredWork::training;
    std::string silicon, architecture, vendor;  // H100, Hopper, NVIDIA; of processors CPU, "", ""
    std::string stack;                          // measured_stack(); empty: nobody named one
    std::string network;                        // measured_network()
};
MeasuredCase measured_case(MeasuredWork work, const Device& device, std::string_view framework, const ModelSpec& model,
                           bool adapter);

// One name for the spellings of a code base or an engine: "HF Trainer FSDP; none / peft full" is hugging-face, NeMo and
// Megatron-Bridge are megatron. What is in no list is its own text in lower case.
std::string measured_stack(std::string_view framework);
// dense, experts, adapter, encoder or vision.
std::string_view measured_network(const ModelSpec& model, bool adapter) noexcept;

struct Nearness {
    // The mean over the three nearest sources, since one source is one opinion: what it errs by says little of the next
    // one of its kind. Of each, 0 where it has the same silicon, stack and kind of network, else the root of the sum of
    // squares of
    //   0.35 for another board of one die, 0.7 for another device of one architecture, 1 for one of the same vendor, 2
    //   for one of another;
    //   0.5 where no stack is named, 1 for another one;
    //   0.7 for experts or adapters against dense, 2 for any other kind of network;
    // half more where fewer than ten rows say it, and never more than 3.
    double distance = 3;
};
// `without`: a source whose rows are not counted, so that published rows get the interval that a stranger's would.
Nearness nearness(const MeasuredCase& asked, std::string_view without = {});

// What the logarithms of an interval's ends are multiplied by: interval_unseen_WORK, times 1 and interval_distance_WORK
// for each unit of distance, up to interval_distance_most. (A training step's also grows with the GPUs, sigma_scale.)
double interval_growth(const Catalog& catalog, MeasuredWork work, const Nearness& near);
// The same of a row that somebody published. Of a source that was looked at (it is in sources.tsv) it is narrower: the
// mechanisms of its kind were found with it in view, interval_known_WORK, times 1 and interval_known_distance_WORK for
// each unit of distance. Of one that nobody has seen it is wider than a plan's, since its words have to be read too:
// interval_stranger_WORK, times 1 and interval_stranger_distance_WORK.
double interval_growth_of_row(const Catalog& catalog, MeasuredWork work, const Nearness& near, std::string_view source);
bool is_looked_at(MeasuredWork work, std::string_view source);

// The interval with the logarithms of its ends multiplied.
Range grown(const Range& factors, double growth) noexcept;

}  // namespace stoker
