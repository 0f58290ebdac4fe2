package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/clusters"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// restError is the body of every REST error.
type restError struct {
	Code    int
	Message string
	Details []struct {
		Type            string `json:"@type"`
		FieldViolations []struct{ Field, Description, Reason string }
	}
}

func TestRESTErrorsHaveTheRightStatusAndSayWhatIsWrong(t *testing.T) {
	r := shop(t)
	r.member("lonely", "refused")
	r.fleet.give("refused", r.address)
	r.set("refused", func(s *clusters.Status) { s.State = clusters.StateRefused })
	r.notEnabled = map[policy.WorkloadKey]spot.NotEnabled{workloadKey("shop", "Deployment", "plain"): {Reason: "Deployment shop/plain does not have the label x"}}
	s := serve(t, r, nil)
	for name, c := range map[string]struct {
		call, body, token string
		status, code      int
		says, field       string
	}{
		"no token":                  {"GET /v1/clusters", "", "", 401, 16, "a bearer token is needed", ""},
		"a bad token":               {"GET /v1/clusters", "", "impostor", 401, 16, "not accepted", ""},
		"no right":                  {"GET /v1/clusters/prod", "", "nobody", 403, 7, "grant get on clusters.api.plimsoll.dev", ""},
		"no right to any":           {"GET /v1/clusters", "", "nobody", 403, 7, "list clusters of any member", ""},
		"a member that is not":      {"GET /v1/clusters/prod-2", "", "admin", 404, 5, `member "prod-2": no registration Secret`, ""},
		"workloads of none":         {"GET /v1/workloads?cluster=prod-2", "", "admin", 404, 5, `member "prod-2"`, ""},
		"a workload that is not":    {"GET /v1/clusters/prod/namespaces/shop/workloads/Deployment/cartt", "", "admin", 404, 5, "no Deployment shop/cartt", ""},
		"a workload not enabled":    {"GET /v1/clusters/prod/namespaces/shop/workloads/Deployment/plain", "", "admin", 404, 5, "Deployment shop/plain does not have the label", ""},
		"an object that is not":     {"GET /v1/clusters/prod/controllers/deployment-spot/objects/shop/cartt", "", "admin", 404, 5, `"shop/cartt"`, ""},
		"a controller that is not":  {"POST /v1/clusters/prod/controllers/cron/objects/shop/cart:requeue", "{}", "admin", 404, 5, `"cron"`, ""},
		"a kind not engaged":        {"POST /v1/clusters/refused/namespaces/shop/workloads/Deployment/cart:requeue", "", "admin", 404, 5, "does not run there", ""},
		"an operation that is not":  {"GET /v1/operations/w.prod.id-9", "", "admin", 404, 5, "it is safe to requeue again", ""},
		"nobody's member":           {"GET /v1/clusters/lonely/namespaces/shop/workloads/Deployment/cart", "", "admin", 503, 14, "no replica owns it", ""},
		"a name in capitals":        {"GET /v1/clusters/Prod", "", "admin", 400, 3, "cluster", "cluster"},
		"a kind that is not placed": {"GET /v1/clusters/prod/namespaces/shop/workloads/DaemonSet/cart", "", "admin", 404, 5, "no DaemonSet shop/cart", ""},
		"a kind that is none":       {"GET /v1/clusters/prod/namespaces/shop/workloads/deployment/cart", "", "admin", 400, 3, "kind", "kind"},
		"a page too large":          {"GET /v1/clusters?page_size=501", "", "admin", 400, 3, "page_size", "page_size"},
		"a page that is no number":  {"GET /v1/clusters?page_size=many", "", "admin", 400, 3, "page_size", ""},
		"a token of no page":        {"GET /v1/clusters?pageToken=x", "", "admin", 400, 3, "page_token", "page_token"},
		"an operation that is none": {"GET /v1/operations/x", "", "admin", 400, 3, "operation", "operation"},
		"a wait too long":           {"GET /v1/operations/w.prod.shop.id-0?wait=31s", "", "admin", 400, 3, "wait", "wait"},
		"an unknown parameter":      {"GET /v1/workloads?member=prod", "", "admin", 400, 3, "pageSize", "member"},
		"a parameter of the path":   {"GET /v1/clusters/prod?cluster=other", "", "admin", 400, 3, "cluster", "cluster"},
		"a body that is no JSON":    {"POST /v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue", "{", "admin", 400, 3, "", ""},
		"a body with more":          {"POST /v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue", `{"forced":true}`, "admin", 400, 3, "forced", ""},
		"a question out of range":   {"POST /v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:whatIf", `{"spotPercentage":101}`, "admin", 400, 3, "", "spot_percentage"},
		"a question about nothing":  {"POST /v1/clusters/prod/namespaces/shop/workloads/Deployment/cartt:whatIf", "{}", "admin", 404, 5, "no Deployment shop/cartt", ""},
		"a body too large":          {"POST /v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue", `{"name":"` + strings.Repeat("x", maxRequest) + `"}`, "admin", 400, 3, "", ""},
		"no such path":              {"GET /v2/clusters", "", "admin", 404, 5, "/openapi.json", ""},
		"no such method":            {"DELETE /v1/clusters/prod", "", "admin", 405, 12, "/openapi.json", ""},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			if c.token != "" {
				header = bearing(c.token)
			}
			method, path, _ := strings.Cut(c.call, " ")
			response, body := s.call(t, method, path, c.body, header)
			var got restError
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatalf("HTTP %d, not JSON: %s", response.StatusCode, body)
			}
			if response.StatusCode != c.status || got.Code != c.code || !strings.Contains(got.Message, c.says) {
				t.Errorf("HTTP %d: %s\nwant %d, code %d, with %q", response.StatusCode, body, c.status, c.code, c.says)
			}
			if challenge := response.Header.Get("WWW-Authenticate"); challenge != map[bool]string{true: "Bearer"}[c.status == 401] {
				t.Errorf("WWW-Authenticate: %q", challenge)
			}
			if kind := response.Header.Get("Content-Type"); kind != "application/json" {
				t.Errorf("Content-Type: %q", kind)
			}
			if c.field != "" && (len(got.Details) != 2 || got.Details[0].Type != "type.googleapis.com/google.rpc.BadRequest" ||
				got.Details[0].FieldViolations[0].Field != c.field || got.Details[0].FieldViolations[0].Description == "" ||
				got.Details[0].FieldViolations[0].Reason == "") {
				t.Errorf("details %+v, want a violation of %s", got.Details, c.field)
			}
		})
	}
}

