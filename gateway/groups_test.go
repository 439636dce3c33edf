// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// inviting is a dialect in which a get of the task "invitation" is an invitation to the group "g" of its sender, or of
// "other" if this is its session.
type inviting struct{ translate.Server }

func (s inviting) Decode(r *translate.Request) (translate.Call, error) {
	c, err := s.Server.Decode(r)
	if c.Message.TaskID == "invitation" {
		c.Op, c.Invitation = translate.JoinGroup, &task.Invitation{Group: task.Group{ID: "g"}}
		if c.Message.SessionID != "" {
			c.Message.SenderID = c.Message.SessionID
		}
	}
	return c, err
}

func (inviting) AppendMembership(dst []byte, _ jsonrpc.ID, _ *translate.Call, m *task.Membership) []byte {
	return fmt.Appendf(dst, `{"result":{"status":{"state":"joined by %s"}}}`, m.AIC)
}

func (inviting) IsInvitation(method string) bool { return method == "group" }

func (inviting) AppendInvitationError(dst []byte, _ jsonrpc.ID, _ error) []byte {
	return append(dst, `{"error":{"code":-7}}`...)
}

// groups notes a gateway's questions to the groups of its Partner, a member of the group "g" only.
type groups struct {
	asked  []string
	refuse error
}

func (g *groups) ask(format string, args ...any) {
	g.asked = append(g.asked, strings.ReplaceAll(fmt.Sprintf(format, args...), "\x00", " "))
}

func (g *groups) Join(_ context.Context, leader string, in *task.Invitation) (task.Membership, error) {
	g.ask("join %s %s", leader, in.Group.ID)
	return task.Membership{AIC: leader}, g.refuse
}

func (g *groups) Has(_, groupID string) bool { return groupID == "g" }

// Accept does the same with a start as the engine of groups.
func (g *groups) Accept(
	_ context.Context, log string, at task.Position, c *partner.Request,
) (partner.Accepted, error) {
	if c.Group == "" || at.Exists {
		return partner.Accepted{}, nil
	}
	g.ask("follow %s %s %s", log, c.Group, c.Dialect)
	undo := func(context.Context) error { g.ask("undo"); return nil }
	return partner.Accepted{Stored: func() { g.ask("begin") }, Undo: undo}, g.refuse
}

// full is a store without room for new tasks while it is shut.
type full struct {
	replay.Store
	shut bool
}

func (s *full) Append(ctx context.Context, a replay.Append) error {
	if s.shut {
		return replay.ErrFull
	}
	return s.Store.Append(ctx, a)
}

// TestGroups: a start with the name of a group is followed there before it is stored, and only there; an invitation
// must be the Leader's own.
func TestGroups(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &full{Store: replay.NewMemory(replay.Settings{})}
		in := new(groups)
		gatewayWith := func(groups bool, store replay.Store) *gateway.Gateway {
			return newGatewayOver(t, store, func(c *gateway.Config) {
				c.Groups, c.Cards.Groups, c.Callers = groups, groups, []translate.Server{inviting{aip.Server()}}
			}, in)
		}
		without, g := gatewayWith(false, replay.NewMemory(replay.Settings{})), gatewayWith(true, store)
		f := &front{t: t, g: without}
		f.peer = identity.Peer{Proof: identity.ByCertificate, Kind: identity.AICKind, ID: "LEADER"}
		check := func(what, command, taskID, members, want string, asked ...string) {
			t.Helper()
			f.sendTask("rpc", command, taskID, members)
			if diff := cmp.Diff([]string{"reply " + want}, f.seen); diff != "" {
				t.Errorf("%s: answered (-want +got):\n%s", what, diff)
			}
			if diff := cmp.Diff(asked, in.asked); diff != "" {
				t.Errorf("%s: asked (-want +got):\n%s", what, diff)
			}
			f.seen, in.asked = nil, nil
		}
		inGroup, inOther := `,"groupId":"g"`, `,"groupId":"h"`
		check("an invitation without groups", "get", "invitation", "", "-32007")
		check("a group without groups", "start", "before", inOther, "awaiting-input")

		declares := func(brokers string) {
			t.Helper()
			acs, err := f.g.Document(".well-known/acs.json")(t.Context(), "https://gateway.example", "")
			if err != nil || !strings.Contains(string(acs), `"messageQueue":`+brokers) {
				t.Errorf("%v: the ACS does not declare %s: %s", err, brokers, acs)
			}
		}
		declares(`[]`)
		g.TakePart(in)
		f.g = g
		declares(`["rabbitmq:`)
		check("an invitation", "get", "invitation", "", "joined by LEADER", "join LEADER g")
		check("an invitation to another's group", "get", "invitation", `,"sessionId":"OTHER"`, "-32009")
		f.sendTask("group", "get", "t", "") // its params are those of rpc
		if diff := cmp.Diff([]string{"reply -7"}, f.seen); diff != "" {
			t.Errorf("an invitation that cannot be read: answered (-want +got):\n%s", diff)
		}
		f.seen = nil
		check("a start", "start", "t", inGroup, "awaiting-input", "follow tagent LEADER t g aip", "begin")
		check("the start again", "start", "t", inGroup, "awaiting-input")
		check("a continue", "continue", "t", inGroup, "awaiting-input")
		check("a get by its Leader", "get", "t", "", "awaiting-input")
		check("another group", "start", "u", inOther, "-32602")
		check("no group", "start", "u", "", "awaiting-input")
		check("a group for a task without one", "start", "u", inGroup, "awaiting-input")

		store.shut = true
		check("a start that cannot be stored", "start", "v", inGroup, "-32050", "follow tagent LEADER v g aip", "undo")
		store.shut = false
		in.refuse = task.Errorf(task.StoreUnavailable, "no")
		check("a start that cannot be followed", "start", "v", inGroup, "-32603", "follow tagent LEADER v g aip")
		check("what was not started", "get", "v", "", "-32001")

		f.peer.ID = "OTHER"
		check("a get by another Leader", "get", "t", "", "-32001")
	})
}

// TestExecute: a call below the guard is executed in the name of a Leader.
func TestExecute(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGateway(t, nil)
		f := &front{t: t, g: g, peer: identity.Peer{Proof: identity.ByCertificate, Kind: identity.AICKind, ID: "LEADER"}}
		f.sendTask("rpc", "start", "t", "")
		execute := func(leader string, command task.Command) (gateway.Result, error) {
			c := gateway.Call{Leader: leader}
			c.Message = task.Message{Command: command, SenderID: leader, SenderRole: task.Leader, TaskID: "t"}
			return g.Execute(t.Context(), &c, nil)
		}
		if _, err := execute("LEADER", task.Get); err != nil {
			t.Error(err)
		}
		f.sendTask("rpc", "get", "t", "")
		r, err := execute("LEADER", task.Cancel)
		if err != nil || r.New || r.Log != g.LogOf("LEADER", "t") || r.After != 4 {
			t.Errorf("%v: the cancel is answered at %d of %q", err, r.After, r.Log)
		}
		f.sendTask("rpc", "get", "t", "")
		want := []string{"reply awaiting-input", "reply awaiting-input", "reply canceled"}
		if diff := cmp.Diff(want, f.seen); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if _, err := execute("OTHER", task.Cancel); task.KindOf(err) != task.TaskNotFound {
			t.Errorf("a cancel of a task that is not there: %v", err)
		}
	})
}
