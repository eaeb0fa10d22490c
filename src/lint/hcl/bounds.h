// What the evaluator and its functions share: bounds, and the values of scalars.
#pragma once

#include <charconv>
#include <optional>

#include "lint/hcl/expression.h"

namespace stoker::lint::evaluation {

inline constexpr std::size_t kMostSteps = 400'000;      // of one file: loops in loops end here
inline constexpr std::size_t kMostTextBytes = 1 << 16;  // of one text
inline constexpr std::size_t kFewCopies = 4096;  // nodes that loops may make beside a quarter of the file's bytes
inline constexpr std::size_t kMostItems = 256;   // of a loop or range
inline constexpr std::size_t kMostDecoded = 32;  // texts of JSON and YAML within one file

inline bool known_scalar(const Node* node) {
    return node && node->known && node->is_scalar();
}
inline std::optional<double> number_in(const Node* node) {
    if (!known_scalar(node) || node->text.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(node->text.data(), node->text.data() + node->text.size(), value);
    if (error != std::errc{} || end != node->text.data() + node->text.size()) return std::nullopt;
    return value;
}
inline std::optional<bool> truth(const Node* node) {
    if (!known_scalar(node)) return std::nullopt;
    if (node->text == "true") return true;
    if (node->text == "false") return false;
    return std::nullopt;
}

}  // namespace stoker::lint::evaluation
