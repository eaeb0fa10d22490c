// Who may do what in whose project, as the core sees it.
#include "run/core/core_testing.h"
#include "run/state/load_state.h"

namespace stoker {
namespace {

constexpr Tenant kNorth{{2}, {2}}, kSouth{{2}, {3}};

Actor caller_as(Role role, const Tenant& tenant = {}, Level level = Level::project) {
    return {.kind = PrincipalKind::user, .role = role, .level = level, .tenant = tenant, .name = "u-3"};
}

class TenantsTest : public CoreTest {
protected:
    // Nothing makes them yet but records: an organisation with two projects beside the one that is always there.
    void make_projects() {
        core_.reset();
        for (const RecordBody& body : std::vector<RecordBody>{
                 OrganisationMade{{2}, "hospital"}, ProjectMade{{2}, {2}, "north"}, ProjectMade{{3}, {2}, "south"}})
            put(body);
        open();
    }
    void put(const RecordBody& body, const std::string& actor = "token/admin") {
        State state;
        ASSERT_TRUE(load_state(*journal_, state).ok());
        const JournalEntry entry{.kind = kind_of(body),
                                 .format = 1,
                                 .object = state.object_of(body),
                                 .version = state.version_of(body),
                                 .actor = actor,
                                 .cause = "",
                                 .operation = "",
                                 .trace = "",
                                 .body = encode_body(body)};
        ASSERT_TRUE(journal_->append({&entry, 1}, now_us_));
    }
    Result<Ack> tell_as(Actor actor, decltype(Command::what) what) {
        const Command command{.what = std::move(what), .actor = std::move(actor)};
        now_us_ += kSecondUs;
        auto turn = core_->turn({&command, 1}, now_us_);
        if (!turn) return turn.error();
        turn_ = std::move(*turn);
        return turn_.acks[0];
    }
    std::string why_not_open() {
        core_.reset();
        const auto core = Core::open(*journal_, {.site = "tests"}, now_us_);
        return core ? "" : core.error().text();
    }
};

// Where a role is looked up once, at the API, the next way in forgets it: the core asks again, of every command.
TEST_F(TenantsTest, ACommandIsRefusedToWhoeverMayNot) {
    machine();
    const std::uint64_t seq = core_->state().seq;
    for (const Role role : {Role::viewer, Role::auditor}) {
        const auto refused = tell_as(caller_as(role), Submit{.spec = job()});
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.error().kind(), ErrorKind::denied);
        EXPECT_THAT(refused.error().text(), HasSubstr("may not submit runs"));
        EXPECT_THAT(refused.error().text(), HasSubstr("it takes developer, operator or admin"));
    }
    EXPECT_EQ(core_->state().seq, seq);  // a refusal leaves no record
    ASSERT_TRUE(tell_as(caller_as(Role::developer), Submit{.spec = job()}).ok());
    EXPECT_FALSE(tell_as(caller_as(Role::viewer), CancelRun{{1}}).ok());
    EXPECT_FALSE(tell_as(caller_as(Role::developer), EvictRun{{1}}).ok());
    // Nodes and the configuration are everybody's: it takes a role of the provider.
    EXPECT_FALSE(tell_as(caller_as(Role::admin), SetNode{"n1", NodeState::draining}).ok());
    EXPECT_FALSE(tell_as(caller_as(Role::admin), SetConfig{.text = "max_queued: 1\n", .note = ""}).ok());
    EXPECT_TRUE(tell_as(caller_as(Role::operator_, {}, Level::provider), SetNode{"n1", NodeState::draining}).ok());
    EXPECT_TRUE(tell_as(Actor::token("admin"), SetConfig{.text = "max_queued: 1\n", .note = ""}).ok());
}

// A caller who can say what a driver saw ends anybody's run, and starts it twice.
TEST_F(TenantsTest, NobodyButTheServerReports) {
    for (const auto& [role, name] : enum_names(Role{}))
        EXPECT_FALSE(tell_as(caller_as(role, {}, Level::provider), SawNodes{}).ok()) << name;
    EXPECT_TRUE(tell_as(Actor::part("driver"), SawNodes{}).ok());
}

// Whose run it is decides who sees it and who pays: it must not get lost on the way to the disk and back.
TEST_F(TenantsTest, ARunBelongsToTheProjectInWhichItWasSubmitted) {
    make_projects();
    machine();
    RunSpec graph;
    graph.name = "graph";
    graph.kind = RunKind::graph;
    graph.steps = {{.name = "a", .depends_on = {}, .run = job()}};
    ASSERT_TRUE(tell_as(caller_as(Role::developer, kNorth), Submit{.spec = graph}).ok());
    ASSERT_TRUE(tell_as(Actor::token("admin"), Submit{.spec = job()}).ok());
    const auto check = [&](const State& state) {
        for (const RunId id : {RunId{1}, RunId{2}}) {
            EXPECT_EQ(state.find(id)->project, kNorth.project) << id.text();
            EXPECT_EQ(state.find(id)->submitted_by, "user/u-3");
        }
        EXPECT_EQ(state.find(RunId{3})->project, kDefaultProject);
        EXPECT_EQ(state.find(RunId{3})->submitted_by, "token/admin");
        EXPECT_EQ(state.tenants.projects.at({3}).name, "south");
    };
    check(core_->state());
    const auto again = decode_state(encode_state(core_->state()));
    ASSERT_TRUE(again.ok()) << again.error().text();
    check(*again);
    EXPECT_EQ(digest(*again), digest(core_->state()));
    open();
    check(core_->state());
    std::string actor;
    ASSERT_TRUE(journal_->read(0, [&](const JournalRecord& record) -> Result<bool> {
        if (record.object == "run/r-1" && record.version == 1) actor = record.actor;
        return true;
    }));
    EXPECT_EQ(actor, "user/u-3 in o-2/p-2 as developer");
}

// Without this a developer of one team cancels another team's training by counting numbers.
TEST_F(TenantsTest, AForeignRunIsAsGoodAsNone) {
    make_projects();
    machine();
    ASSERT_TRUE(tell_as(caller_as(Role::developer, kNorth), Submit{.spec = job()}).ok());
    const auto refused = tell_as(caller_as(Role::admin, kSouth), CancelRun{{1}});
    const auto none = tell_as(caller_as(Role::admin, kSouth), CancelRun{{9}});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind(), none.error().kind());
    EXPECT_EQ(refused.error().message(), "there is no run r-1");
    EXPECT_TRUE(tell_as(caller_as(Role::admin, kSouth, Level::organisation), HoldRun{{1}}).ok());
    EXPECT_TRUE(tell_as(caller_as(Role::developer, kNorth), CancelRun{{1}}).ok());
}

