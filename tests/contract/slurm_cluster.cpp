#include "contract/slurm_cluster.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/text.h"
#include "contract/driver_contract.h"
#include "io/process.h"
#include "io/run_program.h"

namespace stoker::contract {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPath = "/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin:/bin";

std::vector<int> free_ports(int count) {
    std::vector<int> ports;
    std::vector<UniqueFd> held;  // all at once, so that none comes twice
    for (int i = 0; i < count; ++i) {
        held.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        ::bind(held.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
        ::getsockname(held.back().get(), reinterpret_cast<sockaddr*>(&address), &size);
        ports.push_back(ntohs(address.sin_port));
    }
    return ports;
}

pid_t pid_in(const std::string& file) {
    std::ifstream stream(file);
    pid_t pid = -1;
    stream >> pid;
    return pid > 1 ? pid : -1;
}

void end(const std::string& pid_file, int signal_number) {
    const pid_t pid = pid_in(pid_file);
    if (pid < 0) return;
    ::kill(pid, signal_number);
    EXPECT_TRUE(eventually([&] { return process_state(pid) == 0 || process_state(pid) == 'Z'; }, in(30)))
        << pid_file << " does not end";
    fs::remove(pid_file);
}

bool is_listening(const std::string& path) {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool is_installed(const std::string& program) {
    for (const std::string_view folder : split(kPath, ':'))
        if (::access((std::string(folder) + "/" + program).c_str(), X_OK) == 0) return true;
    return false;
}

}  // namespace

std::string SlurmCluster::why_not() {
    for (const char* program : {"slurmctld", "slurmd", "munged", "sbatch", "srun", "squeue", "scancel", "scontrol"})
        if (!is_installed(program))
            return std::string(program) + " is not installed (apt-get install slurm-wlm slurm-wlm-basic-plugins munge)";
    return {};
}

std::string SlurmCluster::why_no_rest() {
    return is_installed("slurmrestd") ? "" : "slurmrestd is not installed (apt-get install slurmrestd)";
}

std::string SlurmCluster::rest_url(const std::string& version) const {
    const std::string socket = folder_ + "/rest-" + version, url = "unix:" + socket;
    const std::string pid_file = folder_ + "/run/slurmrestd-" + version + ".pid";
    if (pid_in(pid_file) > 1) return url;
    fs::remove(socket);
    // It will not run as root or as the cluster's own user, which here are who owns the folders of the runs. And it
    // does not go to the background by itself.
    const std::string start = "slurmrestd -s openapi/" + version + " -f " + config() + " -a rest_auth/local " + url +
                              " >>" + folder_ + "/log/slurmrestd.log 2>&1 </dev/null & echo $! >" + pid_file;
    const auto ran = run_program({.arguments = {"sh", "-c", start},
                                  .environment = {std::string("PATH=") + kPath, "SLURM_CONF=" + config(), "HOME=/",
                                                  "SLURMRESTD_SECURITY=disable_user_check"}},
                                 in(30));
    EXPECT_TRUE(ran.ok());
    EXPECT_TRUE(eventually([&] { return is_listening(socket); }, in(30))) << content(folder_ + "/log/slurmrestd.log");
    return url;
}

void SlurmCluster::stop_rest(int signal_number, const std::string& version) const {
    end(folder_ + "/run/slurmrestd-" + version + ".pid", signal_number);
}

SlurmCluster::SlurmCluster(int nodes, const std::string& more) : nodes_(nodes) {
    std::string name = fs::temp_directory_path() / "stoker-slurm-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    for (const char* part : {"ctl", "log", "run", "munge"}) fs::create_directories(folder_ + "/" + part);
    fs::permissions(folder_ + "/munge", fs::perms(0755));
    fs::permissions(folder_, fs::perms(0755));
    {
        std::ofstream key(folder_ + "/munge/key", std::ios::binary);
        for (int i = 0; i < 1024; ++i) key.put(static_cast<char>(std::rand() % 256));
    }
    fs::permissions(folder_ + "/munge/key", fs::perms(0600));
    write_config(nodes, more);
    const std::string munge = folder_ + "/munge/";
    run({"munged", "--force", "--key-file=" + munge + "key", "--socket=" + munge + "sock",
         "--pid-file=" + munge + "pid", "--log-file=" + munge + "log", "--seed-file=" + munge + "seed"});
    start_controller();
    for (int i = 1; i <= nodes; ++i) start_node(i);
    EXPECT_TRUE(eventually([&] { return ready(); }, in(60))) << say({"sinfo"});
}

SlurmCluster::~SlurmCluster() {
    say({"scancel", "--me"});
    eventually([&] { return quiet(); }, in(20));
    for (const char* version : {"v0.0.37", "v0.0.38"}) stop_rest(SIGTERM, version);
    // What still runs is killed with its node.
    for (int i = 1; i <= nodes_; ++i) end(folder_ + "/run/slurmd.n" + std::to_string(i) + ".pid", SIGTERM);
    end(folder_ + "/run/slurmctld.pid", SIGTERM);
    end(folder_ + "/munge/pid", SIGTERM);
    if (std::getenv("STOKER_KEEP_SLURM") == nullptr) fs::remove_all(folder_);
}

void SlurmCluster::write_config(int nodes, const std::string& more) {
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    const std::string short_host(std::string_view(host).substr(0, std::string_view(host).find('.')));
    const passwd* user = ::getpwuid(::getuid());
    const std::string name = user == nullptr ? std::to_string(::getuid()) : user->pw_name;
    const auto ports = free_ports(nodes + 1);
    std::ostringstream conf;
    conf << "ClusterName=test\nSlurmctldHost=" << short_host << "(127.0.0.1)\nSlurmctldPort=" << ports[0]
         << "\nSlurmUser=" << name << "\nSlurmdUser=" << name << "\nAuthType=auth/munge\nAuthInfo=socket=" << folder_
         << "/munge/sock,cred_expire=5\nStateSaveLocation=" << folder_ << "/ctl\nSlurmdSpoolDir=" << folder_
         << "/spool/%n\nSlurmctldPidFile=" << folder_ << "/run/slurmctld.pid\nSlurmdPidFile=" << folder_
         << "/run/slurmd.%n.pid\nSlurmctldLogFile=" << folder_ << "/log/slurmctld.log\nSlurmdLogFile=" << folder_
         << "/log/slurmd.%n.log\n"
         << "MailProg=/bin/true\nMpiDefault=none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
            "SwitchType=switch/"
            "none\nMessageTimeout=3\nReturnToService=2\nKillWait=5\nSlurmdParameters=config_overrides\n"
            "SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1\nSelectType=select/cons_tres\n"
            "SelectTypeParameters=CR_Core\nGresTypes=gpu\nJobRequeue=1\nMinJobAge=2\n"
            "AccountingStorageType=accounting_storage/none\nPreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"
         << more
         << "NodeName=DEFAULT CPUs=16 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=16000 "
            "Gres=gpu:a100:8\n";
    std::string gres = "Name=gpu Type=a100 File=/dev/tty[0-7]\n";
    for (int i = 1; i <= nodes; ++i) {
        fs::create_directories(folder_ + "/spool/n" + std::to_string(i));
        conf << "NodeName=n" << i << " NodeHostname=" << short_host
             << " NodeAddr=127.0.0.1 Port=" << ports[static_cast<std::size_t>(i)] << "\n";
    }
    conf << "PartitionName=main Nodes=ALL Default=YES PriorityTier=1 PreemptMode=CANCEL\n"
            "PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF\n";
    std::ofstream(config()) << conf.str();
    std::ofstream(folder_ + "/gres.conf") << gres;
    std::ofstream(folder_ + "/cgroup.conf") << "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n";
}

void SlurmCluster::run(const std::vector<std::string>& words) const {
    const auto ran = run_program(
        {.arguments = words, .environment = {std::string("PATH=") + kPath, "SLURM_CONF=" + config(), "HOME=/"}},
        in(30));
    EXPECT_TRUE(ran.ok()) << ran.error().text();
    if (ran) {
        EXPECT_EQ(ran->exit_code, 0) << words.front() << ": " << ran->complaint;
    }
}

std::string SlurmCluster::say(const std::vector<std::string>& words) const {
    const auto ran = run_program(
        {.arguments = words, .environment = {std::string("PATH=") + kPath, "SLURM_CONF=" + config(), "HOME=/"}},
        in(30));
    return ran && ran->exit_code == 0 ? std::string(trim(ran->output)) : std::string();
}

void SlurmCluster::kill_controller(int signal_number) {
    end(folder_ + "/run/slurmctld.pid", signal_number);
}

// One that does not come up, for whatever another left behind or a machine that does other things, is started again:
// every test behind this one needs it.
void SlurmCluster::start_controller(bool forgets) {
    std::vector<std::string> words = {"slurmctld", "-f", config()};
    if (forgets) words.insert(words.begin() + 1, "-c");
    for (int tries = 0; tries < 3; ++tries) {
        (void)say(words);
        if (eventually([&] { return !say({"scontrol", "ping"}).empty(); }, in(30))) return;
        kill_controller(SIGKILL);
    }
    const std::string log = content(folder_ + "/log/slurmctld.log");
    ADD_FAILURE() << "slurmctld does not answer; its log ends with\n"
                  << log.substr(log.size() - std::min<std::size_t>(log.size(), 3000));
}

void SlurmCluster::forget_all() {
    kill_controller(SIGKILL);
    start_controller(true);
    EXPECT_TRUE(eventually([&] { return ready(); }, in(60))) << say({"sinfo"});
}

void SlurmCluster::kill_node(int node, int signal_number) {
    end(folder_ + "/run/slurmd.n" + std::to_string(node) + ".pid", signal_number);
}
void SlurmCluster::start_node(int node) {
    run({"slurmd", "-N", "n" + std::to_string(node), "-f", config()});
}

bool SlurmCluster::ready() const {
    return say({"sinfo", "-h", "-p", "main", "-t", "idle,alloc,mix", "-o", "%D"}) == std::to_string(nodes_);
}
void SlurmCluster::hold_queue() const {
    run({"scontrol", "update", "partitionname=main", "state=down"});
}
void SlurmCluster::let_start() const {
    run({"scontrol", "update", "partitionname=main", "state=up"});
}
bool SlurmCluster::quiet() const {
    return say({"squeue", "-h", "-t", "pending,running,completing,configuring"}).empty();
}

}  // namespace stoker::contract
