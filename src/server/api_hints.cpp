// What the types of requests and answers cannot say by themselves.
#include "server/schema_visitor.h"

namespace stoker::api {

const std::vector<Hint>& hints() {
    static const std::vector<Hint> all = {
        {"RunSpec.name", "What it is called; need not be unique.", 1, 100, "^[^\\x00-\\x1f\\x7f]*$", true},
        {"ConfigBody.text", "server.yaml; every version is kept.", {}, 262144, "", true},
        {"ConfigBody.note", "Why, for whoever looks at the history.", {}, 500},
        {"RollbackBody.version", "Whose text becomes the new version's.", 1, {}, "", true},
        {"RollbackBody.note", "Why, for whoever looks at the history.", {}, 500},
        {"ConfigSetting.source", "default, configuration or command_line.", {}, {}},
        {"RunSpec.kind", "train, batch and notebook run a command; graph runs steps.", {}, {}},
        {"RunSpec.command", "argv; the first is looked up in PATH.", {}, {}},
        {"RunSpec.ranks", "Processes of the gang: all start or none.", 1, kMaxRanks},
        {"RunSpec.nodes", "Exactly that many, ranks spread evenly; 0: as few as possible.", 0, kMaxRanks},
        {"RunSpec.max_restarts", "After failures of the program itself.", 0, {}},
        {"RunSpec.max_attempts", "Whatever the cause.", 1, {}},
        {"RunSpec.timeout_s", "Of all attempts together; 0: none.", 0, {}},
        {"RunSpec.grace_s", "Between TERM and KILL.", 0, {}},
        {"RunSpec.priority", "Each step weighs as much as an hour of waiting.", -100, 100},
        {"RunSpec.folder", "Working directory.", {}, {}},
        {"RunSpec.image",
         "Image of a registry (docker.io/library/python:3.12), or a path of the server: OCI bundle, layout or archive. "
         "The run stores it with its digest. Empty: the machine as it is.",
         {},
         {}},
        {"RunSpec.topology",
         "prefer: a gang on several nodes is placed on as few switches as there is room for; require: on one.",
         {},
         {}},
        {"Node.topology", "Where it hangs, from the outermost level to its switch: row-1/rack-3/leaf-7.", {}, {}},
        {"RunSpec.steps", "Of a graph.", {}, {}},
        {"RunSpec.transient_exit_codes", "Exit codes that mean: try again, count nothing.", {}, {}},
        {"GraphStep.name", "Unique in its graph.", 1, 100, "", true},
        {"GraphStep.run", "", {}, {}, "", true},
        {"RankNeeds.cpu_milli", "Thousandths of a CPU.", 0, {}},
        {"RankNeeds.memory_bytes", "0: none set aside, no limit.", 0, {}},
        {"RankNeeds.gpus", "Whole GPUs of a rank.", 0, 32},
        {"RankNeeds.gpu_milli", "Of each, in thousandths; below 1000 with one GPU only.", 1, 1000},
        {"CheckpointPolicy.folder", "Empty: none are written; relative: below the run's own folder.", {}, {}},
        {"CheckpointPolicy.keep", "Newest complete ones.", 1, {}},
        {"CheckpointPolicy.restore_from",
         "Where another run put its checkpoints; used when the folder has none.",
         {},
         {}},
        {"CheckpointPolicy.upload", "An object store that complete checkpoints are put into as well.", {}, {}},
        {"UploadPolicy.to", "s3://, az:// or file:// with a prefix; never a key.", 1, 2000, "", true},
        {"UploadPolicy.keep", "Newest complete ones in the store.", 1, 1'000'000},
        {"UploadPolicy.every", "Each n-th.", 1, 1'000'000},
        {"UploadPolicy.at_end", "And the last one, when the run has ended.", {}, {}},
        {"UploadPolicy.tier", "Access tier or storage class.", {}, 40},
        {"Run.stored", "What the object store has of its checkpoints.", {}, {}},
        {"Run.cost_microusd", "Millionths of a US dollar so far, steps included.", {}, {}},
        {"Run.why", "Why it waits.", {}, {}},
        {"Run.eta", "When it will start, seconds from now.", {}, {}},
        {"Run.metrics", "The last value of each.", {}, {}},
        {"RunPage.next_cursor", "The next page; the last one has none.", {}, {}},
        {"RankSeries.points", "[seconds since 1970, smallest, mean, largest, count], oldest first.", {}, {}},
        {"RankSeries.seconds", "That a point covers.", {}, {}},
        {"Explanation.steps", "Of a rank in the steady state; those of warm_up_steps came before.", {}, {}},
        {"Explanation.gap_s", "Step as measured less predicted, where it lies outside of the interval.", {}, {}},
        {"FoundCause.cost_s", "Its part of a step, seconds.", {}, {}},
        {"FoundCause.expected_gain", "Of the time of a step, at most.", {}, {}},
        {"FoundCause.stops", "Nothing goes on, or will not for long.", {}, {}},
        {"UsageLine.priced", "false: no price was in force for a part of it.", {}, {}},
        {"Node.since",
         "When it came to be in its state; empty: since it was first seen, or before health was kept.",
         {},
         {}},
        {"Node.reason", "Why it takes less than everything.", {}, {}},
        {"Node.under_check", "A health check goes on; the node takes nothing meanwhile.", {}, {}},
        {"NodeBlame.share", "Of a step of the gang that it cost.", {}, {}},
        {"NodeCheckAsked.waits_for", "What runs there now, which is not disturbed.", {}, {}},
        {"HealthCheck.expected", "The line between pass and fail, in the unit of measured.", {}, {}},
        {"Changed.repeated", "It had been done before.", {}, {}},
        {"EvictBody.notice_s", "Seconds from the signal to the end.", 0, 86400},
        {"LeaseBody.extend_s", "Seconds to add.", 1, 31'536'000},
        {"LeaseBody.stop_at", "The new end.", {}, {}},
        {"OrganisationBody.name", "", 1, 64, "^[A-Za-z0-9][A-Za-z0-9._@-]*$", true},
        {"OrganisationBody.project", "Its first project; default where nothing is said.", 1, 64,
         "^[A-Za-z0-9][A-Za-z0-9._@-]*$"},
        {"ProjectBody.organisation", "In which it is made.", {}, {}, "^o-[1-9][0-9]*$"},
        {"ProjectBody.name", "", 1, 64, "^[A-Za-z0-9][A-Za-z0-9._@-]*$", true},
        {"KeyBody.name", "Of the person or the program.", 1, 64, "^[A-Za-z0-9][A-Za-z0-9._@-]*$", true},
        {"KeyBody.level", "How far the role reaches: the project, its organisation, or everything.", {}, {}},
        {"KeyBody.project", "In which it acts; the caller's own where nothing is said.", {}, {}, "^(p-[1-9][0-9]*)?$"},
        {"KeyBody.expires_s", "Seconds until it ends; 0: it does not.", 0, 316'224'000},
        {"KeyGiven.secret", "Shown this once: Authorization: Bearer SECRET.", {}, {}},
        {"BackupBody.file", "A plain name; the file lies in the folder backups of the server.", 1, 100,
         "^[A-Za-z0-9_-][A-Za-z0-9._-]*$", true},
    };
    return all;
}

const Hint* hint_of(std::string_view component, std::string_view field) {
    for (const Hint& hint : hints())
        if (hint.key.size() == component.size() + 1 + field.size() && hint.key.starts_with(component) &&
            hint.key[component.size()] == '.' && hint.key.ends_with(field))
            return &hint;
    return nullptr;
}

}  // namespace stoker::api
