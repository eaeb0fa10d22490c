#include "catalog/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/embedded.h"
#include "catalog/geography.h"
#include "catalog/hf_config.h"
#include "catalog/names.h"
#include "catalog/this_machine.h"

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

int node(std::string_view name) {
    const auto index = shipped().find_node_type(name);
    if (!index) ADD_FAILURE() << index.error().text();
    return index ? *index : 0;
}

const NodeType& node_type(std::string_view name) {
    return shipped().node_types()[static_cast<std::size_t>(node(name))];
}

const Link& link_of(int index) {
    return shipped().links()[static_cast<std::size_t>(index)];
}

// Everything that is embedded can be read, and is there in the expected order of magnitude.
TEST(EmbeddedCatalog, LoadsWithoutAProblem) {
    const Catalog& catalog = shipped();
    EXPECT_FALSE(catalog.version.empty());
    EXPECT_EQ(catalog.as_of.size(), 10u);
    EXPECT_EQ(catalog.origin, "embedded");
    EXPECT_GT(catalog.accelerators().size(), 30u);
    EXPECT_GT(catalog.node_types().size(), 300u);
    EXPECT_GT(catalog.prices().size(), 7000u);
    EXPECT_GT(catalog.models().size(), 50u);
}

// No index points outside of its table, and no machine is without what the planner divides by.
TEST(EmbeddedCatalog, HasNoDanglingReference) {
    const Catalog& catalog = shipped();
    const int links = static_cast<int>(catalog.links().size()), cpus = static_cast<int>(catalog.cpus().size());
    for (const NodeType& n : catalog.node_types()) {
        EXPECT_LT(n.accelerator, static_cast<int>(catalog.accelerators().size())) << n.name;
        EXPECT_LT(n.link_inside, links) << n.name;
        EXPECT_LT(n.link_pair, links) << n.name;
        EXPECT_LT(n.cpu, cpus) << n.name;
        EXPECT_GE(n.link_across, 0) << n.name;
        EXPECT_TRUE(!n.has_gpu() || n.accelerator_memory.v > 0) << n.name;
        EXPECT_TRUE(n.whole_gpus() <= 1 || n.link_inside >= 0) << n.name;
    }
    for (const Price& p : catalog.prices()) {
        ASSERT_GE(p.node_type, 0);
        ASSERT_LT(p.node_type, static_cast<int>(catalog.node_types().size()));
        EXPECT_GT(p.per_hour.micro(), 0);
        EXPECT_LE(p.low, p.per_hour.dollars() + 1e-6);
        EXPECT_GE(p.high, p.per_hour.dollars() - 1e-6);
    }
    for (const Link& l : catalog.links()) EXPECT_GT(l.bandwidth.v, 0) << l.name;
}

// Names that people write find what they mean, whatever the case, the separators and the prefix.
TEST(EmbeddedCatalog, FindsNamesAsPeopleWriteThem) {
    const Catalog& catalog = shipped();
    EXPECT_EQ(node_type("nd96isr-h100-v5").name, "Standard_ND96isr_H100_v5");
    EXPECT_EQ(node_type("STANDARD_NC4AS_T4_V3").name, "Standard_NC4as_T4_v3");
    EXPECT_EQ(*catalog.find_accelerator("H100"), *catalog.find_accelerator("NVIDIA H100 80GB HBM3"));
    EXPECT_EQ(*catalog.find_accelerator("tesla t4"), *catalog.find_accelerator("nvidia-tesla-t4"));
    EXPECT_TRUE(catalog.find_model("meta-llama/Llama-3.1-8B").ok());
    EXPECT_EQ(*catalog.find_region("azure", "East US"), "eastus");
}

