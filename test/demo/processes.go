package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processID distinguishes a process from a later one with the same number.
type processID struct {
	pid     int
	started string // in the kernel's own count
}

// descendants are the processes that this one has started, and those that they have. It is not ok where the system has no
// /proc to read them from.
func descendants() (found map[processID]string, ok bool) {
	parents := map[int]int{}
	seen := map[int]processID{}
	names := map[int]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range paths {
		stat, err := readStat(path)
		if err != nil {
			continue // it has just ended
		}
		parents[stat.id.pid], seen[stat.id.pid], names[stat.id.pid] = stat.parent, stat.id, stat.name
	}
	found = map[processID]string{}
	self := os.Getpid()
	for pid := range parents {
		for ancestor := parents[pid]; ancestor > 1; ancestor = parents[ancestor] {
			if ancestor == self {
				found[seen[pid]] = names[pid]
				break
			}
		}
	}
	return found, len(paths) > 0
}

// stillThere are those of the processes that have not ended.
func stillThere(processes map[processID]string) []string {
	var names []string
	for id, name := range processes {
		stat, err := readStat("/proc/" + strconv.Itoa(id.pid) + "/stat")
		if err == nil && stat.id == id {
			names = append(names, name+" ("+strconv.Itoa(id.pid)+")")
		}
	}
	return names
}

// stat is what we read of /proc/PID/stat.
type stat struct {
	id     processID
	parent int
	name   string
}

func readStat(path string) (stat, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return stat{}, err
	}
	// The name stands in brackets and may hold anything, brackets and blanks included; what follows are numbers.
	text := string(content)
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return stat{}, os.ErrInvalid
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 20 {
		return stat{}, os.ErrInvalid
	}
	pid, err := strconv.Atoi(strings.TrimSpace(text[:open]))
	if err != nil {
		return stat{}, err
	}
	parent, err := strconv.Atoi(fields[1])
	return stat{id: processID{pid, fields[19]}, parent: parent, name: text[open+1 : end]}, err
}
