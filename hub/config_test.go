package hub

import (
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// sample is a value of a key that is not its default: as it stands in the file, in the environment (the same if empty),
// and in the Config.
type sample struct {
	file, env string
	want      any
	bad       string // a value that is refused, as it stands in the file
}

// samples has an entry for every key of the configuration; the tests below fail for a key that has none.
var samples = map[string]sample{
	"controller.resyncPeriod":          {file: `45s`, want: 45 * time.Second, bad: `4s`},
	"controller.workers":               {file: `7`, want: 7, bad: `0`},
	"controller.workersPerMember":      {file: `11`, want: 11, bad: `1001`},
	"controller.deadline":              {file: `1m`, want: time.Minute, bad: `10`},
	"controller.externalNetworks":      {file: `[192.0.2.0/24]`, env: `192.0.2.0/24`, want: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, bad: `[192.0.2.1/24]`},
	"leaderElection.enabled":           {file: `false`, want: false, bad: `"false"`},
	"leaderElection.leaseName":         {file: `other`, want: "other", bad: `Other_Name`},
	"leaderElection.leaseNamespace":    {file: `leases`, want: "leases", bad: `Leases`},
	"leaderElection.identity":          {file: `hub-a`, want: "hub-a", bad: `hub_a`},
	"leaderElection.leaseDuration":     {file: `20s`, want: 20 * time.Second, bad: `15500ms`},
	"leaderElection.renewDeadline":     {file: `9s`, want: 9 * time.Second, bad: `15s`},
	"leaderElection.retryPeriod":       {file: `1s`, want: time.Second, bad: `6s`},
	"namespaceSelector":                {file: `{matchLabels: {team: a}}`, want: metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, bad: `{matchLabel: {team: a}}`},
	"webhook.port":                     {file: `9999`, want: 9999, bad: `65536`},
	"webhook.bindAddress":              {file: `127.0.0.1`, want: "127.0.0.1", bad: `localhost`},
	"webhook.certDir":                  {file: `/certs`, want: "/certs", bad: `7`},
	"webhook.clientCA":                 {file: `/clients/ca.crt`, want: "/clients/ca.crt", bad: `7`},
	"webhook.url":                      {file: `https://hub.example:8443`, want: "https://hub.example:8443", bad: `http://hub.example`},
	"webhook.configName":               {file: `other`, want: "other", bad: `Other`},
	"webhook.dnsNames":                 {file: `[a.example, b.example]`, env: `a.example,b.example`, want: []string{"a.example", "b.example"}, bad: `a.example`},
	"webhook.ips":                      {file: `[10.0.0.1, "::1"]`, env: `10.0.0.1, ::1`, want: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::1")}, bad: `[10.0.0]`},
	"webhook.stopDelay":                {file: `3s`, want: 3 * time.Second, bad: `16s`},
	"api.grpcAddress":                  {file: `127.0.0.1:1`, want: "127.0.0.1:1", bad: `localhost`},
	"api.restAddress":                  {file: `127.0.0.1:2`, want: "127.0.0.1:2", bad: `":http"`},
	"api.certDir":                      {file: `/api-certs`, want: "/api-certs", bad: `1`},
	"api.plaintext":                    {file: `true`, want: true, bad: `1`},
	"api.audience":                     {file: `fleet`, want: "fleet", bad: `""`},
	"api.unauthenticated":              {file: `true`, want: true, bad: `yes please`},
	"peer.address":                     {file: `127.0.0.1:3`, want: "127.0.0.1:3", bad: `":70000"`},
	"peer.advertise":                   {file: `10.0.0.7:9`, want: "10.0.0.7:9", bad: `10.0.0.7`},
	"metrics.address":                  {file: `127.0.0.1:4`, want: "127.0.0.1:4", bad: `8080`},
	"metrics.certDir":                  {file: `/metrics-certs`, want: "/metrics-certs", bad: `1`},
	"metrics.unauthenticated":          {file: `true`, want: true, bad: `1`},
	"metrics.workloadsPerMember":       {file: `100`, want: 100, bad: `0`},
	"probes.address":                   {file: `127.0.0.1:5`, want: "127.0.0.1:5", bad: `""`},
	"hub.namespace":                    {file: `ops`, want: "ops", bad: `Ops`},
	"hub.registrationNamespace":        {file: `fleet`, want: "fleet", bad: `Fleet`},
	"hub.registrationsInOwnNamespace":  {file: `true`, want: true, bad: `perhaps`},
	"hub.kubeconfig":                   {file: `/kube/config`, want: "/kube/config", bad: `[a]`},
	"clusters.allowedNetworks":         {file: `[10.0.0.0/8, 127.0.0.0/8]`, env: `10.0.0.0/8,127.0.0.0/8`, want: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8")}, bad: `[10.1.2.3/8]`},
	"clusters.allowExec":               {file: `true`, want: true, bad: `1`},
	"clusters.allowFiles":              {file: `true`, want: true, bad: `1`},
	"clusters.allowProxy":              {file: `true`, want: true, bad: `1`},
	"clusters.allowInsecure":           {file: `true`, want: true, bad: `1`},
	"clusters.allowImpersonation":      {file: `true`, want: true, bad: `1`},
	"clusters.allowBasicAuth":          {file: `true`, want: true, bad: `1`},
	"clusters.requestTimeout":          {file: `3s`, want: 3 * time.Second, bad: `1ms`},
	"clusters.warmTimeout":             {file: `4s`, want: 4 * time.Second, bad: `-1s`},
	"clusters.probeInterval":           {file: `5s`, want: 5 * time.Second, bad: `10ms`},
	"clusters.probeTimeout":            {file: `2s`, want: 2 * time.Second, bad: `soon`},
	"clusters.tokenRenewalPercent":     {file: `50`, want: 50, bad: `80`},
	"clusters.qps":                     {file: `12.5`, want: 12.5, bad: `.nan`},
	"clusters.burst":                   {file: `13`, want: 13, bad: `1.5`},
	"clusters.maxAnswerMiB":            {file: `32`, want: 32, bad: `0`},
	"clusters.maxEventMiB":             {file: `6`, want: 6, bad: `65`},
	"clusters.maxCacheMiB":             {file: `128`, want: 128, bad: `15`},
	"clusters.maxCachedObjects":        {file: `5000`, want: 5000, bad: `999`},
	"spot.annotationPrefix":            {file: `spotalis.io`, want: "spotalis.io", bad: `a/b`},
	"spot.workloadKinds":               {file: `[{apiVersion: argoproj.io/v1alpha1, kind: Rollout}]`, want: []WorkloadKindConfig{{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout"}}, bad: `[{apiVersion: v1, kind: Pod}]`},
	"spot.nodeLabels":                  {file: `[{key: pool, spot: [s], onDemand: [o], family: all}]`, want: []NodeLabelConfig{{Key: "pool", Spot: []string{"s"}, OnDemand: []string{"o"}, Family: "all"}}, bad: `[{key: pool, sopt: [s]}]`},
	"spot.defaults.spotPercentage":     {file: `70`, want: ptr.To(70), bad: `101`},
	"spot.defaults.minOnDemand":        {file: `1`, want: ptr.To(1), bad: `-1`},
	"spot.defaults.disruptionSchedule": {file: `0 3 * * *`, want: "0 3 * * *", bad: `at night`},
	"spot.defaults.disruptionDuration": {file: `2h`, want: "2h", bad: `long`},
	"spot.defaults.disruptionTimezone": {file: `Europe/Berlin`, want: "Europe/Berlin", bad: `Local`},
	"spot.maxMoves":                    {file: `"25%"`, env: `25%`, want: MoveLimit{policy.MoveLimit{Percent: 25}}, bad: `"0%"`},
	"spot.moveCooldown":                {file: `7s`, want: 7 * time.Second, bad: `-1s`},
	"spot.strategy":                    {file: `release`, want: Strategy(policy.StrategyRelease), bad: `both`},
	"webapp.imagePolicy":               {file: `deny`, want: "deny", bad: `never`},
	"webapp.maxReplicas":               {file: `50`, want: 50, bad: `0`},
	"spot.pendingTimeout":              {file: `90s`, want: 90 * time.Second, bad: `1s`},
	"spot.nodeStartTimeout":            {file: `8m`, want: 8 * time.Minute, bad: `59s`},
	"spot.maxMovesPerMember":           {file: `7`, want: 7, bad: `-1`},
	"spot.maxMovesPerHub":              {file: `9`, want: 9, bad: `many`},
	"spot.probe.namespace":             {file: `probes`, want: "probes", bad: `Not/One`},
	"spot.probe.image":                 {file: `example.com/pause:1`, want: "example.com/pause:1", bad: `" "`},
	"spot.probe.firstAfter":            {file: `10s`, want: 10 * time.Second, bad: `1ms`},
	"spot.probe.atMostAfter":           {file: `1h`, want: time.Hour, bad: `1s`},
	"spot.probe.timeout":               {file: `45s`, want: 45 * time.Second, bad: `0s`},
	"spot.interruptions":               {file: `[{taint: example.com/going, within: 1m}, {taint: example.com/maybe, advisory: true}]`, want: []InterruptionConfig{{Taint: "example.com/going", Within: time.Minute}, {Taint: "example.com/maybe", Advisory: true}}, bad: `[{taint: a, within: 1m, advisory: true}]`},
	"spot.readOnly":                    {file: `true`, want: true, bad: `maybe`},
	"spot.tolerations":                 {file: `[{key: spot, operator: Exists}]`, want: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}, bad: `[{key: spot, when: never}]`},
	"log.format":                       {file: `text`, want: "text", bad: `xml`},
	"log.level":                        {file: `debug`, want: slog.LevelDebug, bad: `loud`},
}

// alsoFor are values of other keys without which a sample is not allowed.
var alsoFor = map[string]map[string]string{
	"api.unauthenticated":              {"api.grpcAddress": "127.0.0.1:9090", "api.restAddress": "localhost:8443"},
	"api.plaintext":                    {"api.grpcAddress": "127.0.0.1:9090", "api.restAddress": "localhost:8443"},
	"spot.defaults.disruptionSchedule": {"spot.defaults.disruptionDuration": "1h"},
	"spot.defaults.disruptionDuration": {"spot.defaults.disruptionSchedule": "0 1 * * *"},
	"spot.defaults.disruptionTimezone": {"spot.defaults.disruptionSchedule": "0 1 * * *", "spot.defaults.disruptionDuration": "1h"},
}

var byValue = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}

// inFile nests a value as the file has it.
func inFile(values map[string]string) string {
	var text strings.Builder
	var open []string // sections
	for _, path := range slices.Sorted(maps.Keys(values)) {
		segments := strings.Split(path, ".")
		sections, key := segments[:len(segments)-1], segments[len(segments)-1]
		for i, section := range sections {
			if i >= len(open) || open[i] != section {
				text.WriteString(strings.Repeat("  ", i) + section + ":\n")
			}
		}
		open = sections
		text.WriteString(strings.Repeat("  ", len(sections)) + key + ": " + values[path] + "\n")
	}
	return text.String()
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hub.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func with(path, value string) map[string]string {
	values := map[string]string{path: value}
	for other, value := range alsoFor[path] {
		values[other] = value
	}
	return values
}

// expected is the default configuration with the sample of one key, and what that key needs.
func expected(t *testing.T, path string) Config {
	t.Helper()
	config := DefaultConfig()
	for _, leaf := range leaves() {
		field := reflect.ValueOf(&config).Elem().FieldByIndex(leaf.index)
		if leaf.path == path {
			field.Set(reflect.ValueOf(samples[path].want))
		} else if value, ok := alsoFor[path][leaf.path]; ok {
			field.SetString(value)
		}
	}
	config.derive(nil)
	return config
}

func TestEveryKeyIsReadFromTheFileAndChangesNothingElse(t *testing.T) {
	for _, leaf := range leaves() {
		t.Run(leaf.path, func(t *testing.T) {
			s, ok := samples[leaf.path]
			if !ok {
				t.Fatal("this key has no sample: add one")
			}
			got, err := LoadConfig(writeConfig(t, inFile(with(leaf.path, s.file))), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expected(t, leaf.path), got, byValue); diff != "" {
				t.Errorf("configuration differs (-want +got):\n%s", diff)
			}
			if def := DefaultConfig(); cmp.Equal(def, got, byValue) {
				t.Error("the sample is the default: it shows nothing")
			}
		})
	}
}

func TestEveryKeyIsReadFromTheEnvironmentOverTheFile(t *testing.T) {
	for _, leaf := range leaves() {
		t.Run(leaf.path, func(t *testing.T) {
			s := samples[leaf.path]
			var environ []string
			for path, value := range with(leaf.path, s.file) {
				if path == leaf.path && s.env != "" {
					value = s.env
				}
				environ = append(environ, EnvName(path)+"="+value)
			}
			got, err := LoadConfig(writeConfig(t, "controller: {workers: 77}\n"), environ)
			if err != nil {
				t.Fatal(err)
			}
			want := expected(t, leaf.path)
			if leaf.path != "controller.workers" {
				want.Controller.Workers = 77
			}
			if diff := cmp.Diff(want, got, byValue); diff != "" {
				t.Errorf("configuration differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABadValueStopsTheStartNamingFileKeyValueAndRule(t *testing.T) {
	for _, leaf := range leaves() {
		t.Run(leaf.path, func(t *testing.T) {
			bad := samples[leaf.path].bad
			if bad == "" {
				t.Fatal("this key has no bad sample: add one")
			}
			file := writeConfig(t, inFile(with(leaf.path, bad)))
			_, err := LoadConfig(file, nil)
			if err == nil {
				t.Fatalf("%s was accepted", bad)
			}
			if !strings.HasPrefix(err.Error(), file+": "+leaf.path) {
				t.Errorf("error does not begin with file and key: %v", err)
			}
			for _, line := range strings.Split(err.Error(), "\n") {
				if strings.Count(line, ": ") < 2 {
					t.Errorf("error lacks file, key, value or rule: %s", line)
				}
			}
		})
	}
}

func TestNoTwoKeysShareAVariable(t *testing.T) {
	seen := map[string]string{}
	for _, leaf := range leaves() {
		name := EnvName(leaf.path)
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s are both %s", leaf.path, other, name)
		}
		seen[name] = leaf.path
	}
	if EnvName("spot.maxMoves") != "PLIMSOLL_SPOT_MAXMOVES" {
		t.Error("the mapping is part of the contract")
	}
}
