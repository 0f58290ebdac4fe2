package api

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// overTLS serves the peer side of a replica on a real listener, and makes it what other replicas connect to. It returns the address.
func (r *replica) overTLS(t *testing.T, dial ...grpc.DialOption) (address string) {
	t.Helper()
	certificate, roots := selfSigned(t)
	stopping, stop := context.WithCancel(context.Background())
	server, err := NewPeer(stopping, r.backend(), &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	listener := listen(t)
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), append(dial, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13,
	})))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		stop()
		server.Stop()
	})
	r.fleet.mu.Lock()
	defer r.fleet.mu.Unlock()
	r.peer = conn
	return listener.Addr().String()
}

// spelled gives callers the names that an identity provider may give them, which no header may hold as it is.
type spelled struct{ auth.Authenticator }

func (s spelled) Authenticate(ctx context.Context, token string) (auth.Identity, error) {
	who, err := s.Authenticator.Authenticate(ctx, token)
	if who.User != "" {
		who.User = fullName(token)
	}
	return who, err
}

func fullName(token string) string { return "oidc:" + token + " Müller,\n" }

// An order of many keys that another replica works off is that of its caller in everything: in the audit line, the journal, the
// operation, each key that it requeues, its pace, and its name, by which nobody else repeats it.
func TestAnOrderOfManyIsItsCallersOnTheReplicaThatItIsPassedTo(t *testing.T) {
	first, second := failing(t)
	second.overTLS(t)
	s := serve(t, first, func(o *Options) { o.Authenticator, o.OwnerTimeout = spelled{o.Authenticator}, time.Minute })
	callers := []string{"alice", "bob"}
	request := &plimsollv1.RequeueMatchingRequest{Cluster: "test", Controller: "deployment-spot", Filter: "object.attempts > 1", PerSecond: 7, RequestId: "nightly"}
	operations := map[string]string{}
	for _, caller := range callers {
		for _, verb := range []string{"requeue", "get"} {
			s.give(fullName(caller), auth.Access{Verb: verb, Resource: "objects", Member: "test"})
		}
		for n := range 2 {
			answer, err := s.objects().RequeueMatching(as(t, caller), request)
			if err != nil || len(answer.GetOperations()) != 1 || answer.GetNothingOrdered() != (n > 0) || n > 0 && answer.GetOperations()[0] != operations[caller] {
				t.Fatalf("%s: time %d: %v, %v", caller, n, answer, err)
			}
			operations[caller] = answer.GetOperations()[0]
		}
	}
	if operations["alice"] == operations["bob"] {
		t.Error("the name that one caller gave an order is that of another's")
	}
	for _, caller := range callers {
		id, err := parseOperationID(operations[caller])
		if err != nil {
			t.Fatal(err)
		}
		if b := second.batches.find(id); b != nil {
			eventually(t, "all is ordered", b.final)
		}
	}
	for _, caller := range callers {
		id, err := parseOperationID(operations[caller])
		if err != nil {
			t.Fatal(err)
		}
		b := second.batches.find(id)
		if b == nil || len(first.batches.in("test")) != 0 {
			t.Fatalf("%s: the owner knows of %v, the replica that was called of %d", caller, b, len(first.batches.in("test")))
		}
		if b.pace != 7 || b.caller != fullName(caller) {
			t.Errorf("%s: the owner has an order of %q with a pace of %d", caller, b.caller, b.pace)
		}
		answer, err := s.objects().GetOperation(as(t, caller), &plimsollv1.GetOperationRequest{Operation: operations[caller]})
		if err != nil || answer.GetOperation().GetUser() != fullName(caller) || answer.GetOperation().GetOrdered() != 3 {
			t.Errorf("%s: %v, %v", caller, answer, err)
		}
		ordered := slices.DeleteFunc(second.orders(), func(by string) bool { return by != fullName(caller) })
		if len(ordered) != 3 || len(second.orders()) != 6 || len(first.orders()) != 0 {
			t.Errorf("%s: keys were ordered by %q", caller, second.orders())
		}
	}
	events, _ := second.journal.List("test", "", "", 100)
	for i, caller := range callers {
		if len(events) != 2 || events[i].Type != journal.Requeue || events[i].User != fullName(caller) {
			t.Errorf("the owner's journal has %v", events)
		}
	}
	s.auditedOnce(t, callers)
}

// auditedOnce wants an audit line for each call of TestAnOrderOfManyIsItsCallersOnTheReplicaThatItIsPassedTo, with who and from where.
func (s *served) auditedOnce(t *testing.T, callers []string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"msg":"API order"`) {
			lines = append(lines, line)
		}
	}
	if len(lines) != 2*len(callers) {
		t.Fatalf("%d audit lines: %s", len(lines), lines)
	}
	for i, line := range lines {
		for _, want := range []string{fmt.Sprintf(`"user":%q`, fullName(callers[i/2])), `"remote":"127.0.0.1:`, `"request_id":"nightly"`, `"member":"test"`, `"code":"OK"`} {
			if !strings.Contains(line, want) {
				t.Errorf("an audit line without %s: %s", want, line)
			}
		}
	}
}

// Whoever orders very often by way of another replica pushes out their own operations on the owner, and those of nobody else.
func TestOperationsOfOrdersThatArePassedOnArePushedOutForEachCaller(t *testing.T) {
	first, second := failing(t)
	second.overTLS(t)
	s := serve(t, first, func(o *Options) { o.CallsPerSecond, o.OwnerTimeout = -1, time.Minute })
	order := func(who string) (id string) {
		t.Helper()
		for {
			answer, err := s.objects().RequeueMatching(as(t, who), &plimsollv1.RequeueMatchingRequest{
				Cluster: "test", Controller: "deployment-spot", Filter: "object.attempts == 1", PerSecond: 1000,
			})
			switch {
			case err == nil:
				return answer.GetOperations()[0]
			case status.Code(err) != codes.ResourceExhausted: // one has only to end
				t.Fatal(err)
			}
		}
	}
	find := func(operation string) error {
		_, err := s.objects().GetOperation(as(t, "admin"), &plimsollv1.GetOperationRequest{Operation: operation})
		return err
	}
	s.give("greedy", auth.Access{Verb: "requeue", Resource: "objects", Member: "test"})
	modest, oldest := order("admin"), order("greedy")
	for range maxBatchOperations + 10 {
		order("greedy")
	}
	if err := find(modest); err != nil {
		t.Errorf("the operation of another caller: %v", err)
	}
	if err := find(oldest); status.Code(err) != codes.NotFound {
		t.Errorf("the oldest operation of the caller with the most: %v, want NOT_FOUND", err)
	}
}
