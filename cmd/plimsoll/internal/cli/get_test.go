package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func TestGetPrintsEveryFormat(t *testing.T) {
	h := startHub(t)
	for args, want := range map[string]string{
		"get clusters -o name":                                                          "cluster/prod-eu\ncluster/us\ncluster/zz [31m\n",
		"list clusters prod-eu prod-us -o name":                                         "cluster/prod-eu\ncluster/prod-us\n",
		"get cluster prod-eu -o jsonpath={.clusters[0].state}":                          "CLUSTER_STATE_READY",
		"get clusters -o jsonpath={.clusters[*].name}":                                  "prod-eu us zz\x1b[31m",
		"get workloads -o go-template={{range.workloads}}{{.name}},{{end}}":             "cart,database-primary,",
		"get workloads -o name":                                                         "workload/prod-eu/shop/deployment/cart\nworkload/prod-us/data/statefulset/database-primary\n",
		"get controllers -o name":                                                       "controller/prod-eu/deployment-spot\ncontroller/us/fleet-config\n",
		"describe cluster prod-eu -o name":                                              "cluster/prod-eu\n",
		"describe workload prod-eu deployment/cart -n shop -o name":                     "workload/prod-eu/shop/deployment/cart\n",
		"requeue prod-eu deploy cart -n shop -o name":                                   "operation/w.prod-eu.1\n",
		"requeue prod-eu limits -n shop --controller fleet-config -o jsonpath={.state}": "OPERATION_STATE_PENDING",
		"get objects --cluster prod-eu --controller fleet-config -n shop -o name":       "object/prod-eu/fleet-config/shop/limits\nobject/prod-eu/fleet-config/whole\n",
		"requeue --filter true --cluster prod-eu --controller webapp -o name":           "object/prod-eu/webapp/shop/cart\n",
	} {
		got := h.run(t, strings.Fields(args)...)
		if got.code != exitOK || got.out != want {
			t.Errorf("plimsoll %s: %+v, want %q", args, got, want)
		}
	}
}

func TestWideTablesHaveMoreColumns(t *testing.T) {
	h := startHub(t)
	for resource, want := range map[string]string{"clusters": "LAST-PROBE", "workloads": "MIN-ON-DEMAND", "objects --cluster prod-eu --controller fleet-config -n shop": "TOOK"} {
		narrow := h.run(t, strings.Fields("get "+resource)...)
		wide := h.run(t, strings.Fields("get "+resource+" -o wide")...)
		if wide.code != exitOK || !strings.Contains(wide.out, want) || strings.Contains(narrow.out, want) {
			t.Errorf("%s:\n%s\n%s", resource, narrow.out, wide.out)
		}
	}
}

func TestAFloorThatNoBudgetProtectsHasASignInTheWideTable(t *testing.T) {
	wide := startHub(t).run(t, "get", "workloads", "-o", "wide").out
	lines := strings.Split(wide, "\n")
	if len(lines) < 3 || !strings.HasSuffix(lines[0], "UNPROTECTED") || !strings.Contains(lines[1], "cart") || !strings.HasSuffix(lines[1], " yes") || !strings.HasSuffix(lines[2], " no") {
		t.Errorf("cart alone is unprotected:\n%s", wide)
	}
}

func TestTheShortFormsAreTheSameLists(t *testing.T) {
	h := startHub(t)
	for short, full := range map[string]string{
		"clusters": "get clusters", "workloads": "get workloads", "controllers": "get controllers", "cluster prod-eu": "describe cluster prod-eu",
		"workload prod-eu shop/deploy/cart": "describe workload prod-eu deploy cart -n shop",
	} {
		if a, b := h.run(t, strings.Fields(short)...), h.run(t, strings.Fields(full)...); a != b || a.code != exitOK {
			t.Errorf("%s: %+v\n%s: %+v", short, a, full, b)
		}
	}
}

// busyObjects are what is failing or ran recently.
func busyObjects() []*plimsollv1.ObjectState {
	ran := func(member string, outcome plimsollv1.ReconcileOutcome, ago, took time.Duration) *plimsollv1.ObjectState {
		return &plimsollv1.ObjectState{
			Key: &plimsollv1.ObjectKey{Cluster: member, Controller: "webapp", Name: "x"}, LastOutcome: outcome, Attempts: 4,
			LastStartedAt: timestamppb.New(now.Add(-ago - took)), LastFinishedAt: timestamppb.New(now.Add(-ago)),
		}
	}
	done, failed := plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_DONE, plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_TIMEOUT
	return []*plimsollv1.ObjectState{
		ran("prod-eu", done, time.Second, 20*time.Millisecond), ran("prod-eu", done, 2*time.Second, 40*time.Millisecond),
		ran("prod-eu", done, 59*time.Second, 3*time.Second), ran("us", failed, time.Hour, 30*time.Second), ran("gone", failed, time.Second, time.Second),
	}
}

