// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"net/netip"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// This file is the invitation to a group (§7.1, §7.3) by a call. The one by an inbox is in inbox.go; the messages of
// a group's members are in group_message.go and group_form.go.

// Limits of an invitation.
const (
	maxGroupID = 128     // bytes; as the SDK of v02 has it
	maxHost    = 253     // bytes of a host name (RFC 1035 §2.3.4)
	maxAMQP    = 255     // bytes of a short string of AMQP: a virtual host, an exchange, a routing key
	maxToken   = 8 << 10 // bytes of an access token: more does not fit into the first frame accepted by RabbitMQ
	maxPort    = 1<<16 - 1
)

// rabbitMQ is the broker of groups; its version follows behind a colon.
const rabbitMQ = "rabbitmq"

// exchangeTypes are the types of exchanges for a group: each copies a message to all queues bound with the routing key
// of the message. An exchange of the type headers, or of a plugin's, has other rules.
var exchangeTypes = []string{"fanout", "direct", "topic"}

// invitation reads the params of group.
func (r *reader) invitation(params gjson.Result) translate.Call {
	in := &task.Invitation{Dialect: r.version.name}
	if !r.Object(params, "") {
		return joins(in)
	}
	r.protocol(params, in)
	r.inside(params, "group", func(group gjson.Result) { r.group(group, &in.Group) })
	r.inside(params, "server", func(server gjson.Result) { r.brokerServer(server, &in.Server) })
	r.inside(params, "amqp", func(amqp gjson.Result) { r.exchange(amqp, &in.Exchange) })
	return joins(in)
}

// joins returns the call of an invitation.
func joins(in *task.Invitation) translate.Call {
	call := translate.Call{Op: translate.JoinGroup, Invitation: in}
	m := &call.Message
	m.SenderRole, m.SenderID, m.GroupID = task.Leader, in.Group.Leader.AIC, in.Group.ID
	return call
}

// protocol reads the protocol of the broker.
func (r *reader) protocol(v gjson.Result, in *task.Invitation) {
	in.Protocol = r.ownedID(jsonrpc.Member(v, "protocol"), "protocol")
	if name, _, _ := strings.Cut(in.Protocol, ":"); name != rabbitMQ {
		r.Fail("protocol", "protocol must be %q, with or without a version behind a colon", rabbitMQ)
	}
}

// inside calls f with a member, an object. While f is called, paths begin in the object.
func (r *reader) inside(object gjson.Result, name string, f func(gjson.Result)) {
	v := jsonrpc.Member(object, name)
	if !r.Object(v, name) || r.Err != nil {
		return
	}
	outer := r.Prefix
	r.Prefix += name + "."
	f(v)
	r.Prefix = outer
}

func (r *reader) ownedID(v gjson.Result, field string) string {
	return wire.Owned(v, r.RequiredID(v, field))
}

func (r *reader) group(v gjson.Result, g *task.Group) {
	id := jsonrpc.Member(v, "groupId")
	g.ID = wire.Owned(id, r.Required(id, "groupId", maxGroupID))
	r.inside(v, "leader", func(leader gjson.Result) { g.Leader = r.member(leader, "") })
	partners := jsonrpc.Member(v, "partners")
	if wire.Absent(partners) {
		return
	}
	r.Each(partners, "partners", wire.MaxItems, func(partner gjson.Result) {
		if !partner.IsObject() {
			r.Fail("", "a partner must be an object with the member aic")
			return
		}
		g.Partners = append(g.Partners, r.member(partner, "."))
	})
}

// member reads a member of a group. Its paths begin with prefix.
func (r *reader) member(v gjson.Result, prefix string) (m task.GroupMember) {
	m.AIC = r.ownedID(jsonrpc.Member(v, "aic"), prefix+"aic")
	if skills := jsonrpc.Member(v, "skills"); !wire.Absent(skills) {
		r.Each(skills, prefix+"skills", wire.MaxItems, func(one gjson.Result) {
			m.Skills = append(m.Skills, wire.Owned(one, r.ID(one, "")))
		})
	}
	return m
}

