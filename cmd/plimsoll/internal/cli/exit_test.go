package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func TestMistakesInTheCommandLineAreExplained(t *testing.T) {
	for line, want := range map[string]string{
		"nonsense":                                  `unknown command "nonsense"`,
		"workloads now":                             "too many arguments: now",
		"clusters --nonsense":                       "unknown flag: --nonsense",
		"clusters -o xml":                           `-o "xml": must be one of table, wide, json, yaml, name`,
		"workloads -A -n shop":                      "-A and -n: give one of them",
		"workload prod-eu":                          "missing: NAMESPACE/KIND/NAME",
		"get":                                       "missing: RESOURCE, one of clusters, workloads",
		"get pods":                                  "pods is not a resource",
		"describe pods prod-eu":                     "pods is not a resource",
		"get clusters -o json=x":                    "json takes no template",
		"get clusters -o jsonpath":                  "a template is missing",
		"get clusters -o jsonpath={":                `-o "jsonpath={"`,
		"get clusters -o go-template={{":            `-o "go-template={{"`,
		"get clusters prod-eu --watch":              "NAME and --filter, --order-by or --watch",
		"explain prod-eu shop/deploy/cart -n other": "give one namespace",
		"pause namespace shop":                      "namespace is not a resource",
		"cordon":                                    "missing: CLUSTER",
		"cordon Prod":                               `name "Prod"`,
		"top --interval 1ms":                        "--interval 1ms: must be at least 1s",
		"register a b --in-cluster":                 "give at most one NAME",
		"register --in-cluster --context a --hub-context b": "set one context",
		"workload prod-eu shop/cart":                        "must be NAMESPACE/KIND/NAME, as in shop/deployment/cart",
		"requeue prod-eu shop/daemonset/cart":               "the kind must be deployment, statefulset, replicaset, or one with its group",
		"explain prod-eu":                                   "missing: NAMESPACE/KIND/NAME",
		"explain prod-eu deployment cart":                   "must be NAMESPACE/NAME",
		"what-if prod-eu shop/deployment/cart":              "nothing to plan",
		"what-if prod-eu shop/sts/db --strategy both":       "must be evict or release",
		"register":                                     "missing: NAME",
		"register a b --server https://a":              "--context, --server, --ca-file and --dry-run: give one NAME with them",
		"register Prod_EU":                             `name "Prod_EU": `,
		"register prod --token-duration 1m":            "token duration 1m0s: must be at least 10m",
		"register prod -n a/b":                         `namespace "a/b"`,
		"unregister prod --context prod --keep-member": "--context and --keep-member: give one of them",
		"force-detach prod":                            "--reason: must not be empty",
		"force-detach prod --undo --reason gone":       "--reason and --undo: give one of them",
	} {
		got := plimsoll(t, nil, strings.Fields(line)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) || !strings.Contains(got.err, "--help") || got.out != "" {
			t.Errorf("plimsoll %s: %+v, want exit code 2 and %q", line, got, want)
		}
	}
}

func TestEachErrorOfTheAPIHasItsExitCodeAndSaysWhatToDo(t *testing.T) {
	h := startHub(t)
	for code, want := range map[codes.Code]struct {
		exit int
		hint string
	}{
		codes.Unauthenticated:    {exitDenied, "kubectl create token"},
		codes.PermissionDenied:   {exitDenied, ""},
		codes.NotFound:           {exitNotFound, ""},
		codes.Unavailable:        {exitUnavailable, ""},
		codes.InvalidArgument:    {exitUsage, ""},
		codes.Internal:           {exitFailed, ""},
		codes.FailedPrecondition: {exitFailed, ""},
		codes.Aborted:            {exitFailed, ""},
	} {
		h.fail = status.Error(code, "the hub's own words")
		got := h.run(t, "clusters")
		if got.code != want.exit || !strings.Contains(got.err, "error: the hub's own words\n") || !strings.Contains(got.err, want.hint) {
			t.Errorf("%s: %+v, want exit code %d", code, got, want.exit)
		}
		if want.hint == "" && strings.Contains(got.err, "hint:") {
			t.Errorf("%s: a hint that does not fit: %s", code, got.err)
		}
	}
}

