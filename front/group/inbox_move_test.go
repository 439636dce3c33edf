// SPDX-License-Identifier: Apache-2.0

package group

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
)

// inboxLinks returns the number of links of the inbox.
func (b *brokers) inboxLinks() (n int) {
	b.change(func() {
		for _, l := range b.byName["a.example"].links {
			if l.config.Queue == inboxPrefix+testAgent {
				n++
			}
		}
	})
	return n
}

// TestInboxMoves: of two processes, the owner of the shard of an inbox alone reads it.
func TestInboxMoves(t *testing.T) {
	inBubble(t, func(m *memberships) {
		shards := replaytest.NewShards(4)
		m.config.Inbox = &Inbox{Host: "a.example", Port: 5671, VHost: "acps"}
		nodes, engines, _, end := m.twoProcesses(shards)
		defer end()
		at := engines[0].inboxShard(testPartner)
		for i := range 4 {
			if i != at {
				shards.Assign(i, nodes[i%2], false)
			}
		}
		synctest.Wait()
		if n := m.inboxLinks(); n != 0 {
			m.Errorf("%d links read an inbox whose shard has no owner", n)
		}
		for i := range 4 {
			owner := i % 2
			shards.Assign(at, nodes[owner], false)
			synctest.Wait()
			for k, e := range engines {
				mail := e.Counts()[testPartner].Mail
				if mail.Open != (k == owner) || mail.Connected != (k == owner) {
					m.Errorf("process %d of which %d is the owner: %+v", k, owner, mail)
				}
			}
			if n := m.inboxLinks(); n != 1 {
				m.Errorf("%d links read the inbox", n)
			}
		}
	})
}

// TestInboxConnectedAgain: while the broker fails, the inbox is tried again with growing pauses.
func TestInboxConnectedAgain(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.config.Inbox = &Inbox{Host: "a.example", Port: 5671, VHost: "acps"}
		fail := func(err *broker.Error) { m.change(func() { m.byName["a.example"].fails = err }) }
		fail(brokerError(broker.Unreachable, "a.example", "connection refused"))
		m.stop()
		m.start()
		m.pass(10 * time.Minute)
		if n := len(m.asked()); n < 20 || n > 80 {
			m.Errorf("in ten minutes there were %d attempts", n)
		}
		fail(nil)
		m.pass(longestRetry * 2)
		if mail := m.engine.Counts()[testPartner].Mail; !mail.Connected || m.inboxLinks() != 1 {
			m.Errorf("the inbox is not read: %+v", mail)
		}
		c := m.asked()[0]
		if c.Queue != "inbox_AGENT" || c.Exchange != "inbox.topic" || c.RoutingKey != "inbox_AGENT" || !c.Address.TLS ||
			c.Prefetch != inboxPrefetch || c.Login != broker.Certificate(testAgent) {
			m.Errorf("the link is %+v", c)
		}
	})
}

// TestParseInbox reads URLs, and writes them as an ACS has them.
func TestParseInbox(t *testing.T) {
	for url, want := range map[string]string{
		"amqps://MQ.example.com/acps":       "amqps://mq.example.com:5671/acps",
		"amqps://mq.example.com:5673/a%2Fb": "amqps://mq.example.com:5673/a%2Fb",
		"amqps://mq.example.com":            "amqps://mq.example.com:5671/%2F",
		"amqps://[fd00:20::5]/acps":         "amqps://[fd00:20::5]:5671/acps",
		"amqp://mq.example.com/acps":        "",
		"amqps://a:b@mq.example.com/acps":   "",
		"amqps://mq.example.com/a/b":        "",
		"amqps://mq.example.com/a?x=y":      "",
		"amqps://mq.example.com:0/a":        "",
		"amqps:///acps":                     "",
		"mq.example.com":                    "",
	} {
		at, err := ParseInbox(url)
		if (err == nil) != (want != "") || err == nil && at.URL() != want {
			t.Errorf("%s: %v, %v, want %q", url, at, err, want)
		}
	}
}
