package clusters

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
)

// fakeAPI is just enough of a member's API server, over TLS, with faults: each path can be made to hang, to fail with a
// status, or to be answered by a function.
type fakeAPI struct {
	*httptest.Server
	uid, token string

	mu       sync.Mutex
	faults   map[string]int // path or path prefix ending in "*" → status, or hangs
	answers  map[string]http.HandlerFunc
	denied   map[string]bool                // "verb resource", or "verb resource in namespace"
	requests []string                       // "METHOD path"
	rules    []authorizationv1.ResourceRule // the answer of rules reviews of any namespace; nil: they are incomplete
	reviewed []string                       // "verb resource name in namespace" of access reviews
	pods     map[string]*corev1.Pod
	cut      chan struct{} // closed to end all watches and what hangs
	closed   bool          // nothing is served any more, so that Close does not wait
}

const hangs = -1

// newFakeAPI starts a server that serves pods and config maps of a cluster with the given UID.
func newFakeAPI(t *testing.T, uid string) *fakeAPI {
	t.Helper()
	f := &fakeAPI{
		uid: uid, token: sample.Canary + "-" + uid, faults: map[string]int{}, answers: map[string]http.HandlerFunc{}, denied: map[string]bool{},
		pods: map[string]*corev1.Pod{}, cut: make(chan struct{}),
	}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	f.EnableHTTP2 = true
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.StartTLS()
	t.Cleanup(func() {
		f.mu.Lock()
		f.closed = true
		f.release()
		f.mu.Unlock()
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// kubeconfig leads to the server with its token.
func (f *fakeAPI) kubeconfig() []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	return sample.KubeconfigOf(fmt.Sprintf("server: %s\ncertificate-authority-data: %s", f.URL, base64Of(ca)), "token: "+f.token)
}

// fault makes path (or a prefix that ends in *) answer status, hang, or with 0 work again: what hangs on it is answered then.
func (f *fakeAPI) fault(path string, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if status == 0 {
		delete(f.faults, path)
	} else {
		f.faults[path] = status
	}
	f.release()
}

// answer makes path be served by h.
func (f *fakeAPI) answer(path string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[path] = h
}

// deny makes access reviews of "verb resource" say no.
func (f *fakeAPI) deny(what string, denied bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied[what] = denied
}

func (f *fakeAPI) setToken(token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token = token
}

// cutAll ends everything that goes on.
func (f *fakeAPI) cutAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.release()
}

func (f *fakeAPI) release() {
	close(f.cut)
	f.cut = make(chan struct{})
}

// count reports how many requests there were whose "METHOD path" begins so.
func (f *fakeAPI) count(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, request := range f.requests {
		if strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}

func (f *fakeAPI) addPod(name string) { f.addPodIn("default", name) }

func (f *fakeAPI) addPodIn(namespace, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods[name] = &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: types.UID("uid-" + name), ResourceVersion: "5",
			Labels: map[string]string{"app": name}, Annotations: map[string]string{"note": "kept by nobody"},
		},
		Spec: corev1.PodSpec{NodeName: "node-1"},
	}
}

func (f *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	f.mu.Unlock()
	f.respond(w, r)
}

// respond answers as the faults are now.
func (f *fakeAPI) respond(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	status, cut, token, answer, closed := f.faultOf(r.URL.Path), f.cut, f.token, f.answers[r.URL.Path], f.closed
	f.mu.Unlock()
	switch {
	case closed:
		panic(http.ErrAbortHandler)
	case r.Header.Get("Authorization") != "Bearer "+token:
		fail(w, http.StatusUnauthorized)
	case status == hangs:
		f.hang(w, r, cut)
	case status != 0:
		fail(w, status)
	case answer != nil:
		answer(w, r)
	default:
		f.route(w, r, cut)
	}
}