// A member that does not answer, and a limit that is reached, come with a time.
func TestAnErrorThatSaysWhenToTryAgainIsShownWithThat(t *testing.T) {
	h := startHub(t)
	refused, err := status.New(codes.FailedPrecondition, "the member does not answer").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(10 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	h.fail = refused.Err()
	if got := h.run(t, "clusters"); got.code != exitFailed || got.err != "error: the member does not answer\nhint: try again in 10s\n" {
		t.Errorf("%+v", got)
	}
}

func TestConnectionsThatFailSayWhy(t *testing.T) {
	h := startHub(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	garbage := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(garbage, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nobody listens":        {[]string{"--api", closed.Addr().String(), "--insecure-plaintext"}, exitUnavailable, "is the address right"},
		"nobody answers":        {[]string{"--api", silent.Addr().String(), "--insecure-plaintext", "--timeout", "50ms"}, exitUnavailable, "does not answer in time"},
		"kubectl's own name":    {[]string{"--api", silent.Addr().String(), "--insecure-plaintext", "--request-timeout", "50ms"}, exitUnavailable, "does not answer in time"},
		"TLS to plaintext":      {[]string{"--api", h.address}, exitUnavailable, "--insecure-plaintext"},
		"plaintext to others":   {[]string{"--api", "hub.example:9090", "--insecure-plaintext"}, exitFailed, "not on this machine"},
		"plaintext to a name":   {[]string{"--api", "localhost.example:9090", "--insecure-plaintext"}, exitFailed, "not on this machine"},
		"no port":               {[]string{"--api", "hub.example"}, exitFailed, "must be host:port"},
		"no such CA":            {[]string{"--ca-file", "/nonexistent/ca"}, exitFailed, "--ca-file: open"},
		"a CA that is none":     {[]string{"--ca-file", garbage}, exitFailed, "contains no PEM certificate"},
		"no such token file":    {[]string{"--token-file", "/nonexistent/token"}, exitFailed, "read the token"},
		"a file that is none":   {[]string{"--token-file", os.Args[0]}, exitFailed, "not a bearer token"},
		"an account half named": {[]string{"--service-account", "viewer"}, exitFailed, "must be NAMESPACE/NAME"},
		"an account and a file": {[]string{"--service-account", "a/b", "--token-file", garbage}, exitFailed, "--service-account and a token: give one of them"},
		"no such kubeconfig":    {[]string{"--service-account", "a/b", "--hub-kubeconfig", "/nonexistent/config"}, exitFailed, "kubeconfig"},
	} {
		got := plimsoll(t, nil, append([]string{"clusters"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.err, c.want) {
			t.Errorf("%s: %+v, want exit code %d and %q", name, got, c.code, c.want)
		}
	}
}

func TestATimeoutOfZeroIsNone(t *testing.T) {
	if got := startHub(t).run(t, "clusters", "--timeout", "0"); got.code != exitOK {
		t.Errorf("%+v", got)
	}
}

func TestTheTokenComesFromTheFlagTheFileOrTheEnvironment(t *testing.T) {
	h := startHub(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("canary-token-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		environment map[string]string
		args        []string
		want        string
	}{
		"none":                  {nil, nil, ""},
		"flag":                  {map[string]string{"PLIMSOLL_TOKEN": "canary-token-env"}, []string{"--token", "canary-token-flag"}, "Bearer canary-token-flag"},
		"file before the other": {map[string]string{"PLIMSOLL_TOKEN": "canary-token-env"}, []string{"--token-file", file}, "Bearer canary-token-file"},
		"environment":           {map[string]string{"PLIMSOLL_TOKEN": "canary-token-env"}, nil, "Bearer canary-token-env"},
		"file by environment":   {map[string]string{"PLIMSOLL_TOKEN_FILE": file}, nil, "Bearer canary-token-file"},
	} {
		environment := map[string]string{"PLIMSOLL_API": h.address}
		for key, value := range c.environment {
			environment[key] = value
		}
		got := plimsoll(t, environment, append([]string{"clusters", "--insecure-plaintext"}, c.args...)...)
		if sent := h.tokens[len(h.tokens)-1]; got.code != exitOK || sent != c.want {
			t.Errorf("%s: exit code %d, sent %q, want %q", name, got.code, sent, c.want)
		}
	}
	if got := plimsoll(t, nil, "clusters", "--token", "a", "--token-file", file); got.code == exitOK || !strings.Contains(got.err, "give one of them") {
		t.Errorf("two tokens: %+v", got)
	}
}

// What is typed comes before what is set for all commands.
func TestWhereTheHubIsComesFromFlagsBeforeTheEnvironment(t *testing.T) {
	ca, key := pair(t, "hub")
	other, _ := pair(t, "other")
	address, _ := secureHub(t, ca, key)
	const nobody = "127.0.0.1:1"
	for name, c := range map[string]struct {
		api, caFile string // of the environment
		args        []string
		code        int
	}{
		"the environment":              {address, ca, nil, exitOK},
		"this hub, and none outside":   {nobody, ca, []string{"--server", address}, exitOK},
		"no hub, and this one outside": {address, ca, []string{"--server", nobody}, exitUnavailable},
		"its CA, and another outside":  {address, other, []string{"--ca-file", ca}, exitOK},
		"another CA, and its outside":  {address, ca, []string{"--ca-file", other}, exitUnavailable},
	} {
		got := plimsoll(t, map[string]string{"PLIMSOLL_API": c.api, "PLIMSOLL_CA_FILE": c.caFile}, append([]string{"clusters"}, c.args...)...)
		if got.code != c.code {
			t.Errorf("%s: %+v, want exit code %d", name, got, c.code)
		}
	}
}

// The account that a flag names is asked for a token, whatever token the environment has.
func TestAnAccountByFlagComesBeforeATokenOfTheEnvironment(t *testing.T) {
	h := startHub(t)
	for _, name := range []string{"PLIMSOLL_TOKEN", "PLIMSOLL_TOKEN_FILE"} {
		got := plimsoll(t, map[string]string{name: canary, "PLIMSOLL_API": h.address}, "clusters", "--insecure-plaintext",
			"--service-account", "a/b", "--hub-kubeconfig", "/nonexistent/config")
		if got.code != exitFailed || !strings.Contains(got.err, "kubeconfig") || len(h.tokens) > 0 {
			t.Errorf("%s: %+v, %d calls", name, got, len(h.tokens))
		}
	}
}

func TestRequeueWaitsUntilTheOrderIsFinal(t *testing.T) {
	h := startHub(t)
	pending := operation(plimsollv1.OperationState_OPERATION_STATE_RUNNING, "it runs")
	for state, c := range map[plimsollv1.OperationState]struct {
		code int
		want string
	}{
		plimsollv1.OperationState_OPERATION_STATE_DONE:       {exitOK, "shop/deployment/cart of prod-eu: Done after 1.235s: the end"},
		plimsollv1.OperationState_OPERATION_STATE_FAILED:     {exitOperation, "Failed after 1.235s: the end"},
		plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED: {exitOperation, "Superseded after 1.235s: the end"},
		plimsollv1.OperationState_OPERATION_STATE_CANCELLED:  {exitOperation, "Cancelled after 1.235s: the end"},
	} {
		h.operations = []*plimsollv1.Operation{pending, pending, operation(state, "the end")}
		h.asked = nil
		got := h.run(t, "requeue", "prod-eu", "shop/deployment/cart", "--wait")
		if got.code != c.code || !strings.Contains(got.out, c.want) || len(h.asked) != 3 {
			t.Errorf("%s: %+v after %d questions, want exit code %d and %q", state, got, len(h.asked), c.code, c.want)
		}
	}
	h.operations = []*plimsollv1.Operation{pending}
	got := h.run(t, "requeue", "prod-eu", "shop/deployment/cart", "--wait", "--wait-timeout", "30ms")
	if got.code != exitOperation || !strings.Contains(got.err, "has not ended within 30ms") {
		t.Errorf("an order that does not end: %+v", got)
	}
	if wait := h.asked[len(h.asked)-1].GetWait().AsDuration(); wait <= 0 || wait > longestWait {
		t.Errorf("asked to wait %s, the API takes up to %s", wait, longestWait)
	}
}

// A hub holds an answer back for as long as it was asked to: that is no time in which it does not answer.
func TestAWaitMayTakeLongerThanACall(t *testing.T) {
	h := startHub(t)
	h.operations = []*plimsollv1.Operation{operation(plimsollv1.OperationState_OPERATION_STATE_DONE, "the end")}
	if got := h.run(t, "requeue", "prod-eu", "shop/deployment/cart", "--wait", "--timeout", "10m"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// It counts from when the command began to ask: where a machine is slow, seconds are gone by now.
	if h.deadline <= 10*time.Minute+time.Second {
		t.Errorf("the hub has %s for an answer that it may hold back for %s", h.deadline, longestWait)
	}
}

func TestAWorkloadThatIsNotEnabledIsToldWhichLabelsItNeeds(t *testing.T) {
	h := startHub(t)
	for _, command := range []string{"explain", "workload"} {
		h.fail = status.Error(codes.NotFound, `member "prod-eu": no Deployment shop/web is enabled for spot placement there`)
		got := h.run(t, command, "prod-eu", "shop/deployment/web")
		if got.code != exitNotFound || !strings.Contains(got.err, "error: member \"prod-eu\": no Deployment shop/web is enabled") ||
			!strings.Contains(got.err, "hint: the label plimsoll.dev/enabled=true is needed") || !strings.Contains(got.err, "kubectl -n shop get deployment web --show-labels") {
			t.Errorf("%s: %+v", command, got)
		}
		for missing, hint := range map[string]string{
			"workload":           "hint: in the member: kubectl -n shop label deployment web plimsoll.dev/enabled=true --overwrite\n",
			"namespace":          "hint: in the member: kubectl label namespace shop plimsoll.dev/enabled=true --overwrite\n",
			"workload,namespace": "web plimsoll.dev/enabled=true --overwrite; kubectl label namespace shop plimsoll.dev/enabled=true --overwrite\n",
		} {
			refused, err := status.New(codes.NotFound, "not enabled: "+missing).WithDetails(&errdetails.ErrorInfo{
				Reason: "WORKLOAD_NOT_ENABLED", Metadata: map[string]string{"label": "plimsoll.dev/enabled", "missing_on": missing}})
			if err != nil {
				t.Fatal(err)
			}
			h.fail = refused.Err()
			if got := h.run(t, command, "prod-eu", "shop/deployment/web"); got.code != exitNotFound || !strings.HasSuffix(got.err, hint) {
				t.Errorf("%s, missing on %s: %+v, want %q", command, missing, got, hint)
			}
		}
		h.fail = status.Error(codes.NotFound, `member "prod-eu" is not known`)
		if got := h.run(t, command, "prod-eu", "shop/deployment/web"); got.code != exitNotFound || strings.Contains(got.err, "hint:") {
			t.Errorf("%s of another member: %+v", command, got)
		}
	}
}
