// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	lockWait = 2 * time.Minute
	// recheck is how often the storage is read: another gateway may have ordered, or an operator have retired.
	recheck = time.Minute
	// mostReplaced is how many revoked certificates of one agent are replaced within an hour.
	mostReplaced = 6
	firstRetry   = time.Minute // of what has failed; it doubles, up to lastRetry
	lastRetry    = time.Hour
)

// Config is what a Keeper works with.
type Config struct {
	AIC     string // in upper case
	Client  *Client
	Storage Storage
	// EAB returns the EAB for the account of the agent, whenever one is needed. Nil if there is no way to one.
	EAB func(context.Context) (EAB, error)
	// Inactive reports whether the registry says that the agent is not active. The authority asks the registry, too, but
	// its answer does not tell that apart from other faults. Nil: nothing is known.
	Inactive func(context.Context) bool
	// Revoked says whether a certificate is revoked, as far as that is known. Nil: nothing is known.
	Revoked func(context.Context, []*x509.Certificate) (bool, error)
	// Challenges is where files for the challenges of v01.00 are shown. Nil for an AIC of v02.
	Challenges Storage
	Contact    []string // URLs, such as mailto:ops@example.com
	Log        *slog.Logger
}

// Keeper keeps the certificates of one agent: it orders them, renews them, and replaces those that were revoked.
type Keeper struct {
	Config

	key   string // of the record in the storage
	wake  chan struct{}
	stop  context.CancelFunc
	ended chan struct{}

	pairs atomic.Pointer[map[Usage]*pair]

	// What Load has read last: mostly nothing has changed.
	body []byte
	seen *record

	mu       sync.Mutex // guards what follows
	status   Status
	revoked  map[string]bool // serial numbers
	warned   map[string]int  // days, by serial number
	replaced []time.Time     // when certificates were found revoked
	failures int
	retry    time.Time
}

// errInactive says that nothing is ordered while the registry has the agent as inactive.
var errInactive = errors.New("the registry has the agent as inactive")

// New returns a Keeper, which does nothing before Start.
func New(c Config) *Keeper {
	k := &Keeper{Config: c, key: path.Join(folder(c.Client.Directory), c.AIC+".json"), wake: make(chan struct{}, 1),
		revoked: make(map[string]bool), warned: make(map[string]int)}
	k.Log = k.Log.With("aic", c.AIC)
	k.status.AIC = c.AIC
	k.pairs.Store(new(map[Usage]*pair))
	return k
}

// Load serves what the storage has. It may be called before Start; afterwards the Keeper does that itself.
func (k *Keeper) Load(ctx context.Context) error {
	body, err := k.read(ctx)
	if err != nil || k.seen != nil && bytes.Equal(body, k.body) {
		return err
	}
	r, err := k.parse(body)
	if err == nil {
		err = k.publish(r)
	}
	if err != nil {
		return err
	}
	k.seen, k.body = r, body
	return nil
}

// Start begins the work, which Close ends.
func (k *Keeper) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	k.stop, k.ended = cancel, make(chan struct{})
	go func() {
		defer close(k.ended)
		k.run(ctx)
	}()
}

// Close ends the work, between two steps, and waits for that.
func (k *Keeper) Close() {
	if k.stop != nil {
		k.stop()
		<-k.ended
	}
}

// IsV1 reports whether the agent is one of ACPs v01.00, whose authority wants no EAB.
func (k *Keeper) IsV1() bool { return !strings.Contains(k.AIC, ".") }

// commonName returns the name in the certificates.
func (k *Keeper) commonName() string {
	if k.IsV1() {
		return k.AIC + ".acps.pub"
	}
	return k.AIC
}

func (k *Keeper) usages() []Usage {
	if k.IsV1() {
		return []Usage{BothAuth}
	}
	return []Usage{ServerAuth, ClientAuth}
}

// Certificate returns the certificate for a usage; nil if there is none.
func (k *Keeper) Certificate(u Usage) *tls.Certificate {
	if k.IsV1() {
		u = BothAuth
	}
	if p := (*k.pairs.Load())[u]; p != nil {
		return &p.Certificate
	}
	return nil
}

