// A rank on a machine that is not like ours (Slurm, Kubernetes, either version of control groups) is measured by its
// own limits, and odd bytes there do not take the server down.
#include "observe/proc_text.h"

#include <gtest/gtest.h>

#include <random>

namespace stoker {
namespace {

TEST(ProcText, StatOfAnyProgramName) {
    const std::string tail =
        " S 100 42 42 0 -1 4194304 1234 99 7 1 250 50 9 8 20 0 12 0 987654 1000000 2500 18446744073709551615 1 1 0 0\n";
    for (const std::string name : {"(python3)", "(a b)", "(x) S 1 (y))", "())", "((((", "(\xff\xfe)"}) {
        const auto stat = parse_proc_stat("77 " + name + (name == "((((" ? ")" : "") + tail);
        ASSERT_TRUE(stat) << name;
        EXPECT_EQ(stat->pid, 77);
        EXPECT_EQ(stat->parent, 100);
        EXPECT_EQ(stat->state, 'S');
        EXPECT_EQ(stat->minor_faults, 1234);
        EXPECT_EQ(stat->major_faults, 7);
        EXPECT_EQ(stat->user_ticks, 250);
        EXPECT_EQ(stat->system_ticks, 50);
        EXPECT_EQ(stat->threads, 12);
        EXPECT_EQ(stat->start_ticks, 987654u);
        EXPECT_EQ(stat->rss_pages, 2500);
    }
    for (const std::string text : {"", "77", "77 (x", "77 x) S", ")(", "77 (x) S 1 2 3", "x (y)",
                                   "77 (x) S a b c d e f g h i j k l m n o p q r s t"})
        EXPECT_FALSE(parse_proc_stat(text)) << text;
}

TEST(ProcText, StatusIoSchedstatAndNetwork) {
    const auto status = parse_proc_status(
        "Name:\tpython3\nState:\tD (disk sleep)\nVmHWM:\t  2048 kB\nRssAnon:\t    1000 kB\nVmSwap:\t12 kB\n"
        "voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t31\n");
    EXPECT_EQ(status.state, 'D');
    EXPECT_EQ(status.peak_bytes, 2048 * 1024);
    EXPECT_EQ(status.anonymous_bytes, 1000 * 1024);
    EXPECT_EQ(status.swap_bytes, 12 * 1024);
    EXPECT_EQ(status.voluntary_switches, 150);
    EXPECT_EQ(status.involuntary_switches, 31);
    EXPECT_FALSE(parse_proc_status("VmSwap: x kB\nVmHWM\nVmHWM: 99999999999999999999 kB").swap_bytes);

    const auto io = parse_proc_io(
        "rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n");
    ASSERT_TRUE(io);
    EXPECT_EQ(io->read_bytes, 4096);
    EXPECT_EQ(io->write_bytes, 8192);
    EXPECT_EQ(io->read_calls, 7);
    EXPECT_FALSE(parse_proc_io(""));  // no permission: absent, not 0
    const auto times = parse_schedstat("123 456789 12\n");
    ASSERT_TRUE(times);
    EXPECT_EQ(times->ran_ns, 123);
    EXPECT_EQ(times->waited_ns, 456789);
    EXPECT_FALSE(parse_schedstat("0\n"));

    const auto net = parse_net_dev(
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls "
        "carrier compressed\n"
        "    lo:  500 5 0 0 0 0 0 0  500 5 0 0 0 0 0 0\n  eth0:1000 9 0 0 0 0 0 0 2000 9 0 0 0 0 0 0\n"
        "   ib0: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n");
    ASSERT_TRUE(net);
    EXPECT_EQ(net->received, 1010);
    EXPECT_EQ(net->sent, 2020);
    EXPECT_EQ(net->loopback, 500);
    ASSERT_EQ(net->sent_by.size(), 2u);
    EXPECT_EQ(net->sent_by[0].first, "eth0");
    EXPECT_EQ(net->sent_by[1].second, 20);
    EXPECT_FALSE(parse_net_dev("Inter-| Receive\n face |bytes\n"));
}

// A wrong reading blames the program for using the very device that the run names.
TEST(ProcText, InterfacesAsNcclReadsThem) {
    EXPECT_TRUE(names_interface("eth", "eth1"));
    EXPECT_TRUE(names_interface("ib,eth0", "eth0"));
    EXPECT_FALSE(names_interface("=eth1", "eth10"));
    EXPECT_TRUE(names_interface("=eth1,eth2", "eth2"));
    EXPECT_FALSE(names_interface("^docker,lo", "docker0"));
    EXPECT_TRUE(names_interface("^docker,lo", "eth0"));
    EXPECT_FALSE(names_interface("", "eth0"));
}

// Where each environment puts its groups; the texts are written after those formats.
TEST(ProcText, GroupsOfSlurmKubernetesAndDocker) {
    const auto chain = [](std::string_view mounts, std::string_view cgroup, std::string_view controller) {
        return cgroup_chain(parse_mountinfo(mounts), parse_proc_cgroup(cgroup), controller);
    };
    // Slurm with version 1, on the node itself.
    const std::string v1 =
        "30 25 0:26 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n"
        "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
        "24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n";
    const std::string slurm =
        "11:memory:/slurm/uid_1000/job_42/step_0/task_0\n10:cpu,cpuacct:/slurm/uid_1000/job_42\n1:name=systemd:/"
        "system.slice/slurmd.service\n";
    EXPECT_EQ(chain(v1, slurm, "memory").folders,
              (std::vector<std::string>{
                  "/sys/fs/cgroup/memory/slurm/uid_1000/job_42/step_0/task_0",
                  "/sys/fs/cgroup/memory/slurm/uid_1000/job_42/step_0", "/sys/fs/cgroup/memory/slurm/uid_1000/job_42",
                  "/sys/fs/cgroup/memory/slurm/uid_1000", "/sys/fs/cgroup/memory/slurm", "/sys/fs/cgroup/memory"}));
    EXPECT_EQ(chain(v1, slurm, "cpu").folders.front(), "/sys/fs/cgroup/cpu,cpuacct/slurm/uid_1000/job_42");
    EXPECT_TRUE(chain(v1, slurm, "io").folders.empty());

    // Slurm 22.05 and newer with version 2.
    const std::string v2 = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const auto slurm2 = chain(v2, "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n", "memory");
    EXPECT_TRUE(slurm2.unified);
    EXPECT_EQ(slurm2.folders.size(), 7u);
    EXPECT_EQ(slurm2.folders.back(), "/sys/fs/cgroup");

    // Kubernetes with version 1, inside of the container: the host's path, of which only our part is mounted.
    const std::string pod = "/kubepods/burstable/pod1b-2c/0123abcd";
    EXPECT_EQ(chain("70 69 0:26 " + pod + " /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
                    "5:memory:" + pod + "\n", "memory")
                  .folders,
              std::vector<std::string>{"/sys/fs/cgroup/memory"});
    EXPECT_EQ(chain("70 69 0:26 " + pod + " /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
                    "5:memory:" + pod + "/rank-1\n", "memory")
                  .folders.front(),
              "/sys/fs/cgroup/memory/rank-1");
    // A pod of a longer name is not inside of ours.
    EXPECT_TRUE(chain("70 69 0:26 " + pod + " /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
                      "5:memory:" + pod + "99\n", "memory")
                    .folders.empty());
    // Kubernetes with version 2: a control group namespace, in which a neighbour is outside.
    EXPECT_EQ(chain(v2, "0::/\n", "cpu").folders, std::vector<std::string>{"/sys/fs/cgroup"});
    EXPECT_TRUE(chain(v2, "0::/../other\n", "cpu").folders.empty());

    // Both at once: limits in version 1, version 2 for the tree only.
    const std::string hybrid = v1 + "36 24 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const std::string both = "4:memory:/a\n1:cpu,cpuacct:/\n0::/b\n";
    EXPECT_FALSE(chain(hybrid, both, "memory").unified);
    EXPECT_EQ(chain(hybrid, both, "memory").folders.front(), "/sys/fs/cgroup/memory/a");
    EXPECT_EQ(chain(hybrid, both, "cpu").folders, std::vector<std::string>{"/sys/fs/cgroup/cpu,cpuacct"});
    EXPECT_EQ(chain(hybrid, both, "io").folders.front(), "/sys/fs/cgroup/unified/b");
    // A removed group, and a mount point with a blank.
    EXPECT_EQ(
        chain("35 24 0:30 / /sys/fs/c\\040g rw - cgroup2 cgroup2 rw\n", "0::/x (deleted)\n", "cpu").folders.front(),
        "/sys/fs/c g/x");
}

TEST(ProcText, LimitsAndFlatFiles) {
    EXPECT_EQ(parse_limit("1073741824\n"), 1073741824);
    EXPECT_FALSE(parse_limit("max\n"));
    EXPECT_FALSE(parse_limit("9223372036854771712\n"));
    EXPECT_FALSE(parse_limit("18446744073709551615\n"));
    EXPECT_FALSE(parse_limit(""));
    EXPECT_EQ(parse_cpu_max("200000 100000\n"), 2.0);
    EXPECT_FALSE(parse_cpu_max("max 100000\n"));
    EXPECT_FALSE(parse_cpu_max("-1\n 100000\n"));
    EXPECT_FALSE(parse_cpu_max("5 0"));
    const std::string text = "nr_periods 10\nnr_throttled 4\nthrottled_usec 123456\n";
    EXPECT_EQ(flat_value(text, "nr_throttled"), 4);
    EXPECT_FALSE(flat_value(text, "nr_thr"));
    EXPECT_FALSE(flat_value(text, "burst"));
}

// Every parser takes any bytes: cut, changed, or made of pieces of the formats.
TEST(ProcText, SurvivesDamage) {
    const std::vector<std::string> seeds = {
        "77 (x) S 100 42 42 0 -1 4194304 1234 99 7 1 250 50 9 8 20 0 12 0 987654 1000000 2500 1 1\n",
        "State:\tR\nVmHWM: 5 kB\n",
        "read_bytes: 4\nwrite_bytes: 5\n",
        "eth0: 1 2 3 4 5 6 7 8 9 10\n",
        "4:memory:/a/b\n0::/c\n",
        "35 24 0:30 / /sys\\040x rw - cgroup2 c rw\n",
        "9223372036854775807 100000",
        "\\77\\0"};
    std::mt19937 random(1);
    for (int i = 0; i < 20'000; ++i) {
        std::string text = seeds[random() % seeds.size()];
        for (unsigned n = random() % 6; n > 0 && !text.empty(); --n) switch (random() % 3) {
                case 0: text[random() % text.size()] = static_cast<char>(random()); break;
                case 1: text.resize(random() % text.size()); break;
                default: text.insert(random() % text.size(), seeds[random() % seeds.size()]);
            }
        parse_proc_stat(text);
        parse_proc_status(text);
        parse_proc_io(text);
        parse_schedstat(text);
        parse_net_dev(text);
        const auto chain = cgroup_chain(parse_mountinfo(text), parse_proc_cgroup(text), "memory");
        EXPECT_LE(chain.folders.size(), 32u);
        parse_limit(text);
        parse_cpu_max(text);
    }
}

// Who else computes on the machine is known from one line, of every kernel's length.
TEST(MachineStat, CountsWhatIsNotIdle) {
    const auto stat = parse_machine_stat("cpu  100 5 20 1000 50 3 2 7 40 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n");
    ASSERT_TRUE(stat);
    EXPECT_EQ(stat->busy_ticks, 130);
    EXPECT_EQ(stat->steal_ticks, 7);
    EXPECT_EQ(stat->cpus, 2);
    EXPECT_FALSE(parse_machine_stat("cpu  1 2 3\n"));
    EXPECT_FALSE(parse_machine_stat("cpu  -1 5 20 1000 50 3 2 7\n"));
    EXPECT_FALSE(parse_machine_stat(""));
}

TEST(ProcStatus, CountsTheProcessorsOfAnAffinity) {
    const auto allowed = [](const std::string& list) {
        const ProcStatus status = parse_proc_status("State:\tR (running)\nCpus_allowed_list:\t" + list + "\n");
        return std::pair(status.cpus_allowed.value_or(-1), status.first_cpu.value_or(-1));
    };
    EXPECT_EQ(allowed("0-3"), std::pair(4, 0));
    EXPECT_EQ(allowed("2"), std::pair(1, 2));
    EXPECT_EQ(allowed("1,4-5,8"), std::pair(4, 1));
    EXPECT_EQ(allowed("x").first, -1);
    EXPECT_EQ(allowed("5-1").first, -1);
}

}  // namespace
}  // namespace stoker
