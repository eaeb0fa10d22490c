#include "deploy/kubernetes/rank_script.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "deploy/kubernetes/look_script.h"
#include "deploy/shared_words.h"

namespace stoker::kubernetes {
namespace {

// Variables that are the rank's number, of each rank.
std::vector<std::string> numbered_variables(const GangSpec& gang) {
    std::vector<std::string> result;
    for (const auto& [key, value] : gang.ranks[0].environment) {
        bool numbered = gang.ranks.size() > 1;
        for (std::size_t i = 0; numbered && i < gang.ranks.size(); ++i) {
            const auto found = gang.ranks[i].environment.find(key);
            numbered = found != gang.ranks[i].environment.end() && found->second == std::to_string(i);
        }
        if (numbered) result.push_back(key);
    }
    return result;
}

// Sets what one rank has otherwise than the others: a Job has the same script for each of its containers, so what is
// said there for each rank by itself is there once for each of them, and again in each pod.
std::string words_by_rank(const GangSpec& gang) {
    const auto shared = shared_environment(gang);
    const std::vector<std::string> numbered = numbered_variables(gang);
    const bool same_words = words_are_shared(gang);
    std::string script;
    for (const std::string& key : numbered) script += fmt::format("export {}=$RANK\n", key);
    bool unlike = !same_words;
    std::string cases = "case $RANK in\n";
    for (std::size_t i = 0; i < gang.ranks.size(); ++i) {
        std::string own;
        if (!same_words) {
            own = "set --";
            for (const std::string& word : gang.ranks[i].arguments) own += " " + shell_quoted(word);
        }
        for (const auto& [key, value] : gang.ranks[i].environment) {
            if (shared.count(key) > 0 || std::find(numbered.begin(), numbered.end(), key) != numbered.end()) continue;
            own += fmt::format("{}export {}={}", own.empty() ? "" : "; ", key, shell_quoted(value));
            unlike = true;
        }
        if (!own.empty()) cases += fmt::format("{}) {};;\n", i, own);
    }
    return unlike ? script + cases + "esac\n" : script;
}

}  // namespace

std::string shell_quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

std::string check_script(const GangSpec& gang, int per_pod) {
    std::string script = "refuse() { printf '%s' \"" + std::string(kRefused) +
                         "rank $RANK: $1\" >/dev/termination-log; exit 1; }\n"
                         "look() {\n"
                         "case $1 in\n"
                         "*/*) [ ! -d \"$1\" ] || refuse \"$1 is a folder, not a program\"\n"
                         "  [ -e \"$1\" ] || refuse \"there is no program $1\"\n"
                         "  [ -x \"$1\" ] || refuse \"$1 is not executable (chmod +x makes it so)\";;\n"
                         "*) command -v \"$1\" >/dev/null 2>&1 ||\n"
                         "  refuse \"no program named $(printf '%.200s' \"$1\") in PATH of the image\";;\n"
                         "esac\n}\n";
    if (words_are_shared(gang))
        return script + fmt::format("RANK=$((JOB_COMPLETION_INDEX * {}))\nlook \"$1\"\n", per_pod);
    script +=
        fmt::format("local=0\nwhile [ $local -lt {0} ]; do\nRANK=$((JOB_COMPLETION_INDEX * {0} + local))\n", per_pod);
    return script + words_by_rank(gang) + "look \"$1\"\nlocal=$((local + 1))\ndone\n";
}

std::string rank_script(const GangSpec& gang, int per_pod) {
    std::string script = fmt::format(
        "export RANK=$((JOB_COMPLETION_INDEX * {} + LOCAL_RANK))\n"
        "export NODE_RANK=$JOB_COMPLETION_INDEX GROUP_RANK=$JOB_COMPLETION_INDEX OMPI_COMM_WORLD_RANK=$RANK\n",
        per_pod);
    script += words_by_rank(gang);
    // Orders: "go" and "NUMBER:SIGNAL", each level-triggered. A file of the downward API has no line end.
    script += fmt::format("orders() {{ go= told=; read -r go told 2>/dev/null <{}/orders || :; }}\n", kOrdersFolder);
    script +=
        "# All ranks begin, or none; and of the pods that a controller may make twice, one.\n"
        "trap 'exit 143' TERM\n"
        "orders; while [ \"$go\" != go ]; do sleep 0.2; orders; done\n"
        "# An order is of this pod, hence for this rank, also one that comes before anybody looks for it.\n"
        "last=\n";
    const bool looks = is_looked_at(gang.measure);
    if (looks) script += look_functions(gang.measure) + "read_beat\nmark_lines\n";
    script +=
        "# All processes of the container; never those of a machine whose processes it would share.\n"
        "trap 'if [ $$ = 1 ]; then kill -TERM -1; else kill -TERM $child; fi' TERM\n"
        "\"$@\" &\n"
        "child=$!\n"
        "# \"Killed\", as a shell tells the end of its child, is no word of the program.\n"
        "exec 2>/dev/null\n"
        "# Signals go to each process of the rank that handles them; others would die of them. Its are those that\n"
        "# descend from this shell: not what somebody runs here by exec, nor what shares these processes.\n"
        "deliver() { all=; ours=\" $$ \"; more=1\n"
        "for each in /proc/[0-9]*; do\n"
        "  id=${each#/proc/}; parent=; caught=\n"
        "  while read -r key value; do case $key in PPid:) parent=$value;; SigCgt:) caught=$value;; esac\n"
        "  done 2>/dev/null <$each/status\n"
        "  all=\"$all $id:$parent:$caught\"\n"
        "done\n"
        "while [ -n \"$more\" ]; do more=; for each in $all; do\n"
        "  id=${each%%:*}; parent=${each#*:}; parent=${parent%:*}\n"
        "  case $ours in *\" $id \"*) ;; *\" $parent \"*) ours=\"$ours$id \"; more=1;; esac\n"
        "done; done\n"
        "for each in $all; do\n"
        "  id=${each%%:*}; caught=${each##*:}; caught=${caught#????????}\n"
        "  [ $id != $$ ] && [ $id != $me ] || continue\n"
        "  case $ours in *\" $id \"*) [ $((0x${caught:-0} >> ($1 - 1) & 1)) = 0 ] || kill -$1 $id 2>/dev/null;; esac\n"
        "done; }\n"
        "( trap '' TERM; over=; trap 'over=1' HUP; read -r me rest </proc/self/stat\n";
    if (looks) script += "look_here\n";
    script +=
        "while :; do\n"
        // A shell that began with HUP ignored, as of nohup, cannot be told by it.
        "  kill -0 $child 2>/dev/null || over=1\n"
        "  ends=$over\n";
    if (looks) script += "  look\n";
    script +=
        "  [ -z \"$ends\" ] || exit\n"
        "  [ -n \"$over\" ] || { sleep 1 & wait $!; }\n"
        "  orders; [ -z \"$told\" ] || [ \"$told\" = \"$last\" ] || { last=$told; deliver \"${told#*:}\"; }\n"
        "done ) &\n"
        "beside=$!\n"
        "while :; do wait $child; code=$?; kill -0 $child 2>/dev/null || break; done\n";
    // What it wrote last is seen before the container goes.
    if (looks) script += "kill -HUP $beside 2>/dev/null; wait $beside\n";
    script += "exit $code\n";
    return script;
}

}  // namespace stoker::kubernetes
