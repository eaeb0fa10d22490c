// What the terminal can show, and a line of progress on it.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker {

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();
// Whether stdout takes colour: NO_COLOR forbids it, CLICOLOR_FORCE demands it, TERM=dumb and files do without.
bool colour_allowed();
// Whether text may hold more than ASCII: not where the locale says C, POSIX or another encoding than UTF-8.
bool unicode_allowed();
// A line that is typed on the terminal and not shown there, whatever stdin and stdout are. unavailable: there is no
// terminal.
Result<std::string> ask_secret(std::string_view question);
// Columns: COLUMNS when it is set, else what the terminal says, else 100. At least 40.
int terminal_width();

// One line on stderr that overwrites itself. Only on a terminal, and only once the work has taken a second, so that
// quick answers do not flicker. update() may be called from any thread, as often as is handy.
class ProgressLine {
public:
    explicit ProgressLine(bool enabled);
    ~ProgressLine() { clear(); }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    void update(double share, std::string_view what);  // share 0 to 1; below 0 when unknown
    void clear();                                      // wipes the line; the next update may draw it again

    // The line as it is drawn, cut to `width` columns: "[=====     ]  50 % comparing candidates".
    static std::string line(double share, std::string_view what, int width);

private:
    std::mutex mutex_;  // guards all below
    bool enabled_;
    bool drawn_ = false;
    double next_draw_;  // monotonic seconds
};

}  // namespace stoker
