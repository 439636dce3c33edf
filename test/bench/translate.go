// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/translate/aip"
	"github.com/aip-gateway/aip-gateway/translate/aun"
)

// dialect is both sides of one, and a set of messages. Each side is given what the other has made.
type dialect struct {
	server translate.Server
	client translate.Client

	request translate.Request // a start, as the client makes it
	call    translate.Call    // the same, as the server reads it
	body    []byte            // of the start
	reply   []byte            // of the server to it, with the whole task
	event   []byte            // of the server's stream: a piece of a product
	name    string            // of the event, as the client's stream is given it
	data    []byte            // of the event, likewise

	unenveloped bool   // its requests are JSON, but no JSON-RPC
	shows       string // the method whose answer has the whole task; empty for that of the start
	notifies    bool   // its events are notifications, of which the client's stream is given the method and the params
}

// translation is one direction of one kind of message.
type translation struct {
	name string
	wire func(d *dialect) int // bytes that are read or written
	run  func(d *dialect) func() error
}

// The messages, as the gateway has them after a start that was answered at once.
var (
	moment  = time.Date(2025, 9, 1, 11, 58, 0, 0, time.FixedZone("", 8*60*60))
	started = task.Message{
		ID:         "msg-1",
		SentAt:     moment,
		SenderRole: task.Leader,
		SenderID:   "leader",
		Command:    task.Start,
		TaskID:     "task-1",
		SessionID:  "session-1",
		DataItems:  []task.DataItem{task.Text("hello there 1")},
	}
	turn  = agent.Turn{Ref: agent.Ref{Task: "task-1", Session: "session-1"}, Message: started}
	whole = task.Task{ID: "task-1", SessionID: "session-1", Status: finished,
		Products:       []task.Product{{ID: "artifact-0", DataItems: []task.DataItem{task.Text("echo: hello there 1")}}},
		MessageHistory: []task.Message{started},
		StatusHistory: []task.Status{
			{State: task.Accepted, ChangedAt: moment},
			{State: task.Working, ChangedAt: moment.Add(time.Millisecond)},
			finished,
		}}
	finished = task.Status{
		State:     task.AwaitingCompletion,
		ChangedAt: moment.Add(2 * time.Millisecond),
		DataItems: []task.DataItem{task.Text("ok")},
	}
	piece = task.Event{
		Seq: 4,
		Chunk: &task.Chunk{
			Product: task.Product{ID: "artifact-0", DataItems: []task.DataItem{task.Text("a piece of a text ")}},
			Append:  true,
		},
	}
)

// translations are the steps of a start and of a stream. The envelope is shown apart where it is read apart:
// in an agent's answer it is read by the codec.
var translations = []translation{
	{
		"jsonrpc.Parse: a caller's start, checked; over gRPC, also made JSON",
		func(d *dialect) int { return len(d.body) },
		func(d *dialect) func() error {
			return func() error {
				_, err := d.parse()
				return err
			}
		},
	},
	{"Server.Decode: a caller's start, read", func(d *dialect) int { return len(d.body) }, func(d *dialect) func() error {
		return func() error {
			_, err := d.server.Decode(&d.request)
			return err
		}
	}},
	{"Server.AppendTask: a caller's answer", func(d *dialect) int { return len(d.reply) }, func(d *dialect) func() error {
		var dst []byte
		return func() error {
			dst = d.server.AppendTask(dst[:0], d.request.ID, &d.call, &whole)
			return nil
		}
	}},
	{"Encoder.Event: a caller's event", func(d *dialect) int { return len(d.event) }, func(d *dialect) func() error {
		var dst []byte
		frames := d.server.NewStream(d.request.ID, &d.call, &whole)
		return func() error {
			dst = frames.Event(dst[:0], &piece).Data
			return nil
		}
	}},
	{"a caller's event from the log", func(d *dialect) int { return len(d.event) }, func(d *dialect) func() error {
		var dst []byte
		frames, record := d.server.NewStream(d.request.ID, &d.call, &whole), task.AppendEvent(nil, &piece)
		if direct, ok := frames.(translate.RecordEncoder); ok { // as the gateway does
			return func() error {
				dst = direct.Record(dst[:0], piece.Seq, record).Data
				return nil
			}
		}
		return func() error {
			ev, err := task.DecodeEvent(record)
			ev.Seq = piece.Seq
			dst = frames.Event(dst[:0], &ev).Data
			return err
		}
	}},
	{
		"Client.AppendTurn: a start for the agent",
		func(d *dialect) int { return len(d.body) },
		func(d *dialect) func() error {
			var dst []byte
			return func() error {
				dst = d.client.AppendTurn(dst[:0], &turn, false)
				return nil
			}
		},
	},
	{
		"Client.Reply: the agent's answer, read",
		func(d *dialect) int { return len(d.reply) },
		func(d *dialect) func() error {
			return func() error {
				report, err := d.client.Reply(d.reply, nil)
				if err == nil && len(report.Products) == 0 {
					err = errors.New("the answer has lost its product")
				}
				return err
			}
		},
	},
	{"Stream.Event: the agent's event, read", func(d *dialect) int { return len(d.event) }, func(d *dialect) func() error {
		events := d.client.NewStream(whole.Products)
		return func() error {
			report, err := events.Event(d.name, d.data)
			if err == nil && len(report.Chunks) != 1 {
				err = errors.New("the event has lost its piece")
			}
			return err
		}
	}},
}

