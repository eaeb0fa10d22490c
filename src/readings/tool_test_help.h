// Reads one sample in a test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "readings/tool_reader.h"
#include "readings/tool_samples.h"

namespace stoker::samples {

inline const Catalog& catalog() {
    static const Catalog read = [] {
        auto embedded = Catalog::embedded();
        CHECK(embedded.ok());
        return std::move(*embedded);
    }();
    return read;
}
inline ToolContext of_size(std::string_view size) {
    return {.size = std::string(size), .catalog = &catalog()};
}
inline ToolReading read(std::string_view text, const ToolContext& context = {}) {
    auto reading = read_tool_output(recognise(text), text, "file", context);
    EXPECT_TRUE(reading.ok()) << (reading.ok() ? "" : reading.error().text());
    return reading.ok() ? *reading : ToolReading{};
}
inline std::string error_of(std::string_view text, Tool tool) {
    const auto reading = read_tool_output(tool, text, "file", {});
    EXPECT_FALSE(reading.ok());
    return reading.ok() ? "" : reading.error().text();
}
// The worst check of this name; skipped without one too, so look at has().
inline const HealthCheck* worst(const ToolReading& reading, std::string_view name) {
    const HealthCheck* found = nullptr;
    for (const HealthCheck& check : reading.checks)
        if (check.name == name && (found == nullptr || check.verdict > found->verdict)) found = &check;
    return found;
}
inline HealthVerdict verdict_of(const ToolReading& reading, std::string_view name) {
    const HealthCheck* found = worst(reading, name);
    EXPECT_NE(found, nullptr) << name;
    return found == nullptr ? HealthVerdict::skipped : found->verdict;
}
inline std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
    std::string all(text);
    const std::size_t at = all.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    if (at != std::string::npos) all.replace(at, what.size(), with);
    return all;
}

}  // namespace stoker::samples
