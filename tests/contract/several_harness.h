// Two engines as one for the contract suite, which asks the first of them for everything while the other one stands
// beside it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "contract/kube_harness.h"
#include "contract/local_harness.h"
#include "contract/queue_harness.h"
#include "contract/slurm_harness.h"
#include "deploy/engines/several.h"

namespace stoker::contract {

template <class First, class Second>
class SeveralHarness : public First {
public:
    std::unique_ptr<Driver> make() const {
        const auto one = [](const char* name, const auto& harness) {
            return OneOfSeveral{.name = name, .kind = name, .make = [&harness]() -> Result<std::unique_ptr<Driver>> {
                                    return harness.make();
                                }};
        };
        auto driver = make_several({one("first", static_cast<const First&>(*this)), one("second", second_)});
        EXPECT_TRUE(driver.ok()) << driver.error().text();
        return driver ? std::move(*driver) : nullptr;
    }

private:
    Second second_;
};

using LocalBesideQueue = SeveralHarness<LocalHarness<TreeKind::process_group>, QueueHarness>;
using QueueBesideLocal = SeveralHarness<QueueHarness, LocalHarness<TreeKind::process_group>>;
using KubernetesBesideLocal = SeveralHarness<KubeHarness, LocalHarness<TreeKind::process_group>>;
using SlurmBesideLocal = SeveralHarness<SlurmHarness, LocalHarness<TreeKind::process_group>>;

}  // namespace stoker::contract
