// The core: commands become records, records go to the journal in one commit, and only then acknowledgements and
// effects leave. One thread, no clock, no driver: the caller brings the time and carries the effects out.
//
//     auto core = Core::open(journal, options, now);
//     Turn turn = core->turn(commands, now);   // one commit for all of them
//     ... answer turn.acks, start turn.effects on a pool, list if turn.list, come back by turn.wake_us
//
// After turn() returned an error the process has to end: the state may be ahead of the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "deploy/driver.h"
#include "govern/actor.h"
#include "govern/admission_rules.h"
#include "io/journal.h"
#include "run/decide/next_step.h"
#include "run/decide/recover.h"
#include "run/decide/schedule.h"
#include "run/state/state.h"

namespace stoker {

// Bytes; with these, the places of the largest gang fit into one record.
inline constexpr std::size_t kMaxNodeName = 64;

// From people.
struct Submit {
    RunSpec spec;
    std::string key;    // of idempotency: the same key and spec again give the same run
    bool held = false;  // from its first moment: it waits until it is released
};
struct CancelRun {
    RunId run;
};
struct HoldRun {
    RunId run;
    bool held = true;
};
// Another spec in place of the one that waits; what it has to be first is not changed by it.
struct EditRun {
    RunId run;
    RunSpec spec;
};
// The attempt is told and stopped `notice_s` later; the run queues again.
struct EvictRun {
    RunId run;
    std::int64_t notice_s = 30;
};
struct RenewLease {
    RunId run;
    std::int64_t stop_at_us = 0;  // cut at the hard maximum
};
// ready: whatever its check said. draining. checking: it was repaired.
struct SetNode {
    std::string node;
    NodeState state = NodeState::ready;
};
// Asks for a check as soon as nothing runs there.
struct CheckNode {
    std::string node;
    HealthLevel level = HealthLevel::quick;
};
// A new version of the configuration; the same words again change nothing. Its number comes back as Ack::version.
struct SetConfig {
    std::string text, note;
    std::optional<std::map<std::string, std::string>> overrides{};  // none: as they are
    std::optional<std::uint64_t> if_version{};                      // the newest has to be this one, else conflict
};
// A new organisation, with its first project; the organisation comes back as Ack::made.
struct MakeOrganisation {
    std::string name, project;
};
struct MakeProject {
    OrganisationId organisation;
    std::string name;
};
// Of a secret that the caller has drawn: only its SHA-256 comes here.
struct MakeKey {
    std::string name;
    bool service = false;
    Role role = Role::viewer;
    Level level = Level::project;
    ProjectId project = kDefaultProject;
    std::string sha256;  // in hex
    std::int64_t expires_us = 0;
    std::string node{};  // the only one that an agent's key tells of; empty: any
};
struct RevokeKey {
    KeyId key;
};
// A new key with the same rights; the old one ends then.
struct RotateKey {
    KeyId key;
    std::string sha256;  // of the new secret, in hex
    std::int64_t expires_us = 0, old_until_us = 0;
};
// A person, or a program's account, with a first role. The user comes back as Ack::made.
struct MakeUser {
    std::string name;
    bool service = false;
    RoleBinding role;
    std::string password{};  // its hash; empty: none
};
struct BindRole {
    UserId user;
    RoleBinding role;
    bool remove = false;
};
struct SetPassword {
    UserId user;
    std::string password;  // its hash
};
struct DisableUser {
    UserId user;
    bool disabled = true;
};
// By the user itself, who has shown who it is.
struct OpenLogin {
    UserId user;
    ProjectId project;
    std::string sha256;  // of the secret, in hex
    std::int64_t expires_us = 0;
};
struct CloseLogin {
    LoginId login;
};
// Of a level of the tree; an entry that says nothing takes away what is there.
struct SetQuota {
    QuotaEntry quota;
};
struct SetBudget {
    BudgetEntry budget;
    bool remove = false;
};
// What the account of a gateway settled since it was last charged; prices of the lines with their mark-ups are the
// core's. conflict: `after` is not where it was charged up to.
struct ChargeTokens {
    std::string account;
    std::uint64_t after = 0, up_to = 0;
    std::vector<TokensCharged::Line> lines;
};
inline constexpr std::int64_t kOwnKeyLongestS = std::int64_t{90} * 86'400;
// What may change while the server runs. Not written down: it follows from the configuration.
struct CoreLimits {
    // More wait: refused as exhausted.
    std::size_t max_queued = 50'000;
    // Ended runs that are kept, with their graphs' steps, and for how long; 0: for ever. Later ones push the oldest
    // out.
    std::size_t max_ended = 100'000;
    std::int64_t keep_ended_s = 0;
    PlacementPolicy policy = PlacementPolicy::best_fit;
    std::optional<HealthLevel> health{};                 // of the gate; none: there is none
    std::shared_ptr<const AdmissionPolicy> admission{};  // none: every run is taken
    std::int64_t lower_first_s = 0;                      // of BudgetScene::head_start_us
    std::int64_t own_key_longest_s = kOwnKeyLongestS;    // that people make for themselves; 0: they make none
    friend bool operator==(const CoreLimits&, const CoreLimits&) = default;
};
struct SetLimits {
    CoreLimits limits;
};
// By which usage is charged from here on. Not written down either: each charge names the book by its digest.
struct SetPrices {
    std::shared_ptr<const PriceBook> book;
    std::string digest;
};
// From drivers.
struct SawFact {
    Fact fact;
};
struct SawNodes {
    std::vector<NodeInfo> nodes;         // all there are
    std::vector<EngineState> engines{};  // of several, how each is; of one that does not answer no node is listed
};
struct Answered {
    OperationId operation;
    Outcome outcome;
};
struct Listed {
    Listing listing;  // asked_seq as it stood in Turn::list; nothing and not complete when the call failed
};
struct SawCheckpoints {
    RunId run;
    std::uint64_t asked = 0;             // as it stood in the Look
    std::optional<CheckpointView> view;  // none: the folder could not be read
};
// From the uploads. The first is written down before anything is sent; conflict: another one is under way.
struct BeginUpload {
    RunId run;
    std::int64_t step = 0;
    std::string url;
};
struct EndUpload {
    RunId run;
    std::int64_t step = 0, bytes = 0;
    std::string fault;  // empty: it is there
};
// A checkpoint is being fetched for a run that waits; not written down.
struct SawRestore {
    RunId run;
    std::uint64_t asked = 0;  // as it stood in the Look
    RestoreNote note;
};

struct SawImage {
    std::string image;  // as it stood in Turn::images
    Outcome outcome;    // of Driver::prepare
};

struct SawHealth {
    CheckWanted check;  // as it stood in Turn::checks
    HealthReport report;
};
// The node was the slowest of a gang over several; from the observer, once for an attempt that has ended.
struct BlameNode {
    AttemptId attempt;
    std::string node;
    double share = 0;  // of a step that it cost
};

using AnyCommandBody =
    std::variant<Submit, CancelRun, HoldRun, EditRun, EvictRun, RenewLease, SetNode, SawFact, SawNodes, Answered,
                 Listed, SawCheckpoints, SawImage, BeginUpload, EndUpload, SawRestore, CheckNode, SawHealth, BlameNode,
                 SetConfig, SetLimits, MakeOrganisation, MakeProject, MakeKey, RevokeKey, RotateKey, MakeUser, BindRole,
                 SetPassword, DisableUser, OpenLogin, CloseLogin, SetQuota, SetBudget, SetPrices, ChargeTokens>;
// As RecordBody (records.h): compiled once, in core.cpp.
struct CommandBody : AnyCommandBody {
    using AnyCommandBody::variant;
    CommandBody();
    CommandBody(const CommandBody&);
    CommandBody(CommandBody&&) noexcept;
    CommandBody& operator=(const CommandBody&);
    CommandBody& operator=(CommandBody&&) noexcept;
    ~CommandBody();
};

struct Command {
    CommandBody what;
    Actor actor{};  // the core itself
    std::string trace{};
    std::optional<std::uint64_t> if_version{};  // of the run; another one is a conflict
};

// What whoever sends it has to be allowed. A command that is not listed does not compile.
Right right_for(const Command& command);

struct Ack {
    RunId run;
    std::uint64_t version = 0;
    bool repeated = false;  // it had been done before
    std::string made{};     // "o-2", "p-3", "k-1"
};

// To be carried out once by a driver, whose outcome comes back as Answered.
struct Effect {
    OperationId operation;
    Verb verb = Verb::launch;
    AttemptId attempt;
    OperationId target;  // the launch that it acts on
    std::uint64_t epoch = 0;
    GangSpec gang;  // of a launch
    int signal = 0;
    std::int64_t grace_s = 0;
};

// What lies in the run's checkpoint folder is wanted, and comes back as SawCheckpoints. The folder may be on a machine
// that does not answer: nobody waits for it but the decision that needs it.
struct Look {
    RunId run;
    std::uint64_t asked = 0;
};

struct Turn {
    std::vector<Result<Ack>> acks;  // one for each command
    std::vector<Look> looks;
    std::vector<std::string> images;  // prepare(), and come back as SawImage
    std::vector<CheckWanted> checks;  // check(), and come back as SawHealth
    std::vector<Effect> effects;
    std::optional<std::uint64_t> list;  // list_ours(), and come back with this as asked_seq
    std::int64_t wake_us = 0;           // call turn() again by then; 0: when something happens
    std::vector<Record> records;        // what changed, for watchers
};

struct CoreOptions {
    std::string site = "local";  // five of [a-z2-7], drawn once at install
    std::string log_root;
    std::string engine;  // what this server drives; empty: a run may name any
    // Of this machine, for RunClock; empty: it goes by the wall clock alone.
    std::string boot_id;
    std::int64_t monotonic_us = 0;
    SchedulerOptions scheduler;
    // Told what the journal has, before anything else: refuses it, or says what it has lost; then `site` may be
    // another.
    std::function<Result<std::optional<JournalLost>>(const State&, std::string& site)> on_loaded;
    std::uint64_t snapshot_every = 10'000;         // records
    std::size_t snapshot_piece_bytes = 256 << 10;  // written at a time; about 4 ms
    // As CoreLimits.
    std::size_t max_queued = 50'000;
    std::size_t max_ended = 100'000;
    std::int64_t keep_ended_s = 0;
    std::shared_ptr<const AdmissionPolicy> admission{};
    std::int64_t own_key_longest_s = kOwnKeyLongestS;
    // Told why, before the program ends because its own state refuses a record: a bug of ours.
    std::function<void(const Error&)> on_bug;
};

class Core {
public:
    // Replays the journal and starts a new epoch.
    static Result<std::unique_ptr<Core>> open(Journal& journal, CoreOptions options, std::int64_t now_us);

