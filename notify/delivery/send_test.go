// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// message is a notification.
type message struct {
	body, traceparent string
	err               error
	log               *bytes.Buffer
}

func (m message) Encode(header http.Header) ([]byte, string, error) {
	header.Set("Content-Type", "application/json")
	return []byte(m.body), m.traceparent, m.err
}

func (m message) Log() *slog.Logger {
	if m.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(m.log, nil))
}

// attemptAt is an attempt to deliver a message to a URL.
func attemptAt(url string, m message) *Attempt {
	return &Attempt{ID: "msg_a", URL: url, Began: time.Now(), Message: m}
}

// local permits the addresses of tests.
func local() Config {
	return Config{
		Timeout: time.Minute, Connections: 4, PerEndpoint: 4, Log: slog.New(slog.DiscardHandler),
		Egress: &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}
}

func open(t *testing.T, trip http.RoundTripper, c Config) *Sender {
	ctx, cancel := context.WithCancel(context.Background())
	s := New(ctx, trip)
	t.Cleanup(func() {
		cancel()
		s.Close()
	})
	s.Configure(c)
	return s
}

// roundTripper is a transport without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The request over TCP, and the outcome of each answer.
func TestSendOverTCP(t *testing.T) {
	hang := make(chan struct{})
	var elsewhere int
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ok", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != `{"state":"accepted"}` || r.ContentLength != int64(len(body)) ||
			r.Header.Get("Accept-Encoding") != "" || r.Header.Get("User-Agent") != "aip-gateway" {
			w.WriteHeader(400)
		}
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere++ })
	mux.HandleFunc("/reset", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		for range 1000 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 64<<10))
	})
	mux.HandleFunc("/hang", func(http.ResponseWriter, *http.Request) { <-hang })
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(hang)

	s := open(t, nil, local())
	for name, c := range map[string]struct {
		url  string
		want Outcome
		text string
		set  func(*Config)
	}{
		"ok":       {server.URL + "/ok", Outcome{Result: Delivered, Status: 200}, "", nil},
		"redirect": {server.URL + "/redirect", Outcome{Result: Refused, Status: 307}, "status 307", nil},
		"reset":    {server.URL + "/reset", Outcome{Result: Unavailable}, "closed without an answer", nil},
		"endless":  {server.URL + "/endless", Outcome{Result: Unavailable, Status: 500}, "status 500", nil},
		"header":   {server.URL + "/header", Outcome{Result: Unavailable}, "not HTTP", nil},
		"hang": {server.URL + "/hang", Outcome{Result: Unavailable}, "within 100ms", func(c *Config) {
			c.Timeout = 100 * time.Millisecond
		}},
		"closed": {fmt.Sprint("http://127.0.0.1:", freeport.Closed(t)), Outcome{Result: Unavailable}, "was refused", nil},
		"not permitted": {server.URL + "/ok", Outcome{Result: Unavailable}, "not public", func(c *Config) {
			c.Egress = new(egress.Policy)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := local()
			if c.set != nil {
				c.set(&conf)
			}
			s.Configure(conf)
			got := s.Send(attemptAt(c.url, message{body: `{"state":"accepted"}`}))
			if !strings.Contains(got.Error, c.text) || (got.Error == "") != (c.text == "") {
				t.Errorf("the error is %q", got.Error)
			}
			got.Error = ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the outcome (-want +got):\n%s", diff)
			}
		})
	}
	if elsewhere != 0 {
		t.Error("a redirect was followed")
	}
}

func TestUndeliverable(t *testing.T) {
	s := open(t, nil, local())
	for name, a := range map[string]*Attempt{
		"a damaged notification": attemptAt("https://example.org/", message{err: errors.New("damaged")}),
		"an impossible URL":      attemptAt("://", message{}),
	} {
		if o := s.Send(a); o.Result != Undeliverable || o.Error == "" {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// A panic in a dialing goroutine is an error of the attempt, too.
func TestPanicInDial(t *testing.T) {
	var log bytes.Buffer
	c := local()
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := open(t, nil, c)
	dial := s.owned(func(context.Context, string, string) (net.Conn, error) { panic("dial") })
	_, err := dial(t.Context(), "tcp", "example.org:443")
	o := s.failure(t.Context(), s.setup.Load(), err)
	if o.Result != Internal || o.Error == "" || !strings.Contains(log.String(), "send_test.go") {
		t.Errorf("the outcome is %+v, the log says %s", o, log.String())
	}
}

// Each attempt has a span: in the trace of the notification's cause, or in a trace of its own. The receiver gets the
// span's traceparent. Without a TracerProvider it gets the one of the cause, or one made of the webhook-id.
func TestSpans(t *testing.T) {
	const cause = "00-01000000000000000000000000000000-0200000000000000-01"
	for name, tt := range map[string]struct {
		traced      bool
		traceparent string
		status      int
	}{
		"with a cause":    {true, cause, 200},
		"without a cause": {true, "", 500},
		"not traced":      {false, cause, 200},
		"neither":         {false, "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			c := local()
			if tt.traced {
				c.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
			}
			var sent string
			s := open(t, roundTripper(func(r *http.Request) (*http.Response, error) {
				sent = r.Header.Get("traceparent")
				return &http.Response{StatusCode: tt.status, Body: http.NoBody}, nil
			}), c)
			s.Send(attemptAt("https://hooks.example.org/secret", message{traceparent: tt.traceparent}))
			if !tt.traced {
				if len(sent) != len(cause) || tt.traceparent != "" && sent != tt.traceparent {
					t.Errorf("sent %q", sent)
				}
				return
			}
			ended := spans.Ended()
			if len(ended) != 1 {
				t.Fatalf("%d spans", len(ended))
			}
			span := ended[0]
			if sent != Traceparent(span.SpanContext()) || span.Parent().IsValid() != (tt.traceparent != "") ||
				tt.traceparent != "" && !strings.HasPrefix(sent, cause[:36]) {
				t.Errorf("sent %q, the span has the parent %v", sent, span.Parent().SpanID())
			}
			if failed := span.Status().Description != ""; failed != (tt.status != 200) {
				t.Errorf("the status of the span is %+v", span.Status())
			}
			for _, a := range span.Attributes() {
				if strings.Contains(a.Value.String(), "secret") {
					t.Errorf("the span shows the path of the URL: %v", a)
				}
			}
		})
	}
}
