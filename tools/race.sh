#!/bin/sh
# Runs go test with the race detector, and repeats on one processor the packages in which the race detector itself crashed.
#
# Go's fake clock (testing/synctest) runs the timers of a bubble in one context of the race detector; two goroutines that read
# expired timers at the same moment use it at once and corrupt it (golang/go#78156). On one processor that cannot happen. Such
# a crash is no result of a test; a package with a failed test or a data race is never repeated.
#
# usage: race.sh PACKAGES [FLAGS]  (PACKAGES is one argument)
set -u

go=${GO:-go}
packages=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# shellcheck disable=SC2086 # one argument for each package
{ CGO_ENABLED=1 $go test -race "$@" $packages 2>&1; echo $? >"$scratch/status"; } | tee "$scratch/log"
status=$(cat "$scratch/status")
[ "$status" != 0 ] || exit 0

# Prints the packages that only a crash of the race detector failed, or nothing if something else failed as well. Go prints
# the output of a package before the line with its result, and of a signal in other code than Go's its PC and sigcode.
crashed=$(awk '
	/^SIGSEGV: / { segv = 1 }
	/^PC=0x[0-9a-f]+ m=[0-9]+ sigcode=/ && segv { crash = 1 }
	/^ThreadSanitizer: CHECK failed: / { crash = 1 }
	/^[ \t]*--- FAIL: |^WARNING: DATA RACE|^panic: / { defect = 1 }
	/^(ok|FAIL|\?|---)[ \t]+[^ \t]+\// {
		if ($1 == "FAIL") { if (crash && !defect) again = again " " $2; else other = 1 }
		segv = crash = defect = 0
	}
	END { if (!other) print again }' "$scratch/log")
[ -n "$crashed" ] || exit "$status"

echo "*** THE RACE DETECTOR CRASHED (golang/go#78156): once more, on one processor:$crashed"
# shellcheck disable=SC2086
CGO_ENABLED=1 $go test -race "$@" -cpu 1 $crashed
