package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Objects are Kubernetes objects by kind, namespace and name, such as "Deployment plimsoll-system/plimsoll-hub".
type Objects map[string]*unstructured.Unstructured

// Parse reads the objects of YAML documents.
func Parse(texts ...string) (Objects, error) {
	objects := Objects{}
	for _, text := range texts {
		documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			content, err := yaml.ToJSON(document)
			if err != nil {
				return nil, fmt.Errorf("not YAML: %w", err)
			}
			if bytes.Equal(content, []byte("null")) {
				continue
			}
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(content); err != nil {
				return nil, err
			}
			key := KeyOf(object)
			if objects[key] != nil {
				return nil, fmt.Errorf("%s is there twice", key)
			}
			objects[key] = object
		}
	}
	return objects, nil
}

// KeyOf names an object among [Objects].
func KeyOf(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
}

// Chart are the objects of the chart with these values.
func Chart(values Values) (Objects, error) {
	files, err := RenderChart(values)
	if err != nil {
		return nil, err
	}
	return Parse(slices.Collect(maps.Values(files))...)
}

// Kustomization are the objects of a folder below deploy/.
func Kustomization(folder ...string) (Objects, error) {
	text, err := RenderKustomization(folder...)
	if err != nil {
		return nil, err
	}
	return Parse(string(text))
}

// ofHelm are the labels and annotations that only a release has.
var ofHelm = []string{
	"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/version", "helm.sh/chart", "helm.sh/resource-policy",
	"plimsoll.dev/config-sha256",
}

// WithoutHelm are the objects without what only a release of Helm has.
func (o Objects) WithoutHelm() Objects {
	plain := Objects{}
	for key, object := range o {
		copied := object.DeepCopy()
		for _, where := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
			for _, field := range []string{"labels", "annotations"} {
				path := append(slices.Clone(where), field)
				texts, found, err := unstructured.NestedStringMap(copied.Object, path...)
				if !found || err != nil {
					continue
				}
				maps.DeleteFunc(texts, func(name, _ string) bool { return slices.Contains(ofHelm, name) })
				if len(texts) == 0 {
					unstructured.RemoveNestedField(copied.Object, path...)
					continue
				}
				_ = unstructured.SetNestedStringMap(copied.Object, texts, path...) // it was one
			}
		}
		plain[key] = copied
	}
	return plain
}

// Kind are those of a kind.
func (o Objects) Kind(kind string) Objects {
	some := Objects{}
	for key, object := range o {
		if object.GetKind() == kind {
			some[key] = object
		}
	}
	return some
}

// Without are those of other kinds.
func (o Objects) Without(kind string) Objects {
	some := maps.Clone(o)
	maps.DeleteFunc(some, func(_ string, object *unstructured.Unstructured) bool { return object.GetKind() == kind })
	return some
}

// Keys are the names of all objects, sorted.
func (o Objects) Keys() []string { return slices.Sorted(maps.Keys(o)) }

// Contents are the objects' bare contents, for comparisons.
func (o Objects) Contents() map[string]map[string]any {
	contents := map[string]map[string]any{}
	for key, object := range o {
		contents[key] = object.Object
	}
	return contents
}
