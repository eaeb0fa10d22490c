#include "workload/foreign_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.h"
#include "catalog/names.h"

namespace stoker {

namespace {

struct Answer {
    std::string_view inside;  // the mappings it is for, by their keys, "top" for the file itself; empty: any
    std::string_view words;   // as fold_name() leaves them
    std::string_view remedy;
};

// The first that fits. What a key is called elsewhere and is called otherwise here stands with the key itself
// (other_names); these have no key of their own.
constexpr Answer kAnswers[] = {
    {"",
     "notify notifications notification onsuccess onfailure oncompletion alert alerts webhook slack email mailtype "
     "mailuser callback callbacks",
     "nobody is told from the file: stoker submit FILE --notify https://HOST/PATH, mailto:ADDRESS or a program; with "
     ",failed behind it, of failures alone"},
    {"", "power powerw powerkw powerbudget powerlimit powercap maxpower powerdraw rackpower watts kw kilowatts",
     "a plan has no limit on power; to take no more than a feed gives, write where: {max_nodes: ...}. What machines of "
     "your own draw stands in the file that where.nodes names: capex: {power_watts: 10200} for one node of 10.2 kW"},
    {"",
     "trials numtrials maxtrials ntrials numsamples searchspace hyperparameters hyperparameter hpo tune tuner "
     "matrix grid gridsearch",
     "write run: {sweep: {lr: [1e-4, 3e-4], batch: [8, 16]}}: one run for each combination; so many runs alike are "
     "run: "
     "{array: 20}"},
    {"",
     "then next onexit followedby followup postrun after dependson dependency dependencies pipeline tasks jobs "
     "workflow dag",
     "what follows in the same file is a step: run: {steps: [{name: train, command: ...}, {name: eval, after: [train], "
     "command: ...}]}; a run of its own waits with stoker submit FILE --after RUN"},
    {"", "schedule cron crontab recurrence everyday nightly",
     "the file says what, not when: stoker submit FILE --every \"0 2 * * 1-5\", or --every 6h"},
    {"", "begin start starttime startat startafter notbefore delay", "stoker submit FILE --begin 22:00"},
    {"model data batch traffic objective where layout checkpoint disk top",
     "image containerimage container docker dockerimage baseimage imageuri",
     "the image that the work starts in is run's: write run: {image: nvcr.io/nvidia/pytorch:24.08-py3}; software that "
     "a machine must have is needs: [pytorch]"},
    {"data", "path paths name dataset datasets source uri url location file files folder format split train validation",
     "a plan reads no data: say how much there is, as data: {tokens: 10B}, or {examples: 1M, bytes: 2TB}; where it "
     "lies is told to the command that run starts"},
    {"",
     "learningrate lr weightdecay warmup warmupsteps warmupratio seed lrscheduler clipgrad gradclip dropout "
     "betas momentum",
     "a plan does not depend on it: hand it to the program, as run: {command: python3 train.py --lr 3e-4}"},
    {"top run", "secret secrets apikey token credentials",
     "no secret stands in a file: write run: {environment: {HF_TOKEN: secret://env/HF_TOKEN}}, or stoker submit FILE "
     "-e "
     "HF_TOKEN"},
    {"top run", "setup init pre prerun preamble before bootstrap install",
     "put it in front of the command, as lines of one script: run: {command: \"pip install -r r.txt && python3 "
     "train.py\"}, or make it a step of run.steps"},
    {"top run", "volumes volume mounts mount filemounts storagemounts persistentvolume pvc shm shmsize",
     "nothing is mounted: the work sees the folders of the node that it runs on; what must be there before it starts "
     "is "
     "run: {requires: {paths: [/data/train]}}"},
    {"top run", "ports port expose endpointport", "a run publishes no port; an endpoint is served by stoker serve"},
    {"top run", "partition queue qos account project namespace reservationname",
     "a plan needs none; a run goes to one of the server's engines as run: {engine: NAME}, and stands in its line as "
     "run: {class: guaranteed, priority: 10}"},
    {"top where", "subscription subscriptionid resourcegroup tenant tenantid vnet subnet",
     "a plan needs no account: answers of az about yours are handed over with --usage and --skus"},
    {"top run",
     "replicas minreplicas maxreplicas minreplicacount autoscaling autoscale scaling autoscaler minscale "
     "maxscale",
     "a plan finds how many replicas the traffic needs; to fix the machines write where: {nodes: 4}; bounds of what "
     "follows the load stand in the endpoint's file (stoker serve)"},
    {"", "tokenspersecond throughput tps tokenspersec outputtokenspersecond tokensperminute tpm",
     "say it as requests: traffic: {requests_per_second: 2, prompt_tokens: 1500, output_tokens: 300} is 600 output "
     "tokens/s"},
    {"",
     "maxprice maxpriceperhour priceperhour hourlyprice maxhourlycost hourlybudget maxbid bid bidprice spotmaxprice",
     "a limit is on the whole, or on a month of a service: objective: {budget: $20k}"},
    {"", "monthlybudget budgetpermonth monthlycost costpermonth dailybudget",
     "write objective: {budget: $3000}: of an endpoint that is a month's, of a training all of it"},
    {"", "carbon co2 emissions carbonbudget maxco2", "write objective: {minimize: energy}"},
    {"top run", "description comment comments notes owner team author authors tags metadata annotations costcenter",
     "for people, write a comment behind #; for lists, run: {labels: {team: vision}}"},
    {"top", "apiversion spec",
     "this is a manifest of Kubernetes: stoker check reads it; a workload file begins with version: 1"},
    {"top", "resources resource",
     "for the plan write where: {accelerators: [h100], gpus: 8}; for the run, run: {gpus: "
     "8, cpus: 4, memory: 16GiB}, each of one rank"},
    {"top where run", "availabilityzone availabilityzones zones az",
     "a plan chooses among regions, not among zones of them: write where: {regions: [eastus]}"},
    {"objective where top", "availability sla uptimesla slo ha highavailability redundancy",
     "write objective: {survive_one_replica_lost: true}; limits on answers are objective: {latency: {p95: ...}}"},
};

bool among(std::string_view words, std::string_view word) {
    const auto all = split_words(words);
    return std::find(all.begin(), all.end(), word) != all.end();
}

constexpr std::string_view kUnknownKey = "unknown key '";

class Answers {
public:
    explicit Answers(Problems& problems) : problems_(problems) {}

