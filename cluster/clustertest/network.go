// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"bytes"
	"errors"
	"sync"

	"github.com/aip-gateway/aip-gateway/cluster"
)

// listener is a function listening to an address.
type listener struct {
	f    func(cluster.Message)
	done chan struct{}
	more chan struct{} // has a value while there may be messages

	mu sync.Mutex
	in []cluster.Message
}

// Listen implements cluster.Network.
func (l *Link) Listen(address string, f func(cluster.Message)) (func(), error) {
	of := &listener{f: f, done: make(chan struct{}), more: make(chan struct{}, 1)}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.listening[address] = of
	go of.run()
	return func() {
		l.of.mu.Lock()
		defer l.of.mu.Unlock()
		if l.listening[address] == of {
			delete(l.listening, address)
			of.end()
		}
	}, nil
}

func (l *listener) end() { close(l.done) }

func (l *listener) run() {
	for {
		select {
		case <-l.more:
		case <-l.done:
			return
		}
		l.mu.Lock()
		in := l.in
		l.in = nil
		l.mu.Unlock()
		for _, m := range in {
			l.f(m)
		}
	}
}

func (l *listener) put(m cluster.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in = append(l.in, m)
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// Send implements cluster.Network. Messages to or from a cut link are lost.
func (l *Link) Send(m cluster.Message) error {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	switch {
	case l.disconnected:
		return errors.New("the process is not connected")
	case len(m.Data) > l.max:
		return errors.New("the message is too large")
	case l.cut || l.lose != nil && l.lose(m):
		return nil
	}
	m.Data = bytes.Clone(m.Data)
	heard := false
	for _, other := range l.of.links {
		if to := other.listening[m.To]; to != nil {
			heard = heard || !other.disconnected
			if !other.cut && !other.disconnected {
				to.put(m)
			}
		}
	}
	if from := l.listening[m.From]; !heard && from != nil {
		from.put(cluster.Message{From: m.To, To: m.From, ID: m.ID, Unheard: true})
	}
	return nil
}

// MaxData implements cluster.Network.
func (l *Link) MaxData() int {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.max
}
