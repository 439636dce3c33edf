// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// brokers says whether the brokers of groups accept connections. It does not log in.
func (e *examination) brokers(ctx context.Context, m *Mount) {
	if m.Brokers == nil {
		return
	}
	if m.Brokers.Wait != nil {
		e.add(CheckBroker, Warning, m.Title, "no broker was asked: "+m.Brokers.Wait.Error())
		return
	}
	for _, b := range m.Brokers.All {
		e.broker(ctx, m.Brokers.Dialer, b)
	}
}

// broker is brokers for one of them.
func (e *examination) broker(ctx context.Context, d *egress.Dialer, b Broker) {
	address, secure := b.Address()
	if address == "" {
		e.add(CheckBroker, OK, b.Name, "its names are not known before an invitation")
		return
	}
	dial := d.DialPlain
	if secure {
		dial = d.DialTLS
	}
	conn, err := dial(ctx, "tcp", address)
	if err == nil {
		err = conn.Close()
	}
	var refused *egress.RefusedError
	var handshake *egress.HandshakeError
	switch {
	case err == nil:
		e.add(CheckBroker, OK, b.Name, "it accepts connections")
	case errors.As(err, &refused):
		advice := "use amqps://, or add its network to allow_networks of group"
		if secure {
			advice = "add its network to allow_networks of group"
		}
		e.add(CheckBroker, Broken, b.Name, fmt.Sprintf("the gateway may not connect to it (%s); %s",
			strings.TrimPrefix(err.Error(), "egress: "), advice))
	case errors.As(err, &handshake):
		advice := cmp.Or(AdviceOnServer(err, "group"), "check ca in the tls of group, and the broker's certificate")
		e.add(CheckBroker, Broken, b.Name, fmt.Sprintf("it accepts no TLS (%v); %s", err, advice))
	default:
		e.add(CheckBroker, Broken, b.Name, fmt.Sprintf("it cannot be reached (%v); "+
			"start it, or correct its host and port in %s", err, b.Option))
	}
}
