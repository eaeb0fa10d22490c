#include "lint/source.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace stoker::lint {
namespace {

// An editor that counts UTF-16 and a terminal that counts characters both point at the right letter.
TEST(Source, CountsColumnsForWhoReads) {
    const Source source("a", "x\xC3\xA9y\r\n\xF0\x9F\x98\x80z\n");
    EXPECT_EQ(source.place(3), (Place{1, 4}));
    EXPECT_EQ(source.place(3, Columns::code_points), (Place{1, 3}));
    EXPECT_EQ(source.place(10), (Place{2, 5}));
    EXPECT_EQ(source.place(10, Columns::code_points), (Place{2, 2}));
    EXPECT_EQ(source.place(10, Columns::utf16), (Place{2, 3}));
    EXPECT_EQ(source.place(99), (Place{3, 1}));  // beyond the end is the end
    EXPECT_EQ(source.line_end(), "\r\n");
    EXPECT_EQ(source.text(source.line_at(2)), "x\xC3\xA9y");
    EXPECT_EQ(source.text(source.line_at(8)), "\xF0\x9F\x98\x80z");
}

// A script made of pieces of its host, in guests of guests: every byte that stands in the host as it is is found there.
TEST(Source, MapsEveryByteOutwards) {
    SplitMix random(7);
    for (int round = 0; round < 300; ++round) {
        std::string host;
        for (std::size_t i = 0; i < 200; ++i) host += static_cast<char>('a' + random.below(26));
        const Source outer("h", host);
        std::string text;
        std::vector<Piece> pieces;
        for (std::uint32_t at = 0; at < 150;) {
            at += static_cast<std::uint32_t>(random.below(9));
            const auto length = static_cast<std::uint32_t>(1 + random.below(12));
            const auto guest = static_cast<std::uint32_t>(text.size());
            if (random.below(4) == 0) {  // an escape: other bytes than the host's, of another length
                pieces.push_back({guest, 1, {at, at + length}, Piece::Kind::changed});
                text += '!';
            } else {
                pieces.push_back({guest, length, {at, at + length}, Piece::Kind::verbatim});
                text += host.substr(at, length);
            }
            at += length;
        }
        const Source guest(outer, text, pieces);
        const auto half = static_cast<std::uint32_t>(text.size() / 2);
        const Source inner(guest, text.substr(half),
                           {{0,
                             static_cast<std::uint32_t>(text.size()) - half,
                             {half, static_cast<std::uint32_t>(text.size())},
                             Piece::Kind::verbatim}});
        for (const Piece& piece : pieces) {
            for (std::uint32_t i = 0; i < piece.length; ++i) {
                const std::uint32_t at = piece.guest + i;
                const Span one = guest.in_outermost({at, at + 1});
                if (piece.kind == Piece::Kind::verbatim) {
                    ASSERT_EQ(outer.text(one), guest.text({at, at + 1}));
                    EXPECT_TRUE(guest.editable({at, at + 1}));
                } else {
                    EXPECT_EQ(one, piece.host);
                    EXPECT_FALSE(guest.editable({at, at + 1}));
                }
                if (at >= half) {
                    EXPECT_EQ(inner.in_outermost({at - half, at - half + 1}), one);
                }
            }
        }
        // Over two pieces there is no run of bytes that a fix could replace.
        ASSERT_GT(pieces.size(), 1u);
        EXPECT_FALSE(guest.editable({pieces[1].guest - 1, pieces[1].guest + 1}));
        const Span whole = guest.in_outermost({0, static_cast<std::uint32_t>(text.size())});
        EXPECT_EQ(whole, (Span{pieces.front().host.begin, pieces.back().host.end}));
    }
}

}  // namespace
}  // namespace stoker::lint
