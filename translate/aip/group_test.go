// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// anInvitation is the invitation of vector 25.
var anInvitation = task.Invitation{
	Protocol: "rabbitmq:4.0",
	Group: task.Group{
		ID:     "group123",
		Leader: task.GroupMember{AIC: "agent-leader-aic", Skills: []string{"task-management", "group-management"}},
		Partners: []task.GroupMember{
			{AIC: "agent-partner-1", Skills: []string{"task-processing", "data-fetching"}},
			{AIC: "agent-partner-2", Skills: []string{"task-processing", "report-generation"}},
		},
	},
	Server: task.BrokerServer{Host: "mq.example.com", Port: 5672, VHost: "/vhost-leader-aic",
		AccessToken: "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9..."},
	Exchange: task.Exchange{Name: "group-exchange-123", Type: "fanout"},
	Dialect:  "aip",
}

// invite decodes an invitation.
func invite(t *testing.T, s translate.Server, body []byte) (translate.Call, error) {
	t.Helper()
	return s.Decode(&translate.Request{Request: request(t, body), HTTP: "POST", Groups: true})
}

func invitation(t *testing.T, body []byte) {
	call, err := invite(t, Server(), body)
	if err != nil {
		t.Fatal(err)
	}
	want := translate.Call{Op: translate.JoinGroup, Invitation: &anInvitation}
	want.Message = task.Message{SenderRole: task.Leader, SenderID: "agent-leader-aic", GroupID: "group123"}
	if d := cmp.Diff(want, call); d != "" {
		t.Error(d)
	}
}

// membership: the answer has the members of v01.00, and those of §7.1, v02.01 and its SDK beside them.
func membership(t *testing.T, body []byte) {
	m := task.Membership{ConnectionName: "partner-1-connection-20250901", VHost: "/vhost-leader-aic",
		NodeName: "rabbit@mq-node-1", QueueName: "partner-1-queue-abc123", ProcessID: "partner-1-process-12345",
		AIC: "agent-partner-1", GroupID: "group123"}
	want := value(t, body)
	maps.Copy(want.(map[string]any)["result"].(map[string]any),
		map[string]any{"aic": "agent-partner-1", "status": "joining", "groupId": "group123"})
	for _, s := range []translate.Server{Server(), ServerV2("agent-partner-1")} {
		out := s.(translate.GroupServer).AppendMembership([]byte(" "), jsonrpc.ID(`"1"`), nil, &m)
		if d := cmp.Diff(want, value(t, out)); d != "" {
			t.Errorf("%s: %s", s.Name(), d)
		}
	}
}

// invited returns the body of an invitation with other values at some paths. The value absence{} removes a member.
func invited(t *testing.T, changes object) []byte {
	t.Helper()
	v := value(t, vector(t, "25-group-invite.request.json")).(map[string]any)
	for path, to := range changes {
		at, keys := v["params"].(map[string]any), strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			at = at[key].(map[string]any)
		}
		if at[keys[len(keys)-1]] = to; to == (any)(absence{}) {
			delete(at, keys[len(keys)-1])
		}
	}
	return params("group", v["params"])
}

