// SPDX-License-Identifier: Apache-2.0

package natstest

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Proxy is a TCP proxy in front of one server. It can be cut. Its methods may be called by any number of goroutines at
// once.
type Proxy struct {
	listener net.Listener
	target   string
	work     sync.WaitGroup

	mu     sync.Mutex
	state  *sync.Cond
	mute   bool // nothing sent by the server arrives
	deaf   bool // nothing sent by clients arrives
	cut    bool // there are no connections, and none can be made
	delay  time.Duration
	closed bool
	conns  map[net.Conn]bool
}

// NewProxy returns a proxy of a server.
func NewProxy(s *Server) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: fmt.Sprintf("127.0.0.1:%d", s.Port), conns: make(map[net.Conn]bool)}
	p.state = sync.NewCond(&p.mu)
	p.work.Go(p.accept)
	return p, nil
}

// URL returns the address of the proxy.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Mute sets whether the server's bytes are held back; Deaf, the clients'. Held bytes are sent when this ends, unless
// the connection has ended.
func (p *Proxy) Mute(on bool) { p.set(func() { p.mute = on }) }

// Deaf is described at Mute.
func (p *Proxy) Deaf(on bool) { p.set(func() { p.deaf = on }) }

// Cut sets whether there are no connections. It ends the present ones, with all bytes held back.
func (p *Proxy) Cut(on bool) {
	p.set(func() {
		if p.cut = on; on {
			p.end()
		}
	})
}

// Delay has each piece of either side arrive so much later, one after the other.
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

// Reset ends all connections, with all bytes held back, and lets new ones be made, with nothing held back.
func (p *Proxy) Reset() {
	p.set(func() {
		p.mute, p.deaf, p.cut, p.delay = false, false, false, 0
		p.end()
	})
}

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.state.Broadcast()
}

// end ends all connections. p.mu is held.
func (p *Proxy) end() {
	for c := range p.conns {
		c.Close()
		delete(p.conns, c)
	}
}

// Close ends the proxy.
func (p *Proxy) Close() {
	p.listener.Close()
	p.set(func() {
		p.closed = true
		p.end()
	})
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		if p.cut || p.closed {
			p.mu.Unlock()
			client.Close()
			server.Close()
			continue
		}
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.work.Go(func() { p.copy(client, server, &p.deaf) })
		p.work.Go(func() { p.copy(server, client, &p.mute) })
	}
}

// copy copies the bytes of one side to the other one, unless held is set.
func (p *Proxy) copy(from, to net.Conn, held *bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for *held && p.conns[from] && p.conns[to] {
			p.state.Wait()
		}
		gone, delay := !p.conns[from] || !p.conns[to], p.delay
		p.mu.Unlock()
		if delay > 0 {
			time.Sleep(delay)
		}
		if gone {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
