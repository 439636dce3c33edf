// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestGroupDeputy has a Leader without an account at the broker invite a Partner, which logs in by its certificate, to
// the exchange of another Leader. It can neither write there nor have a queue bound to it.
//
// Promise: a Leader has the Partner write into, or read from, the group of another Leader
func TestGroupDeputy(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	p := certificates(t)
	_, agent := sampleAgent(t)
	g := newGroup(t, b, "deputy", p.LeaderV1)
	m := makeMember(t)
	cert := m.identify()
	noError(t, b.AddUser(m.aic, ""), g.permit(m.aic))
	g.token, g.port = "", b.TLSPort
	m.config = m.fronting("a2a/legacy http://"+agent, "localhost",
		fmt.Sprintf("allow_exchanges %s %s", g.aic(), g.exchange),
		fmt.Sprintf("tls {\n\t\t\t\tca %s\n\t\t\t\tclient_cert %s %s\n\t\t\t}", p.CA.Cert, cert.Cert, cert.Key))
	m.start(m.config)
	g.join(m)
	queues, err := b.Queues(g.vhost)
	noError(t, err)

	hostile := m.calledBy(p.Leader)
	for _, id := range []string{g.id, "mine"} {
		params := g.invitation(m.aic)
		params["group"].(object)["leader"].(object)["aic"] = string(p.Leader.AIC)
		params["group"].(object)["groupId"] = id
		if _, refused := g.invite(hostile, params); refused == nil || refused.Code != -32020 && refused.Code != -32009 {
			t.Errorf("an invitation to the exchange of another Leader is answered %+v", refused)
		}
		start := startCall("T", "hello forged result")
		start.Message.GroupID = id
		if _, err := hostile.try(start); err == nil {
			t.Error("a task is started in the group")
		}
		if _, err := hostile.try(commandCall(task.Get, "T")); err == nil {
			t.Error("the task is there")
		}
	}
	now, err := b.Queues(g.vhost)
	noError(t, err)
	slices.Sort(queues)
	slices.Sort(now)
	if !slices.Equal(now, queues) {
		t.Errorf("the queues are %v, and were %v", now, queues)
	}
	g.say("start", "T", "hello")
	g.waitForState(m.aic, "T", "awaiting-completion")
	for _, heard := range g.of(m.aic, "T") {
		if says := heard.says(); says != "" && says != "echo: hello" {
			t.Errorf("the group hears %s", heard.raw)
		}
	}
}
