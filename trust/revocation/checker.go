// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Config is the configuration of a Checker.
type Config struct {
	// Sources are gone through in this order.
	Sources []Source
	// Agent returns the AIC of a certificate; empty for none. A Registry needs it.
	Agent func(*x509.Certificate) string
	// MaxSize is the size of the largest list read, in bytes; default DefaultMaxSize.
	MaxSize int64
	// Refresh is the interval at which a URL is asked whether its list has changed, and a source about a certificate in
	// use; default 5 min, and at most half of MaxAge. The next question comes earlier before a list or answer ends or is
	// MaxAge old, or after a failure. If an answer is older, a call waits until its source has answered again, or has not
	// answered in time.
	Refresh time.Duration
	// Dir is the folder to keep lists of URLs and answers of OCSP in, for a start without a network; default: they are not
	// kept.
	Dir string
	// Roots are trusted for https; default: the system's.
	Roots *x509.CertPool
	// Rate is the greatest number of requests to a source of OCSP or ACPS in any minute; default 50.
	Rate int
	// RefuseUnknown makes the answer "unknown" of such a source refuse a certificate. Default false: it is no answer.
	RefuseUnknown bool

	// MaxAge is the greatest age of the last good answer of a source, even one still valid by itself; default 0, no limit.
	// A source that was healthy and is older refuses, whatever the sources behind it would say. A file is as old as its
	// list, a staple as its thisUpdate; fetched data is as old as the last well answered request.
	MaxAge time.Duration
	// Grace is the time an answer counts after its nextUpdate; default 0.
	Grace time.Duration

	Log *slog.Logger // default: slog.Default()
}

const (
	// DefaultMaxSize is the default of Config.MaxSize.
	DefaultMaxSize = 64 << 20
	// defaultRate leaves a part of the 60 requests of a host in a minute taken by the CA of ACPs v2.1 to its other uses.
	defaultRate = 50
	// maxAuthorities is the number of issuers known at once. Only verified chains make one known.
	maxAuthorities = 256
)

// Checker decides about the certificates of callers. New makes it; it decides by nothing until Start, and by its last
// knowledge after Close. It may be used by any number of goroutines at once.
type Checker struct {
	config     Config
	log        *slog.Logger
	client     *http.Client
	locations  []*location
	queriers   []*querier
	registries []*follower
	responder  *querier // the first of OCSP; nil for none

	keptAnswers atomic.Int64 // files

	known      atomic.Pointer[[]*authority] // all known ones; neither the slice nor its elements are changed
	generation atomic.Uint64
	passed     passed

	ctx    context.Context // of all running work
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards the next fields, the state of the locations, and changes of known
	closed  bool
	changed chan struct{} // closed at the next change

	answering sync.Mutex // guards the fields below; mu may be taken while it is held
	asked     map[[sha256.Size]byte]*asked
}

// New returns a Checker. It checks the configuration, and neither reads nor fetches anything.
func New(config Config) (*Checker, error) {
	c := &Checker{config: config, log: config.Log, changed: make(chan struct{}),
		asked: make(map[[sha256.Size]byte]*asked)}
	if c.log == nil {
		c.log = slog.Default()
	}
	if c.config.MaxSize == 0 {
		c.config.MaxSize = DefaultMaxSize
	}
	if c.config.Rate == 0 {
		c.config.Rate = defaultRate
	}
	switch {
	case len(config.Sources) == 0:
		return nil, errors.New("it has no source")
	case config.MaxSize < 0, config.Refresh < 0:
		return nil, errors.New("the largest size of a list, and how often it is fetched, must not be negative")
	case config.MaxAge < 0, config.Grace < 0:
		return nil, errors.New("the times for which an answer counts must not be negative")
	case config.Rate < 0, config.Rate > 100_000:
		return nil, errors.New("the rate must be 1 to 100000 a minute")
	}
	c.client = c.newClient(config.Roots)
	names := make(map[string]bool)
	for i, source := range config.Sources {
		if err := source.check(config.Roots != nil); err != nil {
			return nil, err
		}
		if name := source.name(); names[name] {
			return nil, fmt.Errorf("the source %s is there twice", name)
		}
		names[source.name()] = true
		if source.Kind == Registry && (config.Agent == nil || source.Feed == nil) {
			return nil, errors.New("a registry needs its feed, and needs to know whose certificate it is")
		}
		c.add(source, i)
	}
	if c.config.Refresh == 0 {
		c.config.Refresh = defaultRefresh
	}
	if config.MaxAge > 0 {
		c.config.Refresh = min(c.config.Refresh, config.MaxAge/2)
	}
	c.known.Store(&[]*authority{})
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Start reads the lists on this host, and begins to follow all of them. A missing list is no error: it is logged, and
// looked for again.
func (c *Checker) Start() {
	for _, l := range c.locations {
		switch {
		case !l.url:
			c.readFile(l)
		case l.cache != "":
			c.recall(l)
		}
	}
	c.work.Go(c.followFiles)
	for _, l := range c.locations {
		if l.url {
			c.work.Go(func() { c.followURL(l) })
		}
	}
	for _, r := range c.registries {
		changed := r.feed.Changed()
		r.feed.Start()
		c.work.Go(func() { c.followRegistry(r, changed) })
	}
	c.forgetAnswers()
}

// Close ends all running work, and waits for it.
func (c *Checker) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.locations {
		dropAll(l.pending)
		dropAll(l.current)
	}
}

