// The questions as a person meets them: on a pseudo-terminal, answered one by one.
#include "app/interview.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/cli.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// stoker on a terminal of its own, in an empty folder.
class Terminal {
public:
    explicit Terminal(const std::vector<std::string>& words) {
        char name[] = "/tmp/stoker-interview-XXXXXX";
        folder_ = mkdtemp(name);
        pid_ = forkpty(&fd_, nullptr, nullptr, nullptr);
        if (pid_ < 0) fd_ = -1;
        if (pid_ == 0) {
            setenv("TERM", "dumb", 1);
            setenv("COLUMNS", "100", 1);
            setenv("XDG_CONFIG_HOME", (folder_ + "/config").c_str(), 1);
            if (chdir(folder_.c_str()) != 0) _exit(99);
            const int code = run_cli(words);
            std::fflush(nullptr);
            _exit(code);
        }
    }
    ~Terminal() {
        if (pid_ > 0 && !ended_) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
        if (fd_ >= 0) close(fd_);
        fs::remove_all(folder_);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    // Reads until a question waits for its answer, or the end. False at the end.
    bool wait_for_prompt() {
        last_.clear();
        for (;;) {
            pollfd ready{fd_, POLLIN, 0};
            if (poll(&ready, 1, 30'000) <= 0) return false;
            char buffer[4096];
            const ssize_t got = read(fd_, buffer, sizeof(buffer));
            if (got <= 0) return false;
            last_.append(buffer, static_cast<std::size_t>(got));
            all_.append(buffer, static_cast<std::size_t>(got));
            if (last_.ends_with("  > ")) return true;
        }
    }
    // Types a line, or a control character. The text up to the next question is in last().
    bool answer(const std::string& text) {
        EXPECT_EQ(write(fd_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        return wait_for_prompt();
    }
    int wait() {
        while (wait_for_prompt()) {
        }
        int status = 0;
        // Silent for so long, it waits for an answer that never comes: a failure, and no reason to hang.
        for (int i = 0; i < 3000 && waitpid(pid_, &status, WNOHANG) == 0; ++i)
            if (i == 2999)
                kill(pid_, SIGKILL), waitpid(pid_, &status, 0);
            else
                usleep(10'000);
        ended_ = true;
        return status;
    }
    const std::string& last() const { return last_; }
    const std::string& all() const { return all_; }
    std::string file(const std::string& name) const {
        std::ifstream in(folder_ + "/" + name);
        std::stringstream text;
        text << in.rdbuf();
        return text.str();
    }
    bool empty_folder() const { return fs::is_empty(folder_); }

private:
    std::string folder_, last_, all_;
    int fd_ = -1;
    pid_t pid_ = -1;
    bool ended_ = false;
};

bool shows(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

// A bare chroot without devpts has no pseudo-terminals; there the questions cannot be asked, and nobody could answer.
class Interview : public testing::Test {
protected:
    void SetUp() override {
        int controller = -1, terminal = -1;
        if (openpty(&controller, &terminal, nullptr, nullptr, nullptr) != 0)
            GTEST_SKIP() << "no pseudo-terminal: mount devpts on /dev/pts to run this";
        close(controller);
        close(terminal);
    }
};

// Somebody without a file gets a notebook: the answers become the file, and its price is told before anything starts.
TEST_F(Interview, TheAnswersBecomeTheFileAndThePriceIsTold) {
    Terminal terminal({"plan"});
    ASSERT_TRUE(terminal.wait_for_prompt()) << terminal.all();
    EXPECT_TRUE(shows(terminal.last(), "training or inference?"));
    ASSERT_TRUE(terminal.answer("notebook\n")) << terminal.all();
    EXPECT_TRUE(shows(terminal.last(), "how much memory"));
    ASSERT_TRUE(terminal.answer("32GiB\n"));
    EXPECT_TRUE(shows(terminal.last(), "how long is it kept?"));
    ASSERT_TRUE(terminal.answer("8h\n"));
    while (terminal.answer("\n")) {
    }
    const int status = terminal.wait();
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << terminal.all();
    EXPECT_TRUE(shows(terminal.all(), "where are you")) << terminal.all();  // once: it is kept
    EXPECT_TRUE(shows(terminal.all(), "written to workload.yaml")) << terminal.all();
    EXPECT_TRUE(shows(terminal.all(), "8 h   $")) << terminal.all();  // the price of the period, "8 h   $3.63"
    const std::string file = terminal.file("workload.yaml");
    EXPECT_TRUE(shows(file, "kind: notebook")) << file;
    EXPECT_TRUE(shows(file, "period: 8h")) << file;
    EXPECT_TRUE(shows(file, "memory: 32GiB")) << file;
    EXPECT_TRUE(shows(file, "stop_after: 8h")) << file;  // its lease: nobody pays for a forgotten weekend
}

// A wrong answer is refused with the words the file's reader has, and asked again; a needed one cannot be skipped.
TEST_F(Interview, AWrongAnswerIsAskedAgain) {
    Terminal terminal({"plan", "--save", "job.yaml"});
    ASSERT_TRUE(terminal.wait_for_prompt());
    ASSERT_TRUE(terminal.answer("\n"));
    EXPECT_TRUE(shows(terminal.last(), "cannot be left open")) << terminal.last();
    ASSERT_TRUE(terminal.answer("serving\n"));
    EXPECT_TRUE(shows(terminal.last(), "did you mean inference?")) << terminal.last();
    ASSERT_TRUE(terminal.answer("Fine Tuning\n"));
    EXPECT_TRUE(shows(terminal.last(), "how many parameters")) << terminal.last();
    ASSERT_TRUE(terminal.answer("lama-3-8b\n"));
    EXPECT_TRUE(shows(terminal.last(), "did you mean llama-3-8b?")) << terminal.last();
    ASSERT_TRUE(terminal.answer("llama-3-8b\n"));
    ASSERT_TRUE(terminal.answer("qlora\n"));
    ASSERT_TRUE(terminal.answer("many\n"));
    EXPECT_TRUE(shows(terminal.last(), "'many'")) << terminal.last();
    ASSERT_TRUE(terminal.answer("52000\n"));
    while (terminal.answer("\n")) {
    }
    const int status = terminal.wait();
    EXPECT_EQ(WEXITSTATUS(status), 0) << terminal.all();
    EXPECT_TRUE(shows(terminal.file("job.yaml"), "method: qlora")) << terminal.file("job.yaml");
}

// Ctrl-D and Ctrl-C leave at any question, and nothing is half written.
TEST_F(Interview, AbandonedQuestionsWriteNothing) {
    {
        Terminal terminal({"plan"});
        ASSERT_TRUE(terminal.wait_for_prompt());
        ASSERT_TRUE(terminal.answer("training\n"));
        EXPECT_FALSE(terminal.answer("\x04"));
        const int status = terminal.wait();
        ASSERT_TRUE(WIFEXITED(status));
        EXPECT_EQ(WEXITSTATUS(status), 2) << terminal.all();
        EXPECT_TRUE(shows(terminal.all(), "nothing was written")) << terminal.all();
        EXPECT_TRUE(terminal.empty_folder());
    }
    Terminal terminal({"plan"});
    ASSERT_TRUE(terminal.wait_for_prompt());
    ASSERT_TRUE(terminal.answer("training\n"));
    EXPECT_FALSE(terminal.answer("\x03"));
    const int status = terminal.wait();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;  // a shell shows 130
    EXPECT_TRUE(terminal.empty_folder());
}

// Answers must not replace a file that somebody wrote.
TEST_F(Interview, AFileThatIsThereStays) {
    Terminal terminal({"plan", "--save", "/dev/null"});
    const int status = terminal.wait();
    EXPECT_EQ(WEXITSTATUS(status), 2) << terminal.all();
    EXPECT_TRUE(shows(terminal.all(), "is there already")) << terminal.all();
}

}  // namespace
}  // namespace stoker
