// ib_write_bw, ib_read_bw, ib_send_bw. Format: linux-rdma/perftest, src/perftest_parameters.h (RESULT_FMT*,
// REPORT_FMT*) and ctx_print_test_info in src/perftest_parameters.c. Without --report_gbits a "MB" is 2^20 bytes
// (format_factor there); newer versions write it MiB. --out_json: write_test_info_to_file and write_bw_report_to_file
// there (perftest 4.5 to 26.07), which hold no unit, one message size (the last of -a), and in some modes no valid
// JSON: so it is read line by line, as it is written.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "readings/tool_reader.h"
#include "readings/tool_size.h"

namespace stoker {
namespace {

struct BandwidthTest {
    ToolPlace place, best_place;
    std::string device, link, mtu, title;
    bool both_ways = false, table = false;
    double to_gbits = 0;
    std::optional<double> best;  // Gbit/s
    double best_bytes = 0;
};

struct BandwidthTrouble {
    std::string_view text, what, fix;
};
// Of perftest's own messages.
constexpr BandwidthTrouble kBandwidthTroubles[] = {
    {"Couldn't connect to", "the other end does not answer",
     "start ib_write_bw there first with the same options; open its TCP port (18515) between the nodes"},
    {"Failed to modify QP", "the queue pairs cannot reach each other",
     "both ends in one partition (pkey) and one subnet; RoCE: -x with the GID index of RoCE v2 (show_gids)"},
    {"Completion with error", "the transfer broke off with an error completion",
     "ibstat and perfquery at both ends: link errors, a wrong GID, or memory that could not be registered"},
    {"Couldn't allocate MR", "memory cannot be registered", "ulimit -l unlimited (in a container: the memlock limit)"},
    {"IB device", "the device that was asked for is not there", "ibstat -l lists the devices"},
    {"Unable to init the socket connection", "no TCP connection between the ends",
     "name resolution and the firewall between the nodes"},
    {"Unable to find the Infiniband/RoCE device", "no InfiniBand device is there",
     "ibstat; lspci | grep -i mellanox; an image with OFED"},
};

class BandwidthReader {
public:
    BandwidthReader(std::string_view text, const std::string& file, const ToolContext& context)
        : lines_(text), out_(Tool::ib_bandwidth, file), size_(tool_size(context)) {}

    Result<ToolReading> read() {
        std::size_t first = 0;
        while (first < lines_.size() && trim(lines_[first]).empty()) ++first;
        if (first < lines_.size() && trim(lines_[first]).starts_with('{'))
            json();
        else
            for (std::size_t at = 0; at < lines_.size(); ++at) line(at);
        std::string last;
        for (const BandwidthTest& test : tests_) {
            if (test.title.ends_with("Latency Test") || contains(test.title, "Latency")) {
                out_.tell(test.place, HealthLayer::network,
                          "a latency test: there is no line for it, and it is not judged");
                continue;
            }
            if (!test.best && troubles_ == 0)
                return out_.broken({lines_.last_line(), 1},
                                   fmt::format("no result of {}: the test broke off or still ran",
                                               test.device.empty() ? "the test" : test.device),
                                   "let both ends finish and save what the client prints: ib_write_bw -d DEVICE "
                                   "--report_gbits HOST > ib.txt");
            if (test.best) last = judge(test);
        }
        if (tests_.empty() && troubles_ == 0)
            return out_.broken({1, 1}, "no test is in it", "ib_write_bw -d DEVICE --report_gbits HOST > ib.txt");
        return out_.finish(last.empty() ? "no figure was measured" : last);
    }

private:
    // "Device         : mlx5_3", which may stand second in its line.
    void header(std::string_view text) {
        const auto value = [&](std::string_view key) {
            const std::size_t at = text.find(key);
            if (at == std::string_view::npos) return std::string();
            const std::string_view rest = trim(text.substr(at + key.size()));
            if (!rest.starts_with(':')) return std::string();
            const auto words = split_words(rest.substr(1));
            return words.empty() ? std::string() : std::string(words.front());
        };
        BandwidthTest& test = tests_.back();
        if (auto device = value("Device"); !device.empty()) test.device = device;
        if (auto link = value("Link type"); !link.empty()) test.link = link;
        if (auto mtu = value("Mtu"); !mtu.empty()) test.mtu = mtu.substr(0, mtu.find('['));
    }

