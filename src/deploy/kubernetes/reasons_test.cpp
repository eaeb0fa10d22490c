#include "deploy/kubernetes/reasons.h"

#include <gmock/gmock.h>

#include "base/embedded.h"
#include "base/tsv.h"
#include "readings/kube_pending.h"

namespace stoker::kubernetes {
namespace {

using ::testing::HasSubstr;

// A wait that the table does not know would be shown without its cause: every word that the reader has stands in it.
TEST(KubeReasons, EveryCauseOfPendingHasItsRow) {
    const auto table = Tsv::read(embedded_bytes("engines/kubernetes_reasons.tsv"), "reasons");
    ASSERT_TRUE(table.ok());
    for (std::size_t i = 0; i < table->rows(); ++i) {
        EXPECT_TRUE(parse_cause(table->at(i, 1)).has_value()) << table->at(i, 0);
        EXPECT_TRUE(table->at(i, 2) == "yes" || table->at(i, 2) == "no") << table->at(i, 0);
    }
    for (const auto& [cause, word] : enum_names(PendingCause{}))
        EXPECT_EQ(read_reason(word).detail.find("the cluster says"), std::string::npos) << word;
    EXPECT_THAT(read_reason("brand-new").detail, HasSubstr("brand-new"));
}

// Who waits for a quota is told so although there is no pod that could say it.
TEST(KubeReasons, AJobWithoutPodsIsExplainedByItsEvents) {
    JobView job{.operation = {.site = "k3x7q", .seq = 1}};
    KubeState state;
    state.events.push_back(
        {.kind = "Job",
         .name = "stoker-k3x7q-222223",
         .reason = "FailedCreate",
         .message = "Error creating: pods \"p\" is forbidden: exceeded quota: gpus, requested: "
                    "requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"});
    const WaitReason why = why_it_waits(job, {}, 2, state, false, false);
    EXPECT_EQ(why.cause, Cause::quota) << why.detail;
    EXPECT_THAT(why.detail, HasSubstr("gpus"));
    EXPECT_EQ(why_it_waits(job, {}, 2, {}, false, false).cause, Cause::engine_queue);
    job.suspended = true;
    EXPECT_EQ(why_it_waits(job, {}, 2, {}, true, false).cause, Cause::order_behind);
    EXPECT_EQ(why_it_waits(job, {}, 2, {}, true, true).cause, Cause::capacity_busy);
}

}  // namespace
}  // namespace stoker::kubernetes