func TestInvitation(t *testing.T) {
	const dotted = "1.2.156.3088.1.34C2.478BDF.3GF546.1.0JK2"
	for name, tt := range map[string]struct {
		changes object
		want    func(*task.Invitation)
	}{
		"any version": {object{"protocol": "rabbitmq"}, func(in *task.Invitation) { in.Protocol = "rabbitmq" }},
		"by certificate": {object{"server.accessToken": nil, "server.port": 5671.0},
			func(in *task.Invitation) { in.Server.AccessToken, in.Server.Port = "", 5671 }},
		"no token": {object{"server.accessToken": absence{}},
			func(in *task.Invitation) { in.Server.AccessToken = "" }},
		"user": {object{"server.accessToken": "u:p:w"},
			func(in *task.Invitation) { in.Server.AccessToken = "u:p:w" }},
		"default vhost": {object{"server.vhost": nil}, func(in *task.Invitation) { in.Server.VHost = "/" }},
		"IPv6": {object{"server.host": "2001:db8::1"},
			func(in *task.Invitation) { in.Server.Host = "2001:db8::1" }},
		"no partners":      {object{"group.partners": nil}, func(in *task.Invitation) { in.Group.Partners = nil }},
		"empty partners":   {object{"group.partners": []any{}}, func(in *task.Invitation) { in.Group.Partners = nil }},
		"no skills":        {object{"group.leader.skills": nil}, func(in *task.Invitation) { in.Group.Leader.Skills = nil }},
		"no exchange type": {object{"amqp.exchangeType": nil}, func(*task.Invitation) {}},
		"topic": {object{"amqp.exchangeType": "topic", "amqp.routingKey": "group.all"},
			func(in *task.Invitation) { in.Exchange.Type, in.Exchange.RoutingKey = "topic", "group.all" }},
		"no routing key": {object{"amqp.routingKey": absence{}}, func(*task.Invitation) {}},
		"unknown members": {object{"x": 1, "group.x": []any{}, "group.leader.x": 1, "server.x": "", "amqp.x": object{}},
			func(*task.Invitation) {}},
		"v02": {object{"group.leader.aic": dotted},
			func(in *task.Invitation) { in.Dialect, in.Group.Leader.AIC = "aip/2", dotted }},
	} {
		t.Run(name, func(t *testing.T) {
			want := anInvitation
			tt.want(&want)
			body := invited(t, tt.changes)
			s := Server()
			if v2 := ServerV2("p"); v2.Matches(&translate.Request{Request: request(t, body)}) {
				s = v2
			}
			call, err := invite(t, s, body)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&want, call.Invitation); d != "" || call.Message.SenderID != want.Group.Leader.AIC {
				t.Error(call.Message.SenderID, d)
			}
		})
	}
}

// TestInvitationRefused: every required field of an invitation is checked, and the error names it.
func TestInvitationRefused(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	partners := func(n int) (list []any) {
		for range n {
			list = append(list, object{"aic": "a"})
		}
		return list
	}
	for _, tt := range []struct {
		path  string
		value any
		field string // if it differs from path
	}{
		{"protocol", absence{}, ""}, {"protocol", "", ""}, {"protocol", 4, ""}, {"protocol", "kafka:4.0", ""},
		{"protocol", "rabbitmq4", ""}, {"protocol", "RabbitMQ:4.0", ""},
		{"group", absence{}, ""}, {"group", "g", ""}, {"group", []any{}, ""},
		{"group.groupId", absence{}, ""}, {"group.groupId", "", ""}, {"group.groupId", 7, ""},
		{"group.groupId", long(129), ""}, {"group.groupId", "a\nb", ""},
		{"group.leader", nil, ""}, {"group.leader", "aic", ""},
		{"group.leader.aic", nil, ""}, {"group.leader.aic", "", ""}, {"group.leader.aic", long(257), ""},
		{"group.leader.skills", "s", ""}, {"group.leader.skills", []any{1}, "group.leader.skills[0]"},
		{"group.partners", object{}, ""}, {"group.partners", []any{"aic"}, "group.partners[0]"},
		{"group.partners", []any{object{"aic": "a"}, object{}}, "group.partners[1].aic"},
		{"group.partners", []any{object{"aic": "a", "skills": []any{"s", nil, object{}}}}, "group.partners[0].skills[2]"},
		{"group.partners", partners(1001), ""},
		{"server", nil, ""},
		{"server.host", nil, ""}, {"server.host", "", ""}, {"server.host", long(254), ""}, {"server.host", "a b", ""},
		{"server.host", "mq.example.com:5672", ""}, {"server.host", "[::1]", ""}, {"server.host", "fe80::1%eth0", ""},
		{"server.host", "u@mq.example.com", ""}, {"server.host", "-mq", ""}, {"server.host", ".", ""},
		{"server.host", "mq.example.com/x", ""}, {"server.host", "邮局.cn", ""},
		{"server.port", nil, ""}, {"server.port", 0, ""}, {"server.port", -1, ""}, {"server.port", 65536, ""},
		{"server.port", "5672", ""}, {"server.port", 5672.5, ""}, {"server.port", 1e300, ""},
		{"server.vhost", 1, ""}, {"server.vhost", "", ""}, {"server.vhost", long(256), ""},
		{"server.accessToken", 7, ""}, {"server.accessToken", object{}, ""},
		{"amqp", absence{}, ""},
		{"amqp.exchange", nil, ""}, {"amqp.exchange", "", ""}, {"amqp.exchange", long(256), ""},
		{"amqp.exchangeType", "headers", ""}, {"amqp.exchangeType", "", ""}, {"amqp.exchangeType", 1, ""},
		{"amqp.routingKey", 1, ""}, {"amqp.routingKey", long(256), ""},
	} {
		want := "params." + tt.path
		if tt.field != "" {
			want = "params." + tt.field
		}
		for _, s := range []translate.Server{Server(), ServerV2("p")} {
			_, err := invite(t, s, invited(t, object{tt.path: tt.value}))
			e, ok := err.(*task.Error) //nolint:errorlint // decode returns no other
			if !ok || e.Kind != task.InvalidParams || e.Field != want || e.Detail == "" {
				t.Errorf("%s %v: %v", tt.path, tt.value, err)
			}
		}
	}
	for _, token := range []string{"", long(maxToken + 1)} {
		_, err := invite(t, Server(), invited(t, object{"server.accessToken": token}))
		if task.KindOf(err) != task.AccessTokenInvalid || strings.Contains(err.Error(), "xx") {
			t.Errorf("a token of %d bytes: %v", len(token), err)
		}
	}
	for _, p := range []any{nil, []any{}, "x"} {
		if _, err := invite(t, Server(), params("group", p)); task.KindOf(err) == task.Internal {
			t.Errorf("params %v: %v", p, err)
		}
	}
}