// hang answers when the fault that r hangs on has gone, and breaks the connection when all that goes on is cut.
func (f *fakeAPI) hang(w http.ResponseWriter, r *http.Request, cut <-chan struct{}) {
	select {
	case <-cut:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	f.mu.Lock()
	lifted := f.faultOf(r.URL.Path) != hangs
	f.mu.Unlock()
	if !lifted {
		panic(http.ErrAbortHandler)
	}
	f.respond(w, r)
}

func (f *fakeAPI) faultOf(path string) int {
	for prefix, status := range f.faults {
		if path == prefix || strings.HasSuffix(prefix, "*") && strings.HasPrefix(path, strings.TrimSuffix(prefix, "*")) {
			return status
		}
	}
	return 0
}

func (f *fakeAPI) route(w http.ResponseWriter, r *http.Request, cut <-chan struct{}) {
	switch path := r.URL.Path; {
	case path == "/readyz":
		_, _ = io.WriteString(w, "ok")
	case path == "/version":
		write(w, map[string]string{"gitVersion": "v1.36.1"})
	case path == "/api/v1/namespaces/kube-system":
		write(w, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID(f.uid)}})
	case path == "/api/v1":
		write(w, metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod", Namespaced: true}, {Name: "pods/status", Kind: "Pod", Namespaced: true},
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"}, {Name: "nodes", Kind: "Node"},
		}})
	case strings.HasSuffix(path, "/selfsubjectrulesreviews"):
		f.mu.Lock()
		defer f.mu.Unlock()
		write(w, authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{Incomplete: f.rules == nil, ResourceRules: f.rules}})
	case strings.HasPrefix(path, "/apis/authorization.k8s.io/"):
		f.review(w, r)
	case intake.IsStream(r):
		f.watch(w, r, cut)
	case path == "/api/v1/namespaces":
		name, _ := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
		list := corev1.NamespaceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}, ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
		list.Items = append(list.Items, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "5"}})
		write(w, list)
	case path == "/api/v1/nodes":
		write(w, corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "10"}})
	case strings.HasSuffix(path, "/pods"):
		namespace, _ := strings.CutPrefix(path, "/api/v1/namespaces/")
		f.listPods(w, strings.TrimSuffix(strings.TrimPrefix(namespace, "/api/v1"), "/pods"))
	case strings.HasSuffix(path, "/configmaps"):
		write(w, corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: "10"}})
	case r.Method == http.MethodPatch:
		write(w, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]string{"name": "web", "namespace": "default"}})
	case r.Method != http.MethodGet:
		w.Header().Set("Content-Type", cmp.Or(r.Header.Get("Content-Type"), "application/json"))
		_, _ = io.Copy(w, r.Body)
	default:
		fail(w, http.StatusNotFound)
	}
}

func (f *fakeAPI) listPods(w http.ResponseWriter, namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
	for _, pod := range f.pods {
		if namespace == "" || pod.Namespace == namespace {
			list.Items = append(list.Items, *pod)
		}
	}
	write(w, list)
}

// watch stays open without events; a list that comes as a watch is refused, as by an old server.
func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request, cut <-chan struct{}) {
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		fail(w, http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	select {
	case <-cut:
	case <-r.Context().Done():
	}
}

func (f *fakeAPI) review(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		fail(w, http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := review.Spec.ResourceAttributes
	f.reviewed = append(f.reviewed, fmt.Sprintf("%s %s %s in %s", asked.Verb, asked.Resource, asked.Name, asked.Namespace))
	what := asked.Verb + " " + asked.Resource
	review.Status.Allowed = !f.denied[what] && !f.denied[what+" in "+asked.Namespace]
	write(w, review)
}

func write(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

// fail answers as an API server does, and repeats the canary, as a hostile one would.
func fail(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	reasons := map[int]metav1.StatusReason{
		401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 422: metav1.StatusReasonInvalid,
	}
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(status),
		Reason: reasons[status], Message: "you sent " + sample.Canary,
	})
}
