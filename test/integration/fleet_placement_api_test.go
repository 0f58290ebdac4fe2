package integration

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// guarded starts a replica beside the one that acts, whose API asks for tokens: what only the other knows it has to ask there, for its
// caller.
func (s *fleetSite) guarded(t *testing.T) plimsollv1.FleetServiceClient {
	t.Helper()
	g := NewWithT(t)
	settings := s.settings()
	for key, value := range quick {
		if settings[key] == nil {
			settings[key] = value
		}
	}
	settings["api.unauthenticated"], settings["api.plaintext"] = false, true
	replica, err := s.NewReplica("fleet-guarded", settings)
	g.Expect(err).NotTo(HaveOccurred())
	read, err := config.Load(replica.ConfigFile, nil)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	made, err := hub.New(ctx, read, hub.WithEnvironment(nil))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- made.Run(ctx) }()
	conn, err := grpc.NewClient("passthrough:///"+replica.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		g.Expect(conn.Close()).To(Succeed())
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
	return plimsollv1.NewFleetServiceClient(conn)
}

// as returns a context with the token of an account of the hub cluster that has these rights.
func (c *overFleetCase) as(name string, rules ...rbacv1.PolicyRule) context.Context {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: c.namespace + "-" + name}, Rules: rules}
	k := c.site.Hub.Client()
	c.Expect(k.Create(c.ctx, account)).To(Succeed())
	c.Expect(k.Create(c.ctx, role)).To(Succeed())
	c.Expect(k.Create(c.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: name}},
	})).To(Succeed())
	token, err := c.site.Hub.Token(c.ctx, c.namespace, name, "plimsoll")
	c.Expect(err).NotTo(HaveOccurred())
	return metadata.AppendToOutgoingContext(c.ctx, "authorization", "Bearer "+token)
}

// fleetAPISpec asks about a FleetPlacement as callers with different rights.
func fleetAPISpec(t *testing.T, s *fleetSite) {
	c := s.delivered(t, 0)
	c.place(12, 3)
	c.exactly(8, 4)
	api := s.guarded(t)
	read := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"fleetplacements"}, Verbs: []string{"get", "list"}}
	see := func(members ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"api.plimsoll.dev"}, Resources: []string{"workloads"}, ResourceNames: members, Verbs: []string{"get"}}
	}
	reader, stranger := c.as("reader", read, see("one", "two")), c.as("stranger", see("one", "two", "three"))
	get := &plimsollv1.GetFleetPlacementRequest{Namespace: c.namespace, Name: "web"}
	explain := &plimsollv1.ExplainFleetPlacementRequest{Namespace: c.namespace, Name: "web"}
	more := &plimsollv1.WhatIfFleetPlacementRequest{Namespace: c.namespace, Name: "web", MinOnDemand: ptr.To(int32(9))}

	step := func(name string, do func()) {
		t.Log(name)
		do()
	}
	step("without a token or a right there is no answer", func() {
		for want, ctx := range map[codes.Code]context.Context{codes.Unauthenticated: c.ctx, codes.PermissionDenied: stranger} {
			refused := func(_ any, err error) { // the first calls may come before it serves
				c.Expect(status.Code(err)).To(Equal(want), "%v", err)
			}
			c.Eventually(func() codes.Code {
				_, err := api.GetFleetPlacement(ctx, get)
				return status.Code(err)
			}).Should(Equal(want))
			refused(api.ExplainFleetPlacement(ctx, explain))
			refused(api.WhatIfFleetPlacement(ctx, more))
			if want == codes.Unauthenticated {
				refused(api.ListFleetPlacements(ctx, &plimsollv1.ListFleetPlacementsRequest{Namespace: c.namespace}))
			}
		}
	})
	names := func(members []*plimsollv1.FleetMember) (all []string) {
		for _, m := range members {
			all = append(all, m.GetName())
		}
		return all
	}
	step("a reader gets it, and members that may be seen", func() {
		c.Eventually(func(g Gomega) {
			answer, err := api.GetFleetPlacement(reader, get)
			g.Expect(err).NotTo(HaveOccurred())
			p := answer.GetPlacement()
			g.Expect(p.GetState()).To(Equal(plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_PLACED))
			g.Expect([]int32{p.GetReady(), p.GetSpot().GetReady(), p.GetOnDemand().GetReady()}).To(Equal([]int32{12, 8, 4}))
			g.Expect(names(p.GetMembers())).To(ConsistOf("one", "two"))
			g.Expect(p.GetHiddenMembers()).To(Equal(int32(1)))
		}).Should(Succeed())
		list, err := api.ListFleetPlacements(reader, &plimsollv1.ListFleetPlacementsRequest{Namespace: c.namespace, Filter: "placement.ready == 12"})
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect(list.GetPlacements()).To(HaveLen(1))
	})
	step("why it is so, and what would be otherwise, are asked of the replica that acts", func() {
		c.Eventually(func(g Gomega) {
			answer, err := api.ExplainFleetPlacement(reader, explain)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(answer.GetSummary()).NotTo(BeEmpty())
			g.Expect(answer.GetMembers()).To(HaveLen(2))
			for _, m := range answer.GetMembers() {
				g.Expect(m.GetWhyMember()).NotTo(BeEmpty())
			}
			g.Expect(strings.Contains(answer.String(), "three")).To(BeFalse(), "%s", answer)
		}).Should(Succeed())
		before := c.versions()
		answer, err := api.WhatIfFleetPlacement(reader, more)
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect([]int32{answer.GetSpot(), answer.GetOnDemand()}).To(Equal([]int32{3, 9}))
		c.Expect(names(answer.GetThen())).To(ConsistOf("one", "two"))
		c.Expect(c.versions()).To(Equal(before), "a question has changed something")
	})
	step("a watch sends what changes", func() {
		ctx, cancel := context.WithTimeout(reader, patience)
		defer cancel()
		stream, err := api.WatchFleetPlacements(ctx, &plimsollv1.WatchFleetPlacementsRequest{Namespace: c.namespace})
		c.Expect(err).NotTo(HaveOccurred())
		synced := false
		for {
			event, err := stream.Recv()
			c.Expect(err).NotTo(HaveOccurred())
			if p := event.GetPlacement(); synced && p.GetReady() == 15 {
				c.Expect(p.GetPolicy().GetReplicas()).To(Equal(int32(15)))
				c.Expect(p.GetHiddenMembers()).To(Equal(int32(1)))
				return
			}
			if event.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
				synced = true
				c.patch(func(p *v1alpha1.FleetPlacementSpec) { p.Replicas = ptr.To(int32(15)) })
			}
		}
	})
}
