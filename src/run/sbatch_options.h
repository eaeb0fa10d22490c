// The options of `man sbatch` of Slurm 24.05 and what becomes of each, and what stands for srun. Only import_sbatch.cpp
// uses it.
#pragma once

#include <cstdint>

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
    image,
    tmp,
    ignored
};
struct SbatchOption {
    const char* name;
    char letter;
    char argument;  // 'y' yes, 'n' no, 'o' may have one after =
    SbatchKey key;
    const char* why = "";  // of what is ignored
};

inline constexpr const char* kPlace = "Stoker chooses the place by what the run needs";
inline constexpr const char* kAccount = "who submits says that, and the rights of that person decide";
inline constexpr const char* kLogs = "Stoker keeps the output of every rank: stoker logs shows it";
inline constexpr const char* kMail = "Stoker sends no mail";
inline constexpr const char* kBinding = "processes are bound to cores by what one rank asks for";
inline constexpr const char* kStarts = "it is about how sbatch itself behaves";

inline constexpr SbatchOption kSbatchOptions[] = {
    {"job-name", 'J', 'y', SbatchKey::name},
    {"nodes", 'N', 'y', SbatchKey::nodes},
    {"ntasks", 'n', 'y', SbatchKey::ntasks},
    {"ntasks-per-node", 0, 'y', SbatchKey::ntasks_per_node},
    {"tasks-per-node", 0, 'y', SbatchKey::ntasks_per_node},
    {"cpus-per-task", 'c', 'y', SbatchKey::cpus_per_task},
    {"cpus-per-gpu", 0, 'y', SbatchKey::cpus_per_gpu},
    {"mem", 0, 'y', SbatchKey::mem},
    {"mem-per-cpu", 0, 'y', SbatchKey::mem_per_cpu},
    {"mem-per-gpu", 0, 'y', SbatchKey::mem_per_gpu},
    {"gres", 0, 'y', SbatchKey::gres},
    {"gpus", 'G', 'y', SbatchKey::gpus},
    {"gpus-per-node", 0, 'y', SbatchKey::gpus_per_node},
    {"gpus-per-task", 0, 'y', SbatchKey::gpus_per_task},
    {"time", 't', 'y', SbatchKey::time},
    {"chdir", 'D', 'y', SbatchKey::chdir},
    {"workdir", 0, 'y', SbatchKey::chdir},
    {"array", 'a', 'y', SbatchKey::array},
    {"signal", 0, 'y', SbatchKey::signal},
    {"requeue", 0, 'n', SbatchKey::requeue},
    {"no-requeue", 0, 'n', SbatchKey::no_requeue},
    {"export", 0, 'y', SbatchKey::exports},
    {"container-image", 0, 'y', SbatchKey::image},
    {"tmp", 0, 'y', SbatchKey::tmp},
    {"output", 'o', 'y', SbatchKey::ignored, kLogs},
    {"error", 'e', 'y', SbatchKey::ignored, kLogs},
    {"open-mode", 0, 'y', SbatchKey::ignored, kLogs},
    {"input", 'i', 'y', SbatchKey::ignored, "the input is empty"},
    {"dependency", 'd', 'y', SbatchKey::ignored,
     "it names jobs of a Slurm; steps with `after` say the same inside one run"},
    {"partition", 'p', 'y', SbatchKey::ignored, kPlace},
    {"account", 'A', 'y', SbatchKey::ignored, kAccount},
    {"qos", 'q', 'y', SbatchKey::ignored, "class and priority say who goes first"},
    {"nice", 0, 'o', SbatchKey::ignored, "class and priority say who goes first"},
    {"priority", 0, 'y', SbatchKey::ignored, "class and priority say who goes first"},
    {"reservation", 0, 'y', SbatchKey::ignored, kPlace},
    {"nodelist", 'w', 'y', SbatchKey::ignored, kPlace},
    {"exclude", 'x', 'y', SbatchKey::ignored, kPlace},
    {"constraint", 'C', 'y', SbatchKey::ignored, kPlace},
    {"prefer", 0, 'y', SbatchKey::ignored, kPlace},
    {"cluster", 'M', 'y', SbatchKey::ignored, kPlace},
    {"clusters", 0, 'y', SbatchKey::ignored, kPlace},
    {"switches", 0, 'y', SbatchKey::ignored, kPlace},
    {"contiguous", 0, 'n', SbatchKey::ignored, kPlace},
    {"exclusive", 0, 'o', SbatchKey::ignored, "a rank gets what it asks for, and others may use the rest"},
    {"oversubscribe", 's', 'n', SbatchKey::ignored, "cores and GPUs are never promised twice"},
    {"overcommit", 'O', 'n', SbatchKey::ignored, "cores and GPUs are never promised twice"},
    {"mail-type", 0, 'y', SbatchKey::ignored, kMail},
    {"mail-user", 0, 'y', SbatchKey::ignored, kMail},
    {"distribution", 'm', 'y', SbatchKey::ignored, kBinding},
    {"hint", 0, 'y', SbatchKey::ignored, kBinding},
    {"threads-per-core", 0, 'y', SbatchKey::ignored, kBinding},
    {"cores-per-socket", 0, 'y', SbatchKey::ignored, kBinding},
    {"sockets-per-node", 0, 'y', SbatchKey::ignored, kBinding},
    {"ntasks-per-core", 0, 'y', SbatchKey::ignored, kBinding},
    {"ntasks-per-socket", 0, 'y', SbatchKey::ignored, kBinding},
    {"ntasks-per-gpu", 0, 'y', SbatchKey::ignored, kBinding},
    {"mincpus", 0, 'y', SbatchKey::ignored, kBinding},
    {"gpus-per-socket", 0, 'y', SbatchKey::ignored, kBinding},
    {"share", 0, 'n', SbatchKey::ignored, "cores and GPUs are never promised twice"},
    {"wckey", 0, 'y', SbatchKey::ignored, kAccount},
    {"uid", 0, 'y', SbatchKey::ignored, kAccount},
    {"gid", 0, 'y', SbatchKey::ignored, kAccount},
    {"power", 0, 'y', SbatchKey::ignored, kPlace},
    {"bb", 0, 'y', SbatchKey::ignored, kPlace},
    {"bbf", 0, 'y', SbatchKey::ignored, kPlace},
    {"mcs-label", 0, 'y', SbatchKey::ignored, kAccount},
    {"extra-node-info", 'B', 'y', SbatchKey::ignored, kBinding},
    {"delay-boot", 0, 'y', SbatchKey::ignored, kPlace},
    {"thread-spec", 0, 'y', SbatchKey::ignored, kBinding},
    {"gpu-bind", 0, 'y', SbatchKey::ignored, kBinding},
    {"gpu-freq", 0, 'y', SbatchKey::ignored, kBinding},
    {"cpu-freq", 0, 'y', SbatchKey::ignored, kBinding},
    {"mem-bind", 0, 'y', SbatchKey::ignored, kBinding},
    {"core-spec", 'S', 'y', SbatchKey::ignored, kBinding},
    {"gres-flags", 0, 'y', SbatchKey::ignored, kBinding},
    {"begin", 'b', 'y', SbatchKey::ignored, "a run starts as soon as there is room"},
    {"deadline", 0, 'y', SbatchKey::ignored, "the time limit of a run is its timeout"},
    {"time-min", 0, 'y', SbatchKey::ignored, "the time limit of a run is its timeout"},
    {"hold", 'H', 'n', SbatchKey::ignored, "a run starts as soon as there is room"},
    {"immediate", 'I', 'o', SbatchKey::ignored, "a run starts as soon as there is room"},
    {"licenses", 'L', 'y', SbatchKey::ignored, "Stoker counts no licences"},
    {"comment", 0, 'y', SbatchKey::ignored, "labels are for such words"},
    {"kill-on-invalid-dep", 0, 'y', SbatchKey::ignored, kStarts},
    {"no-kill", 'k', 'o', SbatchKey::ignored, "a gang ends when one of its nodes is lost, and starts again"},
    {"get-user-env", 0, 'o', SbatchKey::ignored, "environment says what the ranks see"},
    {"export-file", 0, 'y', SbatchKey::ignored, "environment says what the ranks see"},
    {"propagate", 0, 'o', SbatchKey::ignored, "limits are those of the run"},
    {"profile", 0, 'y', SbatchKey::ignored, "Stoker measures every run"},
    {"acctg-freq", 0, 'y', SbatchKey::ignored, "Stoker measures every run"},
    {"use-min-nodes", 0, 'n', SbatchKey::ignored, kPlace},
    {"spread-job", 0, 'n', SbatchKey::ignored, kPlace},
    {"reboot", 0, 'n', SbatchKey::ignored, kPlace},
    {"wait-all-nodes", 0, 'y', SbatchKey::ignored, "all ranks start or none"},
    {"wait", 'W', 'n', SbatchKey::ignored, kStarts},
    {"parsable", 0, 'n', SbatchKey::ignored, kStarts},
    {"quiet", 'Q', 'n', SbatchKey::ignored, kStarts},
    {"verbose", 'v', 'n', SbatchKey::ignored, kStarts},
    {"test-only", 0, 'n', SbatchKey::ignored, kStarts},
    {"ignore-pbs", 0, 'n', SbatchKey::ignored, kStarts},
    {"container-mounts", 0, 'y', SbatchKey::ignored, "folders of the host are not shown to a container by this"},
    {"container-workdir", 0, 'y', SbatchKey::ignored, "the working folder is `folder`"},
};

// Every rank runs the script, so srun has nothing to start any more: its options go, its command runs; on the first N
// ranks only where it says -n N, and on the first K of a node with --ntasks-per-node=K.
inline constexpr const char* kSrunFunction = R"(srun() {
  _stoker_n= _stoker_k=;
  while [ $# -gt 0 ]; do
    case "$1" in
      --) shift; break;;
      --ntasks=*|--tasks=*) _stoker_n=${1#*=}; shift;;
      --ntasks-per-node=*) _stoker_k=${1#*=}; shift;;
      -n|--ntasks|--tasks) _stoker_n=$2; shift; shift;;
      --ntasks-per-node) _stoker_k=$2; shift; shift;;
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
