// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"container/list"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/aip-gateway/aip-gateway/notify/delivery"
	"github.com/aip-gateway/aip-gateway/task"
)

// Bounds of results. One Leader's webhooks take the room of its own ones first.
const (
	maxResultLeaders = 256
	maxResultURLs    = 32 // of one Leader
	maxResults       = 64 // of one URL: the last attempts

	maxBody       = 4 << 10  // bytes kept of a body
	maxExchanges  = 10       // of one URL
	maxBodiesKept = 16 << 20 // bytes of all exchanges
)

// Exchange is an attempt with the bodies of the request and of the answer, as an operator sees it. No header fields are
// kept: they have the secrets of webhooks.
type Exchange struct {
	Attempt
	Delivered bool

	ID                             string // the webhook-id
	Partner, Leader, Task, Webhook string
	Endpoint, Path                 string // as in a Delivery
	Event                          uint64
	State                          task.State
	Request, Answer                Body
}

// Body is the beginning of a body. It may hold anything.
type Body struct {
	Text  string // valid UTF-8, at most 4 KiB
	Bytes int    // the size of the whole body; of an answer, as far as it was read
}

// Rate is the success of the last attempts at a URL, 64 at most.
type Rate struct {
	Attempts, Delivered int
	Since               time.Time // when the first of them began
	Median, P95         time.Duration
}

// results remembers in memory the ends of recent attempts: of each URL the last ones, and their bodies if a
// configuration says so.
type results struct {
	mu      sync.Mutex
	leaders *simplelru.LRU[string, *simplelru.LRU[urlName, *urlResults]]

	keep      bool       // bodies
	exchanges *list.List // of *kept, oldest first
	size      int        // bytes of their bodies
}

// urlName is a URL as an operator sees it.
type urlName struct{ endpoint, path string }

// urlResults are those of one URL of a Leader.
type urlResults struct {
	last      []result        // a ring of maxResults
	next      int             // the place of the next one in the ring
	exchanges []*list.Element // oldest first
}

type result struct {
	at        time.Time
	took      time.Duration
	delivered bool
}

// kept is an Exchange, and the results of its URL.
type kept struct {
	Exchange
	of *urlResults
}

func newResults() *results {
	r := &results{exchanges: list.New()}
	r.leaders, _ = simplelru.NewLRU(maxResultLeaders, // fails for a size below 1 only, as below
		func(_ string, urls *simplelru.LRU[urlName, *urlResults]) { urls.Purge() })
	return r
}

// configure says whether bodies are kept from now on. Otherwise those before are dropped.
func (r *results) configure(keep bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keep = keep; !keep {
		for r.exchanges.Len() > 0 {
			r.dropOldest(r.exchanges.Front().Value.(*kept).of)
		}
	}
}

// of returns the results of a URL.
func (r *results) of(leader string, url urlName) *urlResults {
	urls, ok := r.leaders.Get(leader)
	if !ok {
		urls, _ = simplelru.NewLRU(maxResultURLs, func(_ urlName, of *urlResults) {
			for len(of.exchanges) > 0 {
				r.dropOldest(of)
			}
		})
		r.leaders.Add(leader, urls)
	}
	of, ok := urls.Get(url)
	if !ok {
		of = new(urlResults)
		urls.Add(url, of)
	}
	return of
}

// dropOldest drops the oldest exchange of a URL.
func (r *results) dropOldest(of *urlResults) {
	e := r.exchanges.Remove(of.exchanges[0]).(*kept)
	r.size -= len(e.Request.Text) + len(e.Answer.Text)
	of.exchanges = of.exchanges[1:]
}

