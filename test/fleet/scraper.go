package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/hub"
)

// scraperAccount is the service account in the hub cluster that reads metrics.
const scraperAccount = "scraper"

// A Scraper reads /metrics as Prometheus does: with a bearer token of the hub cluster, and the authority that the hub publishes.
// It may be used concurrently.
type Scraper struct {
	token  string
	client *http.Client
}

// NewScraper makes an account in the hub cluster that may get /metrics, unless it is there, and reads what the hub has
// published. It fails while the hub has published nothing. token makes a token for the account, for the API server itself.
func NewScraper(ctx context.Context, cluster client.Client, token func(ctx context.Context, namespace, account string) (string, error)) (*Scraper, error) {
	named := metav1.ObjectMeta{Name: scraperAccount}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: scraperAccount}},
		&rbacv1.ClusterRole{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: scraperAccount},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: scraperAccount}},
		},
	} {
		if err := cluster.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("account for metrics: %w", err)
		}
	}
	var published corev1.ConfigMap
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: hub.APICAConfigMap}, &published); err != nil {
		return nil, fmt.Errorf("authority for metrics: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(published.Data[hub.MetricsCAKey])) {
		return nil, errors.New("authority for metrics: the hub has published none yet")
	}
	mine, err := token(ctx, Namespace, scraperAccount)
	if err != nil {
		return nil, fmt.Errorf("token for metrics: %w", err)
	}
	security := &tls.Config{RootCAs: roots, ServerName: "plimsoll-metrics." + Namespace + ".svc", MinVersion: tls.VersionTLS12}
	return &Scraper{token: mine, client: &http.Client{
		Transport: &http.Transport{TLSClientConfig: security, IdleConnTimeout: time.Minute}, Timeout: 30 * time.Second,
	}}, nil
}

// get returns the answer of a replica's metrics endpoint at host and port; the caller closes its body.
func (s *Scraper) get(ctx context.Context, address string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	return s.client.Do(request)
}

// scraper returns the fleet's own.
func (f *Fleet) scraper(ctx context.Context) (*Scraper, error) {
	f.scraping.Lock()
	defer f.scraping.Unlock()
	if f.scrapes != nil {
		return f.scrapes, nil
	}
	made, err := NewScraper(ctx, f.Hub.Client(), func(ctx context.Context, namespace, account string) (string, error) {
		return f.Hub.Token(ctx, namespace, account)
	})
	f.scrapes = made
	return made, err
}
