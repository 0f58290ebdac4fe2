package apply

import (
	"bytes"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// setOf reads which fields a manager owns; false: it is not said.
func setOf(entry *metav1.ManagedFieldsEntry) (*fieldpath.Set, bool) {
	if entry.FieldsV1 == nil {
		return nil, false
	}
	set := fieldpath.NewSet()
	return set, set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) == nil
}

// ownsField reports whether a set has a field, or fields in it.
func ownsField(set *fieldpath.Set, path fieldpath.Path) bool {
	last := len(path) - 1
	for _, element := range path[:last] {
		set = set.WithPrefix(element)
	}
	return set.Members.Has(path[last]) || !set.WithPrefix(path[last]).Empty()
}

// onlyOwner reports whether a manager applied a field, and nobody else owns it.
func onlyOwner(entries []metav1.ManagedFieldsEntry, manager string, path fieldpath.Path) bool {
	mine := false
	for i := range entries {
		entry := &entries[i]
		set, known := setOf(entry)
		if !known || !ownsField(set, path) {
			continue
		}
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			return false
		}
		mine = true
	}
	return mine
}

// otherOwners names, quoted, the managers besides ours that own a field, or what it is in when no set of fields names it by this
// path: elements of lists are named by their keys there.
func otherOwners(entries []metav1.ManagedFieldsEntry, ours string, path fieldpath.Path) []string {
	for ; len(path) > 0; path = path[:len(path)-1] {
		var names []string
		for i := range entries {
			if entries[i].Manager == ours {
				continue
			}
			if set, known := setOf(&entries[i]); known && ownsField(set, path) {
				names = append(names, strconv.Quote(entries[i].Manager))
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			return slices.Compact(names)
		}
	}
	return nil
}
