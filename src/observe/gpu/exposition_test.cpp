#include "observe/gpu/exposition.h"

#include <gtest/gtest.h>

#include <cmath>

#include "observe/gpu/exposition_check.h"

namespace stoker {
namespace {

std::vector<ExpositionFamily> families() {
    return {{"stoker_gpu_power_watts",
             "Power \\ of\na board",
             false,
             {{label_text("gpu", "0\"\\\n\xff"), 70.5, {}}, {label_text("gpu", "1"), std::nan(""), {}}}},
            {"stoker_gpu_energy_joules_total", "Energy", true, {{"", 9007199254740991.0, 12.0}}},
            {"stoker_nothing", "Nothing", false, {}}};
}

// Both formats as they are written, with what has to be escaped, and clean to the strict check.
TEST(Exposition, IsWrittenAsItsFormatsAre) {
    const std::string text = prometheus_text(families());
    EXPECT_EQ(text,
              "# HELP stoker_gpu_power_watts Power \\\\ of\\na board\n# TYPE stoker_gpu_power_watts gauge\n"
              "stoker_gpu_power_watts{gpu=\"0\\\"\\\\\\n\xef\xbf\xbd\"} 70.5\n"
              "# HELP stoker_gpu_energy_joules_total Energy\n# TYPE stoker_gpu_energy_joules_total counter\n"
              "stoker_gpu_energy_joules_total 9007199254740991\n");
    const std::string open = openmetrics_text(families());
    EXPECT_NE(open.find("# TYPE stoker_gpu_energy_joules counter\nstoker_gpu_energy_joules_total "
                        "9007199254740991\nstoker_gpu_energy_joules_created 12\n# EOF\n"),
              std::string::npos)
        << open;
    EXPECT_TRUE(check_exposition(text, false).problems.empty());
    EXPECT_TRUE(check_exposition(open, true).problems.empty());
}

// The scraper's wish, by its q-values.
TEST(Exposition, IsGivenAsAskedFor) {
    EXPECT_FALSE(wants_openmetrics(""));
    EXPECT_FALSE(wants_openmetrics("*/*"));
    EXPECT_FALSE(wants_openmetrics("text/plain;version=0.0.4,application/openmetrics-text;q=0.5"));
    EXPECT_TRUE(wants_openmetrics(
        "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
}

// What promtool passes over and what it finds, each with its line.
TEST(ExpositionCheck, FindsWhatIsWrong) {
    const std::string head = "# HELP a_seconds x\n# TYPE a_seconds gauge\n";
    const struct {
        std::string text;
        bool open;
        std::size_t line;
        const char* says;
    } cases[] = {
        {"", false, 1, "empty"},
        {head + "a_seconds 1\na_seconds 2\n", false, 4, "twice"},
        {head + "a_seconds NaN\n", false, 3, "NaN"},
        {head + "a_seconds 1", false, 3, "newline"},
        {head + "a_seconds{x=\"1\"} 1\n# HELP b x\n# TYPE b gauge\nb 1\na_seconds{x=\"2\"} 1\n", false, 7,
         "torn apart"},
        {"# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 5\nh_bucket{le=\"2\"} 4\nh_bucket{le=\"+Inf\"} 5\nh_sum "
         "1\nh_count 5\n",
         false, 4, "fewer"},
        {"# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 5\nh_sum 1\nh_count 5\n", false, 3, "+Inf"},
        {head + "a_seconds 1\n", true, 3, "# EOF"},
        {head + "a_seconds 1\n# EOF\na_seconds{x=\"1\"} 1\n# EOF\n", true, 5, "behind # EOF"},
        {"a_seconds 1\n", false, 1, "no TYPE"},
        {"# HELP a x\n# TYPE a counter\na 1\n", false, 2, "_total"},
        {"# HELP a_total x\n# TYPE a_total gauge\na_total 1\n", false, 2, "only a counter"},
        {"# HELP a_milliseconds x\n# TYPE a_milliseconds gauge\na_milliseconds 1\n", false, 2, "seconds in place"},
        {head + head + "a_seconds 1\n", false, 3, "second HELP"},
        {head + "a_seconds{x=\"1} 1\n", false, 3, "not closed"},
        {head + "a_seconds{x=\"\\t\"} 1\n", false, 3, "escapes"},
        {head + "a_seconds{x=\"1\",x=\"2\"} 1\n", false, 3, "twice"},
        {head + "a_seconds{fooBar=\"1\"} 1\n", false, 3, "camelCase"},
        {head + "a_seconds one\n", false, 3, "no number"},
        {head + "a_seconds 1 later\n", false, 3, "time stamp"},
        {head + "a-seconds 1\n", false, 3, "blank and a value"},
        {"<html>\n", false, 1, "no name"},
        {head + "a_seconds{x=\"\xff\"} 1\n", false, 3, "UTF-8"},
        {"# HELP a_total x\n# TYPE a_total counter\na_total -1\n", false, 3, "below zero"},
    };
    for (const auto& one : cases) {
        const ExpositionReport report = check_exposition(one.text, one.open);
        bool found = false;
        for (const ExpositionProblem& problem : report.problems)
            found = found || (problem.line == one.line && problem.message.find(one.says) != std::string::npos);
        EXPECT_TRUE(found) << one.text << "\n--- wanted: " << one.says << " at " << one.line;
    }
}

// No page, however damaged, ends the checker; and each cut of a good OpenMetrics page is noticed.
TEST(ExpositionCheck, NoticesEachCut) {
    const std::string page = openmetrics_text(families());
    for (std::size_t length = 0; length + 1 <= page.size(); ++length)
        EXPECT_FALSE(check_exposition(page.substr(0, length), true).problems.empty()) << length;
    for (std::size_t at = 0; at < page.size(); ++at)
        for (const char c : {'{', '"', '\n', '\0', '\\'}) {
            std::string damaged = page;
            damaged[at] = c;
            (void)check_exposition(damaged, true);
        }
}

}  // namespace
}  // namespace stoker
