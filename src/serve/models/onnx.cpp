// ONNX (onnx/onnx onnx.proto3): a ModelProto, of which the initializers of the graph are the weights.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "serve/models/weights_bytes.h"

namespace stoker {
namespace {

// TensorProto.DataType, and bits of an element.
struct OnnxType {
    std::uint64_t id;
    const char* name;
    std::uint64_t bits;
};
constexpr OnnxType kOnnxTypes[] = {
    {1, "F32", 32},     {2, "U8", 8},       {3, "I8", 8},      {4, "U16", 16},   {5, "I16", 16},     {6, "I32", 32},
    {7, "I64", 64},     {8, "STRING", 0},   {9, "BOOL", 8},    {10, "F16", 16},  {11, "F64", 64},    {12, "U32", 32},
    {13, "U64", 64},    {14, "C64", 64},    {15, "C128", 128}, {16, "BF16", 16}, {17, "F8_E4M3", 8}, {18, "F8_E4M3", 8},
    {19, "F8_E5M2", 8}, {20, "F8_E5M2", 8}, {21, "U4", 4},     {22, "I4", 4},    {23, "F4", 4}};

struct Field {
    std::uint64_t number = 0, wire = 0;
    std::uint64_t value = 0;  // of a varint; of the others their length
};

Result<Field> next_field(WeightsBytes& bytes) {
    Field field;
    TRY(const std::uint64_t tag, bytes.varint());
    field.number = tag >> 3, field.wire = tag & 7;
    if (field.number == 0) return bytes.error("field number 0");
    switch (field.wire) {
        case 0: {
            TRY(field.value, bytes.varint());
            return field;
        }
        case 1: field.value = 8; break;
        case 5: field.value = 4; break;
        case 2: {
            TRY(field.value, bytes.varint());
            break;
        }
        default: return bytes.error(fmt::format("wire type {}", field.wire));
    }
    if (field.value > bytes.left())
        return bytes.error(fmt::format("field {} of {} bytes, {} more than there are: cut off, or no ONNX",
                                       field.number, field.value, field.value - bytes.left()));
    return field;
}

Status read_tensor(const WeightsSource& source, WeightsBytes& bytes, std::uint64_t end, WeightsHeader& header) {
    std::uint64_t elements = 1, type_id = 0, raw = 0;
    bool has_raw = false, elsewhere = false;
    std::string name;
    auto dimension = [&](std::uint64_t size) -> Status {
        if (size > 0 && elements > (std::uint64_t{1} << 48) / size)
            return bytes.error("a tensor of more elements than can be");
        elements *= size;
        return done();
    };
    WeightsBytes inner(source, bytes.at(), end);
    while (inner.left() > 0) {
        TRY(const Field field, next_field(inner));
        if (field.number == 1 && field.wire == 0) {
            TRY_VOID(dimension(field.value));
        } else if (field.number == 1 && field.wire == 2) {  // packed
            const std::uint64_t until = inner.left() - field.value;
            while (inner.left() > until) {
                TRY(const std::uint64_t size, inner.varint());
                TRY_VOID(dimension(size));
            }
        } else if (field.number == 2 && field.wire == 0) {
            type_id = field.value;
        } else if (field.number == 8 && field.wire == 2) {
            TRY(name, inner.take(field.value));
        } else if (field.number == 14 && field.wire == 0) {
            elsewhere = field.value == 1;
        } else {
            if (field.number == 9 && field.wire == 2) raw = field.value, has_raw = true;
            if (field.wire != 0) TRY_VOID(inner.skip(field.value));
        }
    }
    const auto* type =
        std::find_if(std::begin(kOnnxTypes), std::end(kOnnxTypes), [&](const OnnxType& t) { return t.id == type_id; });
    if (type == std::end(kOnnxTypes))
        return Error(ErrorKind::unsupported,
                     fmt::format("{}: weights of type {} are not known", printable(name, 60), type_id));
    const std::uint64_t size = (elements * type->bits + 7) / 8;
    if (has_raw && !elsewhere && type->bits > 0 && raw != size)
        return bytes.error(fmt::format("{}: {} elements of {} take {} bytes, and {} are there", printable(name, 60),
                                       elements, type->name, size, raw));
    WeightsHeader::OfType& of = header.types[type->name];
    of.tensors += 1, of.elements += static_cast<double>(elements), of.bytes += static_cast<double>(size);
    header.tensors += 1;
    header.parameters += static_cast<double>(elements);
    header.weight_bytes += static_cast<double>(size);
    header.weights_elsewhere = header.weights_elsewhere || elsewhere;
    return done();
}

}  // namespace

Result<WeightsHeader> read_onnx(const WeightsSource& source) {
    WeightsHeader header{.format = WeightsFormat::onnx, .file_bytes = source.bytes};
    WeightsBytes bytes(source, 0, source.bytes);
    bool graph = false;
    while (bytes.left() > 0) {
        TRY(const Field field, next_field(bytes));
        if (field.number == 1 && field.wire == 0) {
            if (field.value == 0 || field.value > 1'000) return bytes.error(fmt::format("IR version {}", field.value));
            header.version = static_cast<int>(field.value);
        } else if (field.number == 7 && field.wire == 2 && !graph) {
            graph = true;
            const std::uint64_t end = bytes.at() + field.value;
            WeightsBytes inner(source, bytes.at(), end);
            while (inner.left() > 0) {
                TRY(const Field part, next_field(inner));
                if (part.number == 5 && part.wire == 2)
                    TRY_VOID(read_tensor(source, inner, inner.at() + part.value, header));
                if (part.number == 2 && part.wire == 2) {
                    TRY(header.name, inner.take(part.value));
                    header.name = printable(header.name, 100);
                } else if (part.wire != 0) {
                    TRY_VOID(inner.skip(part.value));
                }
            }
            TRY_VOID(bytes.skip(field.value));
        } else if (field.wire != 0) {
            TRY_VOID(bytes.skip(field.value));
        }
    }
    if (header.version == 0 || !graph)
        return Error(ErrorKind::invalid,
                     fmt::format("{} has no IR version and graph, and is no ONNX model", source.name));
    return header;
}

}  // namespace stoker
