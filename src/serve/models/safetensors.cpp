// safetensors (huggingface/safetensors, README "Format"): eight bytes of length, a JSON object, the weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/document.h"
#include "base/text.h"
#include "serve/models/weights_bytes.h"

namespace stoker {
namespace {

constexpr std::uint64_t kMostSafetensorsHeader = 100'000'000;  // of the reference implementation

struct TensorPlace {
    std::uint64_t begin = 0, end = 0;
    std::string name;
};

// Bits of one element; 0: not known.
std::uint64_t bits_of(std::string_view type) {
    for (const auto& [name, bits] :
         {std::pair{"BOOL", 8}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
          {"U16", 16},          {"F16", 16}, {"BF16", 16}, {"I32", 32},    {"U32", 32},    {"F32", 32},    {"C64", 64},
          {"F64", 64},          {"I64", 64}, {"U64", 64},  {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}})
        if (type == name) return static_cast<std::uint64_t>(bits);
    return 0;
}

Result<std::uint64_t> whole_number_of(const Node& node, const std::string& name) {
    if (node.kind != NodeKind::number || node.number < 0 || node.number > 9e15 ||
        node.number != std::floor(node.number))
        return Error(ErrorKind::invalid,
                     fmt::format("{}: '{}' is no whole number", printable(name, 60), printable(node.text, 30)),
                     node.pos);
    return static_cast<std::uint64_t>(node.number);
}

// "model.layers.31.mlp..." -> 32 layers.
double layers_in(std::string_view name) {
    for (const std::string_view before : {"layers.", "h.", "blocks."}) {
        const std::size_t at = name.find(before);
        if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) continue;
        double number = 0;
        std::size_t i = at + before.size();
        if (i >= name.size() || name[i] < '0' || name[i] > '9') continue;
        for (; i < name.size() && name[i] >= '0' && name[i] <= '9' && number < 1e6; ++i)
            number = number * 10 + (name[i] - '0');
        return number + 1;
    }
    return 0;
}

}  // namespace

Result<WeightsHeader> read_safetensors(const WeightsSource& source) {
    WeightsBytes bytes(source, 0, source.bytes);
    TRY(const auto size, bytes.number<std::uint64_t>());
    if (size > kMostSafetensorsHeader)
        return bytes.error(fmt::format("a header of {} bytes; at most {} are allowed", size, kMostSafetensorsHeader));
    if (size > bytes.left())
        return Error(ErrorKind::invalid,
                     fmt::format("{} is cut off: its header ends at byte {}, and it has {}", source.name, size + 8,
                                 source.bytes),
                     {}, "fetch it again");
    TRY(const std::string text, source.read(8, static_cast<std::size_t>(size)));
    TRY(const Document document, Document::parse_json(text, source.name, {.max_bytes = kMostSafetensorsHeader}));
    if (!document.root().is_mapping())
        return Error(ErrorKind::invalid, fmt::format("{}: the header is no object", source.name));
    WeightsHeader header{.format = WeightsFormat::safetensors, .version = 1, .file_bytes = source.bytes};
    std::vector<TensorPlace> pieces;
    const std::uint64_t data = source.bytes - 8 - size;
    for (const Member& member : document.root().members) {
        if (member.key == "__metadata__") continue;
        const Node& tensor = *member.value;
        auto fail = [&](std::string_view what) {
            return Error(ErrorKind::invalid, fmt::format("{}: {}", printable(member.key, 60), what), member.key_pos);
        };
        if (!tensor.is_mapping()) return fail("is no object");
        const Node *type = tensor.find("dtype"), *shape = tensor.find("shape"), *place = tensor.find("data_offsets");
        if (type == nullptr || shape == nullptr || place == nullptr || !shape->is_sequence() || !place->is_sequence() ||
            place->items.size() != 2)
            return fail("dtype, shape and two data_offsets are expected");
        const std::uint64_t bits = bits_of(type->text);
        if (bits == 0)
            return Error(ErrorKind::unsupported,
                         fmt::format("{}: weights of type {} are not known", printable(member.key, 60),
                                     printable(type->text, 30)),
                         type->pos);
        std::uint64_t elements = 1;
        for (const auto& item : shape->items) {
            TRY(const std::uint64_t each, whole_number_of(*item, member.key));
            if (each > 0 && elements > (std::uint64_t{1} << 48) / each) return fail("has more elements than can be");
            elements *= each;
        }
        TRY(const std::uint64_t begin, whole_number_of(*place->items[0], member.key));
        TRY(const std::uint64_t end, whole_number_of(*place->items[1], member.key));
        if (begin > end) return fail("ends before it begins");
        if (end > data)
            return Error(ErrorKind::invalid,
                         fmt::format("{} is cut off: {} ends at byte {} of the weights, and {} are there", source.name,
                                     printable(member.key, 60), end, data),
                         {}, "fetch it again");
        if (elements * bits != (end - begin) * 8)
            return fail(fmt::format("{} elements of {} bits do not take {} bytes", elements, bits, end - begin));
        pieces.push_back({begin, end, member.key});
        WeightsHeader::OfType& of = header.types[type->text];
        of.tensors += 1, of.elements += static_cast<double>(elements), of.bytes += static_cast<double>(end - begin);
        header.tensors += 1;
        header.parameters += static_cast<double>(elements);
        header.weight_bytes += static_cast<double>(end - begin);
        header.layers = std::max(header.layers, layers_in(member.key));
    }
    std::sort(pieces.begin(), pieces.end(), [](const TensorPlace& a, const TensorPlace& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t next = 0;
    for (const TensorPlace& piece : pieces) {
        if (piece.begin != next)
            return Error(ErrorKind::invalid, fmt::format("{}: {} begins at {}, and the one before it ends at {}",
                                                         source.name, printable(piece.name, 60), piece.begin, next));
        next = piece.end;
    }
    if (next != data)
        return Error(ErrorKind::invalid, fmt::format("{}: {} bytes after the last weight", source.name, data - next));
    return header;
}

}  // namespace stoker
