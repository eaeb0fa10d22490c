#include "io/postgres/postgres_segments.h"

#include <thread>

#include "io/postgres/postgres_testing.h"
#include "io/segment_conformance.h"

namespace stoker {
namespace {

struct RowsOfSegments {
    static std::string prepare() {
        if (const std::string why = TestPostgres::why_not(); !why.empty()) return why;
        if (!server()) server() = TestPostgres::start();
        if (!server()) return "PostgreSQL does not start";
        url() = server()->new_database();
        return {};
    }
    static std::unique_ptr<SegmentHome> open() { return open_as("somebody"); }
    static std::unique_ptr<PostgresSegments> open_as(const std::string& holder,
                                                     std::function<void(const Error&)> on_lost = {}) {
        auto made = PostgresSegments::open(
            {.url = url(), .name = "the database", .holder = holder, .lease_s = 1, .on_lost = std::move(on_lost)}, 7);
        EXPECT_TRUE(made) << (made ? "" : made.error().text());
        return made ? std::move(*made) : nullptr;
    }
    static std::unique_ptr<TestPostgres>& server() {
        static std::unique_ptr<TestPostgres> one;
        return one;
    }
    static std::string& url() {
        static std::string one;
        return one;
    }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Postgres, SegmentConformance, RowsOfSegments);

class PostgresSegmentsTest : public testing::Test {
protected:
    void SetUp() override {
        if (const std::string why = RowsOfSegments::prepare(); !why.empty()) GTEST_SKIP() << why;
    }
    static void TearDownTestSuite() { RowsOfSegments::server().reset(); }
    static Status write(SegmentHome& home, std::uint64_t at, std::string_view bytes) {
        const SegmentPiece piece{1, at, 256, bytes};
        return home.write({&piece, 1});
    }
};

// Else a gateway that slept through its lease settles what the next one has settled already.
TEST_F(PostgresSegmentsTest, WhosePlaceWasTakenWritesNothingMore) {
    const auto asleep = RowsOfSegments::open_as("first");
    ASSERT_TRUE(asleep->claim());
    ASSERT_TRUE(write(*asleep, 0, "first"));
    auto admin = PostgresConnection::open(RowsOfSegments::url());
    ASSERT_TRUE(admin);
    ASSERT_TRUE((*admin)->query("UPDATE stoker_ledger_writer SET term = term + 1, holder = 'second'"));
    const Status refused = write(*asleep, 5, "late");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::conflict);
    EXPECT_NE(refused.error().text().find("second"), std::string::npos) << refused.error().text();
    EXPECT_EQ(asleep->read(1).value(), "first");
}

// Else every restart of the database ends the gateway, or makes it write a commit twice.
TEST_F(PostgresSegmentsTest, GoesOnWhenTheDatabaseComesBack) {
    const auto home = RowsOfSegments::open_as("first");
    ASSERT_TRUE(home->claim());
    ASSERT_TRUE(write(*home, 0, "before "));
    RowsOfSegments::server()->restart();
    ASSERT_TRUE(write(*home, 7, "after"));
    EXPECT_EQ(home->read(1).value(), "before after");
}

TEST_F(PostgresSegmentsTest, WhatSomebodyChangedIsToldWithItsPlace) {
    const auto home = RowsOfSegments::open_as("first");
    ASSERT_TRUE(home->claim());
    ASSERT_TRUE(write(*home, 0, "0123"));
    ASSERT_TRUE(write(*home, 4, "4567"));
    EXPECT_EQ(home->cut(1, 6).error().kind(), ErrorKind::conflict) << "no write is there by halves";
    EXPECT_EQ(write(*home, 4, "other").error().kind(), ErrorKind::conflict);
    auto admin = PostgresConnection::open(RowsOfSegments::url());
    ASSERT_TRUE(admin);
    ASSERT_TRUE((*admin)->query("DELETE FROM stoker_ledger WHERE at = 0"));
    const auto read = home->read(1);
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().text().find("byte 0"), std::string::npos) << read.error().text();
}

}  // namespace
}  // namespace stoker
