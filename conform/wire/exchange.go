// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Request is one that a step sends.
type Request struct {
	Method  string
	URL     string
	Headers map[string]string
	Body    []byte
}

// Exchange is a request, and what came back. Its fields are set when Do returns; those of a stream grow until it ends,
// and are read through Stream.
type Exchange struct {
	Request  Request
	Identity string
	Began    time.Time
	// Took is the time until the answer's body was complete, or until its header was, for a stream.
	Took time.Duration

	PeerAIC string // of the certificate that the other side showed
	Proto   string // HTTP/1.1 or HTTP/2.0
	Status  int    // 0 without an answer
	Headers http.Header
	Body    []byte
	Stream  *Stream // of events; nil for another answer
	Err     error   // without an answer, or with half of one
}

// Do sends a request and reads its answer. If the answer is a stream of events, Do returns at its header, and the
// caller must end the Stream.
func (c *Client) Do(ctx context.Context, r Request, timeout time.Duration) *Exchange {
	e := &Exchange{Request: r, Identity: c.Identity.Name, Began: time.Now()}
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(timeout, func() { cancel(errTimeout{timeout}) })
	err := c.do(ctx, e, cancel, late)
	e.Took = time.Since(e.Began)
	if e.Stream == nil {
		late.Stop()
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		cancel(nil)
	}
	e.Err = err
	return e
}

// Abandon is Do, but returns after patience without the answer. The request stays open in one of behind, so that a slow
// Partner gets all of it, until its answer comes or ctx ends.
func (c *Client) Abandon(ctx context.Context, r Request, timeout, patience time.Duration,
	behind *sync.WaitGroup) *Exchange {
	answered, gone := make(chan *Exchange), make(chan struct{})
	defer close(gone)
	behind.Go(func() {
		e := c.Do(ctx, r, timeout)
		select {
		case answered <- e:
		case <-gone:
			if e.Stream != nil {
				e.Stream.Cut()
			}
		}
	})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	began := time.Now()
	select {
	case e := <-answered:
		return e
	case <-timer.C:
		return &Exchange{Request: r, Identity: c.Identity.Name, Began: began, Took: patience, Err: errTimeout{patience}}
	}
}

type errTimeout struct{ after time.Duration }

func (e errTimeout) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

// TimedOut reports whether the error is that an answer did not come in time.
func TimedOut(err error) bool {
	var late errTimeout
	return errors.As(err, &late)
}

func (c *Client) do(ctx context.Context, e *Exchange, cancel context.CancelCauseFunc, late *time.Timer) error {
	r, err := http.NewRequestWithContext(ctx, e.Request.Method, e.Request.URL, bytes.NewReader(e.Request.Body))
	if err != nil {
		return err
	}
	for name, value := range e.Request.Headers {
		if strings.EqualFold(name, "Host") {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	e.Proto, e.Status, e.Headers = answer.Proto, answer.StatusCode, answer.Header
	if answer.TLS != nil && len(answer.TLS.PeerCertificates) > 0 {
		e.PeerAIC = aicOf(answer.TLS.PeerCertificates[0])
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind == "text/event-stream" {
		late.Stop()
		e.Stream = newStream(answer.Body, cancel)
		return nil
	}
	defer answer.Body.Close()
	e.Body, err = io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	if err == nil && len(e.Body) > maxBody {
		e.Body, err = e.Body[:maxBody], fmt.Errorf("the answer has more than %d bytes", maxBody)
	}
	return err
}

// Sent describes the request in text.
func (e *Exchange) Sent() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Request.Method, e.Request.URL)
	if e.Identity != "" {
		fmt.Fprintf(&b, " as %s", e.Identity)
	}
	if len(e.Request.Body) > 0 {
		fmt.Fprintf(&b, "\n%s", excerpt(e.Request.Body))
	}
	return b.String()
}

// Got describes the answer in text.
func (e *Exchange) Got() string {
	var b strings.Builder
	if e.Status != 0 {
		fmt.Fprintf(&b, "%s %d %s", e.Proto, e.Status, http.StatusText(e.Status))
		if kind := e.Headers.Get("Content-Type"); kind != "" {
			fmt.Fprintf(&b, ", %s", kind)
		}
		if e.Stream == nil {
			fmt.Fprintf(&b, "\n%s", excerpt(e.Body))
		}
	}
	if e.Err != nil {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "no complete answer: %v", e.Err)
	}
	if e.Stream != nil {
		events, end := e.Stream.Events()
		first := max(0, len(events)-shownEvents)
		if first > 0 {
			fmt.Fprintf(&b, "\n(%d events before)", first)
		}
		for _, event := range events[first:] {
			fmt.Fprintf(&b, "\n%s", excerpt(event.Data))
		}
		switch {
		case end == nil, end == errCut:
			b.WriteString("\n(the stream was open)")
		case end != io.EOF:
			fmt.Fprintf(&b, "\n(the stream ended: %v)", end)
		default:
			b.WriteString("\n(the stream ended)")
		}
	}
	return b.String()
}

const shownEvents = 12

func excerpt(b []byte) string {
	if len(b) > Shown {
		return strings.ToValidUTF8(string(b[:Shown]), "") + fmt.Sprintf("… (%d bytes)", len(b))
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// Event is one of a stream.
type Event struct {
	Name string // of the field event
	ID   string
	Data []byte
	At   time.Time
}

// Stream is the events of an answer, while they come.
type Stream struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the reader has ended

	mu     sync.Mutex
	events []Event
	end    error         // io.EOF at the server's regular end; nil while the stream is open
	cut    bool          // by this side
	news   chan struct{} // closed and made new at every change
}

var errCut = errors.New("this side cut the connection")

func newStream(body io.ReadCloser, cancel context.CancelCauseFunc) *Stream {
	s := &Stream{cancel: cancel, done: make(chan struct{}), news: make(chan struct{})}
	go s.read(body)
	return s
}

func (s *Stream) read(body io.ReadCloser) {
	defer close(s.done)
	defer body.Close()
	err := ReadEvents(body, func(e Event) error {
		e.At = time.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
		s.announce()
		return nil
	})
	s.mu.Lock()
	if s.cut {
		err = errCut
	}
	s.end = err
	s.announce()
	s.mu.Unlock()
	s.cancel(nil)
}

// announce closes the channel of News. The caller has the lock.
func (s *Stream) announce() {
	close(s.news)
	s.news = make(chan struct{})
}

// Events returns the events so far, and how the stream ended: nil while it is open, io.EOF if the server ended it.
func (s *Stream) Events() ([]Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events, s.end
}

// News returns a channel that is closed at the next event, or at the end.
func (s *Stream) News() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// EndedByServer reports whether the server ended the stream.
func (s *Stream) EndedByServer() bool {
	_, end := s.Events()
	return end != nil && end != errCut
}

// Cut closes the connection of an HTTP/1.1 stream, or resets one of HTTP/2, and waits for the reader.
func (s *Stream) Cut() {
	s.mu.Lock()
	s.cut = s.end == nil
	s.mu.Unlock()
	s.cancel(errCut)
	<-s.done
}