// What is not there is answered with the name that was probably meant, or with nothing when none is near.
// Hubs put an owner in front, and tuning, date and packing behind: none of it changes the shape.
TEST(EmbeddedCatalog, ModelsAreFoundByTheNamesOfHubs) {
    const Catalog& catalog = shipped();
    const auto found = [&](std::string_view name) {
        const auto match = catalog.match_model(name);
        return match ? catalog.models()[static_cast<std::size_t>(match->index)].name : match.error().message();
    };
    EXPECT_EQ(found("Qwen/Qwen2.5-7B-Instruct"), "qwen2.5-7b");
    EXPECT_EQ(found("mistralai/Mistral-Small-24B-Instruct-2501"), "mistral-small-24b");
    EXPECT_EQ(found("qwen2.5-coder-7b"), "qwen2.5-7b");  // a published name without its owner
    EXPECT_EQ(found("Qwen2.5-Coder-14B-Instruct"), "qwen2.5-14b");
    EXPECT_EQ(found("google/gemma-3-27b-it"), "gemma-3-27b");
    EXPECT_EQ(found("meta-llama/Llama-2-7b-chat-hf"), "llama-2-7b");
    EXPECT_EQ(found("moonshotai/Kimi-K2-Instruct-0905"), "kimi-k2");
    EXPECT_EQ(found("deepseek-ai/DeepSeek-R1-0528"), "deepseek-v3");
    EXPECT_EQ(found("RedHatAI/Llama-3.3-70B-Instruct-FP8"), "llama-3.1-70b");
    EXPECT_EQ(catalog.match_model("Qwen/Qwen3-32B-AWQ")->precision, Precision::int4);
    EXPECT_EQ(found("mistralai/Mistral-7B-Instruct-v0.3"), "mistral-7b");
    // What it is published as has words of its own: Mistral-Nemo-Base-2407.
    EXPECT_EQ(found("mistralai/Mistral-Nemo-Instruct-2407"), "mistral-nemo-12b");
    EXPECT_EQ(found("mistralai/Mistral-Small-Instruct-2409"), "codestral-22b");  // its 22B, and not the 24B of 2501
    // What is left out must not be a size: 3.2-1b is not 3.2, and turbo is another shape.
    EXPECT_EQ(found("openai/whisper-large-v3-turbo"), "whisper-large-v3-turbo");
    EXPECT_EQ(found("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit"), "llama-3.1-8b");
    EXPECT_EQ(found("tiny-gpt2").substr(0, 14), "no model named");
    EXPECT_EQ(found("llama-3.2-90b-instruct").substr(0, 14), "no model named");
}

// A misspelt member of a family is taken for another of the family, not for what has the same letters.
TEST(EmbeddedCatalog, SuggestsTheSameFamily) {
    const auto said = [&](std::string_view name) { return shipped().match_model(name).error().message(); };
    EXPECT_NE(said("vit-colossal").find("did you mean vit-"), std::string::npos) << said("vit-colossal");
    EXPECT_NE(said("gemma-5-9b").find("did you mean gemma-"), std::string::npos) << said("gemma-5-9b");
}

// Who works in a region whose prices are not in the lists is not told that there is none.
TEST(EmbeddedCatalog, RegionsWithoutAPriceListAreKnown) {
    for (const char* region : {"us-west-2", "eu-central-1", "ap-southeast-2"})
        EXPECT_TRUE(shipped().find_region("aws", region).ok()) << region;
    for (const RegionPriceRatio& ratio : region_price_ratios()) {
        EXPECT_GE(ratio.low, 1) << ratio.region;
        EXPECT_GE(ratio.high, ratio.low) << ratio.region;
        EXPECT_FALSE(geography_of(ratio.region).empty()) << ratio.region;
    }
}

TEST(EmbeddedCatalog, NamesTheNearestWhenItFindsNothing) {
    const Catalog& catalog = shipped();
    const auto size = catalog.find_node_type("Standard_ND96isr_H10_v5");
    ASSERT_FALSE(size.ok());
    EXPECT_EQ(size.error().kind(), ErrorKind::not_found);
    EXPECT_EQ(size.error().message(),
              "no VM size named Standard_ND96isr_H10_v5 (did you mean Standard_ND96isr_H100_v5?)");
    EXPECT_EQ(catalog.find_region("azure", "eastuss").error().message(),
              "no region of azure named eastuss (did you mean eastus?)");
    EXPECT_EQ(catalog.find_model("q").error().message(), "no model named q");
    EXPECT_FALSE(catalog.find_node_type("").ok());
}

