// Watching a run from the terminal: its log on stdout, where it stands on stderr, until it has ended.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/client/client.h"
#include "app/session.h"
#include "io/clock.h"
#include "io/stop_signal.h"
#include "io/terminal.h"
#include "server/views.h"

namespace stoker {

struct FollowOptions {
    bool logs = true;        // print them
    bool all_ranks = false;  // each line with its rank; else rank 0 only
    int rank = 0;            // which, when not all
    int attempt = 0;         // only this one; 0: each as it comes
    std::string from;        // cursor to begin at; empty: the beginning
    bool states = true;      // changes of state on stderr
    bool until_end = true;   // false: ends when there is nothing more at the moment
    std::string search;      // lines with this text only
    bool may_wait = true;    // false: ends when no machine that there is could ever start it
};

// Reads logs piece by piece; one for each rank of each run that is watched.
class LogReader {
public:
    LogReader(std::string run, int rank, int attempt, std::string from)
        : run_(std::move(run)),
          rank_(rank),
          fixed_(attempt > 0),
          attempt_(attempt > 0 ? attempt : 1),
          cursor_(std::move(from)) {}
    // What has come since; goes on to the next attempt when this one has ended and there is one.
    Result<std::string> read(Client& client);
    bool at_end() const { return at_end_; }  // nothing more comes of the last attempt

private:
    // Nothing: there is no such log.
    Result<std::optional<HttpResponse>> piece(Client& client, int attempt, const std::string& cursor) const;

    std::string run_;
    int rank_;
    bool fixed_;
    int attempt_;
    std::string cursor_;
    bool at_end_ = false;
};

class Follower {
public:
    // `reconnect` is asked for another client when this one's server has gone; an error ends the watching.
    using Reconnect = std::function<Result<Client*>()>;
    Follower(Session& session, Client& client, FollowOptions options, Reconnect reconnect = {})
        : session_(session),
          client_(&client),
          options_(std::move(options)),
          reconnect_(std::move(reconnect)),
          progress_(!session.quiet && options_.states) {}

    // Until the run has ended, or until `stop` says so: then `interrupted()` and the view as it is.
    Result<api::RunView> follow(RunId run, StopSignal* stop);
    bool interrupted() const { return interrupted_; }
    bool hopeless() const { return hopeless_; }  // it waits for machines that there are not
    Client& client() { return *client_; }

private:
    Result<api::RunView> look(RunId run);
    Status print_logs(const api::RunView& view);
    Status print_one(const std::string& run, int rank, const std::string& prefix);
    void tell_states(const api::RunView& view);
    void tell_progress(const api::RunView& view);
    Status say(const std::string& text);

    Session& session_;
    Client* client_;
    FollowOptions options_;
    Reconnect reconnect_;
    ProgressLine progress_;
    std::map<std::pair<std::string, int>, LogReader> readers_;
    std::map<std::string, std::string> unfinished_;  // last line of a log, not ended yet
    std::map<std::string, std::string> told_;        // states that were told, by step
    double began_s_ = monotonic_seconds();
    bool interrupted_ = false, hopeless_ = false, logs_at_end_ = true;
};

// "running", in its colour.
std::string state_text(const Style& style, const api::RunItem& run);
// "step 741/1000  231 ms/step  loss 2.31  eta 1 min": what the last metrics say; empty: they say nothing.
std::string progress_text(const api::RunView& view, double* share);
// Nothing that there is would start it, even idle, and nothing is away that may come back.
bool never_fits(const api::RunView& view);
// Exit code of a command that waited for this run.
int exit_code_of(const api::RunItem& run);

}  // namespace stoker
