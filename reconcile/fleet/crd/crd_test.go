package crd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// revisions are the definitions that were released, by their revision.
var revisions = map[int]string{
	1: "782210da00fa3d9f",
	2: "369b2a611bb7058a",
}

func TestTheChartHasTheDefinition(t *testing.T) {
	path := filepath.Join("..", "..", "..", "deploy", "chart", "plimsoll", "files", "fleetplacements.yaml")
	chart, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(chart, definition) {
		t.Errorf("%s is not what is generated here: make generate writes both", path)
	}
}

func TestAChangedDefinitionHasANewRevision(t *testing.T) {
	sum := sha256.Sum256(definition)
	if is := hex.EncodeToString(sum[:8]); revisions[Revision] != is {
		t.Errorf("the definition is %s, and revision %d was %s: if that one was released raise crd.Revision, then write the new sum here", is, Revision, revisions[Revision])
	}
}

func TestTheDefinitionHasScaleAndStatus(t *testing.T) {
	made := New()
	if made.Name != Name || len(made.Spec.Versions) != 1 {
		t.Fatalf("%s with %d versions", made.Name, len(made.Spec.Versions))
	}
	v := made.Spec.Versions[0]
	if !v.Served || !v.Storage || v.Subresources.Status == nil || v.Subresources.Scale == nil || *v.Subresources.Scale.LabelSelectorPath != ".status.selector" {
		t.Errorf("%+v", v.Subresources)
	}
}
