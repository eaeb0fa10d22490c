#include "io/machine/network_namespace.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "io/process.h"

namespace stoker {
namespace {

// Ranks of a gang meet there.
bool raise_loopback() {
    const UniqueFd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!any) return false;
    struct ifreq request {};
    std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
    if (::ioctl(any.get(), SIOCGIFFLAGS, &request) != 0) return false;
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    return ::ioctl(any.get(), SIOCSIFFLAGS, &request) == 0;
}

}  // namespace

Status enter_own_network() {
    if (::unshare(CLONE_NEWNET) != 0)
        return Error(ErrorKind::denied, std::string("cannot make a network namespace: ") + std::strerror(errno));
    if (!raise_loopback())
        return Error(ErrorKind::denied, std::string("cannot bring up its loopback: ") + std::strerror(errno));
    return done();
}

bool own_networks_work() {
    const pid_t child = ::fork();
    if (child < 0) return false;
    if (child == 0) ::_exit(enter_own_network() ? 0 : 1);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace stoker
