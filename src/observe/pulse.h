// What a silent program does twenty times a second, for some seconds: fine enough to see the rhythm of its steps
// (observe/rhythm.h) where they are no seconds long. It takes 0.1 % of a processor while it looks, and looks rarely.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "io/worker.h"
#include "observe/rhythm.h"

namespace stoker {

struct PulseOptions {
    std::string proc = "/proc";
    double every_s = 0.05;
    int looks = 280;  // fourteen seconds: five beats of the longest
    // Seconds on a processor and calls of write until now; nothing: it is gone. Empty: of the process itself.
    std::function<std::optional<std::pair<double, double>>()> look;
};

class Pulse {
public:
    Pulse(pid_t pid, PulseOptions options = {});
    ~Pulse();
    Pulse(const Pulse&) = delete;
    Pulse& operator=(const Pulse&) = delete;
    bool over() const;
    // Once it is over: a rhythm of the processor time of the main thread, or of what the process writes.
    std::optional<Rhythm> rhythm() const;

private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
    WorkerPool thread_{{.name = "stoker-pulse"}};
};

}  // namespace stoker
