// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// invitationV0202 is the example of v02.02 §7.3.
const invitationV0202 = `{"type":"group-invitation","id":"invite-1001","sentAt":"2025-09-01T12:00:00+08:00",` +
	`"senderRole":"leader","senderId":"1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4","groupId":"group123",` +
	`"protocol":"rabbitmq:4.2","invitationToken":"dGhpcyBpcyBhIHRlc3QgdG9rZW4","expiresAt":"2025-09-01T04:05:00Z",` +
	`"group":{"groupId":"group123","leader":{"aic":"1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"},"partners":[` +
	`{"aic":"1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU1"},{"aic":"1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU2"}]},` +
	`"amqp":{"exchange":"group_1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4_group123","exchangeType":"fanout",` +
	`"routingKey":""}}`

func TestInboxInvitation(t *testing.T) {
	const leader = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	body := []byte(invitationV0202)
	got, is, err := ReadInboxInvitation(body, jsonrpc.Limits{})
	if err != nil || !is {
		t.Fatal(is, err)
	}
	clear(body) // nothing is a view of it
	want := InboxInvitation{
		Token: "dGhpcyBpcyBhIHRlc3QgdG9rZW4", LeaderAIC: leader, GroupID: "group123",
		ExpiresAt: time.Date(2025, 9, 1, 4, 5, 0, 0, time.UTC),
		Call: translate.Call{Op: translate.JoinGroup, Invitation: &task.Invitation{
			Protocol: "rabbitmq:4.2", Dialect: "aip/2",
			Group: task.Group{ID: "group123", Leader: task.GroupMember{AIC: leader}, Partners: []task.GroupMember{
				{AIC: "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU1"}, {AIC: "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU2"}}},
			Exchange: task.Exchange{Name: "group_" + leader + "_group123", Type: "fanout"},
		}},
	}
	m := &want.Call.Message
	m.SenderRole, m.SenderID, m.GroupID = task.Leader, leader, "group123"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the invitation (-want +got):\n%s", diff)
	}
}

// TestInboxRefusal: a refusal has the members of the example of v02.02 §7.3, without the deprecated one.
func TestInboxRefusal(t *testing.T) {
	in := &InboxInvitation{Token: `t"`, GroupID: "g"}
	at := time.Date(2025, 9, 1, 4, 0, 2, 0, time.UTC)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{task.Errorf(task.InvitationRejected, "no").WithField("params.x"), `{"code":-32020,"message":` +
			`"Invitation rejected by partner policy","data":{"errorType":"INVITATION_REJECTED","details":"no"}}`},
		{task.Errorf(task.ConnectionFailed, "late").WithData("host", "h"), `{"code":-32021,"message":"Connection failed",` +
			`"data":{"errorType":"CONNECTION_FAILED","details":"late"}}`},
		{bytes.ErrTooLarge, `{"code":-32603,"message":"Internal server error","data":{"errorType":"INTERNAL"}}`},
	} {
		got := string(AppendInboxRefusal(nil, "e", at, "P", in, tt.err))
		want := `{"type":"group-invitation-error","id":"e","sentAt":"2025-09-01T12:00:02+08:00","senderRole":"partner",` +
			`"senderId":"P","groupId":"g","invitationToken":"t\"","error":` + tt.want + `}`
		if got != want {
			t.Errorf("the refusal is\n%s, want\n%s", got, want)
		}
	}
	body := []byte(strings.Replace(invitationV0202, `"senderId":`, `"x":`, 1))
	old, is, err := ReadInboxInvitation(body, jsonrpc.Limits{})
	if !is || err != nil {
		t.Fatal(is, err)
	}
	got := string(AppendInboxRefusal(nil, "e", at, "P", &old, bytes.ErrTooLarge))
	if !strings.Contains(got, `"partnerAic":"P"`) {
		t.Errorf("the refusal of an invitation of v02.01 is %s", got)
	}
}

func FuzzInboxInvitation(f *testing.F) {
	f.Add([]byte(invitationV0202))
	f.Add([]byte(`{"type":"group-invitation","invitationToken":"t","expiresAt":"x","group":{"leader":{"aic":"L"}}}`))
	f.Add([]byte(`{"type":"group-invitation-error"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		in, is, err := ReadInboxInvitation(slices.Clone(body), jsonrpc.Limits{})
		inv := in.Call.Invitation
		switch {
		case err != nil:
			if k := task.KindOf(err); !is || inv != nil || k != task.InvalidParams && k != task.ParseError {
				t.Fatal(is, err)
			}
			if len(in.Token) > 16 && strings.Contains(err.Error(), in.Token) {
				t.Fatal("the error has the token")
			}
		case is:
			if in.Token == "" || len(in.Token) > maxInvitationToken || in.LeaderAIC == "" || in.GroupID == "" ||
				in.ExpiresAt.IsZero() || inv.Exchange.Name == "" || inv.Group.Leader.AIC != in.LeaderAIC {
				t.Fatalf("%+v", in)
			}
		}
		refused := AppendInboxRefusal(nil, "id", time.Unix(0, 0), "P", &in, err)
		if !json.Valid(refused) {
			t.Fatalf("%s", refused)
		}
	})
}
