#include "base/shape.h"

#include <charconv>
#include <cstring>
#include <limits>

namespace stoker::codec {

std::int64_t load_integer(const void* value, const Shape& shape) {
    const auto as = [value]<class T>(T whole) {
        std::memcpy(&whole, value, sizeof whole);
        return static_cast<std::int64_t>(whole);
    };
    switch (shape.bytes) {
        case 1: return shape.is_signed ? as(std::int8_t{}) : as(std::uint8_t{});
        case 2: return shape.is_signed ? as(std::int16_t{}) : as(std::uint16_t{});
        case 4: return shape.is_signed ? as(std::int32_t{}) : as(std::uint32_t{});
        default: return as(std::int64_t{});
    }
}

void store_integer(void* value, const Shape& shape, std::uint64_t bits) {
    const auto as = [value]<class T>(T whole) { std::memcpy(value, &whole, sizeof whole); };
    switch (shape.bytes) {
        case 1: return as(static_cast<std::uint8_t>(bits));
        case 2: return as(static_cast<std::uint16_t>(bits));
        case 4: return as(static_cast<std::uint32_t>(bits));
        default: return as(bits);
    }
}

std::int64_t lowest(const Shape& shape) {
    return shape.is_signed ? std::numeric_limits<std::int64_t>::min() >> (64 - 8 * shape.bytes) : 0;
}
std::uint64_t highest(const Shape& shape) {
    return std::numeric_limits<std::uint64_t>::max() >> (64 - 8 * shape.bytes + (shape.is_signed ? 1 : 0));
}

bool parse_integer(std::string_view digits, const Shape& shape, std::uint64_t& bits) {
    const char* const end = digits.data() + digits.size();
    if (digits.starts_with('-')) {
        std::int64_t value = 0;
        const auto [last, code] = std::from_chars(digits.data(), end, value);
        bits = static_cast<std::uint64_t>(value);
        return code == std::errc() && last == end && value >= lowest(shape);
    }
    const auto [last, code] = std::from_chars(digits.data(), end, bits);
    return code == std::errc() && last == end && bits <= highest(shape);
}

double load_real(const void* value, const Shape& shape) {
    if (shape.bytes == sizeof(double)) return *static_cast<const double*>(value);
    return static_cast<double>(*static_cast<const float*>(value));
}

bool is_left_out(const void* value, const Shape& shape) {
    switch (shape.kind) {
        case ShapeKind::text: return static_cast<const std::string*>(value)->empty();
        case ShapeKind::map: return shape.last_key(value) == nullptr;
        case ShapeKind::optional: return shape.held(value) == nullptr;
        case ShapeKind::id: return shape.is_no_id(value);
        default: return false;
    }
}

bool may_be_left_out(const Shape& shape) {
    return shape.kind == ShapeKind::text || shape.kind == ShapeKind::map || shape.kind == ShapeKind::optional ||
           shape.kind == ShapeKind::id;
}

}  // namespace stoker::codec
