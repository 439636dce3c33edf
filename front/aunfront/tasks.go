// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// task answers a request for a method of task.*.
func (s *Session) task(ctx context.Context, r *request) {
	var err error
	switch r.Method {
	case codec.Create:
		err = s.create(ctx, r)
	case codec.Get:
		err = s.get(ctx, r)
	case codec.SendInput, codec.Cancel:
		err = s.command(ctx, r)
	case codec.List:
		err = s.list(ctx, r)
	case codec.Children:
		err = s.children(ctx, r)
	case codec.Delegate:
		err = s.delegate(ctx, r)
	case codec.Subscribe:
		err = s.subscribe(ctx, r)
	case codec.Unsubscribe:
		err = s.unsubscribe(r)
	case codec.Accept, codec.Reject, codec.Complete, codec.Fail:
		err = s.work(ctx, r)
	default:
		err = aun.Errorf(codes.MethodNotFound, "Method not found")
	}
	if err != nil && ctx.Err() == nil {
		s.fail(r, err)
	}
}

// call is the task of a request.
type call struct {
	id    string
	entry *entry // nil if the client is the assignee, and the owner speaks another dialect
	agent *Agent
	role  role
	peer  identity.Peer // as which the agent's gateway is called: the owner's

	starts  bool // the request starts it, and entry is to be stored with it
	unknown bool // no agent is known to have the task
}

// find finds the task named by a request. For a client without the right to see it, a task is missing.
func (s *Session) find(ctx context.Context, r *request) (c call, err error) {
	id := r.Params.Get("task_id")
	if id.Type != gjson.String || id.Str == "" {
		return c, task.Errorf(task.InvalidParams, "task_id is missing; it must be a string").WithField("params.task_id")
	}
	return s.findFor(ctx, r.Method, strings.Clone(id.Str))
}

// findToCancel finds the task named by a cancel: by its id, or by the thread of its messages.
func (s *Session) findToCancel(ctx context.Context, r *request) (c call, err error) {
	name, id := r.Params.Get("thread_id").Str, r.Params.Get("task_id")
	if id.Type != gjson.Null || name == "" {
		if c, err = s.find(ctx, r); err != nil || !c.unknown {
			return c, err
		}
		name = id.Str
	}
	threads, ok := s.front.service("message").(ThreadService)
	if _, denied := s.decider(r.Method, name); denied || !ok {
		return s.findFor(ctx, r.Method, name)
	}
	last, err := threads.TaskOf(ctx, s, r.Params.Get("to").Str, name)
	if err != nil {
		return c, err
	}
	return s.findFor(ctx, r.Method, cmp.Or(last, name))
}

// findFor finds the task of a method.
func (s *Session) findFor(ctx context.Context, method, id string) (call, error) {
	decider, denied := s.decider(method, id)
	if denied {
		return s.unknown(id, decider), nil
	}
	if len(id) > maxTaskID || strings.Contains(id, logname.Separator) {
		return call{}, errGone("")
	}
	c, err := s.findID(ctx, id)
	if decider != nil && task.KindOf(err) == task.TaskNotFound {
		return s.unknown(id, decider), nil
	}
	return c, err
}

// maxTaskID is the length of the longest id of a task, in bytes.
const maxTaskID = 256

func (s *Session) findID(ctx context.Context, id string) (c call, err error) {
	e, err := s.front.config.Index.get(ctx, id)
	if err != nil {
		return c, err
	}
	switch {
	case e == nil && s.worksOn(id):
		return call{id: id, role: assignee}, nil
	case e == nil:
		return s.findOwn(ctx, id)
	}
	c = call{id: id, entry: e, role: s.roleIn(e), peer: s.Peer}
	if c.role == stranger {
		return c, errGone(id)
	}
	if c.role != owner {
		_, leader, _ := logname.Split(e.Log)
		c.peer = peerOf(leader)
	}
	return c, s.reach(&c)
}

// findOwn finds a task of the client created elsewhere, for example by AIP with the AIC of the same agent.
func (s *Session) findOwn(ctx context.Context, id string) (c call, err error) {
	f := s.serving()
	for _, aid := range f.aids {
		a := f.agents[aid]
		log := a.Gateway.LogOf(s.Peer.Leader(), id)
		_, err := a.Gateway.Head(ctx, log)
		switch {
		case err == nil:
			e := &entry{Log: log, Assignee: aid, Owner: s.AID, Visibility: codec.Private}
			return call{id: id, entry: e, role: owner, peer: s.Peer, agent: a}, nil
		case task.KindOf(err) != task.TaskNotFound:
			return c, err
		}
	}
	return c, errGone(id)
}

