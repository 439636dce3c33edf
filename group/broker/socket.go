// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"net"
	"sync/atomic"
)

// socket is the network connection below an AMQP connection. It keeps why it ended, which the AMQP library turns into
// text. It closes itself after the first error of a read, because the library closes it only after the writers have
// returned, and those may be waiting for a broker that does not read.
type socket struct {
	net.Conn
	received atomic.Bool           // at least one byte
	ended    atomic.Pointer[error] // why a read failed; set before the library learns of it
}

// Read implements io.Reader.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 0 && !s.received.Load() {
		s.received.Store(true)
	}
	if err != nil {
		s.ended.CompareAndSwap(nil, &err)
		_ = s.Close()
	}
	return n, err
}

// err is why a read failed; nil if none has.
func (s *socket) err() error {
	if err := s.ended.Load(); err != nil {
		return *err
	}
	return nil
}