// publish serves what a record has.
func (k *Keeper) publish(r *record) error {
	pairs := make(map[Usage]*pair)
	for _, u := range k.usages() {
		if h := r.Certificates[u]; h != nil && !r.Retired {
			p, err := h.pair()
			if err != nil {
				return err
			}
			if p != nil {
				pairs[u] = p
			}
		}
	}
	k.pairs.Store(&pairs)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.status.Account, k.status.Retired = r.Account, r.Retired
	return nil
}

// due returns the usages for which a certificate is to be ordered.
func (k *Keeper) due(r *record, now time.Time) (all []Usage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, u := range k.usages() {
		h := r.of(u)
		p, err := h.pair()
		if err != nil || p == nil || h.Order != nil || h.Replace || !now.Before(p.renewal()) || k.revoked[p.serial()] {
			all = append(all, u)
		}
	}
	return all
}

// run looks after the certificates until the context ends.
func (k *Keeper) run(ctx context.Context) {
	for {
		k.tend(ctx)
		timer := time.NewTimer(k.next(time.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-k.wake:
			timer.Stop()
		}
	}
}

// Wake has the certificates looked after at once.
func (k *Keeper) Wake() {
	k.mu.Lock()
	k.retry = time.Time{}
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// next returns how long nothing is to be done: until another gateway may have done something, a certificate is due, or
// what has failed is tried again.
func (k *Keeper) next(now time.Time) time.Duration {
	wait := recheck
	k.mu.Lock()
	defer k.mu.Unlock()
	if left := k.retry.Sub(now); left > 0 {
		return min(wait, left)
	}
	for _, p := range *k.pairs.Load() {
		if left := p.renewal().Sub(now); left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// tend does what is due.
func (k *Keeper) tend(ctx context.Context) {
	now := time.Now()
	work, err := k.look(ctx, now)
	if err == nil && work {
		err = k.locked(ctx, func(r *record) error { return k.work(ctx, r) })
	}
	if ctx.Err() == nil {
		if work || err != nil {
			k.report(err, now)
		}
		k.warn(now)
	}
}

// look serves what the storage has, and reports whether there is anything to do at the authority now.
func (k *Keeper) look(ctx context.Context, now time.Time) (work bool, err error) {
	if err := k.Load(ctx); err != nil {
		return false, err
	}
	k.ask(ctx, now)
	if !k.needsWork(k.seen, now) {
		k.report(nil, now) // what has failed here, another gateway has done
		return false, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !now.Before(k.retry), nil
}

// needsWork reports whether there is anything to do at the authority.
func (k *Keeper) needsWork(r *record, now time.Time) bool {
	if r.Retired {
		return len(r.Certificates) > 0
	}
	return len(k.due(r, now)) > 0
}

// ask asks whether the certificates are revoked.
func (k *Keeper) ask(ctx context.Context, now time.Time) {
	if k.Revoked == nil {
		return
	}
	for u, p := range *k.pairs.Load() {
		revoked, err := k.Revoked(ctx, p.chain)
		if err != nil || !revoked {
			continue // what is not known counts as good: renewal does not hang on it
		}
		if k.lost(p.serial(), now) {
			k.Log.Warn("a certificate of the agent was revoked, and another is ordered", "usage", nameOf(u),
				"serial", p.serial())
		}
	}
}

// lost notes that a certificate is revoked, and reports whether that is news. An authority that revokes whatever it
// issues is not asked for ever more.
func (k *Keeper) lost(serial string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.replaced = slices.DeleteFunc(k.replaced, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	if k.revoked[serial] || len(k.replaced) >= mostReplaced {
		return false
	}
	k.revoked[serial] = true
	k.replaced = append(k.replaced, now)
	return true
}

// Retire revokes the certificates, and orders no others. It may be called of any gateway that shares the storage. What
// fails is tried again by the Keeper.
func (k *Keeper) Retire(ctx context.Context) error {
	defer k.Wake()
	return k.locked(ctx, func(r *record) error {
		r.Retired = true
		if err := k.save(ctx, r); err != nil {
			return err
		}
		return k.revokeAll(ctx, r)
	})
}

// Renew has new certificates ordered at once, also of an agent that was retired.
func (k *Keeper) Renew(ctx context.Context) error {
	defer k.Wake()
	return k.locked(ctx, func(r *record) error {
		if !r.Retired {
			for _, u := range k.usages() {
				r.of(u).Replace = true
			}
		}
		r.Retired = false
		return k.save(ctx, r)
	})
}
