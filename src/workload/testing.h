// For the tests of workload files: a file's text in, the workload or what is said against it out.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "workload/workload.h"

namespace stoker::testing {

inline const Catalog& catalog() {
    static const Catalog all = [] {
        auto read = Catalog::embedded();
        CHECK(read.ok());
        return std::move(read).value();
    }();
    return all;
}

inline Result<Document> no_files(const std::string& path) {
    return Error(ErrorKind::not_found, path + ": no such file");
}

inline Result<Workload> read(std::string_view text, const FileLoader& load = no_files) {
    TRY(const Document document, Document::parse_yaml(text, "workload.yaml"));
    return read_workload(document, catalog(), load);
}

inline Workload good(std::string_view text, const FileLoader& load = no_files) {
    auto workload = read(text, load);
    if (!workload) ADD_FAILURE() << workload.error().text();
    return workload ? *workload : Workload{};
}

inline std::string bad(std::string_view text, const FileLoader& load = no_files) {
    const auto workload = read(text, load);
    EXPECT_FALSE(workload.ok()) << text;
    if (workload) return {};
    EXPECT_EQ(exit_code(workload.error().kind()), 2);
    return workload.error().text();
}

inline bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

inline std::string assumptions(const Workload& workload) {
    std::string all;
    for (const std::string& each : workload.assumptions) all += each + "\n";
    return all;
}

}  // namespace stoker::testing
