// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/bug"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/retryafter"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/notify/sign"
)

// maxAnswer is the most bytes of an answer's body read. None are kept; they are read to use the connection again.
const maxAnswer = 64 << 10

// Of a body, an Outcome has maxRequestKept or maxAnswerKept bytes at most. Its reader may leave something out of an
// answer, and still have 4 KiB then.
const (
	maxRequestKept = 4 << 10
	maxAnswerKept  = 8 << 10
)

// maxRetryAfter is the longest pause a receiver may ask for.
const maxRetryAfter = 24 * time.Hour

// Message is a notification to be sent.
type Message interface {
	// Encode sets the header fields of the dialect and returns the body, and the traceparent of the notification's cause,
	// empty if it is not known. An error means a damaged stored notification.
	Encode(http.Header) (body []byte, traceparent string, err error)
	// Log returns a logger with the names of the notification in its lines.
	Log() *slog.Logger
}

// Attempt is one attempt to deliver a Message.
type Attempt struct {
	ID      string // the webhook-id, the same for every attempt of a notification
	URL     string
	Partner string // its certificate is shown to the receiver, if any is
	Began   time.Time
	Message Message
}

// Result is the kind of an Outcome.
type Result uint8

// The results.
const (
	Delivered     Result = iota // the receiver answered with 2xx
	Refused                     // the receiver answered with another status, no sign of its endpoint's health
	Gone                        // the receiver answered 410: it wants no more notifications
	Unavailable                 // the endpoint did not answer, or with 429 or 5xx
	Undeliverable               // no attempt can succeed
	Internal                    // the gateway failed; nothing new is known of the endpoint
	Canceled                    // the sender is closing; this does not count as an attempt
)

// Outcome is the end of an attempt.
type Outcome struct {
	Result     Result
	Status     int           // of HTTP; 0 if there was no answer
	Error      string        // the failure, without secrets; empty if it was delivered or canceled
	RetryAfter time.Duration // the pause asked for by the receiver; 0 if it does not ask

	// With Config.KeepBodies: the beginnings of the bodies of the request and of the answer, and the sizes of both, of the
	// answer as far as it was read.
	Request, Answer           []byte
	RequestBytes, AnswerBytes int
}

// Send makes an attempt. A panic fails this attempt and nothing else.
func (s *Sender) Send(a *Attempt) (o Outcome) {
	c := s.setup.Load()
	defer func() {
		if v := recover(); v != nil {
			o = s.failure(context.Background(), c, panicked(a.Message.Log(), v))
		}
	}()
	return s.send(c, a)
}

func (s *Sender) send(c *setup, a *Attempt) (o Outcome) {
	o = Outcome{Result: Internal, Error: internalError} // for the span, if anything here panics
	header := make(http.Header, 8)
	body, traceparent, err := a.Message.Encode(header)
	if err != nil {
		a.Message.Log().Error("a notification is damaged", "error", err)
		return Outcome{Result: Undeliverable, Error: "the stored notification is damaged"}
	}
	ctx, cancel := context.WithTimeout(s.ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, bytes.NewReader(body))
	if err != nil {
		return Outcome{Result: Undeliverable, Error: "the URL cannot be used"}
	}
	req.Header = header
	if tracing.Enabled(ctx, c.TracerProvider) {
		span := startSpan(req, c.TracerProvider, a.ID, traceparent)
		if span.IsRecording() {
			traceparent = Traceparent(span.SpanContext())
		}
		defer func() { endSpan(span, &o) }()
	}
	c.sign(a, header, body, traceparent)
	o = s.roundTrip(c, c.tripOf(a.Partner, req.URL), req)
	if c.KeepBodies {
		o.Request, o.RequestBytes = bytes.Clone(body[:min(len(body), maxRequestKept)]), len(body)
	}
	return o
}

// sign sets the header fields independent of the dialect.
func (c *setup) sign(a *Attempt, header http.Header, body []byte, traceparent string) {
	header.Set("User-Agent", "aip-gateway")
	header.Set(sign.HeaderID, a.ID)
	header.Set(sign.HeaderTimestamp, sign.Timestamp(a.Began))
	if s := c.Keys.Header(a.ID, a.Began, body); s != "" {
		header.Set(sign.HeaderSignature, s)
	}
	if traceparent == "" {
		sum := sha256.Sum256([]byte(a.ID))
		traceparent = "00-" + hex.EncodeToString(sum[:16]) + "-" + hex.EncodeToString(sum[16:24]) + "-00"
	}
	header.Set("traceparent", traceparent)
}

