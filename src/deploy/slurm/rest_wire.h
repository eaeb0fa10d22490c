// The words of slurmrestd, read and written: openapi/v0.0.38, of Slurm 22.05. No side effects.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/result.h"
#include "deploy/slurm/queue.h"
#include "deploy/slurm/submit.h"

namespace stoker::slurm {

inline constexpr std::string_view kRestVersion = "v0.0.38";

// What an OpenAPI document of slurmrestd offers, in its order: "v0.0.37", "v0.0.38".
std::vector<std::string> versions_in(const Node& openapi);

// What a job is asked for with. unsupported: an option that this version has no word for, and why.
Result<std::string> submission_body(const JobRequest& request, const std::vector<std::string>& environment);
// Of an answer to it.
Outcome read_rest_submission(int status, std::string_view body);

// "Invalid job id specified (2017)"; empty: it complains of nothing.
struct RestComplaint {
    std::string words;
    std::int64_t number = 0;
};
std::optional<RestComplaint> complaint_in(const Node& answer);
// Nobody is let in who says what we said: the daemon (or what stands before it) says so, or the controller that it
// asks.
bool is_not_let_in(int status, const std::optional<RestComplaint>& complaint);
// When a JSON Web Token ends by its own word, in seconds since 1970; 0: it is none, or does not say. Not verified: only
// the cluster can.
std::int64_t end_of_token_s(std::string_view token);

// The objects of one array of an answer, each as it is complete, so that what a large cluster says is never held as a
// whole.
class ArrayItems {
public:
    ArrayItems(std::string key, std::function<void(std::string_view item)> take)
        : key_(std::move(key)), take_(std::move(take)) {}
    // False: something in it is larger than it may be.
    bool feed(std::string_view piece);
    // The answer without the items.
    const std::string& frame() const { return frame_; }

private:
    void feed_frame(char c);
    void feed_text(char c);
    void feed_item(char c);
    const std::string key_;
    const std::function<void(std::string_view)> take_;
    std::string frame_, item_, word_;
    int depth_ = 0, item_depth_ = 0;
    bool in_array_ = false, in_text_ = false, escaped_ = false;
};

// nullopt: it carries no mark of ours, or is another's. `user`: a name, or an id as "#1000"; empty: anybody's.
std::optional<Job> read_rest_job(std::string_view item, std::string_view user);
// The priority of a job that is pending in one of the partitions; of any where none is named.
std::optional<std::int64_t> priority_of_waiting(std::string_view item, const std::vector<std::string>& partitions);
std::vector<SlurmNode> read_rest_nodes(const Node& answer, const std::map<std::string, std::string>& gpu_models);
struct RestPartitions {
    std::vector<std::string> defaults;
    bool preempts = false;
};
RestPartitions read_rest_partitions(const Node& answer);

}  // namespace stoker::slurm
