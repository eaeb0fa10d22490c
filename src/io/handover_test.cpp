#include "io/handover.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "io/files.h"

namespace stoker {
namespace {

UniqueFd listening_socket() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd.get(), 4), 0);
    return fd;
}

// Whoever takes it has the very socket that others connect to, also where the folder's name is longer than a socket's
// may be; and one who only looks has changed nothing.
TEST(Handover, TheSocketGoesToTheOneThatTakesIt) {
    auto scratch = ScratchFolder::make("handover");
    ASSERT_TRUE(scratch.ok());
    const std::string folder = scratch->path() + "/" + std::string(120, 'f');
    ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
    EXPECT_EQ(Handover::ask(folder).error().kind(), ErrorKind::not_found);

    UniqueFd socket = listening_socket();
    const auto place = place_of_socket(socket.get());
    ASSERT_TRUE(place.ok());
    std::atomic<pid_t> taken = 0;
    auto offer = HandoverOffer::start(folder, socket.get(), [&](pid_t pid) { taken = pid; });
    ASSERT_TRUE(offer.ok()) << offer.error().text();

    { ASSERT_TRUE(Handover::ask(folder).ok()); }
    EXPECT_EQ(taken, 0) << "it only looked";

    auto handover = Handover::ask(folder);
    ASSERT_TRUE(handover.ok()) << handover.error().text();
    EXPECT_EQ(handover->pid(), ::getpid());
    // This process does not end for it.
    EXPECT_EQ(handover->go(0.2).error().kind(), ErrorKind::timed_out);
    offer->reset();
    EXPECT_EQ(taken, ::getpid());
    socket = UniqueFd();
    const auto same = place_of_socket(handover->socket());
    ASSERT_TRUE(same.ok()) << same.error().text();
    EXPECT_EQ(same->port, place->port);
    EXPECT_EQ(same->address, "127.0.0.1");
    EXPECT_EQ(Handover::ask(folder).error().kind(), ErrorKind::not_found) << "it is offered no more";
}

// A descriptor that is no listening socket, as a wrong socket unit passes it, is refused.
TEST(Handover, OnlyAListeningSocketHasAPlace) {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe.ok());
    EXPECT_EQ(place_of_socket(pipe->read.get()).error().kind(), ErrorKind::invalid);
}

}  // namespace
}  // namespace stoker
