#include "deploy/local/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

Deadline after(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// A server in a thread, in a folder whose name is longer than an address of a socket may be.
class Served : public ::testing::Test {
protected:
    Served() {
        std::string root = std::filesystem::temp_directory_path() / "stoker-control-XXXXXX";
        root_ = ::mkdtemp(root.data());
        folder = root_ + "/" + std::string(150, 'x');
        std::filesystem::create_directories(folder);
    }
    ~Served() override {
        stop();
        std::filesystem::remove_all(root_);
    }
    void serve() {
        thread_ = std::thread([this] {
            ControlServer server;
            listening = server.listen(folder).ok();
            ready = true;
            while (!stop_) {
                std::vector<pollfd> waits;
                server.add_to(waits);
                ::poll(waits.data(), waits.size(), 5);
                server.serve([](const ControlRequest& request) {
                    return ControlAnswer{.ok = request.epoch == 7,
                                         .detail = std::to_string(request.signal),
                                         .status = std::string(50000, 's')};
                });
            }
        });
        while (!ready) std::this_thread::yield();
    }
    void stop() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
    }
    std::string root_, folder;
    std::atomic<bool> ready = false, listening = false, stop_ = false;
    std::thread thread_;
};

TEST_F(Served, QuestionsAreAnsweredAndTheEndIsSeen) {
    serve();
    ASSERT_TRUE(listening);
    auto client = ControlClient::connect(folder, after(5));
    ASSERT_TRUE(client.ok()) << client.error().text();
    for (int i = 0; i < 3; ++i) {
        auto answer = client->ask({.verb = ControlVerb::signal, .epoch = 7, .signal = 10}, after(5));
        ASSERT_TRUE(answer.ok()) << answer.error().text();
        EXPECT_TRUE(answer->ok);
        EXPECT_EQ(answer->detail, "10");
        EXPECT_EQ(answer->status.size(), 50000u);
    }
    EXPECT_FALSE(client->wait_for_end(after(0.02)));
    stop();
    EXPECT_TRUE(client->wait_for_end(after(5)));
}

// Clients that say nothing, nonsense, or without end, are dropped, and others are served meanwhile.
TEST_F(Served, NonsenseHurtsNobody) {
    serve();
    const auto raw = [&] {
        const UniqueFd place(::open(folder.c_str(), O_PATH));
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strcpy(address.sun_path, ("/proc/self/fd/" + std::to_string(place.get()) + "/control").c_str());
        EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        return socket;
    };
    const UniqueFd silent = raw(), endless = raw(), wrong = raw();
    const std::string much(20000, 'a'), line = "{\"verb\": \"dance\"}\n";
    (void)::send(endless.get(), much.data(), much.size(), MSG_NOSIGNAL);
    (void)::send(wrong.get(), line.data(), line.size(), MSG_NOSIGNAL);
    std::string said(200, '\0');
    said.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::recv(wrong.get(), said.data(), said.size(), 0))));
    const auto refused = parse_answer(said);
    ASSERT_TRUE(refused.ok());
    EXPECT_FALSE(refused->ok);
    auto client = ControlClient::connect(folder, after(5));
    ASSERT_TRUE(client.ok());
    EXPECT_TRUE(client->ask({.epoch = 7}, after(5)).ok());
}

TEST_F(Served, NobodyThereIsSaid) {
    EXPECT_EQ(ControlClient::connect(folder, after(1)).error().kind(), ErrorKind::not_found);
    EXPECT_EQ(ControlClient::connect(folder + "/none", after(1)).error().kind(), ErrorKind::not_found);
    ControlServer server;  // listens, and never looks
    ASSERT_TRUE(server.listen(folder));
    auto client = ControlClient::connect(folder, after(1));
    ASSERT_TRUE(client.ok());
    EXPECT_EQ(client->ask({}, after(0.02)).error().kind(), ErrorKind::timed_out);
}

TEST(Control, RequestsComeBackAsTheyWere) {
    const ControlRequest request{
        .verb = ControlVerb::stop, .epoch = std::uint64_t{1} << 60, .signal = 3, .grace_s = 2.5};
    const auto again = parse_request(to_line(request));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->verb, request.verb);
    EXPECT_EQ(again->epoch, request.epoch);
    EXPECT_EQ(again->grace_s, 2.5);
    for (const char* text : {"", "{}", "[]", R"({"verb":"stop","epoch":-1,"signal":0,"grace_s":0})",
                             R"({"verb":"stop","epoch":1,"signal":0,"grace_s":-1})",
                             R"({"verb":"stop","epoch":1,"signal":1e99,"grace_s":0})"})
        EXPECT_FALSE(parse_request(text).ok()) << text;
}

}  // namespace
}  // namespace stoker
