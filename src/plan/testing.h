// For tests of planning only: a workload from text, and plans of it on the embedded catalogue.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "plan/plan.h"

namespace stoker::testing {

inline const Catalog& catalog() {
    static const Catalog* const loaded = [] {
        auto read = Catalog::embedded();
        if (!read) ADD_FAILURE() << read.error().text();
        return new Catalog(std::move(read).value());
    }();
    return *loaded;
}

inline Workload workload(std::string_view yaml) {
    auto document = Document::parse_yaml(std::string("version: 1\n") + std::string(yaml), "test.yaml");
    EXPECT_TRUE(document.ok()) << document.error().text();
    auto read = read_workload(*document, catalog(), [](const std::string& path) -> Result<Document> {
        return Error(ErrorKind::not_found, path);
    });
    EXPECT_TRUE(read.ok()) << read.error().text();
    return std::move(read).value();
}

// The day of the tests.
inline constexpr std::string_view kToday = "2026-11-21";

inline PlanOptions quick() {
    PlanOptions options{.today = std::string(kToday)};
    options.what_if = false;
    return options;
}

inline Plan plan(const Workload& asked, const PlanOptions& options = quick()) {
    auto made = make_plan(asked, catalog(), options);
    EXPECT_TRUE(made.ok()) << made.error().text();
    return made ? std::move(made).value() : Plan{};
}
inline Plan plan(std::string_view yaml, const PlanOptions& options = quick()) {
    return plan(workload(yaml), options);
}

// The shipped catalogue with these sizes only: what holds of any choice is held on few machines in a tenth of the time.
inline Catalog catalog_of(const std::vector<std::string_view>& sizes) {
    Catalog few = catalog();
    for (std::size_t i = 0; i < few.node_types().size(); ++i) {
        NodeType& one = few.node_type(static_cast<int>(i));
        if (std::find(sizes.begin(), sizes.end(), one.name) != sizes.end()) continue;
        one.status = "retired";
        one.retirement_date = "2020-01-01";
    }
    for (const std::string_view size : sizes) EXPECT_TRUE(few.find_node_type(size).ok()) << size;
    return few;
}
inline Plan plan_of(const Catalog& few, std::string_view yaml, const PlanOptions& options = quick()) {
    auto made = make_plan(workload(yaml), few, options);
    EXPECT_TRUE(made.ok()) << yaml;
    return made ? std::move(made).value() : Plan{};
}

inline const NodeType& node(int type) {
    return catalog().node_types()[static_cast<std::size_t>(type)];
}
inline std::string size(const Candidate& candidate) {
    return node(candidate.node_type).name;
}
inline std::string first_size(const Plan& made) {
    return made.candidates.empty() ? "nothing: " + made.infeasible_because : size(made.candidates.front());
}
inline const Rejection* rejection(const Plan& made, std::string_view name, Reason reason) {
    for (const Rejection& line : made.rejected)
        if (line.reason == reason && node(line.node_type).name == name) return &line;
    return nullptr;
}
inline const Advice* advice(const Plan& made, std::string_view id) {
    for (const Advice& one : made.advice)
        if (one.id == id) return &one;
    return nullptr;
}

}  // namespace stoker::testing
