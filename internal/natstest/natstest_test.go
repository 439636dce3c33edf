// SPDX-License-Identifier: Apache-2.0

package natstest

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// TestServer starts a server, kills it, and starts it again.
func TestServer(t *testing.T) {
	c, err := Start(1, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := c.Servers[0]
	for range 2 {
		nc, err := nats.Connect(c.URL())
		if err != nil {
			t.Fatal(err)
		}
		if got := nc.ConnectedServerVersion(); got != "2.15.2" {
			t.Errorf("the server has the version %s", got)
		}
		nc.Close()
		s.Kill()
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		if err := c.Ready(); err != nil {
			t.Fatal(err)
		}
	}
}
