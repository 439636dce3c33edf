// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// frameOf is a frame.
func frameOf(kind byte, channel uint16, payload []byte) []byte {
	f := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	f = binary.BigEndian.AppendUint32(f, uint32(len(payload)))
	return append(append(f, payload...), 0xce)
}

// header is the header frame of a message.
func header(channel uint16, length uint64) []byte {
	return frameOf(frameHeader, channel, append(binary.BigEndian.AppendUint64([]byte{0, 60, 0, 0}, length), 0, 0))
}

// delivery is the method frame of a message for a consumer.
func delivery(channel uint16, consumer string) []byte {
	method := append([]byte{0, 60, 0, 60, byte(len(consumer))}, consumer...)
	return frameOf(frameMethod, channel, append(method, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0))
}

// pipe is a socket. Frames are written to its other end, and then that end is closed.
func pipe(frames ...[]byte) *socket {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		_, _ = far.Write(slices.Concat(frames...))
	}()
	return newSocket(near)
}

// TestMessagesThatAreTooLarge has them emptied as their frames pass, those of other channels in between untouched.
func TestMessagesThatAreTooLarge(t *testing.T) {
	body := func(channel uint16, n int) []byte { return frameOf(frameBody, channel, make([]byte, n)) }
	s := pipe(delivery(1, "a"), header(1, 30), delivery(2, "b"), body(1, 20), header(2, 10), body(2, 10), body(1, 10),
		delivery(1, "a"), header(1, 10), body(1, 10), delivery(3, "unknown"), header(3, 1), body(3, 1),
		frameOf(8, 0, nil))
	s.admit("a", 10)
	s.admit("b", 10)
	got, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(delivery(1, "a"), header(1, 0), delivery(2, "b"), header(2, 10), body(2, 10),
		delivery(1, "a"), header(1, 10), body(1, 10), delivery(3, "unknown"), header(3, 0), frameOf(8, 0, nil))
	if !bytes.Equal(got, want) {
		t.Errorf("the frames are\n%x, not\n%x", got, want)
	}
	if s.held != 20 {
		t.Errorf("%d bytes are held", s.held)
	}
}

// TestMessagesThatAreHeld has reading wait until there is room.
func TestMessagesThatAreHeld(t *testing.T) {
	ends := map[string]func(*socket){
		"release": func(s *socket) { s.release("a", maxHeld) },
		"dismiss": func(s *socket) { s.dismiss("a") },
		"close":   func(s *socket) { _ = s.Close() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				first := slices.Concat(delivery(1, "a"), header(1, maxHeld), frameOf(frameBody, 1, make([]byte, maxHeld)))
				s := pipe(first, delivery(2, "b"), header(2, 1), frameOf(frameBody, 2, []byte{1}))
				s.admit("a", maxHeld)
				s.admit("b", 1)
				read := 0
				done := make(chan error, 1)
				go func() {
					n, err := io.Copy(io.Discard, s)
					read = int(n)
					done <- err
				}()
				bubble.Pass(time.Minute)
				select {
				case err := <-done:
					t.Fatalf("reading ends with %v", err)
				default:
				}
				end(s)
				<-done
				if name != "close" && read < len(first)+1 {
					t.Errorf("%d bytes were read", read)
				}
			})
		})
	}
}

// FuzzSocket reads anything: frames other than messages pass as they are.
func FuzzSocket(f *testing.F) {
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Add(slices.Concat(delivery(1, "a"), header(1, 30), frameOf(frameBody, 1, make([]byte, 30))))
	f.Add(slices.Concat(header(1, 1<<63), frameOf(frameBody, 1, nil)))
	f.Add([]byte(strings.Repeat("\x02", 100)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := pipe(data)
		s.admit("a", 1000)
		got, err := io.ReadAll(s)
		if err != nil && err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
		if len(got) > len(data) || s.held < 0 {
			t.Errorf("%d of %d bytes, %d held", len(got), len(data), s.held)
		}
	})
}
