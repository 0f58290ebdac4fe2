package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"
)

func get(t *testing.T, url string, config *tls.Config) error {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	_, err = drain(response)
	return err
}

// trusting is what the API server of a member makes of the bundle that it is given.
func trusting(bundle []byte) *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	return &tls.Config{RootCAs: pool}
}
