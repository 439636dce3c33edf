// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/egress"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/task"
)

// The limits of what is read of an answer, in bytes. Of its body nothing is kept; it is read so that the
// connection can be used again.
const (
	maxAnswer       = 64 << 10
	maxAnswerHeader = 16 << 10
)

// maxRetryAfter is the longest that a receiver may ask to be left alone.
const maxRetryAfter = 24 * time.Hour

// parcel is one attempt, ready to be sent.
type parcel struct {
	setup  *setup
	target target
	rev    uint64 // of the webhook
	id     string // the webhook-id
	since  time.Time
	began  time.Time
	hook   task.Webhook
	wire   Wire   // its dialect
	record []byte // of the outbox

	header http.Header // these two are made by encode
	body   []byte
}

// outcome is what came of an attempt.
type outcome struct {
	status     int    // of HTTP; 0 where there was no answer
	err        string // what went wrong, as a sentence without secrets; empty for success
	gone       bool   // the receiver wants nothing more
	sick       bool   // it is the endpoint that does not work, and not only this delivery
	hopeless   bool   // no attempt will ever succeed
	internal   bool   // the gateway failed, and knows nothing new of the endpoint
	canceled   bool   // the engine is closing: this was no attempt
	retryAfter time.Duration
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// transport returns the one of a configuration. It reaches only what the guard permits, at every dial, knows
// no proxy and speaks HTTP/1.1. Redirects are not its business, nor anybody's here.
func (e *Engine) transport(c *Config) *http.Transport {
	d := &egress.Dialer{Policy: *c.Egress, Resolver: c.Resolver, TLS: c.TLS, Timeout: c.Timeout}
	return &http.Transport{
		DialContext:            e.owned(d.DialPlain),
		DialTLSContext:         e.owned(d.DialTLS),
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswerHeader,
		MaxIdleConns:           4 * c.Concurrency,
		MaxIdleConnsPerHost:    flyingProven,
		IdleConnTimeout:        30 * time.Second,
	}
}

// owned ties a dial to the engine: a Transport dials on its own, and goes on when nobody waits any more.
func (e *Engine) owned(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		defer func() { // in a goroutine of the Transport's, where a panic would end the process
			if v := recover(); v != nil {
				err = panicked(e.logger(), v)
			}
		}()
		e.sched.mu.Lock()
		running := e.sched.running
		if running {
			e.work.Add(1)
		}
		e.sched.mu.Unlock()
		if !running {
			return nil, context.Canceled
		}
		defer e.work.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(e.base, cancel)()
		return dial(ctx, network, address)
	}
}

// attempt makes an attempt of a delivery. A panic fails this attempt and nothing else.
func (e *Engine) attempt(p *parcel, log *slog.Logger) (o outcome) {
	defer func() {
		if v := recover(); v != nil {
			o = e.failure(context.Background(), p, panicked(log.With("webhook", p.hook.ID, "webhook-id", p.id), v))
		}
	}()
	if err := p.encode(); err != nil {
		log.Error("a notification is damaged", "webhook", p.hook.ID, "webhook-id", p.id, "error", err)
		return outcome{err: "the stored notification is damaged", hopeless: true}
	}
	return e.send(p)
}

// errPanic is the error of an attempt that panicked.
var errPanic = errors.New("notify: panic")

// panicked logs a panic, and returns the error that stands for it. The value of the panic may hold a payload, so it is
// logged only where it is Go's own.
func panicked(log *slog.Logger, v any) error {
	why := fmt.Sprintf("%T", v)
	if e, ok := v.(runtime.Error); ok {
		why = e.Error()
	}
	log.Error("the gateway failed while it delivered a notification; this is a bug of the gateway",
		"panic", why, "stack", string(debug.Stack()))
	return errPanic
}

// encode makes the header and the body from the record.
func (p *parcel) encode() error {
	h, t, err := decodeRecord(p.record)
	if err != nil {
		return err
	}
	p.body = p.wire.AppendNotification(nil, &t)
	p.header = make(http.Header, 8)
	for _, f := range p.wire.NotificationHeader(&p.hook) {
		if f.Value != "" {
			p.header.Set(f.Name, f.Value)
		}
	}
	p.fill(h.Trace)
	return nil
}

// send sends the request and reads the answer.
func (e *Engine) send(p *parcel) outcome {
	ctx, cancel := context.WithTimeout(e.base, p.setup.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.hook.URL, bytes.NewReader(p.body))
	if err != nil {
		return outcome{err: "the URL cannot be used", hopeless: true}
	}
	req.Header = p.header
	resp, err := p.setup.trip.RoundTrip(req) // no http.Client: it would follow redirects
	if err != nil {
		return e.failure(ctx, p, err)
	}
	_, err = io.CopyN(io.Discard, resp.Body, maxAnswer)
	_ = resp.Body.Close()
	o := outcome{status: resp.StatusCode}
	switch {
	case o.status >= 200 && o.status < 300:
		// The receiver has said that it has it; what becomes of the rest of its answer does not matter.
		return o
	case err != nil && e.base.Err() != nil:
		return outcome{canceled: true}
	}
	o.err = "the receiver answered with status " + strconv.Itoa(o.status)
	o.gone = o.status == http.StatusGone
	o.sick = o.status >= 500 || o.status == http.StatusTooManyRequests
	if o.status == http.StatusTooManyRequests || o.status == http.StatusServiceUnavailable {
		o.retryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	return o
}

// failure puts into words why there was no answer. The words of the error itself may hold addresses, or what
// the other end sent.
func (e *Engine) failure(ctx context.Context, p *parcel, err error) outcome {
	o := outcome{sick: true}
	var refused *egress.RefusedError
	var unresolved *net.DNSError
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case e.base.Err() != nil:
		return outcome{canceled: true}
	case errors.Is(err, errPanic):
		return outcome{err: "the gateway failed while it delivered the notification", internal: true}
	case errors.As(err, &refused):
		o.err = refused.Reason
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		o.err = "the receiver did not answer within " + p.setup.Timeout.String()
	case errors.As(err, &unresolved):
		o.err = "the host cannot be resolved"
	case errors.As(err, &certificate):
		o.err = "the certificate of the receiver is not valid"
	case errors.Is(err, syscall.ECONNREFUSED):
		o.err = "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		o.err = "the connection was closed without an answer"
	default:
		o.err = "the receiver could not be reached, or its answer was not HTTP"
	}
	return o
}

// retryAfter reads a Retry-After field: seconds, or a date. What is not one of them is nothing.
func retryAfter(field string, now time.Time) time.Duration {
	var d time.Duration
	if n, err := strconv.ParseUint(field, 10, 63); err == nil {
		d = time.Duration(min(n, uint64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(field); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// fill sets the header fields that do not depend on the dialect, and signs.
func (p *parcel) fill(trace string) {
	p.header.Set("User-Agent", "aip-gateway")
	p.header.Set(sign.HeaderID, p.id)
	p.header.Set(sign.HeaderTimestamp, sign.Timestamp(p.began))
	if s := p.setup.Keys.Header(p.id, p.began, p.body); s != "" {
		p.header.Set(sign.HeaderSignature, s)
	}
	if trace == "" {
		sum := sha256.Sum256([]byte(p.id))
		trace = "00-" + hex.EncodeToString(sum[:16]) + "-" + hex.EncodeToString(sum[16:24]) + "-00"
	}
	p.header.Set("traceparent", trace)
}

// holdsControl reports whether s holds a character that could end a header field.
func holdsControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
