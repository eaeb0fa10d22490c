// The parts of a check put together: what one run of it knows in the end. More of it in tests/e2e/check_test.py.
#include "check/project.h"

#include <gtest/gtest.h>

#include "check/check_config.h"
#include "check/checklist.h"
#include "check/fix_files.h"
#include "check/test_folder.h"

namespace stoker {
namespace {

const std::string kPod = "apiVersion: v1\nkind: Pod\n";
const std::string kUnused = "# stoker: ignore[SYN002]\n";

CheckRequest request_for(const TestFolder& folder) {
    CheckRequest request;
    request.paths = {folder.path()};
    request.root = folder.path();
    request.options.as_of = "2026-11-20";
    request.options.off = *rules_off({}, {}, "");
    return request;
}

std::vector<std::string> found_in(const Project& project) {
    std::vector<std::string> list;
    for (const lint::Finding& finding : project.outcome().findings)
        list.push_back(finding.rule + " " + project.stable_path()(finding.path) + ":" +
                       std::to_string(finding.place.line));
    return list;
}
using List = std::vector<std::string>;

TEST(Projects, AreCheckedInTheSameWayWithAnyNumberOfThreads) {
    const TestFolder folder;
    for (int i = 0; i < 40; ++i)
        folder.write("d" + std::to_string(i % 5) + "/f" + std::to_string(i) + ".yaml", i % 3 ? kPod : kPod + kUnused);
    List first;
    for (const int threads : {1, 2, 5}) {
        CheckRequest request = request_for(folder);
        request.threads = threads;
        Project project(request);
        project.run();
        EXPECT_EQ(project.outcome().files.size(), 40u);
        EXPECT_EQ(project.outcome().findings.size(), 14u);
        if (first.empty()) first = found_in(project);
        EXPECT_EQ(found_in(project), first);
    }
}

TEST(Projects, FixTextsAndWriteThemOnlyWhenNobodyElseDid) {
    const TestFolder folder;
    folder.write("a.yaml", kUnused + kPod);
    folder.write("b.yaml", kPod + kUnused);
    Project project(request_for(folder));
    project.run();
    EXPECT_EQ(found_in(project), (List{"SYN004 a.yaml:1", "SYN004 b.yaml:3"}));
    const auto fixed = project.fix({});
    ASSERT_TRUE(fixed) << fixed.error().text();
    EXPECT_EQ(fixed->after.size(), 2u);
    EXPECT_NE(fixed_diff(*fixed).find("-# stoker: ignore[SYN002]"), std::string::npos);
    folder.write("b.yaml", "somebody else's\n");
    const auto refused = write_fixed(*fixed);
    ASSERT_EQ(refused.size(), 1u);
    EXPECT_NE(refused[0].message.find("b.yaml was changed"), std::string::npos);
    EXPECT_EQ(*read_file(folder.path("a.yaml"), 1000), kPod);
    EXPECT_EQ(*read_file(folder.path("b.yaml"), 1000), "somebody else's\n");
}

TEST(Projects, DoNotFixWhatTheBaselineKnows) {
    const TestFolder folder;
    folder.write("a.yaml", kUnused + kPod);
    CheckRequest request = request_for(folder);
    Project before(request);
    before.run();
    request.baseline = lint::baseline_of(before.before_baseline(), before.stable_path(), {}, "2026-11-20");
    folder.write("a.yaml", kUnused + kPod + "# stoker: ignore[SYN003,SYN002]\n");
    Project project(request);
    project.run();
    EXPECT_EQ(found_in(project), List{"SYN004 a.yaml:4"});
    EXPECT_EQ(project.outcome().baselined.size(), 1u);
    const auto fixed = project.fix({});
    ASSERT_TRUE(fixed);
    ASSERT_EQ(fixed->after.size(), 1u);
    EXPECT_EQ(fixed->after.begin()->second, kUnused + kPod + "# stoker: ignore[SYN003]\n");
}

// A workload file says whether it trains, where, and on what: the checklist need not guess from launchers.
TEST(Checklists, ReadWhatAWorkloadFileSays) {
    const TestFolder folder;
    folder.write("train.yaml",
                 "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\norchestrator: aks\n"
                 "where: {sizes: [Standard_ND96isr_H100_v5]}\n");
    Project project(request_for(folder));
    project.run();
    const auto points = checklist_of(project, false);
    for (const std::size_t point : {0u, 2u, 5u, 7u})
        EXPECT_EQ(points[point].verdict, ChecklistPoint::Verdict::pass) << points[point].reason;
    EXPECT_TRUE(points[0].reason.starts_with("kind: training at ")) << points[0].reason;
}

TEST(Checklists, SayUnknownWhereNothingWasFound) {
    const TestFolder folder;
    folder.write("a.yaml", kPod);
    Project project(request_for(folder));
    project.run();
    const auto points = checklist_of(project, false);
    ASSERT_EQ(points.size(), 11u);
    for (const ChecklistPoint& point : points) {
        EXPECT_EQ(point.verdict, ChecklistPoint::Verdict::unknown) << point.title;
        EXPECT_FALSE(point.reason.empty()) << point.title;
    }
    EXPECT_EQ(checklist_of(project, true)[4].verdict, ChecklistPoint::Verdict::pass);
    EXPECT_NE(checklist_text(points, Style{}).find("0 pass, 0 fail, 11 unknown"), std::string::npos);
}

}  // namespace
}  // namespace stoker
