// SPDX-License-Identifier: Apache-2.0

// Package auntransport carries requests to agents over the connections of AUN: one connection for each identity of the
// gateway and each gateway of AUN, which all turns share.
package auntransport

import (
	"sync"

	"github.com/aip-gateway/aip-gateway/aun"
)

// Pool holds the connections of a process. They outlive configurations: a connection is closed when the last transport
// that uses it is closed. The zero value is ready for use. Its methods may be called by any number of goroutines at
// once.
type Pool struct {
	mu    sync.Mutex
	links map[linkKey]*link
}

// linkKey is what makes two connections the same one.
type linkKey struct {
	self aun.AID
	cert string // of self, in DER
	url  string
	peer aun.AID // where there is no URL, the peer's issuer; for a peer itself, its AID
}

// link is a connection with its users.
type link struct {
	*aun.Client
	topics topics
	key    linkKey
	uses   int // guarded by Pool.mu
}

// take returns the link of a configuration. The caller must release it.
func (p *Pool) take(config aun.ClientConfig) *link {
	key := linkKey{self: config.Identity.AID, url: config.URL, peer: config.Peer}
	if len(config.Identity.Chain) > 0 {
		key.cert = string(config.Identity.Chain[0].Raw)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.links[key]; l != nil {
		l.uses++
		return l
	}
	l := &link{key: key, uses: 1}
	l.topics.init()
	config.Event = l.topics.deliver
	l.Client = aun.NewClient(config)
	if p.links == nil {
		p.links = make(map[linkKey]*link)
	}
	p.links[key] = l
	return l
}

// release gives a link back. The last release closes the connection.
func (p *Pool) release(l *link) {
	p.mu.Lock()
	l.uses--
	last := l.uses == 0
	if last {
		delete(p.links, l.key)
	}
	p.mu.Unlock()
	if last {
		l.Close()
	}
}
