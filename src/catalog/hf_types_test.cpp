#include "catalog/hf_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "base/embedded.h"

namespace stoker {
namespace {

// Every row of the shipped table can be read, and every default is a number or a flag: a typing error in the data would
// end every plan with a config.json.
TEST(HfTypes, EveryRowOfTheShippedTableIsSound) {
    for (const EmbeddedFile& file : embedded_files()) {
        if (file.path != "models/hf_types.tsv") continue;
        const auto types = read_hf_types(file.bytes);
        ASSERT_TRUE(types.ok()) << types.error().text();
        EXPECT_GT(types->size(), 180u);
        for (const auto& [name, type] : *types) {
            for (const auto& [field, value] : type.defaults) {
                const bool number =
                    std::all_of(value.begin(), value.end(), [](unsigned char c) { return std::isdigit(c); });
                EXPECT_TRUE((number && value.size() < 10) || value == "yes" || value == "no") << name << " " << field;
            }
            EXPECT_TRUE(type.unsupported.empty() || type.defaults.empty()) << name;
        }
        return;
    }
    FAIL() << "models/hf_types.tsv is not embedded";
}

TEST(HfTypes, FindsATypeByItsExactName) {
    ASSERT_NE(find_hf_type("qwen3"), nullptr);
    EXPECT_EQ(*find_hf_type("qwen3")->find_default("head_dim"), "128");
    EXPECT_EQ(find_hf_type("no_such_type"), nullptr);
    EXPECT_FALSE(find_hf_type("mamba")->unsupported.empty());
}

// A row that is wrong is told with its line.
TEST(HfTypes, TellsWhatIsWrongWithARow) {
    const auto bad = read_hf_types(
        "model_type\tkind\tgated\tnorm\tbiases\tlearned_positions\tffn_factor\twindow\tpooler\tdefaults\tunsupported\n"
        "x\tcloud\tyes\trmsnorm\tno\t\t\t\t\thidden\t\nx\tdecoder\tyes\trmsnorm\tno\t\t\t\t\thidden=1\t\n");
    ASSERT_FALSE(bad.ok());
    EXPECT_EQ(bad.error().problems().size(), 3u) << bad.error().text();
}

}  // namespace
}  // namespace stoker