    void line(std::size_t at) {
        const std::string_view text = trim(lines_[at]);
        const ToolPlace place{static_cast<std::uint32_t>(at + 1), 1};
        for (const BandwidthTrouble& each : kBandwidthTroubles) {
            if (!contains(text, each.text) || (each.text == "IB device" && !contains(text, "not found"))) continue;
            ++troubles_;
            out_.repeated("ib-connection", std::string(each.text), place,
                          {.layer = HealthLayer::network,
                           .verdict = HealthVerdict::fail,
                           .message = fmt::format("{}: \"{}\"", each.what, printable(text, 80)),
                           .fix = std::string(each.fix)});
            return;
        }
        if (text.ends_with("BW Test") || text.ends_with("Latency Test")) {
            tests_.push_back(
                {.place = place, .title = std::string(text), .both_ways = contains(text, "Bidirectional")});
            return;
        }
        if (text.starts_with("#bytes")) {
            if (tests_.empty()) tests_.push_back({.place = place, .title = "BW Test"});
            BandwidthTest& test = tests_.back();
            test.table = true;
            test.to_gbits = contains(text, "Gb/sec")                                ? 1
                            : contains(text, "MiB/sec") || contains(text, "MB/sec") ? 8 * 1048576.0 / 1e9
                                                                                    : 0;
            return;
        }
        if (tests_.empty()) return;
        if (!tests_.back().table) return header(text);
        const auto words = split_words(text);
        if (words.size() < 4 || tests_.back().to_gbits == 0) return;
        const auto bytes = tool_number(words[0]), count = tool_number(words[1]), average = tool_number(words[3]);
        if (!bytes || !count || !average || !tool_number(words[2]) || *bytes <= 0 || *average < 0) return;
        BandwidthTest& test = tests_.back();
        const double gbits = *average * test.to_gbits / (test.both_ways ? 2 : 1);
        if (test.best && *test.best >= gbits) return;
        test.best = gbits;
        test.best_bytes = *bytes;
        test.best_place = {place.line, static_cast<std::uint32_t>(lines_[at].find(words[3]) + 1)};
    }

    // "BW_average": 94.11,
    void json() {
        double bytes = 0, rate = 0, written = 0;
        bool has_results = false;
        BandwidthTest& test = tests_.emplace_back();
        for (std::size_t at = 0; at < lines_.size(); ++at) {
            const ToolPlace place{static_cast<std::uint32_t>(at + 1), 1};
            const std::string_view text = trim(lines_[at]);
            const std::size_t colon = text.find(':');
            if (colon == std::string_view::npos) continue;
            std::string_view key = trim(text.substr(0, colon)), value = trim(text.substr(colon + 1));
            const auto bare = [](std::string_view word) {
                while (!word.empty() && (word.front() == '"')) word.remove_prefix(1);
                while (!word.empty() && (word.back() == '"' || word.back() == ',')) word.remove_suffix(1);
                return word;
            };
            key = bare(key);
            value = bare(value);
            const double number = tool_number(value).value_or(0);
            if (key == "test") {
                test.title = replace_all(value, "_", " ");
                test.both_ways = contains(value, "Bidirectional");
                test.place = place;
            }
            if (key == "Device") test.device = value;
            if (key == "Link_type") test.link = value;
            if (key == "Mtu") test.mtu = value;
            if (key == "results") has_results = true;
            if (key == "MsgSize") bytes = number;
            if (key == "MsgRate") rate = number;
            if (key == "BW_average") {
                written = number;
                test.best_place = {place.line, static_cast<std::uint32_t>(lines_[at].find(value) + 1)};
            }
        }
        if (!has_results) test.title.clear();
        // The rate of messages has a unit, 1e6/s: it tells which of the two the bandwidth has.
        const double gbits = rate * 1e6 * bytes * 8 / 1e9, of_mib = written * 8 * 1048576.0 / 1e9;
        if (written <= 0 || gbits <= 0 || bytes <= 0) return;
        const bool in_mib = std::abs(std::log(of_mib / gbits)) < std::abs(std::log(written / gbits));
        test.best = (in_mib ? of_mib : written) / (test.both_ways ? 2 : 1);
        test.best_bytes = bytes;
    }

