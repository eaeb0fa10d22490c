// Which replicas of a model there are for a request now, as its loop sees them: addresses of the configuration, or what
// those who keep an endpoint put on its board.
#pragma once

#include <memory>
#include <vector>

#include "base/random.h"
#include "serve/fleet/board.h"
#include "serve/fleet/route.h"
#include "serve/gateway/setup.h"

namespace stoker::gateway {

class Loop;

struct Choices {
    std::shared_ptr<const BoardView> board;  // null: addresses of the configuration
    std::vector<RouteReplica> views;         // in the order of board->replicas or of ModelSetup::upstreams
    double pause_s = 0;                      // until one that is out now may be back; infinite: not known
};
Choices choices_of(Loop& loop, const ModelSetup& model);

// By the shares of the revisions first, then by work; where the revision that was drawn has nobody, of the others.
RouteDecision choose(const Choices& choices, const RouteQuery& query, SplitMix& random);

// The address of the one that was chosen; of a replica of an endpoint it is written into `made`.
const UpstreamSetup& upstream_of(const Choices& choices, const ModelSetup& model, int chosen, UpstreamSetup& made);

}  // namespace stoker::gateway
