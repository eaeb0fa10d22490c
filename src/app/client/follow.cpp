#include "app/client/follow.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "app/client/output.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr double kLookEvery = 0.3, kFirstLookS = 5;  // seconds
constexpr int kPieceBytes = 1 << 18;
constexpr std::size_t kLongestLine = 1 << 16, kMostAtOnce = 1 << 20;

std::int64_t number_of_why(const api::RunView& view, const char* name) {
    const auto found = view.why->numbers.find(name);
    return found == view.why->numbers.end() ? 0 : found->second;
}

bool waits_for_machines(const api::RunView& view) {
    return view.why && view.why->code == Cause::capacity_none && view.run.state == RunState::queued;
}

// A server that has just started has looked at no machine yet. That is nothing to tell, unless it stays so.
bool first_look(const api::RunView& view) {
    return waits_for_machines(view) && number_of_why(view, "nodes") == 0 && number_of_why(view, "nodes_away") == 0;
}

double metric(const api::RunView& view, const char* name) {
    const auto found = view.metrics.find(name);
    return found == view.metrics.end() ? std::nan("") : found->second;
}

}  // namespace

Result<std::optional<HttpResponse>> LogReader::piece(Client& client, int attempt, const std::string& cursor) const {
    auto response =
        client.raw({.target = fmt::format("/api/v1/runs/{}/logs?rank={}&attempt={}&limit={}{}{}", run_, rank_, attempt,
                                          kPieceBytes, cursor.empty() ? "" : "&offset=", url_encoded(cursor))});
    if (response) return std::optional(std::move(*response));
    // It has not started yet, or was refused before it wrote anything, or there is no such attempt.
    if (response.error().kind() == ErrorKind::not_found) return std::optional<HttpResponse>();
    return response.error();
}

Result<std::string> LogReader::read(Client& client) {
    std::string text;
    at_end_ = false;
    for (;;) {
        const auto answer = piece(client, attempt_, cursor_);
        // What was read before the server went is not read again: it is printed, and the next call tells.
        if (!answer && !text.empty()) return text;
        if (!answer) return answer.error();
        const auto& here = *answer;
        bool ended = !here;
        if (here) {
            text += here->body;
            if (const auto next = here->headers.find("Stoker-Log-Next")) cursor_ = std::string(*next);
            const auto end = here->headers.find("Stoker-Log-End");
            ended = end && *end == "true";
            if (!ended && !here->body.empty() && text.size() < kMostAtOnce) continue;
            if (!ended) return text;
        }
        if (!fixed_) {
            const auto after = piece(client, attempt_ + 1, "");
            if (!after && !text.empty()) return text;
            if (!after) return after.error();
            if (*after) {
                ++attempt_;
                cursor_.clear();
                continue;
            }
        }
        at_end_ = here.has_value();
        return text;
    }
}

Status Follower::say(const std::string& text) {
    progress_.clear();
    return print_now(text);
}

Status Follower::print_one(const std::string& run, int rank, const std::string& prefix) {
    const auto key = std::make_pair(run, rank);
    auto reader = readers_.find(key);
    if (reader == readers_.end())
        reader = readers_.emplace(key, LogReader(run, rank, options_.attempt, options_.from)).first;
    TRY(const std::string text, reader->second.read(*client_));
    if (!reader->second.at_end()) logs_at_end_ = false;
    if (text.empty()) return done();
    if (prefix.empty() && options_.search.empty()) return say(text);
    // Whole lines only, since those of several ranks are mixed.
    std::string& rest = unfinished_[prefix + run + std::to_string(rank)];
    rest += text;
    std::string out;
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
        const std::string_view line(rest.data() + begin, end - begin);
        if (options_.search.empty() || line.find(options_.search) != std::string_view::npos)
            out += fmt::format("{}{}\n", prefix, line);
        begin = end + 1;
    }
    rest.erase(0, begin);
    if (rest.size() > kLongestLine) {
        out += fmt::format("{}{}\n", prefix, rest);
        rest.clear();
    }
    return out.empty() ? done() : say(out);
}

Status Follower::print_logs(const api::RunView& view) {
    logs_at_end_ = true;
    if (view.run.kind == RunKind::graph) {
        for (const api::StepView& step : view.steps) {
            if (step.state == RunState::queued) continue;
            TRY_VOID(print_one(step.run.text(), 0, fmt::format("{} | ", step.step)));
        }
        return done();
    }
    if (view.attempts.empty()) return done();
    if (!options_.all_ranks) return print_one(view.run.id.text(), options_.rank, "");
    for (int rank = 0; rank < view.run.ranks; ++rank)
        TRY_VOID(print_one(view.run.id.text(), rank, fmt::format("{} | ", rank)));
    return done();
}