    Result<Turn> turn(std::span<const Command> commands, std::int64_t now_us);

    const State& state() const { return state_; }
    const RunClock& clock() const { return *clock_; }  // as it began
    const SchedulerOptions& scheduler() const { return options_.scheduler; }
    void set_limits(const CoreLimits& limits);
    // Which engine carries the work out, as soon as that is known; binds: it chooses the nodes.
    void drives(std::string engine, bool binds, const std::vector<EngineState>& engines = {});
    // Nothing is started before everything outside was listed once.
    bool recovering() const { return recovering_; }

private:
    Core(Journal& journal, CoreOptions options) : journal_(journal), options_(std::move(options)) {}
    Status commit();

    Result<Ack> handle(const Command& command);
    Status admit(const Command& command) const;
    void acts(const Actor& actor, const std::string& trace);
    Result<Ack> on(const Submit& submit);
    Result<Ack> on(const CancelRun& cancel);
    Result<Ack> on(const HoldRun& hold);
    Result<Ack> on(const EditRun& edit);
    Result<Ack> on(const EvictRun& evict);
    Result<Ack> on(const RenewLease& renew);
    Result<Ack> on(const SetNode& set);
    Result<Ack> on(const SawFact& saw);
    Result<Ack> on(const SawNodes& saw);
    Result<Ack> on(const Answered& answered);
    Result<Ack> on(const Listed& listed);
    Result<Ack> on(const SawCheckpoints& saw);
    Result<Ack> on(const BeginUpload& begin);
    Result<Ack> on(const EndUpload& end);
    Result<Ack> on(const SawRestore& saw);
    void no_longer_unreadable(RunId run);
    Result<Ack> on(const SawImage& saw);
    Result<Ack> on(const CheckNode& check);
    Result<Ack> on(const SawHealth& saw);
    Result<Ack> on(const BlameNode& blame);
    Result<Ack> on(const SetConfig& set);
    Result<Ack> on(const SetLimits& set);
    Result<Ack> on(const MakeOrganisation& make);
    Result<Ack> on(const MakeProject& make);
    Result<Ack> on(const MakeKey& make);
    Result<std::int64_t> own_key_ends(const std::string& name, bool service, std::int64_t asked_us) const;
    Result<Ack> add_key(const MakeKey& make);
    Result<Ack> on(const RevokeKey& revoke);
    Result<Ack> on(const RotateKey& rotate);
    Result<Ack> on(const MakeUser& make);
    Result<Ack> on(const BindRole& bind);
    Result<Ack> on(const SetPassword& set);
    Result<Ack> on(const DisableUser& disable);
    Result<Ack> on(const OpenLogin& open);
    Result<Ack> on(const CloseLogin& close);
    Result<Ack> on(const SetQuota& set);
    Result<Ack> on(const SetBudget& set);
    Result<Ack> on(const ChargeTokens& charge);
    Result<Ack> on(const SetPrices& set);
    Status may_limit(const std::string& scope) const;
    bool bills() const;
    bool awaits_prices() const;
    void charge(RunId run);
    void charge_what_runs();
    void guard_budgets();

