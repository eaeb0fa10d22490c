#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "app/args.h"
#include "io/files.h"
#include "run/state/states.h"
#include "server/log_events.h"
#include "server/metrics.h"
#include "server/openapi.h"
#include "server/server_config.h"

namespace stoker {
namespace {

std::string page(const std::string& name) {
    const auto text = read_file(fmt::format("{}/docs/reference/{}", STOKER_SOURCE_DIR, name), 1u << 20);
    return text ? *text : "missing: " + name;
}

// Clients are made from openapi.json: one that lags behind the routes makes clients that fail.
TEST(ReferenceTest, ApiPagesAreWhatTheRoutesSay) {
    EXPECT_EQ(page("openapi.json"), openapi_document().dump() + "\n")
        << "stoker schema openapi > docs/reference/openapi.json";
    EXPECT_EQ(page("api.md"), api_reference()) << "stoker schema api-reference > docs/reference/api.md";
}

// Whoever asks why a run waits looks there.
TEST(Reference, StatesPageIsWhatTheTablesSay) {
    EXPECT_EQ(page("states.md"), states_markdown()) << "stoker schema states > docs/reference/states.md";
}

// A flag that was added or renamed without the reference page leaves readers with a manual that lies.
TEST(Reference, CommandsPageIsWhatTheTablesSay) {
    EXPECT_EQ(page("commands.md"), reference_markdown()) << "stoker completion reference > docs/reference/commands.md";
}

// And for the configuration of a server.
TEST(Reference, ServerPageIsWhatTheTableSays) {
    EXPECT_EQ(page("server.md"), server_config_reference())
        << "stoker schema server-reference > docs/reference/server.md";
}

// A dashboard is written from the page of metrics, an alert from the page of events.
TEST(Reference, MetricsAndLogPagesAreWhatTheTablesSay) {
    EXPECT_EQ(page("metrics.md"), api::metrics_reference())
        << "stoker schema metrics-reference > docs/reference/metrics.md";
    EXPECT_EQ(page("log.md"), log_reference()) << "stoker schema log-reference > docs/reference/log.md";
}

// The same for the keys of the workload file.
TEST(Reference, WorkloadPageIsWhatTheTablesSay) {
    EXPECT_EQ(page("workload.md"), workload_reference())
        << "stoker schema workload-reference > docs/reference/workload.md";
}

// Every command can be found by its name, says how it is used, and shows an example.
TEST(Reference, EveryCommandHasUsageAndExamples) {
    for (const CliCommand& command : all_commands()) {
        const CliCommand* found = find_command(command.name);
        ASSERT_TRUE(found != nullptr) << command.name;
        EXPECT_EQ(found->usage, command.usage);
        EXPECT_NE(command.usage.find("stoker " + command.name), std::string::npos) << command.name;
        EXPECT_FALSE(command.examples.empty()) << command.name;
        EXPECT_TRUE(command.run != nullptr) << command.name;
    }
}

}  // namespace
}  // namespace stoker
