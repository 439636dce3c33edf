// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/quic-go/quic-go/http3"
)

// Chunks is what the agents' "stream n" makes.
func Chunks(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "chunk-%d ", i)
	}
	return b.String()
}

// GatewayTo returns the directive of a gateway in front of an agent, with room for many streams.
func GatewayTo(agent string) string {
	return "aip_gateway a2a/legacy http://" + agent + " {\n\t\tlimits {\n\t\t\tstreams_per_leader 10000\n\t\t}\n\t}"
}

// ManyStreams is how long a test with hundreds of streams may take on a slow machine.
const ManyStreams = 10 * time.Minute

// Within returns a context for what may take long but must end.
func Within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Transports returns one for each version of HTTP.
func (c *Caller) Transports(t *testing.T) map[string]http.RoundTripper {
	config := c.HTTP.Transport.(*http.Transport).TLSClientConfig
	h1 := &http.Transport{
		TLSClientConfig: config.Clone(),
		TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	h1.TLSClientConfig.NextProtos = nil // a transport that was used has h2 there
	h2 := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}
	h3 := &http3.Transport{TLSClientConfig: config.Clone()}
	t.Cleanup(func() {
		h1.CloseIdleConnections()
		h2.CloseIdleConnections()
		h3.Close()
	})
	return map[string]http.RoundTripper{"1": h1, "2": h2, "3": h3}
}

// Opened is a stream that a test reads event by event.
type Opened struct {
	t   *testing.T
	Res *http.Response // its response
	in  *sseproxy.Reader
	all strings.Builder // what in has read
}

// Open opens a stream, and says whether its connection was used before.
func (c *Caller) Open(t *testing.T, transport http.RoundTripper, body []byte) (o *Opened, reused bool) {
	t.Helper()
	ctx := httptrace.WithClientTrace(Within(t, 2*Patience), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Mount+"/stream", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	o = &Opened{t: t, Res: res}
	o.in = sseproxy.NewReader(io.TeeReader(res.Body, &o.all), sseproxy.Limits{})
	return o, reused
}

// Until reads events until a state.
func (o *Opened) Until(state string) {
	o.t.Helper()
	for {
		ev, err := o.in.Next()
		if err != nil {
			o.t.Fatalf("the stream ended before %q: %v", state, err)
		}
		if strings.Contains(string(ev.Data), `"state":"`+state+`"`) {
			return
		}
	}
}

// Beats reads heartbeats. No event may come meanwhile.
func (o *Opened) Beats(n int) {
	o.t.Helper()
	lines := bufio.NewScanner(o.Res.Body)
	for n > 0 && lines.Scan() {
		if lines.Text() == ":" {
			n--
		}
	}
	if n > 0 {
		o.t.Fatalf("the stream ended before its heartbeats: %v", lines.Err())
	}
}

// Ends reads the end of the stream, and returns all of it, with its comments.
func (o *Opened) Ends() (all string) {
	o.t.Helper()
	for {
		if _, err := o.in.Next(); err == io.EOF {
			return o.all.String()
		} else if err != nil {
			o.t.Fatalf("the stream was cut: %v", err)
		}
	}
}
