// Protocol buffers of others, read where they lie: a message is fields, each of a number and a value. Whatever the
// bytes are, nothing beyond them is read and each step takes some of them, so that reading ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker {

struct ProtobufField {
    std::uint64_t id = 0;
    std::uint64_t number = 0;  // of a varint
    std::string_view bytes;    // of a length that the message tells: texts and messages
    std::string_view fixed;    // four or eight, little-endian: float, double
};

class ProtobufFields {
public:
    explicit ProtobufFields(std::string_view message) : rest_(message) {}
    // None: its end, or what follows is no field.
    std::optional<ProtobufField> next();
    bool broken() const { return broken_; }

private:
    bool take_varint(std::uint64_t& value);

    std::string_view rest_;
    bool broken_ = false;
};

}  // namespace stoker