    RunId submit_one(RunSpec spec, std::string key, RunId parent, std::string step, std::vector<RunId> needs);
    RunId submit_all(const RunSpec& spec, const std::string& key, const std::vector<RunId>& after);
    void submit_next(const Run& run);
    void emit(RecordBody body);
    void look_again(RunId run);
    void settle();
    void fire_timers();
    void start_runs();
    void ask_for_images();
    void ask_for_checks();
    void back_to_work(const std::string& node);
    void judge(const std::string& node);
    bool may_check() const;
    void forget_runs();
    const CheckpointView* checkpoints_of(const Run& run);
    Status write_snapshot();
    void withdraw_notices(const std::string& node);
    void look_at_runs_on(const std::string& node);
    void remove_nodes(const std::set<std::string>& present);
    void use_engines(const std::vector<EngineState>& engines);
    Ack ack(RunId run) const;
    Effect effect_of(const OperationId& id, const Operation& operation) const;
    void order_listing(Turn& turn);
    std::int64_t wake_us() const;

    Journal& journal_;
    CoreOptions options_;
    State state_;
    std::optional<RunClock> clock_;
    std::int64_t now_us_ = 0;
    Actor actor_;
    std::string actor_text_ = "core", trace_;
    std::vector<Record> batch_;
    std::vector<JournalEntry> entries_;
    std::set<RunId> to_settle_;
    std::set<OperationId> to_start_;
    bool failed_ = false, recovering_ = true, listing_ = false, changed_ = true;
    std::int64_t begins_us_ = 0;  // a run that waits for its time; 0: none
    std::int64_t next_pass_us_ = 0, next_list_us_ = 0, last_list_us_ = 0;
    std::uint64_t snapshot_seq_ = 0;
    ListingMemory memory_;