func TestRESTAnswersWithWhatIsAsked(t *testing.T) {
	r := shop(t)
	r.record("prod", "deployment-spot", "", "node-1")
	s := serve(t, r, nil)
	for call, want := range map[string]map[string]any{
		"GET /v1/clusters":                 {"clusters.0.name": "prod", "clusters.0.state": "CLUSTER_STATE_READY", "nextPageToken": "", "clusters.0.workloads.spotActual": 6.0},
		"GET /v1/clusters/prod":            {"cluster.owner": "10.0.0.1:9444", "cluster.kubernetesVersion": "v1.36.1"},
		"GET /v1/workloads":                {"workloads.0.name": "cart", "workloads.0.placement.spotPercentage": 70.0, "workloads.0.placement.minOnDemand": nil},
		"GET /v1/workloads?namespace=none": {"nextPageToken": "", "workloads.0": nil},
		"GET /v1/clusters/prod/namespaces/shop/workloads/Deployment/cart":                 {"workload.pods.0.slot": 0.0, "workload.pods.1.slot": nil},
		"GET /v1/clusters/prod/controllers/deployment-spot/objects/shop/cart":             {"object.lastOutcome": "RECONCILE_OUTCOME_DONE"},
		"GET /v1/clusters/prod/controllers/deployment-spot/objects/node-1?readMask=state": {"object.state": "RECONCILE_STATE_IDLE"}, // it has no namespace
		"GET /v1/operations/w.prod.shop.id-0":                                             {"operation.state": "OPERATION_STATE_PENDING"},
		"POST /v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue":        {"operation.key.controller": "deployment-spot"},
		"POST /v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:whatIf":         {"moves": 2.0, "firstMoves.0.pod": "cart-0", "firstMoves.0.purpose": "MOVE_PURPOSE_MIX", "then.placement.strategy": "MOVE_STRATEGY_EVICT"},
		"POST /v1/clusters/prod/controllers/deployment-spot/objects/shop/cart:requeue":    {"operation.key.name": "cart"},
	} {
		t.Run(call, func(t *testing.T) {
			method, path, _ := strings.Cut(call, " ")
			response, body := s.call(t, method, path, "", bearing("admin"))
			if response.StatusCode != 200 {
				t.Fatalf("HTTP %d: %s", response.StatusCode, body)
			}
			var got any
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			for path, value := range want {
				if diff := cmp.Diff(value, at(got, path)); diff != "" {
					t.Errorf("%s (-want +got):\n%s\n%s", path, diff, body)
				}
			}
		})
	}
}

