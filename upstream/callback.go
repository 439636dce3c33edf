// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Limits of what an agent may push.
const (
	maxPush      = 16 << 20 // bytes of one body
	maxPushes    = 64       // bodies that wait for their run; then the agent is asked to come again
	maxSeen      = 1024     // bodies that are known again; beyond it, an old one that comes again may pass for news
	maxChallenge = 1 << 10  // bytes of a validationToken
)

// Callbacks takes what agents tell of their tasks unasked. Every run that waits for that has an address and a token
// of its own, which are worth nothing once it is over. The zero Callbacks is ready for use; it may be used by any
// number of goroutines at once.
type Callbacks struct {
	mu   sync.Mutex
	open map[string]*callback
}

// callback is one run that may be pushed to.
type callback struct {
	id, token string
	bodies    chan []byte // an empty one is only a reason to ask

	mu   sync.Mutex
	seen map[[sha256.Size]byte]bool // the bodies that were queued
}

// begin makes an address for a run, which the caller gives up by end.
func (c *Callbacks) begin() *callback {
	cb := &callback{
		id: strings.ToLower(rand.Text()), token: rand.Text(), bodies: make(chan []byte, maxPushes), seen: make(map[[sha256.Size]byte]bool),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[string]*callback)
	}
	c.open[cb.id] = cb
	return cb
}

func (c *Callbacks) end(cb *callback) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, cb.id)
}

func (c *Callbacks) find(id string) *callback {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id]
}

