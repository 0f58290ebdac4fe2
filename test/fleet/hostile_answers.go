package fleet

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// hostileBytes is how large the answers are that have no end.
	hostileBytes = 512 << 20
	// tinyQuantity takes hours to compute.
	tinyQuantity = "1e-2147483647"
)

// listedKinds are those that the hub lists, by their resources.
var listedKinds = map[string]string{
	"pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "replicasets": "ReplicaSet", "deployments": "Deployment",
	"statefulsets": "StatefulSet", "poddisruptionbudgets": "PodDisruptionBudget", "webapps": "WebApp", "services": "Service",
	"mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
}

// asked is what a request asks for: a list or a watch of a kind. ok: it asks for one of them.
func asked(r *http.Request) (kind, apiVersion string, watch, ok bool) {
	if r.Method != http.MethodGet {
		return "", "", false, false
	}
	kind, ok = listedKinds[path.Base(r.URL.Path)]
	version := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	apiVersion = version[1]
	if version[0] == "apis" && len(version) > 2 {
		apiVersion += "/" + version[2]
	}
	watch, _ = strconv.ParseBool(r.URL.Query().Get("watch"))
	return kind, apiVersion, watch, ok
}

// listOf answers lists, and leaves watches to the real API server.
func listOf(answer func(w http.ResponseWriter, r *http.Request, kind, apiVersion string)) lie {
	return func(w http.ResponseWriter, r *http.Request) bool {
		kind, apiVersion, watch, ok := asked(r)
		if !ok || watch {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		answer(w, r, kind, apiVersion)
		return true
	}
}

// watchOf answers watches, and leaves lists to the real API server. Lists that come as a watch are refused.
func watchOf(answer func(w http.ResponseWriter, r *http.Request, kind, apiVersion string)) lie {
	return func(w http.ResponseWriter, r *http.Request) bool {
		kind, apiVersion, watch, ok := asked(r)
		if !ok || !watch {
			return false
		}
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			http.Error(w, "", http.StatusUnprocessableEntity)
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		answer(w, r, kind, apiVersion)
		return true
	}
}

func listHead(kind, apiVersion, resume string) string {
	return fmt.Sprintf(`{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"1","continue":%q},"items":[`, kind, apiVersion, resume)
}

// hang keeps an answer open until nobody waits for it any more.
func hang(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// pour writes text again and again, up to so many bytes, as long as somebody reads.
func pour(w io.Writer, r *http.Request, text []byte, bytes int) {
	for written := 0; written < bytes && r.Context().Err() == nil; written += len(text) {
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

func hugeQuantities(w http.ResponseWriter, r *http.Request) bool {
	return oneObject(w, r, map[string]string{
		"Pod": `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"huge","namespace":"default","resourceVersion":"2"},"spec":{"overhead":{"cpu":` +
			tinyQuantity + `},"containers":[{"name":"a","resources":{"requests":{"cpu":"` + tinyQuantity + `"},"limits":{"memory":"9e2147483647"}}}]}}`,
		"Node": `{"kind":"Node","apiVersion":"v1","metadata":{"name":"huge","resourceVersion":"2"},"status":{"allocatable":{"cpu":"` + tinyQuantity + `"},"capacity":{"pods":"9e2147483647"}}}`,
	})
}

func hugeReplicas(w http.ResponseWriter, r *http.Request) bool {
	return oneObject(w, r, map[string]string{
		"ReplicaSet": `{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"name":"huge","namespace":"default","uid":"huge","resourceVersion":"2","labels":{"` +
			Keys.Enabled() + `":"true"},"annotations":{"` + Keys.SpotPercentage() + `":"50"}},"spec":{"replicas":2147483647,"selector":{"matchLabels":{"app":"huge"}}}}`,
		"Pod": `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"huge-1","namespace":"default","uid":"huge-1","resourceVersion":"2","labels":{"app":"huge"},"ownerReferences":[` +
			`{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"huge","uid":"huge","controller":true}]},"spec":{"nodeName":"huge","containers":[{"name":"a"}]},"status":{"phase":"Running"}}`,
		"Node": `{"kind":"Node","apiVersion":"v1","metadata":{"name":"huge","resourceVersion":"2","labels":{"karpenter.sh/capacity-type":"spot"}}}`,
	})
}

// oneObject lists one object of each of these kinds, and sends it on each watch.
func oneObject(w http.ResponseWriter, r *http.Request, objects map[string]string) bool {
	kind, _, _, ok := asked(r)
	object := objects[kind]
	if !ok || object == "" {
		return false
	}
	list := listOf(func(w http.ResponseWriter, _ *http.Request, kind, apiVersion string) {
		_, _ = io.WriteString(w, listHead(kind, apiVersion, "")+object+"]}")
	})
	watch := watchOf(func(w http.ResponseWriter, r *http.Request, _, _ string) {
		_, _ = io.WriteString(w, `{"type":"ADDED","object":`+object+"}\n")
		hang(w, r)
	})
	return list(w, r) || watch(w, r)
}

// untypedAnswer lists pods in protobuf and does not say so. A client that has asked for protobuf would decode it.
var untypedAnswer = listOf(func(w http.ResponseWriter, _ *http.Request, kind, apiVersion string) {
	w.Header()["Content-Type"] = nil // net/http would look at the text
	if kind == "Pod" && apiVersion == "v1" {
		_, _ = w.Write(tinyProtobuf())
		return
	}
	_, _ = w.Write([]byte("k8s\x00"))
})

// tinyProtobuf is a list with a pod that asks for tinyQuantity.
var tinyProtobuf = sync.OnceValue(func() []byte {
	stand := strings.Repeat("1", len(tinyQuantity)) // nobody could parse the real one
	pods := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{{
		ObjectMeta: metav1.ObjectMeta{Name: "huge", Namespace: metav1.NamespaceDefault, ResourceVersion: "2"},
		Spec:       corev1.PodSpec{Overhead: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(stand)}},
	}}}
	var into bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(pods, &into); err != nil {
		panic(err)
	}
	return bytes.ReplaceAll(into.Bytes(), []byte(stand), []byte(tinyQuantity))
})

// noise is what nobody wants to find in a log, as JSON has it.
var noise = strings.Repeat(`\n{\"level\":\"ERROR\",\"msg\":\"the hub is lost\"}\u001b[2J\u202e`, 1000)

func noisyText(w http.ResponseWriter, r *http.Request) bool {
	kind, apiVersion, watch, ok := asked(r)
	if isProbe(r) || watch {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	if ok {
		_, _ = io.WriteString(w, listHead(kind, apiVersion, "")+`{"metadata":{"name":"`+noise+`","namespace":"default","uid":"1"}}]}`)
		return true
	}
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"`+noise+`"}`)
	return true
}

// manyItems are items of a list, of 1 MiB.
var manyItems = sync.OnceValue(func() []byte {
	item := `{"metadata":{"name":"many","namespace":"default","labels":{"a":"` + strings.Repeat("b", 60) + `"}},"spec":{"containers":[{"name":"a"}]}},`
	return bytes.Repeat([]byte(item), 1<<20/len(item))
})

var largeList = listOf(func(w http.ResponseWriter, r *http.Request, kind, apiVersion string) {
	_, _ = io.WriteString(w, listHead(kind, apiVersion, ""))
	pour(w, r, manyItems(), hostileBytes)
})

// compressedItems are 8 MiB of empty items in a gzip member of its own, of which a stream may have many.
var compressedItems = sync.OnceValue(func() []byte { return compress(strings.Repeat("{},", 8<<20/3)) })

func compress(text string) []byte {
	var into bytes.Buffer
	z := gzip.NewWriter(&into)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return into.Bytes()
}

var compressedList = listOf(func(w http.ResponseWriter, r *http.Request, kind, apiVersion string) {
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(compress(listHead(kind, apiVersion, "")))
	pour(w, r, compressedItems(), hostileBytes/(8<<20)*len(compressedItems()))
	_, _ = w.Write(compress("{}]}"))
})

var endlessPage = listOf(func(w http.ResponseWriter, r *http.Request, kind, apiVersion string) {
	page := pageAsked(r)
	writePage(w, kind, apiVersion, page+1, page+1)
})

// repeatedPage is one of objects that all pages have; each tenth has none.
var repeatedPage = listOf(func(w http.ResponseWriter, r *http.Request, kind, apiVersion string) {
	page := pageAsked(r)
	if page%10 == 9 {
		_, _ = io.WriteString(w, listHead(kind, apiVersion, strconv.Itoa(page+1))+"]}")
		return
	}
	writePage(w, kind, apiVersion, 0, page+1)
})

// pageAsked is which page a request asks for, from 0.
func pageAsked(r *http.Request) int {
	page, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	return page
}

// writePage answers with the objects of a page, and says which page follows.
func writePage(w io.Writer, kind, apiVersion string, page, next int) {
	const items = 500
	_, _ = io.WriteString(w, listHead(kind, apiVersion, strconv.Itoa(next)))
	for i := range items {
		separator := ","
		if i == items-1 {
			separator = "]}"
		}
		_, _ = fmt.Fprintf(w, `{"metadata":{"name":"p-%d-%d","namespace":"default","resourceVersion":"1","labels":{"a":"%060d"}}}%s`, page, i, i, separator)
	}
}

var endlessEvents = watchOf(func(w http.ResponseWriter, r *http.Request, kind, apiVersion string) {
	var events bytes.Buffer
	for i := 0; r.Context().Err() == nil; {
		events.Reset()
		for range 1000 {
			i++
			_, _ = fmt.Fprintf(&events, `{"type":"ADDED","object":{"kind":%q,"apiVersion":%q,"metadata":{"name":"e-%d","namespace":"default","resourceVersion":"%d","labels":{"a":"%060d"}}}}`+"\n",
				kind, apiVersion, i, i+1, i)
		}
		if _, err := w.Write(events.Bytes()); err != nil {
			return
		}
	}
})

var unfinishedEvent = watchOf(func(w http.ResponseWriter, r *http.Request, kind, apiVersion string) {
	_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":%q,"apiVersion":%q,"metadata":{"name":"`, kind, apiVersion)
	pour(w, r, bytes.Repeat([]byte("a"), 64<<10), hostileBytes)
	hang(w, r)
})

