// What is known of each gang of a Kubernetes engine, from its Job and pods, what has been told of it, and what is to be
// done about it next. Thread-safe; asks nobody, and holds nothing that another one would not find by listing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "deploy/driver.h"
#include "deploy/kubernetes/manifest.h"
#include "deploy/kubernetes/objects.h"
#include "deploy/kubernetes/pod_measures.h"
#include "deploy/local/gang_end.h"
#include "readings/kube_fit.h"

namespace stoker::kubernetes {

enum class ChoreKind : std::uint8_t {
    admit,        // a gang: its pods may be made
    back_out,     // it held a part of its nodes for too long
    begin,        // `pods` are all that it needs: they, and no others, may begin
    go,           // `pods` have not been told to begin
    explain,      // why it waits
    look,         // its Job is over: which pods it had
    remove_pods,  // somebody deleted its Job
    finish_logs,  // its pods are over
    keep_end,     // its Job does not say yet how it ended, and until then nobody is told
};
struct Chore {
    ChoreKind kind = ChoreKind::explain;
    OperationId operation;
    std::vector<PodView> pods;
    JobView job;
    std::string end;  // of keep_end
};
// A container whose log is to be copied.
struct LogSource {
    OperationId operation;
    std::string pod, container, log_folder;
    int index = 0;  // of its pod
    std::int64_t most_bytes = 0;
    MeasuredContainer from;  // what its lines are measures of
};

class JobWatch {
public:
    // standstill_s: for so long no pod of several gangs that hold a part of their nodes got another; they wait for each
    // other then.
    explicit JobWatch(double gang_wait_s, double standstill_s = 30);

    // Which installation this is: others may have Jobs beside ours, which are theirs to see to. Until it is said, all
    // are.
    void mine(const std::string& site);
    bool knows_its_site() const;

    void see(const JobView& job);
    void see(const PodView& pod, bool gone = false);
    void lost_job(const OperationId& operation);  // it is not there any more
    // After a listing: whatever it had not is gone.
    void only_jobs(const std::set<OperationId>& there);
    void only_pods(const std::set<std::string>& uids);
    void only_pods_of(const OperationId& operation, const std::set<std::string>& uids);
    void forget(const OperationId& operation);

    std::optional<Outcome> refuse_epoch(std::uint64_t epoch);
    std::optional<JobView> job_of(const OperationId& operation) const;
    std::vector<PodView> pods_of(const OperationId& operation) const;  // that are there
    bool is_over(const OperationId& operation) const;
    bool is_looked_at(const OperationId& operation) const;  // by a container beside its ranks
    int pods_wanted(const OperationId& operation) const;
    bool another_is_admitted(const OperationId& operation) const;  // and holds a part of its nodes
    bool has_begun(const OperationId& operation) const;
    std::vector<Ours> known(const std::string& site) const;  // whose Jobs are there

    // More than one gang could be admitted, if there is room for them all.
    bool wants_room() const;
    // What is free, as it was read: what begins from here on is taken from it here.
    void take_room(KubeRoom room);

    std::vector<Chore> chores();
    std::vector<LogSource> logs_to_copy() const;
    // The words of a wait; told when they are others than before.
    void tell_wait(const OperationId& operation, Cause cause, const std::string& detail);
    void backed_out(const OperationId& operation);
    void logs_are_done(const OperationId& operation);
    void end_is_kept(const OperationId& operation, const std::string& end);

    // After the cursor, at most `most`; waits until there is one, until wake(), or until then.
    std::vector<Fact> facts_after(std::uint64_t cursor, std::size_t most, std::chrono::steady_clock::time_point until);
    void wake();
    // Until something was seen after `seen`, or then; the number of what was seen last.
    std::uint64_t wait_for_change(std::uint64_t seen, std::chrono::steady_clock::time_point until);

private:
    using Time = std::chrono::steady_clock::time_point;
    struct KnownPod {
        PodView view;
        bool gone = false;
        bool warned = false, taken_back = false;  // a notice was told; and is over
    };
    struct Gang {
        JobView job;
        bool there = false;  // its Job
        LaunchOrder order;
        PodShape shape;
        GangStatus status;
        Told told;
        bool looked = false;                   // its pods were listed, and no other may begin any more
        bool over = false, logs_done = false;  // over: its end was told
        std::optional<Time> admitted, ending;
        std::shared_ptr<const KubePod> pod;  // as its Job makes its pods
        std::size_t placed = 0;              // of its pods, and since when it is so many
        Time placed_at{};
        bool alone = false;  // it held a part of what others needed too: it is admitted beside none
        Time retry_at{}, explain_at{};
        std::map<std::string, KnownPod> pods;  // by uid
        std::vector<bool> ended_with_gang;     // by rank: after another one had
        Cause wait_cause = Cause::none;
        std::string wait_detail;
    };
    // The controller of Jobs may make a pod twice: where the answer to its making was lost, or after it was itself
    // started again. Only pods that the Job names begin.
    static bool may_begin(const Gang& gang, const PodView& pod);
    bool is_to_be_chosen_anew(const Gang& gang) const;
    std::vector<const KnownPod*> current(const Gang& gang) const;  // by index; null: none
    void judge(Gang& gang);
    void judge_ranks(Gang& gang);
    bool nothing_runs(const Gang& gang) const;
    bool needs_look(const Gang& gang) const;
    void end(Gang& gang);
    void tell_end(Gang& gang);
    void warn(Gang& gang);
    bool all_run(const Gang& gang) const;
    void add_chores(Gang& gang, Time now, bool its_turn, bool gives_back, std::vector<Chore>& chores);
    bool waits_for_turn(const Gang& gang) const;  // of ours, and none of its programs has begun
    void look_at_places(Gang& gang, Time now);
    void take_what_began();
    std::set<const Gang*> next_admitted(Time now, const std::vector<Gang*>& unplaced);
    void tell(Fact fact);
    void changed();
    bool is_mine(const OperationId& operation) const { return site_.empty() || operation.site == site_; }

    const std::chrono::steady_clock::duration gang_wait_, standstill_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable news_;
    std::string site_;
    std::map<OperationId, Gang> gangs_;
    KubeRoom room_;
    std::set<OperationId> in_room_;  // what they need is taken from it
    bool room_is_full_ = true;       // or not known
    std::map<std::uint64_t, Fact> facts_;
    std::uint64_t highest_epoch_ = 0, seen_ = 0;
    const std::uint64_t first_cursor_;
    std::uint64_t next_cursor_;
    bool woken_ = false;
};

}  // namespace stoker::kubernetes
