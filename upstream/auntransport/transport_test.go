// SPDX-License-Identifier: Apache-2.0

package auntransport_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/auntransport"
)

// withGateway runs f in a bubble, with an Agent behind a gateway of AUN.
func withGateway(t *testing.T, f func(t *testing.T, a *upstream.Agent, g *gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pki, network := auntest.NewPKI(t), auntest.NewNetwork(t)
		g := newGateway(t, pki, network)
		var pool auntransport.Pool
		transport := pool.New(aun.ClientConfig{Identity: pki.Identity("alice.aid.test"), Roots: pki.Roots(),
			URL: "ws://gw.test/aun", Peer: "agent.aid.test", HTTP: network.Client(), Log: quiet})
		a := upstream.New(upstream.Config{
			Resolver: upstream.NewEndpoint(codec.Client("agent.aid.test"), transport), Logger: quiet,
			RetryFor: 10 * time.Second,
		})
		f(t, a, g)
		a.Close()
		g.stop()
	})
}

func start(name, text string) *agent.Turn {
	return &agent.Turn{Ref: agent.Ref{Task: name}, Message: task.Message{ID: "m-" + name, Command: task.Start,
		SentAt: time.Now(), DataItems: []task.DataItem{task.Text(text)}}}
}

// carryOut carries a turn out, and returns what was reported in one line, and the task's name.
func carryOut(t *testing.T, a *upstream.Agent, turn *agent.Turn) (string, agent.Ref) {
	t.Helper()
	var said []string
	ref := turn.Ref
	fold := task.NewFold(task.Task{Products: turn.Known})
	for rep, err := range a.Run(t.Context(), turn, true) {
		if err != nil {
			said = append(said, err.Error())
			break
		}
		if rep.Ref != nil {
			ref = *rep.Ref
		}
		apply(&fold, &rep)
		if rep.State != task.None && (len(said) == 0 || said[len(said)-1] != string(rep.State)) {
			said = append(said, string(rep.State))
		}
		if rep.State.Settled() {
			for _, it := range rep.Items {
				said = append(said, it.Text)
			}
		}
	}
	for _, p := range fold.Task().Products {
		said = append(said, p.Name+"="+p.DataItems[0].Text)
	}
	return strings.Join(said, " "), ref
}

func apply(fold *task.Fold, rep *agent.Report) {
	chunks := rep.Chunks
	if rep.Full {
		chunks = task.Diff(fold.Task().Products, rep.Products)
	}
	for i := range chunks {
		fold.Apply(task.Event{Seq: fold.Seq + 1, Chunk: &chunks[i]})
	}
	if rep.Pieces != nil {
		for i := range rep.Pieces.Len() {
			c := rep.Pieces.Chunk(i)
			fold.Apply(task.Event{Seq: fold.Seq + 1, Chunk: &c})
		}
	}
}

func TestTurns(t *testing.T) {
	for text, want := range map[string]string{
		"echo hello": "accepted working awaiting-completion result=hello",
		"reject":     "accepted rejected unsupported_scope",
		"fail":       "accepted working failed missing_required_context",
		"ask":        "accepted working awaiting-input which?",
	} {
		t.Run(text, func(t *testing.T) {
			withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
				got, ref := carryOut(t, a, start("t", text))
				if got != want || ref.Task != "task_1" {
					t.Errorf("%s: %s", ref.Task, got)
				}
			})
		})
	}
}

// An input continues the task; after its end another one does.
func TestContinue(t *testing.T) {
	withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
		_, ref := carryOut(t, a, start("t", "ask"))
		turn := start("t", "that one")
		turn.Ref, turn.From, turn.Message.Command = ref, task.AwaitingInput, task.Continue
		got, again := carryOut(t, a, turn)
		if got != "working awaiting-completion result=that one" || again != ref {
			t.Errorf("%s: %s", again.Task, got)
		}
		turn = start("t", "echo more")
		turn.Ref, turn.From, turn.Message.Command = ref, task.AwaitingCompletion, task.Continue
		got, again = carryOut(t, a, turn)
		if got != "accepted working awaiting-completion result=more" || again.Task != "task_2" {
			t.Errorf("%s: %s", again.Task, got)
		}
	})
}

func TestCancel(t *testing.T) {
	withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
		var canceled agent.Report
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(time.Second)
			var err error
			if canceled, err = a.Cancel(context.Background(), start("t", "slow 1h")); err != nil {
				t.Error(err)
			}
		})
		got, _ := carryOut(t, a, start("t", "slow 1h"))
		wg.Wait()
		if canceled.State != task.Canceled || got != "accepted working canceled" {
			t.Errorf("%s; %s", canceled.State, got)
		}
	})
}

// A hundred turns whose connection is cut, by either way and again and again, lose and repeat nothing.
func TestCuts(t *testing.T) {
	for name, cut := range map[string]func(g *gateway){
		"broken":  func(g *gateway) { g.net.Cut("gw.test") },
		"restart": func(g *gateway) { g.closeAll(aun.CloseRestart) },
		"down": func(g *gateway) {
			g.stop()
			time.Sleep(3 * time.Second)
			g.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
				var wg sync.WaitGroup
				for i := range 100 {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * 7 * time.Millisecond)
						text := fmt.Sprintf("%ds", 1+i%5)
						got, _ := carryOut(t, a, start(fmt.Sprint("t", i), "slow "+text))
						if !strings.HasSuffix(got, "awaiting-completion result="+text) {
							t.Errorf("%d: %s", i, got)
						}
					})
				}
				for range 3 {
					time.Sleep(900 * time.Millisecond)
					cut(g)
				}
				wg.Wait()
				if g.created != 100 || g.count("auth.connect") < 2 {
					t.Errorf("%d tasks were created, on %d connections", g.created, g.count("auth.connect"))
				}
			})
		})
	}
}
