// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// A stranger is a connection before its login. Strangers have a share of their own, so they never use up the
// connections of clients, and each address has one. If a share is full, the oldest stranger makes room: a login takes
// much less time than the others need to come again.

const (
	// strangerBytes is the memory of a stranger: its frame, the frame's decoded form, and its buffers.
	strangerBytes = 64 << 10
	// maxTries is the number of unproven attempts to log in from one address in tryFor, at most. They are counted before
	// anything is verified or signed. A successful login does not count.
	maxTries = 256
	tryFor   = time.Minute
	// maxOrigins is the number of addresses with counted tries. One more takes the place of any other one, so a client
	// with many addresses takes nothing from the rest.
	maxOrigins = 10_000
)

// tries are the attempts of one address.
type tries struct {
	n     int
	until time.Time
}

// originOf returns the origin for counting the strangers of a request: its address, or for IPv6 its network of 56 bits,
// as one customer of a provider has: networks of 64 bits cost nothing, and would use up maxOrigins.
func (f *Front) originOf(r *http.Request) string {
	address := r.RemoteAddr
	if f.config.Address != nil {
		address = f.config.Address(r)
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		if network, err := ip.Prefix(56); err == nil {
			return network.String()
		}
	}
	return ip.String()
}

// arrive adds a stranger. It returns false if there is no memory for it.
func (c *Connections) arrive(s *Session) bool {
	limits := s.front.config.Limits
	var leaving []*Session
	evict := func(e *list.Element) {
		leaving = append(leaving, e.Value.(*Session))
		c.noStranger(e.Value.(*Session))
	}
	c.mu.Lock()
	for c.ofOrigin[s.origin] >= limits.LoginsPerAddress {
		e := c.waiting.Front()
		for e.Value.(*Session).origin != s.origin {
			e = e.Next()
		}
		evict(e)
	}
	for c.waiting.Len() >= limits.Logins {
		evict(c.waiting.Front())
	}
	err := s.memory.Hold(strangerBytes)
	if err != nil && c.waiting.Len() > 0 {
		evict(c.waiting.Front())
		err = s.memory.Hold(strangerBytes)
	}
	if err == nil {
		s.stranger = c.waiting.PushBack(s)
		if c.ofOrigin == nil {
			c.ofOrigin = make(map[string]int)
		}
		c.ofOrigin[s.origin]++
		c.open++
	}
	c.mu.Unlock()
	for _, other := range leaving {
		other.conn.Cut(errors.New("there are too many connections that have not logged in"))
	}
	return err == nil
}

// noStranger takes a session away from the strangers, if it is one. c.mu is held.
func (c *Connections) noStranger(s *Session) {
	if s.stranger == nil {
		return
	}
	c.waiting.Remove(s.stranger)
	s.stranger = nil
	if c.ofOrigin[s.origin]--; c.ofOrigin[s.origin] == 0 {
		delete(c.ofOrigin, s.origin)
	}
	s.memory.Release()
}

// attempt counts an attempt of a stranger to prove something. It returns an error if its address has made too many.
func (c *Connections) attempt(origin string) error {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.triesOf(origin, now)
	if t.n >= maxTries {
		return &aun.Error{Code: codes.LimitExceeded,
			Message: "There are too many logins from your address that are not finished; try again in a minute",
			Data:    []byte(`{"limit":"logins"}`)}
	}
	t.n++
	return nil
}

// proven takes back the attempts of a successful login.
func (c *Connections) proven(origin string, attempts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.triesOf(origin, time.Now())
	t.n = max(t.n-attempts, 0)
}

// triesOf returns the attempts of an address. c.mu is held.
func (c *Connections) triesOf(origin string, now time.Time) *tries {
	t := c.tries[origin]
	if t == nil {
		if c.tries == nil {
			c.tries = make(map[string]*tries)
		}
		for other := range c.tries {
			if len(c.tries) < maxOrigins {
				break
			}
			delete(c.tries, other)
		}
		t = new(tries)
		c.tries[origin] = t
	}
	if now.After(t.until) {
		*t = tries{until: now.Add(tryFor)}
	}
	return t
}

// strangers is the part of Connections about clients before their login. All of it is guarded by the mutex.
type strangers struct {
	waiting  list.List // of *Session, the oldest first
	ofOrigin map[string]int
	tries    map[string]*tries // by origin
}