    // What is known of checkpoint folders; forgotten at a restart, and then asked again.
    struct Looked {
        std::uint64_t asked = 0;
        std::int64_t asked_us = 0, answered_us = 0;  // 0: not yet
        std::size_t attempts = 0;                    // of the run, when it was asked
        bool leaving = false;                        // every rank had left when it was asked
        std::optional<CheckpointView> view;
    };
    std::map<RunId, Looked> looked_;
    std::vector<Look> looks_;
    std::uint64_t looks_made_ = 0;

    // Images that runs in the queue wait for, or have lately waited for; what is known of them is in
    // options_.scheduler.
    struct AskedImage {
        bool under_way = false;
        std::int64_t answered_us = 0;  // 0: not yet
    };
    std::map<std::string, AskedImage> asked_images_;
    std::vector<std::string> images_;

    AskedChecks asked_checks_;
    std::vector<CheckWanted> checks_;
    bool health_changed_ = true;
    std::int64_t next_check_us_ = 0, checks_after_us_ = 0;

    std::string prices_digest_;
    std::int64_t next_charge_us_ = 0, next_budget_us_ = 0;  // 0: with the next turn

    std::optional<StateWriter> snapshot_;  // while it is being written
    std::vector<std::string> piece_digests_;
    std::int64_t next_piece_us_ = 0;
};

}  // namespace stoker
