#!/bin/sh
# Downloads the modules that each go.mod of the repository names. Where that fails, it is tried again, with twice the pause each time: Go
# itself never does, and then a lost answer of the module proxy fails a step that needs one of a thousand modules. What still fails is
# reported, and left to the step that needs it. tools/protos is no complete module, so Go would change its go.sum.
#
# usage: download.sh  (PAUSE is the first pause in seconds, TRIES how often)
set -u

go=${GO:-go}
tries=${TRIES:-5}
for module in $(git ls-files 'go.mod' '*/go.mod' ':!tools/protos'); do
	try=1 pause=${PAUSE:-5}
	until message=$(cd "$(dirname "$module")" && $go mod download 2>&1); do
		echo "$module, try $try of $tries: $message" >&2
		[ "$try" -lt "$tries" ] || break
		sleep "$pause"
		try=$((try + 1)) pause=$((pause * 2))
	done
done
