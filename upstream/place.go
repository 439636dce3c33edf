// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// place is where an agent takes some of its methods: one of at most two URLs. Which one it is shows when the agent first
// takes a request there. It may be used by any number of goroutines at once.
type place struct {
	urls  [2]*url.URL // the second is nil where there is no choice
	index atomic.Int32
	known atomic.Bool
}

// url returns the URL at which the agent is tried first.
func (p *place) url() *url.URL { return p.urls[p.index.Load()] }

// other returns the URL to try where the agent has not taken a request at u, or nil.
func (p *place) other(u *url.URL) *url.URL {
	switch {
	case p.known.Load():
		return nil
	case p.urls[0] == u:
		return p.urls[1]
	}
	return p.urls[0]
}

// here remembers that the agent takes requests at u.
func (p *place) here(u *url.URL) {
	if p.known.Load() {
		return
	}
	if p.urls[1] == u {
		p.index.Store(1)
	}
	p.known.Store(true)
}

// places returns where an agent is asked, and where it is asked for streams. An agent with a path for each method may be
// configured by its mount point or by the URL of its rpc.
func places(base *url.URL, codec translate.Client) (rpc, events *place) {
	m, ok := codec.(translate.Mounted)
	if !ok {
		only := &place{urls: [2]*url.URL{base}}
		return only, only
	}
	send, stream := m.Path(translate.Send), m.Path(translate.SendStream)
	path := strings.TrimSuffix(base.EscapedPath(), "/")
	at := func(path string) *url.URL {
		u := *base
		u.RawPath = path
		u.Path, _ = url.PathUnescape(path) // base holds a path that can be read
		return &u
	}
	if mount, ok := strings.CutSuffix(path, "/"+send); ok {
		return &place{urls: [2]*url.URL{base}}, &place{urls: [2]*url.URL{at(mount + "/" + stream), base}}
	}
	return &place{urls: [2]*url.URL{base, at(path + "/" + send)}}, &place{urls: [2]*url.URL{base, at(path + "/" + stream)}}
}

var (
	errNoAgent = errors.New("upstream: nothing answers there")
	errFault   = errors.New("upstream: the agent's server failed")
)

// notHere reports whether an error says that the agent does not take a method at the URL it was sent to.
func notHere(err error) bool {
	return task.KindOf(err) == task.MethodNotFound || errors.Is(err, errNoAgent)
}
