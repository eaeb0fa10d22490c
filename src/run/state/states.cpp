#include "run/state/states.h"

#include <fmt/format.h>

#include "base/cause.h"

namespace stoker {
namespace {

using R = RunState;
using RE = RunEvent;
constexpr std::array kRunTransitions = {
    RunTransition{std::nullopt, RE::submit, R::queued, "submitted_at is set, once and for all"},
    RunTransition{R::queued, RE::admit, R::starting, "places are taken, an attempt begins, its launch is intended"},
    // A graph holds no place itself: it runs while its steps do.
    RunTransition{R::queued, RE::all_ready, R::running, "of a graph: its first step began"},
    RunTransition{R::queued, RE::succeed, R::succeeded, "of a graph: every step ended well"},
    RunTransition{R::queued, RE::give_up, R::failed, "of a graph: a step failed"},
    RunTransition{R::queued, RE::dependency_failed, R::cancelled, "cause dependency"},
    RunTransition{R::queued, RE::exhaust, R::expired, "lifetime or lease was over before it could start again"},
    RunTransition{R::queued, RE::cancel, R::cancelled, "nothing ran"},
    RunTransition{R::starting, RE::all_ready, R::running, "every rank runs"},
    RunTransition{R::starting, RE::notice, R::checkpointing, "the deadline is kept; ranks are signalled once they run"},
    RunTransition{R::starting, RE::succeed, R::succeeded, ""},
    RunTransition{R::starting, RE::retry, R::requeued, "back-off by cause"},
    RunTransition{R::starting, RE::give_up, R::failed, "no restart or attempt is left"},
    RunTransition{R::starting, RE::exhaust, R::expired, ""},
    RunTransition{R::starting, RE::cancel, R::cancelling, "TERM, grace, KILL"},
    RunTransition{R::running, RE::notice, R::checkpointing, "every rank is signalled, the deadline is kept"},
    RunTransition{R::running, RE::succeed, R::succeeded, ""},
    RunTransition{R::running, RE::retry, R::requeued, "back-off by cause; resume point is the newest checkpoint"},
    RunTransition{R::running, RE::give_up, R::failed, "no restart or attempt is left"},
    RunTransition{R::running, RE::exhaust, R::expired, "timeout or lease"},
    RunTransition{R::running, RE::cancel, R::cancelling, "TERM, grace, KILL"},
    RunTransition{R::checkpointing, RE::withdraw, R::running, "the notice was taken back and everything still runs"},
    RunTransition{R::checkpointing, RE::succeed, R::succeeded, "it was done before the deadline"},
    RunTransition{R::checkpointing, RE::retry, R::requeued, "resume point is the newest checkpoint"},
    RunTransition{R::checkpointing, RE::give_up, R::failed, "no restart or attempt is left"},
    RunTransition{R::checkpointing, RE::exhaust, R::expired, "timeout or lease"},
    RunTransition{R::checkpointing, RE::cancel, R::cancelling, "TERM, grace, KILL"},
    RunTransition{R::requeued, RE::back_off_over, R::queued, "keeps its place by the time of submission"},
    RunTransition{R::requeued, RE::exhaust, R::expired, "timeout or lease"},
    RunTransition{R::requeued, RE::cancel, R::cancelled, "nothing ran"},
    RunTransition{R::cancelling, RE::attempt_ended, R::cancelled, "every process is gone"},
    RunTransition{R::cancelling, RE::succeed, R::succeeded, "it was done before the signal came"},
};

using A = AttemptState;
using AE = AttemptEvent;
constexpr std::array kAttemptTransitions = {
    AttemptTransition{std::nullopt, AE::place, A::launching, "all ranks have a place; the launch is sent"},
    AttemptTransition{A::launching, AE::all_ready, A::running, "every rank runs"},
    AttemptTransition{A::launching, AE::refuse, A::ended, "a definite no: nothing runs"},
    AttemptTransition{A::launching, AE::end, A::ending, "all ranks are ended"},
    AttemptTransition{A::running, AE::end, A::ending,
                      "first failed rank, lost node, deadline, cancellation, or all ranks done"},
    AttemptTransition{A::ending, AE::gone, A::ended, "no process is left: the places are free"},
};

template <class State, class Event>
std::optional<State> look_up_transition(std::span<const Transition<State, Event>> table, std::optional<State> from,
                                        Event event) {
    for (const auto& row : table)
        if (row.from == from && row.event == event) return row.to;
    return std::nullopt;
}

template <class State, class Event>
std::string transition_table(std::span<const Transition<State, Event>> table) {
    std::string text = "| from | event | to | effects |\n|---|---|---|---|\n";
    for (const auto& row : table)
        text += fmt::format("| {} | {} | {} | {} |\n", row.from ? to_string(*row.from) : "-", to_string(row.event),
                            to_string(row.to), row.effects);
    return text;
}

// How health.h and the core move nodes.
constexpr std::string_view kNodeTable =
    "| from | event | to | effects |\n|---|---|---|---|\n"
    "| - | first seen, no gate | ready | |\n"
    "| -, lost | seen, gate on | checking | it is checked when nothing runs there; it takes nothing before |\n"
    "| checking, quarantined | check passed | ready | |\n"
    "| checking, quarantined | check warned or skipped | ready | no gang over several nodes |\n"
    "| ready, checking, suspect | check failed | quarantined | cause node_unhealthy: nothing new, what runs goes on; "
    "checked again after 1 min, 2 min ... 1 h |\n"
    "| ready | slowest of 3 different gangs in 30 days | suspect | cause node_lemon: no gang over several nodes |\n"
    "| any but lost | a person says it was repaired | checking | cause node_repaired; without a gate: ready |\n"
    "| checking | third repair in 30 days | quarantined | cause node_lemon, until a person says ready |\n"
    "| checking, quarantined, suspect | a person says ready | ready | cause node_override, until the next check or "
    "boot |\n"
    "| any but lost | a person drains it, or it is to be evicted, or is not listed | draining | nothing new |\n"
    "| draining | that is over | what its check says | |\n"
    "| any | the driver says it is lost, or it rebooted | lost | its ranks are lost |\n"
    "| lost | seen again, no gate | ready | quarantined or suspect when its history says so |\n";

}  // namespace

std::span<const RunTransition> run_transitions() {
    return kRunTransitions;
}
std::span<const AttemptTransition> attempt_transitions() {
    return kAttemptTransitions;
}

std::optional<RunState> next_state(std::optional<RunState> from, RunEvent event) {
    return look_up_transition(run_transitions(), from, event);
}
std::optional<AttemptState> next_state(std::optional<AttemptState> from, AttemptEvent event) {
    return look_up_transition(attempt_transitions(), from, event);
}

std::string states_markdown() {
    std::string text =
        "# States and causes\n\n<!-- stoker schema states writes this page -->\n\n"
        "What is not in these tables does not happen: asked for, it is a conflict.\n\n## Run\n\n" +
        transition_table(run_transitions()) + "\n## Attempt\n\n" + transition_table(attempt_transitions()) +
        "\n## Node\n\n" + std::string(kNodeTable) +
        "\n## Causes\n\nWhy something waits, was refused or ended.\n\n| cause | meaning |\n|---|---|\n";
    for (const Cause cause : all_causes()) text += fmt::format("| `{}` | {} |\n", to_string(cause), meaning_of(cause));
    return text;
}

}  // namespace stoker
