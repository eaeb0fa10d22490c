// The lives of a run and of an attempt, as tables. What is not in the table does not happen: asked for from outside it
// is a conflict, decided by ourselves it is a bug.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

enum class RunState : std::uint8_t {
    queued,
    starting,
    running,
    checkpointing,  // was told that it will be stopped
    requeued,       // a try failed; waits before it queues again
    cancelling,
    succeeded,
    failed,
    cancelled,
    expired,
};
enum class RunEvent : std::uint8_t {
    submit,
    admit,
    all_ready,
    notice,
    succeed,
    retry,
    give_up,
    exhaust,
    back_off_over,
    dependency_failed,
    cancel,
    attempt_ended,
    withdraw,
};

enum class AttemptState : std::uint8_t { launching, running, ending, ended };
enum class AttemptEvent : std::uint8_t { place, all_ready, refuse, end, gone };

template <class State, class Event>
struct Transition {
    std::optional<State> from;  // nothing: the object comes into being
    Event event;
    State to;
    std::string_view effects;  // for the page of the documentation
};
using RunTransition = Transition<RunState, RunEvent>;
using AttemptTransition = Transition<AttemptState, AttemptEvent>;

std::span<const RunTransition> run_transitions();
std::span<const AttemptTransition> attempt_transitions();

std::optional<RunState> next_state(std::optional<RunState> from, RunEvent event);
std::optional<AttemptState> next_state(std::optional<AttemptState> from, AttemptEvent event);

constexpr bool is_terminal(RunState state) {
    return state >= RunState::succeeded;
}

constexpr std::array<std::pair<RunState, std::string_view>, 10> enum_names(RunState) {
    return {{{RunState::queued, "queued"},
             {RunState::starting, "starting"},
             {RunState::running, "running"},
             {RunState::checkpointing, "checkpointing"},
             {RunState::requeued, "requeued"},
             {RunState::cancelling, "cancelling"},
             {RunState::succeeded, "succeeded"},
             {RunState::failed, "failed"},
             {RunState::cancelled, "cancelled"},
             {RunState::expired, "expired"}}};
}
constexpr std::array<std::pair<RunEvent, std::string_view>, 13> enum_names(RunEvent) {
    return {{{RunEvent::submit, "submit"},
             {RunEvent::admit, "admit"},
             {RunEvent::all_ready, "all_ready"},
             {RunEvent::notice, "notice"},
             {RunEvent::succeed, "succeed"},
             {RunEvent::retry, "retry"},
             {RunEvent::give_up, "give_up"},
             {RunEvent::exhaust, "exhaust"},
             {RunEvent::back_off_over, "back_off_over"},
             {RunEvent::dependency_failed, "dependency_failed"},
             {RunEvent::cancel, "cancel"},
             {RunEvent::attempt_ended, "attempt_ended"},
             {RunEvent::withdraw, "withdraw"}}};
}
constexpr std::array<std::pair<AttemptState, std::string_view>, 4> enum_names(AttemptState) {
    return {{{AttemptState::launching, "launching"},
             {AttemptState::running, "running"},
             {AttemptState::ending, "ending"},
             {AttemptState::ended, "ended"}}};
}
constexpr std::array<std::pair<AttemptEvent, std::string_view>, 5> enum_names(AttemptEvent) {
    return {{{AttemptEvent::place, "place"},
             {AttemptEvent::all_ready, "all_ready"},
             {AttemptEvent::refuse, "refuse"},
             {AttemptEvent::end, "end"},
             {AttemptEvent::gone, "gone"}}};
}
template <class E>
requires requires(E value) {
    enum_names(value);
}
constexpr std::string_view to_string(E value) {
    for (const auto& [each, name] : enum_names(value))
        if (each == value) return name;
    return "?";
}

// Both tables in Markdown.
std::string states_markdown();

}  // namespace stoker
