#include "run/spec/upload_policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "io/store/object_store_url.h"

namespace stoker {

std::vector<Problem> problems_of_store(const CheckpointPolicy& policy) {
    std::vector<Problem> problems;
    const auto check_url = [&](std::string_view key, const std::string& url) {
        if (const auto read = read_object_url(url); !read)
            problems.push_back({.message = fmt::format("{}: {}", key, read.error().message()),
                                .remedy = read.error().problems().front().remedy});
    };
    const auto between = [&](std::string_view key, std::int64_t value) {
        if (value < 1 || value > 1'000'000)
            problems.push_back({.message = fmt::format("{} is {}, expected 1 to 1000000", key, value)});
    };
    if (!policy.restore_from.empty()) {
        check_url("checkpoint.restore_from", policy.restore_from);
        if (policy.folder.empty())
            problems.push_back({.message = "checkpoint.restore_from without a checkpoint.folder"});
    }
    if (!policy.upload) return problems;
    const UploadPolicy& upload = *policy.upload;
    check_url("checkpoint.upload.to", upload.to);
    between("checkpoint.upload.keep", upload.keep);
    between("checkpoint.upload.every", upload.every);
    if (policy.folder.empty()) problems.push_back({.message = "checkpoint.upload without a checkpoint.folder"});
    const std::string tier = upper(upload.tier);
    const bool plain = upload.tier.size() <= 40 && std::all_of(tier.begin(), tier.end(), [](char c) {
                           return (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
                       });
    if (!plain)
        problems.push_back({.message = "checkpoint.upload.tier is no name of a tier",
                            .remedy = "write for example Cool or STANDARD_IA"});
    // What lies there must first be brought back, which takes hours: no run could go on from it.
    if (tier == "ARCHIVE" || tier == "GLACIER" || tier == "DEEP_ARCHIVE")
        problems.push_back(
            {.message = "checkpoint.upload.tier: what lies in " + upload.tier + " cannot be read at once",
             .remedy = "use Cool or Cold, STANDARD_IA or GLACIER_IR, and let a rule of the store archive older ones"});
    return problems;
}

}  // namespace stoker
