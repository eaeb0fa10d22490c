// A data file that the binary carries and does not find would end it in front of a user.
#include "base/embedded.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Embedded, EachFileIsFoundByItsPath) {
    ASSERT_FALSE(embedded_files().empty());
    for (const EmbeddedFile& file : embedded_files()) {
        const EmbeddedFile* found = find_embedded(file.path);
        ASSERT_NE(found, nullptr) << file.path;
        EXPECT_EQ(found->bytes.data(), file.bytes.data());
        EXPECT_EQ(embedded_bytes(file.path), file.bytes);
    }
    EXPECT_EQ(find_embedded("catalog/nosuchfile.tsv"), nullptr);
    EXPECT_EQ(find_embedded(""), nullptr);
    EXPECT_EQ(find_embedded("zzz"), nullptr);
}

}  // namespace
}  // namespace stoker
