// SPDX-License-Identifier: Apache-2.0

package auntransport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// Transport reaches an agent by a connection of a Pool. It implements upstream.Transport, and is the only Route of each
// operation.
type Transport struct {
	pool   *Pool
	config aun.ClientConfig
	quiet  time.Duration
	link   *link // its connection stays open until Close
	close  sync.Once
	only   []upstream.Route
}

// New returns a transport. Nothing is sent before it is used. The caller must close it. quiet is the longest silence,
// after a message, of an agent addressed by messages, before its turn is over, because only some agents report the end;
// 0 is for 10 seconds.
func (p *Pool) New(config aun.ClientConfig, quiet time.Duration) *Transport {
	t := &Transport{pool: p, config: config, quiet: cmp.Or(quiet, defaultQuiet), link: p.take(config, nil)}
	t.only = []upstream.Route{t}
	return t
}

// Routes implements upstream.Transport.
func (t *Transport) Routes(translate.Operation) []upstream.Route { return t.only }

// Close implements upstream.Transport. Open exchanges, also those of turns outliving their configuration, use the
// connection as long as they need it.
func (t *Transport) Close() { t.close.Do(func() { t.pool.release(t.link) }) }

// Confirm implements upstream.Route.
func (t *Transport) Confirm() {}

// Open implements upstream.Route.
func (t *Transport) Open(ctx context.Context, r *upstream.Request) (upstream.Exchange, error) {
	x := &exchange{pool: t.pool, link: t.pool.take(t.config, t.link), request: r, begun: make(chan struct{}),
		queue: newQueue(), peer: string(t.config.Peer), quiet: t.quiet}
	x.ctx, x.cancel = context.WithCancel(ctx)
	x.idle, x.interrupt = r.IdleTimeout, r.Interrupt
	x.work.Go(x.carryOut)
	return x, nil
}

// unreachable is the error of a request not sent, because there is no connection.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return upstream.Ended(ctx)
	}
	reason, detail := upstream.Unreachable, "the agent's AUN gateway cannot be reached"
	var refused *aun.Error
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		reason, detail = upstream.CertificateUntrusted, "the certificate of the agent's AUN gateway is not trusted"
	case errors.As(err, &refused) && refused.Code == codes.CertificateInvalid,
		errors.As(err, &refused) && refused.Code == codes.SignatureInvalid:
		reason, detail = upstream.IdentityRefused, "a certificate of AUN is not accepted"
	}
	return upstream.Failed(task.AgentUnavailable, reason, err, "%s", detail)
}

// lost is the error of a call with a lost answer.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return upstream.Ended(ctx)
	}
	if l, ok := errors.AsType[*aun.LostError](err); ok && !l.Sent {
		return upstream.Failed(task.AgentUnavailable, upstream.Unreachable, err, "the connection to the agent is gone")
	}
	if errors.Is(err, aun.ErrTooLarge) {
		return task.Errorf(task.LimitExceeded, "the message is larger than a frame of AUN").
			WithData("limit", "frame").WithData("max", aun.MaxFrame)
	}
	return upstream.Failed(task.Internal, upstream.Disconnected, err, "the connection to the agent broke")
}

// errTooMany ends an exchange after its events were not read in time.
var errTooMany = upstream.Failed(task.Internal, upstream.StreamCut, nil, "the agent's events are too many at once")
