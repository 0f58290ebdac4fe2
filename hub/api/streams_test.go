package api

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

func TestTheWatchesOfAllCallersTogetherAreLimited(t *testing.T) {
	s := &streams{ofUser: map[string]int{}}
	var leave func()
	for i := range maxWatches {
		var err error
		if leave, err = s.enter(auth.Identity{User: fmt.Sprint("user ", i)}); err != nil {
			t.Fatalf("watch %d: %v", i, err)
		}
	}
	if _, err := s.enter(auth.Identity{User: "one more"}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more: %v", err)
	}
	leave()
	if _, err := s.enter(auth.Identity{User: "one more"}); err != nil {
		t.Errorf("when another has left: %v", err)
	}
}
