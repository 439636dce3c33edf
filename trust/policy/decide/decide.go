// SPDX-License-Identifier: Apache-2.0

// Package decide asks an external decision point whether a call may be carried out, by the data API of Open Policy
// Agent. The question is the authorization request of AAC v02.02 §8.5: the caller, its action and its target, and the
// transport. A decision point is never given a message, nor any part of the caller's proof.
//
// Only an explicit yes allows a call (§5). An undefined result, an error, a redirect, and a late answer are a no, as
// is a yes with obligations: the gateway knows none (§6.6). An answer is used again only within its Cache-Control, for
// an input equal in all but the time.
package decide

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/gunzip"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// Config is the configuration of a Point.
type Config struct {
	URL     string        // of a document of the data API, such as http://127.0.0.1:8181/v1/data/aip/allow
	Timeout time.Duration // for a whole decision; see DefaultTimeout
	Dialer  egress.Dialer // opens the connections
	AIC     string        // of the Partner; empty for none
}

// DefaultTimeout is the time for a decision by default: every call waits for its own.
const DefaultTimeout = 2 * time.Second

// The limits of a Point.
const (
	maxOfLeader    = 32       // questions of one Leader at once; more wait for these, within their timeout
	maxAnswer      = 64 << 10 // bytes
	maxConnections = 128      // more calls wait for one, within their timeout
	maxCached      = 8192     // answers
	maxReason      = 256      // bytes, in a log line
)

// Point is an external decision point. It may be used by any number of goroutines at once.
type Point struct {
	url     string
	aic     string
	timeout time.Duration
	dialer  egress.Dialer
	client  *http.Client
	asking  limit.Budget // questions under way, as the greatest size of their answers, in bytes
	cached  *lru.Cache[[sha256.Size]byte, cached]
}

// cached is an answer for further use.
type cached struct {
	answer answer
	until  time.Time
}

// New returns the decision point of a configuration. It asks nothing yet.
func New(c Config) (*Point, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("the URL must begin with http:// or https://, and have a host")
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("the URL must have no credentials, and no fragment")
	}
	if _, err := c.Dialer.Policy.CheckURL(c.URL); err != nil {
		return nil, err
	}
	answers, err := lru.New[[sha256.Size]byte, cached](maxCached)
	if err != nil {
		return nil, err
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	return &Point{url: c.URL, aic: c.AIC, dialer: c.Dialer, timeout: c.Timeout, cached: answers,
		asking: limit.Budget{Counter: new(limit.Counter),
			Limits: limit.Limits{Total: maxConnections * maxAnswer, PerLeader: maxOfLeader * maxAnswer}},
		client: &http.Client{
			// A redirect would have another server answer the question.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: gunzip.Transport{Transport: &http.Transport{
				DialContext: c.Dialer.DialPlain, DialTLSContext: c.Dialer.DialTLS,
				MaxIdleConnsPerHost: maxConnections, MaxConnsPerHost: maxConnections, IdleConnTimeout: 90 * time.Second,
				MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
			}},
		}}, nil
}

// Close closes idle connections.
func (p *Point) Close() { p.client.CloseIdleConnections() }

// Reach connects to the decision point, and asks nothing. After a failure, it returns the reason.
func (p *Point) Reach(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, p.timeout)
	defer done()
	u, err := url.Parse(p.url)
	if err != nil {
		return err
	}
	dial, port := p.dialer.DialPlain, "80"
	if u.Scheme == "https" {
		dial, port = p.dialer.DialTLS, "443"
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)))
	if err != nil {
		return err
	}
	return conn.Close()
}

// Denied is the error for a denied call. It is for the log and not for the caller: the caller is not to learn the
// policy.
type Denied struct {
	Reason string // as the decision point states it, or the reason for no decision
	Down   bool   // there is no decision: the decision point did not make one
	Err    error  // the reason for no decision; nil otherwise
}

// Error implements error.
func (e *Denied) Error() string {
	s := "the decision point has denied the call"
	if e.Down {
		s = "the decision point has not decided"
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the reason for no decision.
func (e *Denied) Unwrap() error { return e.Err }

// Decide asks whether a call may be carried out. An error is a *Denied, or the error of ctx if the caller has left.
func (p *Point) Decide(ctx context.Context, c *policy.Call) error {
	leader := c.Leader
	if !c.Peer.Verified() { // such a name costs its caller nothing
		leader = limit.Unverified
	}
	return p.decide(ctx, leader, inputOf(c, p.aic))
}

// decide asks about an input, and sets its time. The question counts for the Leader.
func (p *Point) decide(ctx context.Context, leader string, in *input) error {
	in.Environment.Time = time.Time{}
	timeless, err := json.Marshal(in)
	if err != nil {
		return &Denied{Down: true, Err: err}
	}
	key := sha256.Sum256(timeless)
	now := time.Now()
	if c, ok := p.cached.Get(key); ok && now.Before(c.until) {
		return c.answer.err()
	}
	in.Environment.Time = now.UTC().Truncate(time.Second)
	body, err := json.Marshal(struct {
		Input *input `json:"input"`
	}{in})
	if err != nil {
		return &Denied{Down: true, Err: err}
	}
	a, fresh, err := p.ask(ctx, leader, body)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return &Denied{Down: true, Err: err}
	}
	if fresh > 0 {
		p.cached.Add(key, cached{a, now.Add(fresh)})
	}
	return a.err()
}

// errBusy is the error of a question not asked.
var errBusy = errors.New("its Leader waits for too many decisions at once")

// ask asks the decision point, once the Leader has less than its share of questions under way. It returns the time for
// which the answer may be used.
func (p *Point) ask(ctx context.Context, leader string, body []byte) (a answer, fresh time.Duration, err error) {
	ctx, done := context.WithTimeout(ctx, p.timeout)
	defer done()
	lease := p.asking.Lease(leader)
	if lease.Wait(ctx, maxAnswer) != nil {
		return a, 0, errBusy
	}
	defer lease.Release()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return a, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "aip-gateway")
	res, err := p.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL
		}
		return a, 0, err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return a, 0, err
	case res.StatusCode != http.StatusOK:
		return a, 0, fmt.Errorf("its answer has the status %d", res.StatusCode)
	case len(content) > maxAnswer:
		return a, 0, fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	}
	if a, err = read(content); err != nil {
		return a, 0, err
	}
	return a, freshness(res.Header), nil
}