// Eight accelerators had no BF16 rate though they have BF16, and the planner refused them for every BF16 job: what a
// chip supports it does at some rate, and neighbours in width are a factor of two apart. tools/check_catalog.py has
// the laws that need the columns which are not read here.
TEST(EmbeddedCatalog, HasARateForEveryPrecisionOfEveryGpu) {
    const Catalog& catalog = shipped();
    const auto rate = [](const Accelerator& a, Precision p) { return a.peak[static_cast<std::size_t>(p)].v; };
    for (const Accelerator& a : catalog.accelerators()) {
        for (int i = 0; i < kPrecisions; ++i) {
            const auto p = static_cast<Precision>(i);
            if (rate(a, p) > 0) {
                EXPECT_TRUE(a.has(p)) << a.name << " " << to_string(p);
            }
            if (a.is_gpu() && a.has(p)) {
                EXPECT_GT(rate(a, p), 0) << a.name << " " << to_string(p);
            }
        }
        const auto factor = [&](Precision wide, Precision narrow) { return rate(a, narrow) / rate(a, wide); };
        if (!a.is_gpu()) continue;
        if (a.has(Precision::bf16)) {
            EXPECT_EQ(rate(a, Precision::bf16), rate(a, Precision::fp16)) << a.name;
        }
        if (a.has(Precision::fp8)) {
            EXPECT_NEAR(factor(Precision::bf16, Precision::fp8), 2, 0.05) << a.name;
        }
        if (a.has(Precision::tf32)) {
            EXPECT_NEAR(factor(Precision::tf32, Precision::fp16), 2, 0.05) << a.name;
        }
        if (a.has(Precision::fp16) && a.vendor != "Apple") {  // whose GPUs have no matrix units
            EXPECT_GE(factor(Precision::fp32, Precision::fp16), 1.9) << a.name;
        }
        EXPECT_GT(a.memory_bandwidth.v, 0) << a.name;
        EXPECT_GT(a.host_bandwidth.v, 0) << a.name;
        EXPECT_GT(a.power.v, 0) << a.name;
        EXPECT_TRUE(a.toolchain.empty()) << a.name;
    }
}

// A chip that is no GPU says who rents it, with what it is programmed and what to compare it with.
TEST(EmbeddedCatalog, TellsWhatTiesToChipsThatAreNoGpus) {
    const Catalog& catalog = shipped();
    for (const auto& [word, cloud] : {std::pair{"tpu", "gcp"}, {"trainium", "aws"}, {"fpga", "azure"}}) {
        const auto index = catalog.find_accelerator(word);
        ASSERT_TRUE(index.ok()) << word;
        const Accelerator& chip = catalog.accelerators()[static_cast<std::size_t>(*index)];
        EXPECT_FALSE(chip.is_gpu()) << word;
        EXPECT_EQ(chip.clouds.front(), cloud) << word;
        EXPECT_FALSE(chip.toolchain.empty() || chip.lock_in.empty()) << word;
        const int other = catalog.nvidia_alternative(*index);
        ASSERT_GE(other, 0) << word;
        EXPECT_EQ(catalog.accelerators()[static_cast<std::size_t>(other)].vendor, "NVIDIA");
    }
    EXPECT_EQ(catalog.nvidia_alternative(*catalog.find_accelerator("H100-SXM")), -1);
    // 128 GB at 3.7 TB/s and 1.7 PFLOPS is no L4.
    const int near_gaudi3 = catalog.nvidia_alternative(*catalog.find_accelerator("Gaudi3"));
    EXPECT_GE(catalog.accelerators()[static_cast<std::size_t>(near_gaudi3)].memory.v, 80e9);
}

