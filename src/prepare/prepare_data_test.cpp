// A sample that vanishes, comes twice or is cut in two here is missing from every training after it, and nobody looks.
#include "prepare/prepare_data.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/random.h"
#include "prepare/tar_text.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class PrepareData : public ::testing::Test {
protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "stoker-prepare-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    std::string write(const std::string& name, const std::string& text) {
        const fs::path path = folder_ / name;
        fs::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
        return path.string();
    }
    static std::string read(const fs::path& path) {
        std::ostringstream out;
        out << std::ifstream(path, std::ios::binary).rdbuf();
        return out.str();
    }
    PrepareOptions options(std::vector<std::string> sources) const {
        PrepareOptions options;
        options.sources = std::move(sources);
        options.to = (folder_ / "out").string();
        return options;
    }
    static PrepareReport made(const PrepareOptions& options) {
        auto report = prepare_data(options, [](double, std::string_view) {});
        EXPECT_TRUE(report.ok()) << report.error().text();
        return report ? *report : PrepareReport{};
    }
    static Error refused(const PrepareOptions& options) {
        auto report = prepare_data(options, [](double, std::string_view) {});
        EXPECT_FALSE(report.ok());
        return report ? Error(ErrorKind::internal, "made") : report.error();
    }
    std::string all_of(const PrepareReport& report) const {
        std::string text;
        for (const PreparedShard& shard : report.shards) text += read(folder_ / "out" / shard.name);
        return text;
    }
    fs::path folder_;
};

TEST_F(PrepareData, KeepsTheGoodAndCountsTheRest) {
    const std::string source =
        write("a.jsonl",
              "\xef\xbb\xbf{\"text\":\"one\"}\r\n\n{\"text\":\"two\"}\n{\"text\":\n{\"text\":\"one\"}\n"
              "{\"other\":1}\n{\"text\":\"\"}\n{\"text\":\"\xff\"}\n{\"text\":\"last\"}");
    PrepareOptions wanted = options({source});
    wanted.rules.required = {"text"};
    wanted.rejects = (folder_ / "bad.tsv").string();
    const PrepareReport report = made(wanted);
    EXPECT_EQ(report.read, 9);
    EXPECT_EQ(report.kept, 3);
    EXPECT_EQ(report.blank, 1);
    EXPECT_EQ(report.duplicates, 1);
    EXPECT_EQ(report.malformed, 4);
    EXPECT_EQ(all_of(report), "{\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"text\":\"last\"}\n");
    ASSERT_EQ(report.examples.size(), 4u);
    EXPECT_EQ(report.examples[0].place, source + ":4:9");
    EXPECT_EQ(report.examples[3].reason, "byte 0xff is not UTF-8");
    const std::string rejects = read(wanted.rejects);
    EXPECT_EQ(std::count(rejects.begin(), rejects.end(), '\n'), 4);
    EXPECT_TRUE(check_prepared(wanted.to, [](double, std::string_view) {})->empty());
    EXPECT_FALSE(fs::exists(wanted.to + ".partial"));
    EXPECT_FALSE(fs::exists(wanted.to + ".partial.lock"));
}

