package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/ptr"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// What the hub's limits leave to one member, in bytes: its caches; a large answer that is decoded, with three bytes of memory for
// each of its text; calls about pods, and conversions, that are being read; and the memory that is kept for large bodies.
const (
	hostileCache  = 16 << 20
	hostileAnswer = 16 << 20
	hostileShare  = hostileCache + 3*hostileAnswer + 8<<20 + 24<<20 + 8<<20
	// hostileMemory is that with what the heap grows by between garbage collections, three quarters.
	hostileMemory = hostileShare * 7 / 4
)

// recordCalls keeps the calls that a member's API server makes about new pods of a namespace.
func recordCalls(t *testing.T, m *fleet.Member, namespace string) (*fleet.Hook, <-chan []byte) {
	t.Helper()
	calls := make(chan []byte, 1)
	hook, err := m.NewHook(step(t), fleet.HookOptions{Name: "recorder", Namespace: namespace, Mutating: true, Decide: func(body []byte) string {
		select {
		case calls <- body:
		default: // one is enough
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	return hook, calls
}

// dryRun is the same call for a pod that will not be stored, for which nothing is reserved.
func dryRun(t *testing.T, call []byte) []byte {
	t.Helper()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(call, &review); err != nil {
		t.Fatal(err)
	}
	review.Request.DryRun = ptr.To(true)
	call, err := json.Marshal(&review)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// keepAsking asks the hub about a pod of a healthy member again and again while something is done, once at least. Each call has to be
// answered with a place for the pod. A busy machine may take its time for that.
func (s *hostileSite) keepAsking(ctx context.Context, while func(context.Context) error) error {
	target, err := s.healthy[0].WebhookURL(ctx)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // who answers is not what is tested
	defer transport.CloseIdleConnections()
	asking, stop := context.WithCancel(ctx)
	defer stop()
	asked := make(chan error, 1)
	go func() {
		for {
			if err := ask(ctx, transport, target.String(), s.review); err != nil || asking.Err() != nil {
				asked <- err
				return
			}
			time.Sleep(20 * time.Millisecond) // other specs want the processors as well
		}
	}()
	err = while(ctx)
	stop()
	return errors.Join(err, <-asked)
}

// ask makes one admission call; an error says why its pod has no place.
func ask(ctx context.Context, transport http.RoundTripper, target string, review []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(review))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask about a pod of a healthy member: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer admissionv1.AdmissionReview
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask about a pod of a healthy member: %s: %w", response.Status, err)
	}
	if answer.Response == nil || !answer.Response.Allowed || len(answer.Response.Patch) == 0 {
		return fmt.Errorf("a pod of a healthy member was let through without a place: %v", answer.Response)
	}
	return nil
}

// checkBounds looks at what the hub has remembered since the member became hostile.
func (s *hostileSite) checkBounds(t *testing.T) {
	t.Helper()
	g, ctx := NewWithT(t), step(t)
	peak, err := s.hub.PeakRSS()
	g.Expect(err).NotTo(HaveOccurred())
	t.Logf("the hub had %d MiB resident at most, and %d before anybody was hostile", peak>>20, s.memory>>20)
	g.Expect(peak).To(BeNumerically("<", s.memory+hostileMemory), "the hub's memory, in bytes")

	happened, err := s.api.Events.ListEvents(ctx, &plimsollv1.ListEventsRequest{PageSize: 500, Filter: `event.type == "CLUSTER_STATE"`})
	g.Expect(err).NotTo(HaveOccurred())
	for _, event := range happened.GetEvents() {
		healthy := slices.ContainsFunc(s.healthy, func(m *fleet.Member) bool { return m.Name == event.GetCluster() })
		g.Expect(healthy && event.GetAt().AsTime().After(s.calm)).To(BeFalse(), "a healthy member was not Ready all the time: %v", event)
	}
}
