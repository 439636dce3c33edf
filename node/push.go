// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/upstream/callback"
)

// An agent pushes to an address that all gateways share, and so to another one than that which runs its turn. The
// gateway that is pushed to asks the others which of them runs it, and hands the push over if that one finds that it is
// from the agent.

// push is a request of an agent. Without a Body it is only asked whose it is, of all gateways.
type push struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// pushed is the answer.
type pushed struct {
	Has, Authorized bool
	Shard           int // one that the gateway owns which has the turn

	Status int
	Header http.Header
	Body   []byte
}

// pushHeader are the fields of a push that count.
var pushHeader = append([]string{"Content-Type", "Authorization"}, callback.TokenFields...)

// maxForwarded is how many pushes are handed to other gateways at once.
const maxForwarded = 32

// Pushes hands what agents push to the gateways that run their turns.
type Pushes struct {
	shards     *shard.Set
	service    *ask.Service[push, pushed]
	forwarding chan struct{} // has a place for each push that is handed to another gateway
}

// OpenPushes has the gateway answer others, by what receives its own pushes.
func OpenPushes(shards *shard.Set, c *callback.Server) *Pushes {
	p := &Pushes{shards: shards, forwarding: make(chan struct{}, maxForwarded)}
	p.service = ask.New(shards, "push", func(ctx context.Context, of int, q push) (a pushed, err error) {
		r, err := http.NewRequestWithContext(ctx, q.Method, q.URL, bytes.NewReader(q.Body))
		if err != nil {
			return a, err
		}
		r.Header = q.Header
		if a.Has, a.Authorized = c.Has(r.URL.Path, r.Header); of == shard.AnyShard {
			if owned := Owned(shards); len(owned) > 0 {
				a.Shard = owned[0]
			}
			return a, nil
		}
		w := answerWriter{header: make(http.Header), status: http.StatusOK}
		c.ServeHTTP(&w, r)
		a.Status, a.Header, a.Body = w.status, w.header, w.body.Bytes()
		return a, nil
	})
	p.service.Once = true
	return p
}

// answerWriter keeps an answer.
type answerWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *answerWriter) Header() http.Header               { return w.header }
func (w *answerWriter) WriteHeader(status int)            { w.status = status }
func (w *answerWriter) Write(p []byte) (n int, err error) { return w.body.Write(p) }

// Forward has the gateway answer that runs the turn of a push. It reports false if there is none.
func (p *Pushes) Forward(w http.ResponseWriter, r *http.Request) bool {
	select {
	case p.forwarding <- struct{}{}:
		defer func() { <-p.forwarding }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many pushes are being handed on; push again", http.StatusServiceUnavailable)
		return true
	}
	q := push{Method: r.Method, URL: r.URL.RequestURI(), Header: make(http.Header)}
	for _, name := range pushHeader {
		if v := r.Header.Get(name); v != "" {
			q.Header.Set(name, v)
		}
	}
	var found *pushed
	asking, done := context.WithTimeout(r.Context(), Patience)
	defer done()
	for answer, err := range p.service.All(asking, q) {
		if err == nil && answer.Value.Has {
			if found = &answer.Value; r.Method == http.MethodPost && found.Authorized {
				q.Body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, callback.MaxPush))
			}
			if err != nil {
				http.Error(w, "the body did not arrive, or is too large", http.StatusRequestEntityTooLarge)
				return true
			}
			break
		}
	}
	if found == nil {
		return false
	}
	const broken = "another gateway has answered what cannot be"
	if !HasShard(p.shards, found.Shard) {
		http.Error(w, broken, http.StatusBadGateway)
		return true
	}
	a, err := p.service.Of(r.Context(), found.Shard, q)
	switch {
	case err != nil:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the turn is being moved to another gateway; push again", http.StatusServiceUnavailable)
		return true
	case a.Status < http.StatusOK || a.Status > 599:
		http.Error(w, broken, http.StatusBadGateway)
		return true
	}
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
	return true
}
