// A name that is read differently than docker and podman read it fetches somebody else's image.
#include "deploy/image_name.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

namespace fs = std::filesystem;

const std::string kDigest = "sha256:" + std::string(64, 'a');

TEST(ImageName, RegistriesAreReadAsEverywhere) {
    const std::pair<const char*, const char*> rows[] = {
        {"python:3.12", "docker.io/library/python:3.12"},
        {"pytorch/pytorch", "docker.io/pytorch/pytorch:latest"},
        {"docker.io/library/python:3.12", "docker.io/library/python:3.12"},
        {"docker://nvcr.io/nvidia/pytorch:24.05-py3", "nvcr.io/nvidia/pytorch:24.05-py3"},
        {"docker:ubuntu", "docker.io/library/ubuntu:latest"},
        {"localhost/mine", "localhost/mine:latest"},
        {"registry:5000/x", "registry:5000/x:latest"},
        {" registry:5000/team/x:v1 ", "registry:5000/team/x:v1"},
    };
    for (const auto& [given, expected] : rows) {
        const auto name = parse_image_name(given, "/nowhere");
        ASSERT_TRUE(name.ok()) << given << ": " << name.error().text();
        EXPECT_EQ(name->text(), expected);
        EXPECT_EQ(name->transport, "docker");
        EXPECT_FALSE(is_pinned_image(name->text()));
    }
    const auto pinned = parse_image_name("registry:5000/x:v1@" + kDigest, "/nowhere");
    ASSERT_TRUE(pinned.ok());
    EXPECT_EQ(pinned->tag, "v1");
    EXPECT_EQ(pinned->registry(), "registry:5000");
    EXPECT_EQ(pinned->text(), "registry:5000/x:v1@" + kDigest);
    EXPECT_TRUE(is_pinned_image(pinned->text()));
    EXPECT_EQ(digest_of_image(pinned->text()), kDigest);
    EXPECT_EQ(parse_image_name("x@" + kDigest, "/")->text(), "docker.io/library/x@" + kDigest);
}

// A script that asks Enroot for "docker.io#library/python" or for "@sha256:" finds no image on most clusters.
TEST(ImageName, AsEnrootTakesIt) {
    const auto named = [](const std::string& text) { return enroot_name(*parse_image_name(text, "/nowhere")); };
    EXPECT_EQ(named("nvcr.io/nvidia/pytorch:25.10-py3"), "nvcr.io#nvidia/pytorch:25.10-py3");
    EXPECT_EQ(named("registry:5000/team/a/b:1"), "registry:5000#team/a/b:1");
    EXPECT_EQ(named("python:3.12"), "python:3.12");
    EXPECT_EQ(named("docker.io/bitnami/spark"), "bitnami/spark:latest");
    EXPECT_EQ(named("quay.io/x/y:tag@" + kDigest), "quay.io#x/y:" + kDigest);
    EXPECT_EQ(enroot_name({.transport = "oci", .place = "/data/layout", .tag = {}, .digest = kDigest}), "");
    EXPECT_EQ(pyxis_image("/images/pytorch.sqsh"), "/images/pytorch.sqsh");
    EXPECT_EQ(pyxis_image("nvcr.io/nvidia/pytorch:25.10-py3"), "nvcr.io#nvidia/pytorch:25.10-py3");
}

TEST(ImageName, FilesOfThisMachine) {
    std::string folder = fs::temp_directory_path() / "stoker-image-name-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    fs::create_directories(folder + "/bundle");
    fs::create_directories(folder + "/layout");
    std::ofstream(folder + "/layout/oci-layout") << "{}";
    std::ofstream(folder + "/image.tar") << "x";
    EXPECT_EQ(parse_image_name("bundle", folder)->text(), folder + "/bundle");
    EXPECT_EQ(parse_image_name("./layout", folder)->text(), "oci:" + folder + "/layout");
    EXPECT_EQ(parse_image_name(folder + "/image.tar", "/")->text(), "oci-archive:" + folder + "/image.tar");
    const auto again = parse_image_name("oci:" + folder + "/layout@" + kDigest, "/");
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->text(), "oci:" + folder + "/layout@" + kDigest);
    const auto missing = parse_image_name("./nothing", folder);
    ASSERT_FALSE(missing.ok());
    EXPECT_NE(missing.error().message().find("does not exist"), std::string::npos);
    fs::remove_all(folder);
}

TEST(ImageName, NonsenseIsRefused) {
    for (const std::string text : {"", " ", "UPPER/case", "x:", "x@sha256:12", "a b", "x y:z", "reg.io/", "reg.io//x",
                                   "-x.io/y", "x:-y", "x/\n", "x:tag;rm", "$(id)", "--help", "a\xff"}) {
        const auto name = parse_image_name(text, "/nowhere");
        EXPECT_FALSE(name.ok()) << text << " -> " << (name ? name->text() : "");
    }
}

}  // namespace
}  // namespace stoker
