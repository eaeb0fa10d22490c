// What becomes of each option of sbatch in a run, and what stands for srun. Only import_sbatch.cpp and its test use it.
#pragma once

#include <cstdint>
#include <string_view>

namespace stoker::sbatch {

enum class SbatchKey : std::uint8_t {
    name,
    nodes,
    ntasks,
    ntasks_per_node,
    cpus_per_task,
    cpus_per_gpu,
    mem,
    mem_per_cpu,
    mem_per_gpu,
    gres,
    gpus,
    gpus_per_node,
    gpus_per_task,
    time,
    chdir,
    array,
    signal,
    requeue,
    no_requeue,
    exports,
    tmp,
    dependency,
    ignored
};

// By the first name of the option (formats/sbatch_options.h); each has a row.
struct Fate {
    std::string_view option;
    SbatchKey key;
    const char* why = "";  // of what is ignored: known, and not to be had here
};

inline constexpr const char* kPlace = "Stoker chooses the place by what the run needs";
inline constexpr const char* kAccount = "who submits says that, and the rights of that person decide";
inline constexpr const char* kLogs = "Stoker keeps the output of every rank: stoker logs shows it";
inline constexpr const char* kMail = "stoker submit --notify mailto:ADDRESS tells how it ended";
// Where the work goes on a Slurm that the server drives, and on whose account.
inline constexpr const char* kEngine =
    "of a Slurm engine server.yaml says it (partition, account, qos, constraint, reservation); --engine picks one of "
    "several";
inline constexpr const char* kBinding = "processes are bound to cores by what one rank asks for";
inline constexpr const char* kStarts = "it is about how sbatch itself behaves";

inline constexpr const char* kPlugin = "it is of a plug-in of Slurm, which is not here";

inline constexpr Fate kFates[] = {
    {"account", SbatchKey::ignored, kEngine},
    {"acctg-freq", SbatchKey::ignored, "Stoker measures every run"},
    {"array", SbatchKey::array},
    {"autocomplete", SbatchKey::ignored, kStarts},
    {"batch", SbatchKey::ignored, kPlace},
    {"bb", SbatchKey::ignored, kPlace},
    {"bbf", SbatchKey::ignored, kPlace},
    {"begin", SbatchKey::ignored, "stoker submit --begin says it"},
    {"chdir", SbatchKey::chdir},
    {"cluster-constraint", SbatchKey::ignored, kPlace},
    {"clusters", SbatchKey::ignored, kPlace},
    {"comment", SbatchKey::ignored, "labels are for such words"},
    {"consolidate-segments", SbatchKey::ignored, kPlace},
    {"constraint", SbatchKey::ignored, kEngine},
    {"container", SbatchKey::ignored, "image names the container of a run"},
    {"container-id", SbatchKey::ignored, "image names the container of a run"},
    {"container-type", SbatchKey::ignored, "image names the container of a run"},
    {"context", SbatchKey::ignored, kAccount},
    {"contiguous", SbatchKey::ignored, kPlace},
    {"core-spec", SbatchKey::ignored, kBinding},
    {"cores-per-socket", SbatchKey::ignored, kBinding},
    {"cpu-freq", SbatchKey::ignored, kBinding},
    {"cpus-per-gpu", SbatchKey::cpus_per_gpu},
    {"cpus-per-task", SbatchKey::cpus_per_task},
    {"deadline", SbatchKey::ignored, "the time limit of a run is its timeout"},
    {"delay-boot", SbatchKey::ignored, kPlace},
    {"dependency", SbatchKey::dependency,
     "runs of one name run beside each other; stoker submit --after NAME waits for the newest of them"},
    {"distribution", SbatchKey::ignored, kBinding},
    {"error", SbatchKey::ignored, kLogs},
    {"exclude", SbatchKey::ignored, kPlace},
    {"exclusive", SbatchKey::ignored, "a rank gets what it asks for, and others may use the rest"},
    {"export", SbatchKey::exports},
    {"export-file", SbatchKey::ignored, "environment says what the ranks see"},
    {"external", SbatchKey::ignored, "a run has ranks of its own"},
    {"extra", SbatchKey::ignored, "labels are for such words"},
    {"extra-node-info", SbatchKey::ignored, kBinding},
    {"get-user-env", SbatchKey::ignored, "environment says what the ranks see"},
    {"gid", SbatchKey::ignored, kAccount},
    {"gpu-bind", SbatchKey::ignored, kBinding},
    {"gpu-freq", SbatchKey::ignored, kBinding},
    {"gpus", SbatchKey::gpus},
    {"gpus-per-node", SbatchKey::gpus_per_node},
    {"gpus-per-socket", SbatchKey::ignored, kBinding},
    {"gpus-per-task", SbatchKey::gpus_per_task},
    {"gres", SbatchKey::gres},
    {"gres-flags", SbatchKey::ignored, kBinding},
    {"help", SbatchKey::ignored, kStarts},
    {"hint", SbatchKey::ignored, kBinding},
    {"hold", SbatchKey::ignored, "stoker hold RUN keeps one that waits"},
    {"ignore-pbs", SbatchKey::ignored, kStarts},
    {"input", SbatchKey::ignored, "the input is empty"},
    {"job-name", SbatchKey::name},
    {"kill-on-invalid-dep", SbatchKey::ignored, kStarts},
    {"licenses", SbatchKey::ignored, "Stoker counts no licences"},
    {"mail-type", SbatchKey::ignored, kMail},
    {"mail-user", SbatchKey::ignored, kMail},
    {"mcs-label", SbatchKey::ignored, kAccount},
    {"mem", SbatchKey::mem},
    {"mem-bind", SbatchKey::ignored, kBinding},
    {"mem-per-cpu", SbatchKey::mem_per_cpu},
    {"mem-per-gpu", SbatchKey::mem_per_gpu},
    {"mem-update", SbatchKey::ignored, "the memory of a rank stays as it was asked for"},
    {"mincpus", SbatchKey::ignored, kBinding},
    {"network", SbatchKey::ignored, kPlace},
    {"nice", SbatchKey::ignored, "class and priority say who goes first"},
    {"no-kill", SbatchKey::ignored, "a gang ends when one of its nodes is lost, and starts again"},
    {"no-requeue", SbatchKey::no_requeue},
    {"nodefile", SbatchKey::ignored, kPlace},
    {"nodelist", SbatchKey::ignored, kPlace},
    {"nodes", SbatchKey::nodes},
    {"ntasks", SbatchKey::ntasks},
    {"ntasks-per-core", SbatchKey::ignored, kBinding},
    {"ntasks-per-gpu", SbatchKey::ignored, kBinding},
    {"ntasks-per-node", SbatchKey::ntasks_per_node},
    {"ntasks-per-socket", SbatchKey::ignored, kBinding},
    {"ntasks-per-tres", SbatchKey::ignored, kBinding},
    {"oom-kill-step", SbatchKey::ignored, "a rank that runs out of memory ends its gang, which starts again"},
    {"open-mode", SbatchKey::ignored, kLogs},
    {"output", SbatchKey::ignored, kLogs},
    {"overcommit", SbatchKey::ignored, "cores and GPUs are never promised twice"},
    {"oversubscribe", SbatchKey::ignored, "cores and GPUs are never promised twice"},
    {"parsable", SbatchKey::ignored, kStarts},
    {"partition", SbatchKey::ignored, kEngine},
    {"power", SbatchKey::ignored, kPlace},
    {"prefer", SbatchKey::ignored, kPlace},
    {"priority", SbatchKey::ignored, "class and priority say who goes first"},
    {"profile", SbatchKey::ignored, "Stoker measures every run"},
    {"propagate", SbatchKey::ignored, "limits are those of the run"},
    {"qos", SbatchKey::ignored, kEngine},
    {"quiet", SbatchKey::ignored, kStarts},
    {"reboot", SbatchKey::ignored, kPlace},
    {"requeue", SbatchKey::requeue},
    {"reservation", SbatchKey::ignored, kEngine},
    {"resources", SbatchKey::ignored, kPlace},
    {"resv-ports", SbatchKey::ignored, "a gang has its port: MASTER_PORT"},
    {"segment", SbatchKey::ignored, kPlace},
    {"share", SbatchKey::ignored, "cores and GPUs are never promised twice"},
    {"signal", SbatchKey::signal},
    {"sockets-per-node", SbatchKey::ignored, kBinding},
    {"spread-job", SbatchKey::ignored, kPlace},
    {"spread-segments", SbatchKey::ignored, kPlace},
    {"stepmgr", SbatchKey::ignored, kStarts},
    {"switches", SbatchKey::ignored, kPlace},
    {"test-only", SbatchKey::ignored, kStarts},
    {"thread-spec", SbatchKey::ignored, kBinding},
    {"threads-per-core", SbatchKey::ignored, kBinding},
    {"time", SbatchKey::time},
    {"time-min", SbatchKey::ignored, "the time limit of a run is its timeout"},
    {"tmp", SbatchKey::tmp},
    {"tres-bind", SbatchKey::ignored, kBinding},
    {"tres-per-task", SbatchKey::ignored, "--cpus-per-task, --gpus-per-task and --mem say what a rank needs"},
    {"uid", SbatchKey::ignored, kAccount},
    {"usage", SbatchKey::ignored, kStarts},
    {"use-min-nodes", SbatchKey::ignored, kPlace},
    {"verbose", SbatchKey::ignored, kStarts},
    {"version", SbatchKey::ignored, kStarts},
    {"wait", SbatchKey::ignored, kStarts},
    {"wait-all-nodes", SbatchKey::ignored, "all ranks start or none"},
    {"wckey", SbatchKey::ignored, kAccount},
    {"wrap", SbatchKey::ignored, kStarts},
};

// Every rank runs the script, so srun has nothing to start any more: its options go, its command runs; on the first N
// ranks only where it says -n N, and on the first K of a node with --ntasks-per-node=K.
inline constexpr const char* kSrunFunction = R"(srun() {
  _stoker_n= _stoker_k=;
  while [ $# -gt 0 ]; do
    case "$1" in
      --) shift; break;;
      --ntasks=*) _stoker_n=${1#*=}; shift;;
      --ntasks-per-node=*|--tasks-per-node=*|--tasks=*) _stoker_k=${1#*=}; shift;;
      -n|--ntasks) _stoker_n=$2; shift; shift;;
      --ntasks-per-node|--tasks-per-node|--tasks) _stoker_k=$2; shift; shift;;
      -n?*) _stoker_n=${1#-n}; shift;;
      --*=*) shift;;
      --nodes|--cpus-per-task|--cpus-per-gpu|--gpus|--gpus-per-node|--gpus-per-task|--gres|--gres-flags|--mem|--mem-per-cpu|--mem-per-gpu|--mem-bind|--time|--partition|--account|--qos|--mpi|--output|--error|--input|--job-name|--jobid|--chdir|--export|--container-image|--container-mounts|--container-workdir|--container-name|--cpu-freq|--gpu-freq|--gpu-bind|--distribution|--nodelist|--exclude|--signal|--hint|--relative|--threads-per-core|--ntasks-per-core|--ntasks-per-socket|--ntasks-per-gpu|--wait|--constraint|--reservation|--het-group|--propagate|--comment|--wckey|--licenses|--open-mode|--prolog|--epilog|--task-prolog|--task-epilog|--network|--deadline|--begin|--dependency) shift; shift;;
      -[NcGtpAqoeiJDwxmCdarWMLBTb]) shift; shift;;
      -*) shift;;
      *) break;;
    esac;
  done;
  case "$_stoker_n" in ''|*[!0-9]*) ;; *) [ "${RANK:-0}" -lt "$_stoker_n" ] || return 0;; esac;
  case "$_stoker_k" in ''|*[!0-9]*) ;; *) [ "${LOCAL_RANK:-0}" -lt "$_stoker_k" ] || return 0;; esac;
  "$@";
};
)";

}  // namespace stoker::sbatch
