package placing

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// keeper is a controller that keeps the history of a toy's FleetPlacement.
func keeper(t *testing.T, hub client.WithWatch) *Controller {
	return &Controller{Options: Options{Hub: hub, History: types.NamespacedName{Namespace: "hub", Name: "past"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}}
}

// remembers makes a round about a toy, and waits for what it began.
func remembers(t *testing.T, c *Controller, y *toy) {
	t.Helper()
	c.remember(t.Context(), []*item{y.decide()}, y.now)
	c.agents.wait()
}

func TestTheFleetsHistoryIsKeptAndSurvivesARestart(t *testing.T) {
	y := newToy(t, seventy(30, 3))
	y.settle(0)
	hub := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "past"}}).Build()
	kept := func() *corev1.ConfigMap {
		t.Helper()
		found := &corev1.ConfigMap{}
		if err := hub.Get(t.Context(), types.NamespacedName{Namespace: "hub", Name: "past"}, found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	c := keeper(t, hub)
	rounds := func() {
		for range 3 {
			y.now = y.now.Add(historyWrites)
			remembers(t, c, y)
		}
	}
	rounds()
	first := kept()
	if len(first.Data) != 3 || strings.Count(first.Data["shop.web_a.json"], `"t":`) != 1 {
		t.Fatalf("%v", first.Data)
	}
	rounds() // at rest nothing is written
	if again := kept(); again.ResourceVersion != first.ResourceVersion {
		t.Error("it is written at rest")
	}
	c = keeper(t, hub)
	rounds()
	if again := kept(); again.ResourceVersion != first.ResourceVersion {
		t.Error("it is written after a restart")
	}
	v := y.views["a"]
	v.SpotDrySince = y.now
	rounds()
	if got := kept().Data["shop.web_a.json"]; strings.Count(got, `"t":`) != 2 {
		t.Errorf("of a drought: %s", got)
	}
}

func TestAHistoryThatCannotBeKeptIsLeftAlone(t *testing.T) {
	y := newToy(t, seventy(30, 3))
	y.settle(0)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "past"}, Data: map[string]string{"app.properties": "a=b"}}
	for name, objects := range map[string][]client.Object{"nobody made it": nil, "it is somebody else's": {theirs}} {
		hub := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
		c := keeper(t, hub)
		for range 20 {
			y.now = y.now.Add(time.Minute)
			remembers(t, c, y)
		}
		found := &corev1.ConfigMap{}
		err := hub.Get(t.Context(), types.NamespacedName{Namespace: "hub", Name: "past"}, found)
		if len(objects) == 0 != (err != nil) || (err == nil && found.Data["app.properties"] != "a=b") || len(found.Data) > 1 {
			t.Errorf("%s: %v, %v", name, found.Data, err)
		}
	}
}
