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
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a Checker is made of.
type Config struct {
	// Lists are where revocation lists come from, complete ones and deltas: absolute paths of files, and URLs. A file is
	// read again when it has changed. A list proves itself by its signature, so http is as good as https.
	Lists []string
	// MaxSize is the largest list that is read, in bytes; default 16 MiB.
	MaxSize int64
	// Refresh is how often a URL is asked whether its list has changed; default 5 min. It is asked earlier when its list
	// ends, or after a failure.
	Refresh time.Duration
	// Dir is the folder in which lists of URLs are kept, for a start without a network; default: they are not.
	Dir string
	// Roots are trusted for https; default: the system's.
	Roots *x509.CertPool

	// Queries are sources that are asked about a certificate that no list covers, in their order. A good answer is asked
	// for again after Refresh, while the certificate is in use.
	Queries []Query

	// MaxAge is how old the last good answer of a source may be, although it is still valid by itself; default 0, no
	// limit. A file is as old as its list; what is fetched is as old as the last request that was answered well.
	MaxAge time.Duration
	// Grace is for how long an answer counts after its nextUpdate; default 0.
	Grace time.Duration
	// Degrade is for how long after the last good answer of a source a certificate is let in of which nothing newer is
	// known; default 0: it is refused. Each is counted, and logged.
	Degrade time.Duration

	Log *slog.Logger // default: slog.Default()
}

const (
	defaultMaxSize = 16 << 20
	// maxAuthorities is how many issuers are known at once. Only verified chains make one known.
	maxAuthorities = 256
)

// Checker decides about the certificates of callers. New makes it; it decides by nothing until Start, and by what it
// knows after Close. It may be used by any number of goroutines at once.
type Checker struct {
	config    Config
	log       *slog.Logger
	client    *http.Client
	locations []*location
	queriers  []*querier

	known      atomic.Pointer[[]*authority] // all that are known; neither the slice nor its elements are changed
	generation atomic.Uint64
	degraded   atomic.Uint64

	ctx    context.Context // of what runs
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards what follows, the state of the locations, and changes of known
	closed  bool
	changed chan struct{} // closed at the next change
	logged  time.Time     // when a certificate was last logged that Degrade has let in

	answering   sync.Mutex // guards what follows; mu may be taken while it is held
	asked       map[[sha256.Size]byte]*asked
	queryLogged map[*querier]time.Time // when a failure was last logged
}

// New returns a Checker. It checks the configuration, and neither reads nor fetches anything.
func New(config Config) (*Checker, error) {
	c := &Checker{config: config, log: config.Log, changed: make(chan struct{}),
		asked: make(map[[sha256.Size]byte]*asked), queryLogged: make(map[*querier]time.Time)}
	if c.log == nil {
		c.log = slog.Default()
	}
	if c.config.MaxSize == 0 {
		c.config.MaxSize = defaultMaxSize
	}
	switch {
	case len(config.Lists) == 0 && len(config.Queries) == 0:
		return nil, errors.New("revocation has no source")
	case config.MaxSize < 0, config.Refresh < 0:
		return nil, errors.New("the largest size of a list, and how often it is fetched, must not be negative")
	case config.MaxAge < 0, config.Grace < 0, config.Degrade < 0:
		return nil, errors.New("the times for which an answer counts must not be negative")
	}
	names := make(map[string]bool)
	for _, name := range config.Lists {
		if names[name] {
			return nil, fmt.Errorf("the list %s is there twice", name)
		}
		names[name] = true
		l, err := newLocation(name, config.Dir)
		if err != nil {
			return nil, err
		}
		c.locations = append(c.locations, l)
	}
	for _, q := range config.Queries {
		asks, err := c.newQuerier(q)
		if err != nil {
			return nil, err
		}
		c.queriers = append(c.queriers, asks)
	}
	if c.config.Refresh == 0 {
		c.config.Refresh = defaultRefresh
	}
	c.known.Store(&[]*authority{})
	c.client = c.newClient(config.Roots)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

func newLocation(name, dir string) (*location, error) {
	if !strings.Contains(name, "://") {
		if !filepath.IsAbs(name) {
			return nil, fmt.Errorf("the list %s is no absolute path", name)
		}
		return &location{name: name}, nil
	}
	u, err := url.Parse(name)
	switch {
	case err != nil:
		return nil, errors.New("the URL of a list cannot be read") // err may show a password
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("the list %s must be http or https", u.Redacted())
	case u.User != nil:
		return nil, fmt.Errorf("the list %s must have no user and password", u.Redacted())
	}
	l := &location{name: name, url: true}
	if dir != "" {
		l.cache = cacheName(dir, name)
	}
	return l, nil
}

// Start reads the lists that are on this host, and begins to follow all of them. A list that is not there is no error:
// it is logged, and looked for again.
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
}

// Close ends what runs, and waits for it.
func (c *Checker) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
}

// Known decides about a verified chain, from a caller's certificate to a root, by what is known alone. It does not
// block, and nothing is asked because of it. A certificate of which nothing is known, but about which Check can ask, is
// not refused. The error is a *Refusal.
func (c *Checker) Known(chain []*x509.Certificate) error { return c.decide(chain, letIn) }