// at finds what is at a dotted path; nil: nothing is.
func at(in any, path string) any {
	for _, step := range strings.Split(path, ".") {
		switch v := in.(type) {
		case map[string]any:
			in = v[step]
		case []any:
			if in = nil; int(step[0]-'0') < len(v) {
				in = v[step[0]-'0']
			}
		default:
			return nil
		}
	}
	return in
}

func TestTheOpenAPIDocumentIsServedToAnybody(t *testing.T) {
	s := serve(t, shop(t), nil)
	for path, want := range map[string][]byte{"/openapi.json": plimsollv1.OpenAPI, "/openapi.v3.json": plimsollv1.OpenAPIv3} {
		response, body := s.call(t, "GET", path, "", nil)
		if response.StatusCode != 200 || body != string(want) {
			t.Errorf("%s: HTTP %d, %d bytes", path, response.StatusCode, len(body))
		}
	}
}

func TestAnUnauthenticatedAPIAnswersNoWebPages(t *testing.T) {
	s := serve(t, shop(t), func(o *Options) { o.Authenticator, o.Authorizer, o.Unauthenticated = nil, nil, true })
	for name, c := range map[string]struct {
		header http.Header
		status int
	}{
		"curl":                       {http.Header{}, 200},
		"by name":                    {http.Header{"Host": {"localhost:1"}}, 200},
		"a page of another site":     {http.Header{"Origin": {"https://evil.example"}}, 403},
		"a page from a file":         {http.Header{"Origin": {"null"}}, 403},
		"a page of another port":     {http.Header{"Origin": {"https://127.0.0.1:1"}}, 403}, // where another user's server may listen
		"a name that was made to be": {http.Header{"Host": {"evil.example"}}, 403},
		"a name that only begins so": {http.Header{"Host": {"localhost.evil.example"}}, 403},
		"a page of its own":          {http.Header{"Origin": {"https://" + s.rest}}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := s.call(t, "POST", "/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue", "", c.header)
			if response.StatusCode != c.status {
				t.Errorf("HTTP %d: %s, want %d", response.StatusCode, body, c.status)
			}
		})
	}
}

// Only watches are streams, and how long a call may take is the hub's to say.
func TestHeadersDoNotChangeHowACallIsAnswered(t *testing.T) {
	s := serve(t, shop(t), nil)
	for name, header := range map[string][2]string{
		"events":              {"Accept", "text/event-stream"},
		"no time":             {"Grpc-Timeout", "1n"},
		"all the time":        {"Grpc-Timeout", "99999999H"},
		"a time that is none": {"Grpc-Timeout", "nonsense"},
	} {
		for path, want := range map[string]int{"/v1/clusters": 200, "/v1/clusters/none": 404} {
			with := bearing("admin")
			with.Set(header[0], header[1])
			response, body := s.call(t, http.MethodGet, path, "", with)
			if kind := response.Header.Get("Content-Type"); response.StatusCode != want || kind != "application/json" || !json.Valid([]byte(body)) {
				t.Errorf("%s: %s: HTTP %d, %s: %s", name, path, response.StatusCode, kind, body)
			}
		}
	}
}

// What the API says is of this moment and for whoever asked, and it is JSON whatever a browser makes of it.
func TestAnswersAreNotKeptAndNotTakenForAnythingElse(t *testing.T) {
	s := serve(t, shop(t), nil)
	for path, token := range map[string]string{
		"/v1/clusters": "admin", "/v1/clusters/prod": "nobody", "/v1/workloads": "impostor", "/v2": "admin", "/openapi.json": "",
	} {
		response, _ := s.call(t, http.MethodGet, path, "", bearing(token))
		kept := map[bool]string{true: "no-cache", false: "no-store"}[path == "/openapi.json"] // which is of no moment, and is asked for again
		for header, want := range map[string]string{"Cache-Control": kept, "X-Content-Type-Options": "nosniff"} {
			if got := response.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", path, header, got, want)
			}
		}
	}
}
