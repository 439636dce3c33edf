// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// maxHeld is the most bytes of unacknowledged messages of a connection. One message may always be held. At the limit
// nothing is read from the broker.
const maxHeld = 16 << 20

// socket is the network connection below an AMQP connection. It bounds the memory of messages, as the AMQP library does
// not: it counts their bodies, and empties those too large, as the frames pass.
//
// It keeps the error of its end, because the AMQP library turns it into text. It closes itself after the first error of
// a read, because the library closes it only after the writers have returned, and those may be waiting for a broker not
// reading.
type socket struct {
	net.Conn
	in       *bufio.Reader
	pass     int                 // bytes of the frame being read, passed on to the library
	channels map[uint16]incoming // the messages coming on the channels

	mu       sync.Mutex
	changed  *sync.Cond // signaled when there is less held, and at the end
	held     int        // sum of intakes
	intakes  map[string]*intake
	received bool  // at least one byte
	err      error // the error of a failed read; set before the library learns of it
	closed   bool
}

// incoming is the message coming on a channel.
type incoming struct {
	consumer string
	drop     uint64 // bytes of the body still to come, withheld from the library
}

// intake is the bound and the present hold of one consumer.
type intake struct {
	max  int // of one message
	held int
}

func newSocket(conn net.Conn) *socket {
	s := &socket{Conn: conn, channels: make(map[uint16]incoming), intakes: make(map[string]*intake)}
	s.in = bufio.NewReaderSize((*frames)(s), 16<<10)
	s.changed = sync.NewCond(&s.mu)
	return s
}

// frames reads the connection of a socket.
type frames socket

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.received = f.received || n > 0
	if err != nil && f.err == nil {
		f.err = err
	}
	return n, err
}

// Read implements io.Reader.
func (s *socket) Read(p []byte) (int, error) {
	for s.pass == 0 {
		if err := s.next(); err != nil {
			_ = s.Close()
			return 0, err
		}
	}
	n, err := s.in.Read(p[:min(len(p), s.pass)])
	s.pass -= n
	if err != nil {
		_ = s.Close()
	}
	return n, err
}

// Close implements io.Closer.
func (s *socket) Close() error {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	return s.Conn.Close()
}

// ended returns whether anything was received, and the error of the failed read.
func (s *socket) ended() (received bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received, s.err
}

// The frames and the method of AMQP 0-9-1 read by a socket. A frame is a head (its type, its channel, the length of its
// payload), the payload and an end.
const (
	frameMethod = 1
	frameHeader = 2
	frameBody   = 3

	frameHead = 7
	frameEnd  = 1

	basicDeliver = 60<<16 | 60 // followed by the consumer's tag, with a byte for its length
)

// next begins to read a frame, and decides whether it passes.
func (s *socket) next() error {
	head, err := s.in.Peek(frameHead)
	if err != nil {
		return err
	}
	channel, size := binary.BigEndian.Uint16(head[1:]), int(binary.BigEndian.Uint32(head[3:]))
	s.pass = frameHead + size + frameEnd
	switch coming := s.channels[channel]; {
	case head[0] == frameMethod && size > 5:
		return s.deliver(channel, size)
	case head[0] == frameHeader && size >= 12:
		frame, err := s.in.Peek(frameHead + 12)
		if err != nil {
			return err
		}
		body := frame[frameHead+4:] // after a class and a weight
		if length := binary.BigEndian.Uint64(body); !s.hold(coming.consumer, length) {
			s.channels[channel] = incoming{consumer: coming.consumer, drop: length}
			clear(body)
		}
	case head[0] == frameBody && coming.drop > 0:
		s.channels[channel] = incoming{consumer: coming.consumer, drop: coming.drop - min(coming.drop, uint64(size))}
		_, err := s.in.Discard(s.pass)
		s.pass = 0
		return err
	}
	return nil
}

// deliver notes the consumer of a message, if the frame names it.
func (s *socket) deliver(channel uint16, size int) error {
	frame, err := s.in.Peek(frameHead + 5)
	if err != nil || binary.BigEndian.Uint32(frame[frameHead:]) != basicDeliver {
		return err
	}
	tag := int(frame[frameHead+4])
	if frame, err = s.in.Peek(frameHead + min(5+tag, size)); err != nil {
		return err
	}
	if consumer := frame[frameHead+5:]; string(consumer) != s.channels[channel].consumer {
		s.channels[channel] = incoming{consumer: string(consumer)}
	}
	return nil
}

// hold waits until there is room for a message. It returns false if the message is too large, or has no consumer.
func (s *socket) hold(consumer string, length uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	waited := false
	for {
		in := s.intakes[consumer]
		switch {
		case in == nil || length > uint64(in.max) || s.closed:
			return false
		case s.held > 0 && s.held+int(length) > maxHeld:
			s.changed.Wait()
			waited = true
			continue
		}
		s.held += int(length)
		in.held += int(length)
		if waited { // the deadline of the last heartbeat may have passed meanwhile
			_ = s.SetReadDeadline(time.Now().Add(2 * heartbeat))
		}
		return true
	}
}

// admit lets a consumer receive messages, of max bytes each.
func (s *socket) admit(consumer string, max int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intakes[consumer] = &intake{max: max}
}

// release frees length bytes held by a consumer.
func (s *socket) release(consumer string, length int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.intakes[consumer]; in != nil {
		in.held -= length
		s.held -= length
		s.changed.Broadcast()
	}
}

// dismiss frees all held by a consumer. Messages still coming for it are emptied.
func (s *socket) dismiss(consumer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.intakes[consumer]; in != nil {
		s.held -= in.held
		delete(s.intakes, consumer)
		s.changed.Broadcast()
	}
}
