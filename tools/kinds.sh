#!/bin/sh
# kinds.sh CONTROLLER-GEN CRD-OPTIONS KINDS OUT: generates CRDs and copy functions of the kinds below KINDS into OUT, and
# fails with the difference when that is not what is committed.
set -eu
generator=$1 crds=$2 kinds=$3 out=$4/$3
"$generator" "$crds" "paths=./$kinds/..." "output:crd:dir=$out/crd"
diff -u "$kinds/crd" "$out/crd" | grep -v '^Only in [^:]*: .*\.go$' >"$out/diff" || true
for package in "$kinds"/v*/; do
	version=$(basename "$package")
	"$generator" object "paths=./$kinds/$version" "output:object:dir=$out/$version"
	diff -u "$kinds/$version/zz_generated.deepcopy.go" "$out/$version/zz_generated.deepcopy.go" >>"$out/diff" || true
done
if [ -s "$out/diff" ]; then
	cat "$out/diff"
	echo "what is generated from $kinds is not current: run make generate, and commit what it writes"
	exit 1
fi
