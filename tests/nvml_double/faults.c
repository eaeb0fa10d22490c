/* Faults of the machine under the agent, for LD_PRELOAD: what no driver can be asked for. Each is a file in the folder that
 * STOKER_FAULTS names.
 *
 *     clock     seconds that the wall clock is off by; the monotonic clock goes on as it does
 *     no-fork   there is no process to be had, while it is there
 *     overrun   the next read of the kernel log finds that records were overwritten; the file goes away then
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int fault_path(char* path, size_t size, const char* name) {
    const char* folder = getenv("STOKER_FAULTS");
    return folder != NULL && snprintf(path, size, "%s/%s", folder, name) < (int)size;
}

static int there(const char* name) {
    char path[512];
    return fault_path(path, sizeof path, name) && access(path, F_OK) == 0;
}

static long clock_off(void) {
    char path[512];
    if (!fault_path(path, sizeof path, "clock")) return 0;
    FILE* file = fopen(path, "re");
    if (file == NULL) return 0;
    long seconds = 0;
    if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
    fclose(file);
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
    const long done = syscall(SYS_clock_gettime, clock, time);
    if (done == 0 && clock == CLOCK_REALTIME) time->tv_sec += clock_off();
    return (int)done;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
    const long done = syscall(SYS_gettimeofday, time, zone);
    if (done == 0) time->tv_sec += clock_off();
    return (int)done;
}

pid_t fork(void) {
    if (there("no-fork")) {
        errno = EAGAIN;
        return -1;
    }
    pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
    return real();
}

ssize_t read(int fd, void* buffer, size_t size) {
    char link[64], target[512], path[512];
    if (there("overrun")) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t got = readlink(link, target, sizeof target - 1);
        const size_t end = strlen("/dev/kmsg");
        if (got > (ssize_t)end && memcmp(target + got - end, "/dev/kmsg", end) == 0 && fault_path(path, sizeof path, "overrun")) {
            unlink(path);
            errno = EPIPE;
            return -1;
        }
    }
    return syscall(SYS_read, fd, buffer, size);
}
