#include "io/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <latch>
#include <mutex>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "base/document.h"
#include "base/text.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr LogEvent kEvent{"run.evicted", LogLevel::info, "run, node, cause, text", "A test."};
constexpr LogEvent kQuiet{"request.done", LogLevel::debug, "status", "A test."};
constexpr std::int64_t kAt = 1'763'753'663'000'120;

// Dashboards and people parse these lines: their form stays.
TEST(LogLineTest, SaysWhenWhatAndItsFields) {
    const LogFields fields = {{"run", "r-7"}, {"lost_s", 4.5}, {"retried", true}, {"gpus", 8}, {"node", ""}};
    EXPECT_EQ(log_line(LogFormat::logfmt, kAt, kEvent, fields),
              "2025-11-21T19:34:23.000120Z info run.evicted run=r-7 lost_s=4.5 retried=true gpus=8\n");
    EXPECT_EQ(log_line(LogFormat::json, kAt, kEvent, fields),
              "{\"at\":\"2025-11-21T19:34:23.000120Z\",\"level\":\"info\",\"event\":\"run.evicted\",\"run\":\"r-7\","
              "\"lost_s\":4.5,\"retried\":true,\"gpus\":8}\n");
}

// Whoever names a run writes into the log of its server: with a line end he would write lines of his own, with an
// escape sequence into the terminal of whoever reads it, and with a broken byte the collector drops the line.
TEST(LogLineTest, NoValueBreaksItsLine) {
    for (const std::string& evil : {std::string("a\nerror forged.event x=1"), std::string("a\rb"), std::string("\"} {"),
                                    std::string("\x1b[2J"), std::string("a\0b", 3), std::string("\xff\xfe ok"),
                                    std::string("\xc2\x9b"
                                                "31m"),
                                    std::string("x=y z"), std::string("\xe2\x80\xa8line"), std::string("back\\slash"),
                                    std::string("\xf0\x9f"), std::string("\x7f")}) {
        for (const LogFormat format : {LogFormat::logfmt, LogFormat::json}) {
            const std::string line = log_line(format, kAt, kEvent, {{"run", evil}, {"node", "n"}});
            EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
            EXPECT_EQ(find_invalid_utf8(line), std::string::npos) << line;
            for (std::size_t i = 0; i + 1 < line.size(); ++i)
                EXPECT_FALSE(static_cast<unsigned char>(line[i]) < 0x20 || line[i] == 0x7f) << line;
            EXPECT_EQ(line.find("\xc2\x9b"), std::string::npos);
            if (format == LogFormat::json) {
                EXPECT_TRUE(Document::parse_json(line, "line").ok()) << line;
            }
        }
    }
}

