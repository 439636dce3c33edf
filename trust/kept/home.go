// SPDX-License-Identifier: Apache-2.0

package kept

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

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

const (
	// maxCertificates is how many certificates of a Leader are kept. A Leader with more of them has lost its standing
	// only when those that are kept count no more, and it does not call by another one.
	maxCertificates = 4
	// keepExpired is how long a Leader is kept whose certificates have expired, if it has not lost its standing.
	keepExpired = 30 * 24 * time.Hour
)

// home has the certificates of the Leaders of one shard that this process owns.
type home struct {
	shard int
	store replay.Store
	log   *slog.Logger
	now   func() time.Time
	// rejudge has the Leaders judged again soon.
	rejudge func()

	writing sync.Mutex // held while a log is written, and before mu

	mu      sync.RWMutex
	leaders map[string]*leader // by name
}

// leader is what is known of a Leader. It is changed under home.writing and home.mu.
type leader struct {
	revision     uint64 // of its log
	certificates []certificate
	lost         bool // its standing
	unstored     bool // which certificates are lost could not be stored
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
	Pool  string              // which trust has verified it, for who judges; empty for one that is not judged later
}

// record is what is stored of a Leader. The names of its members are a stored format.
type record struct {
	Proofs []storedProof `json:"proofs"`
}

type storedProof struct {
	Chain [][]byte `json:"chain"`
	Pool  string   `json:"pool,omitempty"`
	Lost  bool     `json:"lost,omitempty"`
}

// openHome reads what the store of a shard has.
func (r *Register) openHome(ctx context.Context, shard int, store replay.Store) (*home, error) {
	h := &home{shard: shard, store: store, log: r.log, now: r.now, leaders: make(map[string]*leader),
		rejudge: func() { r.gained.Add(1) }}
	for entry, err := range store.List(ctx, string(logname.Standing), "") {
		if err != nil {
			return nil, fmt.Errorf("the certificates of Leaders cannot be read: %w", err)
		}
		if !entry.Head.Ended.IsZero() {
			continue
		}
		l := &leader{revision: entry.Head.Revision}
		var stored record
		if err := json.Unmarshal(entry.Head.Metadata, &stored); err != nil {
			r.log.Error("what is kept of a Leader's certificates is damaged", "leader", entry.Log[1:], "error", err)
			continue
		}
		for _, p := range stored.Proofs {
			if chain, err := parse(p.Chain); err == nil {
				c := newCertificate(Proof{chain, p.Pool})
				c.lost = p.Lost
				l.certificates = append(l.certificates, c)
			}
		}
		l.lost = h.hasLost(l.certificates) || r.learnedOf(shard, entry.Log[1:]) // until it is judged here
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

// index returns the place of a certificate; -1 for none.
func (l *leader) index(cert *x509.Certificate) int {
	return slices.IndexFunc(l.certificates, func(c certificate) bool { return c.is(cert) })
}

// called is Register.Called.
func (h *home) called(ctx context.Context, name string, p Proof, lasts bool) error {
	if !h.news(name, p, lasts) {
		return nil
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	if !h.news(name, p, lasts) { // by another goroutine meanwhile
		return nil
	}
	next := leader{}
	if l := h.leaders[name]; l != nil { // mu need not be held to read it
		next = *l
	}
	next.certificates = slices.Clone(next.certificates)
	if i := next.index(p.Chain[0]); i >= 0 {
		next.certificates[i] = newCertificate(p)
	} else {
		next.certificates = h.keep(next.certificates, newCertificate(p))
	}
	before := next.lost
	next.lost = false
	if err := h.write(ctx, name, &next); err != nil {
		return err
	}
	if before {
		h.rejudge() // the certificate may have been revoked since it was looked at
		h.log.Info("a Leader whose certificates counted no more calls by one that counts; its webhooks go on",
			"leader", name)
	}
	return nil
}

// news reports whether a certificate of a Leader, which counts, is to be kept.
func (h *home) news(name string, p Proof, lasts bool) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	l := h.leaders[name]
	if l == nil {
		return lasts
	}
	if i := l.index(p.Chain[0]); i >= 0 { // it is kept already
		// By a trust with a name it may be lost, by others not: that one stays while it counts, whatever comes between.
		return l.certificates[i].lost || l.certificates[i].pool == "" && p.Pool != ""
	}
	return len(l.certificates) < maxCertificates || slices.ContainsFunc(l.certificates, h.useless)
}

// useless reports whether a certificate may be dropped for another one.
func (h *home) useless(c certificate) bool { return c.lost || h.now().After(c.until) }

// keep adds another certificate.
func (h *home) keep(all []certificate, c certificate) []certificate {
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
		c := &l.certificates[i]
		out.Proofs = append(out.Proofs, storedProof{c.der(), c.pool, c.lost})
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
	l.unstored = false
	h.put(name, l)
	return nil
}

// put puts in force what is known of a Leader.
func (h *home) put(name string, l *leader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaders[name] = l
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
func (h *home) judge(ctx context.Context, counts func(p Proof, did bool) bool) {
	h.writing.Lock()
	defer h.writing.Unlock()
	now := h.now()
	for name, l := range h.leaders { // only written while writing is held
		next := leader{revision: l.revision, certificates: slices.Clone(l.certificates), unstored: l.unstored}
		for i := range next.certificates {
			c := &next.certificates[i]
			if chain, err := parse(c.der()); err == nil && !now.After(c.until) {
				did := !c.lost
				c.lost = !counts(Proof{chain, c.pool}, did)
				next.unstored = next.unstored || c.lost == did
			}
		}
		next.lost = h.hasLost(next.certificates)
		if !next.lost && now.After(lastOf(next.certificates).until.Add(keepExpired)) {
			h.drop(ctx, name, l)
			continue
		}
		switch {
		case next.lost && !l.lost:
			h.log.Warn("the certificates of a Leader count no more: its webhooks stop, and its groups are left",
				"leader", name)
		case l.lost && !next.lost:
			h.log.Info("the certificates of a Leader count again; its webhooks go on", "leader", name)
		}
		h.put(name, &next) // whether it can be stored or not
		if next.unstored {
			stored := next
			if err := h.write(ctx, name, &stored); err != nil {
				h.log.Error("that certificates of a Leader count no more, or again, cannot be stored now; it is tried again",
					"leader", name, "error", err)
			}
		}
	}
}

// hasLost reports whether a Leader with some certificates has lost its standing. Those that have expired do not matter
// while another one has not.
func (h *home) hasLost(all []certificate) bool {
	last := lastOf(all)
	if h.now().After(last.until) {
		return last.lost
	}
	return !slices.ContainsFunc(all, func(c certificate) bool { return !h.useless(c) })
}

// lastOf returns the certificate that expires last; the zero one for none.
func lastOf(all []certificate) (last certificate) {
	for _, c := range all {
		if c.until.After(last.until) {
			last = c
		}
	}
	return last
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
