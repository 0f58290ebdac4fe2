package deploy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/hub"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// answersTheDashboards has the hub place the pods of a workload, scrapes it, and asks what the dashboards ask. A query that nothing
// answers must be about a metric that such a hub does not show, for a reason.
func (s *site) answersTheDashboards(r *running) {
	s.place(r)
	samples := s.scrape(r)
	known, shown := series(s.T), map[string]bool{}
	for _, sample := range samples {
		name := metricOf(sample)
		shown[name] = true
		if known[name] == nil {
			if strings.HasPrefix(name, "plimsoll_") {
				s.Errorf("the hub shows %s, which no test knows", name)
			}
			continue // a number of the runtime, which no dashboard shows
		}
		want, got := namesOf(known[name][0]), namesOf(labels.FromMap(stringMap(sample.Metric)))
		if !slices.Equal(want, got) {
			s.Errorf("%s has labels %v, and the dashboards' test believes %v", name, got, want)
		}
	}
	for name := range known {
		if !shown[name] && seldom[name] == "" {
			s.Errorf("the hub shows no %s, for no reason that is known", name)
		}
	}
	loaded := promqltest.LoadedStorage(s.T, scrapes(samples))
	s.Cleanup(func() { _ = loaded.Close() })
	ask, asked := asker(s.T, loaded), 0
	for name, board := range dashboards(s.T) {
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				asked++
				if len(ask(name+", "+panel.Title, target.Expr)) > 0 || slices.ContainsFunc(metricName.FindAllString(target.Expr, -1), func(name string) bool {
					return seldom[strings.TrimSuffix(name, "_bucket")] != ""
				}) {
					continue
				}
				s.Errorf("%s, %s: a running hub answers nothing to %s", name, panel.Title, target.Expr)
			}
		}
	}
	if asked < 80 {
		s.Errorf("%d queries: those of whole dashboards are missing", asked)
	}
}

// place has a workload of four replicas placed: half on spot nodes.
func (s *site) place(r *running) {
	s.Helper()
	const namespace, name = "dashboards", "web"
	replicas := int32(4)
	for _, capacity := range []string{kube.Spot, kube.OnDemand} {
		_, err := s.member.Cluster.AddNodes(s.Context(), 1, kube.NodeSpec{Capacity: capacity, Pods: 50})
		s.must(err)
	}
	enabled, app := map[string]string{"plimsoll.dev/enabled": "true"}, map[string]string{"app": name}
	s.must(s.member.Client().Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: enabled}}))
	s.must(s.member.Client().Create(s.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: enabled, Annotations: map[string]string{"plimsoll.dev/spot-percentage": "50"}},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: name}}},
		}},
	}))
	viewer := s.user("plimsoll-viewer")
	s.must(fleet.Await(timeout(s.T, patience), "the replicas to be placed", func(ctx context.Context) (placed bool, _ error) {
		err := s.call(ctx, r, viewer, func(ctx context.Context, conn *grpc.ClientConn) error {
			answer, err := plimsollv1.NewWorkloadServiceClient(conn).GetWorkload(ctx, &plimsollv1.GetWorkloadRequest{
				Cluster: s.member.Name, Namespace: namespace, Kind: "Deployment", Name: name,
			})
			if err != nil {
				return err
			}
			placement := answer.GetWorkload().GetPlacement()
			if placed = placement.GetSpotActual() == replicas/2 && placement.GetOnDemandActual() == replicas/2; !placed {
				return fmt.Errorf("it is %v", placement)
			}
			return nil
		})
		return placed, err
	}))
}

// scrape reads /metrics as Prometheus would: with the token of an account that may, trusting what the hub has published.
func (s *site) scrape(r *running) model.Vector {
	s.Helper()
	var published corev1.ConfigMap
	s.must(s.fleet.Hub.Client().Get(s.Context(), client.ObjectKey{Namespace: Namespace, Name: hub.APICAConfigMap}, &published))
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(published.Data[hub.MetricsCAKey])) {
		s.Fatal("the ConfigMap has no certificate of the metrics")
	}
	token, err := s.fleet.Hub.Token(s.Context(), Namespace, s.user("plimsoll-metrics-reader"))
	s.must(err)
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "https://"+r.addr.Metrics+"/metrics", nil)
	s.must(err)
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: pool, ServerName: "plimsoll-metrics." + Namespace + ".svc", MinVersion: tls.VersionTLS12,
	}}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	s.must(err)
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		s.Fatalf("scrape: %s", answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	s.must(err)
	var samples model.Vector
	for _, family := range families {
		some, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, family)
		s.must(err)
		samples = append(samples, some...)
	}
	return samples
}

// metricOf is the name without what a histogram puts behind it.
func metricOf(sample *model.Sample) string {
	name := string(sample.Metric[model.MetricNameLabel])
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, part)
	}
	return name
}

// namesOf are the labels that say what a series is about, in their order.
func namesOf(series labels.Labels) (names []string) {
	series.Range(func(label labels.Label) {
		if label.Name != model.MetricNameLabel && label.Name != labels.BucketLabel {
			names = append(names, label.Name)
		}
	})
	return names
}

func stringMap(metric model.Metric) map[string]string {
	all := map[string]string{}
	for name, value := range metric {
		all[string(name)] = string(value)
	}
	return all
}

// scrapes are what promqltest loads: the samples for some minutes and, before that, zero of what counts, as of a hub that begins.
func scrapes(samples model.Vector) string {
	var load strings.Builder
	load.WriteString("load 1m\n  up{job=\"plimsoll-metrics\",instance=\"a\"} 1x8\n")
	for _, sample := range samples {
		value := float64(sample.Value)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			continue
		}
		name, first := string(sample.Metric[model.MetricNameLabel]), "_"
		if counts := name != metricOf(sample) || strings.HasSuffix(name, "_total"); counts {
			first = "0"
		}
		then := strconv.FormatFloat(value, 'f', -1, 64)
		scraped := labels.NewBuilder(labels.FromMap(stringMap(sample.Metric))).Set("job", "plimsoll-metrics").Set("instance", "a").Labels()
		fmt.Fprintf(&load, "  %s %s %s %s %s\n", scraped, strings.Repeat(first+" ", 3), then, then, then)
	}
	return load.String()
}