// reach finds the agent of a task.
func (s *Session) reach(c *call) error {
	if c.agent = s.serving().agents[c.entry.Assignee]; c.agent == nil {
		return task.Errorf(task.AgentUnavailable, "the agent %s is not here any more", c.entry.Assignee)
	}
	return nil
}

// peerOf returns the peer of a Leader's name.
func peerOf(leader string) identity.Peer {
	kind, id := identity.SplitLeader(leader)
	return identity.Peer{Proof: identity.ByToken, Kind: kind, ID: id, Login: true}
}

// dispatch gives a request to the gateway of a task's agent, as one for a method, and sends the reply.
func (s *Session) dispatch(ctx context.Context, r *request, c *call, method string) error {
	var q gateway.Request
	defer q.Release()
	a := s.begin(ctx, &q, r.ID(), c, codec.Server{Relation: c.entry.relation()}, method, r.Params)
	r.note(&a)
	if a.Err != nil {
		return a.Err
	}
	if a.Reply != nil {
		s.respond(r, &q, a.Reply)
	}
	return nil
}

// respond sends the reply to a request. While the client does not read it, its memory is lent.
func (s *Session) respond(r *request, q *gateway.Request, reply []byte) {
	q.Lend(s.reclaim)
	defer q.TakeBack()
	_ = r.Respond(reply)
}

// begin gives a request to the gateway of a task's agent, decoded by the codec of the task. params must be valid until
// it returns.
func (s *Session) begin(
	ctx context.Context, q *gateway.Request, id jsonrpc.ID, c *call, dialect codec.Server, method string,
	params gjson.Result,
) gateway.Answer {
	s.describe(q, c)
	dialect.Confirm = c.agent.Confirm && c.role != assignee // a task completed by the assignee is completed to it
	dialect.Task = c.id
	g := c.agent.Gateway
	if err := g.Hold(ctx, s.Peer, q, len(params.Raw)); err != nil {
		return gateway.Answer{Err: err}
	}
	var made gateway.Call
	q.Use(dialect, id, &made)
	err := g.CheckParams(params.Raw)
	if err == nil {
		made.Call, err = dialect.Read(method, params)
	}
	if err != nil {
		return g.Refuse(ctx, c.peer, q, err)
	}
	if c.starts {
		made.AgentTask, made.Entry = c.id, mustJSON(c.entry)
	}
	return g.Dispatch(ctx, c.peer, q)
}

// get is task.get.
func (s *Session) get(ctx context.Context, r *request) error {
	c, err := s.find(ctx, r)
	if err != nil {
		return err
	}
	if c.entry == nil {
		whole, err := s.front.config.Assignees.Task(s.AID, c.id)
		if err != nil {
			return err
		}
		return r.Reply(whole)
	}
	return s.dispatch(ctx, r, &c, r.Method)
}

// command executes a command of the owner of a task.
func (s *Session) command(ctx context.Context, r *request) error {
	find := s.find
	if r.Method == codec.Cancel {
		find = s.findToCancel
	}
	c, err := find(ctx, r)
	if err != nil {
		return err
	}
	if c.role < owner {
		if err := s.admit(ctx, r, &c); err != nil {
			return err
		}
		return codec.AccessDenied("only the owner of the task may call %s", r.Method)
	}
	return s.dispatch(ctx, r, &c, r.Method)
}

// create is task.create.
func (s *Session) create(ctx context.Context, r *request) error {
	e, err := s.newEntry(r.Params)
	if err != nil {
		return err
	}
	return s.start(ctx, r, e)
}

// newEntry reads the entry of a new task from a request, beside its input.
func (s *Session) newEntry(params gjson.Result) (*entry, error) {
	to, err := aun.ParseAID(params.Get("to").String())
	if err != nil {
		return nil, task.Errorf(task.InvalidParams, "to must be the AID of an agent").WithField("params.to")
	}
	e := &entry{Assignee: string(to), Owner: s.AID, Creator: s.follower().creator()}
	for _, p := range params.Get("participants").Array() {
		aid, err := aun.ParseAID(p.String())
		if err != nil || len(e.Participants) == maxChildren {
			return nil, task.Errorf(task.InvalidParams, "participants must be at most %d AIDs", maxChildren).
				WithField("params.participants")
		}
		e.addParticipant(string(aid))
	}
	switch v := params.Get("visibility").String(); v {
	case codec.Private, codec.Shared, codec.Public:
		e.Visibility = v
	case "":
		if e.Visibility = codec.Private; len(e.Participants) > 0 {
			e.Visibility = codec.Shared
		}
	default:
		return nil, task.Errorf(task.InvalidParams, "visibility must be private, shared or public").
			WithField("params.visibility")
	}
	return e, nil
}

