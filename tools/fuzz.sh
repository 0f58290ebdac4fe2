#!/bin/sh
# Runs every fuzz target of the module. With KEEP=1 the shortest inputs that reached new code are copied into
# testdata/fuzz, where go test and the next run find them; those that fail a target are written there in any case.
#
# usage: fuzz.sh TIME (for each target, as 30s)
set -eu

go=${GO:-go}
kept=20       # inputs for each target
longest=2048  # bytes of one
cache=$("$go" env GOCACHE)/fuzz
failed=

for package in $("$go" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do
	dir=$("$go" list -f '{{.Dir}}' "$package")
	grep -qs '^func Fuzz' "$dir"/*_test.go || continue
	for target in $("$go" test -list '^Fuzz' "$package" | grep '^Fuzz'); do
		echo "$package $target"
		# By default an input that reaches new code is made smaller for up to a minute, in which nothing else is tried.
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 3s "$package" || failed="$failed $target"
		[ "${KEEP:-}" = 1 ] && [ -d "$cache/$package/$target" ] || continue
		into=$dir/testdata/fuzz/$target
		mkdir -p "$into"
		have=$(find "$into" -type f | wc -l)
		find "$cache/$package/$target" -type f -size -${longest}c -printf '%s %p\n' | sort -n | cut -d' ' -f2- |
			head -n $((kept > have ? kept - have : 0)) | while read -r input; do cp -n "$input" "$into/"; done
	done
done
if [ -n "$failed" ]; then
	echo "failed:$failed" >&2
	exit 1
fi
