// Package sample has a value for every key of the hub's configuration, for tests: sample.go.
package sample

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// A Sample is a value of a key that is not its default: as it stands in the file, in the environment (the same if empty),
// and in the Config.
type Sample struct {
	File, Env string
	Want      any
	Bad       string // a value that is refused, as it stands in the file
}

// Of has an entry for every key of the configuration; the tests of package config fail for a key that has none.
var Of = map[string]Sample{
	"controller.resyncPeriod":          {File: `45s`, Want: 45 * time.Second, Bad: `4s`},
	"controller.workers":               {File: `7`, Want: 7, Bad: `0`},
	"controller.workersPerMember":      {File: `11`, Want: 11, Bad: `1001`},
	"controller.deadline":              {File: `1m`, Want: time.Minute, Bad: `10`},
	"controller.externalNetworks":      {File: `[192.0.2.0/24]`, Env: `192.0.2.0/24`, Want: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Bad: `[192.0.2.1/24]`},
	"leaderElection.enabled":           {File: `false`, Want: false, Bad: `"false"`},
	"leaderElection.leaseName":         {File: `other`, Want: "other", Bad: `Other_Name`},
	"leaderElection.leaseNamespace":    {File: `leases`, Want: "leases", Bad: `Leases`},
	"leaderElection.identity":          {File: `hub-a`, Want: "hub-a", Bad: `hub_a`},
	"leaderElection.leaseDuration":     {File: `20s`, Want: 20 * time.Second, Bad: `15500ms`},
	"leaderElection.renewDeadline":     {File: `9s`, Want: 9 * time.Second, Bad: `15s`},
	"leaderElection.retryPeriod":       {File: `1s`, Want: time.Second, Bad: `6s`},
	"namespaceSelector":                {File: `{matchLabels: {team: a}}`, Want: metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, Bad: `{matchLabel: {team: a}}`},
	"webhook.port":                     {File: `9999`, Want: 9999, Bad: `65536`},
	"webhook.bindAddress":              {File: `127.0.0.1`, Want: "127.0.0.1", Bad: `localhost`},
	"webhook.certDir":                  {File: `/certs`, Want: "/certs", Bad: `7`},
	"webhook.clientCA":                 {File: `/clients/ca.crt`, Want: "/clients/ca.crt", Bad: `7`},
	"webhook.url":                      {File: `https://hub.example:8443`, Want: "https://hub.example:8443", Bad: `http://hub.example`},
	"webhook.configName":               {File: `other`, Want: "other", Bad: `Other`},
	"webhook.dnsNames":                 {File: `[a.example, b.example]`, Env: `a.example,b.example`, Want: []string{"a.example", "b.example"}, Bad: `a.example`},
	"webhook.ips":                      {File: `[10.0.0.1, "::1"]`, Env: `10.0.0.1, ::1`, Want: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::1")}, Bad: `[10.0.0]`},
	"webhook.stopDelay":                {File: `3s`, Want: 3 * time.Second, Bad: `16s`},
	"api.grpcAddress":                  {File: `127.0.0.1:1`, Want: "127.0.0.1:1", Bad: `localhost`},
	"api.restAddress":                  {File: `127.0.0.1:2`, Want: "127.0.0.1:2", Bad: `":http"`},
	"api.certDir":                      {File: `/api-certs`, Want: "/api-certs", Bad: `1`},
	"api.clientCA":                     {File: `/api-clients/ca.crt`, Want: "/api-clients/ca.crt", Bad: `7`},
	"api.plaintext":                    {File: `true`, Want: true, Bad: `1`},
	"api.audience":                     {File: `fleet`, Want: "fleet", Bad: `""`},
	"api.callsPerSecond":               {File: `9`, Want: 9, Bad: `0`},
	"api.page":                         {File: `false`, Want: false, Bad: `often`},
	"api.unauthenticated":              {File: `true`, Want: true, Bad: `yes please`},
	"peer.address":                     {File: `127.0.0.1:3`, Want: "127.0.0.1:3", Bad: `":70000"`},
	"api.advertise":                    {File: `hub.example:443`, Want: "hub.example:443", Bad: `hub.example`},
	"peer.advertise":                   {File: `10.0.0.7:9`, Want: "10.0.0.7:9", Bad: `10.0.0.7`},
	"metrics.address":                  {File: `127.0.0.1:4`, Want: "127.0.0.1:4", Bad: `8080`},
	"metrics.certDir":                  {File: `/metrics-certs`, Want: "/metrics-certs", Bad: `1`},
	"metrics.unauthenticated":          {File: `true`, Want: true, Bad: `1`},
	"metrics.workloadsPerMember":       {File: `100`, Want: 100, Bad: `0`},
	"probes.address":                   {File: `127.0.0.1:5`, Want: "127.0.0.1:5", Bad: `""`},
	"hub.namespace":                    {File: `ops`, Want: "ops", Bad: `Ops`},
	"hub.registrationNamespace":        {File: `fleet`, Want: "fleet", Bad: `Fleet`},
	"hub.registrationsInOwnNamespace":  {File: `true`, Want: true, Bad: `perhaps`},
	"hub.kubeconfig":                   {File: `/kube/config`, Want: "/kube/config", Bad: `[a]`},
	"clusters.allowedNetworks":         {File: `[10.0.0.0/8, 127.0.0.0/8]`, Env: `10.0.0.0/8,127.0.0.0/8`, Want: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8")}, Bad: `[10.1.2.3/8]`},
	"clusters.allowExec":               {File: `true`, Want: true, Bad: `1`},
	"clusters.allowFiles":              {File: `true`, Want: true, Bad: `1`},
	"clusters.allowProxy":              {File: `true`, Want: true, Bad: `1`},
	"clusters.allowInsecure":           {File: `true`, Want: true, Bad: `1`},
	"clusters.allowImpersonation":      {File: `true`, Want: true, Bad: `1`},
	"clusters.allowBasicAuth":          {File: `true`, Want: true, Bad: `1`},
	"clusters.requestTimeout":          {File: `3s`, Want: 3 * time.Second, Bad: `1ms`},
	"clusters.warmTimeout":             {File: `4s`, Want: 4 * time.Second, Bad: `-1s`},
	"clusters.probeInterval":           {File: `5s`, Want: 5 * time.Second, Bad: `10ms`},
	"clusters.probeTimeout":            {File: `2s`, Want: 2 * time.Second, Bad: `soon`},
	"clusters.tokenRenewalPercent":     {File: `50`, Want: 50, Bad: `80`},
	"clusters.qps":                     {File: `12.5`, Want: 12.5, Bad: `.nan`},
	"clusters.burst":                   {File: `13`, Want: 13, Bad: `1.5`},
	"clusters.maxAnswerMiB":            {File: `32`, Want: 32, Bad: `0`},
	"clusters.maxEventMiB":             {File: `6`, Want: 6, Bad: `65`},
	"clusters.maxCacheMiB":             {File: `128`, Want: 128, Bad: `15`},
	"clusters.maxTotalCacheMiB":        {File: `200`, Want: 200, Bad: `15`},
	"clusters.maxCachedObjects":        {File: `5000`, Want: 5000, Bad: `999`},
	"spot.annotationPrefix":            {File: `spotalis.io`, Want: "spotalis.io", Bad: `a/b`},
	"spot.workloadKinds":               {File: `[{apiVersion: argoproj.io/v1alpha1, kind: Rollout}]`, Want: []config.WorkloadKindConfig{{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout"}}, Bad: `[{apiVersion: v1, kind: Pod}]`},
	"spot.nodeLabels":                  {File: `[{key: pool, spot: [s], onDemand: [o], family: all}]`, Want: []config.NodeLabelConfig{{Key: "pool", Spot: []string{"s"}, OnDemand: []string{"o"}, Family: "all"}}, Bad: `[{key: pool, sopt: [s]}]`},
	"spot.defaults.spotPercentage":     {File: `70`, Want: ptr.To(70), Bad: `101`},
	"spot.defaults.minOnDemand":        {File: `1`, Want: ptr.To(1), Bad: `-1`},
	"spot.defaults.disruptionSchedule": {File: `0 3 * * *`, Want: "0 3 * * *", Bad: `at night`},
	"spot.defaults.disruptionDuration": {File: `2h`, Want: "2h", Bad: `long`},
	"spot.defaults.disruptionTimezone": {File: `Europe/Berlin`, Want: "Europe/Berlin", Bad: `Local`},
	"spot.maxMoves":                    {File: `"25%"`, Env: `25%`, Want: config.MoveLimit{MoveLimit: policy.MoveLimit{Percent: 25}}, Bad: `"0%"`},
	"spot.moveCooldown":                {File: `7s`, Want: 7 * time.Second, Bad: `-1s`},
	"spot.strategy":                    {File: `release`, Want: config.Strategy(policy.StrategyRelease), Bad: `both`},
	"fleet.enabled":                    {File: `true`, Want: true, Bad: `perhaps`},
	"fleet.history.configMap":          {File: `past`, Want: "past", Bad: `Past`},
	"fleet.history.folder":             {File: `/var/lib/past`, Want: "/var/lib/past", Bad: `past`},
	"spot.pendingTimeout":              {File: `90s`, Want: 90 * time.Second, Bad: `1s`},
	"spot.nodeStartTimeout":            {File: `8m`, Want: 8 * time.Minute, Bad: `59s`},
	"spot.maxMovesPerMember":           {File: `7`, Want: 7, Bad: `-1`},
	"spot.maxMovesPerHub":              {File: `9`, Want: 9, Bad: `many`},
	"spot.probe.namespace":             {File: `probes`, Want: "probes", Bad: `Not/One`},
	"spot.probe.image":                 {File: `example.com/pause:1`, Want: "example.com/pause:1", Bad: `" "`},
	"spot.probe.firstAfter":            {File: `10s`, Want: 10 * time.Second, Bad: `1ms`},
	"spot.probe.atMostAfter":           {File: `1h`, Want: time.Hour, Bad: `1s`},
	"spot.probe.timeout":               {File: `45s`, Want: 45 * time.Second, Bad: `0s`},
	"spot.interruptions":               {File: `[{taint: example.com/going, within: 1m}, {taint: example.com/maybe, advisory: true}]`, Want: []config.InterruptionConfig{{Taint: "example.com/going", Within: time.Minute}, {Taint: "example.com/maybe", Advisory: true}}, Bad: `[{taint: a, within: 1m, advisory: true}]`},
	"spot.readOnly":                    {File: `true`, Want: true, Bad: `maybe`},
	"spot.tolerations":                 {File: `[{key: spot, operator: Exists}]`, Want: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}, Bad: `[{key: spot, when: never}]`},
	"log.format":                       {File: `text`, Want: "text", Bad: `xml`},
	"log.level":                        {File: `debug`, Want: slog.LevelDebug, Bad: `loud`},
}

// AlsoFor are values of other keys without which a sample is not allowed.
var AlsoFor = map[string]map[string]string{
	"api.unauthenticated":              {"api.grpcAddress": "127.0.0.1:9090", "api.restAddress": "localhost:8443"},
	"api.plaintext":                    {"api.grpcAddress": "127.0.0.1:9090", "api.restAddress": "localhost:8443"},
	"spot.defaults.disruptionSchedule": {"spot.defaults.disruptionDuration": "1h"},
	"spot.defaults.disruptionDuration": {"spot.defaults.disruptionSchedule": "0 1 * * *"},
	"spot.defaults.disruptionTimezone": {"spot.defaults.disruptionSchedule": "0 1 * * *", "spot.defaults.disruptionDuration": "1h"},
}

// ByValue compares configurations.
var ByValue = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}
