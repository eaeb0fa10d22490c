// What requests carry in their bodies, as plain structs; views.h is the other half.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "run/spec/run_spec.h"

namespace stoker::api {

struct EvictBody {
    std::int64_t notice_s = 30;
};
struct LeaseBody {
    std::optional<std::int64_t> extend_s;
    std::optional<std::string> stop_at;
};
struct BackupBody {
    std::string file;
};
struct WhatIfChanges {
    std::optional<int> ranks, nodes, priority;
    std::optional<RankNeeds> per_rank;
};

template <class V>
void fields(V& visit, EvictBody& v) {
    visit("notice_s", v.notice_s);
}
template <class V>
void fields(V& visit, LeaseBody& v) {
    visit("extend_s", v.extend_s);
    visit("stop_at", v.stop_at);
}
template <class V>
void fields(V& visit, BackupBody& v) {
    visit("file", v.file);
}
template <class V>
void fields(V& visit, WhatIfChanges& v) {
    visit("nodes", v.nodes);
    visit("per_rank", v.per_rank);
    visit("priority", v.priority);
    visit("ranks", v.ranks);
}

}  // namespace stoker::api