void Follower::tell_states(const api::RunView& view) {
    if (!options_.states || session_.quiet) return;
    if (first_look(view) && monotonic_seconds() - began_s_ < kFirstLookS) return;
    // `kind` is what is new or not: of a countdown one line is enough.
    const auto tell = [&](const std::string& name, const std::string& text, const std::string& kind = {}) {
        if (told_[name] == (kind.empty() ? text : kind)) return;
        told_[name] = kind.empty() ? text : kind;
        progress_.clear();
        fmt::print(stderr, "{:<8} {}\n", name, text);
    };
    std::string text(to_string(view.run.state));
    if (!is_terminal(view.run.state) && view.why && !view.why->text.empty()) text += ": " + view.why->text;
    if (view.run.attempts > 1 && view.run.state == RunState::running)
        text += fmt::format(
            ", attempt {}{}", view.run.attempts,
            view.attempts.back().resume_step > 0 ? fmt::format(" from step {}", view.attempts.back().resume_step) : "");
    const bool counts_down = view.why && view.why->code == Cause::backing_off;
    if (!is_terminal(view.run.state))
        tell(view.run.id.text(), text, counts_down ? fmt::format("again {}", view.run.attempts) : "");
    for (const api::StepView& step : view.steps) {
        if (step.state == RunState::queued) continue;
        tell(step.step,
             std::string(to_string(step.state)) + (is_terminal(step.state) && step.state != RunState::succeeded
                                                       ? fmt::format(" ({})", to_string(step.cause))
                                                       : ""));
    }
}

std::string progress_text(const api::RunView& view, double* share) {
    const double step = metric(view, "step"), step_s = metric(view, "step_s"), loss = metric(view, "loss");
    if (std::isnan(step)) return {};
    double steps = metric(view, "steps");
    if (std::isnan(steps) && view.spec.prediction) steps = view.spec.prediction->steps;
    std::string text = fmt::format("step {:.0f}", step);
    if (share != nullptr) *share = -1;
    if (steps >= step && steps > 0) {
        text += fmt::format("/{:.0f}", steps);
        if (share != nullptr) *share = step / steps;
    }
    if (step_s > 0) text += fmt::format("  {}/step", format_seconds(Seconds(step_s)));
    if (!std::isnan(loss)) text += fmt::format("  loss {:.3f}", loss);
    if (steps >= step && step_s > 0) text += fmt::format("  eta {}", format_seconds(Seconds((steps - step) * step_s)));
    if (view.checkpoints && view.checkpoints->newest) text += fmt::format("  ckpt {}", view.checkpoints->newest->step);
    return text;
}

void Follower::tell_progress(const api::RunView& view) {
    double share = -1;
    std::string text = progress_text(view, &share);
    if (view.run.kind == RunKind::graph && !view.steps.empty()) {
        std::size_t ended = 0;
        for (const api::StepView& step : view.steps) ended += is_terminal(step.state) ? 1 : 0;
        share = static_cast<double>(ended) / static_cast<double>(view.steps.size());
        text = fmt::format("{} of {} steps", ended, view.steps.size());
    }
    if (!text.empty()) progress_.update(share, view.run.id.text() + "  " + text);
}

Result<api::RunView> Follower::look(RunId run) {
    for (int tries = 0;; ++tries) {
        auto document = client_->get("/api/v1/runs/" + run.text());
        if (document) {
            Problems problems;
            api::RunView view;
            codec::read(document->root(), "", view, problems);
            if (!problems.empty()) return Error(ErrorKind::internal, std::move(problems));
            return view;
        }
        const ErrorKind kind = document.error().kind();
        if ((kind != ErrorKind::unavailable && kind != ErrorKind::timed_out) || !reconnect_ || tries == 3)
            return document.error();
        TRY(client_, reconnect_());
    }
}

Result<api::RunView> Follower::follow(RunId run, StopSignal* stop) {
    for (;;) {
        TRY(api::RunView view, look(run));
        if (!options_.may_wait && never_fits(view)) {
            hopeless_ = true;
            progress_.clear();
            return view;
        }
        tell_states(view);
        if (options_.logs) {
            const Status printed = print_logs(view);
            const bool server_gone = !printed && (printed.error().kind() == ErrorKind::unavailable ||
                                                  printed.error().kind() == ErrorKind::timed_out);
            if (!printed && !(server_gone && reconnect_)) return printed.error();
        }
        const bool over = is_terminal(view.run.state) || !options_.until_end;
        if (over && (!options_.logs || logs_at_end_ || !options_.until_end || view.attempts.empty())) {
            progress_.clear();
            return view;
        }
        tell_progress(view);
        if (stop != nullptr) {
            if (stop->wait_for(over ? 0.05 : kLookEvery)) {
                interrupted_ = true;
                progress_.clear();
                return view;
            }
        } else {
            struct timespec pause {
                0, static_cast<long>(kLookEvery * 1e9)
            };
            ::nanosleep(&pause, nullptr);
        }
    }
}

std::string state_text(const Style& style, const api::RunItem& run) {
    const std::string text(to_string(run.state));
    switch (run.state) {
        case RunState::succeeded:
        case RunState::running: return style.good(text);
        case RunState::failed:
        case RunState::expired: return style.bad(text);
        case RunState::requeued:
        case RunState::checkpointing:
        case RunState::cancelling:
        case RunState::cancelled: return style.warn(text);
        default: return text;
    }
}

bool never_fits(const api::RunView& view) {
    return waits_for_machines(view) && number_of_why(view, "nodes") > 0 && number_of_why(view, "nodes_away") == 0;
}

int exit_code_of(const api::RunItem& run) {
    return run.state == RunState::succeeded ? 0 : 1;
}

}  // namespace stoker
