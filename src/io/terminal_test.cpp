#include "io/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "io/clock.h"

namespace stoker {
namespace {

// Sets a variable of the environment until the end of the scope.
class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) {
        if (const char* old = std::getenv(name)) old_ = old, had_ = true;
        if (value == nullptr)
            ::unsetenv(name);
        else
            ::setenv(name, value, 1);
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    ~Variable() {
        if (had_)
            ::setenv(name_, old_.c_str(), 1);
        else
            ::unsetenv(name_);
    }

private:
    const char* name_;
    std::string old_;
    bool had_ = false;
};

// NO_COLOR wins over everything, CLICOLOR_FORCE over the kind of output.
TEST(Terminal, ColourFollowsTheEnvironment) {
    const Variable force("CLICOLOR_FORCE", "1");
    {
        const Variable none("NO_COLOR", nullptr);
        EXPECT_TRUE(colour_allowed());
        const Variable dumb("TERM", "dumb");
        const Variable off("CLICOLOR_FORCE", "0");
        EXPECT_FALSE(colour_allowed());
    }
    const Variable none("NO_COLOR", "1");
    EXPECT_FALSE(colour_allowed());
}

// Bars are drawn in ASCII where the locale has nothing else.
TEST(Terminal, TheLocaleSaysWhatCanBeShown) {
    const Variable all("LC_ALL", nullptr), type("LC_CTYPE", nullptr);
    for (const auto& [locale, unicode] : {std::pair{"C.UTF-8", true},
                                          {"de_DE.utf8", true},
                                          {"en_US", true},
                                          {"C", false},
                                          {"POSIX", false},
                                          {"de_DE.ISO-8859-1", false},
                                          {"", true}}) {
        const Variable lang("LANG", locale);
        EXPECT_EQ(unicode_allowed(), unicode) << locale;
    }
}

// COLUMNS sets the width, within what can be laid out.
TEST(Terminal, WidthFollowsColumns) {
    {
        const Variable columns("COLUMNS", "120");
        EXPECT_EQ(terminal_width(), 120);
    }
    const Variable columns("COLUMNS", "3");
    EXPECT_EQ(terminal_width(), 40);
}

// The line shows the share as a bar and a number, and never wraps.
TEST(Terminal, ProgressLineFitsTheWidth) {
    EXPECT_EQ(ProgressLine::line(0.5, "comparing", 80), "[==========          ]  50 % comparing");
    EXPECT_EQ(ProgressLine::line(7, "x", 80), "[====================] 100 % x");
    EXPECT_EQ(ProgressLine::line(-1, "waiting", 80), "waiting");
    EXPECT_EQ(ProgressLine::line(0.5, "comparing\ncandidates", 34), "[==========          ]  50 % co...");
}

// STOKER_NOW stands for the clock when it is a date; otherwise the clock is asked.
TEST(Clock, TodayCanBeSetFromOutside) {
    const Variable now("STOKER_NOW", "2026-11-21T10:00:00Z");
    EXPECT_EQ(today(), "2026-11-21");
    const Variable wrong("STOKER_NOW", "tomorrow");
    EXPECT_EQ(today().size(), 10u);
    EXPECT_GE(today(), "2025-01-01");
}

// The monotonic clock moves forward.
TEST(Clock, MonotonicSecondsNeverGoBack) {
    const double before = monotonic_seconds();
    EXPECT_GE(monotonic_seconds(), before);
}

}  // namespace
}  // namespace stoker