var silentWatch = watchOf(func(w http.ResponseWriter, r *http.Request, _, _ string) { hang(w, r) })

// slowBody keeps the probes happy: the member looks healthy.
func slowBody(w http.ResponseWriter, r *http.Request) bool {
	if isProbe(r) {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	control, tick := http.NewResponseController(w), time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(w, " "); err != nil || control.Flush() != nil {
			return true
		}
		select {
		case <-r.Context().Done():
			return true
		case <-tick.C:
		}
	}
}

func isProbe(r *http.Request) bool { return r.URL.Path == "/readyz" || r.URL.Path == "/version" }

func longRetryAfter(w http.ResponseWriter, r *http.Request) bool {
	if isProbe(r) {
		return false
	}
	w.Header().Set("Retry-After", "3600")
	http.Error(w, "", http.StatusServiceUnavailable)
	return true
}

var refusedWatch = watchOf(func(w http.ResponseWriter, r *http.Request, _, _ string) {
	w.WriteHeader(http.StatusGone)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"`)
	pour(w, r, bytes.Repeat([]byte("a"), 64<<10), hostileBytes)
	hang(w, r)
})

// emptyBlocks are 64 KiB of gzip members of nothing, of which a stream may have many.
var emptyBlocks = sync.OnceValue(func() []byte {
	nothing := compress("")
	return bytes.Repeat(nothing, 64<<10/len(nothing))
})

