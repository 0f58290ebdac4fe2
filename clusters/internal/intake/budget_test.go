package intake

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestTheCachesOfAMemberAreBoundedTogether(t *testing.T) {
	g := NewWithT(t)
	of := NewMemberBudget(100, 60, 10)
	pods, nodes := NewKindBudget(of), NewKindBudget(of)
	g.Expect(pods.add(60)).To(Succeed())
	g.Expect(nodes.add(40)).To(Succeed())
	g.Expect(nodes.add(1)).To(MatchError(ErrTooLarge), "though a kind may have more")
	g.Expect(nodes.add(-11)).To(Succeed())
	g.Expect(pods.add(1)).To(MatchError(ErrTooLarge), "though the member may have more")
	g.Expect(pods.add(-61)).To(Succeed())
	g.Expect(of.Used.Load()).To(BeEquivalentTo(30))
}

func TestOnlySoManyListsOfAMemberAreReadAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		of := NewMemberBudget(1<<20, 1<<20, 10)
		goOn := make(chan struct{})
		var begun atomic.Int32
		var lists sync.WaitGroup
		for range 2 * listsAtOnce {
			meter := NewMeter(&toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				begun.Add(1)
				<-goOn
				return &corev1.PodList{}, nil
			}}, NewKindBudget(of), func(object any) (any, error) { return object, nil })
			lists.Go(func() {
				if _, err := meter.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		g.Expect(begun.Load()).To(BeEquivalentTo(listsAtOnce), "the others wait")
		close(goOn)
		lists.Wait()
		g.Expect(begun.Load()).To(BeEquivalentTo(2*listsAtOnce), "and have their turn")
	})
}