// addParticipant adds an AID, unless it is the owner or the assignee.
func (e *entry) addParticipant(aid string) {
	if aid != e.Owner && aid != e.Assignee && !slices.Contains(e.Participants, aid) {
		e.Participants = append(e.Participants, aid)
	}
}

// start starts a task, and sends the reply. The Index stores the entry when the start is accepted.
func (s *Session) start(ctx context.Context, r *request, e *entry) error {
	c := call{id: s.newTaskID(r.Params), entry: e, role: owner, peer: s.Peer, starts: true}
	if err := s.reach(&c); err != nil {
		return task.Errorf(task.AgentUnavailable, "there is no agent %s here", e.Assignee)
	}
	e.Log = c.agent.Gateway.LogOf(c.peer.Leader(), c.id)
	if !s.isDenied(c.agent, r.Method, task.Start) { // then the gateway refuses it, and nothing is looked up
		if had, err := s.front.config.Index.get(ctx, c.id); err != nil {
			return err
		} else if had != nil { // the same message again
			*e = *had
		}
	}
	if err := s.dispatch(ctx, r, &c, r.Method); err != nil {
		return err
	}
	if e.Parent != "" {
		s.delegated(e, c.id)
	}
	return nil
}

// newTaskID returns the id of a new task. A message with an id always makes the same one, so a client can send it again
// after losing the answer.
func (s *Session) newTaskID(params gjson.Result) string {
	random := make([]byte, 20)
	if id := params.Get("message_id").String(); id != "" {
		sum := sha256.Sum256([]byte(s.AID + "\x00" + params.Get("to").String() + "\x00" +
			params.Get("task_id").String() + "\x00" + id))
		copy(random, sum[:])
	} else {
		_, _ = rand.Read(random) // never fails
	}
	return "task_" + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(random)
}

// endedError returns the error of a change of an ended task.
func (s *Session) endedError(ctx context.Context, c *call) error {
	var q gateway.Request
	defer q.Release()
	a := s.begin(ctx, &q, jsonrpc.ID("0"), c, codec.Server{}, codec.SendInput, gjson.Parse(`{"input":""}`))
	if a.Err == nil { // it has not ended
		return task.Errorf(task.UnsupportedOperation, "the task has ended")
	}
	return a.Err
}

// list is task.list: the client's own tasks, at one agent after the other.
func (s *Session) list(ctx context.Context, r *request) error {
	f := s.serving()
	aids := f.aids
	if only := r.Params.Get("assignee").String(); only != "" {
		aids = slices.DeleteFunc(slices.Clone(aids), func(aid string) bool { return aid != only })
	}
	if len(aids) == 0 {
		return r.Reply([]byte(`{"tasks":[],"next_cursor":null,"has_more":false}`))
	}
	at, params := 0, r.Params
	if cursor := r.Params.Get("cursor").String(); cursor != "" {
		aid := codec.ListedAssignee(cursor)
		if at = slices.Index(aids, aid); at < 0 {
			return task.Errorf(task.InvalidParams, "the cursor was not made by this gateway").WithField("params.cursor")
		}
	}
	for ; ; at++ {
		c := call{agent: f.agents[aids[at]], peer: s.Peer}
		dialect := codec.Server{Relation: codec.Relation{Owner: s.AID, Assignee: aids[at]}}
		if at+1 < len(aids) {
			dialect.Next = aids[at+1]
		}
		done, err := s.listPage(ctx, r, &c, dialect, params)
		if done || err != nil {
			return err
		}
	}
}

// listPage sends a page of tasks, unless it is empty and another one follows.
func (s *Session) listPage(
	ctx context.Context, r *request, c *call, dialect codec.Server, params gjson.Result,
) (done bool, err error) {
	var q gateway.Request
	defer q.Release()
	a := s.begin(ctx, &q, r.ID(), c, dialect, codec.List, params)
	r.note(&a)
	if a.Err != nil {
		return true, a.Err
	}
	if dialect.Next != "" && a.Reply != nil && gjson.GetBytes(a.Reply, "result.tasks.#").Int() == 0 {
		return false, nil
	}
	if a.Reply != nil {
		s.respond(r, &q, a.Reply)
	}
	return true, nil
}
