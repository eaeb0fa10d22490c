// The page of a plan stands alone and lets nothing of the user's through unescaped.
#include <gtest/gtest.h>

#include "app/render/plan_html.h"

namespace stoker {
namespace {

class Html : public testing::Test {
protected:
    Html() : catalog(std::move(Catalog::embedded()).value()) {
        plan.verdict = "Train <script>alert(1)</script> & \"more\"";
        plan.workload.name = "</title><script>";
        plan.workload.assumptions = {"<img src=x onerror=alert(1)>"};
        const int size = catalog.find_node_type("Standard_ND96isr_H100_v5").value();
        for (const double hours : {10.0, 20.0, 80.0}) {
            Candidate c;
            c.node_type = size;
            c.region = "eastus";
            c.nodes = static_cast<int>(80 / hours);
            c.prediction.hours = {hours * 0.9, hours, hours * 1.1};
            c.prediction.usd = {2000 / std::max(1.0, hours / 20), 3000 / hours * 10, 5000};
            c.prediction.step_s = {0.9, 1, 1.1};
            c.prediction.seconds = {0.6, 0.3, 0.1};
            c.prediction.bytes = {10e9, 5e9};
            c.prediction.memory_bytes = {14e9, 15e9, 16e9};
            c.why_not_first = "<b>dearer</b>";
            plan.candidates.push_back(c);
        }
        plan.pareto = plan.candidates;
    }
    Catalog catalog;
    Plan plan;
};

TEST_F(Html, EscapesWhatComesFromOutside) {
    const std::string page = plan_html(plan, catalog);
    EXPECT_EQ(page.find("<script"), std::string::npos);
    EXPECT_EQ(page.find("<img"), std::string::npos);
    EXPECT_EQ(page.find("<b>dearer"), std::string::npos);
    EXPECT_NE(page.find("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more&quot;"), std::string::npos);
}

TEST_F(Html, FetchesNothing) {
    const std::string page = plan_html(plan, catalog);
    for (const char* fetch : {"src=\"", "<link", "@import", "url(", "xlink:href", "http:"})
        EXPECT_EQ(page.find(fetch), std::string::npos) << fetch;
    for (std::size_t at = page.find("https:"); at != std::string::npos; at = page.find("https:", at + 1)) {
        EXPECT_EQ(page.substr(at - 9, 9), "<a href=\"") << page.substr(at, 60);  // links may lead out, nothing else
    }
}

TEST_F(Html, DrawsTheParetoPictureAndTheBars) {
    const std::string page = plan_html(plan, catalog);
    EXPECT_NE(page.find("Time against cost"), std::string::npos);
    EXPECT_NE(page.find("<polyline class=\"front\""), std::string::npos);
    EXPECT_NE(page.find("<title>"), std::string::npos);
    EXPECT_NE(page.find("One step"), std::string::npos);
    EXPECT_EQ(page.find("nan"), std::string::npos);
    EXPECT_EQ(page.find("inf,"), std::string::npos);
}

// A phone shows the picture drawn for a phone; a reader without eyes or mouse gets the same facts as words.
TEST_F(Html, IsReadableOnAPhoneAndWithoutThePicture) {
    const std::string page = plan_html(plan, catalog);
    for (const char* part : {"<svg class=\"wide\"", "<svg class=\"narrow\"", "role=\"img\" aria-label=\"",
                             "<html lang=\"en\"", "as a table</summary>", "name=\"viewport\"", "@media print",
                             "prefers-color-scheme:dark", "data-label=\"why not first\""})
        EXPECT_NE(page.find(part), std::string::npos) << part;
}

// Even markup that slipped through could fetch and run nothing.
TEST_F(Html, ForbidsScriptsAndRequests) {
    EXPECT_NE(plan_html(plan, catalog).find("default-src 'none'; style-src 'unsafe-inline'"), std::string::npos);
}

// Plans of one length, such as notebooks, have nothing to trade: a picture of one column says less than the table.
TEST_F(Html, DrawsNothingWhereAllTakeAsLong) {
    for (auto* list : {&plan.candidates, &plan.pareto}) {
        for (Candidate& c : *list) c.prediction.hours = {8, 8, 8};
    }
    EXPECT_EQ(plan_html(plan, catalog).find("<svg"), std::string::npos);
}

// All services run for one hour: against time they would stand in one column.
TEST_F(Html, DrawsAServiceOverItsLatency) {
    for (auto* list : {&plan.candidates, &plan.pareto}) {
        double latency = 1;
        for (Candidate& c : *list) {
            c.prediction.hours = {1, 1, 1};
            c.prediction.latency.requests_per_s = 3;
            c.prediction.latency.e2e_p95 = latency *= 2;
        }
    }
    const std::string page = plan_html(plan, catalog);
    EXPECT_NE(page.find("Latency against cost"), std::string::npos);
    EXPECT_NE(page.find("cost per hour"), std::string::npos);
    EXPECT_EQ(page.find("80 % between 1 h and 1 h"), std::string::npos);
}

TEST_F(Html, AnInfeasiblePlanSaysWhy) {
    plan.candidates.clear();
    plan.pareto.clear();
    plan.infeasible_because = "7 d are too short by a factor of 2";
    EXPECT_NE(plan_html(plan, catalog).find("No plan:</strong> 7 d are too short"), std::string::npos);
}

}  // namespace
}  // namespace stoker
