// SPDX-License-Identifier: Apache-2.0

// Package leader is the transport of an AIP Leader: it sends the commands of a task to a Partner and reads the answers
// (AIP v01.00 §6.1).
package leader

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/endpoint"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// DefaultMaxBytes is the default of Client.MaxBytes.
const DefaultMaxBytes = 64 << 20

// Client sends commands to one Partner. Its methods may be called concurrently.
type Client struct {
	HTTP     *http.Client
	Sender   string // the default senderId of messages: the Leader's AIC
	MaxBytes int64  // the largest size of an answer, in bytes. Default: DefaultMaxBytes
	V2       bool   // speaks AIP v02.00 to v02.02; otherwise v01.00

	base *url.URL
}

// New returns a client of the Partner at a URL, its mount point or its endpoint, with its own connection pool. config
// holds the Leader's certificate and the trusted roots; nil means no certificate and the system's roots.
func New(address string, config *tls.Config) (*Client, error) {
	u, err := url.Parse(endpoint.Mount(address))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the URL cannot be read: %w", errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("the URL must begin with https:// or http:// and have a host")
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, errors.New("the URL must have no user, query or fragment: it is the Partner's mount point, or its rpc")
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
	// A command must reach no other Partner than the one at the URL, so a redirect is an error.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{HTTP: &http.Client{Transport: transport, CheckRedirect: stay}, base: u}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Answer is a Partner's answer to a command: a Task or, more rarely, a Message.
type Answer struct {
	Task    *task.Task
	Message *task.Message
	Raw     []byte // the whole response as it was sent
}

// Do sends a command by rpc and reads the answer. It fills in the message's id, time, sender and parameters if they are
// missing. If the Partner answers an error, it returns an *Error.
func (c *Client) Do(ctx context.Context, call *task.Call) (*Answer, error) {
	m := c.complete(call)
	id := requestID(&m)
	body, err := c.exchange(ctx, "rpc", c.version().appendRequest(nil, id, "rpc", &m))
	if err != nil {
		return nil, err
	}
	return c.version().decode(body, id)
}

// Request sends a request of a method without a message, for example notification/set, and returns its result and the
// whole response. If the Partner answers an error, it returns an *Error.
func (c *Client) Request(ctx context.Context, method string, params any) (result, raw json.RawMessage, err error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, nil, err
	}
	id := jsonrpc.ID(task.AppendString(nil, NewID("request")))
	body, err := c.exchange(ctx, method, jsonrpc.End(append(jsonrpc.BeginRequest(nil, id, method), encoded...)))
	if err != nil {
		return nil, nil, err
	}
	response, err := parse(body, id)
	return json.RawMessage(response.Result.Raw), body, err
}

// exchange sends a request for an answer of one message, and returns the body of the answer.
func (c *Client) exchange(ctx context.Context, path string, request []byte) ([]byte, error) {
	res, err := c.post(ctx, path, request)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := c.read(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, refusal(res.StatusCode, body)
	}
	return body, nil
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

// refusal is the error of an answer with another status than 200. Partners on the SDK of AIP 2 answer errors so to
// requests for a stream, or about webhooks: the error is the member detail.
func refusal(status int, body []byte) error {
	var refused struct {
		Detail struct {
			Code    int64           `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"detail"`
	}
	if json.Unmarshal(body, &refused) != nil || refused.Detail.Code == 0 {
		return &StatusError{Status: status, Body: body}
	}
	d := &refused.Detail
	return &Error{Code: d.Code, Message: d.Message, Data: d.Data, Raw: body}
}

// StatusError is an answer with an HTTP status other than 200. A Partner answers every command with 200, errors too.
type StatusError struct {
	Status int
	Body   []byte
}

// Error implements error.
func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the answer has HTTP status %d %s", e.Status, http.StatusText(e.Status)))
}
