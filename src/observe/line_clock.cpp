#include "observe/line_clock.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "io/process.h"

namespace stoker {
namespace {

constexpr std::size_t kMostFiles = 256, kMostMarks = 8192;
constexpr int kRestMs = 5, kBurst = 100;  // wakes in a second without a rest

double wall_s() {
    return static_cast<double>(wall_clock_us()) / 1e6;
}

std::int64_t size_of(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? static_cast<std::int64_t>(status.st_size) : -1;
}

}  // namespace

// Of the thread and of whoever asks.
struct LineClock::Shared {
    struct File {
        std::int64_t began = 0, last = 0;                   // as long as it was when watching began, and lately
        std::deque<std::pair<std::int64_t, double>> marks;  // how long it was, and when
        int watched = -1, users = 0;
    };
    UniqueFd events, stop;
    std::mutex mutex;  // guards what follows
    std::map<std::string, File, std::less<>> files;
    std::map<int, std::string> by_watch;

    void note(const std::string& path, double now_s) {
        const std::int64_t size = size_of(path);
        const std::lock_guard lock(mutex);
        const auto found = files.find(path);
        if (found == files.end() || size < 0) return;
        File& file = found->second;
        if (size < file.last) {  // cut, or another
            file.began = file.last = size;
            file.marks.clear();
        }
        if (size == file.last) return;
        file.last = size;
        file.marks.emplace_back(size, now_s);
        if (file.marks.size() <= kMostMarks) return;
        file.began = file.marks.front().first;
        file.marks.pop_front();
    }

    void forget(const std::string& path) {
        const std::lock_guard lock(mutex);
        const auto found = files.find(path);
        if (found == files.end() || --found->second.users > 0) return;
        ::inotify_rm_watch(events.get(), found->second.watched);
        by_watch.erase(found->second.watched);
        files.erase(found);
    }

    void run() {
        alignas(inotify_event) std::array<char, 8192> buffer{};
        std::array<pollfd, 2> wait{{{events.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}}};
        double second = 0;
        int wakes = 0;
        for (;;) {
            if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return;
            if ((wait[1].revents & POLLIN) != 0) return;
            const double now_s = wall_s();
            std::vector<std::string> grown;
            ssize_t got = 0;
            while ((got = ::read(events.get(), buffer.data(), buffer.size())) > 0) {
                const std::lock_guard lock(mutex);
                for (ssize_t at = 0; at < got;) {
                    const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
                    if (const auto path = by_watch.find(event->wd); path != by_watch.end() && grown.size() < kMostFiles)
                        if (grown.empty() || grown.back() != path->second) grown.push_back(path->second);
                    at += static_cast<ssize_t>(sizeof(inotify_event)) + static_cast<ssize_t>(event->len);
                }
            }
            for (const std::string& path : grown) note(path, now_s);
            if (std::floor(now_s) != second) second = std::floor(now_s), wakes = 0;
            if (++wakes > kBurst && ::poll(&wait[1], 1, kRestMs) > 0) return;
        }
    }
};

std::shared_ptr<LineClock> LineClock::start() {
    auto shared = std::make_shared<Shared>();
    shared->events = UniqueFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    shared->stop = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!shared->events || !shared->stop) return nullptr;
    auto clock = std::shared_ptr<LineClock>(new LineClock(shared));
    if (!clock->thread_.post([shared] { shared->run(); })) return nullptr;
    return clock;
}

LineClock::~LineClock() {
    const std::uint64_t one = 1;
    (void)(::write(shared_->stop.get(), &one, sizeof one) > 0);
    thread_.stop(after(2));
}

std::shared_ptr<LineClock> LineClock::shared() {
    static std::mutex mutex;
    static std::weak_ptr<LineClock> kept;
    const std::lock_guard lock(mutex);
    std::shared_ptr<LineClock> clock = kept.lock();
    if (clock == nullptr) kept = clock = start();
    return clock;
}

std::shared_ptr<void> LineClock::watch(const std::string& path) {
    {
        const std::lock_guard lock(shared_->mutex);
        auto found = shared_->files.find(path);
        if (found == shared_->files.end()) {
            if (shared_->files.size() >= kMostFiles) return nullptr;
            const int watched = ::inotify_add_watch(shared_->events.get(), path.c_str(), IN_MODIFY);
            if (watched < 0) return nullptr;
            const std::int64_t size = size_of(path);
            found = shared_->files.emplace(path, Shared::File{.began = size, .last = size, .marks = {}}).first;
            found->second.watched = watched;
            shared_->by_watch[watched] = path;
        }
        ++found->second.users;
    }
    // What is kept is no more than the right to be told.
    return {shared_.get(), [shared = shared_, path](void*) { shared->forget(path); }};
}

std::optional<double> LineClock::when(const std::string& path, std::int64_t size) {
    const std::lock_guard lock(shared_->mutex);
    const auto found = shared_->files.find(path);
    if (found == shared_->files.end() || size <= found->second.began) return std::nullopt;
    auto& marks = found->second.marks;
    while (!marks.empty() && marks.front().first < size) marks.pop_front();
    return marks.empty() ? std::nullopt : std::optional(marks.front().second);
}

}  // namespace stoker