// Property: whatever the order, number of shards and packing, the records are those of the source, each once.
TEST_F(PrepareData, LosesAndDoublesNothing) {
    SplitMix random(7);
    for (int round = 0; round < 30; ++round) {
        std::multiset<std::string> there;
        std::vector<std::string> sources;
        for (int part = 0; part < 3; ++part) {
            std::string text;
            for (std::uint64_t i = random.below(200); i-- > 0;) {
                std::string line = std::to_string(random.below(100'000)) + std::string(random.below(300), 'x');
                there.insert(line);
                text += line + "\n";
            }
            const std::string name = "in-" + std::to_string(round) + "-" + std::to_string(part) + ".txt";
            if (part == 1) {
                const std::string path = (folder_ / (name + ".gz")).string();
                gzFile file = gzopen(path.c_str(), "wb");
                if (!text.empty()) gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
                gzclose(file);
                sources.push_back(path);
            } else {
                sources.push_back(write(name, text));
            }
        }
        if (there.empty()) continue;
        PrepareOptions wanted = options(sources);
        wanted.to += std::to_string(round);
        wanted.rules.format = RecordFormat::text;
        wanted.keep_duplicates = round % 2 == 0;
        wanted.order = static_cast<RecordOrder>(round % 3);
        wanted.shards = 1 + static_cast<std::int64_t>(random.below(20));
        const PrepareReport report = made(wanted);
        std::multiset<std::string> found;
        std::int64_t least = INT64_MAX, most = 0, longest = 0;
        for (const PreparedShard& shard : report.shards) {
            std::istringstream lines(read(fs::path(wanted.to) / shard.name));
            std::int64_t records = 0;
            for (std::string line; std::getline(lines, line); ++records) {
                longest = std::max<std::int64_t>(longest, static_cast<std::int64_t>(line.size()) + 1);
                found.insert(line);
            }
            EXPECT_EQ(records, shard.records);
            least = std::min(least, shard.bytes);
            most = std::max(most, shard.bytes);
        }
        EXPECT_EQ(found.size(), static_cast<std::size_t>(report.kept));
        if (wanted.keep_duplicates) {
            EXPECT_EQ(found, there);
        } else {
            const std::set<std::string> once(there.begin(), there.end());
            EXPECT_EQ(found, std::multiset<std::string>(once.begin(), once.end()));
        }
        EXPECT_LE(most - least, 2 * longest + 2) << "shards of unequal size";
    }
}

TEST_F(PrepareData, TheSameAgainIsDoneAndOtherSourcesAreRefused) {
    const std::string source = write("a.txt", "one\ntwo\nthree\n");
    PrepareOptions wanted = options({source});
    wanted.rules.format = RecordFormat::text;
    wanted.order = RecordOrder::shuffle;
    const std::string first = all_of(made(wanted));
    EXPECT_TRUE(made(wanted).was_there);
    write("a.txt", "one\ntwo\nthree\nfour\n");
    EXPECT_EQ(refused(wanted).kind(), ErrorKind::conflict);
    wanted.replace = true;
    EXPECT_EQ(made(wanted).kept, 4);
    write("mine/thesis.txt", "years of work");
    wanted.to = (folder_ / "mine").string();
    EXPECT_EQ(refused(wanted).kind(), ErrorKind::conflict);  // --replace removes nothing that it has not made
    EXPECT_EQ(read(folder_ / "mine/thesis.txt"), "years of work");
}

TEST_F(PrepareData, OrdersByWhatIsAskedFor) {
    const std::string source =
        write("a.csv", "id,when,text\n1,10,\"a, \"\"b\"\"\nc\"\n2,9,x\n3,z,y\n4,,w\n5,7\n6,\"8,q\n");
    PrepareOptions wanted = options({source});
    wanted.rules.format = RecordFormat::csv;
    wanted.rules.key = "when";
    wanted.rules.required = {"text"};
    wanted.order = RecordOrder::key;
    const PrepareReport report = made(wanted);
    EXPECT_EQ(all_of(report), "id,when,text\n2,9,x\n1,10,\"a, \"\"b\"\"\nc\"\n4,,w\n3,z,y\n");
    EXPECT_EQ(report.malformed, 2);
    EXPECT_EQ(report.examples[0].reason, "2 fields where the heading has 3");
    EXPECT_EQ(report.examples[0].place, source + ":7");
    wanted.to += "-2";
    wanted.rules.key = "whem";
    EXPECT_NE(refused(wanted).text().find("there are id, when, text"), std::string::npos);
}

TEST_F(PrepareData, ALineOverTheBoundIsCountedAndTheNextIsWhole) {
    PrepareOptions wanted =
        options({write("a.txt", "short\n" + std::string(5'000'000, 'x') + "\nafter\n" + std::string(3'000'000, 'y'))});
    wanted.rules.format = RecordFormat::text;
    wanted.rules.max_bytes = 1'000'000;
    const PrepareReport report = made(wanted);
    EXPECT_EQ(report.malformed, 2);
    EXPECT_EQ(all_of(report), "short\nafter\n");
}

TEST_F(PrepareData, DamagedGzipIsAnErrorAndLeavesNothing) {
    const std::string path = (folder_ / "a.txt.gz").string();
    gzFile file = gzopen(path.c_str(), "wb");
    for (int i = 0; i < 20'000; ++i) gzprintf(file, "line %d\n", i * 7919);
    gzclose(file);
    fs::resize_file(path, fs::file_size(path) / 2);
    PrepareOptions wanted = options({path});
    wanted.rules.format = RecordFormat::text;
    EXPECT_EQ(refused(wanted).kind(), ErrorKind::invalid);
    EXPECT_FALSE(fs::exists(wanted.to));
    EXPECT_FALSE(fs::exists(wanted.to + ".partial"));
}

TEST_F(PrepareData, FilesOfASampleStandTogetherInATarThatOthersRead) {
    const std::string deep(120, 'd');
    write("in/b.jpg", "picture b");
    write("in/b.cls", "1");
    write("in/a.jpg", std::string(1000, 'a'));
    write("in/a.cls", "0");
    write("in/same.jpg", "picture b");
    write("in/same.cls", "1");
    write("in/" + deep + "/" + deep + "/c.txt", "deep");
    write("in/none.txt", "");
    PrepareOptions wanted = options({(folder_ / "in").string()});
    wanted.files = true;
    wanted.shards = 2;
    const PrepareReport report = made(wanted);
    EXPECT_EQ(report.read, 5);
    EXPECT_EQ(report.kept, 3);
    EXPECT_EQ(report.duplicates, 1);
    EXPECT_EQ(report.blank, 1);
    std::map<std::string, std::string> found;
    for (const PreparedShard& shard : report.shards) {
        const fs::path to = folder_ / ("unpacked-" + shard.name);
        fs::create_directories(to);
        ASSERT_EQ(std::system(("tar -xf " + (folder_ / "out" / shard.name).string() + " -C " + to.string()).c_str()),
                  0);
        std::set<std::string> stems;
        for (const auto& file : fs::recursive_directory_iterator(to))
            if (file.is_regular_file()) found[file.path().lexically_relative(to).string()] = read(file.path());
    }
    EXPECT_EQ(found.size(), 5u);
    EXPECT_EQ(found["a.jpg"], std::string(1000, 'a'));
    EXPECT_EQ(found[deep + "/" + deep + "/c.txt"], "deep");
}

TEST_F(PrepareData, ADamagedShardIsFound) {
    PrepareOptions wanted = options({write("a.txt", "one\ntwo\n")});
    wanted.rules.format = RecordFormat::text;
    const PrepareReport report = made(wanted);
    write("out/" + report.shards[0].name, "one\ntwi\n");
    const auto problems = check_prepared(wanted.to, [](double, std::string_view) {});
    ASSERT_EQ(problems->size(), 1u);
    EXPECT_NE(problems->front().find("other content"), std::string::npos);
}

}  // namespace
}  // namespace stoker
