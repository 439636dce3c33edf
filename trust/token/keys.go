// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// When keys are fetched.
const (
	refreshAfter = 10 * time.Minute // keys that are older are fetched again when a token comes
	awaitAfter   = 20 * time.Minute // after such a time without a fetch, a token waits for it
	fetchEvery   = 10 * time.Second // at most
	fetchTimeout = 10 * time.Second // of all requests of one fetch
)

// Keys are the keys of issuers, for all Verifiers that share them. The keys of an issuer are kept while one of its
// Verifiers is open. The zero value is ready for use, by any number of goroutines at once.
type Keys struct {
	mu      sync.Mutex
	sources []*source
}

// open returns the source of the keys for a configuration. It must be closed.
func (k *Keys) open(c *Config) *source {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.sources {
		if s.serves(c) {
			s.users++
			return s
		}
	}
	s := &source{issuer: c.Issuer, jwks: c.JWKS, allow: slices.Clone(c.Egress.Allow), roots: c.Roots, log: c.Log,
		users: 1}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.load = newClient(c, s.owned).keys
	k.sources = append(k.sources, s)
	return s
}

// close closes a source once for each open.
func (k *Keys) close(s *source) {
	k.mu.Lock()
	s.users--
	last := s.users == 0
	if last {
		k.sources = slices.DeleteFunc(k.sources, func(other *source) bool { return other == s })
	}
	k.mu.Unlock()
	if last {
		s.end()
	}
}

// serves reports whether a source is that of a configuration.
func (s *source) serves(c *Config) bool {
	sameRoots := s.roots == c.Roots || s.roots != nil && c.Roots != nil && s.roots.Equal(c.Roots)
	return s.issuer == c.Issuer && s.jwks == c.JWKS && slices.Equal(s.allow, c.Egress.Allow) && sameRoots
}

// Health is what is known of the keys of an issuer.
type Health struct {
	Issuer  string
	Keys    int       // that verify tokens by an algorithm that is allowed; 0 if none were fetched yet
	Others  int       // that the issuer publishes for other algorithms
	Fetched time.Time // when; zero for never
	Err     error     // of the last fetch; nil if it succeeded, or there was none
}

// source is where the keys of one issuer come from.
type source struct {
	issuer, jwks string
	allow        []netip.Prefix
	roots        *x509.CertPool
	load         func(context.Context) (*keySet, error) // client.keys, and another one in tests
	log          *slog.Logger
	users        int // under the mutex of Keys

	set atomic.Pointer[keySet] // nil before the first fetch has succeeded

	ctx    context.Context // of fetches
	cancel context.CancelFunc
	work   sync.WaitGroup // fetches, and their dials

	mu     sync.Mutex // guards what follows, and additions to work
	closed bool
	tried  time.Time     // when the last fetch began
	flight chan struct{} // closed when the fetch that runs has ended; nil if none runs
	rested bool          // there was no fetch for awaitAfter before the one that runs
	err    error         // of the last fetch
}

// current returns the keys as they are known; nil for none. If they are old, it begins a fetch, without waiting for it.
// After a long time without one it returns nil until the fetch has ended, well or not: the issuer may have taken a key
// back meanwhile.
func (s *source) current() *keySet {
	set := s.set.Load()
	if set == nil || time.Since(set.fetched) <= refreshAfter {
		return set
	}
	s.fetch()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight != nil && s.rested {
		return nil
	}
	return s.set.Load()
}

// find returns the keys that may have signed a token, and the set that has them. If there are none, it waits for a
// fetch, if one may be made now.
func (s *source) find(ctx context.Context, kid, algorithm string) (*keySet, []any, error) {
	set := s.current()
	if set != nil {
		if found := set.find(kid, algorithm); found != nil {
			return set, found, nil
		}
	}
	if flight := s.fetch(); flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	if set = s.set.Load(); set == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, nil, &Error{Reason: NoKeys, Err: s.err}
	}
	found := set.find(kid, algorithm)
	switch {
	case found != nil:
		return set, found, nil
	case kid == "":
		return nil, nil, refuse(UnknownKey, "it has no kid, and not exactly one key is for "+algorithm)
	}
	return nil, nil, refuse(UnknownKey, fmt.Sprintf("kid is %.100q", kid))
}

// fetch begins a fetch, unless one runs, or the last one began a moment ago. It returns a channel that is closed when
// the fetch that runs has ended; nil if none runs.
func (s *source) fetch() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.flight != nil:
		return s.flight
	case s.closed, !s.tried.IsZero() && time.Since(s.tried) < fetchEvery:
		return nil
	}
	s.rested = time.Since(s.tried) > awaitAfter
	s.tried, s.flight = time.Now(), make(chan struct{})
	s.work.Go(s.run)
	return s.flight
}

// run is one fetch. Keys that cannot be fetched stay as they are.
func (s *source) run() {
	ctx, cancel := context.WithTimeout(s.ctx, fetchTimeout)
	defer cancel()
	set, err := s.load(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.err
	if s.err = err; err == nil {
		s.set.Store(set)
	}
	close(s.flight)
	s.flight = nil
	switch {
	case s.closed:
	case err == nil && before != nil:
		s.log.Info("the keys of an issuer of tokens can be fetched again", "issuer", s.issuer, "keys", len(set.keys))
	case err != nil && (before == nil || before.Error() != err.Error()):
		// What to do: without `kept`, its tokens are refused.
		s.log.Warn("the keys of an issuer of tokens cannot be fetched", "issuer", s.issuer, "error", err,
			"kept", s.set.Load() != nil)
	}
}

func (s *source) health(issuer string, algorithms []jose.SignatureAlgorithm) Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := Health{Issuer: issuer, Err: s.err}
	if set := s.set.Load(); set != nil {
		h.Fetched = set.fetched
		for i := range set.keys {
			if slices.ContainsFunc(algorithms, func(a jose.SignatureAlgorithm) bool { return set.keys[i].verifies(string(a)) }) {
				h.Keys++
			}
		}
		h.Others = len(set.keys) - h.Keys
	}
	return h
}

// owned makes the source the owner of a dial: a Transport dials in goroutines of its own, which continue when the fetch
// has ended.
func (s *source) owned(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		s.mu.Lock()
		closed := s.closed
		if !closed {
			s.work.Add(1)
		}
		s.mu.Unlock()
		if closed {
			return nil, context.Canceled
		}
		defer s.work.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		return dial(ctx, network, address)
	}
}

// end ends the fetch that runs.
func (s *source) end() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
}
