#include "run/records.h"

#include <fmt/format.h>

#include "run/codec.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<RecordBody>> kRecordNames = {
    "core.started",         "run.submitted",     "run.moved",        "run.held",
    "attempt.created",      "attempt.moved",     "notice.given",     "operation.intended",
    "operation.answered",   "operation.resent",  "fact.seen",        "node.seen",
    "node.moved",           "lease.moved",       "notice.withdrawn", "run.forgotten",
    "checkpoint.uploading", "checkpoint.stored", "node.checked",     "node.blamed",
};

template <std::size_t I = 0>
Result<RecordBody> decode_record_kind(std::uint32_t kind, std::string_view json, const std::string& what) {
    if constexpr (I == std::variant_size_v<RecordBody>) {
        return Error(ErrorKind::unsupported,
                     fmt::format("{} is of kind {}, which this version does not know", what, kind), {},
                     "install the version that wrote it");
    } else {
        using Body = std::variant_alternative_t<I, RecordBody>;
        static_assert(Body::kKind == I + 1, "kinds are numbered as they stand in RecordBody");
        if (kind != Body::kKind) return decode_record_kind<I + 1>(kind, json, what);
        TRY(Body body, codec::decode<Body>(json, what));
        return RecordBody(std::move(body));
    }
}

}  // namespace

std::string_view name_of_kind(std::uint32_t kind) {
    return kind >= 1 && kind <= kRecordNames.size() ? kRecordNames[kind - 1] : "?";
}

std::uint32_t kind_of(const RecordBody& body) {
    return static_cast<std::uint32_t>(body.index()) + 1;
}

Cause cause_of(const RecordBody& body) {
    return std::visit(
        [](const auto& each) {
            if constexpr (requires { each.cause; })
                return each.cause;
            else if constexpr (requires { each.fact; })
                return each.fact.cause;
            else
                return Cause::none;
        },
        body);
}

std::string encode_body(const RecordBody& body) {
    return std::visit([](const auto& each) { return codec::encode(each); }, body);
}

Result<RecordBody> decode_body(std::uint32_t kind, std::uint32_t format, std::string_view json, std::uint64_t seq) {
    const std::string what = fmt::format("record {}", seq);
    if (format != 1)
        return Error(ErrorKind::unsupported, fmt::format("{} has format {}, this version knows 1", what, format), {},
                     "install the version that wrote it");
    return decode_record_kind(kind, json, what);
}

}  // namespace stoker