// Disks have limits, and a price only with its source.
TEST(EmbeddedCatalog, KnowsDisksWithAndWithoutAPrice) {
    const Catalog& catalog = shipped();
    const auto disk = [&](std::string_view name) -> const DiskTier& {
        return catalog.disks()[static_cast<std::size_t>(*catalog.find_disk(name))];
    };
    EXPECT_EQ(disk("p30").iops, 5000);
    EXPECT_EQ(disk("P30").mb_s, 200);
    EXPECT_EQ(disk("E30").iops, 500);
    EXPECT_LT(disk("E30").usd_per_month, disk("P30").usd_per_month);
    for (const DiskTier& each : catalog.disks())
        EXPECT_EQ(each.usd_per_month > 0, !each.price_source.empty()) << each.name;
    EXPECT_FALSE(catalog.find_disk("P31").ok());
}

// Rows that were read by hand in the sources, so that a shifted column is noticed.
TEST(EmbeddedCatalog, KnowsTheSizesThatEverybodyUses) {
    const Catalog& catalog = shipped();
    const NodeType& a100 = node_type("Standard_ND96asr_v4");
    EXPECT_EQ(a100.vcpus, 96);
    EXPECT_EQ(a100.whole_gpus(), 8);
    EXPECT_EQ(a100.quota_family, "Standard NDASv4_A100 Family");
    EXPECT_EQ(a100.rdma_gbps_per_gpu, 200);
    EXPECT_EQ(link_of(a100.link_inside).name, "nvlink3-a100-8");
    EXPECT_EQ(link_of(a100.link_across).name, "ib-hdr-200");
    const Price* price = catalog.price(node("ND96asr_v4"), "eastus", "linux", Pricing::on_demand);
    ASSERT_NE(price, nullptr);
    EXPECT_EQ(price->per_hour, Usd::from_double(27.197));

    const Price* t4 = catalog.price(node("NC4as_T4_v3"), "eastus", "linux", Pricing::on_demand);
    ASSERT_NE(t4, nullptr);
    EXPECT_EQ(t4->per_hour, Usd::from_double(0.526));
    EXPECT_EQ(catalog.price(node("NC4as_T4_v3"), "nowhere", "linux", Pricing::on_demand), nullptr);
}

// A sixth of a GPU has the memory of that part, and no whole GPU.
TEST(EmbeddedCatalog, GivesAFractionItsOwnMemory) {
    const NodeType& sixth = node_type("Standard_NV6ads_A10_v5");
    EXPECT_NEAR(sixth.accelerators, 1.0 / 6, 1e-5);
    EXPECT_EQ(sixth.whole_gpus(), 0);
    EXPECT_TRUE(sixth.has_gpu());
    EXPECT_EQ(sixth.accelerator_memory, Bytes(4 * kGiB));
}

// Bridges join pairs: beyond two GPUs the slow tree counts, and the pair is known apart.
TEST(EmbeddedCatalog, TellsBridgedPairsFromSwitches) {
    const NodeType& four = node_type("Standard_NC96ads_A100_v4");
    EXPECT_TRUE(four.scale_up_pairs);
    EXPECT_LT(link_of(four.link_inside).bandwidth.v, 0.2 * link_of(four.link_pair).bandwidth.v);
    const NodeType& two = node_type("Standard_NC48ads_A100_v4");
    EXPECT_FALSE(two.scale_up_pairs);
    EXPECT_EQ(two.link_inside, two.link_pair);
    EXPECT_LT(node_type("Standard_NC48ads_A100_v4").link_across, static_cast<int>(shipped().links().size()));
    // The twin without InfiniBand has Ethernet between its nodes.
    EXPECT_EQ(link_of(node_type("Standard_ND96is_H100_v5").link_across).name, "ethernet-80");
    EXPECT_EQ(node_type("Standard_ND128isr_NDR_GB200_v6").scale_up_domain, 72);
}

