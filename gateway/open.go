// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// openStreams are the open streams of a process. The zero value is ready for use.
type openStreams struct {
	mu     sync.Mutex
	opened uint64    // number of openings: the number of the newest one
	list   []*Stream // in no order; each knows its index
}

// keptCapacity is the number of streams for which the list keeps its memory when none is open.
const keptCapacity = 1024

func (o *openStreams) add(s *Stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened++
	s.number, s.index = o.opened, len(o.list)
	o.list = append(o.list, s)
}

func (o *openStreams) remove(s *Stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := len(o.list) - 1
	moved := o.list[last]
	o.list[s.index], moved.index = moved, s.index
	o.list[last] = nil
	if o.list = o.list[:last]; last == 0 && cap(o.list) > keptCapacity {
		o.list = nil
	}
}

// all returns the currently open streams, in no order.
func (o *openStreams) all() []*Stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.list)
}

// OpenStream is an open stream as an operator sees it.
type OpenStream struct {
	Number                uint64 // of the stream: a later one has a greater one
	Partner, Leader, Task string // as of a partner.Overview
	User                  string // the caller's AIC or AID, as it is proven; empty for none
	Address               string // of the caller
	Transport             string // Request.Transport, or the last one of Stream.SetTransport
	Dialect, Command      string
	Since                 time.Time
	Events                uint64 // number of the sent ones
	Last                  uint64 // number of the last sent event, or of the one before the stream's begin
	// End is the number of the last event of the task; 0 if the store cannot be read, or has dropped the task.
	End uint64
}

// StreamFilter selects open streams. An unset field selects all.
type StreamFilter struct {
	Partner, Leader, Task string

	After uint64 // OpenStream.Number of the last one on the page before
	Limit int    // streams on a page; default 100, at most 1000
}

// Bounds of a page of streams.
const (
	defaultStreamPage = 100
	maxStreamPage     = 1000
)

func (f *StreamFilter) selects(s *Stream) bool {
	if s.number <= f.After {
		return false
	}
	partner, leader, id := logname.Split(s.log)
	return (f.Partner == "" || f.Partner == partner) && (f.Leader == "" || f.Leader == leader) &&
		(f.Task == "" || f.Task == id)
}

// OpenStreams returns a page of the open streams of all gateways, in the order of their opening, and whether there are
// more. No stream waits for it.
func (p *Process) OpenStreams(ctx context.Context, f StreamFilter) (page []OpenStream, more bool) {
	found := slices.DeleteFunc(p.open.all(), func(s *Stream) bool { return !f.selects(s) })
	slices.SortFunc(found, func(a, b *Stream) int { return cmp.Compare(a.number, b.number) })
	if limit := min(cmp.Or(max(f.Limit, 0), defaultStreamPage), maxStreamPage); len(found) > limit {
		found, more = found[:limit], true
	}
	page = make([]OpenStream, len(found))
	type log struct {
		of   replay.Logs
		name string
	}
	ends := make(map[log]uint64) // each is read once
	for i, s := range found {
		page[i] = s.open()
		of := log{s.logs, s.log}
		end, known := ends[of]
		if !known {
			end = partner.LastEvent(ctx, s.logs, s.log)
			ends[of] = end
		}
		page[i].End = end
	}
	return page, more
}

// open describes the stream, without its End. It may be called by any goroutine.
func (s *Stream) open() OpenStream {
	o := OpenStream{Number: s.number, User: s.user, Address: s.address, Dialect: s.dialect.Name(), Command: s.command,
		Since: s.since, Events: s.sent.Load(), Last: s.last.Load()}
	o.Partner, o.Leader, o.Task = logname.Split(s.log)
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Transport = s.transport
	return o
}

// SetTransport sets the transport of the stream from now on. It may be called by any goroutine.
func (s *Stream) SetTransport(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transport = name
}
