package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	webpage "github.com/plimsoll-dev/plimsoll/hub/page"
)

// question is one call of the table, of whichever method.
type tableCall struct {
	method protoreflect.MethodDescriptor
	about  string // the member, or the namespace of what is in no member; "": all
}

func (c tableCall) path() string {
	return fmt.Sprintf("/%s/%s", c.method.Parent().FullName(), c.method.Name())
}

// fleet reports whether it is about what is in no member.
func (c tableCall) fleet() bool { return rights[c.path()].Group != "" }

// request fills in what the method takes.
func (c tableCall) request(t *testing.T) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(c.method.Input().FullName())
	if err != nil {
		t.Fatal(err)
	}
	values := map[protoreflect.Name]protoreflect.Value{
		"cluster": protoreflect.ValueOfString(c.about), "namespace": protoreflect.ValueOfString("shop"), "kind": protoreflect.ValueOfString("Deployment"),
		"name": protoreflect.ValueOfString("cart"), "controller": protoreflect.ValueOfString("deployment-spot"),
		"operation": protoreflect.ValueOfString("w." + c.about + ".shop.id-0"), "filter": protoreflect.ValueOfString("true"), "validate_only": protoreflect.ValueOfBool(true),
	}
	if c.fleet() {
		values["namespace"] = protoreflect.ValueOfString(c.about)
	}
	request := kind.New()
	for name, value := range values {
		field := c.method.Input().Fields().ByName(name)
		if field != nil && (name != "filter" || c.method.Name() == "RequeueMatching") {
			request.Set(field, value)
		}
	}
	return request.Interface()
}

// way is one of the ways in.
type way func(ctx context.Context, t *testing.T, s *served, c tableCall, token string) (code codes.Code, shown string)

// overGRPC calls and, where it is a stream, reads until everything is there that there is at the moment.
func overGRPC(ctx context.Context, t *testing.T, s *served, c tableCall, token string) (codes.Code, string) {
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(c.method.Output().FullName())
	if err != nil {
		t.Fatal(err)
	}
	if !c.method.IsStreamingServer() {
		answer := kind.New().Interface()
		err := s.conn.Invoke(ctx, c.path(), c.request(t), answer)
		return status.Code(err), protojson.Format(answer)
	}
	stream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, c.path())
	if err == nil {
		err = stream.SendMsg(c.request(t))
	}
	if err == nil {
		err = stream.CloseSend()
	}
	var shown strings.Builder
	for err == nil && !strings.Contains(shown.String(), "SYNCED") {
		answer := kind.New().Interface()
		if err = stream.RecvMsg(answer); err == nil {
			shown.WriteString(protojson.Format(answer))
		}
	}
	return status.Code(err), shown.String()
}

// overREST makes the same call as HTTP with a header, and reads streams as far.
func overREST(header http.Header) way {
	return func(ctx context.Context, t *testing.T, s *served, c tableCall, token string) (codes.Code, string) {
		request := c.http(ctx, t, s)
		maps.Copy(request.Header, header)
		if header.Get("Origin") != "" {
			request.Header.Set("Origin", "https://"+s.rest)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := s.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		var shown strings.Builder
		for lines := bufio.NewReader(response.Body); !strings.Contains(shown.String(), "TYPE_SYNCED"); {
			line, err := lines.ReadString('\n')
			if shown.WriteString(line); err != nil {
				if err != io.EOF {
					t.Fatal(err)
				}
				break
			}
		}
		if response.StatusCode == http.StatusOK {
			return codes.OK, shown.String()
		}
		var is restStatus
		if err := is.read(shown.String()); err != nil {
			t.Fatalf("%s: HTTP %d: %s", request.URL, response.StatusCode, shown.String())
		}
		return is.code, shown.String()
	}
}

// restStatus is an error's code.
type restStatus struct{ code codes.Code }

func (r *restStatus) read(body string) error {
	var n int
	_, err := fmt.Sscanf(strings.ReplaceAll(body, " ", ""), `{"code":%d,`, &n)
	r.code = codes.Code(n)
	return err
}

// http is the call as its .proto file says that it is one of REST.
func (c tableCall) http(ctx context.Context, t *testing.T, s *served) *http.Request {
	t.Helper()
	rule, ok := proto.GetExtension(c.method.Options(), annotations.E_Http).(*annotations.HttpRule)
	if !ok {
		t.Fatalf("%s is no call of REST", c.path())
	}
	fields := map[string]string{}
	request := c.request(t).ProtoReflect()
	request.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		fields[string(field.Name())] = value.String()
		return true
	})
	method, path := http.MethodGet, rule.GetGet()
	if path == "" {
		method, path = http.MethodPost, rule.GetPost()
	}
	for name, value := range maps.Clone(fields) {
		if variable := "{" + name + "}"; strings.Contains(path, variable) {
			path = strings.ReplaceAll(path, variable, url.PathEscape(value))
			request.Clear(request.Descriptor().Fields().ByName(protoreflect.Name(name)))
			delete(fields, name)
		}
	}
	var body []byte
	if method == http.MethodGet {
		query := url.Values{}
		for name, value := range fields {
			query.Set(name, value)
		}
		path += "?" + query.Encode()
	} else {
		var err error
		if body, err = protojson.Marshal(request.Interface()); err != nil {
			t.Fatal(err)
		}
	}
	made, err := http.NewRequestWithContext(ctx, method, "https://"+s.rest+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		made.Header.Set("Content-Type", "application/json")
	}
	return made
}

