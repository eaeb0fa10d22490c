// How a gang ended, in our words: from the ends of its containers, its pods and its Job.
#pragma once

#include <string>
#include <vector>

#include "deploy/kubernetes/objects.h"
#include "deploy/local/gang_files.h"

namespace stoker::kubernetes {

struct GangVerdict {
    Cause cause = Cause::none;
    std::string detail;
};
// pods: all that were seen of it. with_gang: by rank, ended by what ended the others.
GangVerdict verdict_of(const JobView& job, const std::vector<PodView>& pods, const GangStatus& status,
                       const std::vector<bool>& with_gang);
// One rank, from its container. `stopped`: by us, as all of its gang.
void end_rank(KeptRank& rank, const ContainerView& container, const PodView& pod, std::int64_t memory_bytes,
              bool stopped);

}  // namespace stoker::kubernetes
