// GGUF, versions 2 and 3 (ggml-org/ggml docs/gguf.md).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <variant>

#include "base/text.h"
#include "serve/models/gguf_vocabulary.h"
#include "serve/models/weights_bytes.h"

namespace stoker {
namespace gguf {

constexpr std::uint64_t kMostEntries = 1u << 20, kMostTensors = 1u << 20, kMostNesting = 4;

// Elements of a block and its bytes: ggml's type traits, ggml-org/ggml at v0.5.0 of llama.cpp.
struct GgmlType {
    std::uint32_t id;
    const char* name;
    std::uint32_t block, bytes;
};
constexpr GgmlType kGgmlTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17}};

enum Kind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
constexpr std::uint64_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

struct Value {
    std::optional<double> number;
    std::string text;
    std::uint64_t items = 0;  // of an array
};

class Reader {
public:
    explicit Reader(const WeightsSource& source, GgufVocabulary* vocabulary = nullptr)
        : source_(source), bytes_(source, 0, source.bytes), vocabulary_(vocabulary) {
        header_.format = WeightsFormat::gguf;
        header_.file_bytes = source.bytes;
    }

    Result<WeightsHeader> read() {
        TRY_VOID(bytes_.skip(4));
        TRY(const auto version, bytes_.number<std::uint32_t>());
        if (version != 2 && version != 3)
            return Error(ErrorKind::unsupported,
                         fmt::format("{} is GGUF version {}{}; 2 and 3 are read", source_.name, version,
                                     version > 0xffff ? " (of the other byte order)" : ""));
        header_.version = static_cast<int>(version);
        TRY(const auto tensors, bytes_.number<std::uint64_t>());
        TRY(const auto entries, bytes_.number<std::uint64_t>());
        // Each takes so many bytes at least: a number that cannot be true must not be looped over.
        if (tensors > kMostTensors || entries > kMostEntries || tensors * 24 + entries * 13 > bytes_.left())
            return bytes_.error(
                fmt::format("{} tensors and {} entries do not fit into {} bytes", tensors, entries, source_.bytes));
        for (std::uint64_t i = 0; i < entries; ++i) TRY_VOID(entry());
        TRY_VOID(tensor_infos(tensors));
        take_shape();
        return std::move(header_);
    }

private:
    Result<std::string> string() {
        TRY(const auto size, bytes_.number<std::uint64_t>());
        return bytes_.take(size);
    }

    Result<Value> value(std::uint32_t kind, int depth) {
        Value value;
        switch (kind) {
            case u8: return number<std::uint8_t>();
            case i8: return number<std::int8_t>();
            case u16: return number<std::uint16_t>();
            case i16: return number<std::int16_t>();
            case u32: return number<std::uint32_t>();
            case i32: return number<std::int32_t>();
            case f32: return number<float>();
            case boolean: return number<std::uint8_t>();
            case u64: return number<std::uint64_t>();
            case i64: return number<std::int64_t>();
            case f64: return number<double>();
            case text: {
                TRY(value.text, string());
                return value;
            }
            case array: {
                TRY(const auto of, bytes_.number<std::uint32_t>());
                TRY(value.items, bytes_.number<std::uint64_t>());
                if (of > f64 || (of == array && depth >= static_cast<int>(kMostNesting)))
                    return bytes_.error(fmt::format("an array of type {}", of));
                if (of != text && of != array) {
                    if (value.items > bytes_.left() / kSizes[of])
                        return bytes_.error(fmt::format("an array of {} items", value.items));
                    TRY_VOID(bytes_.skip(value.items * kSizes[of]));
                    return value;
                }
                if (value.items > bytes_.left() / 8)
                    return bytes_.error(fmt::format("an array of {} items", value.items));
                for (std::uint64_t i = 0; i < value.items; ++i) {
                    if (of == text) {
                        TRY(const auto size, bytes_.number<std::uint64_t>());
                        TRY_VOID(bytes_.skip(size));
                    } else {
                        TRY_VOID(this->value(array, depth + 1));
                    }
                }
                return value;
            }
            default: return bytes_.error(fmt::format("a value of type {}", kind));
        }
    }

