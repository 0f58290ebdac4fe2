package api

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// A call that does not ask for the headers does not get them: most calls are short, and the headers cost more than the answer.
func TestAnswersHaveNoHeadersThatNobodyAsksFor(t *testing.T) {
	s := serve(t, shop(t), nil)
	var header metadata.MD
	if _, err := s.clusters().ListClusters(as(t, "admin"), &plimsollv1.ListClustersRequest{}, grpc.Header(&header)); err != nil {
		t.Fatal(err)
	}
	if len(header.Get(versionHeader))+len(header.Get(timeHeader)) > 0 {
		t.Errorf("the header is %v", header)
	}
}

// Whoever is known and asks gets version and time, whatever they may do; strangers get nothing.
func TestAnswersSayWhatAnswersToThoseWhoAreKnown(t *testing.T) {
	s := serve(t, shop(t), nil)
	for token, want := range map[string]codes.Code{"admin": codes.OK, "nobody": codes.PermissionDenied, "impostor": codes.Unauthenticated} {
		var header metadata.MD
		before := time.Now()
		_, err := s.clusters().ListClusters(metadata.AppendToOutgoingContext(as(t, token), aboutHeader, "1"), &plimsollv1.ListClustersRequest{}, grpc.Header(&header))
		after := time.Now()
		if status.Code(err) != want {
			t.Errorf("%s: %v, want %s", token, err, want)
		}
		if want == codes.Unauthenticated {
			if len(header.Get(versionHeader))+len(header.Get(timeHeader)) > 0 {
				t.Errorf("%s gets %v", token, header)
			}
			continue
		}
		said := header.Get(timeHeader)
		if len(said) != 1 || len(header.Get(versionHeader)) != 1 || header.Get(versionHeader)[0] != builtFrom() {
			t.Fatalf("%s: the header is %v", token, header)
		}
		if at, err := time.Parse(time.RFC3339Nano, said[0]); err != nil || at.Before(before) || at.After(after) {
			t.Errorf("%s: the clock shows %s, between %s and %s: %v", token, said[0], before, after, err)
		}
	}
}
