// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"context"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// ID returns the id of the request.
func (r *Request) ID() jsonrpc.ID { return r.id }

// Respond answers the request with a whole response with its id. It returns as Reply does, but a response too large is
// not answered.
func (r *Request) Respond(frame []byte) error { return r.send(frame) }

// Send sends a whole frame. It returns as Notify does.
func (c *Conn) Send(ctx context.Context, frame []byte) error { return c.write(ctx, frame) }

// Ping waits until the other end has read every frame sent before. It needs a goroutine in Serve.
func (c *Conn) Ping(ctx context.Context) error {
	if err := c.ws.Ping(ctx); err != nil {
		return &LostError{Sent: true, Err: err}
	}
	return nil
}

// Cut ends the connection without a close frame, when the other end does not read.
func (c *Conn) Cut(why error) { c.cut(&CloseError{Code: CloseAbnormal, Local: true, Err: why}) }
