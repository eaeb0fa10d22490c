// Why a job is pending: data/engines/slurm_reasons.tsv.
#include <algorithm>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "deploy/slurm/queue.h"

namespace stoker::slurm {
namespace {

struct Row {
    std::string_view pattern;
    PendingReason reason;
};

// '*': any letters; '?': one.
bool matches(std::string_view pattern, std::string_view text) {
    while (!pattern.empty()) {
        if (pattern[0] == '*') {
            for (std::size_t skip = 0; skip <= text.size(); ++skip)
                if (matches(pattern.substr(1), text.substr(skip))) return true;
            return false;
        }
        if (text.empty() || (pattern[0] != '?' && pattern[0] != text[0])) return false;
        pattern.remove_prefix(1);
        text.remove_prefix(1);
    }
    return text.empty();
}

const std::vector<Row>& table() {
    static const std::vector<Row> rows = [] {
        std::vector<Row> made;
        const std::string_view file = "engines/slurm_reasons.tsv";
        const auto tsv = Tsv::read(embedded_bytes(file), file);
        for (std::size_t i = 0; tsv && i < tsv->rows(); ++i)
            made.push_back({tsv->at(i, 0),
                            {.cause = parse_cause(tsv->at(i, 1)).value_or(Cause::engine_queue),
                             .never = tsv->at(i, 2) == "yes",
                             .meaning = std::string(tsv->at(i, 3))}});
        return made;
    }();
    return rows;
}

}  // namespace

PendingReason read_reason(std::string_view words) {
    // "ReqNodeNotAvail, UnavailableNodes:n[3-4]": the name, and then what it is about.
    const std::string_view name = trim(words.substr(0, words.find_first_of(",(:")));
    for (const Row& row : table())
        if (matches(row.pattern, name)) return row.reason;
    return {};
}

}  // namespace stoker::slurm
