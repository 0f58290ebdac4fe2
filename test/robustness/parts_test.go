package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTheSameSeedGivesTheSameFaults(t *testing.T) {
	one, same, other := newSchedule(7, 0, linkFaults), newSchedule(7, 0, linkFaults), newSchedule(8, 0, linkFaults)
	differs := false
	for range 3 * len(linkFaults) {
		a, holdA := one.next()
		b, holdB := same.next()
		c, _ := other.next()
		if a.name != b.name || holdA != holdB {
			t.Fatalf("got %s for %s, and %s for %s", a.name, holdA, b.name, holdB)
		}
		differs = differs || a.name != c.name
	}
	if !differs {
		t.Error("another seed gives the same faults")
	}
}

func TestEveryFaultComesBeforeOneComesAgain(t *testing.T) {
	s, seen := newSchedule(1, 0, leaseFaults), map[string]int{}
	for range 2 * len(leaseFaults) {
		chosen, _ := s.next()
		seen[chosen.name]++
	}
	for name, n := range seen {
		if n != 2 {
			t.Errorf("%s came %d times of 2", name, n)
		}
	}
}

func TestFaultsThatAreJudgedByNameExist(t *testing.T) {
	names := map[string]bool{}
	for _, lane := range lanes {
		for _, f := range lane.faults {
			names[f.name] = true
		}
	}
	for _, judged := range []map[string]bool{blinding, disowning} {
		for name := range judged {
			if !names[name] {
				t.Errorf("there is no fault %q", name)
			}
		}
	}
}

func TestAProxyKnowsWhoseConnectionItIs(t *testing.T) {
	known := newConnections()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(processOf(r.Context())))
	}))
	server.Config.ConnContext = known.context
	server.Start()
	defer server.Close()
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("there is no /proc here: ", err)
	}
	if got := get(t, server.URL); got != judge {
		t.Errorf("got %q, want ourselves", got)
	}
	known.remove(os.Getpid())
	server.CloseClientConnections()
	if got := get(t, server.URL); got != "" {
		t.Errorf("got %q, want nobody", got)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var body [64]byte
	n, _ := response.Body.Read(body[:])
	return string(body[:n])
}

func TestSocketsAreFoundInTheKernelsTable(t *testing.T) {
	address, err := socketAddress(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080})
	if err != nil || address != "0100007F:1F90" {
		t.Fatalf("got %s, error %v", address, err)
	}
	table := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 20 4 30 10 -1\n"
	if inode, err := inodeOf(table, address, "0100007F:0050"); err != nil || inode != "4711" {
		t.Errorf("got %s, error %v", inode, err)
	}
	if _, err := inodeOf(table, address, "0100007F:0051"); err == nil {
		t.Error("a socket was found that is not there")
	}
}

// through sends a request through a disturbed link. It is not ok when the client got no answer in time.
func through(t *testing.T, l *links, query string, patience time.Duration) (arrived, ok bool) {
	t.Helper()
	handler := l.intercept("a", func(string, *http.Request) func(int) { return nil })(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived = true
		w.WriteHeader(http.StatusOK)
	}))
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), processKey{}, "r1.1"), patience)
	defer cancel()
	defer func() {
		if problem := recover(); problem != nil && problem != any(http.ErrAbortHandler) {
			panic(problem)
		}
	}()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, "/"+query, nil))
	return arrived, true
}

func TestLinksLoseOneDirection(t *testing.T) {
	const watch = "?watch=true"
	for name, c := range map[string]struct {
		wrong       disturbance
		query       string
		arrived, ok bool
	}{
		"nothing":                    {disturbance{}, "", true, true},
		"requests":                   {disturbance{NoRequests: true}, "", false, false},
		"answers":                    {disturbance{NoAnswers: true}, "", true, false},
		"stale, and not a watch":     {disturbance{Stale: true}, "", true, true},
		"slow, and a watch":          {disturbance{Slow: time.Hour}, watch, true, true},
		"slow":                       {disturbance{Slow: time.Hour}, "", true, false},
		"slow, and within the limit": {disturbance{Slow: time.Millisecond}, "", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLinks()
			l.set(link{"r2", "a"}, disturbance{NoRequests: true}) // which is another one
			l.set(link{"r1", "a"}, c.wrong)
			patience := 50 * time.Millisecond
			if c.ok {
				patience = time.Minute
			}
			if arrived, ok := through(t, l, c.query, patience); arrived != c.arrived || ok != c.ok {
				t.Errorf("arrived %t and answered %t, want %t and %t", arrived, ok, c.arrived, c.ok)
			}
		})
	}
}

func TestFiguresJoinThoseThatAreThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "build", "bench.json")
	for _, added := range [][]figure{
		{{"failover-s", 5, "s"}, {"robustness-faults", 1, "faults"}},
		{{"robustness-faults", 60, "faults"}, {"robustness-lost-orders", 0, "orders"}},
	} {
		if err := mergeFigures(path, added); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `[
  {
    "name": "failover-s",
    "value": 5,
    "unit": "s"
  },
  {
    "name": "robustness-faults",
    "value": 60,
    "unit": "faults"
  },
  {
    "name": "robustness-lost-orders",
    "value": 0,
    "unit": "orders"
  }
]
`
	if string(content) != want {
		t.Errorf("got %s", content)
	}
}

// What is found in a run says something only when there was enough to find it in.
func TestARunWithTooFewFaultsFails(t *testing.T) {
	ten, two := Options{Duration: 10 * time.Minute}, Options{Duration: 10 * time.Minute, Faults: 2}
	for name, c := range map[string]struct {
		outcome Outcome
		options Options
		fails   bool
	}{
		"60 in ten minutes":                         {outcome: Outcome{Faults: make([]Injection, 60), Writes: 1, Orders: 1}, options: ten},
		"59 in ten minutes":                         {outcome: Outcome{Faults: make([]Injection, 59), Writes: 1, Orders: 1}, options: ten, fails: true},
		"a round of two":                            {outcome: Outcome{Faults: make([]Injection, 2), Writes: 1, Orders: 1}, options: two},
		"a round of two of which one made no sense": {outcome: Outcome{Faults: make([]Injection, 1), Writes: 1, Orders: 1}, options: two, fails: true},
		"nobody wrote":                              {outcome: Outcome{Faults: make([]Injection, 60), Orders: 1}, options: ten, fails: true},
		"nobody ordered":                            {outcome: Outcome{Faults: make([]Injection, 60), Writes: 1}, options: ten, fails: true},
	} {
		if err := c.outcome.enough(c.options); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