// Kept decides as Known does, about the chain of a caller that has proven its key before. An answer that is due is
// asked for in the background, and counts the next time.
func (c *Checker) Kept(chain []*x509.Certificate) error {
	return c.decide(chain, func(v verdict, cert, issuer *x509.Certificate) verdict {
		if v.outcome == good {
			_ = c.ask(cert, issuer)
		}
		return letIn(v, cert, issuer)
	})
}

// letIn is what decides where nothing may be asked now.
func letIn(verdict, *x509.Certificate, *x509.Certificate) verdict { return verdict{outcome: good} }

// Check decides about a verified chain, from a caller's certificate to a root. It may ask the sources, and wait for
// their answer until ctx ends. The caller must have proven that it has the key of its certificate. The error is a
// *Refusal.
func (c *Checker) Check(ctx context.Context, chain []*x509.Certificate) error {
	return c.decide(chain, func(v verdict, cert, issuer *x509.Certificate) verdict {
		if v.outcome == good {
			_ = c.ask(cert, issuer) // it may be time to ask again, but the call need not wait
			return v
		}
		if said := c.answered(ctx, cert, issuer); said.outcome > v.outcome {
			return said
		}
		return v
	})
}

// decide decides about each certificate of a chain that has an issuer in it. ask decides about one that may be asked
// about now, given what is known.
func (c *Checker) decide(chain []*x509.Certificate, ask func(v verdict, cert, issuer *x509.Certificate) verdict) error {
	now := time.Now()
	for i := range len(chain) - 1 {
		cert, issuer := chain[i], chain[i+1]
		v := c.byLists(cert, c.learn(issuer), now)
		needed := i == 0 || i+2 < len(chain)
		switch {
		case !needed:
		case v.outcome < good:
			v = c.orByAnswers(v, cert, issuer, now, ask)
		case v.outcome == good:
			if said, _ := c.byAnswers(cert, now); said.outcome == revoked {
				v = said
			}
		}
		switch {
		case v.outcome == revoked:
			return refusal(Revoked, cert, v.source)
		case v.outcome == notKnown:
			return refusal(Unknown, cert, v.source)
		case v.outcome == good, !needed:
		case v.outcome == degraded:
			c.logDegraded(cert, v.source, now)
		case v.outcome == stale:
			return refusal(Stale, cert, v.source)
		default:
			return refusal(NoAnswer, cert, "")
		}
	}
	return nil
}

// orByAnswers decides by answers where no list does.
func (c *Checker) orByAnswers(v verdict, cert, issuer *x509.Certificate, now time.Time,
	ask func(v verdict, cert, issuer *x509.Certificate) verdict,
) verdict {
	said, may := c.byAnswers(cert, now)
	if said.outcome > v.outcome {
		v = said
	}
	if v.outcome == revoked || !may {
		return v
	}
	return ask(v, cert, issuer)
}

func refusal(reason Reason, cert *x509.Certificate, source string) *Refusal {
	return &Refusal{Reason: reason, Serial: fmt.Sprintf("%x", cert.SerialNumber), Issuer: cert.Issuer.String(),
		Source: source}
}

// logEvery is how often a certificate is logged that Config.Degrade has let in; all are counted.
const logEvery = time.Minute

func (c *Checker) logDegraded(cert *x509.Certificate, source string, now time.Time) {
	c.degraded.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.logged) < logEvery {
		return
	}
	c.logged = now
	c.log.Warn("a certificate is let in although it is not known whether it is revoked", "source", source,
		"serial", fmt.Sprintf("%x", cert.SerialNumber), "issuer", cert.Issuer.String(), "since_start", c.degraded.Load())
}

// Degraded returns how often Config.Degrade has let in a certificate.
func (c *Checker) Degraded() uint64 { return c.degraded.Load() }

// Generation returns a number that is another one when lists or answers have changed.
func (c *Checker) Generation() uint64 { return c.generation.Load() }

// Changed returns a channel that is closed when lists or answers change the next time. A list can become stale without
// a change.
func (c *Checker) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// change says that lists or answers have changed. c.mu is held.
func (c *Checker) change() {
	c.generation.Add(1)
	close(c.changed)
	c.changed = make(chan struct{})
}

// outcome is what sources say about a certificate. A greater one counts more.
type outcome uint8

const (
	unknown  outcome = iota // nothing
	stale                   // too old an answer
	degraded                // too old an answer, but Config.Degrade lets it count
	good                    // not revoked
	notKnown                // its issuer does not know it, and that refuses
	revoked
)

// verdict is what sources say about a certificate, and which of them does.
type verdict struct {
	outcome outcome
	source  string
}

// span is the times of a good answer.
type span struct {
	until time.Time // it ends by itself
	given time.Time // its source has last given it
	good  time.Time // it was last a good answer, as far as is known
}

// judge judges a good answer by its times.
func (c *Checker) judge(s span, now time.Time) outcome {
	switch {
	case c.config.MaxAge > 0 && now.Sub(s.given) > c.config.MaxAge:
		return stale
	case now.Before(s.until.Add(c.config.Grace)):
		return good
	case now.Before(s.good.Add(c.config.Degrade)):
		return degraded
	}
	return stale
}