// ServeHTTP takes one push. The last part of its path names the run.
func (c *Callbacks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cb := c.find(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	switch {
	case cb == nil:
		http.Error(w, "no run waits for this", http.StatusNotFound)
	case r.Method == http.MethodGet:
		// Some agents ask whether an address wants to hear from them before they use it.
		challenge := r.URL.Query().Get("validationToken")
		if challenge == "" || len(challenge) > maxChallenge {
			http.Error(w, "a validationToken is missing", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, challenge)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "push by POST", http.StatusMethodNotAllowed)
	case !cb.knows(r.Header):
		http.Error(w, "the token is wrong or missing", http.StatusUnauthorized)
	default:
		cb.take(w, r)
	}
}

// knows reports whether a push carries the run's token, in any of the fields that agents use for it.
func (cb *callback) knows(h http.Header) bool {
	for _, given := range []string{
		h.Get("X-A2A-Notification-Token"), h.Get("A2A-Notification-Token"), h.Get("X-ACPS-AIP-Notification-Token"),
		strings.TrimPrefix(h.Get("Authorization"), "Bearer "),
	} {
		if subtle.ConstantTimeCompare([]byte(given), []byte(cb.token)) == 1 {
			return true
		}
	}
	return false
}

func (cb *callback) take(w http.ResponseWriter, r *http.Request) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !strings.HasSuffix(t, "json") {
		http.Error(w, "push JSON", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPush))
	if err != nil {
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the body did not arrive, or is too large", status)
		return
	}
	if !cb.queue(body) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the run is behind; push again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// queue hands a body to the run, if there is room. One that comes again tells of what was, which may be over: the run
// is to ask.
func (cb *callback) queue(body []byte) bool {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	sum := sha256.Sum256(body)
	if cb.seen[sum] {
		body = []byte{}
	}
	select {
	case cb.bodies <- body:
	default:
		return false
	}
	if len(cb.seen) >= maxSeen {
		clear(cb.seen)
	}
	cb.seen[sum] = true
	return true
}

// pushed carries a turn out by a request that is answered once, and takes what the agent pushes in the meantime as
// news of it. Whatever is pushed twice, or late, changes nothing. The agent is asked as well, so that a push that is
// lost costs no more than time.
func (h *HTTP) pushed(ctx context.Context, t *agent.Turn, yield yield) {
	if !h.acquire(ctx, yield) {
		return
	}
	release := sync.OnceFunc(h.config.Slots.turns.release)
	defer release()
	cb := h.config.Callbacks.begin()
	defer h.config.Callbacks.end(cb)
	told := *t
	told.Webhook = &task.Webhook{URL: strings.TrimSuffix(h.config.CallbackURL, "/") + "/" + cb.id, Token: cb.token}
	if r, ok := h.config.Codec.(translate.Registrar); ok {
		e := errand{what: translate.Register, ref: t.Ref, body: r.AppendRegister(nil, t.Ref, told.Webhook)}
		if err := h.tell(ctx, e); err != nil {
			h.log.LogAttrs(ctx, slog.LevelDebug, "the agent takes no webhook; going on by asking", slog.String("task", t.Ref.Task), slog.Any("error", err))
		}
	}
	type reply struct {
		rep   agent.Report
		err   error
		panic any
	}
	sending, stop := context.WithCancel(ctx)
	replies := make(chan reply, 1)
	var sender sync.WaitGroup
	defer sender.Wait()
	defer stop()
	sender.Go(func() {
		var got reply
		defer func() {
			if p := recover(); p != nil { // it is the run's, which answers for it
				got.panic = &senderPanic{p, debug.Stack()}
			}
			replies <- got
		}()
		defer release()
		got.rep, got.err = h.call(sending, &told, h.turn(&told, false))
	})
	var stamp string
	take := func(body []byte) (over bool) {
		rep, ok := h.push(ctx, t, body, stamp)
		if !ok {
			return false
		}
		stamp = rep.Revision
		return !yield(rep, nil) || rep.EndsTurn()
	}
	for {
		select {
		case body := <-cb.bodies:
			if take(body) {
				return
			}
		case got := <-replies:
			if got.panic != nil {
				panic(got.panic)
			}
			for len(cb.bodies) > 0 { // what was pushed before the answer comes before it
				if take(<-cb.bodies) {
					return
				}
			}
			if got.err != nil {
				h.failed(ctx, t, got.err, task.State.Terminal, yield)
				return
			}
			h.goesOn(ctx, t, got.rep, cb.bodies, yield)
			return
		}
	}
}

// senderPanic is a panic of the goroutine that sends a turn, for the one that carries the turn out.
type senderPanic struct {
	value any
	stack []byte
}

// Error implements runtime.Error.
func (p *senderPanic) Error() string { return fmt.Sprintf("%T while sending\n%s", p.value, p.stack) }

// RuntimeError implements runtime.Error.
func (p *senderPanic) RuntimeError() {}

// push reads what an agent has pushed. ok is false where it says nothing new of the whole task: a piece of it could
// not be told from one that was had already, so that it is only a reason to ask.
func (h *HTTP) push(ctx context.Context, t *agent.Turn, body []byte, stamp string) (rep agent.Report, ok bool) {
	if len(body) == 0 {
		return rep, false
	}
	rep, err := h.config.Codec.Push(body, t.Known)
	if err != nil {
		h.log.LogAttrs(ctx, slog.LevelDebug, "a push of the agent makes no sense", slog.String("task", t.Ref.Task), slog.Any("error", err))
		return rep, false
	}
	return rep, rep.State != task.None && rep.Full && (stamp == "" || rep.Revision != stamp) && !untouched(t, &rep)
}

// tell sends a request whose answer means nothing but that it was taken, in the slot of its turn.
func (h *HTTP) tell(ctx context.Context, e errand) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	x, err := h.open(ctx, e, h.rpc.url(), h.unary)
	if err != nil {
		return err
	}
	_, err = x.reply(nil)
	x.close(err)
	if task.KindOf(err) == task.InvalidAgentResponse && x.res.StatusCode == http.StatusOK {
		err = nil // it is no Task, nor meant to be
	}
	return err
}

// Complete passes a Leader's word on to an agent that awaits it, and does nothing for all others.
func (h *HTTP) Complete(ctx context.Context, t *agent.Turn) error {
	c, ok := h.config.Codec.(translate.Completer)
	if !ok {
		return nil
	}
	_, err := h.call(ctx, t, errand{what: translate.Complete, ref: t.Ref, body: c.AppendComplete(nil, t.Ref)})
	return err
}
