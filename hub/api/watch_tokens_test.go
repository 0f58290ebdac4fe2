package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// openWatch opens a watch of whichever method, with texts in some fields of its request, and reads until it says where to resume, or ends.
func (s *served) openWatch(ctx context.Context, t *testing.T, method protoreflect.MethodDescriptor, fields map[protoreflect.Name]string) (token string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	message := func(of protoreflect.MessageDescriptor) protoreflect.Message {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName())
		if err != nil {
			t.Fatal(err)
		}
		return kind.New()
	}
	request := message(method.Input())
	for name, value := range fields {
		request.Set(method.Input().Fields().ByName(name), protoreflect.ValueOfString(value))
	}
	stream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/"+string(method.Parent().FullName())+"/"+string(method.Name()))
	if err == nil {
		err = stream.SendMsg(request.Interface())
	}
	if err == nil {
		err = stream.CloseSend()
	}
	for err == nil && token == "" {
		answer := message(method.Output())
		err = stream.RecvMsg(answer.Interface())
		token = answer.Get(method.Output().Fields().ByName("resume_token")).String()
	}
	return token, err
}

// A token of one watch resumes no other: it says what its reader knows, which is not what another watch shows.
func TestAResumeTokenIsForItsOwnFiltersAndCallerOnly(t *testing.T) {
	r := shop(t)
	s := serve(t, r, func(o *Options) { o.CallsPerSecond = -1 })
	giveTable(s)
	other := map[protoreflect.Name]string{"filter": "true", "cluster": "prod", "namespace": "shop", "controller": "webapp"}
	for name := range rules {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(name[1:], "/", ".")))
		if err != nil {
			t.Fatal(err)
		}
		method := found.(protoreflect.MethodDescriptor)
		if !method.IsStreamingServer() {
			continue
		}
		token, err := s.openWatch(as(t, "admin"), t, method, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := s.openWatch(as(t, "reader"), t, method, map[protoreflect.Name]string{"resume_token": token}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: another caller resumes it: %v", name, err)
		}
		for field, value := range other {
			if method.Input().Fields().ByName(field) == nil {
				continue
			}
			if _, err := s.openWatch(as(t, "admin"), t, method, map[protoreflect.Name]string{"resume_token": token, field: value}); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s: a watch with another %s resumes it: %v", name, field, err)
			}
		}
	}
}

// An account that was deleted and made again has the name of the one before it, and is somebody else.
func TestAResumeTokenIsNotForWhoeverHasTheNameLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 10*bookmarkEvery)
		defer stop()
		c := shop(t).ledgerService(t).core
		c.stopping, c.recheck = ctx, time.Minute
		objects := newServices(c).objects
		watch := func(uid, token string) (bookmark string, err error) {
			var sent []*plimsollv1.WatchObjectsResponse
			who := context.WithValue(ctx, identityKey{}, auth.Identity{User: "alice", UID: uid})
			err = objects.WatchObjects(&plimsollv1.WatchObjectsRequest{ResumeToken: token}, marked{objectsOf{streamOf{ctx: who}}, &sent})
			if !errors.Is(err, errMarked) {
				return "", err
			}
			return sent[len(sent)-1].GetResumeToken(), nil
		}
		token, err := watch("1", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch("2", token); status.Code(err) != codes.InvalidArgument {
			t.Errorf("another of the same name: %v", err)
		}
		if _, err := watch("1", token); err != nil {
			t.Error(err)
		}
	})
}
