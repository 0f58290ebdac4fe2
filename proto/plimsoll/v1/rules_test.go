package plimsollv1_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func TestRequestsThatKeepTheRulesAreAccepted(t *testing.T) {
	for name, request := range map[string]proto.Message{
		"first page, default size": &plimsollv1.ListClustersRequest{},
		"largest page":             &plimsollv1.ListClustersRequest{PageSize: 500},
		"longest cluster name":     &plimsollv1.GetClusterRequest{Cluster: strings.Repeat("a", 63)},
		"no filters":               &plimsollv1.ListWorkloadsRequest{},
		"one namespace":            &plimsollv1.ListWorkloadsRequest{Cluster: "prod-eu", Namespace: "shop"},
		"a deployment":             workload("prod-eu", "shop", "Deployment", "cart.v2"),
		"a stateful set":           workload("prod-eu", "shop", "StatefulSet", "db"),
		"a kind of somebody else":  workload("prod-eu", "shop", "Rollout", "db"),
		"a question": &plimsollv1.WhatIfRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart",
			SpotPercentage: new(int32(0)), MinOnDemand: new(int32(10000))},
		"a namespaced object":      object("prod-eu", "deployment-spot", "shop", "cart"),
		"an object without one":    object("prod-eu", "nodes", "", "node-1.internal"),
		"an operation at once":     &plimsollv1.GetOperationRequest{Operation: "r"},
		"an operation within 30 s": operationOf("r", 30*time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			if err := protovalidate.Validate(request); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestRequestsThatBreakARuleAreRefusedNamingTheField(t *testing.T) {
	for name, c := range map[string]struct {
		request proto.Message
		field   string
	}{
		"negative page":           {&plimsollv1.ListClustersRequest{PageSize: -1}, "page_size"},
		"page too large":          {&plimsollv1.ListWorkloadsRequest{PageSize: 501}, "page_size"},
		"endless page token":      {&plimsollv1.ListClustersRequest{PageToken: strings.Repeat("x", 4097)}, "page_token"},
		"an endless filter":       {&plimsollv1.ListObjectsRequest{Filter: strings.Repeat("x", 2049)}, "filter"},
		"an endless order":        {&plimsollv1.ListWorkloadsRequest{OrderBy: strings.Repeat("x", 257)}, "order_by"},
		"no cluster":              {&plimsollv1.GetClusterRequest{}, "cluster"},
		"cluster name too long":   {&plimsollv1.GetClusterRequest{Cluster: strings.Repeat("a", 64)}, "cluster"},
		"cluster with a dot":      {&plimsollv1.GetClusterRequest{Cluster: "prod.eu"}, "cluster"},
		"cluster in capitals":     {&plimsollv1.GetClusterRequest{Cluster: "Prod"}, "cluster"},
		"cluster with two lines":  {&plimsollv1.GetClusterRequest{Cluster: "prod\nx"}, "cluster"},
		"filter that is no label": {&plimsollv1.ListWorkloadsRequest{Cluster: "-"}, "cluster"},
		"namespace with a slash":  {workload("prod", "a/b", "Deployment", "cart"), "namespace"},
		"a kind of a bad group":   {workload("prod", "shop", "Rollout.-", "cart"), "kind"},
		"a share above all":       {&plimsollv1.WhatIfRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart", SpotPercentage: new(int32(101))}, "spot_percentage"},
		"a floor below none":      {&plimsollv1.WhatIfRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart", MinOnDemand: new(int32(-1))}, "min_on_demand"},
		"a kind in small letters": {workload("prod", "shop", "deployment", "cart"), "kind"},
		"no workload name":        {workload("prod", "shop", "Deployment", ""), "name"},
		"no controller":           {object("prod", "", "shop", "cart"), "controller"},
		"object named by a path":  {object("prod", "deployment-spot", "shop", "../cart"), "name"},
		"no operation":            {operationOf("", 0), "operation"},
		"a wait too long":         {operationOf("r", 31*time.Second), "wait"},
		"a wait below zero":       {operationOf("r", -time.Second), "wait"},
	} {
		t.Run(name, func(t *testing.T) {
			err := protovalidate.Validate(c.request)
			var invalid *protovalidate.ValidationError
			if !errors.As(err, &invalid) {
				t.Fatalf("got error %v, want a violation of %s", err, c.field)
			}
			if got := protovalidate.FieldPathString(invalid.Violations[0].Proto.GetField()); got != c.field {
				t.Errorf("the violation names field %q, want %q: %v", got, c.field, err)
			}
		})
	}
}

func workload(cluster, namespace, kind, name string) proto.Message {
	return &plimsollv1.GetWorkloadRequest{Cluster: cluster, Namespace: namespace, Kind: kind, Name: name}
}

func object(cluster, controller, namespace, name string) proto.Message {
	return &plimsollv1.GetObjectStateRequest{Cluster: cluster, Controller: controller, Namespace: namespace, Name: name}
}

func operationOf(id string, wait time.Duration) proto.Message {
	return &plimsollv1.GetOperationRequest{Operation: id, Wait: durationpb.New(wait)}
}