// Two teams whose scripts count from 1 must not be given each other's runs.
TEST_F(TenantsTest, AKeyIsOfItsProject) {
    make_projects();
    const auto north = tell_as(caller_as(Role::developer, kNorth), Submit{.spec = job(), .key = "1"});
    const auto south = tell_as(caller_as(Role::developer, kSouth), Submit{.spec = job(), .key = "1"});
    const auto again = tell_as(caller_as(Role::developer, kNorth), Submit{.spec = job(), .key = "1"});
    ASSERT_TRUE(north.ok() && south.ok() && again.ok());
    EXPECT_NE(north->run, south->run);
    EXPECT_EQ(north->run, again->run);
}

TEST_F(TenantsTest, AProjectThatDoesNotExistTakesNothing) {
    const auto refused = tell_as(caller_as(Role::developer, kNorth), Submit{.spec = job()});
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().text(), HasSubstr("user/u-3 acts in o-2/p-2, and there is no such project"));
}

// A journal that was edited, or put together from two, says where; it does not crash and it does not open.
TEST_F(TenantsTest, ARecordOfNoTenantIsRefusedByItsNumber) {
    put(NodeSeen{{.name = "n1"}}, "user/u-3 in o-2/p-9 as developer");
    EXPECT_THAT(why_not_open(), HasSubstr("record 2 (node.seen) does not fit the state before it: there is no project "
                                          "o-2/p-9 for user/u-3"));
}
TEST_F(TenantsTest, AnActorThatNobodyUnderstandsIsRefusedByItsNumber) {
    put(NodeSeen{{.name = "n1"}}, "user/u-3 as king");
    EXPECT_THAT(why_not_open(), HasSubstr("reading who wrote record 2"));
}
TEST_F(TenantsTest, ARunOfNoProjectIsRefusedByItsNumber) {
    put(RunSubmitted{.run = {1}, .spec = job(), .key = "", .parent = {}, .step = "", .needs = {}, .project = {7}});
    EXPECT_THAT(why_not_open(), HasSubstr("record 2 (run.submitted) does not fit"));
}
TEST_F(TenantsTest, AProjectOfNoOrganisationIsRefusedByItsNumber) {
    put(ProjectMade{{2}, {9}, "lost"});
    EXPECT_THAT(why_not_open(), HasSubstr("record 2 (project.made) does not fit the state before it: there is no "
                                          "organisation o-9"));
}

// With one tenant a snapshot has no word of it, so that the version that was installed before reads it too.
TEST_F(TenantsTest, OneTenantLeavesNoTrace) {
    machine();
    ASSERT_TRUE(tell_as(Actor::token("admin"), Submit{.spec = job()}).ok());
    const std::string text = encode_state(core_->state());
    for (const char* word : {"organisations", "projects", "submitted_by", "\"p-1\""})
        EXPECT_EQ(text.find(word), std::string::npos) << word;
    EXPECT_EQ(decode_state(text)->find(RunId{1})->submitted_by, "token/admin");
}

}  // namespace
}  // namespace stoker