// add accounts for an ended attempt.
func (r *results) add(n *notification, o *delivery.Outcome) {
	if o.Result == delivery.Canceled || o.Result == delivery.Internal {
		return // nothing is known of the receiver
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of(n.leader, urlName{n.job.Endpoint, n.path})
	one := result{n.Began, n.duration, o.Result == delivery.Delivered}
	if len(of.last) < maxResults {
		of.last = append(of.last, one)
	} else {
		of.last[of.next] = one
		of.next = (of.next + 1) % maxResults
	}
	if !r.keep {
		return
	}
	e := &kept{of: of, Exchange: Exchange{
		Attempt:   Attempt{At: n.Began, Duration: n.duration, Status: o.Status, Error: o.Error},
		Delivered: one.delivered, ID: n.ID,
		Partner: n.Partner, Leader: n.leader, Task: n.task, Webhook: n.webhook.ID,
		Endpoint: n.job.Endpoint, Path: n.path, Event: n.event, State: n.state,
		Request: bodyOf(o.Request, o.RequestBytes, nil), Answer: bodyOf(o.Answer, o.AnswerBytes, &n.webhook),
	}}
	if o.Status != 0 {
		e.Error = "" // says no more than the status
	}
	of.exchanges = append(of.exchanges, r.exchanges.PushBack(e))
	r.size += len(e.Request.Text) + len(e.Answer.Text)
	if len(of.exchanges) > maxExchanges {
		r.dropOldest(of)
	}
	for r.size > maxBodiesKept {
		r.dropOldest(r.exchanges.Front().Value.(*kept).of)
	}
}

// bodyOf returns the beginning of a body as it is kept. A receiver may send the request back: the secrets of its
// webhook are left out.
func bodyOf(data []byte, size int, w *task.Webhook) Body {
	text := string(data)
	if w != nil {
		for _, secret := range []string{w.Credentials, w.Token, secretPart(w.URL)} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "…")
			}
		}
	}
	if len(text) > maxBody {
		text = text[:maxBody]
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	for len(text) > maxBody { // the mark for bytes other than text is longer
		text = strings.ToValidUTF8(text[:maxBody], "")
	}
	return Body{Text: strings.Clone(text), Bytes: size}
}

// Exchanges returns the last attempts with their bodies kept and selected by a filter, newest first, and whether the
// configuration has bodies kept. Its Status, After and Limit do not matter.
func (e Engines) Exchanges(f Filter, limit int) (list []Exchange, kept bool) {
	if len(e) == 0 {
		return nil, false
	}
	return e[0].process.results.selected(f, limit)
}

// selected is Engines.Exchanges.
func (r *results) selected(f Filter, limit int) (out []Exchange, keep bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := r.exchanges.Back(); at != nil && len(out) < limit; at = at.Prev() {
		e := &at.Value.(*kept).Exchange
		of := Delivery{ID: e.ID, Webhook: e.Webhook, Endpoint: e.Endpoint, Path: e.Path, Status: f.Status, At: e.At}
		if f.ofTask(e.Partner, e.Leader, e.Task) && f.wants(&of) {
			out = append(out, *e)
		}
	}
	return out, r.keep
}

// rates returns the success of the last attempts at each URL, those of all Leaders together.
func (r *results) rates() map[urlName]Rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[urlName][]result)
	for _, urls := range r.leaders.Values() {
		for _, url := range urls.Keys() {
			of, _ := urls.Peek(url)
			all[url] = append(all[url], of.last...)
		}
	}
	out := make(map[urlName]Rate, len(all))
	for url, last := range all {
		out[url] = rateOf(last)
	}
	return out
}

// rateOf returns the rate of some attempts, at least one.
func rateOf(last []result) (r Rate) {
	r.Attempts, r.Since = len(last), last[0].at
	for _, one := range last {
		if one.delivered {
			r.Delivered++
		}
		if one.at.Before(r.Since) {
			r.Since = one.at
		}
	}
	slices.SortFunc(last, func(a, b result) int { return int(a.took - b.took) })
	r.Median, r.P95 = last[(len(last)-1)/2].took, last[(len(last)-1)*95/100].took
	return r
}