// Known decides about a verified chain, from a caller's certificate to a root, by present knowledge alone. It does not
// block, and causes no question. A certificate of which nothing is known, but about which Check can ask, is not
// refused. The error is a *Refusal.
func (c *Checker) Known(chain []*x509.Certificate) error { return c.passes(chain, letIn) }

// Kept decides as Known does, about the chain of a caller with its key proven before; but a certificate of which
// nothing is known is refused, with NoAnswer. A due answer is asked for in the background, and counts the next time.
func (c *Checker) Kept(chain []*x509.Certificate) error {
	_, err := c.decide(chain, time.Now(), func(f finding, cert, issuer *x509.Certificate) verdict {
		if !f.answered {
			return verdict{}
		}
		_ = c.ask(cert, issuer, f.limit)
		return f.verdict
	})
	return err
}

// letIn is the decider if nothing may be asked now.
func letIn(finding, *x509.Certificate, *x509.Certificate) verdict { return verdict{outcome: good} }

// Check decides about a verified chain, from a caller's certificate to a root. It may ask the sources, and wait for
// their answer until ctx ends. The caller must have proven the possession of its certificate's key. staple is the OCSP
// response about it brought by the caller; nil for none. The error is a *Refusal.
func (c *Checker) Check(ctx context.Context, chain []*x509.Certificate, staple []byte) error {
	if len(staple) > 0 && len(chain) > 1 {
		c.staple(chain[0], chain[1], staple)
	}
	return c.passes(chain, func(f finding, cert, issuer *x509.Certificate) verdict {
		flight := c.ask(cert, issuer, f.limit)
		if f.answered && f.fresh {
			return f.verdict // it was time to ask again, but the call need not wait
		}
		if flight != nil {
			select {
			case <-flight:
			case <-ctx.Done():
				if f.answered {
					return verdict{stale, f.source, f.place}
				}
			}
		}
		return c.find(cert, issuer, cert == chain[0], time.Now()).verdict
	})
}

// decider decides about a certificate that may be asked about now, given the finding.
type decider = func(f finding, cert, issuer *x509.Certificate) verdict

// passes is decide, but for a chain found good lately.
func (c *Checker) passes(chain []*x509.Certificate, ask decider) error {
	now, by := time.Now(), c.generation.Load()
	if c.passed.has(chain, by, now) {
		return nil
	}
	certain, err := c.decide(chain, now, ask)
	if certain {
		c.passed.add(chain, by, now)
	}
	return err
}

