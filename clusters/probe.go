package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// identity is what a member's API server says about itself.
type identity struct {
	// version is the Kubernetes version, "" when it is not known.
	version string
	// uid is that of the kube-system namespace, "" when the credentials may not read it.
	uid string
}

// prober asks a member how it is. It uses the transport without budget and breaker.
type prober struct {
	rest        rest.Interface
	permissions permissions
}

func newProber(config *rest.Config, client *http.Client) (*prober, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	restClient, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for probes: %w", err)
	}
	return &prober{rest: restClient}, nil
}

// ready asks whether the API server is ready and takes the credentials. Credentials that may not see /readyz are good
// enough: they were recognised, and somebody answered.
func (p *prober) ready(ctx context.Context) error {
	_, err := p.get(ctx, "/readyz")
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// identify asks for version and identity.
func (p *prober) identify(ctx context.Context) (identity, error) {
	var id identity
	body, err := p.get(ctx, "/version")
	if err != nil && !apierrors.IsForbidden(err) {
		return id, err
	}
	id.version = parseVersion(body)
	body, err = p.get(ctx, "/api/v1/namespaces/kube-system")
	if err != nil && !apierrors.IsForbidden(err) {
		return id, err
	}
	id.uid = parseUID(body)
	return id, nil
}

// get returns the body at path. It is asked for once: client-go would repeat it for as long as a server likes.
func (p *prober) get(ctx context.Context, path string) ([]byte, error) {
	return p.rest.Get().AbsPath(path).MaxRetries(0).Do(ctx).Raw()
}

var (
	versionPattern = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]{0,40}$`)
	uidPattern     = regexp.MustCompile(`^[-0-9A-Za-z]{1,64}$`)
)

// parseVersion returns the version in body, or "" if it does not look like one.
func parseVersion(body []byte) string {
	var info version.Info
	if json.Unmarshal(body, &info) != nil || !versionPattern.MatchString(info.GitVersion) {
		return ""
	}
	return info.GitVersion
}

// parseUID returns the UID of the object in body, or "" if it does not look like one.
func parseUID(body []byte) string {
	var object metav1.PartialObjectMetadata
	if json.Unmarshal(body, &object) != nil || !uidPattern.MatchString(string(object.UID)) {
		return ""
	}
	return string(object.UID)
}
