// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sink is a receiver of webhooks that works, as a process of its own, so that what it computes is not taken for
// the engine's.
type sink struct{ *child }

// arrival is what the sink says of a notification.
type arrival struct {
	delay time.Duration // since the time in the notification
	again bool          // its webhook-id had come before
}

// sinkWord is the argument by which this program is a sink.
const sinkWord = "sink-of-webhooks"

// newSink starts a sink. The caller closes it.
func newSink(ctx context.Context) (*sink, error) {
	c, err := newChild(ctx, sinkWord)
	if err != nil {
		return nil, err
	}
	return &sink{c}, nil
}

// next waits for the next arrival. It returns io.EOF when the sink has ended.
func (s *sink) next() (arrival, error) {
	var record [8]byte
	_, err := io.ReadFull(s.out, record[:])
	n := int64(binary.LittleEndian.Uint64(record[:]))
	return arrival{time.Duration(n), n == repeated}, err
}

// repeated stands for a delay in a record of what had come before.
const repeated = -1

// serveSink is the process. Like load it is hand-made, because it shares the machine with what is measured.
func serveSink([]string) error {
	l, err := listen()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	ids := make(map[string]bool)
	arrived := func(id string, delay time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		n := max(0, int64(delay))
		if ids[id] {
			n = repeated
		}
		ids[id] = true
		_, err := os.Stdout.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
		return err
	}
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			if err := receive(conn, arrived); !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, "the sink:", err)
			}
		}()
	}
}

// receive answers the requests of one connection until that ends, with io.EOF where it is closed in order. They must
// say their length and their webhook-id.
func receive(conn net.Conn, arrived func(id string, delay time.Duration) error) error {
	in := bufio.NewReaderSize(conn, 16<<10)
	var body []byte
	for {
		length, id := -1, ""
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return err
			}
			if len(line) == 2 {
				break
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			switch value := string(bytes.TrimSpace(value)); strings.ToLower(string(name)) {
			case "content-length":
				if length, err = strconv.Atoi(value); err != nil {
					return err
				}
			case "webhook-id":
				id = value
			}
		}
		if length < 0 || length > 1<<20 || id == "" {
			return errors.New("a notification without a length or a webhook-id")
		}
		body = append(body[:0], make([]byte, length)...)
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		at, ok := sentAt(body)
		if !ok {
			return errors.New("a notification without its time")
		}
		if err := arrived(id, time.Since(at)); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return err
		}
	}
}
