// What the API says about who asked for what. As in views.h.
#pragma once

#include <cstdint>
#include <vector>

#include "server/audit_trail.h"

namespace stoker::api {

struct AuditPage {
    std::vector<AuditLine> items;
    std::uint64_t lost = 0;  // since the start of the server: could not be written, or were too many at once
};

template <class V>
void fields(V& visit, AuditPage& v) {
    visit("items", v.items);
    visit("lost", v.lost);
}

}  // namespace stoker::api