// TestInvitationVersions tests both paths, and the recognition of the version.
func TestInvitationVersions(t *testing.T) {
	v1, v2 := Server(), ServerV2("p")
	if _, ok := v1.Route("POST", "group/rpc"); ok {
		t.Error("group/rpc is a path of v01.00")
	}
	if r, ok := v2.Route("POST", "group/rpc"); !ok || r.Method != "group" || r.Allow != "" {
		t.Errorf("group/rpc: %+v, %v", r, ok)
	}
	if r, ok := v2.Route("GET", "group/rpc"); !ok || r.Allow != "POST" {
		t.Errorf("GET group/rpc: %+v, %v", r, ok)
	}
	for _, s := range []translate.Server{Server(), ServerV2("p")} {
		req := translate.Request{Request: request(t, vector(t, "25-group-invite.request.json")), HTTP: "POST"}
		if _, err := s.Decode(&req); task.KindOf(err) != task.GroupNotSupported {
			t.Errorf("%s without groups: %v", s.Name(), err)
		}
	}
}

// TestInvitationProperties: an invitation has the properties of every other request.
func TestInvitationProperties(t *testing.T) {
	bodies := [][]byte{vector(t, "25-group-invite.request.json"), invited(t, object{"server.accessToken": nil,
		"group.leader.aic": "1.2.156.3088"})}
	for _, s := range []translate.Server{Server(), ServerV2("p")} {
		translatetest.Server(t, inGroups{s}, bodies...)
	}
}

// inGroups is a Server of a Partner in groups.
type inGroups struct{ translate.Server }

func (s inGroups) Decode(req *translate.Request) (translate.Call, error) {
	req.Groups = true
	return s.Server.Decode(req)
}

