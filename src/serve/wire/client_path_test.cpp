#include "serve/wire/client_path.h"

#include <gtest/gtest.h>

namespace stoker::wire {
namespace {

// Without it who has an AzureOpenAI client finds nothing here.
TEST(ClientPath, clients_of_azure_find_the_same_api) {
    const auto read = [](std::string_view path) {
        const auto found = of_azure(path);
        return found ? found->path + " of '" + found->model + "'" : "none";
    };
    EXPECT_EQ(read("/openai/deployments/chat/chat/completions"), "/v1/chat/completions of 'chat'");
    EXPECT_EQ(read("/openai/deployments/org/llama/completions"), "/v1/completions of 'org/llama'");
    EXPECT_EQ(read("/openai/deployments/e/embeddings"), "/v1/embeddings of 'e'");
    EXPECT_EQ(read("/openai/v1/responses"), "/v1/responses of ''");
    EXPECT_EQ(read("/openai/models"), "/v1/models of ''");
    EXPECT_EQ(read("/openai/deployments/chat"), "none");
    EXPECT_EQ(read("/openai/deployments//embeddings"), "none");
    EXPECT_EQ(read("/openai"), "none");
    EXPECT_EQ(read("/openair/models"), "none");
    EXPECT_EQ(read("/v1/models"), "none");
}

// A base URL without /v1, or with two of them, is the first mistake that everybody makes.
TEST(ClientPath, a_base_url_that_is_nearly_right_is_told) {
    EXPECT_EQ(path_meant("/chat/completions"), "/v1/chat/completions");
    EXPECT_EQ(path_meant("/v1/v1/models"), "/v1/models");
    EXPECT_EQ(path_meant("/v1/chat/completions/"), "/v1/chat/completions");
    EXPECT_EQ(path_meant("/v1/moderations"), "");
    EXPECT_EQ(path_meant("/"), "");
}

}  // namespace
}  // namespace stoker::wire
