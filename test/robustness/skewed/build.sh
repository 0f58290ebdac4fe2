#!/usr/bin/env bash
# Builds build/robustness/plimsoll-hub-skewed: the hub with a standard library whose time.Now is wrong by the duration in
# ROBUSTNESS_CLOCK_SKEW. Only the wall clock is: the monotonic clock goes on as it does. The product's code is the same.
set -euo pipefail
cd "$(dirname "$0")/../../.."
go=${GO:-go} out=build/robustness tags=${TAGS:-}
source=$($go env GOROOT)/src/time/time.go
mkdir -p "$out/_overlay"

# time.Now reads the clock once; the seconds that it has read are what is changed.
awk '
	/^func Now\(\) Time \{/ { inside = 1 }
	{ print }
	inside && /sec, nsec, mono := runtimeNow\(\)/ { print "\tsec += skewSeconds"; done++ }
	/^}/ { inside = 0 }
	END { if (done != 1) { print "time.Now is not as this script knows it" > "/dev/stderr"; exit 1 } }
' "$source" >"$out/_overlay/time.go"
cat >"$out/_overlay/skew.go" <<'GO'
package time

import "syscall"

var skewSeconds = func() int64 {
	text, _ := syscall.Getenv("ROBUSTNESS_CLOCK_SKEW")
	skew, _ := ParseDuration(text)
	return int64(skew / Second)
}()
GO
printf '{"Replace": {"%s": "%s", "%s": "%s"}}\n' \
	"$source" "$PWD/$out/_overlay/time.go" "$(dirname "$source")/skew.go" "$PWD/$out/_overlay/skew.go" >"$out/overlay.json"
$go build -overlay "$out/overlay.json" -tags "$tags" -o "$out/plimsoll-hub-skewed" ./cmd/plimsoll-hub
