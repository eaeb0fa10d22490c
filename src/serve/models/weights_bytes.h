// Reads a header piece by piece, and never past its end: the place is kept for messages.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "serve/models/weights_header.h"

namespace stoker {

class WeightsBytes {
public:
    WeightsBytes(const WeightsSource& source, std::uint64_t begin, std::uint64_t end)
        : source_(source), at_(begin), end_(end) {}

    std::uint64_t at() const { return at_; }
    std::uint64_t left() const { return end_ - at_; }
    Error error(std::string what) const;

    Result<std::string> take(std::uint64_t count);  // 64 MiB at most
    Status skip(std::uint64_t count);
    template <class T>
    Result<T> number() {  // little-endian
        T value{};
        TRY_VOID(fill(sizeof value));
        std::memcpy(&value, buffer_.data() + (at_ - buffer_at_), sizeof value);
        at_ += sizeof value;
        return value;
    }
    Result<std::uint64_t> varint();  // of protobuf

private:
    Status fill(std::size_t count);
    const WeightsSource& source_;
    std::uint64_t at_, end_;
    std::string buffer_;
    std::uint64_t buffer_at_ = 0;
};

}  // namespace stoker
