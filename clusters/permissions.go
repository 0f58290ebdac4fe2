package clusters

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// clusterWide is a namespace in which nobody is expected to be granted anything: what is permitted there is permitted
	// everywhere. It need not exist.
	clusterWide = "plimsoll-access-review"
	// rulesFresh is how long the rules of a namespace are good for further questions: those of one join come together.
	rulesFresh = 5 * time.Second
	// maxRules is how many rules are kept of a namespace. Where there are more, each right is asked about.
	maxRules = 5000
)

// permissions remembers for a moment what a member permits, so that it is asked once instead of once for each verb.
type permissions struct {
	flights singleflight.Group

	mu    sync.Mutex
	rules map[string]grantedRules // by namespace
}

// grantedRules are those of one namespace; none when the member did not list them completely.
type grantedRules struct {
	rules []authorizationv1.ResourceRule
	at    time.Time
}

// granted reports whether the member has said in its rules that q may be done. False means that it has not said so, not that
// it is denied: authorizers other than RBAC do not list their rules.
func (p *prober) granted(ctx context.Context, q question, verb string) bool {
	namespace := q.namespace
	if namespace == "" {
		namespace = clusterWide
	}
	return slices.ContainsFunc(p.rulesOf(ctx, namespace), func(rule authorizationv1.ResourceRule) bool { return grants(rule, q, verb) })
}

// rulesOf returns the rules of a namespace, from memory if they are fresh.
func (p *prober) rulesOf(ctx context.Context, namespace string) []authorizationv1.ResourceRule {
	known := &p.permissions
	known.mu.Lock()
	have, ok := known.rules[namespace]
	known.mu.Unlock()
	if ok && time.Since(have.at) < rulesFresh {
		return have.rules
	}
	answer := known.flights.DoChan(namespace, func() (any, error) {
		rules := p.askRules(context.WithoutCancel(ctx), namespace) // within the limits of the transport
		known.mu.Lock()
		defer known.mu.Unlock()
		if known.rules == nil {
			known.rules = map[string]grantedRules{}
		}
		maps.DeleteFunc(known.rules, func(_ string, r grantedRules) bool { return time.Since(r.at) >= rulesFresh })
		known.rules[namespace] = grantedRules{rules, time.Now()}
		return rules, nil
	})
	select {
	case <-ctx.Done():
		return nil
	case rules := <-answer:
		return rules.Val.([]authorizationv1.ResourceRule)
	}
}

// askRules asks for the rules of a namespace; none when they are not listed, or not all of them.
func (p *prober) askRules(ctx context.Context, namespace string) []authorizationv1.ResourceRule {
	body, err := json.Marshal(&authorizationv1.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
		Spec:     authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	})
	if err != nil {
		return nil
	}
	answer, err := p.rest.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews").
		SetHeader("Content-Type", "application/json").Body(body).MaxRetries(0).Do(ctx).Raw()
	var review authorizationv1.SelfSubjectRulesReview
	if err != nil || json.Unmarshal(answer, &review) != nil || review.Status.Incomplete || len(review.Status.ResourceRules) > maxRules {
		return nil
	}
	return review.Status.ResourceRules
}

// grants reports whether a rule permits what q asks for, as RBAC reads rules.
func grants(rule authorizationv1.ResourceRule, q question, verb string) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	resource := q.Resource
	if q.Subresource != "" {
		resource += "/" + q.Subresource
	}
	return has(rule.Verbs, verb) && has(rule.APIGroups, q.Group) &&
		(has(rule.Resources, resource) || q.Subresource != "" && slices.Contains(rule.Resources, "*/"+q.Subresource)) &&
		(len(rule.ResourceNames) == 0 || q.Name != "" && slices.Contains(rule.ResourceNames, q.Name))
}
