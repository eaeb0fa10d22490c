#include "govern/ledger/ledger.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "io/files.h"

namespace stoker {
namespace {

RequestKey request_of(int n) {
    RequestKey key{};
    key[15] = static_cast<std::uint8_t>(n);
    key[14] = static_cast<std::uint8_t>(n >> 8);
    return key;
}
ReserveRecord reserve_of(int n) {
    return {.request = request_of(n), .key = 5, .model = 6, .in_estimate = 10, .in_picousd = 100, .out_picousd = 1000};
}
SettleRecord settle_of(int n, std::uint64_t lsn) {
    return {.request = request_of(n), .reserve_lsn = lsn, .in = 10, .out = 3, .charge_picousd = 4000};
}

class LedgerFolder : public ::testing::Test {
protected:
    void SetUp() override {
        auto made = ScratchFolder::make("ledger");
        ASSERT_TRUE(made.ok());
        scratch_ = std::make_unique<ScratchFolder>(std::move(*made));
        folder_ = scratch_->path() + "/ledger";
    }
    std::unique_ptr<Ledger> open(std::uint64_t segment = 64u << 10) {
        auto ledger = Ledger::open({.folder = folder_, .segment_bytes = segment, .sync = false});
        EXPECT_TRUE(ledger.ok()) << ledger.error().text();
        return ledger ? std::move(*ledger) : nullptr;
    }
    LedgerScan scan() {
        auto found = scan_ledger(folder_);
        EXPECT_TRUE(found.ok()) << found.error().text();
        return found ? std::move(*found) : LedgerScan{};
    }
    std::string newest() {
        std::string last;
        for (const auto& entry : std::filesystem::directory_iterator(folder_))
            if (entry.path().filename().string().starts_with("seg-")) last = std::max(last, entry.path().string());
        return last;
    }
    static void commit(Ledger& ledger, std::uint64_t upto) {
        ledger.commit();
        while (ledger.durable() < upto) std::this_thread::yield();
    }
    std::string folder_;

private:
    std::unique_ptr<ScratchFolder> scratch_;
};

// Else a request that the last process left open is charged never, or twice.
TEST_F(LedgerFolder, WhatWasLeftOpenIsSettledOnceAtTheMark) {
    std::uint64_t live = 0;
    {
        const auto ledger = open();
        const std::uint64_t done = ledger->reserve(reserve_of(1));
        ledger->settle(settle_of(1, done));
        live = ledger->reserve(reserve_of(2));
        ledger->reserve(reserve_of(3));
        ledger->mark({{live, 10, 7}});
    }
    for (int start = 0; start < 3; ++start) {
        const auto ledger = open();
        EXPECT_EQ(ledger->recovery().recovered, start == 0 ? 2u : 0u);
    }
    const LedgerScan found = scan();
    EXPECT_TRUE(found.open.empty());
    EXPECT_EQ(found.settles, 3u);
    const AccountRow row = found.accounts.at({5, 6});
    // The marked one: 10 tokens in, 7 out; the one of which nothing was shown costs nothing.
    EXPECT_TRUE(row.picousd == 4000 + 10 * 100 + 7 * 1000);
    EXPECT_EQ(row.recovered, 2u);
}

// Else an answer of many hours is lost when the files before it are moved away, or is charged as if it had not come
// far.
TEST_F(LedgerFolder, WhatIsOpenIsCarriedIntoEachSegmentWithItsMark) {
    {
        const auto ledger = open();
        const std::uint64_t live = ledger->reserve(reserve_of(1));
        ledger->mark({{live, 10, 9}});
        for (int i = 2; i < 2000; ++i) ledger->settle(settle_of(i, ledger->reserve(reserve_of(i))));
    }
    const LedgerScan whole = scan();
    EXPECT_GT(whole.segments, 3u);
    EXPECT_EQ(whole.settles, 1998u);
    // The newest alone says the same of what is open.
    const std::string last = newest();
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
        if (entry.path().string() != last) std::filesystem::remove(entry.path());
    const LedgerScan alone = scan();
    ASSERT_EQ(alone.open.size(), 1u);
    EXPECT_EQ(alone.open.begin()->second.out, 9u);
    EXPECT_EQ(alone.open.begin()->first, whole.open.begin()->first);
}

// Else a machine that lost its power in a commit never starts again, or forgets what it had said was done.
TEST_F(LedgerFolder, TornTailIsCutAndDamageBeforeItIsRefused) {
    {
        const auto ledger = open();
        for (int i = 1; i <= 50; ++i) {
            const std::uint64_t lsn = ledger->settle(settle_of(i, ledger->reserve(reserve_of(i))));
            if (i % 10 == 0) commit(*ledger, lsn);
        }
    }
    const std::string path = newest();
    const std::string sound = *read_file(path, 1u << 24);
    const LedgerScan whole = scan();
    std::mt19937 random(7);
    int torn = 0, refused = 0;
    for (int i = 0; i < 300; ++i) {
        std::string damaged = sound;
        const std::size_t at = sizeof(SegmentHeader) + random() % (whole.last_end - sizeof(SegmentHeader));
        if (i % 2 == 0)
            std::fill(damaged.begin() + static_cast<std::ptrdiff_t>(at), damaged.end(), '\0');  // never written
        else
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
        if (damaged == sound) continue;  // there were zeros already
        std::ofstream(path, std::ios::binary) << damaged;
        const auto found = scan_ledger(folder_);
        if (found.ok()) {
            ++torn;
            EXPECT_LT(found->records, whole.records);
        } else {
            ++refused;
            EXPECT_EQ(found.error().kind(), ErrorKind::conflict);
            EXPECT_NE(found.error().message().find(path + ", byte "), std::string::npos) << found.error().message();
        }
    }
    EXPECT_GE(torn, 100);
    EXPECT_GT(refused, 50);
}

// Else each record of a busy gateway costs a commit of its own, which is dearer than the request.
TEST_F(LedgerFolder, RecordsGatherUntilSomebodyWaitsForThem) {
    const auto ledger = open(4u << 20);
    const std::uint64_t begun = ledger->durable();
    std::uint64_t last = 0;
    for (int i = 1; i <= 100; ++i) last = ledger->settle(settle_of(i, ledger->reserve(reserve_of(i))));
    EXPECT_EQ(ledger->stats().commits, 0u);
    EXPECT_EQ(ledger->durable(), begun);
    commit(*ledger, last);
    EXPECT_EQ(ledger->stats().commits, 1u);
    ledger->commit();  // of nothing
    EXPECT_EQ(ledger->stats().commits, 1u);
    // What nobody asks for has a bound all the same.
    for (int i = 101; i <= 5000; ++i) last = ledger->reserve(reserve_of(i));
    while (ledger->stats().commits == 1) std::this_thread::yield();
    EXPECT_GT(ledger->durable(), begun + 200);
}

TEST_F(LedgerFolder, SecondWriterAndForeignFolderAreRefused) {
    const auto first = open();
    EXPECT_EQ(Ledger::open({.folder = folder_}).error().kind(), ErrorKind::conflict);
    const std::string other = folder_ + "-2";
    {
        const auto own = Ledger::open({.folder = other, .gateway = {1}});
        EXPECT_TRUE(own.ok());
    }
    EXPECT_EQ(Ledger::open({.folder = other, .gateway = {2}}).error().kind(), ErrorKind::conflict);
}

TEST(LedgerRecord, ChecksumIsTheOneOfRfc3720) {
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
    EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

}  // namespace
}  // namespace stoker
