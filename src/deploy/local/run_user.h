// As whom work runs where the server is root: as somebody who can read neither the server's token, journal and secrets
// nor what other projects left. Elsewhere it runs as the server's own user, which is the only one there is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

struct RunUser {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;  // beside that
    std::string name;           // as it is shown: "anna", "project p-2"
    std::string home;           // empty: the run's own folder
};

// `choice`: "project" for a user of its own for each project, of numbers that no account has; a name of this machine's
// accounts; "server" or nothing for the server's own user, which is nobody here.
Result<std::optional<RunUser>> user_of_runs(const std::string& choice, std::uint64_t project);

// Whether the choice can be kept here: root, numbers that this machine has, a folder that others may pass through.
// denied or invalid: in words, with the way on.
Status check_runs_as(const std::string& choice, const std::string& folder);

// Whether the choice is another than the server's own user.
bool is_other_user(const std::string& choice);

// In a process with one thread that is to become a program: for good, without a way back (no new privileges).
Status become(const RunUser& user, const std::vector<std::string>& device_files);

// FOLDER/runs/r-7 and what Stoker has put into it, so that its user can work there and can replace nothing that the
// server reads as its own. `log_folder`: FOLDER/runs/r-7/a-7.1; `shared`: other folders of ours below FOLDER/runs.
Status give_run_folder(const RunUser& user, const std::string& log_folder, const std::vector<std::string>& shared);

// The folder of the server and those in it that have to be passed through: nothing in them can be listed.
void open_the_way(const std::string& folder);

}  // namespace stoker
