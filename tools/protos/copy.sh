#!/bin/sh
# Copies the third-party .proto files that ours import out of the pinned Go modules, since buf's registry may be out of reach.
# Usage: copy.sh DIRECTORY   (made again; it is the second module of buf.yaml)
set -eu

case $1 in
/*) out=$1 ;;
*) out=$PWD/$1 ;;
esac
cd "$(dirname "$0")"

# take MODULE FOLDER FILE...: FILE keeps its path below FOLDER of MODULE, because that is the path it is imported by.
take() {
	module=$1
	folder=$2
	shift 2
	go mod download "$module"
	source=$(go list -m -f '{{.Dir}}' "$module")/$folder
	for file; do
		mkdir -p "$out/$(dirname "$file")"
		cp "$source/$file" "$out/$file"
		chmod 644 "$out/$file"
	done
}

rm -rf "$out"
take github.com/grpc-ecosystem/grpc-gateway third_party/googleapis google/api/annotations.proto google/api/http.proto
take github.com/bufbuild/protovalidate proto/protovalidate buf/validate/validate.proto
