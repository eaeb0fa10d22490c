#include "deploy/kubernetes/look_script.h"

#include <fmt/format.h>

#include "deploy/kubernetes/rank_script.h"
#include "observe/gang_meter.h"

namespace stoker::kubernetes {
namespace {

constexpr int kMostSamples = 600;  // kept in the pod: what is older was said long ago

// The name of a rank's step file: what stands before and behind its number.
std::pair<std::string, std::string> around_number(const std::string& lines) {
    const std::string second = rank_metrics_file(lines, 1), number = ".rank-1";
    const std::size_t at = second.rfind(number);
    return {second.substr(0, at), second.substr(at + number.size())};
}

}  // namespace

bool is_looked_at(const MeasureSpec& measure) {
    return !measure.lines.empty() || !measure.heartbeat.empty();
}

std::string look_functions(const MeasureSpec& measure) {
    // LOCAL_RANK and RANK are set. What is set before the program starts has a name that no program's variable has.
    std::string script;
    if (measure.heartbeat.empty()) {
        script += "read_beat() { :; }\ntell_beat() { :; }\n";
    } else {
        script += fmt::format(
            "read_beat() {{ stoker_beat_file={}; [ $RANK = 0 ] || stoker_beat_file=$stoker_beat_file.rank-$RANK\n"
            "  stoker_beat=$(head -c 256 \"$stoker_beat_file\" 2>/dev/null); stoker_beat=${{stoker_beat%%'\n'*}}; }}\n"
            "tell_beat() {{ before=$stoker_beat; read_beat\n"
            "  [ \"$before\" = \"$stoker_beat\" ] || printf 'B %s %s\\n' $LOCAL_RANK \"$stoker_beat\" >>$samples; }}\n",
            shell_quoted(measure.heartbeat));
    }
    // How much of its step file was there before the program: what an earlier attempt said is not this one's.
    if (!measure.lines.empty()) {
        const auto [before, behind] = around_number(measure.lines);
        script += fmt::format(
            "mark_lines() {{ stoker_lines=; [ $RANK = 0 ] || stoker_lines=.rank-$RANK\n"
            "  stoker_lines={}\"$stoker_lines\"{} stoker_from=0\n"
            "  [ ! -r \"$stoker_lines\" ] || stoker_from=$(wc -c <\"$stoker_lines\")\n"
            "  echo $stoker_from >{}/new-$LOCAL_RANK && mv {}/new-$LOCAL_RANK {}/from-$LOCAL_RANK; }}\n",
            shell_quoted(before), shell_quoted(behind), kMeasureFolder, kMeasureFolder, kMeasureFolder);
    } else {
        script += "mark_lines() { :; }\n";
    }
    // Sums over the processes of the container, with what those had that they waited for: so nothing is lost with
    // them. Neither this shell and its helpers, nor the first process, which is ours too.
    script +=
        "look_here() {\n" + fmt::format("  samples={}/samples lines=0 page=4\n", kMeasureFolder) +
        "  while read -r key value rest; do\n"
        "    [ \"$key\" != KernelPageSize: ] || { page=$value; break; }\n"
        "  done 2>/dev/null </proc/self/smaps\n"
        "}\n"
        "look() {\n"
        "  tell_beat\n"
        "  [ $$ = 1 ] || return 0\n"
        "  processes=0 threads=0 blocked=0 stopped=0 pages=0 user=0 system=0 minor=0 major=0\n"
        "  rb=0 wb=0 rc=0 rs=0 io= net= up= used= limit= cpu= throttled= hits=\n"
        "  for each in /proc/[0-9]*; do\n"
        "    line=; read -r line 2>/dev/null <$each/stat || continue\n"
        "    pid=${line%% *}; set -- ${line##*) }\n"
        "    [ $# -ge 22 ] && [ $pid != $me ] && [ $2 != $me ] || continue\n"
        "    user=$((user + ${14})) system=$((system + ${15})) minor=$((minor + $9)) major=$((major + ${11}))\n"
        "    [ $pid != 1 ] || continue\n"
        "    user=$((user + ${12})) system=$((system + ${13})) minor=$((minor + $8)) major=$((major + ${10}))\n"
        "    processes=$((processes + 1)) threads=$((threads + ${18})) pages=$((pages + ${22}))\n"
        "    case $1 in D) blocked=$((blocked + 1));; T | t) stopped=$((stopped + 1));; esac\n"
        "    while read -r key value; do case $key in\n"
        "      rchar:) rc=$((rc + value)) io=1;; syscr:) rs=$((rs + value));;\n"
        "      read_bytes:) rb=$((rb + value));; write_bytes:) wb=$((wb + value));;\n"
        "    esac; done 2>/dev/null <$each/io\n"
        "  done\n"
        "  [ $processes -gt 0 ] || return 0\n"
        "  read -r up rest </proc/uptime\n"
        "  while read -r key got a b c d e f g sent rest; do\n"
        "    case $key in *:) net=\"$net,${key%:}:$got:$sent\";; esac\n"
        "  done 2>/dev/null </proc/net/dev\n"
        "  group=/sys/fs/cgroup\n"
        "  if [ -r $group/memory.max ]; then\n"
        "    read -r limit <$group/memory.max; read -r used <$group/memory.current\n"
        "    while read -r key value; do [ $key != max ] || hits=$value; done <$group/memory.events\n"
        "  fi\n"
        "  if [ -r $group/cpu.max ]; then\n"
        "    read -r cpu rest <$group/cpu.max; cpu=$cpu:$rest\n"
        "    while read -r key value; do [ $key != throttled_usec ] || throttled=$value; done <$group/cpu.stat\n"
        "  fi\n" +
        fmt::format("  [ $LOCAL_RANK != 0 ] || [ $((lines += 1)) -lt {} ] || {{ lines=0; : >$samples; }}\n",
                    kMostSamples) +
        "  printf 'P %s up=%s page=%s pages=%s processes=%s threads=%s blocked=%s stopped=%s user=%s system=%s "
        "minor=%s major=%s io=%s memory=%s cpu=%s throttled=%s net=%s\\n' $LOCAL_RANK \"$up\" $page $pages $processes "
        "$threads $blocked $stopped $user $system $minor $major \"${io:+$rb:$wb:$rs:$rc}\" "
        "\"${limit:+$used:$limit:$hits}\" \"$cpu\" \"$throttled\" \"${net#,}\" >>$samples\n"
        "}\n";
    return script;
}

std::string measures_script(const MeasureSpec& measure, int per_pod) {
    // follow LABEL FILE NUMBER: the step file of a rank of this pod, or what is said in the pod. It waits for the rank,
    // which says where its lines begin: whichever container comes first, none is missed. One that was started again
    // goes on at the end. One turn a second. A file that was cut begins anew; more than 500 lines in a turn are passed
    // over.
    std::string script =
        fmt::format("folder={}\n", kMeasureFolder) +
        "follow() {\n"
        "  over= at=0 turn=0 rest= open= from=0\n"
        "  trap 'over=1' TERM\n"
        "  if [ -e $folder/follows-$3 ]; then\n"
        "    if [ -r \"$2\" ]; then exec 3<\"$2\"; open=1 at=$(cat <&3 | wc -c); fi\n"
        "  else\n"
        "    if [ -n \"$3\" ]; then\n"
        "      until [ -e $folder/from-$3 ]; do\n"
        "        [ -z \"$over\" ] || exit 0\n"
        "        sleep 0.2 & wait $!\n"
        "      done\n"
        "      read -r from <$folder/from-$3\n"
        "    fi\n"
        "    : >$folder/follows-$3\n"
        "    if [ $from -gt 0 ] && [ -r \"$2\" ]; then\n"
        "      exec 3<\"$2\"; open=1 at=$from\n"
        "      [ $from -lt 65536 ] || dd bs=65536 count=$((from / 65536)) <&3 >/dev/null 2>&1\n"
        "      [ $((from % 65536)) = 0 ] || dd bs=$((from % 65536)) count=1 <&3 >/dev/null 2>&1\n"
        "    fi\n"
        "  fi\n"
        "  while :; do\n"
        "    last=$over turn=$((turn + 1))\n"
        "    if [ -n \"$open\" ] && [ $((turn % 5)) = 0 ] && [ $(wc -c 2>/dev/null <\"$2\" || echo 0) -lt $at ]; then "
        "open=; fi\n"
        "    if [ -z \"$open\" ] && [ -r \"$2\" ]; then exec 3<\"$2\"; open=1 at=0 rest=; fi\n"
        "    count=0\n"
        "    while [ -n \"$open\" ] && [ $((count += 1)) -le 500 ]; do\n"
        "      line=\n"
        "      if IFS= read -r line <&3; then\n"
        "        at=$((at + ${#line} + 1)) line=$rest$line rest=\n"
        "        [ ${#line} -gt 4000 ] || printf '%s %s\\n' \"$1\" \"$line\"\n"
        "      else\n"
        "        at=$((at + ${#line})) rest=$rest$line\n"
        "        break\n"
        "      fi\n"
        "    done\n"
        "    [ $count -le 500 ] || { at=$((at + $(cat <&3 | wc -c))) rest=; }\n"
        "    [ -z \"$last\" ] || exit 0\n"
        "    sleep 1 & wait $!\n"
        "  done\n"
        "}\n" +
        "all= told=\n"
        "trap 'told=1; kill -TERM $all 2>/dev/null' TERM\n"
        "follow M $folder/samples '' & all=$!\n";
    if (!measure.lines.empty()) {
        const auto [before, behind] = around_number(measure.lines);
        script += fmt::format(
            "local=0\n"
            "while [ $local -lt {0} ]; do\n"
            "  rank=$((JOB_COMPLETION_INDEX * {0} + local)) number=\n"
            "  [ $rank = 0 ] || number=.rank-$rank\n"
            "  follow \"S $local\" {1}\"$number\"{2} $local & all=\"$all $!\"\n"
            "  local=$((local + 1))\n"
            "done\n",
            per_pod, shell_quoted(before), shell_quoted(behind));
    }
    return script +
           // Told more than once: a shell that has just been made may lose a signal.
           "for each in $all; do while kill -0 $each 2>/dev/null; do\n"
           "  if [ -n \"$told\" ]; then kill -TERM $each 2>/dev/null; sleep 0.1; else wait $each; fi\n"
           "done; done\n";
}

}  // namespace stoker::kubernetes