    std::string judge(const BandwidthTest& test) {
        const std::string device = test.device.empty() ? "a port" : test.device;
        out_.fact("device", device);
        if (!test.link.empty()) out_.fact("link", test.link);
        if (test.link == "Ethernet" && size_.has_infiniband())
            out_.check(
                "ib-link", test.place,
                {.layer = HealthLayer::network,
                 .verdict = HealthVerdict::fail,
                 .message = fmt::format("{} is an Ethernet port; {} has InfiniBand", device, size_.name),
                 .fix = "take one of the InfiniBand ports: ibstat shows the link layer of each (-d mlx5_0 to mlx5_7)",
                 .peer = test.device});
        if (const auto mtu = tool_number(test.mtu); mtu && *mtu < 4096 && test.link == "IB")
            out_.check("ib-mtu", test.place,
                       {.layer = HealthLayer::network,
                        .verdict = HealthVerdict::warn,
                        .message = fmt::format("the MTU of {} is {:g}; InfiniBand carries 4096", device, *mtu),
                        .fix = "-m 4096, and an active MTU of 4096 at both ends (ibv_devinfo | grep active_mtu)",
                        .peer = test.device,
                        .measured = mtu,
                        .expected = 4096,
                        .unit = "bytes",
                        .source = "the largest MTU of InfiniBand"});
        ToolFinding finding{.layer = HealthLayer::network, .peer = test.device};
        finding.measured = *test.best * 1e9 / 8;
        finding.unit = "bytes/s";
        std::string figure = fmt::format("{:.3g} Gbit/s on {}", *test.best, device);
        if (size_.ib_min_gbps) {
            const bool good = *test.best >= *size_.ib_min_gbps;
            finding.verdict = good ? HealthVerdict::pass : HealthVerdict::fail;
            finding.expected = *size_.ib_min_gbps * 1e9 / 8;
            finding.source = size_.ib_min_source;
            figure = fmt::format("{:.3g} of {:g} Gbit/s on {}", *test.best, *size_.ib_min_gbps, device);
            // A message of a few bytes measures the rate of messages.
            if (!good && test.best_bytes < 65536) {
                finding.verdict = HealthVerdict::skipped;
                finding.message = fmt::format("{}, with messages of {:g} bytes only: too small to fill a link", figure,
                                              test.best_bytes);
                finding.fix = "ib_write_bw -s 1048576 or -a";
            } else {
                finding.message = "ib_write_bw " + figure;
                if (!good)
                    finding.fix = fmt::format(
                        "the network's configuration, not the model's code: ibstat {0} (rate {1:g}, state Active); -m "
                        "4096; numactl to the port's NUMA node; "
                        "then the same test on another node pair: a bad cable or switch port moves with it",
                        test.device.empty() ? "DEVICE" : test.device, size_.ib_link_gbps.value_or(0));
            }
        } else {
            finding.message = figure + (size_.known() ? ": no minimum is published for " + size_.name
                                                      : ": what the port should carry was not said");
            finding.fix = size_.known() ? "" : say_the_size();
        }
        out_.check("ib-bandwidth", test.best_place, std::move(finding));
        return "ib_write_bw " + figure;
    }

    ToolLines lines_;
    ReadingBuilder out_;
    ToolSize size_;
    std::vector<BandwidthTest> tests_;
    std::size_t troubles_ = 0;
};

}  // namespace

Result<ToolReading> read_ib_bandwidth(std::string_view text, const std::string& file, const ToolContext& context) {
    return BandwidthReader(text, file, context).read();
}

}  // namespace stoker