// tableCallers are who calls, and which verbs they have, about what.
var tableCallers = []struct {
	name, token string
	refused     bool // nobody knows them
	verbs       []string
	about       []string // members, or namespaces; nil: all
	namespaced  bool     // in the namespace shop only
}{
	{name: "without a token", refused: true},
	{name: "with a token of nobody", token: "impostor", refused: true},
	{name: "with a token of somebody without a name", token: "nameless", refused: true},
	{name: "without any right", token: "nobody"},
	{name: "reads everything", token: "reader", verbs: []string{verbGet, verbList}},
	{name: "orders everything and reads nothing", token: "orderer", verbs: []string{verbRequeue}},
	{name: "does everything in one member", token: "of-prod", verbs: []string{verbGet, verbList, verbRequeue}, about: []string{"prod", "shop"}},
	{name: "reads one namespace of one member", token: "of-shop", verbs: []string{verbGet, verbList}, about: []string{"prod", "shop"}, namespaced: true},
	{name: "does everything", token: "admin", verbs: []string{verbGet, verbList, verbRequeue}},
}

// giveTable gives the callers of the table what it says that they have.
func giveTable(s *served) {
	for _, who := range tableCallers {
		for _, verb := range who.verbs {
			for _, resource := range []string{resourceClusters, resourceWorkloads, resourceObjects, resourceEvents} {
				right := auth.Access{Verb: verb, Resource: resource}
				if who.about != nil {
					right.Member = who.about[0]
				}
				if who.namespaced {
					right.Namespace = "shop"
				}
				s.give(who.token, right)
			}
			right := rights["/plimsoll.v1.FleetService/ListFleetPlacements"]
			if right.Verb, right.Namespace = verb, ""; who.about != nil {
				right.Namespace = who.about[1]
			}
			s.give(who.token, right)
		}
	}
}

// TestWhoMayDoWhatAboutWhichMember goes through every method, every kind of caller and two members, on every way into the hub: what one
// of them lets through and another does not is a hole.
func TestWhoMayDoWhatAboutWhichMember(t *testing.T) {
	r := shop(t)
	r.member("test")
	r.fleet.give("test", r.address)
	r.workload("test", "shop", "secret-of-test")
	r.place("back", "secret-of-test", 1, "test")
	served, err := webpage.New()
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, r, func(o *Options) { o.CallsPerSecond, o.Page = -1, served })
	giveTable(s)
	fromPage := http.Header{"Origin": {"of the page"}, "Sec-Fetch-Site": {"same-origin"}, "Sec-Fetch-Mode": {"cors"}, "Referer": {"https://hub/ui/"}}
	ways := map[string]way{"gRPC": overGRPC, "REST": overREST(nil), "the page": overREST(fromPage)}
	events := overREST(http.Header{"Accept": {"text/event-stream"}})
	for name := range rules {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(name[1:], "/", ".")))
		if err != nil {
			t.Fatal(err)
		}
		method := found.(protoreflect.MethodDescriptor)
		for _, about := range [][2]string{{"prod", "shop"}, {"test", "back"}, {"", ""}} {
			c := tableCall{method: method, about: about[0]}
			if c.fleet() {
				c.about = about[1]
			}
			fields := method.Input().Fields()
			names := c.fleet() || fields.ByName("cluster") != nil || fields.ByName("operation") != nil
			if c.about == "" && !rules[name].lists || c.about != "" && !names {
				continue
			}
			these := maps.Clone(ways)
			if method.IsStreamingServer() {
				these["Server-Sent Events"] = events
			}
			for _, who := range tableCallers {
				for in, call := range these {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					code, shown := call(ctx, t, s, c, who.token)
					cancel()
					if want := c.wanted(who.refused, who.verbs, who.about, who.namespaced); !want(code) {
						t.Errorf("%s about %q, who %s, over %s: %s: %s", name, c.about, who.name, in, code, shown)
					}
					hides := who.about != nil || !slices.Contains(who.verbs, rights[name].Verb)
					if hides && strings.Contains(shown, "secret-of-test") {
						t.Errorf("%s about %q, who %s, over %s, shows what is hidden: %s", name, c.about, who.name, in, shown)
					}
				}
			}
		}
	}
	// What the page itself is made of is for everybody, and says nothing.
	for _, token := range []string{"", "impostor", "admin"} {
		for _, path := range []string{"/ui/", "/ui/app.js", "/ui/api.js"} {
			header := http.Header{}
			if token != "" {
				header = bearing(token)
			}
			if response, body := s.call(t, http.MethodGet, path, "", header); response.StatusCode != http.StatusOK || strings.Contains(body, "secret-of-test") {
				t.Errorf("%s: HTTP %d", path, response.StatusCode)
			}
		}
	}
}

// wanted says which codes are right: a refusal, or anything but a refusal.
func (c tableCall) wanted(refused bool, verbs, about []string, namespaced bool) func(codes.Code) bool {
	needs := rights[c.path()]
	inNamespace := c.method.Input().Fields().ByName("namespace") != nil || c.method.Input().Fields().ByName("operation") != nil
	switch {
	case refused:
		return func(code codes.Code) bool { return code == codes.Unauthenticated }
	case !slices.Contains(verbs, needs.Verb), about != nil && c.about != "" && !slices.Contains(about, c.about), namespaced && !c.fleet() && !inNamespace:
		return func(code codes.Code) bool { return code == codes.PermissionDenied }
	}
	return func(code codes.Code) bool {
		return code == codes.OK || code == codes.NotFound || code == codes.FailedPrecondition // of an operation that is final, or nobody's
	}
}
