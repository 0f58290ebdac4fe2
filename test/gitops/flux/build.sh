#!/usr/bin/env bash
# Builds Flux' source-controller and kustomize-controller, sops and age-keygen from Go modules into <repo>/build/flux/bin, and
# puts the controllers' definitions into build/flux/crds.
#
# Safe to call at any time: it does nothing when what it would build is already there, and puts files in their place only
# when they are complete. The first build takes some minutes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
out="$repo/build/flux"
parts="source-controller kustomize-controller sops age-keygen"

cd "$here"
mkdir -p "$out"
export CGO_ENABLED=0 GOWORK=off

if command -v flock >/dev/null 2>&1; then
	exec 9>"$out/lock"
	flock -n 9 || { echo "flux: waiting for another build" >&2; flock 9; }
fi

work=$(mktemp -d "$out/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
{ go version; go env GOOS GOARCH; cat go.mod go.sum build.sh; } >"$work/stamp"

complete() {
	local name
	for name in $parts; do [ -x "$out/bin/$name" ] || return 1; done
	[ -d "$out/crds" ]
}

if cmp -s "$work/stamp" "$out/stamp" && complete; then
	exit 0
fi

echo "flux: building its controllers; the first time this takes some minutes" >&2
mkdir "$work/bin" "$work/crds"
go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$work/bin/" \
	github.com/fluxcd/source-controller github.com/fluxcd/kustomize-controller \
	github.com/getsops/sops/v3/cmd/sops filippo.io/age/cmd/age-keygen
for module in $(go list -m -f '{{.Dir}}' github.com/fluxcd/source-controller github.com/fluxcd/kustomize-controller); do
	cp "$module"/config/crd/bases/*.yaml "$work/crds/"
done
chmod u+w "$work"/crds/*

rm -rf "$out/stamp" "$out/bin" "$out/crds"
mv "$work/bin" "$work/crds" "$out/"
mv "$work/stamp" "$out/stamp"
