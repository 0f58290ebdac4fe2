#!/usr/bin/env bash
# Builds the binaries of the testbed into <repo>/build/testbed/bin: kube-all with a link for each of its parts, and kwok.
#
# Safe to call at any time: it does nothing when what it would build is already there, waits for another build that
# is under way, and puts files in their place only when they are complete. The first build takes some minutes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
out="$repo/build/testbed"
bin="$out/bin"
stamp="$out/stamp"
parts="etcd kube-apiserver kube-controller-manager kube-scheduler kubectl"
version=v1.36.1

cd "$here"
mkdir -p "$bin"

# Static, and the same bytes from every checkout. The module is never part of a workspace.
export CGO_ENABLED=0 GOWORK=off

# Two builds at once would each take twice as long; where there is no flock they are still correct, only slower.
if command -v flock >/dev/null 2>&1; then
	exec 9>"$out/lock"
	flock -n 9 || { echo "testbed: waiting for another build of the control planes" >&2; flock 9; }
fi

work=$(mktemp -d "$out/build.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The stamp is everything that the binaries depend on, so that comparing it needs no hash tool.
{ go version; go env GOOS GOARCH; cat go.mod go.sum ./*.go build.sh; } >"$work/stamp"

complete() {
	local name
	for name in kube-all kwok $parts; do [ -x "$bin/$name" ] || return 1; done
}

if cmp -s "$work/stamp" "$stamp" && complete; then
	exit 0
fi

echo "testbed: building the control planes (Kubernetes $version, etcd, kwok); the first time this takes some minutes" >&2
v=k8s.io/component-base/version
mkdir "$work/bin"
go build -trimpath -buildvcs=false \
	-ldflags "-s -w -X $v.gitVersion=$version -X $v.gitMajor=1 -X $v.gitMinor=36 -X $v.gitTreeState=clean" \
	-o "$work/bin/" . sigs.k8s.io/kwok/cmd/kwok

rm -f "$stamp"
mv -f "$work/bin/controlplane" "$bin/kube-all"
mv -f "$work/bin/kwok" "$bin/kwok"
for name in $parts; do ln -sfn kube-all "$bin/$name"; done
mv -f "$work/stamp" "$stamp"
