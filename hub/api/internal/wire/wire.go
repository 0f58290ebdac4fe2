// Package wire sends one message over many gRPC streams and encodes it once.
//
// It knows no service.
package wire

import (
	"sync"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers what Codec is made of
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Shared is a message that goes to many, made and encoded when the first of them gets it. The zero value is ready for use. Safe for
// concurrent use.
type Shared struct {
	make    sync.Once
	message proto.Message

	encode  sync.Once
	encoded mem.BufferSlice
	err     error
}

// Message is what [Codec] sends for the price of a copy. create makes the message, once; nobody may change it afterwards.
func (s *Shared) Message(create func() proto.Message) proto.Message {
	s.make.Do(func() { s.message = create() })
	return shared{s.message, s}
}

// shared is a message with its encoding.
type shared struct {
	proto.Message
	of *Shared
}

func (s shared) encoded() (mem.BufferSlice, error) {
	s.of.encode.Do(func() {
		var text []byte
		if text, s.of.err = proto.Marshal(s.Message); s.of.err == nil {
			s.of.encoded = mem.BufferSlice{mem.SliceBuffer(text)} // which is in no pool: who frees it frees nothing
		}
	})
	return s.of.encoded, s.of.err
}

// Codec is gRPC's own for Protocol Buffers, and takes the encoding of shared messages as it is.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

type codec struct{ encoding.CodecV2 }

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(message any) (mem.BufferSlice, error) {
	if s, ok := message.(shared); ok {
		return s.encoded()
	}
	return c.CodecV2.Marshal(message)
}
