// Of which time an engine is. Releases of one engine differ more than engines do: schedulers in Python, eager kernels
// and no overlap of the host until 2024.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker {

enum class EngineEra : std::uint8_t { current, y2024, y2023 };

// The release in a text as it is printed: 0.17 of "TensorRT-LLM 0.17 in-flight batching", 0.5 of "v0.5.1.post1"; the
// first number with a point in it. As major + minor / 1000: releases count, so 0.9 is older than 0.10.
std::optional<double> release_of(std::string_view printed) noexcept;

// The era whose measurements a release is in. Of an engine whose releases were not told apart: the current one.
EngineEra era_of_release(std::string_view framework, double release) noexcept;
// Whether releases of an engine were told apart.
bool has_eras(std::string_view framework) noexcept;

}  // namespace stoker
