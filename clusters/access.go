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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reviewsAtOnce bounds the access reviews that a member gets at a time.
const reviewsAtOnce = 4

// review asks for everything in access and returns what is denied, in words. An error means that the member did not say.
func (p *prober) review(ctx context.Context, access []Access) (denied []string, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for _, a := range access {
		for _, verb := range a.Verbs {
			group.Go(func() error {
				allowed, err := p.allowed(ctx, a, verb)
				if err == nil && !allowed {
					mu.Lock()
					denied = append(denied, a.describe(verb))
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

// describe says what is denied and what is lost, for example "create pods/eviction (replicas cannot be moved)".
func (a Access) describe(verb string) string {
	var s strings.Builder
	s.WriteString(verb + " " + a.Resource)
	if a.Group != "" {
		s.WriteString("." + a.Group)
	}
	if a.Subresource != "" {
		s.WriteString("/" + a.Subresource)
	}
	if a.Name != "" {
		s.WriteString(" " + a.Name)
	}
	if a.For != "" {
		s.WriteString(" (" + a.For + ")")
	}
	return s.String()
}

// allowed asks whether the hub's credentials may do verb.
func (p *prober) allowed(ctx context.Context, a Access, verb string) (bool, error) {
	body, err := json.Marshal(&authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, Verb: verb,
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

// listOne asks for a single object of resource, names only: it tells cheaply whether it is served and may be listed, as far
// as only goes (nil: everything).
func (p *prober) listOne(ctx context.Context, resource schema.GroupVersionResource, only fields.Selector) error {
	path := []string{"/apis", resource.Group, resource.Version, resource.Resource}
	if resource.Group == "" {
		path = []string{"/api", resource.Version, resource.Resource}
	}
	request := p.rest.Get().AbsPath(path...).Param("limit", "1")
	if only != nil {
		request = request.Param("fieldSelector", only.String())
	}
	_, err := request.
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json").
		MaxRetries(0).Do(ctx).Raw()
	return err
}