// dialects returns all of them, with their messages.
func dialects() ([]dialect, error) {
	const sender = "1.2.156.3088.0001.00001.ABCDEF.GHIJKL.1.0001" // only its length matters
	all := []dialect{
		{server: aip.Server(), client: aip.Client(sender)},
		{server: aip.ServerV2(sender), client: aip.ClientV2(sender)},
		{server: a2a.LegacyServer(false), client: a2a.Legacy()},
		{server: a2a.V03Server(false), client: a2a.V03()},
		{server: a2a.V1Server(false), client: a2a.V1()},
		{server: a2a.V1GRPCServer(false), client: a2a.V1GRPC()},
		{server: agentapi.Server(false), client: agentapi.Client(agentapi.Options{}), unenveloped: true},
		{
			server: aun.Server{Relation: aun.Relation{Owner: "caller.aid.test", Assignee: agentAID, Visibility: aun.Private}},
			client: aun.Client(agentAID), shows: aun.Get, notifies: true,
		},
	}
	for i := range all {
		d := &all[i]
		d.body = d.client.AppendTurn(nil, &turn, false)
		envelope, err := d.parse()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.server.Name(), err)
		}
		d.request = translate.Request{
			Request: envelope, HTTP: "POST", NewID: func() string { return "an-id-of-26-characters-----" },
		}
		for _, f := range d.client.Header() {
			if f.Name == "A2A-Version" {
				d.request.Version = f.Value
			}
		}
		if d.call, err = d.server.Decode(&d.request); err != nil {
			return nil, fmt.Errorf("%s: %w", d.server.Name(), err)
		}
		if d.shows != "" {
			d.call.Method = d.shows
		}
		d.reply = d.server.AppendTask(nil, d.request.ID, &d.call, &whole)
		f := d.server.NewStream(d.request.ID, &d.call, &whole).Event(nil, &piece)
		for d.event = f.Data; f.Next != nil; d.event = f.Data { // a stream may begin with other events
			f = f.Next(nil)
		}
		if err := d.readEvent(); err != nil {
			return nil, fmt.Errorf("%s: %w", d.server.Name(), err)
		}
		if _, ok := d.server.(translate.Transcoder); !ok && (!json.Valid(d.reply) || !json.Valid(d.event)) {
			return nil, fmt.Errorf("%s: what the server makes is not JSON", d.server.Name())
		}
	}
	return all, nil
}

// readEvent takes from the event what the client's stream is given.
func (d *dialect) readEvent() error {
	if !d.notifies {
		d.data = d.event
		return nil
	}
	var n struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	err := json.Unmarshal(d.event, &n)
	d.name, d.data = n.Method, n.Params
	return err
}

// parse reads the envelope of the start, or its params where it has none.
func (d *dialect) parse() (req jsonrpc.Request, err error) {
	if d.unenveloped {
		value, refused := jsonrpc.ParseValue(d.body, jsonrpc.Limits{})
		if refused != nil {
			return req, refused
		}
		req.Params = value
		return req, nil
	}
	t, ok := d.server.(translate.Transcoder)
	if !ok {
		req, refused := jsonrpc.Parse(d.body, jsonrpc.Limits{})
		if refused != nil {
			return req, refused
		}
		return req, nil
	}
	req.Method = "SendMessage"
	params, err := t.Params(req.Method, d.body)
	if err != nil {
		return req, err
	}
	value, refused := jsonrpc.ParseValue(params, jsonrpc.Limits{})
	if refused != nil {
		return req, refused
	}
	req.Params = value
	return req, nil
}

// translated measures what each translation costs, within this process: once in memory, no store and no network.
func translated(ctx context.Context, o settings) error {
	testing.Init() // it brings the flag of how long a benchmark takes
	if err := flag.Set("test.benchtime", "50ms"); err != nil {
		return err
	}
	all, err := dialects()
	if err != nil {
		return err
	}
	for _, t := range translations {
		took, last := make([][]float64, len(all)), make([]testing.BenchmarkResult, len(all))
		for range max(1, o.rounds/2) {
			for i := range all {
				if err := ctx.Err(); err != nil {
					return err
				}
				run := t.run(&all[i])
				if err := run(); err != nil {
					return fmt.Errorf("%s, %s: %w", t.name, all[i].server.Name(), err)
				}
				last[i] = testing.Benchmark(func(b *testing.B) {
					for b.Loop() {
						if err := run(); err != nil {
							b.Fatal(err)
						}
					}
				})
				took[i] = append(took[i], float64(last[i].T)/float64(last[i].N))
			}
		}
		costs := o.table(t.name, "ns", "allocations", "B allocated", "B of wire")
		for i := range all {
			costs.row(
				all[i].server.Name(),
				median(took[i]),
				float64(last[i].AllocsPerOp()),
				float64(last[i].AllocedBytesPerOp()),
				float64(t.wire(&all[i])),
			)
		}
	}
	return nil
}
