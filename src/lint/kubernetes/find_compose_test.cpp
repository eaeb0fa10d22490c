// Compose replaces variables before anything reads the file: a default that is not followed hides the real image.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"
#include "lint/read.h"

namespace stoker::lint {
namespace {

std::unique_ptr<File> compose_file(std::string text, std::string env = "") {
    ReadOptions options;
    options.kind = Kind::compose;
    if (!env.empty())
        options.neighbour = [env](const std::string& path) -> std::optional<std::string> {
            return path == ".env" ? std::optional(env) : std::nullopt;
        };
    return read_file("compose.yaml", std::move(text), options);
}

TEST(FindCompose, FollowsVariables) {
    const auto file = compose_file(
        "services:\n  a:\n    image: r/${NAME:-x}:${TAG}\n    environment:\n      - A=$B\n      - C=${D:-e}\n      - "
        "F\n"
        "      - G=$$H\n",
        "TAG=\"7\"  \n# comment\nexport B=2\n");
    const Container& a = file->services.at(0);
    EXPECT_TRUE(a.image.is("r/x:7"));
    EXPECT_TRUE(a.env("A")->value.is("2"));
    EXPECT_TRUE(a.env("C")->value.is("e"));
    EXPECT_TRUE(a.env("F")->value.unknown());
    EXPECT_TRUE(a.env("G")->value.is("$H"));
    EXPECT_EQ(a.address, "compose:a");
    const auto without = compose_file("services:\n  a:\n    image: r/${NAME:-x}:${TAG}\n");
    EXPECT_TRUE(without->services.at(0).image.unknown());
}

TEST(FindCompose, CountsDevices) {
    const auto file = compose_file(
        "x-gpu: &gpu\n  deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ['0', '1'], "
        "capabilities: "
        "[gpu]}]}}}\n"
        "services:\n  a: {<<: *gpu, image: x}\n  b: {image: x, gpus: all}\n  c: {image: x, runtime: nvidia}\n"
        "  d: {image: x, deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 3, capabilities: "
        "[gpu]}]}}}}\n"
        "  e: {image: x}\n");
    const auto amount = [&](std::size_t i) {
        return file->services.at(i).resources.empty() ? Value() : file->services[i].resources[0].amount;
    };
    EXPECT_TRUE(amount(0).is("2"));
    EXPECT_TRUE(amount(1).is("all"));
    EXPECT_TRUE(amount(2).unknown());
    EXPECT_TRUE(amount(3).is("3"));
    EXPECT_TRUE(amount(4).absent());
}

TEST(FindCompose, SplitsCommandsThatAreOneString) {
    const auto file = compose_file(
        "services:\n  a:\n    image: x\n    build: .\n    entrypoint: [\"/e.sh\"]\n    command: run --a='b c' \"d\" "
        "e\\ f\n"
        "  b:\n    image: x\n    command: bash -c \"sleep 5 && ls\"\n");
    const Container& a = file->services.at(0);
    ASSERT_EQ(a.command.size(), 5u);
    EXPECT_TRUE(a.built_here);
    EXPECT_TRUE(a.command[2].is("--a=b c"));
    EXPECT_TRUE(a.command[3].is("d"));
    EXPECT_EQ(file->source().text(a.command[3].span), "d");
    EXPECT_TRUE(a.command[4].is("e f"));
    ASSERT_EQ(file->guests.size(), 1u);
    EXPECT_EQ(file->guests[0]->source().text(), "sleep 5 && ls");
    EXPECT_TRUE(file->guests[0]->source().editable({0, 5}));
}

// extends: a service has what the one has that it extends.
TEST(FindCompose, AServiceHasWhatItExtends) {
    CheckedTree tree{{{"compose.yaml",
                       "services:\n  train:\n    extends: {file: gpu/base.yml, service: gpu}\n    image: "
                       "acme.io/t:1\n    command: torchrun --standalone --nproc-per-node 4 train.py\n"},
                      {"gpu/base.yml",
                       "services:\n  gpu:\n    deploy: {resources: {reservations: {devices: [{driver: nvidia, "
                       "count: 4, capabilities: [gpu]}]}}}\n"}},
                     {}};
    EXPECT_EQ(tree.findings("CMP004").size(), 1u);
    tree.texts[1].second += "    shm_size: 8gb\n";
    EXPECT_EQ(tree.places("CMP004"), Places{});
    tree.texts[1].first = "gpu/other.yml";
    EXPECT_EQ(tree.places("CMP004"), Places{}) << "what is not seen may have it";
    tree.texts[0].second = "services:\n  a: {extends: b, image: x}\n  b: {extends: a, image: x}\n";
    EXPECT_EQ(tree.places("CMP004"), Places{}) << "and it ends";
}

}  // namespace
}  // namespace stoker::lint
