// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestAUNMissedMessages: a client on the SDK for Node that misses messages hears them when it is back, and everything
// after them. Another device of its AID hears everything, too.
func TestAUNMissedMessages(t *testing.T) {
	t.Parallel()
	s := site.NewAUN(t)
	_, address := site.SampleAgent(t)
	c := s.Config("a2a/legacy http://" + address)
	s.Start(c)
	alice := s.SDK("alice.aid.test")
	site.NoError(t, alice.Start(s.Soon()))
	site.NoError(t, alice.Say(s.Soon(), site.AUNAgent, "one", "x1"))
	site.NoError(t, alice.Until(s.Soon(), "task.completed"))
	site.NoError(t, alice.Say(s.Soon(), site.AUNAgent, "slow 1", "x2"))
	alice.Stop()
	site.Eventually(t, "the agent has answered", func() bool {
		other := s.Client("alice.aid.test")
		other.Slot = "other"
		conn := site.Must(other.Online(s.Soon()))(t)
		defer conn.Cut()
		all := site.Must(conn.Call(s.Soon(), "message.pull", map[string]any{"after_seq": 0, "limit": 200}))(t)
		return strings.Contains(string(all), "slow done")
	})
	crash(s, c)
	site.NoError(t, alice.Start(s.Soon()))
	hears := func(who *aunpeer.SDK, want string) {
		t.Helper()
		site.NoError(t, who.Until(s.Soon(), "task.completed"))
		said := ""
		for _, p := range who.Heard {
			said += p.Event + p.Text + ", "
		}
		if said != want {
			t.Errorf("it has heard %q, want %q", said, want)
		}
	}
	const one, slow, three = "task.started, echo: one, ok, task.completed, ",
		"task.started, tick 0, slow done, task.completed, ", "task.started, echo: three, ok, task.completed, "
	hears(alice, one+slow)
	alice.Heard = nil
	site.NoError(t, alice.Say(s.Soon(), site.AUNAgent, "three", "x3"))
	hears(alice, three)
	second := s.SDK("alice.aid.test")
	second.Device = "device-2"
	site.NoError(t, second.Start(s.Soon()))
	hears(second, one+slow+three)
}
