package report

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestTheJournalKeepsTheLastMovesOfAWorkload(t *testing.T) {
	var j Journal
	key := policy.WorkloadKey{Kind: "Deployment", NamespacedName: types.NamespacedName{Namespace: "shop", Name: "cart"}}
	for i := range 25 {
		j.RecordMove(key, Move{At: spottest.Epoch.Add(time.Duration(i) * time.Second)})
	}
	moves := j.LastMoves(key)
	if len(moves) != keptMoves || !moves[0].At.Equal(spottest.Epoch.Add(24*time.Second)) || !moves[9].At.Equal(spottest.Epoch.Add(15*time.Second)) {
		t.Errorf("moves %+v", moves)
	}
	j.RecordPlan(key, Planned{At: spottest.Epoch})
	j.Forget(key)
	if _, ok := j.LastPlan(key); ok || len(j.LastMoves(key)) > 0 {
		t.Error("a workload that is gone is remembered")
	}
}