func TestTopShowsTheBusiestFirst(t *testing.T) {
	got := startHub(t).run(t, "top")
	if got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	golden(t, "top.golden", got.out)
}

func TestVersionsOfClientAndHub(t *testing.T) {
	h := startHub(t)
	if got := h.run(t, "version"); got.code != exitOK || got.out != "Client Version: "+clientVersion()+"\nHub Version: v1.2.3\n" {
		t.Errorf("%+v", got)
	}
	if got := h.run(t, "version", "-o", "jsonpath={.hubVersion}"); got.code != exitOK || got.out != "v1.2.3" {
		t.Errorf("%+v", got)
	}
	if got := plimsoll(t, nil, "version", "--client"); got.code != exitOK || got.out != "Client Version: "+clientVersion()+"\n" {
		t.Errorf("%+v", got)
	}
	if got := plimsoll(t, nil, "version", "--server", "127.0.0.1:1", "--insecure-plaintext"); got.code != exitUnavailable || !strings.HasPrefix(got.out, "Client Version: ") {
		t.Errorf("%+v", got)
	}
	h.fail = status.Error(codes.PermissionDenied, "you may not list clusters") // its version is no secret from those who may do nothing
	if got := h.run(t, "version"); got.code != exitOK || !strings.HasSuffix(got.out, "\nHub Version: v1.2.3\n") {
		t.Errorf("%+v", got)
	}
}

func TestCheckFindsAClockThatIsWrong(t *testing.T) {
	for ahead, want := range map[time.Duration]int{0: exitOK, 29 * time.Second: exitOK, -time.Minute: exitFailed, time.Hour: exitFailed} {
		h := startHub(t)
		h.ahead = ahead
		got := h.run(t, "check", "prod-eu")
		if got.code != want || strings.Contains(got.out, "hub: its clock differs by "+ahead.Abs().String()) != (want != exitOK) {
			t.Errorf("%s: %+v", ahead, got)
		}
	}
}

func TestCheckOfTheHub(t *testing.T) {
	for name, c := range map[string]struct {
		hub  aboutHub
		want string
	}{
		"well":        {aboutHub{version: "(devel)", certificate: now.Add(8 * 24 * time.Hour)}, ""},
		"no TLS":      {aboutHub{}, ""},
		"expires":     {aboutHub{certificate: now.Add(time.Hour)}, "the certificate of its API expires at 2026-03-01T13:00:00Z"},
		"has expired": {aboutHub{certificate: now.Add(-time.Hour)}, "the certificate of its API expired at 2026-03-01T11:00:00Z"},
		"is older":    {aboutHub{version: "v1.2.2"}, "its version is v1.2.2, but the version of this command is v1.2.3"},
		"is the same": {aboutHub{version: "v1.2.3"}, ""},
	} {
		problems := problemsOfHub(c.hub, "v1.2.3", now)
		if len(problems) == 0 != (c.want == "") || len(problems) > 0 && (problems[0].what != c.want || problems[0].remedy == "") {
			t.Errorf("%s: %+v", name, problems)
		}
	}
}

func TestNamesAreCompletedFromTheHub(t *testing.T) {
	h := startHub(t)
	for args, want := range map[string]string{
		"explain p":                       "prod-eu",
		"explain prod-eu ":                "shop/deployment/cart",
		"explain prod-eu -n shop dep":     "deployment/cart",
		"get workloads --cluster u":       "us",
		"get objects --controller fleet":  "fleet-config",
		"describe cluster prod":           "prod-eu",
		"get clusters -o j":               "json",
		"get workloads -n d":              "data\n:4",
		"get objects -n s":                "shop\n:4",
		"requeue -n s":                    "shop\n:4",
		"cancel w":                        "w.prod-eu.1\n:4",
		"what-if a b --strategy r":        "release\n:4",
		"get clusters --filter ":          ":4",
		"top ":                            ":4",
		"replay ":                         ":0",
		"pause workload --context nobody": ":4",
	} {
		words := strings.Split(args, " ")
		if flags := []string{"--insecure-plaintext"}; words[0] == "get" || words[0] == "describe" {
			words = slices.Insert(words, 2, flags...)
		} else if words[0] == "explain" || words[0] == "requeue" || words[0] == "cancel" {
			words = slices.Insert(words, 1, flags...)
		}
		got := plimsoll(t, map[string]string{"PLIMSOLL_TOKEN": canary, "PLIMSOLL_API": h.address}, append([]string{"__complete"}, words...)...)
		if got.code != exitOK || !strings.Contains(got.out, want) {
			t.Errorf("%s: %+v, want %s", args, got, want)
		}
	}
}
