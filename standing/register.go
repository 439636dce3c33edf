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

// Register has the certificates of Leaders. It may be used by any number of goroutines at once.
type Register struct {
	store replay.Store
	log   *slog.Logger
	now   func() time.Time

	writing sync.Mutex // held while a log is written, and before mu

	mu      sync.RWMutex
	leaders map[string]*leader // by name
}

// leader is what is known of a Leader. It is changed under Register.writing and Register.mu.
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

// Open reads what a store has. now is the clock, such as time.Now.
func Open(ctx context.Context, store replay.Store, now func() time.Time, log *slog.Logger) (*Register, error) {
	r := &Register{store: store, log: log, now: now, leaders: make(map[string]*leader)}
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
			log.Error("what is kept of a Leader's certificates is damaged", "leader", entry.Log[1:], "error", err)
			continue
		}
		for _, p := range stored.Proofs {
			if chain, err := parse(p.Chain); err == nil {
				l.certificates = append(l.certificates, newCertificate(Proof{chain, p.Pool}))
			}
		}
		r.leaders[entry.Log[1:]] = l
	}
	return r, nil
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

// Called says that a Leader calls by a certificate that counts. It is stored when Called returns, if lasts says that
// the call asks for what goes on without a connection, or if one has before.
func (r *Register) Called(ctx context.Context, name string, p Proof, lasts bool) error {
	if !r.news(name, p.Chain[0], lasts) {
		return nil
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	if !r.news(name, p.Chain[0], lasts) { // by another goroutine meanwhile
		return nil
	}
	next := leader{}
	if l := r.leaders[name]; l != nil { // mu need not be held to read it
		next = *l
	}
	next.certificates = r.keep(next.certificates, newCertificate(p))
	before := next.lost
	next.lost = false
	if err := r.write(ctx, name, &next); err != nil {
		return err
	}
	if before {
		r.log.Info("a Leader whose certificates counted no more calls by another one; its webhooks go on", "leader", name)
	}
	return nil
}

// news reports whether a certificate of a Leader is to be kept.
func (r *Register) news(name string, cert *x509.Certificate, lasts bool) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	l := r.leaders[name]
	if l == nil {
		return lasts
	}
	if slices.ContainsFunc(l.certificates, func(c certificate) bool { return c.is(cert) }) {
		return false
	}
	return len(l.certificates) < maxCertificates || slices.ContainsFunc(l.certificates, r.useless)
}

// useless reports whether a certificate may be dropped for another one.
func (r *Register) useless(c certificate) bool { return c.lost || r.now().After(c.until) }

// keep returns certificates with another one.
func (r *Register) keep(all []certificate, c certificate) []certificate {
	all = slices.Clone(all)
	if len(all) >= maxCertificates {
		if i := slices.IndexFunc(all, r.useless); i >= 0 {
			all = slices.Delete(all, i, i+1)
		}
	}
	return append(all, c)
}

// write stores what is known of a Leader, and puts it in force. Another writer of the log may only have been this one,
// by a write that had failed as far as it knew.
func (r *Register) write(ctx context.Context, name string, l *leader) error {
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
		err := r.store.Append(ctx, replay.Append{Log: log, Expect: l.revision, Metadata: data, Durable: true})
		if errors.Is(err, replay.ErrConflict) {
			head, bad := r.store.Head(ctx, log)
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaders[name] = l
	return nil
}

// Lost reports whether a Leader has lost its standing.
func (r *Register) Lost(name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	l := r.leaders[name]
	return l != nil && l.lost
}

// Judge judges the kept certificates again, and returns the Leaders that have no standing now. counts reports whether a
// certificate counts; what it is given has been parsed anew.
func (r *Register) Judge(ctx context.Context, counts func(Proof) bool) (lost []string) {
	r.writing.Lock()
	defer r.writing.Unlock()
	now := r.now()
	for name, l := range r.leaders { // only written while writing is held
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
			r.drop(ctx, name, l)
			continue
		}
		next.lost = last.lost
		if !now.After(last.until) { // those that have expired do not matter
			next.lost = !slices.ContainsFunc(next.certificates, func(c certificate) bool { return !r.useless(c) })
		}
		if next.lost {
			lost = append(lost, name)
		}
		switch {
		case next.lost && !l.lost:
			r.log.Warn("the certificates of a Leader count no more: its webhooks stop, and its groups are left",
				"leader", name)
		case l.lost && !next.lost:
			r.log.Info("the certificates of a Leader count again; its webhooks go on", "leader", name)
		}
		r.mu.Lock()
		*l = next
		r.mu.Unlock()
	}
	slices.Sort(lost)
	return lost
}

// drop forgets a Leader. If the store cannot be written, that is tried again at the next Judge.
func (r *Register) drop(ctx context.Context, name string, l *leader) {
	err := r.store.Append(ctx, replay.Append{Log: logname.StandingOf(name), Expect: l.revision, Drop: true})
	if err == nil || errors.Is(err, replay.ErrConflict) {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.leaders, name)
	}
}
