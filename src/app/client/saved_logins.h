// What stoker login keeps for the person who typed it: a login for each server, in a file that only they can read.
#pragma once

#include <string>

#include "base/result.h"

namespace stoker {

struct SavedLogin {
    std::string token, user, expires_at;
};

Result<std::string> saved_logins_path();
// Of the server of that URL; an empty token: there is none, or it has expired.
Result<SavedLogin> saved_login(const std::string& url);
// An empty token takes away what is there.
Status save_login(const std::string& url, const SavedLogin& login);

}  // namespace stoker
