#!/usr/bin/env bash
# Builds the provider of this folder, which has published schemas and does nothing, and prints where it lies.
#   build.sh [--look]      --look: only look for it
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
key=$(cat "$here"/provider/{main.go,go.mod,go.sum} | sha256sum | cut -c1-12)
out=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/terraform-$key
if [ ! -x "$out/terraform-provider-azurerm" ]; then
    if [ "${1:-}" = --look ]; then
        echo "no provider for terraform validate was built here: tests/e2e/terraform/build.sh builds it, with Go, in a minute" >&2
        exit 3
    fi
    command -v go >/dev/null || { echo "there is no Go here to build the provider with" >&2; exit 3; }
    mkdir -p "$out"
    (cd "$here/provider" && CGO_ENABLED=0 GOFLAGS=-mod=mod timeout 900 go build -trimpath -ldflags "-s -w" -o "$out/provider.part" .)
    for name in aws google azurerm; do
        cp "$out/provider.part" "$out/terraform-provider-$name.part"
        mv "$out/terraform-provider-$name.part" "$out/terraform-provider-$name"
    done
    rm "$out/provider.part"
fi
echo "$out"
