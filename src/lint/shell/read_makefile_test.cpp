// A Makefile is how many repositories deploy; what make replaces, the shell of a recipe never sees.
#include "lint/shell/read_makefile.h"

#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

std::size_t retired_in(const std::string& makefile, const std::string& included = "") {
    CheckedTree tree{{{"Makefile", makefile}, {"config.mk", included}}, {}};
    return tree.findings("SKU001").size();
}
const std::string kPoolOf =
    "az aks nodepool add -g rg --cluster-name c -n gpu --node-taints sku=gpu:NoSchedule --enable-cluster-autoscaler "
    "--min-count 0 --max-count 2 --node-vm-size ";

TEST(ReadMakefile, KnowsItsNames) {
    EXPECT_TRUE(is_makefile("a/Makefile"));
    EXPECT_TRUE(is_makefile("GNUmakefile"));
    EXPECT_TRUE(is_makefile("config.mk"));
    EXPECT_FALSE(is_makefile(".mk"));
    EXPECT_FALSE(is_makefile("Makefile.txt"));
}

TEST(ReadMakefile, VariablesStandInRecipes) {
    EXPECT_EQ(retired_in("SIZE = Standard_NC6s_v3\npool:\n\t" + kPoolOf + "$(SIZE)\n"), 1u);
    EXPECT_EQ(retired_in("SIZE := Standard_NC6s_v3\npool:\n\t@" + kPoolOf + "${SIZE}\n"), 1u);
    EXPECT_EQ(retired_in("N = NC6s_v3\nSIZE ?= Standard_$(N)\npool:\n\t" + kPoolOf + "$(SIZE)\n"), 1u);
    EXPECT_EQ(retired_in("pool:\n\t" + kPoolOf + "$(SIZE)\n"), 0u);
    EXPECT_EQ(retired_in("A = $(B)\nB = $(A)\npool:\n\t" + kPoolOf + "$(A)\n"), 0u) << "and it ends";
}

TEST(ReadMakefile, IncludedFilesGiveVariables) {
    EXPECT_EQ(retired_in("include config.mk\npool:\n\t" + kPoolOf + "$(SIZE)\n", "SIZE = Standard_NC6s_v3\n"), 1u);
    EXPECT_EQ(retired_in("pool:\n\t" + kPoolOf + "$(SIZE)\n", "SIZE = Standard_NC6s_v3\n"), 0u);
}

TEST(ReadMakefile, ALineOfARecipeMayGoOn) {
    EXPECT_EQ(
        retired_in(
            "pool:\n\taz aks nodepool add -g rg --cluster-name c -n gpu \\\n\t  --node-vm-size Standard_NC6s_v3\n"),
        1u);
    EXPECT_EQ(retired_in("# pool:\n#\t" + kPoolOf + "Standard_NC6s_v3\nall:\n\ttrue az\n"), 0u);
}

// train: export X := value holds for that recipe; a user's other recipes are not judged by it.
TEST(ReadMakefile, VariablesOfATargetAreThoseOfItsRecipe) {
    const auto visible = [](const std::string& makefile) {
        return CheckedTree{{{"Makefile", makefile}}, {}}.findings("RUN005").size();
    };
    const std::string launch = "\ttorchrun --standalone --nproc-per-node $(N) train.py\n";
    const std::string two = "train: export CUDA_VISIBLE_DEVICES := 0,1\ntrain: N = 4\n";
    EXPECT_EQ(visible(two + "train:\n" + launch), 1u);
    EXPECT_EQ(visible(two + "other: N = 4\nother:\n" + launch), 0u);
    EXPECT_EQ(visible("train: export CUDA_VISIBLE_DEVICES := 0,1\ntrain: N = 2\ntrain:\n" + launch), 0u);
}

TEST(ReadMakefile, AFolderThatOnlyMakeKnowsHidesNothingElse) {
    const auto floating = [](const std::string& options) {
        return CheckedTree{{{"Makefile", "TAG ?= latest\nOPTIONS := " + options +
                                             "\nrun:\n\tdocker run --gpus all $(OPTIONS) acme/train:$(TAG) python "
                                             "train.py\n"}},
                           {}}
            .findings("IMG001")
            .size();
    };
    EXPECT_EQ(floating("--rm -v $(CURDIR):/work"), 1u);
    EXPECT_EQ(floating("$(shell cat options)"), 0u) << "any number of words";
}

}  // namespace
}  // namespace stoker::lint
