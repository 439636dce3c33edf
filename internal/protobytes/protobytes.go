// SPDX-License-Identifier: Apache-2.0

// Package protobytes carries messages of protocol buffers through package connect as bytes: their meaning is for the
// codec of a dialect, not for the front or the transport carrying them.
package protobytes

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Message is an encoded message. An empty one may have no Data.
type Message struct{ Data []byte }

// Codec is a connect.Codec for Messages. It also encodes and decodes connect's own messages: those of errors.
type Codec struct{}

// Name returns the name of the encoding, a part of the media type.
func (Codec) Name() string { return "proto" }

// Marshal returns the bytes of a message. Those of a Message are its Data.
func (Codec) Marshal(message any) ([]byte, error) {
	switch m := message.(type) {
	case *Message:
		return m.Data, nil
	case proto.Message:
		return proto.Marshal(m)
	}
	return nil, fmt.Errorf("protobytes: a %T is no message", message)
}

// MarshalAppend appends the bytes of a message, so connect keeps no view of a Message's Data.
func (c Codec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	data, err := c.Marshal(message)
	return append(dst, data...), err
}

// Unmarshal decodes a message. A Message gets a copy of the bytes.
func (Codec) Unmarshal(data []byte, message any) error {
	switch m := message.(type) {
	case *Message:
		m.Data = append(m.Data[:0], data...)
		return nil
	case proto.Message:
		return proto.Unmarshal(data, m)
	}
	return fmt.Errorf("protobytes: a %T is no message", message)
}
