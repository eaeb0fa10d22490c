#include "io/gzip.h"

#include <gmock/gmock.h>
#include <zlib.h>

namespace stoker {
namespace {

std::string packed(std::string_view text) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

// Published traces are gzip'd; some tools write them as several members.
TEST(Gzip, UnpacksOneAndSeveralMembers) {
    std::string text;
    for (int i = 0; i < 50000; ++i) text += std::to_string(i * 7919) + ",";
    EXPECT_EQ(gunzip(packed(text), "a.gz", text.size()).value(), text);
    EXPECT_EQ(gunzip(packed("ab") + packed("cd"), "a.gz", 100).value(), "abcd");
    EXPECT_EQ(gunzip(packed(""), "a.gz", 0).value(), "");
}

// A download that broke off must not pass for a shorter trace.
TEST(Gzip, RefusesEveryCutAndDamage) {
    const std::string whole = packed("name,cpu_milli\nnode-1,64000\nnode-2,96000\n");
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(gunzip(std::string_view(whole).substr(0, size), "a.gz", 1000)) << size;
    for (std::size_t i = 10; i < whole.size(); ++i) {
        std::string bad = whole;
        bad[i] = static_cast<char>(bad[i] ^ 0x10);
        const auto read = gunzip(bad, "a.gz", 1000);
        if (read) {
            EXPECT_EQ(*read, gunzip(whole, "a.gz", 1000).value()) << i;
        }
    }
    EXPECT_THAT(gunzip(whole + "tail", "a.gz", 1000).error().text(), testing::HasSubstr("followed by something else"));
}

// A few bytes that unpack to all of memory are refused at the bound.
TEST(Gzip, RefusesABomb) {
    const std::string bomb = packed(std::string(10000000, 'x'));
    ASSERT_LT(bomb.size(), 20000U);
    EXPECT_THAT(gunzip(bomb, "a.gz", 1000000).error().text(), testing::HasSubstr("1,000,000"));
}

}  // namespace
}  // namespace stoker
