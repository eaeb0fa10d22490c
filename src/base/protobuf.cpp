#include "base/protobuf.h"

namespace stoker {

bool ProtobufFields::take_varint(std::uint64_t& value) {
    constexpr int kBits = 7;
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += kBits) {
        const auto byte = static_cast<std::uint8_t>(rest_.front());
        rest_.remove_prefix(1);
        value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

std::optional<ProtobufField> ProtobufFields::next() {
    if (broken_ || rest_.empty()) return std::nullopt;
    broken_ = true;  // until the field is whole
    ProtobufField field;
    std::uint64_t tag = 0, size = 0;
    if (!take_varint(tag) || tag >> 3 == 0) return std::nullopt;
    field.id = tag >> 3;
    enum : std::uint64_t { varint = 0, eight = 1, told = 2, four = 5 };
    const std::uint64_t wire = tag & 7;
    if (wire == varint) {
        if (!take_varint(field.number)) return std::nullopt;
    } else {
        if (wire == eight)
            size = 8;
        else if (wire == four)
            size = 4;
        else if (wire != told || !take_varint(size))
            return std::nullopt;
        if (size > rest_.size()) return std::nullopt;
        (wire == told ? field.bytes : field.fixed) = rest_.substr(0, size);
        rest_.remove_prefix(size);
    }
    broken_ = false;
    return field;
}

}  // namespace stoker
