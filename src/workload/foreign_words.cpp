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
    {"model data batch objective where layout checkpoint disk top",
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
    {"data traffic top",
     "numworkers dataloaderworkers prefetch prefetchfactor pinmemory shuffle buffersize cachedata dataloader",
     "how the program reads is its own; what a plan asks is how fast: data: {bytes_per_example: 110kB, "
     "decode_per_example: 7ms, storage_bandwidth: 10GB/s}"},
    {"data",
     "images pictures photos samples rows records items documents texts sentences prompts clips videos utterances",
     "each is an example: write data: {examples: 2M, epochs: 20}; of work that is done once and trains nothing, "
     "traffic: {requests: 2M}"},
    {"data", "pairs preferencepairs comparisons tokensperpair",
     "write data: {examples: 60k, sequence: 1500}: a pair is an example, and sequence is the tokens of one of its two "
     "answers with the prompt; loss: dpo says that there are two"},
    {"data", "hours audiohours hoursofaudio audio minutes seconds",
     "to train, write data: {examples: 1.2M}: windows of 30 s, 120 to the hour; to transcribe, traffic: {requests: "
     "120k, audio: 1h}"},
    {"traffic", "videos clips images pictures documents files prompts calls recordings jobs items",
     "each is a request: write traffic: {requests: 3000}, or requests_per_second at an endpoint"},
    {"traffic", "audiohours hoursofaudio hoursaudio totalhours",
     "say it as files: traffic: {requests: 120k, audio: 1h} is 120,000 hours"},
    {"traffic", "imagesperminute imagesperhour videosperminute videosperhour videosperday imagesperday clipsperday",
     "write traffic: {requests_per_second: 0.33} for all together at the busiest time: 20 a minute are 0.33, 3,000 a "
     "day are 0.035 if they come evenly"},
    {"traffic", "cameras fps framespersecond framerate",
     "each frame is a request: write traffic: {requests_per_second: 2500}: 500 cameras at 5 frames a second"},
    {"traffic",
     "seconds duration videoseconds videolength length frames numframes resolution size width height image imagesize",
     "a request is an image or a video of the size that the model's page names (stoker catalog models NAME); another "
     "size is told by steps: half as many pixels are about half the steps"},
    {"traffic", "cached cachedshare cacheshare cachedpercent cachedfraction reuse shared",
     "say it in tokens: traffic: {prompt_tokens: 1500, cached_prompt_tokens: 1000}"},
    {"where", "gpu gputype gpumodel gpuname",
     "write where: {accelerators: [h100]}; machines of your own are described: cloud: on-prem, nodes: [{gpu: RTX-4090, "
     "gpus: 1, vcpus: 16, memory: 64GiB}]"},
    {"data", "samplerate resolution imagesize imgsize numframes fps frames height width channels",
     "a plan counts samples by their work: data: {examples: 1M, bytes_per_example: 110kB}; what larger samples cost is "
     "model: {forward_flops: ..., activation_bytes: ...}"},
    {"data top", "maxlength maxlen modelmaxlength cutofflen contextsize contextlen",
     "write data: {sequence: 4096}: tokens of one sequence, padding included"},
    {"data top batch",
     "maxsteps totalsteps numsteps iterations numiterations iters trainiters numtrainsteps maxiters updates",
     "say it as tokens: steps times tokens of a step; 1000 steps of 4M tokens are data: {tokens: 4B}, batch: "
     "{global_tokens: 4M}"},
    {"data", "bandwidth iops throughput readbandwidth throughputgbps gbps diskspeed",
     "write data: {storage_bandwidth: 10GB/s}: what storage delivers to all nodes together, in bytes"},
    {"top lora model", "peft adapter adapters finetuningtype finetuningmethod tuningtype trainingtype",
     "write kind: fine-tuning with method: full, lora or qlora, and lora: {rank: 16}"},
    {"lora", "r dim loradim lorar", "write lora: {rank: 16}"},
    {"lora", "alpha loraalpha loradropout dropout bias rslora dora initloraweights",
     "it changes what is learned, not what it takes: leave it out; the rank and the targets count"},
    {"lora", "targetmodules modules target loratargetmodules layers",
     "write lora: {targets: all-linear}, or attention for the projections of attention alone"},
    {"lora top", "bits quantized loadin4bit loadin8bit quantizationbit bnb bitsandbytes nf4",
     "of a base that is kept in 4 bit write method: qlora; of a served model precision: int4 or int8"},
    {"top batch layout",
     "gradientaccumulation gradientaccumulationsteps accumulation accumulationsteps gradaccum gas accumulate",
     "a plan works it out: write batch: {global_examples: 256} for what one step learns from, and layout: "
     "{micro_batch: "
     "2} to fix what a device takes at once"},
    {"batch", "pergpu perdevice pergpubatch devicebatch localbatch", "write batch: {micro: 2}"},
    {"batch", "effective total sequences samples examples size global effectivebatchsize",
     "write batch: {global_examples: 256}, or global_tokens: 4M: on all devices together"},
    {"top layout",
     "deepspeed fsdp strategy parallelism distributed ddp sharding fullshard sharded zero3 distributedtype",
     "write layout: {zero: 3} for what FSDP and ZeRO-3 do, zero: 0 for plain data parallelism; framework: deepspeed or "
     "fsdp says by which; left out, the plan chooses"},
    {"top layout", "backend communicationbackend nccl collective dist distbackend",
     "every plan counts on the vendor's library (NCCL, RCCL); its settings are told in run: {environment: {NCCL_DEBUG: "
     "WARN}}"},
    {"top layout", "torchcompile compile inductor cudagraphs", "write compiled: true"},
    {"top", "mixedprecision amp fp16 bf16 fp8 halfprecision torchdtype loadprecision autocast",
     "write precision: bf16, fp16, fp8 or another of the list"},
    {"top objective", "maxcost costlimit maxspend spendlimit cap costcap maxusd usd dollars price",
     "write objective: {budget: $20k}: in all, or a month of a service"},
    {"top run", "healthcheck health probe probes readiness liveness livenessprobe readinessprobe",
     "a run is well while its processes live and its steps go on: run: {observe: {heartbeat: FILE}}; an endpoint's "
     "probes stand in the file of stoker serve"},
    {"top run",
     "logging wandb mlflow tensorboard comet clearml monitoring metrics tracking experiment experimenttracking "
     "reportto",
     "what the program reports elsewhere is its own, as in its command; what Stoker reads of its log is run: {observe: "
     "{step_pattern: \"step {step}/{} loss {loss}\"}}"},
    {"top run", "logs log logdir logfile output stdout stderr outputfile errorfile",
     "every rank's output is kept with the run: stoker logs RUN; a file of the program's own is its command's"},
    {"top", "evaluation eval evalsteps evaluationstrategy validation validationsplit evalevery",
     "an evaluation is a step: run: {steps: [{name: train, command: ...}, {name: eval, after: [train], command: "
     "...}]}; "
     "its time is not part of a training's plan"},
    {"top checkpoint", "savesteps saveevery savestrategy saveinterval savefrequency frequency",
     "write checkpoint: {every: 30m}: as time, not steps; left out, the best one is computed. What the program is told "
     "is run: {checkpoint: {every: auto}}"},
    {"top run", "resume resumefrom resumefromcheckpoint loadcheckpoint warmstart",
     "a run goes on from its own newest checkpoint by itself (run: {checkpoint: {folder: checkpoints}}); from "
     "another's "
     "it is run: {checkpoint: {restore_from: s3://BUCKET/PREFIX}}"},
    {"top run", "earlystopping patience stopwhen targetloss convergence",
     "the program ends itself; a bound on time is run: {timeout: 12h}"},
    {"top where",
     "network networking interconnect infiniband rdma nvlink efa roce fabric bandwidth placement proximity samezone "
     "placementgroup topologyaware ib",
     "a plan chooses the network by what the work loses on each; to fix it name sizes that have it, as where: {sizes: "
     "[Standard_ND96isr_H100_v5]}; of a run: {topology: require} keeps its ranks on one switch"},
    {"top where", "vram gpumemory minvram mingpumemory gpuram memorypergpu minimumvram gpumem",
     "a plan works out what fits; to ask for larger boards name them: where: {accelerators: [a100-sxm-80gb, h100]}"},
    {"where", "gpuspernode gpupernode gpuseach nprocpernode",
     "a size has its number of GPUs: write where: {gpus: 64} for all of them together, or nodes: 8"},
    {"where", "maxgpus mingpus minnodes minnumnodes gpulimit maxnumgpus",
     "write where: {max_nodes: 8} as an upper bound, gpus: 64 for exactly so many"},
    {"where top", "country countries euonly location geography geo jurisdiction sovereignty",
     "write where: {residency: eu} for what the data may not leave, or regions: [westeurope] for places that may be "
     "used"},
    {"where", "exclude excluderegions not avoid blacklist denylist except excludesizes without preferred prefer",
     "a plan takes what is named and nothing else: write where: {regions: [...], sizes: [...]} with all that may be "
     "used"},
    {"where top",
     "ondemand savingsplan reserved reservation ri spotfraction spotratio fallback dedicated purchase capacitytype "
     "discount discounts enterprisediscount",
     "write where: {spot: never, allowed or only} and commitment: 1y for reserved prices; what your own contract takes "
     "off is not known to a plan: take it off what it says"},
    {"where top", "quota quotas limits capacity availablecapacity",
     "quotas are handed over as az answers them: stoker plan FILE --usage usage.json"},
    {"where top", "existing own hardware inventory hosts machines onprem nodelist cluster hostfile",
     "write where: {cloud: on-prem, nodes: [{gpu: H100-SXM, gpus: 8, vcpus: 96, memory: 1900GiB, count: 4}]}, or "
     "nodes: nodes.yaml, a file with that list"},
    {"where top", "scheduler kubernetes slurm k8s aks batchsystem workloadmanager",
     "write orchestrator: slurm, kubernetes or another of the list"},
    {"where top", "arch architecture cputype",
     "sizes have their processors: name those that may be used, as where: {sizes: [...]}"},
    {"top model stack", "cuda cudaversion driver driverversion pythonversion python torch torchversion cudnn",
     "a plan needs the framework's version alone: framework_version: 2.5; what a run needs of its node is run: "
     "{requires: "
     "{driver: \"550\", python_modules: [torch]}}"},
    {"top traffic",
     "maxmodellen gpumemoryutilization maxnumseqs maxbatchsize maxnumbatchedtokens kvcachedtype maxcontext "
     "maxbatch swapspace enforceeager servedmodelname",
     "an engine's settings follow from the plan, and stand in what it renders (stoker deploy FILE --render); the "
     "traffic "
     "says what they must hold: prompt_tokens, output_tokens; of the cache, kv_precision: fp8"},
    {"traffic", "peak peakrps peakqps burst maxrps peakrate spike busy",
     "requests_per_second is the rate at the busiest time; how uneven it is then is arrival_cv: 2"},
    {"traffic", "growth growthrate yearlygrowth forecast",
     "a plan is for one load: write the one to be ready for; plan the other beside it, and stoker compare the two"},
    {"traffic top", "sessions conversations turns chats messages dialogs",
     "write traffic: {users: 500} for people, or concurrency: 64; what a turn repeats of those before it is "
     "cached_prompt_tokens"},
    {"traffic", "cachehitrate prefixcaching prefixcache hitrate cacherate enableprefixcaching",
     "say it in tokens: traffic: {prompt_tokens: 1500, cached_prompt_tokens: 1000}"},
    {"traffic", "dailyusers dau mau monthlyusers activeusers registeredusers",
     "write traffic: {users: 500, active_share: 0.2}: who has access, and which share is there at the busiest time"},
    {"traffic", "hours hoursperday dutycycle weekend workinghours businesshours schedule timezone openinghours",
     "an endpoint is paid while it stands: period: 200h says how long it is kept; at which hours is not part of a "
     "plan"},
    {"traffic", "imagespersecond imagespermin pixels images",
     "write traffic: {requests_per_second: 2}: a request is one image"},
    {"traffic", "streaming stream sse",
     "an answer streams or not at the same cost; how soon it begins is objective: {latency: {ttft_p95: 800ms}}"},
    {"traffic", "rpm requestsperhour requestsperday rpd perminute perday",
     "write traffic: {requests_per_second: 2} for all clients together at the busiest time; 120 a minute are 2"},
    {"latency objective", "mean average avg median p50 max total overall typical maxlatency",
     "limits are on the 50th, 95th or 99th of 100 requests: ttft_p95 to the first token, tpot_p95 for each further "
     "one, e2e_p95 for all of it"},
    {"latency", "ttftms tpotms itlms e2ems p95ms p99ms ttfts firsttokenms",
     "write the unit behind the number: ttft_p95: 500ms"},
    {"latency objective",
     "tokenspersecondperuser tpsperuser tokenspersecondperstream userspeed speedperuser interactivity",
     "write objective: {latency: {tpot_p95: 50ms}}: 20 tokens/s for each user are 50ms for each further token"},
    {"objective", "uptime resilience failover redundant nplus1", "write objective: {survive_one_replica_lost: true}"},
    {"objective", "cost speed weights tradeoff preference priority importance maximize maximise",
     "write objective: {minimize: cost, time or energy} for what matters most, and the other as a limit: deadline: "
     "14d, "
     "budget: $20k"},
    {"objective", "due duedate deadlinedate enddate finishby by until",
     "write objective: {deadline: 14d}: how long it may take, from its start"},
    {"speculation", "model method k numtokens lookahead ngram eagle medusa drafter",
     "write speculation: {tokens_ahead: 3, acceptance: 0.7}, and draft_parameters: 1B for a draft model of its own"},
    {"disk", "scratch nvme localssd local iops count",
     "a plan counts managed disks by size and throughput: disk: {type: premium-ssd-v2, size: 1TiB, throughput: "
     "500MB/s}; "
     "local disks come with the size"},
    {"run", "gpuspernode gpupertask gpuspertask taskspernode ntaskspernode nprocpernode processespernode",
     "write run: {ranks_per_node: 8, gpus: 1}: gpus and cpus are those of one rank"},
    {"run", "launcher torchrun launch mpirun shell interpreter",
     "the launcher is part of the command, as run: {command: \"torchrun --nproc_per_node 8 train.py\", gpus: 8}"},
    {"run", "backoff backofflimit retrydelay retrypolicy restartpolicy onexitcode",
     "write run: {restarts: 3}; exit codes that mean \"again\" are transient_exit_codes: [75]"},
    {"run", "artifacts outputs inputs sync upload download results files copy",
     "nothing is copied: the command reads and writes where the node does; checkpoints alone are put elsewhere, as "
     "run: "
     "{checkpoint: {upload: {to: s3://BUCKET/PREFIX}}}"},
    {"top run", "git repo repository branch commit gitref gitrepo",
     "the code is what lies in run: {folder: code}; what is checked out there is for the step before, as a command"},
    {"run", "exclusive constraint nodelist nodefile nodenames features exclude nodeselector tolerations affinity",
     "what a rank needs chooses its node: run: {gpu: H100, gpus: 1, memory: 16GiB}; a node is kept out by stoker nodes "
     "drain"},
    {"run", "cleanup finally ttl ttlsecondsafterfinished postrunscript epilogue teardown",
     "the folder of a run stays until stoker journal compact; what must follow it is a step with after:"},
    {"run", "signal checkpointsignal presignal warning preemptsignal",
     "a rank gets TERM, and KILL after run: {grace: 30s}"},
    {"run top", "interactive notebook jupyter tty stdin ssh",
     "a notebook is planned as kind: notebook; into a run that goes on leads stoker exec RUN -- bash"},
    {"run", "completions parallelism maxparallel concurrency concurrencylimit",
     "so many runs alike are run: {array: 20, parallel: 4}; processes of one run are ranks: 8"},
    {"where", "instance instances machine machines vm vms sku",
     "write where: {sizes: [p5.48xlarge]} for one size, or where: {accelerators: [H100]} for any with these GPUs"},
    {"top", "corehours corehour cpuhours cpuhour nodehours",
     "write vcpu_hours: 5000: as many as core hours where a vCPU is a core, as on sizes for HPC, and twice as many "
     "where "
     "it is a thread"},
    {"top", "cpus cores",
     "a plan is asked by the amount of work: vcpu_hours: 6400 is 64 vCPUs for 100 hours; what a rank of a run holds is "
     "run: {cpus: 4}"},
    {"data", "size volume datasize totalsize",
     "write data: {bytes: 2TB} for how large it is, beside how much there is to learn: {tokens: 10B}, or {examples: "
     "1M}"},
    {"model", "context",
     "a plan goes by what is really read: serving, traffic: {prompt_tokens: 8000, output_tokens: 500}; training, data: "
     "{sequence: 32768}"},
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
            if (member.key == "latency") latency(*member.value);
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

    // One figure for what has several: of a chat it may be the first token's or the whole answer's.
    void latency(const Node& value) {
        Problem* problem = at(value.pos, "latency: ");
        if (problem && value.is_scalar())
            problem->remedy = fmt::format(
                "write latency: {{ttft_p95: {0}}} for the first token of 95 in 100 answers, {{e2e_p95: {0}}} for whole "
                "answers, or {{p95: {0}}} of what answers all at once: an embedding, an image, a class",
                printable(value.text, 20));
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
    if (problems.empty()) return;
    // A region at the top is where the work runs; those of its data and its users stand in mappings of their own.
    constexpr std::string_view kData = "(did you mean data.region?)";
    for (Problem& problem : problems) {
        const std::size_t at = problem.message.find(kData);
        if (at == std::string::npos) continue;
        problem.message.replace(at, kData.size(), "(did you mean where.regions?)");
        problem.remedy = "write where: {regions: ...}";
    }
    Answers(problems).look(root, "top", 0);
    answer_foreign_values(root, problems);
}

}  // namespace stoker
