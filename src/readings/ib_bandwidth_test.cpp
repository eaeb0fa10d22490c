// 94 of 400 Gbit/s is the network, not the model: whoever reads it otherwise changes code for a week.
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::error_of;
using samples::of_size;
using samples::read;
using samples::replaced;
using samples::verdict_of;
using samples::worst;

TEST(IbBandwidth, APortBelowItsMinimumFails) {
    const ToolReading reading = read(samples::kIbSlow, of_size("Standard_ND96isr_H100_v5"));
    const HealthCheck* check = worst(reading, "ib-bandwidth");
    ASSERT_NE(check, nullptr);
    EXPECT_EQ(check->verdict, HealthVerdict::fail);
    EXPECT_EQ(check->peer, "mlx5_3");
    EXPECT_NEAR(*check->measured, 94.11e9 / 8, 1);
    EXPECT_NEAR(*check->expected, 380e9 / 8, 1);
    EXPECT_NE(check->source.find("node_checks.tsv"), std::string::npos);
    EXPECT_EQ(reading.conclusion, "ib_write_bw 94.1 of 380 Gbit/s on mlx5_3");
}

// The minimum is the port's, per size: 185 is good on an A100 node and bad on an H100 node.
TEST(IbBandwidth, TheMinimumIsOfTheSize) {
    const std::string better = replaced(samples::kIbSlow, "94.02", "185.1");
    EXPECT_EQ(verdict_of(read(better, of_size("Standard_ND96asr_v4")), "ib-bandwidth"), HealthVerdict::pass);
    EXPECT_EQ(verdict_of(read(better, of_size("Standard_ND96isr_H100_v5")), "ib-bandwidth"), HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read(better), "ib-bandwidth"), HealthVerdict::skipped);
    EXPECT_EQ(verdict_of(read(replaced(samples::kIbSlow, "94.02", "380.0"), of_size("Standard_ND96isr_H100_v5")),
                         "ib-bandwidth"),
              HealthVerdict::pass);
    EXPECT_EQ(verdict_of(read(replaced(samples::kIbSlow, "94.02", "379.9"), of_size("Standard_ND96isr_H100_v5")),
                         "ib-bandwidth"),
              HealthVerdict::fail);
}

// Without --report_gbits the figures are in 2^20 bytes.
TEST(IbBandwidth, UnitsAreThoseOfTheHeader) {
    const std::string text =
        " Device         : mlx5_0\n#bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n "
        "65536      5000             47000.00           46000.00             0.736000\n";
    const ToolReading reading =
        read("                    RDMA_Write BW Test\n" + text, of_size("Standard_ND96isr_H100_v5"));
    EXPECT_NEAR(*worst(reading, "ib-bandwidth")->measured, 46000.0 * 1048576, 1);
    EXPECT_EQ(worst(reading, "ib-bandwidth")->verdict, HealthVerdict::pass);
    const ToolReading both =
        read("                    RDMA_Write Bidirectional BW Test\n" + text, of_size("Standard_ND96isr_H100_v5"));
    EXPECT_EQ(worst(both, "ib-bandwidth")->verdict, HealthVerdict::fail);
}

// --out_json holds no unit: the rate of messages says which it is.
TEST(IbBandwidth, TheJsonOfPerftest) {
    const ToolReading reading = read(samples::kIbJson, of_size("Standard_ND96isr_H100_v5"));
    const HealthCheck* check = worst(reading, "ib-bandwidth");
    ASSERT_NE(check, nullptr);
    EXPECT_EQ(check->verdict, HealthVerdict::fail);
    EXPECT_EQ(check->peer, "mlx5_3");
    EXPECT_NEAR(*check->measured, 94.11e9 / 8, 1);
    EXPECT_EQ(reading.notes.back().line, 24U);
    const std::string mib = replaced(replaced(samples::kIbJson, "94.11", "11219.01"), "94.20", "11229.1");
    EXPECT_NEAR(*worst(read(mib), "ib-bandwidth")->measured, 11219.01 * 1048576, 1);
    const std::string both = replaced(samples::kIbJson, "RDMA_Write_BW", "RDMA_Write_Bidirectional_BW");
    EXPECT_NEAR(*worst(read(both), "ib-bandwidth")->measured, 94.11e9 / 16, 1);
    EXPECT_EQ(verdict_of(read(replaced(samples::kIbJson, "\"Mtu\": 4096", "\"Mtu\": 1024")), "ib-mtu"),
              HealthVerdict::warn);
    const std::string_view text = samples::kIbJson;
    EXPECT_NE(error_of(text.substr(0, text.find("\"BW_average")), Tool::ib_bandwidth).find("no result of mlx5_3"),
              std::string::npos);
}

TEST(IbBandwidth, LinkMtuAndSmallMessages) {
    EXPECT_EQ(verdict_of(read(replaced(samples::kIbSlow, "Link type       : IB", "Link type       : Ethernet"),
                              of_size("Standard_ND96isr_H100_v5")),
                         "ib-link"),
              HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read(replaced(samples::kIbSlow, "4096[B]", "1024[B]")), "ib-mtu"), HealthVerdict::warn);
    const std::string small =
        "RDMA_Write BW Test\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 64 5000 4.49 4.43 "
        "8.6\n";
    EXPECT_EQ(verdict_of(read(small, of_size("Standard_ND96isr_H100_v5")), "ib-bandwidth"), HealthVerdict::skipped);
}

TEST(IbBandwidth, FailuresAndCutFiles) {
    EXPECT_EQ(
        verdict_of(read("Couldn't connect to gpu-b:18515\nUnable to open file descriptor for socket connection\n"),
                   "ib-connection"),
        HealthVerdict::fail);
    const std::string_view text = samples::kIbSlow;
    EXPECT_NE(error_of(text.substr(0, text.find(" 65536")), Tool::ib_bandwidth).find("no result of mlx5_3"),
              std::string::npos);
}

// Eight ports in one file: each is judged for itself.
TEST(IbBandwidth, SeveralPortsInOneFile) {
    const std::string two =
        replaced(replaced(samples::kIbSlow, "94.11", "392.1"), "mlx5_3", "mlx5_0") + std::string(samples::kIbSlow);
    const ToolReading reading = read(two, of_size("Standard_ND96isr_H100_v5"));
    ASSERT_EQ(reading.checks.size(), 2U);
    EXPECT_EQ(reading.checks[0].verdict, HealthVerdict::pass);
    EXPECT_EQ(reading.checks[1].verdict, HealthVerdict::fail);
}

}  // namespace
}  // namespace stoker
