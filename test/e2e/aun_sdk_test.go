// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// sdk returns a client of an AID that reads its inbox as the SDK for Node does.
func (s *aunSite) sdk(aid string) *aunpeer.SDK { return &aunpeer.SDK{Client: s.client(aid)} }

// TestAUNMissedMessages: a client on the SDK for Node that misses messages hears them when it is back, and everything
// after them. Another device of its AID hears everything, too.
func TestAUNMissedMessages(t *testing.T) {
	t.Parallel()
	s := newAUN(t)
	_, address := sampleAgent(t)
	c := s.config("a2a/legacy http://" + address)
	s.start(c)
	alice := s.sdk("alice.aid.test")
	noError(t, alice.Start(s.soon()))
	noError(t, alice.Say(s.soon(), aunAgent, "one", "x1"))
	noError(t, alice.Until(s.soon(), "task.completed"))
	noError(t, alice.Say(s.soon(), aunAgent, "slow 1", "x2"))
	alice.Stop()
	eventually(t, "the agent has answered", func() bool {
		other := s.client("alice.aid.test")
		other.Slot = "other"
		conn := must(other.Online(s.soon()))(t)
		defer conn.Cut()
		all := must(conn.Call(s.soon(), "message.pull", map[string]any{"after_seq": 0, "limit": 200}))(t)
		return strings.Contains(string(all), "slow done")
	})
	s.crash(c)
	noError(t, alice.Start(s.soon()))
	hears := func(who *aunpeer.SDK, want string) {
		t.Helper()
		noError(t, who.Until(s.soon(), "task.completed"))
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
	noError(t, alice.Say(s.soon(), aunAgent, "three", "x3"))
	hears(alice, three)
	second := s.sdk("alice.aid.test")
	second.Device = "device-2"
	noError(t, second.Start(s.soon()))
	hears(second, one+slow+three)
}
