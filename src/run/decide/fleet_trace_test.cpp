#include "run/decide/fleet_trace.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::HasSubstr;

constexpr std::string_view kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\nnode-1,64000,262144,2,P100\nnode-2,96000,393216,0,\n";

TEST(FleetTrace, ReadsNodesAndTasks) {
    Fleet fleet = read_fleet(kNodes, "nodes.csv").value();
    ASSERT_EQ(fleet.nodes.size(), 2U);
    EXPECT_EQ(fleet.total_gpu_milli(), 2000);
    EXPECT_EQ(fleet.nodes[1].model, -1);
    const auto tasks = read_fleet_tasks(
                           "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"
                           "a,12000,16384,1,460,,0,10\nb,1000,1024,0,0,,5,\nc,1000,1024,2,1000,P100|T4,,\n",
                           "tasks.csv", fleet)
                           .value();
    ASSERT_EQ(tasks.size(), 3U);
    EXPECT_EQ(tasks[0].shape.gpu_milli, 460);
    EXPECT_EQ(tasks[0].departure_s, 10);
    EXPECT_EQ(tasks[1].shape.total_gpu_milli(), 0);
    EXPECT_EQ(tasks[2].shape.models, 0b11U);
    EXPECT_EQ(fleet.models, (std::vector<std::string>{"P100", "T4"}));
}

// Whoever exports a trace wrongly is told the line, the column and what was expected.
TEST(FleetTrace, NamesThePlaceOfEveryMistake) {
    const auto nodes = [](std::string_view row) {
        const auto fleet = read_fleet("sn,cpu_milli,memory_mib,gpu,model\n" + std::string(row) + "\n", "nodes.csv");
        return fleet ? std::string("accepted") : fleet.error().text();
    };
    EXPECT_THAT(nodes("n,64000,262144,-1,P100"), HasSubstr("nodes.csv:2:16"));
    EXPECT_THAT(nodes("n,64000,262144,17,P100"), HasSubstr("0 to 16"));
    EXPECT_THAT(nodes("n,x,262144,2,P100"), HasSubstr("expected a whole number"));
    EXPECT_THAT(nodes("n,64000,262144,2,"), HasSubstr("needs their model"));
    EXPECT_THAT(nodes(",64000,262144,2,P100"), HasSubstr("needs a name"));
    EXPECT_THAT(nodes("n,1,1,1,T4\nn,1,1,1,T4"), HasSubstr("nodes.csv:3"));
    EXPECT_THAT(nodes("n,64000,262144,2"), HasSubstr("4 cells"));
    EXPECT_THAT(read_fleet("sn,cpu_milli,memory_mib,gpu,model\n", "nodes.csv").error().text(), HasSubstr("no nodes"));
    EXPECT_THAT(read_fleet("a,b\n1,2\n", "nodes.csv").error().text(), HasSubstr("there is no column name"));

    const auto tasks = [](std::string_view row) {
        Fleet fleet = read_fleet(kNodes, "nodes.csv").value();
        const auto read = read_fleet_tasks("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + std::string(row) + "\n",
                                           "tasks.csv", fleet);
        return read ? std::string("accepted") : read.error().text();
    };
    EXPECT_THAT(tasks("a,1000,1024,2,500"), HasSubstr("takes them whole"));
    EXPECT_THAT(tasks("a,1000,1024,1,0"), HasSubstr("1 to 1000 thousandths"));
    EXPECT_THAT(tasks("a,1000,1024,1,1001"), HasSubstr("0 to 1000"));
    EXPECT_EQ(tasks("a,1000,1024,1,1000"), "accepted");
}

}  // namespace
}  // namespace stoker
