#!/bin/sh
# Prints the commit that holds the API as it landed last: where this branch left BASE (or origin/BASE), or the commit before when
# that is this one. Prints nothing, and says why, when the clone knows none. It needs no network.
# Usage: base.sh BASE
set -eu

for ref in "$1" "origin/$1"; do
	base=$(git merge-base HEAD "$ref" 2>/dev/null) || continue
	if [ "$base" != "$(git rev-parse HEAD)" ] || base=$(git rev-parse --verify --quiet HEAD^); then
		echo "$base"
		exit 0
	fi
done
if git rev-parse --verify --quiet HEAD^ 2>/dev/null; then
	exit 0
fi
echo "breaking changes of the API are not looked for: this clone has neither $1 nor a commit before HEAD" >&2
