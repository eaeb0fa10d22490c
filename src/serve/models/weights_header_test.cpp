// A file that is cut off should be found out in a second, and not by a loader on eight GPUs.
#include "serve/models/weights_header.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"

namespace stoker {
namespace {

template <class T>
std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}
std::string text(std::string_view s) {
    return raw<std::uint64_t>(s.size()) + std::string(s);
}
std::string entry(std::string_view key, std::uint32_t value) {
    return text(key) + raw<std::uint32_t>(4) + raw(value);
}

std::string gguf(std::uint32_t type = 1, std::uint64_t offset_of_second = 64,
                 std::string_view key = "llama.block_count") {
    std::string file = "GGUF" + raw<std::uint32_t>(3) + raw<std::uint64_t>(2) + raw<std::uint64_t>(4);
    file += text("general.architecture") + raw<std::uint32_t>(8) + text("llama");
    file += entry(key, 2) + entry("llama.embedding_length", 32);
    file += text("tokenizer.ggml.tokens") + raw<std::uint32_t>(9) + raw<std::uint32_t>(8) + raw<std::uint64_t>(2) +
            text("a") + text("b");
    for (const auto& [name, offset] : {std::pair{"x", std::uint64_t{0}}, {"y", offset_of_second}})
        file += text(name) + raw<std::uint32_t>(1) + raw<std::uint64_t>(32) + raw(type) + raw(offset);
    file.resize((file.size() + 31) / 32 * 32);
    return file + std::string(128, 'w');
}

std::string safetensors(const std::string& header, std::size_t data) {
    return raw<std::uint64_t>(header.size()) + header + std::string(data, 'w');
}

std::string field(int number, std::string_view bytes) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + std::string(1, static_cast<char>(bytes.size())) +
           std::string(bytes);
}
std::string onnx(std::size_t data = 24) {
    const std::string tensor =
        std::string("\x08\x02\x08\x03\x10\x01", 6) + field(8, "w") + field(9, std::string(data, 'w'));
    return std::string("\x08\x09", 2) + field(7, field(2, "net") + field(5, tensor));
}

Result<WeightsHeader> read(const std::string& file) {
    return read_weights_header(source_of_text("file", file));
}

TEST(WeightsHeader, OfGgufSaysTheShape) {
    const auto header = read(gguf());
    ASSERT_TRUE(header) << header.error().text();
    EXPECT_EQ(header->architecture, "llama");
    EXPECT_EQ(header->layers, 2);
    EXPECT_EQ(header->hidden, 32);
    EXPECT_EQ(header->vocabulary, 2);
    EXPECT_EQ(header->tensors, 2);
    EXPECT_EQ(header->parameters, 64);
    EXPECT_EQ(header->weight_bytes, 128);
    EXPECT_EQ(header->main_type(), "F16");
}

// Cut anywhere, it is refused: with the byte, and without reading past the end.
TEST(WeightsHeader, OfGgufIsRefusedWhenDamaged) {
    const std::string whole = gguf();
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(read(whole.substr(0, size))) << size;
    EXPECT_FALSE(read(gguf(1, 32)));                            // overlaps
    EXPECT_FALSE(read(gguf(1, 96)));                            // a hole
    EXPECT_FALSE(read(gguf(99)));                               // no such type
    EXPECT_FALSE(read(gguf(12)));                               // Q4_K has blocks of 256
    EXPECT_FALSE(read(gguf(1, 64, "llama.embedding_length")));  // a key twice
    std::string many = whole;
    many.replace(8, 8, raw<std::uint64_t>(1'000'000));
    EXPECT_FALSE(read(many));
    many = whole;
    many.replace(4, 4, raw<std::uint32_t>(0x03000000));
    EXPECT_EQ(read(many).error().kind(), ErrorKind::unsupported);
}

TEST(WeightsHeader, OfSafetensorsCoversTheFile) {
    const std::string a = R"("model.layers.7.w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]})";
    const std::string b = R"("v":{"dtype":"F32","shape":[],"data_offsets":[12,16]})";
    const auto header = read(safetensors("{" + a + "," + b + R"(,"__metadata__":{"format":"pt"}})", 16));
    ASSERT_TRUE(header) << header.error().text();
    EXPECT_EQ(header->parameters, 7);
    EXPECT_EQ(header->layers, 8);
    EXPECT_EQ(header->types.at("BF16").bytes, 12);
    EXPECT_FALSE(read(safetensors("{" + a + "," + b + "}", 15)));  // cut off
    EXPECT_FALSE(read(safetensors("{" + a + "," + b + "}", 17)));  // more than it says
    EXPECT_FALSE(read(safetensors("{" + b + "}", 16)));            // a hole
    EXPECT_FALSE(read(safetensors(R"({"v":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)));
    EXPECT_FALSE(read(safetensors(R"({"v":{"dtype":"X","shape":[1],"data_offsets":[0,4]}})", 4)));
    EXPECT_FALSE(read(safetensors(R"({"v":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)));
    EXPECT_FALSE(read(safetensors(R"({"v":{"dtype":"F32","shape":[4000000000,4000000000],"data_offsets":[0,4]}})", 4)));
    EXPECT_FALSE(read(raw<std::uint64_t>(1u << 31) + "{}"));
}

TEST(WeightsHeader, OfOnnxCountsTheInitializers) {
    const auto header = read(onnx());
    ASSERT_TRUE(header) << header.error().text();
    EXPECT_EQ(header->version, 9);
    EXPECT_EQ(header->name, "net");
    EXPECT_EQ(header->parameters, 6);
    EXPECT_EQ(header->weight_bytes, 24);
    EXPECT_FALSE(read(onnx(20)));
    const std::string whole = onnx();
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(read(whole.substr(0, size))) << size;
}

TEST(WeightsHeader, KnowsWhatIsNoneOfThem) {
    EXPECT_FALSE(read(""));
    EXPECT_FALSE(read(std::string(100, '\0')));
    const auto pickle = read("PK\x03\x04 a pickle in a zip of PyTorch");
    ASSERT_FALSE(pickle);
    EXPECT_NE(pickle.error().text().find("pickle"), std::string::npos);
}

// Any byte changed in any way: an answer or an error, and no more memory than the file could mean.
TEST(WeightsHeader, SurvivesAnyDamage) {
    SplitMix draw(1);
    const std::string files[] = {gguf(), safetensors(R"({"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
                                 onnx()};
    for (int i = 0; i < 30'000; ++i) {
        std::string file = files[i % 3];
        for (std::uint64_t n = 1 + draw.below(4); n > 0; --n)
            file[draw.below(file.size())] = static_cast<char>(draw.next());
        const auto header = read(file);
        if (header) {
            EXPECT_LE(header->weight_bytes, 1e16);
        }
    }
}

}  // namespace
}  // namespace stoker
