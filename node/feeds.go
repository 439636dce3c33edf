// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"

	"github.com/aip-gateway/aip-gateway/acps/registry"
)

// Feeds are those of all configurations, by the registry and the roots of its certificate: a registry is followed once,
// and over reloads. The zero value is ready for use.
type Feeds struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]*Feed
}

// Feed is the feed of one registry, in use until Leave is called.
type Feed struct {
	*registry.Feed

	of    *Feeds
	key   [sha256.Size]byte
	users int // under the mutex of Feeds
}

// Use returns the feed of a registry. It is not started.
func (s *Feeds) Use(url string, roots []*x509.Certificate, log *slog.Logger) (*Feed, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q", url)
	for _, cert := range roots {
		hash.Write(cert.Raw)
	}
	key := [sha256.Size]byte(hash.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.open[key]
	if f == nil {
		client, err := registry.New(registry.Config{URL: url, Roots: PoolOf(roots)})
		if err != nil {
			return nil, err
		}
		f = &Feed{Feed: registry.NewFeed(client, log), of: s, key: key}
		if s.open == nil {
			s.open = make(map[[sha256.Size]byte]*Feed)
		}
		s.open[key] = f
	}
	f.users++
	return f, nil
}

// Leave ends one use of the feed; the last one closes it.
func (f *Feed) Leave() {
	f.of.mu.Lock()
	f.users--
	last := f.users == 0
	if last {
		delete(f.of.open, f.key)
	}
	f.of.mu.Unlock()
	if last {
		f.Close()
	}
}

// PoolOf returns a pool of roots; nil, for those of the system, without any.
func PoolOf(roots []*x509.Certificate) *x509.CertPool {
	if len(roots) == 0 {
		return nil
	}
	pool := x509.NewCertPool()
	for _, cert := range roots {
		pool.AddCert(cert)
	}
	return pool
}
