package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A load average says little within seconds, so we count: cpuTime is what the machine's processors have done since it
// started, in ticks.
type cpuTime struct{ idle, all uint64 }

// readCPU reads the first line of /proc/stat: "cpu" and ticks by kind, the fourth and fifth of which are idle.
func readCPU() (t cpuTime, err error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, fmt.Errorf("read the CPU times: %w", err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	for i, field := range strings.Fields(line)[1:] {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return t, fmt.Errorf("read the CPU times: %w", err)
		}
		t.all += ticks
		if i == 3 || i == 4 {
			t.idle += ticks
		}
	}
	return t, nil
}

// busySince is the share of the time since then, in percent, that the processors were at work for whomever.
func (t cpuTime) busySince(then cpuTime) float64 {
	all := t.all - then.all
	if all == 0 {
		return 0
	}
	return 100 * (1 - float64(t.idle-then.idle)/float64(all))
}
