// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Object is one of JSON.
type Object = map[string]any

// Partner is the Partner. Its exported fields may be changed before the first call. The owner must close it.
type Partner struct {
	AIC string
	Hooks
	Rules Rules
	// Codes are those of errors by name.
	Codes map[string]int
	// Accepts are names of checks that are left out.
	Accepts map[string]bool
	// ClientAuth says which certificates a server of the Partner wants.
	ClientAuth tls.ClientAuthType
	// Card is what its address for the ACS answers; nil: nothing is there.
	Card Object
	// Now is the clock.
	Now func() time.Time

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	tasks   map[string]*Task
	configs []*Config
	serial  int
}

// Hooks see what the Partner does, and may change it. One that is nil does nothing. Those with a Task are called with
// the Partner's lock.
type Hooks struct {
	// HTTP may answer a request in place of the Partner: then it returns true.
	HTTP func(http.ResponseWriter, *http.Request) bool
	// Handle stands around the execution of a valid call.
	Handle func(c *Call, next func() (any, *Error)) (any, *Error)
	// Envelope sees the answer of a call.
	Envelope func(c *Call, envelope Object)
	// Result sees a Task as it goes out: in answers, events and webhooks.
	Result func(t *Task, object Object)
	// Body sees the bytes of an answer.
	Body func(c *Call, body []byte) []byte
	// Change sees a change of state, and returns the next state; "" for none.
	Change func(t *Task, from, to string, status Object) string
	// Event sees an event before it is in the log, and returns what gets there.
	Event func(t *Task, e *Event) []*Event
	// Frame sees an event as it goes to a stream; nil ends the stream.
	Frame func(c *Call, e *Event, frame []byte) []byte
	// Replay sees the events with which a stream begins.
	Replay func(c *Call, events []*Event) []*Event
	// End reports whether a stream ends behind the event; last is whether it should.
	End func(c *Call, e *Event, last bool) bool
	// Webhook sees a request of a webhook before each attempt, and reports whether it is sent.
	Webhook func(w *Webhook) bool
	// Again reports whether a webhook is sent again after a status; retry is whether it should.
	Again func(w *Webhook, status int, retry bool) bool
	// Pieces sees the steps of some work.
	Pieces func(t *Task, steps []Step) []Step
}

// Rules say what a command does to a task in a state: the next state. No entry: the command is ignored.
type Rules map[string]map[string]string

// New returns a Partner.
func New(aic string) *Partner {
	ctx, cancel := context.WithCancel(context.Background())
	return &Partner{AIC: aic, ctx: ctx, cancel: cancel, ClientAuth: tls.RequireAndVerifyClientCert,
		Now: time.Now, tasks: make(map[string]*Task),
		Accepts: make(map[string]bool), Card: card(aic), Codes: codes(), Rules: rules()}
}

func rules() Rules {
	return Rules{
		"continue": {"awaiting-input": "working", "awaiting-completion": "working"},
		"complete": {"awaiting-completion": "completed"},
		"cancel": {"accepted": "canceled", "working": "canceled", "awaiting-input": "canceled",
			"awaiting-completion": "canceled"},
	}
}

// Close ends all work, and waits for it. Requests may still come; their work does not begin.
func (p *Partner) Close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.work.Wait()
}

// begins runs do beside its caller, unless the Partner is closed. The caller has the lock.
func (p *Partner) begins(do func()) {
	if p.ctx.Err() == nil {
		p.work.Go(do)
	}
}

// Locked calls do with the Partner's lock.
func (p *Partner) Locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// Call is a request.
type Call struct {
	HTTP   *http.Request
	Body   []byte
	Caller string // the AIC of the certificate; empty without one
	// Nameless is set for a certificate without an AIC.
	Nameless bool
	ID       any
	Method   string
	Params   Object
	Message  Object // of a command
	Command  string
	Version  *Version
	Task     *Task // that it is about
	Status   int   // of HTTP
	Header   http.Header
	Object   any // the whole request
}

// Text returns a member of the message.
func (c *Call) Text(name string) string {
	s, _ := c.Message[name].(string)
	return s
}

var aicForm = regexp.MustCompile(`^[0-9A-Z]{32}$`)

// ServeHTTP implements http.Handler.
func (p *Partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.HTTP != nil && p.HTTP(w, r) {
		return
	}
	if r.Method == http.MethodGet {
		if strings.HasSuffix(r.URL.Path, "acs.json") && p.Card != nil {
			p.mu.Lock()
			body, err := json.Marshal(p.Card)
			p.mu.Unlock()
			if err == nil {
				w.Header().Set("Content-Type", "application/json")
				w.Write(body)
			}
			return
		}
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "this Partner accepts POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		http.Error(w, "the request is incomplete", http.StatusBadRequest)
		return
	}
	c := &Call{HTTP: r, Body: body, Status: http.StatusOK, Header: w.Header(), Version: &v1}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		if c.Caller = r.TLS.PeerCertificates[0].Subject.CommonName; !aicForm.MatchString(c.Caller) {
			c.Caller, c.Nameless = "", true
		}
	}
	result, failure := p.call(c)
	if s, is := result.(*stream); is && failure == nil {
		p.serve(w, c, s)
		return
	}
	p.answer(w, c, result, failure)
}

// call parses, checks and executes.
func (p *Partner) call(c *Call) (any, *Error) {
	if failure := p.parse(c); failure != nil {
		return nil, failure
	}
	next := func() (any, *Error) { return p.execute(c) }
	if p.Handle != nil {
		return p.Handle(c, next)
	}
	return next()
}

func (p *Partner) execute(c *Call) (any, *Error) {
	if failure := p.check(c); failure != nil {
		return nil, failure
	}
	switch c.Method {
	case "rpc":
		return p.command(c)
	case "stream":
		return p.stream(c)
	case "notification/start":
		return p.notified(c)
	case "notification/set":
		return p.set(c)
	case "notification/get":
		return p.get(c)
	case "notification/delete":
		return p.remove(c)
	case "group":
		return nil, p.failure("GroupNotSupportedError", nil)
	}
	return nil, p.failure("MethodNotFound", Object{"method": c.Method})
}

// answer writes an answer of JSON-RPC.
func (p *Partner) answer(w http.ResponseWriter, c *Call, result any, failure *Error) {
	envelope := p.envelope(c, result, failure)
	body, err := json.Marshal(envelope)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if p.Body != nil {
		body = p.Body(c, body)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(c.Status)
	w.Write(body)
}

func (p *Partner) envelope(c *Call, result any, failure *Error) Object {
	envelope := Object{"jsonrpc": "2.0", "id": c.ID}
	if failure != nil {
		object := Object{"code": failure.Code, "message": failure.Message}
		if failure.Data != nil {
			object["data"] = failure.Data
		}
		envelope["error"] = object
	} else {
		envelope["result"] = result
	}
	if p.Envelope != nil {
		p.Envelope(c, envelope)
	}
	return envelope
}