// decide decides about each certificate of a chain with its issuer in it. certain is true if all of them are good, and
// there was nothing to ask, or to count.
func (c *Checker) decide(chain []*x509.Certificate, now time.Time, ask decider) (certain bool, err error) {
	certain = true
	for i := range len(chain) - 1 {
		cert, issuer := chain[i], chain[i+1]
		if i > 0 && i+2 == len(chain) { // a root's issuer; it needs no answer
			if v := c.byLists(cert, c.learn(issuer), now); v.outcome == revoked {
				return false, refusal(Revoked, cert, v.source)
			}
			continue
		}
		f := c.find(cert, issuer, i == 0, now)
		v := f.verdict
		if f.ask {
			certain = false
			v = ask(f, cert, issuer)
		}
		switch v.outcome {
		case revoked:
			return false, refusal(Revoked, cert, v.source)
		case notKnown:
			return false, refusal(Unknown, cert, v.source)
		case good:
		case overdue, stale:
			return false, refusal(Stale, cert, v.source)
		case unasked:
			return false, refusal(RateUsedUp, cert, v.source)
		default:
			return false, refusal(NoAnswer, cert, "")
		}
	}
	return certain, nil
}

// finding is the knowledge about a certificate.
type finding struct {
	verdict
	limit    int  // the place of the first source not to be asked
	answered bool // the verdict is a good answer, maybe due again
	fresh    bool // there is an answer not older than Config.Refresh
	ask      bool // it may be asked about now, or the caller may bring an answer
}

// find goes through the sources in their order. A list covering a certificate decides, and nothing is asked; else the
// first source decides that has an answer, or refuses since it is overdue. own marks the caller's own certificate, for
// registries.
func (c *Checker) find(cert, issuer *x509.Certificate, own bool, now time.Time) (f finding) {
	f.limit = len(c.config.Sources)
	lists := c.byLists(cert, c.learn(issuer), now)
	answer, fresh, due := c.byAnswers(cert, issuer, now)
	all := []verdict{lists, answer, {}}
	if own {
		all[2] = c.byRegistries(cert, now)
	}
	for _, v := range all {
		if v.outcome == revoked {
			f.verdict = v
			return f
		}
	}
	if lists.outcome == good {
		f.verdict = lists
		return f
	}
	first := f.limit // the place of the deciding source
	for i, v := range all {
		switch decides := v.outcome > stale; {
		case decides && v.place < first:
			f.verdict, first = v, v.place
		case !decides && first == len(c.config.Sources) && v.outcome > f.outcome:
			f.verdict = v
		}
		if v.outcome > stale && i != 1 { // an answer may be asked for again, of any source
			f.limit = min(f.limit, v.place)
		}
	}
	f.answered, f.fresh = f.outcome == good && f.verdict == answer, fresh
	f.ask = due && len(c.queriers) > 0 && c.queriers[0].place < f.limit ||
		f.outcome < good && c.responder != nil && c.responder.place < f.limit || // the call may bring a staple
		f.outcome == unasked // the call may wait for its turn
	return f
}

func refusal(reason Reason, cert *x509.Certificate, source string) *Refusal {
	return &Refusal{Reason: reason, Serial: cert.SerialNumber.Text(16), Issuer: cert.Issuer.String(),
		Source: source}
}

// Generation returns a number that is another one after each change of lists or answers.
func (c *Checker) Generation() uint64 { return c.generation.Load() }

// Changed returns a channel that is closed at the next change of lists or answers. A list can become stale without a
// change.
func (c *Checker) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// change announces a change of lists or answers. c.mu is held.
func (c *Checker) change() {
	c.generation.Add(1)
	close(c.changed)
	c.changed = make(chan struct{})
}

// outcome is the statement of sources about a certificate. A greater one counts more.
type outcome uint8

const (
	unknown  outcome = iota // nothing
	stale                   // too old an answer
	unasked                 // its source could not be asked: refuses
	overdue                 // an answer of a source older than Config.MaxAge: refuses
	good                    // not revoked
	notKnown                // its issuer does not know it, and that refuses
	revoked
)

// verdict is the outcome for a certificate, and the source of it.
type verdict struct {
	outcome outcome
	source  string
	place   int // of the source
}

// span is the times of a good answer.
type span struct {
	until time.Time // it ends by itself
	given time.Time // its source has last given it
}

// judge judges a good answer by its times.
func (c *Checker) judge(s span, now time.Time) outcome {
	switch {
	case c.config.MaxAge > 0 && now.Sub(s.given) > c.config.MaxAge:
		return overdue
	case now.Before(s.until.Add(c.config.Grace)):
		return good
	}
	return stale
}
