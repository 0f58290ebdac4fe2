#!/bin/sh
# Builds the image of a control plane, where a Docker engine answers. The hub's own is built by `make image`.
set -eu

cd "$(dirname "$0")/../.."
export CGO_ENABLED=0 GOWORK=off
context=build/e2e
rm -rf "$context"
mkdir -p "$context/repo/build/testbed/bin" "$context/tmp" "$context/state"
go build -trimpath -ldflags "-s -w" -o "$context/controlplane" ./test/e2e/controlplane
cp go.mod "$context/repo/go.mod"
cp -P build/testbed/bin/* "$context/repo/build/testbed/bin/"
chmod 1777 "$context/tmp"
docker build -q -t "${CONTROLPLANE_IMAGE:-plimsoll-controlplane:dev}" -f test/e2e/Dockerfile "$context"
rm -rf "$context"
