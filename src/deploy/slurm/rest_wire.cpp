#include "deploy/slurm/rest_wire.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "deploy/local/launcher.h"
#include "io/json_web_token.h"

namespace stoker::slurm {
namespace {

constexpr std::size_t kMostItem = 4u << 20, kMostFrame = 1u << 20;

// How a value of sbatch's is said in JSON.
enum class Said : std::uint8_t { text, whole, mebibytes, yes };
struct Property {
    std::string_view option, key;
    Said said;
};
// Source: tried against slurmrestd 22.05.8 of Debian 12, which refuses keys that it does not know, each beside what
// sbatch's option makes of a job; 2026-11-27. Not as its OpenAPI document has it: nodes as [2, 2] asks for as few nodes
// as will do, and requeue: false changes nothing.
constexpr Property kProperties[] = {
    {"job-name", "name", Said::text},
    {"comment", "comment", Said::text},
    {"partition", "partition", Said::text},
    {"account", "account", Said::text},
    {"qos", "qos", Said::text},
    {"reservation", "reservation", Said::text},
    {"constraint", "constraints", Said::text},
    {"nodes", "nodes", Said::whole},
    {"ntasks", "tasks", Said::whole},
    {"ntasks-per-node", "tasks_per_node", Said::whole},
    {"cpus-per-task", "cpus_per_task", Said::whole},
    {"mem", "memory_per_node", Said::mebibytes},
    {"mem-per-cpu", "memory_per_cpu", Said::mebibytes},
    {"gres", "gres", Said::text},
    {"gpus-per-task", "gpus_per_task", Said::text},
    {"time", "time_limit", Said::whole},
    {"exclude", "exclude_nodes", Said::text},
    {"no-requeue", "no_requeue", Said::yes},
    {"kill-on-invalid-dep", "kill_on_invalid_dependency", Said::yes},
    {"chdir", "current_working_directory", Said::text},
    {"output", "standard_output", Said::text},
    {"open-mode", "open_mode", Said::text},
};

std::int64_t whole(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc() ? value : 0;
}

std::string text_at(const Node& node, std::string_view key) {
    const Node* found = node.find(key);
    return found == nullptr || !found->is_scalar() || found->kind == NodeKind::null ? std::string() : found->text;
}
std::int64_t whole_at(const Node& node, std::string_view key) {
    return whole(text_at(node, key));
}
std::vector<std::string> words_at(const Node& node, std::string_view key) {
    std::vector<std::string> words;
    if (const Node* list = node.find(key); list != nullptr)
        for (const auto& item : list->items) words.push_back(item->text);
    return words;
}

std::string upper(std::string text) {
    for (char& c : text)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return text;
}

Json value_of(Said said, const std::string& text) {
    switch (said) {
        case Said::text: return text;
        case Said::whole: return whole(text);
        case Said::mebibytes: return whole(std::string_view(text).substr(0, text.find('M')));
        case Said::yes: return true;
    }
    return {};
}

}  // namespace

std::vector<std::string> versions_in(const Node& openapi) {
    std::vector<std::string> versions;
    const Node* paths = openapi.find("paths");
    if (paths == nullptr) return versions;
    for (const Member& path : paths->members) {
        constexpr std::string_view kBefore = "/slurm/";
        if (!path.key.starts_with(kBefore)) continue;
        std::string version = path.key.substr(kBefore.size(), path.key.find('/', kBefore.size()) - kBefore.size());
        if (std::find(versions.begin(), versions.end(), version) == versions.end())
            versions.push_back(std::move(version));
    }
    return versions;
}

Result<std::string> submission_body(const JobRequest& request, const std::vector<std::string>& environment) {
    Json job = Json::object(), variables = Json::object();
    for (const auto& [name, value] : request.options) {
        // Of B:USR1@60 it takes no B (22.05.8: "Invalid SIGNAL specification"), and without one the signal goes to
        // every process of the ranks, handled or not. So there is none: of the run's limit its host tells by itself.
        if (name == "signal") continue;
        const auto* known = std::find_if(std::begin(kProperties), std::end(kProperties),
                                         [&name = name](const Property& each) { return each.option == name; });
        if (known == std::end(kProperties))
            return Error(ErrorKind::unsupported, fmt::format("slurmrestd {} has no word for --{}", kRestVersion, name),
                         {},
                         name == "switches" ? "leave out topology: require, or let the engine use Slurm's commands: "
                                              "engine without rest"
                                            : "let the engine use Slurm's commands: engine without rest");
        job.set(std::string(known->key), value_of(known->said, value));
    }
    for (const std::string& entry : environment)
        if (const std::size_t equals = entry.find('='); equals != std::string::npos)
            variables.set(entry.substr(0, equals), entry.substr(equals + 1));
    if (request.notice_after_s > 0) variables.set(kNoticeVariable, std::to_string(request.notice_after_s));
    job.set("environment", std::move(variables));
    return Json::object().set("script", "#!/bin/sh\n" + request.command + "\n").set("job", std::move(job)).dump(0);
}

std::optional<RestComplaint> complaint_in(const Node& answer) {
    const Node* errors = answer.find("errors");
    if (errors == nullptr || errors->items.empty()) return std::nullopt;
    RestComplaint complaint;
    for (const auto& each : errors->items) {
        for (const char* key : {"error_number", "error_code", "errno"})
            if (complaint.number == 0) complaint.number = whole_at(*each, key);
        const std::string what = text_at(*each, "error"), where = text_at(*each, "description");
        std::string words = where.empty() || where.find(what) != std::string::npos ? where : where + ": " + what;
        if (where.empty()) words = what;
        if (!words.empty()) complaint.words += (complaint.words.empty() ? "" : "; ") + printable(words, 500);
    }
    if (complaint.words.empty()) complaint.words = fmt::format("error {}", complaint.number);
    return complaint;
}

bool is_not_let_in(int status, const std::optional<RestComplaint>& complaint) {
    // slurm_errno.h, SLURM_PROTOCOL_AUTHENTICATION_ERROR: with 500 up to 22.05, with 511 of later ones
    // (https://slurm.schedmd.com/rest_quickstart.html, Common Issues; read 2026-11-27).
    constexpr std::int64_t kAuthentication = 1007;
    return status == 401 || status == 403 || status == 511 || (complaint && complaint->number == kAuthentication);
}

std::int64_t end_of_token_s(std::string_view token) {
    const std::size_t first = token.find('.'), second = token.find('.', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return 0;
    const auto claims = decode_base64url(token.substr(first + 1, second - first - 1));
    if (!claims) return 0;
    const auto document = Document::parse_json(*claims, "a token");
    return document ? whole_at(document->root(), "exp") : 0;
}

Outcome read_rest_submission(int status, std::string_view body) {
    const auto answer = Document::parse_json(body, "the answer of slurmrestd");
    if (!answer) {
        // 401 and the like: nothing was submitted, and nothing is wrong with the run; whoever lists is told the same.
        return unknown(fmt::format("slurmrestd says {}: {}", status, printable(trim(body), 300)));
    }
    // A job that waits with a word of warning is a job.
    if (const std::int64_t number = whole_at(answer->root(), "job_id"); number > 0)
        return confirmed(std::to_string(number));
    const auto complaint = complaint_in(answer->root());
    if (!complaint) return unknown(fmt::format("slurmrestd says {}, and names no job", status));
    const std::string said = "slurmrestd: " + complaint->words;
    if (auto known = read_refusal(said)) return *known;
    return status == 401 || status == 403 ? unknown(said) : rejected(Cause::user_error, said);
}

bool ArrayItems::feed(std::string_view piece) {
    // Of a large cluster this is tens of megabytes: what changes nothing is taken over in one piece.
    const auto plain = [&](std::size_t at) {
        const char c = piece[at];
        return c != '"' && (in_text_ ? c != '\\' : c != '{' && c != '}' && c != '[' && c != ']');
    };
    for (std::size_t at = 0; at < piece.size(); ++at) {
        if (item_depth_ > 0 && !escaped_) {
            const std::size_t begin = at;
            while (at < piece.size() && plain(at)) ++at;
            item_ += piece.substr(begin, at - begin);
            if (at == piece.size()) break;
        }
        if (item_depth_ > 0)
            feed_item(piece[at]);
        else
            feed_frame(piece[at]);
    }
    return item_.size() <= kMostItem && frame_.size() <= kMostFrame;
}

// Within a text: up to the quote that ends it.
void ArrayItems::feed_text(char c) {
    if (escaped_)
        escaped_ = false;
    else if (c == '\\')
        escaped_ = true;
    else if (c == '"')
        in_text_ = false;
}

void ArrayItems::feed_item(char c) {
    item_ += c;
    if (in_text_) return feed_text(c);
    if (c == '"') in_text_ = true;
    if (c == '{' || c == '[') ++item_depth_;
    if ((c == '}' || c == ']') && --item_depth_ == 0) {
        take_(item_);
        item_.clear();
    }
}

void ArrayItems::feed_frame(char c) {
    if (in_array_ && !in_text_) {
        if (c == '{') {
            item_ = c;
            item_depth_ = 1;
            return;
        }
        if (c != ']') return;  // commas and blanks between them
        in_array_ = false;
    }
    if (frame_.size() <= kMostFrame) frame_ += c;
    if (in_text_) {
        feed_text(c);
        if (in_text_) word_ += c;
        return;
    }
    if (c == '"') {
        in_text_ = true;
        word_.clear();
    } else if (c == '[' && depth_ == 1 && word_ == key_) {
        ++depth_;
        in_array_ = true;
    } else if (c == '{' || c == '[') {
        ++depth_;
    } else if (c == '}' || c == ']') {
        --depth_;
    }
}

std::optional<Job> read_rest_job(std::string_view item, std::string_view user) {
    // Most jobs of a cluster are others', and are not looked at closer.
    if (item.find(fmt::format("\"{}", kJobPrefix)) == std::string_view::npos) return std::nullopt;
    const auto document = Document::parse_json(item, "a job");
    if (!document) return std::nullopt;
    const Node& root = document->root();
    const std::string name = text_at(root, "name");
    if (!name.starts_with(kJobPrefix)) return std::nullopt;
    const auto operation = OperationId::parse(std::string_view(name).substr(kJobPrefix.size()));
    const bool ours = user.empty() || (user.front() == '#' ? user.substr(1) == text_at(root, "user_id")
                                                           : user == text_at(root, "user_name"));
    if (!operation || !ours) return std::nullopt;
    const std::string state = text_at(root, "job_state"), described = text_at(root, "state_description");
    const std::int64_t submitted_s = whole_at(root, "submit_time");
    return Job{.number = text_at(root, "job_id"),
               .operation = *operation,
               .phase = phase_of(state),
               .state = state,
               // As squeue has it: what is said at length counts before the word for it.
               .reason = described.empty() ? text_at(root, "state_reason") : described,
               .nodes = text_at(root, "nodes"),
               .submitted_s = submitted_s,
               .starts_s = expected_start(submitted_s, whole_at(root, "start_time")),
               .priority = whole_at(root, "priority")};
}

std::optional<std::int64_t> priority_of_waiting(std::string_view item, const std::vector<std::string>& partitions) {
    if (item.find("\"PENDING\"") == std::string_view::npos) return std::nullopt;
    const auto document = Document::parse_json(item, "a job");
    if (!document || text_at(document->root(), "job_state") != "PENDING") return std::nullopt;
    // A job may ask for several.
    const std::string asked = text_at(document->root(), "partition");
    const auto of_job = split(asked, ',');
    const bool there =
        partitions.empty() || std::any_of(partitions.begin(), partitions.end(), [&](const std::string& name) {
            return std::find(of_job.begin(), of_job.end(), name) != of_job.end();
        });
    return there ? std::optional(whole_at(document->root(), "priority")) : std::nullopt;
}

std::vector<SlurmNode> read_rest_nodes(const Node& answer, const std::map<std::string, std::string>& gpu_models) {
    std::vector<SlurmNode> nodes;
    const Node* list = answer.find("nodes");
    if (list == nullptr) return nodes;
    for (const auto& each : list->items) {
        SlurmNode node;
        node.info.name = text_at(*each, "name");
        if (node.info.name.empty()) continue;
        node.info.cpu_milli = 1000 * whole_at(*each, "cpus");
        node.info.memory_bytes = whole_at(*each, "real_memory") << 20;
        put_gpus(node, text_at(*each, "gres"), gpu_models);
        node.cores_used = whole_at(*each, "alloc_cpus");
        node.gpus_used = gpus_in(text_at(*each, "gres_used"));
        node.state = upper(text_at(*each, "state"));
        for (const std::string& flag : words_at(*each, "state_flags")) node.state += "+" + flag;
        node.reason = text_at(*each, "reason");
        node.partitions = words_at(*each, "partitions");
        node.usable = takes_work(node.state);
        nodes.push_back(std::move(node));
    }
    return nodes;
}

RestPartitions read_rest_partitions(const Node& answer) {
    RestPartitions found;
    const Node* list = answer.find("partitions");
    if (list == nullptr) return found;
    for (const auto& each : list->items) {
        const auto flags = words_at(*each, "flags");
        if (std::find(flags.begin(), flags.end(), "default") != flags.end())
            found.defaults.push_back(text_at(*each, "name"));
        // Of CANCEL it says nothing (22.05.8): what is not disabled preempts.
        const auto modes = words_at(*each, "preemption_mode");
        found.preempts = found.preempts || (each->find("preemption_mode") != nullptr &&
                                            std::find(modes.begin(), modes.end(), "disabled") == modes.end());
    }
    return found;
}

}  // namespace stoker::slurm
