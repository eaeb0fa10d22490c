#include "run/state/records.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/codec.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<AnyRecordBody>> kRecordNames = {
    "core.started",
    "run.submitted",
    "run.moved",
    "run.held",
    "attempt.created",
    "attempt.moved",
    "notice.given",
    "operation.intended",
    "operation.answered",
    "operation.resent",
    "fact.seen",
    "node.seen",
    "node.moved",
    "lease.moved",
    "notice.withdrawn",
    "run.forgotten",
    "checkpoint.uploading",
    "checkpoint.stored",
    "node.checked",
    "node.blamed",
    "config.changed",
    "node.removed",
    "journal.lost",
    "run.edited",
    "organisation.made",
    "project.made",
    "key.made",
    "key.revoked",
    "user.set",
    "password.set",
    "login.made",
    "login.ended",
    "key.ends",
    "quota.set",
    "budget.set",
    "budget.reached",
    "usage.charged",
    "tokens.charged",
};

// Kinds as they stand in RecordBody; numbers that are not there belong to nobody yet.
template <std::size_t... I>
constexpr std::array<std::uint32_t, sizeof...(I)> kinds_of_bodies(std::index_sequence<I...>) {
    return {std::variant_alternative_t<I, AnyRecordBody>::kKind...};
}
constexpr auto kRecordKinds = kinds_of_bodies(std::make_index_sequence<std::variant_size_v<AnyRecordBody>>());

// How each alternative is made and looked at by address, in the order of RecordBody.
struct BodyShape {
    const codec::Shape* shape;
    void* (*make)(RecordBody& body);
};
template <std::size_t... I>
constexpr std::array<BodyShape, sizeof...(I)> shapes_of_bodies(std::index_sequence<I...>) {
    return {BodyShape{&codec::kShape<std::variant_alternative_t<I, AnyRecordBody>>,
                      [](RecordBody& body) -> void* { return &body.template emplace<I>(); }}...};
}
constexpr auto kBodyShapes = shapes_of_bodies(std::make_index_sequence<std::variant_size_v<AnyRecordBody>>());
static_assert(std::is_sorted(kRecordKinds.begin(), kRecordKinds.end()), "kinds stand in their order");

}  // namespace

std::string_view name_of_kind(std::uint32_t kind) {
    for (std::size_t i = 0; i < kRecordKinds.size(); ++i)
        if (kRecordKinds[i] == kind) return kRecordNames[i];
    return "?";
}

RecordBody::RecordBody() = default;
RecordBody::RecordBody(const RecordBody&) = default;
RecordBody::RecordBody(RecordBody&&) noexcept = default;
RecordBody& RecordBody::operator=(const RecordBody&) = default;
RecordBody& RecordBody::operator=(RecordBody&&) noexcept = default;
RecordBody::~RecordBody() = default;

std::uint32_t kind_of(const RecordBody& body) {
    return kRecordKinds[body.index()];
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
    const void* const each = std::visit([](const auto& held) -> const void* { return &held; }, body);
    return codec::encode_shaped(each, *kBodyShapes[body.index()].shape);
}

std::string shown_body(std::uint32_t kind, std::string_view json) {
    if (kind != PasswordSet::kKind) return std::string(json);
    auto body = codec::decode<PasswordSet>(json, "record");
    if (!body) return {};
    body->password = "***";
    return codec::encode(*body);
}

Result<RecordBody> decode_body(std::uint32_t kind, std::uint32_t format, std::string_view json, std::uint64_t seq) {
    const std::string what = fmt::format("record {}", seq);
    if (format != 1)
        return Error(ErrorKind::unsupported, fmt::format("{} has format {}, this version knows 1", what, format), {},
                     "install the version that wrote it");
    const auto known = std::find(kRecordKinds.begin(), kRecordKinds.end(), kind);
    if (known == kRecordKinds.end())
        return Error(ErrorKind::unsupported,
                     fmt::format("{} is of kind {}, which this version does not know", what, kind), {},
                     "install the version that wrote it");
    const BodyShape& one = kBodyShapes[static_cast<std::size_t>(known - kRecordKinds.begin())];
    RecordBody body;
    constexpr ReadLimits kLimits;
    if (json.size() <= kLimits.max_bytes && codec::decode_exactly(json, one.make(body), *one.shape)) return body;
    TRY_VOID(codec::decode_document(json, what, kLimits, one.make(body), *one.shape));
    return body;
}

}  // namespace stoker
