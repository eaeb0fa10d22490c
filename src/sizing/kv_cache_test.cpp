#include "sizing/kv_cache.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

ModelSpec model(int layers, int heads, int kv_heads, int head_dim) {
    ModelSpec m;
    m.layers = layers;
    m.heads = heads;
    m.kv_heads = kv_heads;
    m.head_dim = head_dim;
    m.hidden = heads * head_dim;
    return m;
}

// Published figures: Llama-3 8B and 70B with grouped heads, and the same shapes with all heads or one.
TEST(KvCache, CountsKeysAndValuesOfEveryLayer) {
    EXPECT_EQ(kv_bytes_per_token(model(32, 32, 8, 128), Precision::bf16), 131072);
    EXPECT_EQ(kv_bytes_per_token(model(80, 64, 8, 128), Precision::fp16), 327680);
    EXPECT_EQ(kv_bytes_per_token(model(80, 64, 8, 128), Precision::fp8), 163840);
    EXPECT_EQ(kv_bytes_per_token(model(32, 32, 32, 128), Precision::bf16), 4 * 131072);
    EXPECT_EQ(kv_bytes_per_token(model(32, 32, 1, 128), Precision::bf16), 131072 / 8);
    EXPECT_EQ(kv_bytes_per_token(model(32, 32, 0, 128), Precision::bf16), 4 * 131072);  // not given: one per head
}

// DeepSeek-V3 keeps a latent of 512 and a rotary key of 64 per layer and token.
TEST(KvCache, LatentAttentionKeepsOneLatentForAllHeads) {
    ModelSpec m = model(61, 128, 128, 128);
    m.attention = AttentionKind::mla;
    m.kv_lora_rank = 512;
    m.rope_head_dim = 64;
    EXPECT_EQ(kv_bytes_per_token(m, Precision::bf16), 70272);
}

// Tensor parallelism divides the cache until every rank has one head; from there on it is replicated. Latents never
// split.
TEST(KvCache, IsReplicatedBeyondTheNumberOfHeads) {
    ServingSetup s;
    s.layers = 80;
    s.kv_heads = 8;
    EXPECT_DOUBLE_EQ(kv_share_of_device(s, {1, 1}), 1);
    EXPECT_DOUBLE_EQ(kv_share_of_device(s, {4, 1}), 0.25);
    EXPECT_DOUBLE_EQ(kv_share_of_device(s, {8, 1}), 0.125);
    EXPECT_DOUBLE_EQ(kv_share_of_device(s, {16, 1}), 0.125);
    EXPECT_DOUBLE_EQ(kv_share_of_device(s, {6, 1}), 0.25);  // two ranks hold two heads
    EXPECT_DOUBLE_EQ(kv_share_of_device(s, {8, 4}), 0.125 / 4);
    EXPECT_DOUBLE_EQ(kv_share_of_device(s, {1, 3}), 27.0 / 80);
    s.kv_replicated_by_tensor = true;
    EXPECT_DOUBLE_EQ(kv_share_of_device(s, {8, 1}), 1);
}

// The decoder's layers alone cache, for its own tokens and for the encoder's.
TEST(KvCache, EncoderDecoderCountsTheDecoder) {
    ModelSpec m = model(24, 16, 16, 64);
    m.kind = ModelKind::encoder_decoder;
    m.decoder_layers = 12;
    EXPECT_EQ(kv_bytes_per_token(m, Precision::fp16), 2 * 12 * 16 * 64 * 2);
}

TEST(KvCache, AWindowCapsWhatIsHeld) {
    ServingSetup s;
    EXPECT_EQ(kv_tokens_held(s, 10000), 10000);
    s.sliding_window = 4096;
    EXPECT_EQ(kv_tokens_held(s, 10000), 4096);
    EXPECT_EQ(kv_tokens_held(s, 100), 100);
}

}  // namespace
}  // namespace stoker
