#!/bin/sh
# Puts together what the image holds, in build/image/<architecture>: the hub, the authorities that it trusts, and its SBOM,
# which is sbom.cdx.json in the image and build/image/<architecture>.cdx.json beside it. The CLI of the same version and its
# SBOM are in build/cli/<architecture>.
#
# usage: files.sh ARCHITECTURE...
set -eu

cd "$(dirname "$0")/../.."
export CGO_ENABLED=0 GOWORK=off GOOS=linux

mkdir -p build/tools
roots="$PWD/build/tools/roots.pem"
(cd tools/roots && GOOS='' go run . "$roots")

for arch in "$@"; do
	files="build/image/$arch"
	rm -rf "$files"
	mkdir -p "$files/etc/ssl/certs"
	GOARCH="$arch" go build -trimpath -tags "${TAGS:-grpcnotrace}" -ldflags "-s -w" -o "$files/plimsoll-hub" ./cmd/plimsoll-hub
	(cd tools/sbom && GOOS='' GOARCH='' go run . "$OLDPWD/$files/plimsoll-hub" "$OLDPWD/$files/sbom.cdx.json")
	cp "$files/sbom.cdx.json" "build/image/$arch.cdx.json"
	cp "$roots" "$files/etc/ssl/certs/ca-certificates.crt"
	cp LICENSE "$files/LICENSE"
	cli="build/cli/$arch"
	mkdir -p "$cli"
	GOARCH="$arch" go build -trimpath -tags "${TAGS:-grpcnotrace}" -ldflags "-s -w" -o "$cli/plimsoll" ./cmd/plimsoll
	(cd tools/sbom && GOOS='' GOARCH='' go run . "$OLDPWD/$cli/plimsoll" "$OLDPWD/$cli/plimsoll.cdx.json")
	# Whoever the container runs as can read it.
	chmod -R a+rX "$files"
done