func emptyBytes(w http.ResponseWriter, r *http.Request) bool {
	list := listOf(func(w http.ResponseWriter, r *http.Request, _, _ string) {
		w.Header().Set("Content-Encoding", "gzip")
		pour(w, r, emptyBlocks(), hostileBytes)
	})
	watch := watchOf(func(w http.ResponseWriter, r *http.Request, _, _ string) {
		pour(w, r, bytes.Repeat([]byte("\n"), 64<<10), hostileBytes)
	})
	return list(w, r) || watch(w, r)
}

func (h *Hostile) otherFormat(w http.ResponseWriter, r *http.Request) bool {
	if isProbe(r) {
		return false
	}
	formats := []struct{ media, body string }{
		{"application/yaml", "kind: PodList\napiVersion: v1\nitems: &a [*a, *a]\n"},
		{"text/html", "<html><body>Please log in.</body></html>"},
		{"application/json", `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":`},
		{"application/json", "null"},
		{"application/vnd.kubernetes.protobuf", "k8s\x00\x0a\xff\xff\xff\xff\x7f"},
		{"application/json; charset=\xff", "{}"},
		{"", "\x00\x01\x02"},
	}
	format := formats[h.number(len(formats))]
	w.Header().Set("Content-Type", format.media)
	_, _ = io.WriteString(w, format.body)
	if _, _, watch, _ := asked(r); watch {
		hang(w, r)
	}
	return true
}

// versionsBack sends changes and deletions of objects that nobody has, with versions that become smaller.
var versionsBack = watchOf(func(w http.ResponseWriter, r *http.Request, kind, apiVersion string) {
	control, tick := http.NewResponseController(w), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	types := []string{"MODIFIED", "DELETED", "BOOKMARK", "ADDED"}
	for i := 1 << 20; r.Context().Err() == nil; i-- {
		_, err := fmt.Fprintf(w, `{"type":%q,"object":{"kind":%q,"apiVersion":%q,"metadata":{"name":"b-%d","namespace":"default","resourceVersion":"%d"}}}`+"\n",
			types[i%len(types)], kind, apiVersion, i%100, i)
		if err != nil || control.Flush() != nil {
			return
		}
		<-tick.C
	}
})

func endlessDiscovery(w http.ResponseWriter, r *http.Request) bool {
	depth := strings.Count(strings.Trim(r.URL.Path, "/"), "/")
	if !strings.HasPrefix(r.URL.Path, "/api") || depth > 2 || strings.HasPrefix(r.URL.Path, "/api/") && depth > 1 {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[`)
	pour(w, r, bytes.Repeat([]byte(`{"name":"many","singularName":"","namespaced":true,"kind":"Many","verbs":["get","list","watch"]},`), 1000), hostileBytes)
	return true
}
