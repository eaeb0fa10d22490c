#include "io/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "io/clock.h"

namespace stoker {
namespace {

constexpr int kDefaultWidth = 100, kLeastWidth = 40, kMostWidth = 1000;
constexpr double kFirstDraw_s = 1.0, kBetweenDraws_s = 0.1;

std::string_view environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
}

bool is_dumb() {
    return environment("TERM").empty() || environment("TERM") == "dumb";
}

}  // namespace

bool stdin_is_terminal() {
    return isatty(STDIN_FILENO) == 1;
}
bool stdout_is_terminal() {
    return isatty(STDOUT_FILENO) == 1;
}
bool stderr_is_terminal() {
    return isatty(STDERR_FILENO) == 1;
}

Result<std::string> ask_secret(std::string_view question) {
    constexpr std::size_t kMostTyped = 4096;
    const int fd = ::open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (fd < 0) return Error(ErrorKind::unavailable, "there is no terminal to ask for a password");
    struct termios before {};
    const bool hidden = ::tcgetattr(fd, &before) == 0;
    if (hidden) {
        struct termios silent = before;
        silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        ::tcsetattr(fd, TCSAFLUSH, &silent);
    }
    std::string typed;
    char c = 0;
    bool read = ::write(fd, question.data(), question.size()) >= 0;
    while (read && typed.size() < kMostTyped && (read = ::read(fd, &c, 1) == 1) && c != '\n') typed += c;
    if (hidden) ::tcsetattr(fd, TCSAFLUSH, &before);
    (void)!::write(fd, "\n", 1);
    ::close(fd);
    if (!read && typed.empty()) return Error(ErrorKind::unavailable, "no password was typed");
    return typed;
}

bool colour_allowed() {
    if (!environment("NO_COLOR").empty()) return false;
    const std::string_view force = environment("CLICOLOR_FORCE");
    if (!force.empty() && force != "0") return true;
    return stdout_is_terminal() && !is_dumb();
}

bool unicode_allowed() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const std::string locale = lower(environment(name));
        if (locale.empty()) continue;
        if (locale == "c" || locale == "posix") return false;
        const auto dot = locale.find('.');
        return dot == std::string::npos || locale.find("utf", dot) != std::string::npos;
    }
    return true;
}

int terminal_width() {
    const std::string_view columns = environment("COLUMNS");
    int width = 0;
    if (!columns.empty()) std::from_chars(columns.data(), columns.data() + columns.size(), width);
    if (width <= 0) {
        winsize size{};
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
    }
    return width <= 0 ? kDefaultWidth : std::clamp(width, kLeastWidth, kMostWidth);
}

ProgressLine::ProgressLine(bool enabled)
    : enabled_(enabled && stderr_is_terminal() && !is_dumb()), next_draw_(monotonic_seconds() + kFirstDraw_s) {}

void ProgressLine::update(double share, std::string_view what) {
    const std::lock_guard lock(mutex_);
    if (!enabled_) return;
    const double now = monotonic_seconds();
    if (now < next_draw_) return;
    next_draw_ = now + kBetweenDraws_s;
    const std::string text = "\r" + line(share, what, terminal_width() - 1) + "\x1b[K";
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
    drawn_ = true;
}

void ProgressLine::clear() {
    const std::lock_guard lock(mutex_);
    if (!drawn_) return;
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
    drawn_ = false;
}

std::string ProgressLine::line(double share, std::string_view what, int width) {
    std::string text;
    if (share >= 0) {
        constexpr int kCells = 20;
        const double part = std::min(share, 1.0);
        const auto filled = static_cast<std::size_t>(part * kCells);
        const std::string percent = std::to_string(static_cast<int>(part * 100));
        text = "[" + std::string(filled, '=') + std::string(kCells - filled, ' ') + "] " + pad_left(percent, 3) + " % ";
    }
    text += printable(what);
    return cut(text, static_cast<std::size_t>(std::max(width, 1)));
}

}  // namespace stoker
