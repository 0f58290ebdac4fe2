package wire

import (
	"bytes"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func TestAMessageForManyIsMadeAndEncodedOnce(t *testing.T) {
	event := &plimsollv1.WatchEventsResponse{Event: &plimsollv1.Event{Cluster: "prod", Name: "cart"}}
	want, err := proto.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	var many Shared
	var made int
	var all sync.WaitGroup
	first := make(chan []byte, 10)
	for range cap(first) {
		all.Go(func() {
			data, err := Codec().Marshal(many.Message(func() proto.Message { made++; return event }))
			if err != nil || len(data) != 1 {
				t.Errorf("%d buffers, %v", len(data), err)
				return
			}
			if !bytes.Equal(data.Materialize(), want) {
				t.Errorf("encoded as %x, want %x", data.Materialize(), want)
			}
			first <- data[0].ReadOnlyData()
			data.Free() // as gRPC does
		})
	}
	all.Wait()
	close(first)
	one := <-first
	for other := range first {
		if &other[0] != &one[0] {
			t.Error("it was encoded again")
		}
	}
	if made != 1 {
		t.Errorf("it was made %d times", made)
	}
}

func TestOtherMessagesAreEncodedAsEver(t *testing.T) {
	event := &plimsollv1.Event{Name: "cart"}
	data, err := Codec().Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Free()
	read := &plimsollv1.Event{}
	if err := Codec().Unmarshal(data, read); err != nil || !proto.Equal(event, read) {
		t.Errorf("%v, %v", read, err)
	}
	if _, err := Codec().Marshal("no message"); err == nil {
		t.Error("text was encoded")
	}
}
