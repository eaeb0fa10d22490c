// What a person said once of himself is there the next time, and nothing else is taken for it.
#include "app/user_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

namespace fs = std::filesystem;

class Settings : public testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/stoker-settings-XXXXXX";
        folder_ = mkdtemp(name);
        ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    }
    void TearDown() override {
        ::unsetenv("XDG_CONFIG_HOME");
        fs::remove_all(folder_);
    }
    std::string folder_;
};

TEST_F(Settings, AreThereTheNextTime) {
    const auto none = load_user_settings();
    ASSERT_TRUE(none.ok());
    EXPECT_EQ(none->home, "");
    ASSERT_TRUE(save_user_settings({.home = "westeurope", .residency = {"eu", "switzerland"}}).ok());
    const auto again = load_user_settings();
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(again->home, "westeurope");
    EXPECT_EQ(again->residency, (std::vector<std::string>{"eu", "switzerland"}));
}

TEST_F(Settings, AnUnknownKeyIsRefusedWithItsPlace) {
    fs::create_directories(folder_ + "/stoker");
    std::ofstream(folder_ + "/stoker/settings.yaml") << "home: westeurope\nhouse: mine\n";
    const auto read = load_user_settings();
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.error().text().find("settings.yaml:2"), std::string::npos) << read.error().text();
}

TEST_F(Settings, PlacesAreRegionsOrGeographies) {
    const auto catalog = Catalog::embedded();
    ASSERT_TRUE(catalog.ok());
    EXPECT_EQ(place_named(*catalog, "West Europe").value(), "westeurope");
    EXPECT_TRUE(place_named(*catalog, "eu").ok());
    EXPECT_TRUE(place_named(*catalog, "japan").ok());
    EXPECT_FALSE(place_named(*catalog, "atlantis").ok());
}

}  // namespace
}  // namespace stoker