// brokerServer reads the place of the broker. Without a virtual host, it is the one made by RabbitMQ itself.
func (r *reader) brokerServer(v gjson.Result, s *task.BrokerServer) {
	host := jsonrpc.Member(v, "host")
	s.Host = wire.Owned(host, r.Required(host, "host", maxHost))
	if !isHost(s.Host) {
		r.Fail("host", "host must be a host name or an IP address, without a port and without brackets")
	}
	port := jsonrpc.Member(v, "port")
	if n := r.Count(port, "port"); n < 1 || n > maxPort {
		r.Fail("port", "port must be an integer from 1 to %d", maxPort)
	} else {
		s.Port = int(n)
	}
	s.VHost = "/"
	if vhost := jsonrpc.Member(v, "vhost"); !wire.Absent(vhost) {
		s.VHost = wire.Owned(vhost, r.Required(vhost, "vhost", maxAMQP))
	}
	token := jsonrpc.Member(v, "accessToken")
	if s.AccessToken = wire.Owned(token, r.Text(token, "accessToken")); r.Err != nil || wire.Absent(token) {
		return
	}
	if n := len(s.AccessToken); n == 0 || n > maxToken {
		r.Err = task.Errorf(task.AccessTokenInvalid,
			"accessToken must be a string of 1 to %d bytes, or be left out for an agent that has a certificate", maxToken).
			WithField(r.Prefix + "accessToken")
	}
}

// isHost reports whether s is an IP address, or may be a host name: names beyond ASCII are written in Punycode.
func isHost(s string) bool {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Zone() == ""
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return s != "" && s[0] != '-' && s[0] != '.'
}

func (r *reader) exchange(v gjson.Result, e *task.Exchange) {
	name := jsonrpc.Member(v, "exchange")
	e.Name = wire.Owned(name, r.Required(name, "exchange", maxAMQP))
	kind := jsonrpc.Member(v, "exchangeType")
	e.Type = r.Text(kind, "exchangeType")
	if wire.Absent(kind) {
		e.Type = exchangeTypes[0]
	}
	known := false
	for _, t := range exchangeTypes {
		if e.Type == t {
			e.Type, known = t, true // no view of the body
		}
	}
	if !known {
		r.Fail("exchangeType", "exchangeType must be one of %v", exchangeTypes)
	}
	key := jsonrpc.Member(v, "routingKey")
	e.RoutingKey = wire.Owned(key, r.Bounded(key, "routingKey", maxAMQP))
}

// dotted reports whether an AIC has the form of v02, the form of an OID. Only this shows the version of an invitation.
func dotted(aic string) bool { return strings.IndexByte(aic, '.') >= 0 }

// AppendMembership implements translate.GroupServer. A Leader of v01.00 finds the members of §7.3 in it, and the AIC
// of §7.1; one of v02.01 its status and groupId. The SDK of v02.01 requires the members of §7.3, too.
func (server) AppendMembership(dst []byte, id jsonrpc.ID, _ *translate.Call, m *task.Membership) []byte {
	dst = jsonrpc.BeginResult(dst, id)
	dst = append(dst, `{"connectionName":`...)
	dst = task.AppendString(dst, m.ConnectionName)
	dst = append(dst, `,"vhost":`...)
	dst = task.AppendString(dst, m.VHost)
	dst = append(dst, `,"nodeName":`...)
	dst = task.AppendString(dst, m.NodeName)
	dst = append(dst, `,"queueName":`...)
	dst = task.AppendString(dst, m.QueueName)
	dst = append(dst, `,"processId":`...)
	dst = task.AppendString(dst, m.ProcessID)
	dst = append(dst, `,"aic":`...)
	dst = task.AppendString(dst, m.AIC)
	dst = append(dst, `,"status":"joining","groupId":`...)
	dst = task.AppendString(dst, m.GroupID)
	return jsonrpc.End(append(dst, '}'))
}
