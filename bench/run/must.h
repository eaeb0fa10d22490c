// What a benchmark cannot go on without.
#pragma once

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "simulation.h"

namespace stoker {

template <class T>
T must(Result<T> result) {
    if (!result) fmt::print(stderr, "{}\n", result.error().text());
    CHECK(result.ok());
    return std::move(result).value();
}

}  // namespace stoker
