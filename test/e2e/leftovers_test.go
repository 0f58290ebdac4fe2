package e2e

import (
	"errors"
	"os"
	"testing"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

func TestTheNextStartRemovesContainersAndNetworksOfAKilledRun(t *testing.T) {
	needEngine(t)
	t.Setenv("TMPDIR", t.TempDir()) // other runs on this machine have marks elsewhere
	ctx := t.Context()
	yards := map[string]*yard{}
	for _, name := range []string{"killed", "living"} {
		y, err := newYard(ctx)
		if err != nil {
			t.Fatal(err)
		}
		y.prefix += "sweep-" + name + "-"
		t.Cleanup(func() { _ = y.clear() })
		if err := errors.Join(y.network(ctx, "net"), y.create(ctx, "hub", testcontainers.ContainerRequest{Image: hubImage}), y.connect(ctx, "net", "hub")); err != nil {
			t.Fatal(err)
		}
		yards[name] = y
	}
	if err := yards["killed"].mark.file.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	next, err := newYard(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.clear() })
	for name, stays := range map[string]bool{"killed": false, "living": true} {
		own := labelled(yards[name].mark.labels())
		containers, err := next.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: own})
		if err != nil || (len(containers.Items) > 0) != stays {
			t.Errorf("containers of the %s run: %v, error %v", name, containers.Items, err)
		}
		networks, err := next.engine.NetworkList(ctx, client.NetworkListOptions{Filters: own})
		if err != nil || (len(networks.Items) > 0) != stays {
			t.Errorf("networks of the %s run: %v, error %v", name, networks.Items, err)
		}
	}
}

func TestOnlyWhatTheDeadHaveLeftIsCleared(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	living, err := newMark()
	if err != nil {
		t.Fatal(err)
	}
	defer living.remove()
	dead, err := newMark()
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.file.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	cleared := func(path string) (did bool, err error) {
		err = ifDead(path, func() error { did = true; return nil })
		return did, err
	}
	if did, err := cleared(living.path); did || !errors.Is(err, errAlive) {
		t.Errorf("of the living was cleared: %t, error %v", did, err)
	}
	if did, err := cleared(dead.path); !did || err != nil {
		t.Errorf("of the dead was cleared: %t, error %v", did, err)
	}
	if _, err := os.Stat(dead.path); !os.IsNotExist(err) {
		t.Errorf("the mark of the dead is still there: %v", err)
	}
	// What a machine that was restarted has left has no mark any more.
	if did, err := cleared(dead.path); !did || err != nil {
		t.Errorf("without a mark was cleared: %t, error %v", did, err)
	}
	if did, err := cleared("/etc/passwd"); did || err == nil {
		t.Errorf("of a stranger was cleared: %t, error %v", did, err)
	}
}

func TestWhatCannotBeClearedKeepsItsMark(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dead, err := newMark()
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.file.Close(); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the engine is busy")
	if err := ifDead(dead.path, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(dead.path); err != nil {
		t.Errorf("its mark is lost: %v", err)
	}
}
