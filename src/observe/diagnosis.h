// Diagnoses: why a run is slower than planned. (A cause is why it waits or ended: base/cause.h.) Each is one rule over
// the evidence. To add one: a file in diagnoses/ with its function, and its row in diagnosis.cpp, which says what the
// diagnosis means to all who meet it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/health.h"
#include "observe/evidence.h"

namespace stoker {

struct DiagnosisRule;

// One figure that a rule looked at, for programs: what the lines of evidence say in words.
struct EvidenceFigure {
    std::string name;  // "input_share": stable
    double value = 0;
    std::string unit;                 // "s", "bytes/s", "of a step", "threads"
    std::optional<double> threshold;  // that it is held against; none: told for what it is
};
// When it was, in seconds since 1970, of a cause that has a time.
struct EvidenceSpan {
    double from_s = 0, to_s = 0;
};

// Where what a cause costs is inferred from other measures: between these, in seconds of a step.
struct CostRange {
    std::optional<double> low_s, high_s;
};

// What a rule found. `cost_s` is its part of a step, as far as it can be told; the gain of the fix is at most that.
struct Diagnosis {
    std::string what;                   // one line
    std::vector<std::string> evidence;  // figures with units
    double cost_s = 0;
    CostRange cost_range;  // where it is inferred; none: it was measured
    std::string fix;       // a command, or the line to change
    std::optional<int> rank;
    bool stops = false;  // nothing goes on, or will not for long: told first
    // Its program tells it, or does it at its own steps: no lack of processors, memory or disk explains it.
    bool own = false;
    std::vector<EvidenceFigure> figures;  // the same evidence for programs
    std::vector<EvidenceSpan> spans;      // when it was; empty: all the time
    const DiagnosisRule* rule = nullptr;  // whose it is; diagnose() fills it
    std::string_view name() const;
};
struct DiagnosisVerdict {
    // elsewhere: it is about what the run has none of (a GPU), and says nothing, not even what is missing
    enum class Kind : std::uint8_t { silent, ruled_out, found, elsewhere } kind = Kind::silent;
    std::string reason;  // silent: what is missing; ruled_out: the figure that speaks against it
    std::optional<Diagnosis> diagnosis;
};
using JudgeDiagnosis = DiagnosisVerdict (*)(const RunEvidence&);

// Where its cost lies: in each step; on top of steps (checkpoints); or in what steps that count have no part in.
// at_most: in each step, and nothing of it where the model is so by its nature. What could be better and is no fault:
// told after what is one, no part of a gap, no reason to learn nothing from a run or to fail a check.
enum class CostLies : std::uint8_t { within_step, beside_step, before_steady, at_most };
// Whether it clears the node of a rank that is late (explain/blame.h): what a job does to itself on that rank does; a
// quota, which stops no two ranks alike, does on whichever rank it was seen; what the node does to the rank does not.
enum class ClearsNode : std::uint8_t { on_that_rank, on_any_rank, never };

struct DiagnosisRule {
    std::string_view name;  // "starved-input": stable, for the API and what is kept
    HealthLayer layer = HealthLayer::model;
    JudgeDiagnosis judge = nullptr;
    CostLies cost = CostLies::within_step;
    ClearsNode clears = ClearsNode::on_that_rank;
    // That one rank is late. It follows from whatever else was found on that rank, too.
    bool late_rank = false;
    // Where one of these was found as well, this one is its symptom, and told after it whatever the two cost.
    std::vector<JudgeDiagnosis> follows_from = {};
    // Where one of these was found, this one says nothing that it does not: it is not told, unless the other explains
    // less than half of it, or is not the program's own and this one is.
    std::vector<JudgeDiagnosis> instead = {};
};
// Those about GPUs, which all stand behind the others (diagnoses/gpu_rules.cpp).
std::vector<DiagnosisRule> gpu_diagnosis_rules();
// In the order in which they are told where they cost the same.
const std::vector<DiagnosisRule>& diagnosis_rules();
const DiagnosisRule* find_diagnosis_rule(std::string_view name);  // none: of another version of stoker

struct Diagnoses {
    std::vector<Diagnosis> found;  // what stops the run, then the dearest first
    std::vector<std::pair<std::string_view, std::string>> ruled_out, not_known;
};
Diagnoses diagnose(const RunEvidence& evidence);

}  // namespace stoker
