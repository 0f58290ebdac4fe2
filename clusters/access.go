package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reviewsAtOnce bounds the access reviews that a member gets at a time.
const reviewsAtOnce = 4

// review asks all questions and returns what is denied, in words. An error means that the member did not say.
func (p *prober) review(ctx context.Context, questions []question) (denied []string, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for _, q := range questions {
		for _, verb := range q.Verbs {
			group.Go(func() error {
				allowed, err := p.allowed(ctx, q, verb)
				if err == nil && !allowed {
					mu.Lock()
					denied = append(denied, q.describe(verb))
					mu.Unlock()
				}
				return err
			})
		}
	}
	err = group.Wait()
	sort.Strings(denied)
	return denied, err
}

// describe says what is denied and what is lost, for example "create pods/eviction in namespace shop (replicas cannot be
// moved)".
func (q question) describe(verb string) string {
	var s strings.Builder
	s.WriteString(verb + " " + q.Resource)
	if q.Group != "" {
		s.WriteString("." + q.Group)
	}
	if q.Subresource != "" {
		s.WriteString("/" + q.Subresource)
	}
	if q.Name != "" {
		s.WriteString(" " + q.Name)
	}
	if q.namespace != "" {
		s.WriteString(" in namespace " + q.namespace)
	}
	if q.For != "" {
		s.WriteString(" (" + q.For + ")")
	}
	return s.String()
}

// allowed reports whether the hub's credentials may do verb: from the member's rules if these say so, else by asking for it.
func (p *prober) allowed(ctx context.Context, q question, verb string) (bool, error) {
	if p.granted(ctx, q, verb) {
		return true, nil
	}
	body, err := json.Marshal(&authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: q.namespace, Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Name: q.Name, Verb: verb,
		}},
	})
	if err != nil {
		return false, fmt.Errorf("encode an access review: %w", err)
	}
	answer, err := p.rest.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
		SetHeader("Content-Type", "application/json").Body(body).MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return false, err
	}
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.Unmarshal(answer, &review); err != nil {
		return false, fmt.Errorf("access review: the answer is not one")
	}
	return review.Status.Allowed, nil
}

// listOne asks for a single object of resource, names only: it shows cheaply whether it is served and may be listed in a
// scope.
func (p *prober) listOne(ctx context.Context, resource schema.GroupVersionResource, in scope) error {
	path := []string{"/apis", resource.Group, resource.Version}
	if resource.Group == "" {
		path = []string{"/api", resource.Version}
	}
	if in.namespace != "" {
		path = append(path, "namespaces", in.namespace)
	}
	request := p.rest.Get().AbsPath(append(path, resource.Resource)...).Param("limit", "1")
	if in.fields != nil {
		request = request.Param("fieldSelector", in.fields.String())
	}
	_, err := request.
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json").
		MaxRetries(0).Do(ctx).Raw()
	return err
}