// roundTrip sends the request and reads the answer.
func (s *Sender) roundTrip(c *setup, trip http.RoundTripper, req *http.Request) Outcome {
	resp, err := trip.RoundTrip(req) // an http.Client would follow redirects
	if err != nil {
		return s.failure(req.Context(), c, err)
	}
	o := Outcome{Status: resp.StatusCode}
	if c.KeepBodies {
		var start bytes.Buffer
		_, _ = io.CopyN(&start, resp.Body, maxAnswerKept) // the next read returns the error of this one
		o.Answer, o.AnswerBytes = start.Bytes(), start.Len()
	}
	n, err := io.CopyN(io.Discard, resp.Body, maxAnswer-int64(o.AnswerBytes))
	if c.KeepBodies {
		o.AnswerBytes += int(n)
	}
	_ = resp.Body.Close()
	switch {
	case o.Status >= 200 && o.Status < 300:
		// The receiver has the notification; the rest of its answer does not matter.
		return o
	case err != nil && s.ctx.Err() != nil:
		return Outcome{Result: Canceled}
	}
	o.Error = "the receiver answered with status " + strconv.Itoa(o.Status)
	switch {
	case o.Status == http.StatusGone:
		o.Result = Gone
	case o.Status >= 500 || o.Status == http.StatusTooManyRequests:
		o.Result = Unavailable
	default:
		o.Result = Refused
	}
	if o.Status == http.StatusTooManyRequests || o.Status == http.StatusServiceUnavailable {
		o.RetryAfter = retryafter.Read(resp.Header.Get("Retry-After"), time.Now(), maxRetryAfter)
	}
	return o
}

// failure is the outcome of an attempt without an answer. The text of the error itself may hold addresses, or words of
// the receiver.
func (s *Sender) failure(ctx context.Context, c *setup, err error) Outcome {
	o := Outcome{Result: Unavailable}
	var refused *egress.RefusedError
	var unresolved *net.DNSError
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case s.ctx.Err() != nil:
		return Outcome{Result: Canceled}
	case errors.Is(err, errPanic):
		return Outcome{Result: Internal, Error: internalError}
	case errors.As(err, &refused):
		o.Error = refused.Reason
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		o.Error = "the receiver did not answer within " + c.Timeout.String()
	case errors.As(err, &unresolved):
		o.Error = "the host cannot be resolved"
	case errors.As(err, &certificate):
		o.Error = "the certificate of the receiver is not valid"
	case errors.Is(err, syscall.ECONNREFUSED):
		o.Error = "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		o.Error = "the connection was closed without an answer"
	default:
		o.Error = "the receiver could not be reached, or its answer was not HTTP"
	}
	return o
}

// errPanic is the error of an attempt that panicked, and internalError the text shown for it.
var errPanic = errors.New("delivery: panic")

const internalError = "the gateway failed while it delivered the notification"

// panicked logs a panic, and returns errPanic for it.
func panicked(log *slog.Logger, v any) error {
	bug.Log(context.Background(), log,
		"the gateway failed while it delivered a notification; this is a bug of the gateway", v)
	return errPanic
}

// startSpan starts the span of an attempt. It belongs to the trace of the notification's cause, if that is known.
func startSpan(req *http.Request, provider trace.TracerProvider, id, traceparent string) trace.Span {
	ctx := req.Context()
	if traceparent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
	}
	_, span := tracing.Start(ctx, provider, trace.SpanKindClient, "aip.webhook",
		attribute.String("http.request.method", http.MethodPost),
		attribute.String("server.address", req.URL.Hostname()),
		attribute.String("aip.webhook.message.id", id))
	return span
}

// endSpan ends the span of an attempt.
func endSpan(span trace.Span, o *Outcome) {
	if o.Status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", o.Status))
	}
	if o.Error != "" {
		span.SetStatus(codes.Error, o.Error)
	}
	span.End()
}

// Traceparent returns the traceparent of a span.
func Traceparent(c trace.SpanContext) string {
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}
