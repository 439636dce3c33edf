// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// swift is a link confirming everything at once.
type swift struct {
	link
	done chan func(error)
}

func newSwift(t testing.TB) *swift {
	l := &swift{done: make(chan func(error), broker.MaxUnconfirmed)}
	go func() {
		for done := range l.done {
			done(nil)
		}
	}()
	t.Cleanup(func() { close(l.done) })
	return l
}

func (l *swift) Publish(_ broker.Message, done func(error)) error { l.done <- done; return nil }

// BenchmarkTasks has tasks started and completed by the group, 64 at a time. Each is two commands and four
// publications.
func BenchmarkTasks(b *testing.B) {
	script := func(*agent.Turn) []step {
		return []step{{0, agent.Report{State: task.AwaitingCompletion, Full: true,
			Products: []task.Product{{ID: "p", DataItems: []task.DataItem{task.Text("hello")}}}}}}
	}
	w := newWorld(b, script, func(c *gateway.Config) {
		c.Partner.MaxTasks, c.Memory = 1<<20, limit.Limits{Total: 1 << 30, PerLeader: 1 << 30}
	})
	w.group.connect(newSwift(b))
	slots := make(chan struct{}, 64)
	send := func(command, id string) {
		slots <- struct{}{}
		body := fmt.Appendf(nil, `{"type":"message","id":%q,"sentAt":"2025-09-01T11:59:45+08:00","senderRole":"leader",`+
			`"senderId":%q,"command":%q,"dataItems":[{"type":"text","text":"hello"}],"taskId":%q,"groupId":"g",`+
			`"sessionId":"s"}`, command+id, leaderAIC, command, id)
		w.group.read(&broker.Delivery{Body: body}, func(string) string { return "" }, func() { <-slots })
	}
	b.ReportAllocs()
	const ahead = 1000
	for i := 0; b.Loop(); i++ {
		send("start", fmt.Sprint("t", i))
		if i >= ahead {
			send("complete", fmt.Sprint("t", i-ahead))
		}
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
	_ = w.group.flush(b.Context())
}