// Azure's spot prices are estimates from the published bracket; no spot price is as high as the list price.
TEST(EmbeddedCatalog, EstimatesSpotFromTheBracketAndNeverAtListPrice) {
    const Catalog& catalog = shipped();
    const Price* list = catalog.price(node("ND96asr_v4"), "eastus", "linux", Pricing::on_demand);
    const Price* spot = catalog.price(node("ND96asr_v4"), "eastus", "linux", Pricing::spot);
    ASSERT_TRUE(list != nullptr && spot != nullptr);
    EXPECT_TRUE(spot->estimate);
    EXPECT_NEAR(spot->low, 0.11 * list->per_hour.dollars(), 1e-6);
    EXPECT_NEAR(spot->high, 0.17 * list->per_hour.dollars(), 1e-6);
    EXPECT_EQ(catalog.price(node("ND96isr_H100_v5"), "eastus", "linux", Pricing::spot), nullptr);
    for (const Price& p : catalog.prices()) {
        if (p.pricing != Pricing::spot) continue;
        const Price* listed = catalog.price(p.node_type, p.region, p.os, Pricing::on_demand);
        EXPECT_TRUE(listed == nullptr || p.per_hour < listed->per_hour);
    }
    EXPECT_TRUE(std::is_sorted(catalog.prices().begin(), catalog.prices().end(), [](const Price& a, const Price& b) {
        return std::tie(a.node_type, a.region, a.os, a.pricing) < std::tie(b.node_type, b.region, b.os, b.pricing);
    }));
}

// A price that comes later takes the place of the one before, and an estimate follows its list price.
TEST(Catalog, ReplacesAPriceAndItsEstimate) {
    Catalog catalog = shipped();
    const std::size_t before = catalog.prices().size();
    Price price = *catalog.price(node("ND96asr_v4"), "eastus", "linux", Pricing::on_demand);
    price.per_hour = Usd::from_double(100);
    catalog.replace_price(price);
    catalog.estimate_missing_spot_prices();
    EXPECT_EQ(catalog.prices().size(), before);
    EXPECT_EQ(catalog.price(price.node_type, "eastus", "linux", Pricing::on_demand)->per_hour, Usd::from_double(100));
    EXPECT_NEAR(catalog.price(price.node_type, "eastus", "linux", Pricing::spot)->per_hour.dollars(), 14, 1e-6);
    EXPECT_EQ(catalog.prices_of(price.node_type).front().node_type, price.node_type);
}

// Cells that read as text but mean nothing (a date, a kind, a name twice) passed silently into plans.
TEST(CatalogReader, RefusesDatesKindsAndRepeatedRows) {
    std::vector<CatalogFile> files;
    for (const EmbeddedFile& f : embedded_files()) files.push_back({std::string(f.path), f.bytes});
    const auto bytes_of = [&](std::string_view path) -> std::string_view& {
        return std::find_if(files.begin(), files.end(), [&](const CatalogFile& f) { return f.path == path; })->bytes;
    };
    std::string disks(bytes_of("catalog/azure/disks.tsv")), prices(bytes_of("catalog/prices/aws.tsv"));
    disks += "P30\tpremium-ssd\t1024\t5000\t200\t9\tx\tyesterday\t\t\t\n";
    const std::string row = "p5.48xlarge\tus-east-1\tbeos\ton-demand\t1\t2026-01-01\taws-via-karpenter\t\n";
    prices += row + row;
    bytes_of("catalog/azure/disks.tsv") = disks;
    bytes_of("catalog/prices/aws.tsv") = prices;
    bytes_of("catalog/VERSION") = "2026-11\nNovember\n";
    const auto read = Catalog::from_files(files);
    ASSERT_FALSE(read.ok());
    const std::string text = read.error().text();
    for (const std::string_view expected :
         {"P30 is listed twice", "'yesterday' is no date", "a price needs its price_source", "'beos' is none of linux",
          "repeats the row above", "catalog/VERSION:2:1"})
        EXPECT_NE(text.find(expected), std::string::npos) << expected << " in\n" << text;
}

