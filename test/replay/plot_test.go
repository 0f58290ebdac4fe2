package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

func TestThePlotShowsEveryPolicyAndIsSVG(t *testing.T) {
	trace := replay.Generate(replay.Made{Seed: 7, Regions: 2, Zones: 2, Most: 3, Days: 4})
	setting := replay.Setting{Replicas: 4, Ratio: 3, Start: 240, Notice: 30, Refusal: 10}
	_, curves := replay.Compare(trace, setting)
	file, err := Draw(t.TempDir(), trace, setting, curves)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{replay.Ours, replay.Hedge1, replay.Hedge2, "ready replicas", "wanted", "days"} {
		if !bytes.Contains(text, []byte(word)) {
			t.Errorf("the plot does not say %q", word)
		}
	}
	for decoder := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
