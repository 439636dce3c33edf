// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestExpect: a connection to a silent broker is closed, but not while the broker is known to take nothing.
func TestExpect(t *testing.T) {
	for name, step := range map[string]struct {
		do     func(c *connection, answered func())
		closed bool
	}{
		"silent":   {func(*connection, func()) {}, true},
		"answered": {func(_ *connection, answered func()) { answered() }, false},
		"blocked":  {func(c *connection, _ func()) { c.block(true) }, false},
		"silent after an alarm": {func(c *connection, _ func()) {
			c.block(true)
			time.Sleep(time.Hour)
			c.block(false)
		}, true},
		"answered after an alarm": {func(c *connection, answered func()) {
			c.block(true)
			time.Sleep(time.Hour)
			c.block(false)
			answered()
		}, false},
		"answered during an alarm": {func(c *connection, answered func()) {
			c.block(true)
			time.Sleep(time.Hour)
			answered()
			c.block(false)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				ours, broker := net.Pipe()
				c := &connection{blocked: make(chan struct{}), socket: newSocket(ours)}
				closed := false
				go func() {
					_, err := broker.Read(make([]byte, 1))
					closed = err != nil
				}()
				answered := c.expect(time.Minute)
				step.do(c, answered)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if closed != step.closed {
					t.Errorf("the connection is closed: %v, want %v", closed, step.closed)
				}
				answered()
				c.kill()
			})
		})
	}
}
