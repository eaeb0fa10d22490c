#include "serve/batch/batch_lines.h"

#include <gtest/gtest.h>

namespace stoker::batch {
namespace {

std::string line(const std::string& id, const std::string& body = R"({"model":"m","messages":[]})",
                 const std::string& url = "/v1/chat/completions") {
    return R"({"custom_id":")" + id + R"(","method":"POST","url":")" + url + R"(","body":)" + body + "}\n";
}

// Else a file of fifty thousand lines is refused one mistake at a time.
TEST(BatchLines, AllThatIsWrongIsToldWithItsLine) {
    std::vector<BatchError> errors;
    const std::string text = line("a") + line("a") + "\n" + line("b", "[]") +
                             line("c", R"({"model":"m"})", "/v1/embeddings") +
                             line("d", R"({"model":"m","stream":true})") + "{oops\n" + line("e", R"({"messages":[]})");
    read_batch_lines(text, "/v1/chat/completions", errors);
    std::vector<std::pair<std::string, std::int64_t>> seen;
    for (const BatchError& each : errors) seen.emplace_back(each.code, each.line);
    EXPECT_EQ(seen, (std::vector<std::pair<std::string, std::int64_t>>{{"duplicate_custom_id", 2},
                                                                       {"missing_required_parameter", 4},
                                                                       {"mismatched_url", 5},
                                                                       {"invalid_value", 6},
                                                                       {"invalid_json_line", 7},
                                                                       {"missing_required_parameter", 8}}));
    errors.clear();
    EXPECT_EQ(read_batch_lines(line("a") + line("b"), "/v1/chat/completions", errors).size(), 2u);
    EXPECT_TRUE(errors.empty());
    read_batch_lines("\n \n", "/v1/chat/completions", errors);
    EXPECT_EQ(errors.at(0).code, "empty_file");
}

// Else what a process that was killed had answered is asked again, or half a row is believed.
TEST(BatchLines, ALogGoesAsFarAsItIsWhole) {
    const std::string row = batch_row("a\"", 200, "req_1", "{\n \"x\": 1}", true);
    EXPECT_EQ(row.find('\n'), std::string::npos);
    EXPECT_EQ(body_of_row(row), "{  \"x\": 1}");
    EXPECT_EQ(body_of_row(batch_row(",\"body\":1", 200, "r", "[2]", true)), "[2]");
    EXPECT_TRUE(body_of_row("{}").empty());
    const std::string log = "1 ok " + row + "\n0 bad {}\n2 ok {\"half";
    std::size_t end = 0;
    const auto rows = read_batch_log(log, 3, end);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].line, 1u);
    EXPECT_TRUE(rows[0].good);
    EXPECT_EQ(rows[0].text, row);
    EXPECT_FALSE(rows[1].good);
    EXPECT_EQ(log.substr(end), "2 ok {\"half");
    EXPECT_TRUE(read_batch_log("9 ok {}\n", 3, end).empty());
    EXPECT_TRUE(read_batch_log("", 3, end).empty());
}

// Else lines come back in another order, or some do not come back at all.
TEST(BatchLines, EachLineIsInOneOfTheFilesAndInItsOrder) {
    std::vector<BatchError> errors;
    const std::string text = line("a") + line("b") + line("c");
    const auto lines = read_batch_lines(text, "/v1/chat/completions", errors);
    const BatchFiles files = batch_files(
        lines, {{.line = 2, .good = true, .text = "C"}, {.line = 0, .good = true, .text = "A"}}, "cancelled");
    EXPECT_EQ(files.output, "A\nC\n");
    EXPECT_NE(files.errors.find("\"custom_id\":\"b\""), std::string::npos);
    EXPECT_NE(files.errors.find("batch_cancelled"), std::string::npos);
    EXPECT_EQ(files.good, 2);
    EXPECT_EQ(files.bad, 1);
}

}  // namespace
}  // namespace stoker::batch
