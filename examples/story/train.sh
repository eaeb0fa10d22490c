#!/usr/bin/env bash
# The end of `./dev demo`: plans a small language model, really trains it on this machine, kills one of its processes and the
# server on the way, shows that the result is the same, holds it against its prediction, and lets `stoker explain` find a slow
# loader. Leaves nothing behind.
#   STOKER_DEMO_WEIGHTS=FOLDER (keeps there what was trained)
#   STOKER=build/release/stoker  STOKER_DEMO_LIMIT=900 (seconds, against hanging)  STOKER_DEMO_KEEP=1 (keeps the folder)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
stoker=$(readlink -f "${STOKER:-$here/../build/release/stoker}")
python=/usr/bin/python3
limit=${STOKER_DEMO_LIMIT:-900}
work=$(mktemp -d "${TMPDIR:-/tmp}/stoker-train.XXXXXX")
export STOKER_FOLDER=$work/server XDG_CACHE_HOME=$work/cache OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
server=

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
die() {
    echo "error: $*" >&2
    tail -n 20 "$work/up.log" >&2 2>/dev/null || true
    exit 1
}

# Every process that carries this demo's folder in its arguments or environment: keepers and ranks have it in both.
ours() {
    local pid
    # grep says 2 for processes that ended while it looked.
    for pid in $({ grep -lsF -- "$work" /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null || true; } | cut -d/ -f3 | sort -un); do
        [ "$(ps -o pgid= -p "$pid" 2>/dev/null | tr -d ' ')" = "$own_group" ] || [ ! -d "/proc/$pid" ] || echo "$pid"
    done
}
own_group=$(ps -o pgid= -p $$ | tr -d ' ')

cleanup() {
    local status=$? pid
    trap - EXIT INT TERM
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    for _ in $(seq 50); do
        [ -n "$server" ] && kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    for pid in $(ours); do kill -9 "$pid" 2>/dev/null || true; done
    if [ "${STOKER_DEMO_KEEP:-}" = 1 ]; then echo "kept: $work"; else rm -rf "$work"; fi
    exit $status
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# One of the values of a JSON text: field run.state < TEXT. Empty when it is not there.
field() {
    "$python" -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split("."):
    if isinstance(value, list):
        value = value[int(key)] if key.lstrip("-").isdigit() and value else {}
    else:
        value = value.get(key, "") if isinstance(value, dict) else ""
print(value if not isinstance(value, (dict, list)) else json.dumps(value))' "$1"
}
look() { timeout 20 "$stoker" describe "$1" -o json; }
left() { echo $((limit - SECONDS)); }
in_time() { [ "$(left)" -gt 0 ] || die "not done after $limit s: $1"; }

up() {
    # Of a server that was killed. ps alone is no sign: without a server it reads the journal.
    rm -f "$STOKER_FOLDER/server.json"
    "$stoker" up --folder "$STOKER_FOLDER" --listen 127.0.0.1:0 --prices "$here/prices.yaml" >>"$work/up.log" 2>&1 &
    server=$!
    for _ in $(seq 200); do
        kill -0 "$server" 2>/dev/null || die "the server ended"
        [ -f "$STOKER_FOLDER/server.json" ] && timeout 5 "$stoker" ps >/dev/null 2>&1 && return 0
        sleep 0.1
    done
    die "the server does not answer"
}

submit() { timeout 30 "$stoker" submit "$1" -o json | grep -oE '"r-[0-9]+"' | head -n 1 | tr -d '"'; }

# wait_end RUN [WATCH]: prints progress until it ends, every few seconds and at each change of state; WATCH RUN JSON, a
# function, may act on it.
wait_end() {
    local json state line now last= printed=-9
    while :; do
        in_time "run $1 is $(look "$1" | field run.state)"
        json=$(look "$1") || die "describe $1 failed"
        state=$(field run.state <<<"$json")
        now="$1 $state, attempt $(field run.attempts <<<"$json")"
        line="$now  step $(field metrics.step <<<"$json")  loss $(field metrics.loss <<<"$json")"
        if [ "$now" != "$last" ] || [ $((SECONDS - printed)) -ge 5 ]; then
            printf '  %3d s  %s\n' "$SECONDS" "$line"
            last=$now printed=$SECONDS
        fi
        case $state in
            succeeded) return 0 ;;
            failed | cancelled | expired) timeout 20 "$stoker" logs "$1" 2>&1 | tail -n 20 >&2; die "run $1 is $state" ;;
        esac
        "${2:-true}" "$1" "$json"
        sleep 0.5
    done
}

digest_of() { timeout 20 "$stoker" logs "$1" 2>&1 | grep -oE 'weights sha256 [0-9a-f]{64}' | tail -n 1 | cut -d' ' -f3; }

[ -x "$stoker" ] || die "$stoker is not built"
"$python" -c 'import torch' 2>/dev/null || { echo "error: $python has no torch: apt-get install python3-torch libopenblas0-pthread" >&2; exit 3; }

