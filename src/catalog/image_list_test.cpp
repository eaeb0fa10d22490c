#include "catalog/image_list.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

const Catalog& shipped() {
    static const Catalog catalog = [] {
        auto read = Catalog::embedded();
        if (!read) ADD_FAILURE() << read.error().text();
        return read ? std::move(read).value() : Catalog();
    }();
    return catalog;
}

Result<std::vector<ListedImage>> read(std::string_view json, std::string_view today = "2026-11-21") {
    auto document = Document::parse(json, "images.json");
    if (!document) return std::move(document).error();
    return read_image_list(*document, shipped(), today);
}

std::string entry(std::string_view sku, std::string_view version, std::string_view state = "\"Active\"",
                  std::string_view more = "") {
    return "{\"architecture\": \"x64\", \"imageDeprecationStatus\": {\"imageState\": " + std::string(state) +
           std::string(more) + "}, \"offer\": \"ubuntu-hpc\", \"publisher\": \"microsoft-dsvm\", \"sku\": \"" +
           std::string(sku) + "\", \"urn\": \"microsoft-dsvm:ubuntu-hpc:" + std::string(sku) + ":" +
           std::string(version) + "\", \"version\": \"" + std::string(version) + "\"}";
}

// Hundreds of versions are one image: the newest that still can be started, by number and not by text.
TEST(ImageList, KeepsTheNewestVersionThatIsNotDeprecated) {
    const auto images = read("[" + entry("2204", "22.04.9") + "," + entry("2204", "22.04.10") + "," +
                             entry("2204", "22.05.1", "\"Deprecated\"") + "]");
    ASSERT_TRUE(images.ok()) << images.error().text();
    ASSERT_EQ(images->size(), 1u);
    EXPECT_EQ(images->front().version, "22.04.10");
    EXPECT_EQ(images->front().versions, 3);
    EXPECT_FALSE(images->front().deprecated);
    EXPECT_EQ(images->front().known, ContentsKnown::exactly);
}

// Another release or generation of a known image has the same things inside; another flavour has not.
TEST(ImageList, TakesContentsFromKinButNotFromAnotherFlavour) {
    const auto images = read("[" + entry("2004", "1.0.0") + "," + entry("2404-rocm-gen2", "1.0.0") + "," +
                             entry("2204-preview-ndv5", "1.0.0") + "]");
    ASSERT_TRUE(images.ok()) << images.error().text();
    EXPECT_EQ((*images)[0].known, ContentsKnown::by_kin);
    EXPECT_EQ((*images)[1].known, ContentsKnown::exactly);
    EXPECT_EQ(shipped().images()[static_cast<std::size_t>((*images)[1].image)].name, "ubuntu-hpc-2404-rocm");
    EXPECT_EQ((*images)[2].known, ContentsKnown::no);
}

// A scheduled withdrawal counts from its day on.
TEST(ImageList, DeprecatesOnTheScheduledDay) {
    const std::string json = "[" +
                             entry("2204", "1.0.0", "\"ScheduledForDeprecation\"",
                                   ", \"scheduledDeprecationTime\": \"2026-12-01T00:00:00+00:00\"") +
                             "]";
    EXPECT_FALSE(read(json, "2026-11-30")->front().deprecated);
    EXPECT_TRUE(read(json, "2026-12-01")->front().deprecated);
}

// A file that is not such an answer is refused with the place and what was expected, not read as an empty list.
TEST(ImageList, RefusesWhatIsNoAnswer) {
    for (const std::string_view json : {"{}", "[]", "3", "[1]", "[{\"name\": \"Standard_D2s_v5\"}]",
                                        "[{\"publisher\": 3, \"offer\": [], \"sku\": \"x\", \"version\": \"1\"}]"}) {
        const auto images = read(json);
        ASSERT_FALSE(images.ok()) << json;
        EXPECT_EQ(exit_code(images.error().kind()), 2) << json;
        EXPECT_NE(images.error().text().find("images.json"), std::string::npos) << images.error().text();
    }
}

// "ib" and "docker" are the words people have; a word nobody knows is an error, not an image without it.
TEST(ImageContent, UnderstandsThePeoplesWords) {
    EXPECT_EQ(*image_content("ib", shipped()), "ofed");
    EXPECT_EQ(*image_content("NCCL", shipped()), "nccl");
    EXPECT_EQ(*image_content("docker", shipped()), "container-runtime");
    EXPECT_FALSE(image_content("pytroch", shipped()).ok());
    EXPECT_NE(image_content("pytroch", shipped()).error().message().find("pytorch"), std::string::npos);
    EXPECT_EQ(missing_contents({"ofed", "mpi"}, {"mpi"}), std::vector<std::string>{"ofed"});
}

}  // namespace
}  // namespace stoker
