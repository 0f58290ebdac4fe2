#!/usr/bin/env bash
# Builds Karpenter with its kwok provider from Go modules into <repo>/build/karpenter/bin, and puts its definitions
# into build/karpenter/crds.
#
# Safe to call at any time: it does nothing when what it would build is already there, waits for another build that is
# under way, and puts files in their place only when they are complete. The first build takes some minutes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
out="$repo/build/karpenter"

cd "$here"
mkdir -p "$out"
# Static, and the same bytes from every checkout. The module is never part of a workspace.
export CGO_ENABLED=0 GOWORK=off

if command -v flock >/dev/null 2>&1; then
	exec 9>"$out/lock"
	flock -n 9 || { echo "karpenter: waiting for another build" >&2; flock 9; }
fi

work=$(mktemp -d "$out/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
{ go version; go env GOOS GOARCH; cat go.mod go.sum build.sh; } >"$work/stamp"

if cmp -s "$work/stamp" "$out/stamp" && [ -x "$out/bin/karpenter" ] && [ -d "$out/crds" ]; then
	exit 0
fi

echo "karpenter: building; the first time this takes some minutes" >&2
mkdir "$work/bin" "$work/crds"
go mod download sigs.k8s.io/karpenter
module=$(go list -m -f '{{.Dir}}' sigs.k8s.io/karpenter)

# Karpenter is as it was released but for one thing: its metrics and probes are on loopback, and not on all addresses, which
# no option of its own can say. So a copy is built, in which that is changed.
source="$work/source"
mkdir "$source"
cp -R "$module/." "$source"
chmod -R u+w "$source"
operator="$source/pkg/operator/operator.go"
sed 's|fmt.Sprintf(":%d"|fmt.Sprintf("127.0.0.1:%d"|' "$operator" >"$work/operator.go"
if [ "$(grep -c '"127.0.0.1:%d"' "$work/operator.go")" != 2 ]; then
	echo "karpenter: pkg/operator/operator.go does not name the two addresses that it listens on" >&2
	exit 1
fi
mv "$work/operator.go" "$operator"
cp go.mod go.sum "$work/"
go mod edit -replace "sigs.k8s.io/karpenter=$source" "$work/go.mod"

nice go build -modfile "$work/go.mod" -trimpath -buildvcs=false -ldflags "-s -w" -o "$work/bin/karpenter" sigs.k8s.io/karpenter/kwok
cp "$module"/pkg/apis/crds/*.yaml "$module"/kwok/apis/crds/*.yaml "$work/crds/"
chmod u+w "$work"/crds/*

rm -rf "$out/stamp" "$out/bin" "$out/crds"
mv "$work/bin" "$work/crds" "$out/"
mv "$work/stamp" "$out/stamp"
