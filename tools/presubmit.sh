#!/bin/sh
# Vets, lints and tests the packages of the root module that differ from $BASE, changes that are not committed included. Packages
# below test/ are vetted and linted only: their tests need control planes.
set -eu
base=$(git merge-base "$BASE" HEAD)
dirs=$({ git diff --name-only "$base" -- '*.go' '*/testdata/*' && git ls-files --others --exclude-standard -- '*.go'; } |
	sed -e 's|/testdata/.*|/x|' -e 's|^|./|' -e 's|/[^/]*$||' | sort -u)
packages=
for dir in $dirs; do
	# Deleted packages and those of other modules are left out.
	if found=$($GO list "$dir" 2>/dev/null); then packages="$packages $found"; fi
done
if [ -z "$packages" ]; then
	echo "no package differs from $BASE"
	exit 0
fi
echo "differs from $BASE:$packages"
# shellcheck disable=SC2086 # one argument for each package
$GO vet $packages
(
	prefix=$($GO list -m)
	# shellcheck disable=SC2086
	"$GOLANGCI" run --allow-parallel-runners $(printf '%s\n' $packages | sed "s|^$prefix|.|")
)
units=$(printf '%s\n' $packages | grep -v /test/ || true)
# shellcheck disable=SC2086
[ -z "$units" ] || $GO test $TESTFLAGS $units
