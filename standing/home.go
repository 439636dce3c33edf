// SPDX-License-Identifier: Apache-2.0

package standing

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	// maxCertificates is how many certificates of a Leader are kept. A Leader with more of them has lost its standing
	// only when those that are kept count no more, and it does not call by another one.
	maxCertificates = 4
	// keepExpired is how long a Leader is kept whose certificates have expired.
	keepExpired = 30 * 24 * time.Hour
)

// home has the certificates of the Leaders of one shard that this process owns.
type home struct {
	shard int
	store replay.Store
	log   *slog.Logger
	now   func() time.Time

	writing sync.Mutex // held while a log is written, and before mu

	mu      sync.RWMutex
	leaders map[string]*leader // by name
}

// leader is what is known of a Leader. It is changed under home.writing and home.mu.
type leader struct {
	revision     uint64 // of its log
	certificates []certificate
	lost         bool // its standing
}

// certificate is a certificate by which a Leader has called.
type certificate struct {
	chain []unique.Handle[string] // in DER, from its own to the root; those of issuers are the same for many
	pool  string
	until time.Time // it expires
	lost  bool      // it counts no more
}

// Proof is a certificate by which a Leader has called.
type Proof struct {
	Chain []*x509.Certificate // as it was verified, from its own to the root
	Pool  string              // which trust has verified it, for who judges
}

// record is what is stored of a Leader. The names of its members are a stored format.
type record struct {
	Proofs []storedProof `json:"proofs"`
}

type storedProof struct {
	Chain [][]byte `json:"chain"`
	Pool  string   `json:"pool,omitempty"`
}

// openHome reads what the store of a shard has.
func (r *Register) openHome(ctx context.Context, shard int, store replay.Store) (*home, error) {
	h := &home{shard: shard, store: store, log: r.log, now: r.now, leaders: make(map[string]*leader)}
	for entry, err := range store.List(ctx, string(logname.Standing), "") {
		if err != nil {
			return nil, fmt.Errorf("the certificates of Leaders cannot be read: %w", err)
		}
		if !entry.Head.Ended.IsZero() {
			continue
		}
		l := &leader{revision: entry.Head.Revision, lost: r.learnedOf(shard, entry.Log[1:])} // until it is judged here
		var stored record
		if err := json.Unmarshal(entry.Head.Metadata, &stored); err != nil {
			r.log.Error("what is kept of a Leader's certificates is damaged", "leader", entry.Log[1:], "error", err)
			continue
		}
		for _, p := range stored.Proofs {
			if chain, err := parse(p.Chain); err == nil {
				l.certificates = append(l.certificates, newCertificate(Proof{chain, p.Pool}))
			}
		}
		h.leaders[entry.Log[1:]] = l
	}
	r.gained.Add(1)
	return h, nil
}

func newCertificate(p Proof) certificate {
	c := certificate{until: p.Chain[0].NotAfter, pool: p.Pool}
	for _, cert := range p.Chain {
		c.chain = append(c.chain, unique.Make(string(cert.Raw)))
		if cert.NotAfter.Before(c.until) {
			c.until = cert.NotAfter
		}
	}
	return c
}

func parse(chain [][]byte) (all []*x509.Certificate, err error) {
	for _, der := range chain {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, errors.New("standing: the chain is empty")
	}
	return all, nil
}

func (c *certificate) der() (all [][]byte) {
	for _, one := range c.chain {
		all = append(all, []byte(one.Value()))
	}
	return all
}

func (c *certificate) is(cert *x509.Certificate) bool { return c.chain[0].Value() == string(cert.Raw) }

