// INT, TERM and HUP as something to wait for, in place of handlers.
#pragma once

#include <csignal>
#include <optional>

namespace stoker {

// Made before threads are: each inherits that these signals are blocked. Programs that are started get them unblocked
// (io/process.h). One at a time.
class StopSignal {
public:
    StopSignal();
    ~StopSignal();  // as it was before
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;

    int wait();                                   // its number
    std::optional<int> wait_for(double seconds);  // nothing: none came
    // From here on the next one ends the process at once, for whoever does not want to wait for an orderly end.
    void exit_on_the_next();

private:
    sigset_t before_{}, watched_{};
};

}  // namespace stoker
