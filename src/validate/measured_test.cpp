// What plans rank by must be what the rows say.
#include "validate/measured.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/embedded.h"

namespace stoker::validate {
namespace {

std::string text_of(const char* name) {
    std::ifstream file(std::string(STOKER_SOURCE_DIR "/data/validation/") + name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// data/calibration/measured.tsv is counted from data/validation; after new rows: ./dev fit --measured.
TEST(Measured, TheFileAgreesWithTheRows) {
    const auto catalog = Catalog::embedded();
    ASSERT_TRUE(catalog.ok());
    const auto counted = measured_tsv(*catalog, text_of("training.csv"), text_of("inference.csv"));
    ASSERT_TRUE(counted.ok()) << counted.error().text();
    EXPECT_EQ(*counted, embedded_bytes("calibration/measured.tsv"));
}

// An interval grows by how far what is asked lies from what sources measured: data/calibration/sources.tsv has these.
TEST(Measured, SourcesAgreeWithTheRows) {
    const auto catalog = Catalog::embedded();
    ASSERT_TRUE(catalog.ok());
    const auto counted =
        sources_tsv(*catalog, text_of("training.csv"), text_of("memory.csv"), text_of("inference.csv"));
    ASSERT_TRUE(counted.ok()) << counted.error().text();
    EXPECT_EQ(*counted, embedded_bytes("calibration/sources.tsv"));
}

}  // namespace
}  // namespace stoker::validate
