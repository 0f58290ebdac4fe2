package hub

import (
	"errors"
	"strconv"
	"strings"
)

const shareRule = `a number of replicas from 1 to 10000, or a percentage from "1%" to "100%"`

// Share is a part of a workload's replicas: a number of them, or a percentage. One of the two is zero.
type Share struct{ Replicas, Percent int }

// String gives the share as it stands in a configuration.
func (s Share) String() string {
	if s.Percent > 0 {
		return strconv.Itoa(s.Percent) + "%"
	}
	return strconv.Itoa(s.Replicas)
}

// UnmarshalText reads a share as it stands in a configuration.
func (s *Share) UnmarshalText(text []byte) error {
	digits, percent := strings.CutSuffix(string(text), "%")
	n, err := strconv.Atoi(digits)
	most := 10000
	if percent {
		most = 100
	}
	if err != nil || n < 1 || n > most {
		return errors.New("must be " + shareRule)
	}
	if *s = (Share{Replicas: n}); percent {
		*s = Share{Percent: n}
	}
	return nil
}