// What was fitted takes the place of the start value and says on what; a name nobody knows is told with its place.
TEST(CatalogReader, FittedConstantsReplaceStartValues) {
    std::vector<CatalogFile> files;
    for (const EmbeddedFile& f : embedded_files())
        if (f.path != "calibration/training.tsv") files.push_back({std::string(f.path), f.bytes});
    const std::string fitted =
        "# fitted\nname\tvalue\tspread\trows\tgroups\tnote\n"
        "gemm_k0\t777\t0.1\t12\tone,two\t\nnccl_gib\t0.6\t0\t0\t\tthe prior\n";
    files.push_back({"calibration/training.tsv", fitted});
    const auto read = Catalog::from_files(files);
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(read->constant_or_die("gemm_k0"), 777);
    EXPECT_GE(read->constant("gemm_k0")->high, 777);
    EXPECT_EQ(read->constant("gemm_k0")->provenance.source, "fitted on 12 rows of one,two");
    EXPECT_NE(read->constant("nccl_gib")->provenance.source, "fitted on 0 rows of ");
    files.back().bytes = "name\tvalue\nunheard_of\t1\n";
    const auto wrong = Catalog::from_files(files);
    ASSERT_FALSE(wrong.ok());
    EXPECT_NE(wrong.error().text().find("calibration/training.tsv:2"), std::string::npos) << wrong.error().text();
}

// A wrong cell is told with its file and line, together with everything else that is wrong.
TEST(CatalogReader, TellsEveryProblemWithItsPlace) {
    std::vector<CatalogFile> files;
    for (const EmbeddedFile& f : embedded_files()) files.push_back({std::string(f.path), f.bytes});
    std::string links;
    for (CatalogFile& f : files) {
        if (f.path == "catalog/links.tsv") links = std::string(f.bytes) + "broken\tefa\tfast\t1\t-2\t\t\tx\t\t\n";
    }
    const auto lines = std::count(links.begin(), links.end(), '\n');
    for (CatalogFile& f : files) {
        if (f.path == "catalog/links.tsv") f.bytes = links;
        if (f.path == "models/models.tsv") f.bytes = "name\tkind\nx\tdecoder\n";
    }
    const auto read = Catalog::from_files(files);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().kind(), ErrorKind::invalid);
    const std::string text = read.error().text();
    EXPECT_NE(text.find("catalog/links.tsv:" + std::to_string(lines)), std::string::npos) << text;
    EXPECT_NE(text.find("'fast'"), std::string::npos) << text;
    EXPECT_NE(text.find("no column family"), std::string::npos) << text;
    EXPECT_NE(text.find("models/models.tsv:1"), std::string::npos) << text;
    EXPECT_FALSE(Catalog::from_files({}).ok());
}

// Shortened names are found rather than names that merely have as many letters.
TEST(Names, PreferTheNameWithLettersLeftOut) {
    const std::vector<std::string> known = {"Standard_D96s_v5", "Standard_ND96isr_H100_v5", "Standard_NC4as_T4_v3"};
    EXPECT_EQ(nearest_name("ND96_H100", known), "Standard_ND96isr_H100_v5");
    EXPECT_EQ(nearest_name("nc4_t4", known), "Standard_NC4as_T4_v3");
    EXPECT_EQ(nearest_name("zzzzzz", known), std::nullopt);
    EXPECT_EQ(nearest_name("x", {}), std::nullopt);
}

// This machine is a place to run on, costs nothing, and gives the measured rates back.
TEST(ThisMachine, IsAddedWithoutAPrice) {
    Catalog catalog = shipped();
    const int index = add_this_machine({.cpu_name = "Test CPU",
                                        .vcpus = 8,
                                        .cores = 4,
                                        .ghz = 2,
                                        .measured_fp32_gflops = 256,
                                        .measured_memory_gb_s = 20,
                                        .memory = Bytes(16 * kGiB)},
                                       catalog);
    const NodeType& machine = catalog.node_types()[static_cast<std::size_t>(index)];
    EXPECT_EQ(machine.cloud, "this-machine");
    EXPECT_TRUE(catalog.prices_of(index).empty());
    const Cpu& cpu = catalog.cpus()[static_cast<std::size_t>(machine.cpu)];
    EXPECT_DOUBLE_EQ(cpu.ghz * cpu.fp32_flop_per_cycle * machine.cores, 256);
    EXPECT_DOUBLE_EQ(cpu.memory_bandwidth_per_core.v * machine.cores, 20e9);
    EXPECT_EQ(*catalog.find_node_type("this machine"), index);
}

}  // namespace
}  // namespace stoker
