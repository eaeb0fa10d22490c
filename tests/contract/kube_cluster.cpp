#include "contract/kube_cluster.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "base/document.h"
#include "io/run_program.h"

namespace stoker::contract {
namespace {

const std::string kFolder = std::string(STOKER_SOURCE_DIR) + "/tests/kube/";

std::vector<std::string> environment() {
    std::vector<std::string> all;
    for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
    return all;
}

std::string complaint_of(std::vector<std::string> words, double limit_s) {
    const auto ran =
        run_program({.arguments = std::move(words), .environment = environment()},
                    std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int>(limit_s * 1000)));
    if (!ran) return ran.error().message();
    return ran->exit_code == 0 ? "" : ran->complaint + ran->output;
}

}  // namespace

std::string KubeCluster::why_not() {
    std::string why = complaint_of({kFolder + "build.sh", "--look"}, 30);
    if (why.empty())
        why = complaint_of({"python3", "-c",
                            "import sys; sys.path.insert(0, '" + kFolder +
                                "'); import pod_runner; sys.exit(pod_runner.why_not() or 0)"},
                           30);
    while (!why.empty() && why.back() == '\n') why.pop_back();
    return why;
}

KubeCluster::KubeCluster() {
    auto orders = make_pipe(), answers = make_pipe();
    EXPECT_TRUE(orders.ok() && answers.ok());
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        ::dup2(orders->read.get(), 0);
        ::dup2(answers->write.get(), 1);
        ::execlp("python3", "python3", (kFolder + "cluster.py").c_str(), nullptr);
        ::_exit(127);
    }
    in_ = std::move(orders->write);
    out_ = std::move(answers->read);
    const auto hello = Document::parse_json(read_line(120), "cluster.py");
    EXPECT_TRUE(hello.ok()) << "the cluster did not come up";
    if (hello) kubeconfig_ = hello->root().find("kubeconfig")->text;
}

KubeCluster::~KubeCluster() {
    in_.reset();
    if (!reap(pid_, std::chrono::steady_clock::now() + std::chrono::seconds(20))) ::kill(pid_, SIGKILL);
}

std::string KubeCluster::read_line(double limit_s) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int>(limit_s * 1000));
    std::size_t end;
    while ((end = rest_.find('\n')) == std::string::npos) {
        pollfd one{.fd = out_.get(), .events = POLLIN, .revents = 0};
        std::array<char, 65536> buffer;
        if (::poll(&one, 1, milliseconds_until(until)) <= 0) return "";
        const ssize_t got = ::read(out_.get(), buffer.data(), buffer.size());
        if (got <= 0) return "";
        rest_.append(buffer.data(), static_cast<std::size_t>(got));
    }
    std::string line = rest_.substr(0, end);
    rest_.erase(0, end + 1);
    return line;
}

std::string KubeCluster::tell(const std::string& order) {
    const std::string line = order + "\n";
    EXPECT_EQ(::write(in_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
    const std::string answer = read_line(60);
    EXPECT_NE(answer.find("\"ok\": true"), std::string::npos) << order << ": " << answer;
    return answer;
}

}  // namespace stoker::contract
