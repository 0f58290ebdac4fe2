package fleet

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// fatItem is an object of 50 kB of which the hub keeps nothing: managed fields.
var fatItem = sync.OnceValue(func() string {
	return `,"managedFields":[{"manager":"m","fieldsV1":{"f:` + strings.Repeat("a", 50_000) + `":{}}}]}}`
})

// smallPage has few objects, so that no page is large, and another one follows.
var smallPage = listOf(func(w http.ResponseWriter, r *http.Request, kind, apiVersion string) {
	page := pageAsked(r)
	_, _ = io.WriteString(w, listHead(kind, apiVersion, fmt.Sprint(page+1)))
	for i := range 4 {
		separator := ","
		if i == 3 {
			separator = "]}"
		}
		_, _ = fmt.Fprintf(w, `{"metadata":{"name":"s-%d-%d","namespace":"default","resourceVersion":"1"%s%s`, page, i, fatItem(), separator)
	}
})

// largeVersion is a resource version of 3 MiB, which a page and an event have room for, and of which a URL has three bytes for each.
var largeVersion = sync.OnceValue(func() string { return strings.Repeat("%", 3<<20) })

func longVersion(w http.ResponseWriter, r *http.Request) bool {
	list := listOf(func(w http.ResponseWriter, _ *http.Request, kind, apiVersion string) {
		_, _ = fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%s"},"items":[]}`, kind, apiVersion, largeVersion())
	})
	watch := watchOf(func(w http.ResponseWriter, r *http.Request, kind, apiVersion string) {
		_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%s"}}}`+"\n", kind, apiVersion, largeVersion())
		hang(w, r)
	})
	return list(w, r) || watch(w, r)
}

// definitionOf is a definition with a schema, which a client decodes that has asked for pods.
func definitionOf(schema string) string {
	return `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"a.b","resourceVersion":"2"},` +
		`"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":` + schema + `}}]}}`
}

// largeSchemas are definitions of 3 MiB: one whose schema has many empty ones, and one with a schema in each other, each of which a
// decoder reads again for all that it is in.
var largeSchemas = sync.OnceValue(func() []string {
	const levels = 4000
	return []string{
		definitionOf(`{"items":[` + strings.Repeat("{},", 1<<20) + `{}]}`),
		definitionOf(strings.Repeat(`{"items":`, levels) + `{"description":"` + strings.Repeat("a", 3<<20) + `"}` + strings.Repeat("}", levels)),
	}
})

func otherKind(w http.ResponseWriter, r *http.Request) bool {
	list := listOf(func(w http.ResponseWriter, r *http.Request, kind, _ string) {
		_, _ = io.WriteString(w, largeSchemas()[len(kind)%2])
	})
	watch := watchOf(func(w http.ResponseWriter, r *http.Request, kind, _ string) {
		_, _ = io.WriteString(w, `{"type":"ADDED","object":`+largeSchemas()[len(kind)%2]+"}\n")
		hang(w, r)
	})
	return list(w, r) || watch(w, r)
}

// manyResources is a text of 2 MiB that would be a list of resources.
var manyResources = sync.OnceValue(func() string {
	return `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[` + strings.Repeat(`{},`, (2<<20)/3-100) + `{}]}`
})

func textAnswer(w http.ResponseWriter, r *http.Request) bool {
	if isProbe(r) {
		return false
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, manyResources())
	return true
}

func largeHeaders(w http.ResponseWriter, r *http.Request) bool {
	if isProbe(r) {
		return false
	}
	for i := range 2000 {
		w.Header().Set(fmt.Sprint("X-Large-", i), strings.Repeat("a", 1000))
	}
	return true
}