// called is Register.Called.
func (h *home) called(ctx context.Context, name string, p Proof, lasts bool) error {
	if !h.news(name, p.Chain[0], lasts) {
		return nil
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	if !h.news(name, p.Chain[0], lasts) { // by another goroutine meanwhile
		return nil
	}
	next := leader{}
	if l := h.leaders[name]; l != nil { // mu need not be held to read it
		next = *l
	}
	next.certificates = h.keep(next.certificates, newCertificate(p))
	before := next.lost
	next.lost = false
	if err := h.write(ctx, name, &next); err != nil {
		return err
	}
	if before {
		h.log.Info("a Leader whose certificates counted no more calls by another one; its webhooks go on", "leader", name)
	}
	return nil
}

// news reports whether a certificate of a Leader is to be kept.
func (h *home) news(name string, cert *x509.Certificate, lasts bool) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	l := h.leaders[name]
	if l == nil {
		return lasts
	}
	if slices.ContainsFunc(l.certificates, func(c certificate) bool { return c.is(cert) }) {
		return false
	}
	return len(l.certificates) < maxCertificates || slices.ContainsFunc(l.certificates, h.useless)
}

// useless reports whether a certificate may be dropped for another one.
func (h *home) useless(c certificate) bool { return c.lost || h.now().After(c.until) }

// keep returns certificates with another one.
func (h *home) keep(all []certificate, c certificate) []certificate {
	all = slices.Clone(all)
	if len(all) >= maxCertificates {
		if i := slices.IndexFunc(all, h.useless); i >= 0 {
			all = slices.Delete(all, i, i+1)
		}
	}
	return append(all, c)
}

// write stores what is known of a Leader, and puts it in force. Another writer of the log may only have been this one,
// by a write that had failed as far as it knew.
func (h *home) write(ctx context.Context, name string, l *leader) error {
	var out record
	for i := range l.certificates {
		out.Proofs = append(out.Proofs, storedProof{l.certificates[i].der(), l.certificates[i].pool})
	}
	data, err := json.Marshal(out)
	if err != nil {
		return err
	}
	log := logname.StandingOf(name)
	err = replay.RetryConflict(func() error {
		err := h.store.Append(ctx, replay.Append{Log: log, Expect: l.revision, Metadata: data, Durable: true})
		if errors.Is(err, replay.ErrConflict) {
			head, bad := h.store.Head(ctx, log)
			if bad != nil && !errors.Is(bad, replay.ErrNotFound) {
				return bad
			}
			l.revision = head.Revision
		}
		return err
	})
	if err != nil {
		return err
	}
	l.revision++
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaders[name] = l
	return nil
}

// isLost is Register.Lost.
func (h *home) isLost(name string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	l := h.leaders[name]
	return l != nil && l.lost
}

// lost returns the Leaders that have lost their standing.
func (h *home) lost() (all []string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for name, l := range h.leaders {
		if l.lost {
			all = append(all, name)
		}
	}
	return all
}

// judge is Register.Judge.
func (h *home) judge(ctx context.Context, counts func(Proof) bool) {
	h.writing.Lock()
	defer h.writing.Unlock()
	now := h.now()
	for name, l := range h.leaders { // only written while writing is held
		next := leader{revision: l.revision, certificates: slices.Clone(l.certificates)}
		for i := range next.certificates {
			c := &next.certificates[i]
			if chain, err := parse(c.der()); err == nil && !now.After(c.until) {
				c.lost = !counts(Proof{chain, c.pool})
			}
		}
		last := slices.MaxFunc(append(next.certificates, certificate{}), func(a, b certificate) int {
			return a.until.Compare(b.until)
		})
		if now.After(last.until.Add(keepExpired)) {
			h.drop(ctx, name, l)
			continue
		}
		next.lost = last.lost
		if !now.After(last.until) { // those that have expired do not matter
			next.lost = !slices.ContainsFunc(next.certificates, func(c certificate) bool { return !h.useless(c) })
		}
		switch {
		case next.lost && !l.lost:
			h.log.Warn("the certificates of a Leader count no more: its webhooks stop, and its groups are left",
				"leader", name)
		case l.lost && !next.lost:
			h.log.Info("the certificates of a Leader count again; its webhooks go on", "leader", name)
		}
		h.mu.Lock()
		*l = next
		h.mu.Unlock()
	}
}

// drop forgets a Leader. If the store cannot be written, that is tried again at the next Judge.
func (h *home) drop(ctx context.Context, name string, l *leader) {
	err := h.store.Append(ctx, replay.Append{Log: logname.StandingOf(name), Expect: l.revision, Drop: true})
	if err == nil || errors.Is(err, replay.ErrConflict) {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.leaders, name)
	}
}