    void look(const Node& node, std::string_view inside, int depth) {
        constexpr int kDeepest = 8;
        if (depth > kDeepest || node.kind != NodeKind::mapping) return;
        for (const Member& member : node.members) {
            if (!member.value) continue;
            key(member, inside, node);
            if (member.key == "budget") budget(*member.value);
            look(*member.value, member.key, depth + 1);
        }
    }

private:
    Problem* at(SourcePos pos, std::string_view starts) {
        for (Problem& problem : problems_)
            if (problem.pos.line == pos.line && problem.pos.column == pos.column && problem.message.starts_with(starts))
                return &problem;
        return nullptr;
    }

    void key(const Member& member, std::string_view inside, const Node& around) {
        const std::string word = fold_name(member.key);
        Problem* problem = at(member.key_pos, kUnknownKey);
        if (!problem) return;
        const Node* kind = around.find("kind");
        if (inside == "top" && kind && fold_name(kind->text) == "notebook" && among("users people seats", word)) {
            say(*problem,
                "a notebook is one machine for one person: for several, plan it once and take as many, or plan one "
                "that "
                "all share with memory: of all of them");
            return;
        }
        for (const Answer& answer : kAnswers)
            if (among(answer.words, word) && (answer.inside.empty() || among(answer.inside, inside)))
                return say(*problem, answer.remedy);
    }

    // Without what was guessed from the letters: the answer knows better.
    static void say(Problem& problem, std::string_view remedy) {
        const std::size_t name = problem.message.find("' in ");
        const std::size_t guess = problem.message.find(" (", name == std::string::npos ? 0 : name);
        if (guess != std::string::npos) problem.message.resize(guess);
        problem.remedy = remedy;
    }

    void budget(const Node& value) {
        Problem* problem = at(value.pos, "budget: ");
        if (!problem) return;
        if (!value.is_scalar()) {
            problem->remedy = "write one amount, as budget: $3000";
            return;
        }
        const std::string text = lower(value.text);
        const auto says = [&](std::string_view word) { return text.find(word) != std::string::npos; };
        const std::size_t digit = text.find_first_of("0123456789");
        if (digit == std::string::npos) return;
        const bool rate = says("/") || says("per ") || says("ly") || says(" a ");
        const std::string amount(trim(std::string_view(value.text).substr(0, text.find_first_of("/ ", digit))));
        if (rate && (says("mo") || says("/m")))
            problem->remedy = fmt::format(
                "write budget: {}: of a service it is a month's already; of a training it is for all of it", amount);
        else if (rate)
            problem->remedy =
                "write what all of it may cost, or a month of a service: budget: $3000; an amount for an hour or a day "
                "times how many there are";
        else if (says("eur") || says("€") || says("gbp") || says("£") || says("chf") || says("jpy") || says("¥") ||
                 says("inr") || says("cny"))
            problem->remedy = "prices of the catalogue are in US dollars: write what it is in those, as budget: $3000";
    }

    Problems& problems_;
};

}  // namespace

void answer_foreign_words(const Node& root, Problems& problems) {
    if (!problems.empty()) Answers(problems).look(root, "top", 0);
}

}  // namespace stoker
