package rest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

// pathVariable is a variable in a path of an HTTP rule.
var pathVariable = regexp.MustCompile(`\{([^}=]+)[^}]*\}`)

// queryParameters are the names that each path takes, in both spellings: what its request has and the path has not.
func queryParameters() map[string][]string {
	found := map[string][]string{}
	protoregistry.GlobalFiles.RangeFilesByPackage(plimsollv1.File_plimsoll_v1_common_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				addParameters(found, methods.Get(j))
			}
		}
		return true
	})
	return found
}

func addParameters(found map[string][]string, method protoreflect.MethodDescriptor) {
	first, ok := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	if !ok {
		return
	}
	for _, rule := range append([]*annotations.HttpRule{first}, first.GetAdditionalBindings()...) {
		path := rule.GetGet() + rule.GetPost() // a rule has one of them
		var inPath []string
		for _, match := range pathVariable.FindAllStringSubmatch(path, -1) {
			inPath = append(inPath, match[1])
		}
		names := []string{}
		for i := range method.Input().Fields().Len() {
			field := method.Input().Fields().Get(i)
			if rule.GetBody() != "*" && !slices.Contains(inPath, string(field.Name())) {
				names = append(names, string(field.Name()), field.JSONName())
			}
		}
		found[plainPath(path)] = names
	}
}

// plainPath drops what a path's variables match, which is written down in one place and left out in the other.
func plainPath(path string) string { return pathVariable.ReplaceAllString(path, "{$1}") }

// knownParameters refuses query parameters that the path does not take; the gateway would leave them out, and answer
// another question than was asked.
func knownParameters(known map[string][]string) runtime.Middleware {
	return func(next runtime.HandlerFunc) runtime.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request, inPath map[string]string) {
			if err := checkParameters(known, r); err != nil {
				writeError(r.Context(), nil, &runtime.JSONPb{}, w, r, err)
				return
			}
			next(w, r, inPath)
		}
	}
}

// longestName is how much of a parameter's name is shown that nobody knows, in bytes. A name that is no UTF-8 could not be shown at all.
const longestName = 128

func checkParameters(known map[string][]string, r *http.Request) error {
	pattern, ok := runtime.HTTPPattern(r.Context())
	if !ok || r.URL.RawQuery == "" {
		return nil
	}
	takes := known[plainPath(pattern.String())]
	for name := range r.URL.Query() {
		if !slices.Contains(takes, name) {
			return apierror.InvalidField(plain.Text(name, longestName), "query.unknown", fmt.Sprintf("is not a query parameter of this path, which has %v", takes))
		}
	}
	return nil
}
