// Where objects lie, as users write it; never with a secret in it:
//   s3://bucket/prefix[?endpoint=http://host:port][&region=eu-west-1]
//   az://account/container/prefix[?endpoint=http://127.0.0.1:10000/account]
//   https://account.blob.core.windows.net/container/prefix
//   file:///folder
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker {

struct ObjectUrl {
    enum class Kind { s3, azure, file };
    Kind kind = Kind::file;
    std::string account;   // of Azure
    std::string bucket;    // or container; of a file: empty
    std::string prefix;    // without slashes at its ends; of a file: the folder, absolute
    std::string endpoint;  // empty: the cloud's own
    std::string region;    // empty: the environment's

    // As a user writes it; `below` is added to the prefix.
    std::string text(std::string_view below = {}) const;
};

// invalid: with what was expected, and what to do. A URL with a signature or a password in it is refused.
Result<ObjectUrl> read_object_url(std::string_view text);
bool looks_like_object_url(std::string_view text);  // it has a scheme; anything else is a path

}  // namespace stoker
