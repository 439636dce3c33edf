// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"encoding/json"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// inboxPartner serves a Partner by rule that is invited by its inbox. It refuses invitations whose publisher it is not
// told, or, as that of the reference before 2.2, does not look.
func inboxPartner(t *testing.T, wantsUserID bool) *wildServed {
	vhost, aic := inboxWorld(t)
	w := newWildWork()
	channel, err := inboxChannel(t, vhost, aic)
	site.NoError(t, err, channel.ExchangeDeclare("inbox.topic", "topic", true, false, false, false, nil))
	invitations, err := inboxListen(channel, "inbox_"+aic, "inbox_"+aic, "inbox.topic")
	site.NoError(t, err)
	go func() {
		for d := range invitations { // until the connection is closed
			var i inboxMessage
			if json.Unmarshal(d.Body, &i) != nil || i.Type != "group-invitation" {
				continue
			}
			m := &inboxMember{channel: channel, aic: aic, role: "partner", user: aic, group: i.Group.GroupID,
				exchange: i.AMQP.Exchange}
			if wantsUserID && d.UserId != i.Group.Leader.AIC {
				m.publish("inbox.topic", "inbox_"+i.Group.Leader.AIC, site.Object{"type": "group-invitation-error",
					"invitationToken": i.InvitationToken, "error": site.Object{"code": -32020, "message": "Invitation rejected"}})
				continue
			}
			m.join(w)
		}
	}()
	return &wildServed{at: vhost + " " + aic, told: w.told}
}

// join joins a group, and works in it until the connection is closed.
func (m *inboxMember) join(w *wildWork) {
	commands, err := inboxListen(m.channel, m.exchange+"_"+m.aic, "", m.exchange)
	if err != nil {
		return
	}
	m.publish(m.exchange, "",
		site.Object{"type": "group-mgmt-result", "status": site.Object{"connected": true, "muted": false}})
	go func() {
		var done wildDone
		for d := range commands {
			var c inboxMessage
			if json.Unmarshal(d.Body, &c) != nil || c.Type != "task-command" {
				continue
			}
			state := func(done wildDone) {
				result := site.Object{"type": "task-result", "taskId": c.TaskID, "sessionId": c.SessionID,
					"status": site.Object{"state": done.state, "stateChangedAt": c.SentAt}}
				if done.product != "" {
					result["products"] = []site.Object{{"id": "product-1",
						"dataItems": []site.Object{{"type": "text", "text": done.product}}}}
				}
				m.publish(m.exchange, "", result)
			}
			switch c.Command {
			case "start":
				state(wildDone{state: "accepted"})
				state(wildDone{state: "working"})
				done = w.do(textOf(c.DataItems))
			case "complete":
				done.state = "completed"
			}
			state(done)
		}
	}()
}
