// SPDX-License-Identifier: Apache-2.0

package auntransport

import (
	"slices"
	"strconv"
	"sync"

	"github.com/aip-gateway/aip-gateway/aun"
)

// Pool holds the connections of a process. They outlive configurations: a connection is closed when the last of its
// transports is closed. The zero value is ready for use. Its methods may be called by any number of goroutines at once.
type Pool struct {
	Frames aun.Frames // of all connections

	mu    sync.Mutex
	links map[linkKey][]*link // several only while a reload replaces certificates or roots
}

// linkKey names the two ends of a connection.
type linkKey struct {
	self aun.AID
	url  string
	peer aun.AID // if there is no URL, the peer's issuer; for a peer itself, its AID
}

// link is a connection with its users.
type link struct {
	*aun.Client
	topics topics
	key    linkKey
	config aun.ClientConfig
	uses   int // guarded by Pool.mu
}

// take returns the link of a configuration: last, if it is not nil and still open. The caller must release it.
func (p *Pool) take(config aun.ClientConfig, last *link) *link {
	key := linkKey{self: config.Identity.AID, url: config.URL, peer: config.Peer}
	p.mu.Lock()
	defer p.mu.Unlock()
	if last != nil && last.uses > 0 {
		last.uses++
		return last
	}
	for _, l := range p.links[key] {
		if l.config.SameTrust(&config) {
			l.uses++
			return l
		}
	}
	l := &link{key: key, uses: 1}
	l.topics.init(config.Log)
	config.Event, config.Frames = l.topics.deliver, &p.Frames
	config.Slot = p.freeSlot(key)
	l.config, l.Client = config, aun.NewClient(config)
	if p.links == nil {
		p.links = make(map[linkKey][]*link)
	}
	p.links[key] = append(p.links[key], l)
	return l
}

// Connections returns the number of connections now.
func (p *Pool) Connections() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.links {
		for _, l := range list {
			if l.Connected() {
				n++
			}
		}
	}
	return n
}

// freeSlot returns a slot not used by another link of the key, because a gateway of AUN keeps one connection for each
// slot. The first link has none.
func (p *Pool) freeSlot(key linkKey) string {
	slot := ""
	for n := 2; slices.ContainsFunc(p.links[key], func(l *link) bool { return l.config.Slot == slot }); n++ {
		slot = strconv.Itoa(n)
	}
	return slot
}

// release gives a link back. The last release closes the connection.
func (p *Pool) release(l *link) {
	p.mu.Lock()
	l.uses--
	last := l.uses == 0
	if last {
		list := slices.DeleteFunc(p.links[l.key], func(other *link) bool { return other == l })
		if p.links[l.key] = list; len(list) == 0 {
			delete(p.links, l.key)
		}
	}
	p.mu.Unlock()
	if last {
		l.Close()
	}
}
