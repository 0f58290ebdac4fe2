package config_test

import (
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

func TestAConfigurationThatCannotBeReadIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		file    string
		environ []string
		want    string // after the file's name
	}{
		"unknown section":       {file: "controler: {}\n", want: `: controler: (a section): unknown key; known here: controller, leaderElection, `},
		"unknown key":           {file: "spot: {maxMove: 3}\n", want: `: spot.maxMove: 3: unknown key; known here: annotationPrefix, `},
		"key of another case":   {file: "spot: {MaxMoves: \"3\"}\n", want: `: spot.MaxMoves: "3": unknown key`},
		"key twice":             {file: "log: {level: info}\nspot: {readOnly: true, readOnly: false}\n", want: `: spot.readOnly: false: is given twice`},
		"value for a section":   {file: "spot: 5\n", want: `: spot: 5: must be a section with keys`},
		"section for a value":   {file: "log: {level: {is: info}}\n", want: `: log.level: (a section): must be debug, info, warn or error`},
		"no value":              {file: "log: {level: }\n", want: `: log.level: (empty): must have a value; leave the key out for its default`},
		"number for a text":     {file: "hub: {namespace: 12}\n", want: `: hub.namespace: 12: must be a string (in quotes if it looks like something else)`},
		"share of nothing":      {file: "spot: {maxMoves: 0}\n", want: `: spot.maxMoves: 0: must be a number of replicas from 1, or a percentage from "1%" to "100%"`},
		"too large a share":     {file: "spot: {maxMoves: 101%}\n", want: `: spot.maxMoves: "101%": must be a number`},
		"duration without unit": {file: "spot: {moveCooldown: 10}\n", want: `: spot.moveCooldown: 10: must be a duration with its unit, such as 30s`},
		"number too large":      {file: "controller: {workers: 99999999999999999999}\n", want: `: controller.workers: 99999999999999999999: must be a whole number`},
		"list as the document":  {file: "- spot\n", want: `: (a list): must be a section with keys`},
		"not YAML":              {file: "spot: [\n", want: `: not YAML: `},
		"two documents":         {file: "log: {}\n---\nlog: {}\n", want: `: must be one YAML document, and has more`},
		"selector's operator":   {file: "namespaceSelector: {matchExpressions: [{key: a, operator: Near}]}\n", want: `: namespaceSelector: `},
		"network with host":     {file: "clusters: {allowedNetworks: [10.1.2.3/8]}\n", want: `: clusters.allowedNetworks[0]: 10.1.2.3/8: must be a network, not an address in it; did you mean 10.0.0.0/8?`},
		"kind in small letters": {file: "spot: {workloadKinds: [{apiVersion: argoproj.io/v1, kind: rollout}]}\n", want: `: spot.workloadKinds: kind "rollout": want the kind as in manifests`},
		"label without values":  {file: "spot: {nodeLabels: [{key: pool}]}\n", want: `: spot.nodeLabels: node label pool: want at least one value for spot`},
		"node before a pod":     {file: "spot: {pendingTimeout: 3m, nodeStartTimeout: 2m, probe: {timeout: 1m}}\n", want: `: spot.nodeStartTimeout: 2m0s: must be at least spot.pendingTimeout (3m0s)`},
		"node before a probe":   {file: "spot: {nodeStartTimeout: 90s}\n", want: `: spot.nodeStartTimeout: 1m30s: must be at least spot.probe.timeout (2m0s)`},
		"node after the hour":   {file: "spot: {nodeStartTimeout: 61m}\n", want: `: spot.nodeStartTimeout: 1h1m0s: must be at most 1h0m0s`},
		"open without loopback": {file: "api: {unauthenticated: true, grpcAddress: \"127.0.0.1:1\"}\n", want: `: api.unauthenticated: true: is only allowed while grpcAddress and restAddress are loopback addresses, and :8443 is not`},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeConfig(t, test.file)
			_, err := config.Load(file, test.environ)
			if err == nil || !strings.HasPrefix(err.Error(), file+test.want) {
				t.Errorf("got  %v\nwant %s%s", err, file, test.want)
			}
		})
	}
}

func TestABadVariableIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		environ []string
		want    string
	}{
		"unknown":            {[]string{"PLIMSOLL_SPOT_MAXMOVE=3"}, "PLIMSOLL_SPOT_MAXMOVE: no key of the configuration has this name"},
		"ill-typed":          {[]string{"PLIMSOLL_CONTROLLER_WORKERS=many"}, `PLIMSOLL_CONTROLLER_WORKERS: controller.workers: "many": must be a whole number`},
		"out of range":       {[]string{"PLIMSOLL_CONTROLLER_WORKERS=0"}, `PLIMSOLL_CONTROLLER_WORKERS: controller.workers: 0: must be from 1 to 1000`},
		"broken YAML":        {[]string{"PLIMSOLL_SPOT_TOLERATIONS=[{"}, `PLIMSOLL_SPOT_TOLERATIONS: spot.tolerations: "[{": must be a list`},
		"against a default":  {[]string{"PLIMSOLL_LEADERELECTION_RENEWDEADLINE=20s"}, `PLIMSOLL_LEADERELECTION_RENEWDEADLINE: leaderElection.renewDeadline: 20s: must be less than leaseDuration (15s)`},
		"a port that is not": {[]string{"PLIMSOLL_WEBHOOK_PORT=tcp://10.0.0.7:443"}, `PLIMSOLL_WEBHOOK_PORT: webhook.port: "tcp://10.0.0.7:443": must be a whole number`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load("", test.environ)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestAllProblemsAreShownAtOnce(t *testing.T) {
	_, err := config.Load(writeConfig(t, "spot: {maxMove: 3}\nlog: {level: loud}\n"), []string{"PLIMSOLL_X=1"})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three lines, got %v", err)
	}
}

func TestAMissingFileIsRefused(t *testing.T) {
	if _, err := config.Load("/nowhere/hub.yaml", nil); err == nil || !strings.Contains(err.Error(), "/nowhere/hub.yaml") {
		t.Errorf("want an error that names the file, got %v", err)
	}
}

func TestAFileOfCommentsAndEmptySectionsIsTheDefault(t *testing.T) {
	want := config.Default()
	want.Derive(nil)
	for _, text := range []string{"", "# nothing\n", "spot:\n# maxMoves: 3\nlog:\n", "{}\n"} {
		got, err := config.Load(writeConfig(t, text), nil)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got.Spot.MaxMoves != want.Spot.MaxMoves || got.Hub != want.Hub {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestVariablesOfServicesDoNotConfigureTheHub(t *testing.T) {
	links := []string{
		"PLIMSOLL_WEBHOOK_SERVICE_HOST=10.0.0.7", "PLIMSOLL_WEBHOOK_SERVICE_PORT=443", "PLIMSOLL_WEBHOOK_SERVICE_PORT_HTTPS=443",
		"PLIMSOLL_WEBHOOK_PORT=tcp://10.0.0.7:443", "PLIMSOLL_WEBHOOK_PORT_443_TCP=tcp://10.0.0.7:443",
		"PLIMSOLL_WEBHOOK_PORT_443_TCP_ADDR=10.0.0.7", "PLIMSOLL_WEBHOOK_PORT_443_TCP_PORT=443", "PLIMSOLL_WEBHOOK_PORT_443_TCP_PROTO=tcp",
	}
	got, err := config.Load("", links)
	if err != nil {
		t.Fatal(err)
	}
	if got.Webhook.Port != 9443 {
		t.Errorf("port is %d", got.Webhook.Port)
	}
	links[3] = "PLIMSOLL_WEBHOOK_PORT=9555" // set in the pod's own specification, which wins over the link
	if got, err = config.Load("", links); err != nil || got.Webhook.Port != 9555 {
		t.Errorf("port is %d, error %v", got.Webhook.Port, err)
	}
}

func TestVariablesOfTheCLIDoNotStopAHub(t *testing.T) {
	if _, err := config.Load("", []string{"PLIMSOLL_TOKEN=t", "PLIMSOLL_TOKEN_FILE=f", "PLIMSOLL_API=127.0.0.1:9090", "PLIMSOLL_CA_FILE=c", "PLIMSOLL_HUB_CONTEXT=h"}); err != nil {
		t.Error(err)
	}
}

func TestWhatIsEmptyIsDerivedFromThePod(t *testing.T) {
	got, err := config.Load("", []string{"POD_NAMESPACE=fleet", "PLIMSOLL_HUB_NAMESPACE="})
	if err != nil {
		t.Fatal(err)
	}
	if got.Hub.Namespace != "fleet" {
		t.Errorf("namespace is %q", got.Hub.Namespace)
	}
}