// One request with a body of megabytes in a header may not fill a disk with one line.
TEST(LogLineTest, ValuesAndLinesAreBounded) {
    std::vector<std::string> keys;
    for (int i = 0; i < 100; ++i) keys.push_back(fmt::format("k{}", i));
    LogFields fields;
    for (const std::string& key : keys) fields.emplace_back(key, std::string(100'000, 'x') + "\xc3\xa4");
    const std::string line = log_line(LogFormat::json, kAt, kEvent, fields);
    EXPECT_LT(line.size(), 16'384u);
    EXPECT_THAT(line, HasSubstr("... (100002 bytes)"));
    EXPECT_TRUE(Document::parse_json(line, "line").ok());
}

// Logs are copied into tickets: a signed URL or a token in one is a key given away.
TEST(LogLineTest, NoSecretIsWritten) {
    for (const std::string text :
         {"https://a.blob.core.windows.net/c/x?sv=1&sig=S3CR3T%2B&se=2", "Authorization: Bearer S3CR3T",
          "https://user:S3CR3T@host/path", "AccountName=a;AccountKey=S3CR3T;", "https://x/?X-Amz-Signature=S3CR3T",
          "AWS_SECRET_ACCESS_KEY=S3CR3T", "password=S3CR3T next", "s3://b/?X-Amz-Security-Token=S3CR3T"}) {
        const std::string line = log_line(LogFormat::logfmt, kAt, kEvent, {{"text", text}});
        EXPECT_THAT(line, Not(HasSubstr("S3CR3T"))) << line;
        EXPECT_THAT(line, HasSubstr("***")) << line;
    }
    EXPECT_EQ(without_secrets("https://host:80/p?se=2 run=r-7"), "https://host:80/p?se=2 run=r-7");
    EXPECT_THAT(log_line(LogFormat::json, kAt, kEvent, {{"text", Secret("S3CR3T")}}), HasSubstr("\"text\":\"***\""));
}

class Lines {
public:
    LogOptions options() {
        return {.sink =
                    [this](std::string_view line) {
                        const std::lock_guard guard(mutex_);
                        text_ += line;
                    },
                .now_us = [] { return kAt; }};
    }
    std::string text() {
        const std::lock_guard guard(mutex_);
        return text_;
    }

private:
    std::mutex mutex_;
    std::string text_;
};

// What a server said before it ended must be there, in order, and nothing of a level that nobody asked for; its own
// token stays out wherever it turns up.
TEST(LogTest, WritesWhatIsWantedInOrderUntilItsEnd) {
    Lines lines;
    {
        auto log = Log::open(lines.options());
        ASSERT_TRUE(log.ok());
        (*log)->hide(Secret("0123456789abcdef"));
        EXPECT_FALSE((*log)->wants(LogLevel::debug));
        for (int i = 0; i < 100; ++i) (*log)->write(kEvent, {{"run", fmt::format("r-{}", i)}});
        (*log)->write(kQuiet, {{"status", 200}});
        (*log)->write(kEvent, {{"text", "x0123456789abcdefx"}});
    }
    const std::string text = lines.text();
    ASSERT_EQ(split_lines(text).size(), 101u);
    EXPECT_THAT(std::string(split_lines(text)[99]), HasSubstr("run=r-99"));
    EXPECT_THAT(text, Not(HasSubstr("request.done")));
    EXPECT_THAT(text, HasSubstr("text=x***x"));
}

// A disk that hangs may not hold the core: what does not fit is dropped, counted, and said when there is room again.
TEST(LogTest, NobodyWaitsAndWhatIsDroppedIsSaid) {
    Lines lines;
    LogOptions options = lines.options();
    std::latch begun(1), open(1);
    std::once_flag once;
    options.most_waiting = 3;
    options.sink = [&, keep = options.sink](std::string_view line) {
        std::call_once(once, [&] {
            begun.count_down();
            open.wait();
        });
        keep(line);
    };
    {
        auto log = Log::open(options);
        (*log)->write(kEvent, {{"run", "r-1"}});
        begun.wait();
        for (int i = 0; i < 10; ++i) (*log)->write(kEvent, {{"run", "r-2"}});
        EXPECT_EQ((*log)->dropped(), 7u);
        open.count_down();
    }
    EXPECT_THAT(lines.text(), HasSubstr("warn log.dropped lines=7"));
}

// A log that fills the disk takes the journal with it.
TEST(LogTest, AFileIsBoundedAndItsOldOnesAreKept) {
    const std::string folder = ::testing::TempDir() + "/log-" + std::to_string(::getpid());
    std::filesystem::create_directories(folder);
    {
        auto log = Log::open({.file = folder + "/up.log", .max_bytes = 1000, .keep = 2});
        ASSERT_TRUE(log.ok());
        for (int i = 0; i < 100; ++i) (*log)->write(kEvent, {{"run", fmt::format("r-{}", i)}});
    }
    std::size_t files = 0;
    for (const auto& each : std::filesystem::directory_iterator(folder)) {
        EXPECT_LE(each.file_size(), 1000u);
        ++files;
    }
    EXPECT_EQ(files, 3u);
    std::stringstream newest;
    newest << std::ifstream(folder + "/up.log").rdbuf();
    EXPECT_THAT(newest.str(), HasSubstr("run=r-99\n"));
    EXPECT_EQ(std::filesystem::status(folder + "/up.log").permissions() & std::filesystem::perms::mask,
              std::filesystem::perms(0600));
    std::filesystem::remove_all(folder);
    EXPECT_EQ(Log::open({.file = "/nosuchfolder/x.log"}).error().kind(), ErrorKind::not_found);
}

}  // namespace
}  // namespace stoker
