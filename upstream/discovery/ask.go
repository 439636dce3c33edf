// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// Limits of a search.
const (
	maxQuestions    = 8
	questionTimeout = 10 * time.Second // for each, connection and body included
	maxCard         = 1 << 20          // size of any answer, in bytes
	maxHeaderBytes  = 64 << 10
)

// asker asks an agent a few questions. It follows no redirects: they would carry the gateway's credentials away.
type asker struct {
	ctx       context.Context
	transport *http.Transport
	header    http.Header
	host      string
	remaining int // how many questions are left
}

func newAsker(ctx context.Context, config Config) asker {
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	k := asker{
		ctx: ctx, remaining: maxQuestions, header: http.Header{"User-Agent": {"aip-gateway"}},
		host: config.Header.Get("Host"), // net/http wants it apart
		transport: &http.Transport{
			DialContext:            dial,
			TLSClientConfig:        config.TLS.Clone(),
			DisableCompression:     true,
			DisableKeepAlives:      true, // so that no question is lost on a connection that is just being closed
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
	}
	for name, values := range config.Header {
		if name = http.CanonicalHeaderKey(name); name != "Host" {
			k.header[name] = values
		}
	}
	return k
}

// answer is what came back for a question; the zero answer says that it was not asked.
type answer struct {
	status   int
	body     []byte
	tooLarge bool
	verdict  translate.Verdict
	object   bool // the body is a JSON object
}

// unauthorized reports whether the agent answers only callers that it knows.
func (a answer) unauthorized() bool {
	return a.verdict == translate.Unsure && (a.status == http.StatusUnauthorized || a.status == http.StatusForbidden)
}

// problem says what is wrong with an answer. It holds nothing that the agent wrote.
func (a answer) problem() string {
	what := "HTTP " + strconv.Itoa(a.status)
	switch {
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return what + ": the agent refuses the gateway's credentials"
	case a.status >= 300 && a.status < 400:
		return what + ": the agent redirects, which is not followed"
	case a.tooLarge:
		return what + " and more than " + strconv.Itoa(maxCard) + " bytes"
	}
	if a.status == http.StatusOK {
		what += ", but nothing that is understood"
	}
	return what
}

// ask sends one request and reads the whole answer. Whatever the agent answers is not an error; an agent that
// cannot be reached, or does not answer, is one.
func (k *asker) ask(method string, u *url.URL, fields []translate.Field, body []byte) (answer, error) {
	k.remaining--
	ctx, cancel := context.WithTimeout(k.ctx, questionTimeout)
	defer cancel()
	header := k.header.Clone()
	header.Set("Accept", "application/json")
	for _, f := range fields {
		header.Set(f.Name, f.Value)
	}
	req := (&http.Request{Method: method, URL: u, Host: k.host, Header: header}).WithContext(ctx)
	if body != nil {
		header.Set("Content-Type", "application/json")
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	res, err := k.transport.RoundTrip(req)
	if err != nil {
		return answer{}, k.broken(ctx, err)
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode}
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, maxCard+1)); err != nil {
		return answer{}, k.broken(ctx, err)
	}
	if len(a.body) > maxCard {
		a.body, a.tooLarge = nil, true
	}
	return a, nil
}

// broken says what an error of the connection means.
func (k *asker) broken(ctx context.Context, err error) error {
	switch {
	case k.ctx.Err() != nil:
		return upstream.Ended(k.ctx)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return task.Errorf(task.AgentTimeout, "the agent did not answer within %v; start it, or correct its URL",
			questionTimeout).WithCause(err)
	}
	return httptransport.DialFailed(err, "the agent cannot be reached; start it, or correct its URL")
}
