// SPDX-License-Identifier: Apache-2.0

package natsdriver

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/aip-gateway/aip-gateway/cluster"
)

// Network carries messages between nodes. It implements cluster.Network.
type Network struct {
	nc     *nats.Conn
	prefix string
}

// NewNetwork returns the network of a connection. The connection stays the caller's. All nodes have the same prefix.
func NewNetwork(nc *nats.Conn, prefix string) *Network { return &Network{nc, prefix + ".to."} }

// The bounds of messages waiting for the goroutine of a listener. Messages beyond are lost, and their calls fail.
const (
	maxWaiting      = 1 << 20
	maxWaitingBytes = 512 << 20
)

// Listen implements cluster.Network.
func (n *Network) Listen(address string, f func(cluster.Message)) (func(), error) {
	sub, err := n.nc.Subscribe(n.prefix+address+".*", func(m *nats.Msg) {
		if got, ok := n.read(address, m); ok {
			f(got)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := sub.SetPendingLimits(maxWaiting, maxWaitingBytes); err != nil {
		return nil, err
	}
	// Messages sent after the node is known must be heard.
	if err := n.nc.Flush(); err != nil {
		return nil, err
	}
	return func() { sub.Unsubscribe() }, nil // an error means a closed connection
}

// read reads a message.
func (n *Network) read(address string, m *nats.Msg) (got cluster.Message, ok bool) {
	id, err := strconv.ParseUint(m.Subject[len(n.prefix)+len(address)+1:], 10, 64)
	if err != nil {
		return got, false
	}
	got = cluster.Message{To: address, ID: id, Data: m.Data}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		got.Unheard = true
		return got, true
	}
	from, ok := strings.CutPrefix(m.Reply, n.prefix)
	got.From, _, _ = strings.Cut(from, ".")
	return got, ok
}

// Send implements cluster.Network. Without a connection it fails at once.
func (n *Network) Send(m cluster.Message) error {
	if !n.nc.IsConnected() {
		return nats.ErrDisconnected
	}
	id := strconv.FormatUint(m.ID, 10)
	return n.nc.PublishRequest(n.prefix+m.To+"."+id, n.prefix+m.From+"."+id, m.Data)
}

// MaxData implements cluster.Network.
func (n *Network) MaxData() int { return int(min(n.nc.MaxPayload(), 1<<20)) }