func FuzzInvitation(f *testing.F) {
	f.Add(vector(f, "25-group-invite.request.json"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"group","params":{"protocol":"rabbitmq","group":{"groupId":"g",` +
		`"leader":{"aic":"1.2"}},"server":{"host":"::1","port":1},"amqp":{"exchange":"e"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, bad := jsonrpc.Parse(slices.Clone(body), jsonrpc.Limits{})
		if bad != nil {
			return
		}
		req.Method = "group"
		s := Server()
		call, err := s.Decode(&translate.Request{Request: req, HTTP: "POST", Groups: true})
		if err != nil {
			if k := task.KindOf(err); k != task.InvalidParams && k != task.InvalidRequest && k != task.AccessTokenInvalid {
				t.Fatal(err)
			}
			return
		}
		in := call.Invitation
		if in.Server.Port < 1 || in.Server.Port > 65535 || in.Server.Host == "" || in.Server.VHost == "" ||
			in.Group.ID == "" || in.Group.Leader.AIC == "" || in.Exchange.Name == "" || in.Exchange.Type == "" {
			t.Fatalf("%+v", in)
		}
	})
}

// TestInvitationsOfTheSDK reads the invitations of the SDKs of v02.00 and v02.01.
func TestInvitationsOfTheSDK(t *testing.T) {
	const leader, partner = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU1"
	for exchange, token := range map[string]any{
		"group-broadcast-group-1": "guest:guest", "group_" + leader + "_group-1": nil,
	} {
		call, err := invite(t, ServerV2(partner), params("group", object{
			"protocol": "rabbitmq:4.0",
			"group": object{"groupId": "group-1", "leader": object{"aic": leader},
				"partners": []any{object{"aic": partner}}},
			"server": object{"host": "localhost", "port": 5671, "vhost": "acps", "accessToken": token},
			"amqp":   object{"exchange": exchange, "exchangeType": "fanout", "routingKey": ""},
		}))
		if err != nil {
			t.Fatal(err)
		}
		password, _ := token.(string)
		want := &task.Invitation{Protocol: "rabbitmq:4.0", Dialect: "aip/2",
			Group: task.Group{ID: "group-1", Leader: task.GroupMember{AIC: leader},
				Partners: []task.GroupMember{{AIC: partner}}},
			Server:   task.BrokerServer{Host: "localhost", Port: 5671, VHost: "acps", AccessToken: password},
			Exchange: task.Exchange{Name: exchange, Type: "fanout"}}
		if d := cmp.Diff(want, call.Invitation); d != "" {
			t.Error(d)
		}
	}
	// Its models: the required members of a result, and the form of an error.
	out := ServerV2(partner).(translate.GroupServer).AppendMembership(nil, jsonrpc.ID("1"), nil, &task.Membership{})
	for _, member := range []string{"connectionName", "vhost", "nodeName", "queueName", "processId", "status", "groupId"} {
		if _, ok := value(t, out).(map[string]any)["result"].(map[string]any)[member].(string); !ok {
			t.Errorf("%s is no string in %s", member, out)
		}
	}
	refusal := task.Errorf(task.ConnectionFailed, "timeout").WithData("host", "mq").WithData("port", 5671)
	sameJSON(t, []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Connection failed","data":{"errorType":`+
		`"CONNECTION_FAILED","details":{"host":"mq","port":5671,"reason":"timeout"}}}}`),
		ServerV2(partner).AppendError(nil, jsonrpc.ID("1"), refusal))
	refusal = task.Errorf(task.InvitationRejected, "no")
	sameJSON(t, []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Invitation rejected by partner policy",`+
		`"data":{"errorType":"INVITATION_REJECTED","details":"no"}}}`),
		ServerV2(partner).AppendError(nil, jsonrpc.ID("1"), refusal))
}

// TestInvitationErrors: every error of an invitation has an errorType, and no other method's is changed.
func TestInvitationErrors(t *testing.T) {
	for _, s := range []translate.Server{Server(), ServerV2("P")} {
		g := s.(translate.GroupServer)
		if !g.IsInvitation("group") || g.IsInvitation("rpc") || g.IsInvitation("") {
			t.Error("only group is an invitation")
		}
		for kind := task.Internal; kind.Valid(); kind++ {
			err := task.Errorf(kind, "why").WithField("params.group")
			type response struct {
				Error struct {
					Code int
					Data struct{ ErrorType, Field string }
				}
			}
			plain := decodeJSON[response](t, string(s.AppendError(nil, jsonrpc.ID("1"), err)))
			got := decodeJSON[response](t, string(g.AppendInvitationError(nil, jsonrpc.ID("1"), err)))
			want := plain.Error.Data.ErrorType
			if want == "" {
				want = strings.ToUpper(strings.ReplaceAll(kind.String(), "-", "_"))
			}
			if got.Error.Data.ErrorType != want || got.Error.Code != plain.Error.Code ||
				got.Error.Data.Field != plain.Error.Data.Field {
				t.Errorf("%s: %s of %v is %+v, and otherwise %+v", s.Name(), want, kind, got, plain)
			}
		}
	}
}
