package integration

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// scrape gets /metrics with a token, if it is not empty, and returns the status with the body.
func scrape(ctx context.Context, url, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// Whose certificate it is, is tested by whoever reads samples.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestMetricsAreForWhomTheHubClusterAllowsThem(t *testing.T) {
	fleets.beside(t)
	g := NewWithT(t)
	f, err := fleet.Start(t.Context(), fleet.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(f.Stop()).To(Succeed()) })
	hub := startHub(t, f, "metrics")

	// The account that may: with the certificate's name and authority checked.
	g.Eventually(func() (int, error) {
		samples, err := hub.Samples(t.Context())
		return len(samples["plimsoll_owner"]), err
	}).WithTimeout(patience).Should(Equal(1))

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: "tenant"}}
	g.Expect(f.Hub.Client().Create(t.Context(), account)).To(Succeed())
	tenant, err := f.Hub.Token(t.Context(), fleet.Namespace, "tenant")
	g.Expect(err).NotTo(HaveOccurred())
	scraper, err := f.Hub.Token(t.Context(), fleet.Namespace, "scraper", "plimsoll") // for the API, not for pods' business
	g.Expect(err).NotTo(HaveOccurred())
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"nobody": {"", http.StatusUnauthorized}, "a stranger": {"made-up", http.StatusUnauthorized},
		"another audience": {scraper, http.StatusUnauthorized}, "an account without the right": {tenant, http.StatusForbidden},
	} {
		status, body, err := scrape(t.Context(), "https://"+hub.Metrics+"/metrics", c.token)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(status).To(Equal(c.want), name)
		g.Expect(body).NotTo(ContainSubstring("plimsoll_owner"), name)
	}
	// Plain text gets no series either.
	status, body, err := scrape(t.Context(), "http://"+hub.Metrics+"/metrics", tenant)
	g.Expect(err == nil && status == http.StatusOK || strings.Contains(body, "plimsoll_owner")).To(BeFalse(), body)

	open := startHub(t, f, "open", fleet.Settings{"metrics.unauthenticated": true, "leaderElection.enabled": false})
	g.Eventually(func() (int, error) {
		status, _, err := scrape(t.Context(), "http://"+open.Metrics+"/metrics", "")
		return status, err
	}).WithTimeout(patience).Should(Equal(http.StatusOK))
}
