// An error line is put to the layer that has to be mended.
#include "readings/nccl_messages.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(NcclMessages, LinesFindTheirLayer) {
    struct Line {
        const char* text;
        HealthLayer layer;
        const char* word;
    };
    for (const Line& each :
         {Line{"NET/IB : Got completion from peer 10.0.0.5<34621> with status=12 opcode=0 len=0 vendor err 129",
               HealthLayer::network, "no answer"},
          Line{"NET/IB: Got completion from peer 10.0.0.5<34621> with status=IBV_WC_RETRY_EXC_ERR(12) "
               "opcode=IBV_WC_SEND(0) reqSize=0",
               HealthLayer::network, "no answer"},
          Line{"NET/IB : Got completion from peer 10.0.0.12<341> with status=5 opcode=0", HealthLayer::network,
               "ended with an error"},
          Line{"Call to posix_fallocate failed : No space left on device", HealthLayer::device, "/dev/shm"},
          Line{"Error while creating shared memory segment /dev/shm/nccl-a1 (size 9637888)", HealthLayer::device,
               "/dev/shm"},
          Line{"Call to ibv_reg_mr failed with error Cannot allocate memory", HealthLayer::network, "locked memory"},
          Line{"Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000", HealthLayer::model, "same GPU"},
          Line{"ncclUnhandledCudaError: Call to CUDA function failed.", HealthLayer::device, "CUDA"},
          Line{
              "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
              HealthLayer::network, "another rank"}}) {
        const NcclMessage* found = nccl_message(each.text);
        ASSERT_NE(found, nullptr) << each.text;
        EXPECT_EQ(found->layer, each.layer) << each.text;
        EXPECT_NE(found->what.find(each.word), std::string_view::npos) << each.text << ": " << found->what;
    }
    EXPECT_EQ(nccl_message("step 12 loss 3.1"), nullptr);
}

}  // namespace
}  // namespace stoker
