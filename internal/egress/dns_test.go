// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameserver is a DNS server on UDP with changeable answers. Every answer is for that one query (TTL 0).
type nameserver struct {
	conn net.PacketConn
	done chan struct{}

	mu      sync.Mutex
	answers map[string][]netip.Addr // by name, with the last dot
	asked   map[string]int          // the number of questions for A
}

// startDNS runs a nameserver until the end of the test.
func startDNS(t *testing.T) *nameserver {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameserver{conn: conn, done: make(chan struct{}), answers: map[string][]netip.Addr{}, asked: map[string]int{}}
	go func() {
		defer close(s.done)
		s.serve(t)
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-s.done
	})
	return s
}

// resolver asks s and nothing else.
func (s *nameserver) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", s.conn.LocalAddr().String())
	}}
}

// set sets the addresses of a name from now on.
func (s *nameserver) set(name string, addrs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[name+"."] = nil
	for _, a := range addrs {
		s.answers[name+"."] = append(s.answers[name+"."], netip.MustParseAddr(a))
	}
}

func (s *nameserver) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name+"."]
}

func (s *nameserver) serve(t *testing.T) {
	buf := make([]byte, 4096)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			t.Errorf("reading a query: %v", err)
			return
		}
		var query dnsmessage.Message
		if err := query.Unpack(buf[:n]); err != nil || len(query.Questions) != 1 {
			t.Errorf("a query that cannot be read: %v", err)
			return
		}
		reply, err := s.answer(query)
		if err != nil {
			t.Errorf("packing an answer: %v", err)
			return
		}
		if _, err := s.conn.WriteTo(reply, from); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("sending an answer: %v", err)
		}
	}
}

func (s *nameserver) answer(query dnsmessage.Message) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := query.Questions[0]
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: query.ID, Response: true, Authoritative: true, RecursionDesired: query.RecursionDesired,
		},
		Questions: query.Questions,
	}
	addrs, known := s.answers[q.Name.String()]
	if !known {
		reply.RCode = dnsmessage.RCodeNameError
	}
	if q.Type == dnsmessage.TypeA {
		s.asked[q.Name.String()]++
	}
	for _, a := range addrs {
		var body dnsmessage.ResourceBody
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			body = &dnsmessage.AResource{A: a.As4()}
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		default:
			continue
		}
		reply.Answers = append(reply.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET},
			Body:   body,
		})
	}
	return reply.Pack()
}
