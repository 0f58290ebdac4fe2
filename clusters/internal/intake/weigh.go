package intake

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// entryBytes is what an entry of a cache takes beside the object: its key, in the store and in the indexes.
const entryBytes = 256

// weigh estimates what an object takes in memory.
func weigh(object client.Object) uint32 {
	size := entryBytes + int(reflect.TypeOf(object).Elem().Size())
	switch of := object.(type) {
	case *unstructured.Unstructured:
		size += weighValue(of.Object)
	case interface{ Size() int }:
		size += of.Size()
	default:
		text, err := json.Marshal(object)
		if err == nil {
			size += len(text)
		}
	}
	return uint32(min(size, 1<<31))
}

// weighValue is for what unstructured objects are made of.
func weighValue(value any) int {
	const interfaceSize, mapEntry = 16, 48
	size := interfaceSize
	switch of := value.(type) {
	case map[string]any:
		for key, entry := range of {
			size += mapEntry + len(key) + weighValue(entry)
		}
	case []any:
		for _, element := range of {
			size += weighValue(element)
		}
	case string:
		size += len(of)
	}
	return size
}
