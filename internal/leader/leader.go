// SPDX-License-Identifier: Apache-2.0

// Package leader is an AIP Leader as far as its transport goes: it sends the commands of a task to a Partner
// and reads the answers (AIP v01.00 §6.1).
package leader

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// DefaultMaxBytes is how large an answer may be where a Client does not say.
const DefaultMaxBytes = 64 << 20

// Client sends commands to one Partner. Its methods may be called by any number of goroutines at once.
type Client struct {
	HTTP     *http.Client
	Sender   string // the senderId of messages that have none: the Leader's AIC
	MaxBytes int64  // how large an answer may be; zero means DefaultMaxBytes

	base *url.URL
}

// New returns a client of the Partner at a URL, the mount point of a gateway, with a connection pool of its
// own. config holds the Leader's certificate and the roots to trust; nil means none and the system's.
func New(mount string, config *tls.Config) (*Client, error) {
	u, err := url.Parse(mount)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the URL cannot be read: %w", errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("the URL must begin with https:// or http:// and have a host")
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, errors.New("the URL must have no user, query or fragment: it is the place where the Partner is mounted")
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	// A command is for the Partner that it was addressed to: redirects are answers, and wrong ones.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{HTTP: &http.Client{Transport: transport, CheckRedirect: stay}, base: u}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Answer is what a Partner answers a command with: a Task or, more rarely, a Message.
type Answer struct {
	Task    *task.Task
	Message *task.Message
	Raw     []byte // the whole response as it was sent
}

// Do sends a command by rpc and reads the answer. What the message of the call leaves open is filled in: its
// id, time and sender, and its parameters from the call. An error that the Partner answers is an *Error.
func (c *Client) Do(ctx context.Context, call *task.Call) (*Answer, error) {
	m := c.complete(call)
	id := requestID(&m)
	res, err := c.post(ctx, "rpc", appendRequest(nil, id, "rpc", &m))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := c.read(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, &StatusError{Status: res.StatusCode, Body: body}
	}
	return decode(body, id)
}

// post sends a request to a path under the mount point.
func (c *Client) post(ctx context.Context, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return c.HTTP.Do(req)
}

func (c *Client) read(r io.Reader) ([]byte, error) {
	limit := c.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the answer: %w", err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("the answer has more than %d bytes", limit)
	}
	return body, nil
}

// StatusError is an answer with an HTTP status other than 200, which a Partner gives to no command, not even to
// a wrong one.
type StatusError struct {
	Status int
	Body   []byte
}

// Error implements error.
func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the answer has HTTP status %d %s", e.Status, http.StatusText(e.Status)))
}
