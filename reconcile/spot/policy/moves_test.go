package policy_test

import (
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestABatchIsAShareOfTheReplicasAndAtLeastOne(t *testing.T) {
	for value, want := range map[string]map[int]int{
		"10%": {1: 1, 9: 1, 10: 1, 19: 1, 20: 2, 100: 10}, "100%": {1: 1, 7: 7}, "3": {1: 3, 100: 3}, "1%": {50: 1, 300: 3},
	} {
		limit, err := policy.ParseMoveLimit(value)
		if err != nil {
			t.Fatal(err)
		}
		for n, moves := range want {
			if got := limit.Of(n); got != moves {
				t.Errorf("%s of %d is %d, want %d", value, n, got, moves)
			}
		}
	}
	for _, bad := range []string{"", "0", "0%", "101%", "-1", "ten", "1.5%", "%"} {
		if _, err := policy.ParseMoveLimit(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