say "\$ stoker plan examples/tiny-gpt.yaml"
timeout 60 "$stoker" plan "$here/tiny-gpt.yaml"

say "\$ stoker up &"
up
say "\$ stoker submit examples/tiny-gpt.yaml"
run=$(submit "$here/tiny-gpt.yaml")
[ -n "$run" ] || die "submit named no run"
echo "  $run"

killed_rank= killed_server=
watching() {
    local step pid
    step=$(field metrics.step <<<"$2")
    step=${step%%.*}
    [ -n "$step" ] && [ -n "$(field checkpoints.newest.folder <<<"$2")" ] && [ "$(field run.state <<<"$2")" = running ] || return 0
    if [ -z "$killed_rank" ] && [ "$step" -ge 40 ]; then
        pid=$(field attempts.-1.ranks.1.pid <<<"$2")
        [ "${pid:-0}" -gt 1 ] && kill -9 "$pid" || die "rank 1 has no process to kill (pid '$pid')"
        killed_rank=$pid
        say "kill -9 $pid: rank 1 of $1 at step $step"
    elif [ -n "$killed_rank" ] && [ -z "$killed_server" ] && [ "$step" -ge 90 ]; then
        pid=$(field attempts.-1.ranks.0.pid <<<"$2")
        say "kill -9 $server: the server at step $step"
        kill -9 "$server"
        wait "$server" 2>/dev/null || true
        killed_server=$server server=
        sleep 1
        [ "${pid:-0}" -gt 1 ] && kill -0 "$pid" 2>/dev/null && echo "  rank 0 (process $pid) goes on without it" || die "rank 0 did not outlive the server"
        say "\$ stoker up &      (again)"
        up
        kill -0 "$pid" 2>/dev/null && echo "  adopted: $(look "$1" | field run.state), process $pid is the same"
    fi
}
wait_end "$run" watching
[ -n "$killed_rank" ] && [ -n "$killed_server" ] || die "it ended before it was killed twice"
echo "  weights sha256 $(digest_of "$run")"
if [ -n "${STOKER_DEMO_WEIGHTS:-}" ]; then
    trained=$(find "$STOKER_FOLDER" -path "*$run*" -name model.pt | head -n 1)
    [ -n "$trained" ] || die "$run left no model.pt"
    mkdir -p "$STOKER_DEMO_WEIGHTS"
    cp "$trained" "$(dirname "$trained")/config.json" "$STOKER_DEMO_WEIGHTS/"
fi

say "\$ stoker describe $run"
timeout 20 "$stoker" describe "$run"
say "\$ stoker explain $run"
timeout 20 "$stoker" explain "$run"

say "A quarter of it once more, with a loader that is too slow: 15 ms for each example"
sed -e "s#folder: train-tiny#folder: $here/train-tiny#" -e 's/--steps, 160/--steps, 40/' -e 's/tokens: 327680/tokens: 81920/' \
    -e 's/environment: {/environment: {TRAIN_READ_MS: 15, /' -e 's/^name: .*/name: starved/' "$here/tiny-gpt.yaml" >"$work/starved.yaml"
starved=$(submit "$work/starved.yaml")
wait_end "$starved"
say "\$ stoker explain $starved"
timeout 20 "$stoker" explain "$starved"
timeout 20 "$stoker" explain "$starved" -o json | grep -q '"starved-input"' || die "explain did not find the slow loader"

say "\$ stoker usage"
timeout 20 "$stoker" usage

say "The same small training, once undisturbed and once with a process killed at step 25"
small() {
    cat <<END
version: 1
name: $1
run:
  folder: $here/train-tiny
  command: [$python, train.py, --dim, 64, --layers, 2, --heads, 4, --ctx, 64, --batch, 8, --steps, 40, --checkpoint-every, 10]
  ranks: 2
  cpus: 0.5
  restarts: 10
  checkpoint: {keep: 10}
  environment: {OMP_NUM_THREADS: 1, OPENBLAS_NUM_THREADS: 1, PYTHONDONTWRITEBYTECODE: 1$2}
END
}
small undisturbed "" >"$work/undisturbed.yaml"
small killed ", TRAIN_DIE_AFTER: '1:25'" >"$work/killed.yaml"
a=$(submit "$work/undisturbed.yaml") b=$(submit "$work/killed.yaml")
wait_end "$a"
wait_end "$b"
first=$(digest_of "$a") second=$(digest_of "$b")
echo "  undisturbed  $first"
echo "  killed       $second   ($(look "$b" | field run.attempts) starts)"
[ -n "$first" ] && [ "$first" = "$second" ] || die "the results differ"

kill "$server"
for _ in $(seq 100); do kill -0 "$server" 2>/dev/null || break; sleep 0.1; done
kill -0 "$server" 2>/dev/null && die "the server did not stop on SIGTERM"
server=
remaining=$(ours)
[ -z "$remaining" ] || die "processes are left: $remaining"
say "done in $SECONDS s: killed twice, same result, no process left"
