// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// A short connection is for a few calls beside the long connection of its device and slot, such as those of a command
// in a shell. Its AID is not online by it: it gets no messages and no work, only answers to its calls, and the events
// of tasks it follows itself. It is closed when the client has called nothing for a while.

// The time for which a client may call nothing on a short connection.
const (
	defaultShortTTL = 5 * time.Minute
	maxShortTTL     = 30 * time.Minute
)

// readShort reads the options of a short connection. ttl is 0 for a long one.
func readShort(options gjson.Result) (ttl time.Duration, err error) {
	if options.Get("kind").String() != "short" {
		return 0, nil
	}
	v := options.Get("short_ttl_ms")
	if !v.Exists() || v.Type == gjson.Null {
		return defaultShortTTL, nil
	}
	ms, ok := jsonrpc.Int(v)
	if !ok || ms < 0 {
		return 0, aun.Errorf(codes.InvalidParams, "options.short_ttl_ms must be a whole number of milliseconds")
	}
	if ms == 0 {
		return defaultShortTTL, nil
	}
	return time.Duration(min(ms, int64(maxShortTTL/time.Millisecond))) * time.Millisecond, nil
}

// setTTL makes the connection a short one, before the client is logged in, if ttl is not 0.
func (s *Session) setTTL(ttl time.Duration) {
	if ttl == 0 {
		return
	}
	s.ttl = ttl
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = time.AfterFunc(ttl, s.checkIdle)
}

// stopIdle ends the watch over an ended connection.
func (s *Session) stopIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		s.idle.Stop()
	}
}

// isShort reports whether the connection is a short one.
func (s *Session) isShort() bool { return s.ttl > 0 }

// called notes the begin of a client's call. over notes its end.
func (s *Session) called() (over func()) {
	s.calls.Add(1)
	return func() {
		s.lastCall.Store(time.Now().UnixNano())
		s.calls.Add(-1)
	}
}

// checkIdle closes a short connection after a while without a call.
func (s *Session) checkIdle() {
	s.mu.Lock()
	idle, ttl := s.idle, s.ttl
	s.mu.Unlock()
	quiet := time.Since(time.Unix(0, s.lastCall.Load()))
	switch {
	case s.ctx.Err() != nil:
	case s.calls.Load() > 0:
		idle.Reset(ttl)
	case quiet < ttl:
		idle.Reset(ttl - quiet)
	default:
		s.cutSubscriptions()
		s.stopAcks()
		s.disconnect(aun.CloseShortIdle, "nothing was called on this short connection for "+ttl.String(),
			map[string]any{"short_ttl_ms": ttl.Milliseconds()})
	}
}

// errShortCapacity is the error of a short connection if its device and slot have as many as they may.
var errShortCapacity = &aun.Error{Code: codes.LimitExceeded,
	Message: "short_connection_capacity_exceeded: a device and slot have at most " + strconv.Itoa(maxShort) +
		" short connections",
	Data: mustJSON(map[string]any{"limit": "short_connections", "max": maxShort,
		"reason": "short_connection_capacity_exceeded"})}
