#include "serve/models/weights_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace stoker {

static_assert(std::endian::native == std::endian::little, "headers are read as they stand");

namespace {
constexpr std::uint64_t kMostTaken = 64u << 20;
constexpr std::size_t kPage = 64u << 10;
}  // namespace

Error WeightsBytes::error(std::string what) const {
    return Error(ErrorKind::invalid, fmt::format("{}, at byte {} of {}", std::move(what), at_, source_.name));
}

Status WeightsBytes::fill(std::size_t count) {
    if (count > left()) return error(fmt::format("{} bytes are missing", count - left()));
    if (at_ >= buffer_at_ && at_ + count <= buffer_at_ + buffer_.size()) return done();
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(std::max(count, kPage), left()));
    TRY(buffer_, source_.read(at_, wanted));
    if (buffer_.size() != wanted) return error("the file is shorter than it was");
    buffer_at_ = at_;
    return done();
}

Result<std::string> WeightsBytes::take(std::uint64_t count) {
    if (count > kMostTaken) return error(fmt::format("a text of {} bytes", count));
    if (count > left()) return error(fmt::format("{} bytes are missing", count - left()));
    TRY_VOID(fill(static_cast<std::size_t>(count)));
    std::string text = buffer_.substr(static_cast<std::size_t>(at_ - buffer_at_), static_cast<std::size_t>(count));
    at_ += count;
    return text;
}

Status WeightsBytes::skip(std::uint64_t count) {
    if (count > left()) return error(fmt::format("{} bytes are missing", count - left()));
    at_ += count;
    return done();
}

Result<std::uint64_t> WeightsBytes::varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        TRY(const auto byte, number<std::uint8_t>());
        value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) return value;
    }
    return error("a number of more than ten bytes");
}

}  // namespace stoker
