// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// TestMeterMethods: each command and each operation is counted under its own name, and every kind has a place.
func TestMeterMethods(t *testing.T) {
	for _, want := range []task.Command{
		task.Get, task.Start, task.Continue, task.Cancel, task.Complete, task.ReStream,
	} {
		c := translate.Call{}
		c.Message.Command = want
		if got := methodNames[methodOf(&c)]; got != string(want) {
			t.Errorf("%s is counted as %s", want, got)
		}
	}
	for op, want := range map[translate.Op]string{
		translate.Command: "unknown", translate.SetWebhook: "set-webhook", translate.GetWebhooks: "get-webhooks",
		translate.DeleteWebhooks: "delete-webhooks", translate.ListTasks: "list",
		translate.ExtendedCard: "extended-card", translate.JoinGroup: "join-group",
	} {
		if got := methodNames[methodOf(&translate.Call{Op: op})]; got != want {
			t.Errorf("operation %d is counted as %s, want %s", op, got, want)
		}
	}
	if n := len(task.Kinds()); n > maxKinds {
		t.Errorf("there are %d kinds, but only %d have a place", n, maxKinds)
	}
}

func TestMeterCounts(t *testing.T) {
	var process Process
	m := process.meterOf("agent")
	dialect := aip.Server()
	m.serve([]translate.Server{dialect})
	x := &exchange{call: Call{Dialect: dialect.Name()}, span: noop.Span{}}
	x.call.Message.Command = task.Start
	err := task.Errorf(task.AgentTimeout, "slow")
	if n := testing.AllocsPerRun(9, func() { m.count(x, nil, time.Second) }); n != 0 {
		t.Errorf("count allocates %v times", n)
	}
	m.count(x, err, time.Second)
	process.meterOf("agent").serve([]translate.Server{dialect}) // by the next configuration
	m.count(x, err, time.Second)
	found := 0
	for c := range m.Calls() {
		found++
		if c.Dialect != dialect.Name() || c.Method != "start" || c.Took.Snapshot().Count != 12 {
			t.Errorf("%s %s: %d calls", c.Dialect, c.Method, c.Took.Snapshot().Count)
		}
		got := make(map[string]uint64)
		for kind, n := range c.ByKind() {
			got[kind] = n
		}
		if len(got) != 2 || got["ok"] != 10 || got[task.AgentTimeout.String()] != 2 {
			t.Errorf("by kind: %v", got)
		}
	}
	if found != 1 {
		t.Errorf("%d methods were called, want 1", found)
	}
}
