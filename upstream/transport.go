// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// A Transport carries the requests of one dialect to one agent. Its methods, and those of its routes, may be called by
// any number of goroutines at once. A transport with one connection for many tasks finds the Exchange of a message by
// the message's task, and is a Listener for the messages of no Exchange.
type Transport interface {
	// Routes returns the possible ways of an operation to the agent, at least one, the likeliest first.
	Routes(op translate.Operation) []Route

	// Close closes the idle connections. Open exchanges are ended by their contexts.
	Close()
}

// A Route is one way to send an operation to an agent, such as a URL.
type Route interface {
	// Open begins an exchange: it sends the request, or leaves this to Begin if it would have to wait. The request's body
	// must not be changed until the exchange is closed.
	//
	// Every error of a Route and of an Exchange is a *task.Error with a Reason if there is one. With Unreachable or
	// OutOfFiles, nothing of the request was sent.
	Open(ctx context.Context, r *Request) (Exchange, error)

	// Confirm notes that the agent takes the operation by this route: from now on it is the only one.
	Confirm()
}

// Request is one request to an agent.
type Request struct {
	Operation translate.Operation
	Ref       agent.Ref // the task of the request, in the agent's words
	Caller    agent.Caller
	Fields    []translate.Field // beside those of every request
	Body      []byte            // nil with Encode

	// Encode appends the body to dst, so it need not be kept while the agent works; nil if Body is the body. It may be
	// called again. Payload calls it for a Transport without a buffer for it.
	Encode func(dst []byte) []byte

	// IdleTimeout is the longest silence of the agent in a stream before the exchange fails with AgentTimeout. An answer
	// of one message must begin within this time, and end within as much time again, whatever the agent sends meanwhile.
	IdleTimeout time.Duration

	// Interrupt ends the wait for an answer without a stream; nil for never. Until it has ended a call, or the answer
	// turns out to be a stream, the exchange does not watch its context: a caller canceling the context must call End
	// afterwards.
	Interrupt *Interrupt
}

// An Introducer names to an agent the caller behind a request. It may be used by any number of goroutines at once.
type Introducer interface {
	// Introduce returns the header fields of a request with the caller's name. They take the place of all others of their
	// names, and are not to be changed. A request for no caller has none.
	Introduce(r *Request) []translate.Field
}

// Payload returns the body in memory of its own.
func (r *Request) Payload() []byte {
	if r.Encode != nil {
		return r.Encode(nil)
	}
	return r.Body
}

// An Exchange is one request and its answer, one message or a stream of them. The answer arrives while it is read. It
// is used by one goroutine at a time. It must be closed.
type Exchange interface {
	// Begin waits until the request is sent and the answer begins; the other methods but Close come after it. The error is
	// ErrInterrupted if the request's Interrupt ends first: then Begin is called again, without the Interrupt having any
	// effect.
	Begin() error

	// Streams reports whether the answer is a stream of messages, each an event of the dialect. Otherwise it is one
	// message.
	Streams() bool

	// Next returns the next message, waiting for it. After the only message of an answer without a stream it returns
	// io.EOF. The end of a stream, at any place, is an error with the reason StreamCut: only the codec knows whether the
	// turn has ended. The only message of an answer may be interrupted as Begin is.
	Next() (Message, error)

	// Ready reports whether Next returns a message without waiting. It may miss one.
	Ready() bool

	// SetIdleTimeout changes the timeout of the request; 0 is for none.
	SetIdleTimeout(d time.Duration)

	// Explain adds the transport's knowledge, such as a status, to an error of the codec. The codec did not understand a
	// message or read an error in it.
	Explain(err error) error

	// Close ends the exchange and releases its messages. err is the reason; nil means a complete answer: the transport may
	// wait a moment for the end of a stream, and use the connection again. It does not if err is translate.ErrOtherAnswer,
	// unless the connection itself pairs answers with requests.
	Close(err error)
}

// Message is one message of an agent.
type Message struct {
	Name string // the event's name, if the transport has one
	Data []byte // valid until the next call of Next or Close

	// Stored becomes Stored of the message's agent.Report.
	Stored func()
}

// begin opens the exchange of a query and waits for its answer to begin.
func begin(ctx context.Context, route Route, q *query) (asked, error) {
	x, err := route.Open(ctx, &q.Request)
	if err != nil {
		return asked{}, err
	}
	if err := x.Begin(); err != nil {
		x.Close(err)
		return asked{}, err
	}
	return asked{Exchange: x, codec: q.codec}, nil
}

// ErrAbandoned closes an exchange after its answer is not wanted any more.
var ErrAbandoned = errors.New("upstream: the answer is not wanted any more")

// A Listener receives an agent's messages about a turn, sent without a request.
type Listener interface {
	// Listen begins to receive. It returns nil if the agent sends nothing unasked, or has streams: they are better. The
	// caller must close the inbox.
	Listen(ctx context.Context, ref agent.Ref) *Inbox
}

// Inbox is the place of the unasked messages of one turn.
type Inbox struct {
	Webhook  *task.Webhook // the agent's address for them; nil if its connection is enough
	Messages <-chan []byte // the messages. An empty one is only a reason to ask the agent
	Close    func()
}