    template <class T>
    Result<Value> number() {
        TRY(const T read, bytes_.number<T>());
        return Value{.number = static_cast<double>(read)};
    }

    Status entry() {
        TRY(const std::string key, string());
        if (key.empty() || key.size() > 65'535 || find_invalid_utf8(key) != std::string::npos)
            return bytes_.error("a key that is no text");
        TRY(const auto kind, bytes_.number<std::uint32_t>());
        TRY(const bool kept, keep(key, kind));
        Value read;
        if (!kept) {
            TRY(read, value(kind, 0));
        }
        if (!values_.emplace(key, std::move(read)).second)
            return bytes_.error(fmt::format("the key {} stands twice", printable(key, 60)));
        return done();
    }

    // Lists of the vocabulary, where somebody wants them: of other values only what they are.
    Result<bool> keep(const std::string& key, std::uint32_t kind) {
        if (vocabulary_ == nullptr || kind != array) return false;
        std::vector<std::string>* texts = key == "tokenizer.ggml.tokens"   ? &vocabulary_->tokens
                                          : key == "tokenizer.ggml.merges" ? &vocabulary_->merges
                                                                           : nullptr;
        const bool scores = key == "tokenizer.ggml.scores", kinds = key == "tokenizer.ggml.token_type";
        if (texts == nullptr && !scores && !kinds) return false;
        TRY(const auto of, bytes_.number<std::uint32_t>());
        TRY(const auto items, bytes_.number<std::uint64_t>());
        if (of != (texts != nullptr ? text : scores ? f32 : i32) || items > bytes_.left() / 4)
            return bytes_.error(fmt::format("{} has {} items of type {}", key, items, of));
        for (std::uint64_t i = 0; i < items; ++i) {
            if (texts != nullptr) {
                TRY(std::string one, string());
                texts->push_back(std::move(one));
            } else if (scores) {
                TRY(const float one, bytes_.number<float>());
                vocabulary_->scores.push_back(one);
            } else {
                TRY(const auto one, bytes_.number<std::int32_t>());
                vocabulary_->kinds.push_back(one);
            }
        }
        return true;
    }

    Status tensor_infos(std::uint64_t tensors) {
        std::uint64_t alignment = 32, next = 0;
        if (const auto at = values_.find("general.alignment"); at != values_.end()) {
            const double said = at->second.number.value_or(0);
            if (!(said >= 8 && said <= 1e6) || std::fmod(said, 8) != 0)
                return bytes_.error(fmt::format("an alignment of {:g}", said));
            alignment = static_cast<std::uint64_t>(said);
        }
        std::set<std::string> names;
        for (std::uint64_t i = 0; i < tensors; ++i) {
            TRY(const std::string name, string());
            if (!names.insert(name).second)
                return bytes_.error(fmt::format("the tensor {} stands twice", printable(name, 60)));
            TRY(const auto dimensions, bytes_.number<std::uint32_t>());
            if (dimensions > 4)
                return bytes_.error(fmt::format("{} has {} dimensions", printable(name, 60), dimensions));
            std::uint64_t elements = 1, row = 1;
            for (std::uint32_t d = 0; d < dimensions; ++d) {
                TRY(const auto size, bytes_.number<std::uint64_t>());
                if (size == 0 || size > (std::uint64_t{1} << 48) / elements)
                    return bytes_.error(fmt::format("{} has a dimension of {}", printable(name, 60), size));
                elements *= size;
                if (d == 0) row = size;
            }
            TRY(const auto id, bytes_.number<std::uint32_t>());
            const auto* type = std::find_if(std::begin(kGgmlTypes), std::end(kGgmlTypes),
                                            [id](const GgmlType& t) { return t.id == id; });
            if (type == std::end(kGgmlTypes))
                return Error(ErrorKind::unsupported,
                             fmt::format("{} has weights of type {}, which is not known, at byte {} of {}",
                                         printable(name, 60), id, bytes_.at(), source_.name));
            if (row % type->block != 0)
                return bytes_.error(
                    fmt::format("{}: rows of {} in {} are no whole blocks", printable(name, 60), row, type->name));
            TRY(const auto offset, bytes_.number<std::uint64_t>());
            if (offset != next)
                return bytes_.error(fmt::format("{} begins at {}, and the one before it ends at {}",
                                                printable(name, 60), offset, next));
            const std::uint64_t size = elements / type->block * type->bytes;
            next = offset + (size + alignment - 1) / alignment * alignment;
            last_end_ = offset + size;
            WeightsHeader::OfType& of = header_.types[type->name];
            of.tensors += 1, of.elements += static_cast<double>(elements), of.bytes += static_cast<double>(size);
            header_.parameters += static_cast<double>(elements);
            header_.weight_bytes += static_cast<double>(size);
        }
        header_.tensors = static_cast<std::int64_t>(tensors);
        const std::uint64_t data = (bytes_.at() + alignment - 1) / alignment * alignment;
        if (tensors > 0 && (data > source_.bytes || last_end_ > source_.bytes - data))
            return Error(ErrorKind::invalid,
                         fmt::format("{} is cut off: its weights end at byte {}, and it has {}", source_.name,
                                     data + last_end_, source_.bytes),
                         {}, "fetch it again");
        return done();
    }

    double number_at(const std::string& key) const {
        const auto at = values_.find(key);
        return at == values_.end() ? 0 : at->second.number.value_or(0);
    }
    std::string text_at(const std::string& key) const {
        const auto at = values_.find(key);
        return at == values_.end() ? std::string() : printable(at->second.text, 100);
    }

    void take_shape() {
        if (vocabulary_ != nullptr) {
            vocabulary_->model = text_at("tokenizer.ggml.model");
            vocabulary_->cut = text_at("tokenizer.ggml.pre");
            const auto blank = values_.find("tokenizer.ggml.add_space_prefix");
            vocabulary_->blank_before = blank == values_.end() || blank->second.number.value_or(1) != 0;
        }
        header_.architecture = text_at("general.architecture");
        header_.name = text_at("general.name");
        header_.tokenizer = text_at("tokenizer.ggml.model");
        header_.chat_template = values_.contains("tokenizer.chat_template");
        auto of = [this](const char* key) { return number_at(header_.architecture + "." + key); };
        header_.layers = of("block_count");
        header_.hidden = of("embedding_length");
        header_.heads = of("attention.head_count");
        header_.kv_heads = of("attention.head_count_kv") > 0 ? of("attention.head_count_kv") : header_.heads;
        header_.head_dim = of("attention.key_length");
        if (header_.head_dim <= 0 && header_.heads > 0) header_.head_dim = header_.hidden / header_.heads;
        header_.ffn = of("feed_forward_length");
        header_.context = of("context_length");
        header_.experts = of("expert_count");
        header_.active_experts = of("expert_used_count");
        const auto tokens = values_.find("tokenizer.ggml.tokens");
        header_.vocabulary = tokens != values_.end() ? static_cast<double>(tokens->second.items) : of("vocab_size");
    }

    const WeightsSource& source_;
    WeightsBytes bytes_;
    WeightsHeader header_;
    std::map<std::string, Value> values_;
    std::uint64_t last_end_ = 0;
    GgufVocabulary* vocabulary_;
};

}  // namespace gguf

Result<WeightsHeader> read_gguf(const WeightsSource& source) {
    return gguf::Reader(source).read();
}

Result<GgufVocabulary> read_gguf_vocabulary(const WeightsSource& source) {
    GgufVocabulary vocabulary;
    TRY_VOID(gguf::Reader(source, &vocabulary).read());
    return vocabulary;
}

}  // namespace stoker
