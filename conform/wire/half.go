// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
)

// Half sends a request over HTTP/1.1 of a connection of its own, and closes this in the middle of the body.
func (c *Client) Half(ctx context.Context, r Request) error {
	u, err := url.Parse(r.URL)
	if err != nil {
		return err
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), u.Scheme)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	connection, err := c.next.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline); err != nil {
		return err
	}
	if u.Scheme == "https" {
		config := c.next.TLSClientConfig.Clone()
		config.NextProtos = []string{"http/1.1"}
		if config.ServerName == "" {
			config.ServerName = u.Hostname()
		}
		secure := tls.Client(connection, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return err
		}
		connection = secure
	}
	request, err := http.NewRequest(r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return err
	}
	for name, value := range r.Headers {
		request.Header.Set(name, value)
	}
	var whole bytes.Buffer
	if err := request.Write(&whole); err != nil {
		return err
	}
	_, err = connection.Write(whole.Bytes()[:whole.Len()-len(r.Body)/2])
	return err
}
