// What lies in the folder of an operation on Slurm, which the nodes see by the same name as the server:
//   launch.json   what to start (deploy/local/gang_files.h)
//   job.sh        what was submitted
//   submitted     the number that Slurm gave, a hint for people; written when sbatch has answered
//   claim         who may start it: made once, by the job before any code of the user, or by the server that calls it
//   off order         what the server wants of the host; written over in place, so that a node sees it at once
//   answer.json   what the host says to that
//   status.json   how the gang does; replaced as a whole. The last one says `ended`
//   outside       the end came from Slurm or a person: the state of the job says why
//   batch.out, ranks.out   what the host and Slurm's own programs had to say
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "deploy/local/control.h"
#include "deploy/local/gang_files.h"

namespace stoker::slurm {

// False: somebody has it already. Of one maker at most, on network file systems too.
Result<bool> make_claim(const std::string& folder, const std::string& who);
// Who has it: "job 12 on n1"; empty: nobody.
std::string claim_of(const std::string& folder);

struct Order {
    std::int64_t number = 0;  // each later one has a higher; 0: none was given
    ControlRequest request;
};
Status write_order(const std::string& folder, const Order& order);
// Nothing: none yet, or a half.
std::optional<Order> read_order(const std::string& folder);

struct Answer {
    std::int64_t number = 0;  // of the order
    bool ok = false;
    std::string detail;
};
Status write_answer(const std::string& folder, const Answer& answer);
std::optional<Answer> read_answer(const std::string& folder);

std::string end_of_file(const std::string& path, std::size_t most);

}  // namespace stoker::slurm
