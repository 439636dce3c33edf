// SPDX-License-Identifier: Apache-2.0

package auntransport_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/auntransport"
)

// withGateway runs f in a bubble, with an Agent behind a gateway of AUN.
func withGateway(t *testing.T, f func(t *testing.T, a *upstream.Agent, g *gateway)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		pki, network := auntest.NewPKI(t), auntest.NewNetwork(t)
		g := newGateway(t, pki, network)
		var pool auntransport.Pool
		g.process = func(url string, change ...func(*upstream.Config)) *upstream.Agent {
			transport := pool.New(aun.ClientConfig{Identity: pki.Identity("alice.aid.test"), Roots: pki.Roots(),
				URL: url, Peer: "agent.aid.test", HTTP: network.Client(), Log: quiet}, 0)
			config := upstream.Config{
				Resolver: upstream.NewEndpoint(codec.Client("agent.aid.test"), transport), Logger: quiet,
				RetryFor: 10 * time.Second,
			}
			for _, f := range change {
				f(&config)
			}
			return upstream.New(config)
		}
		a := g.process("ws://gw.test/aun")
		defer g.stop()
		defer a.Close()
		f(t, a, g)
	})
}

func start(name, text string) *agent.Turn {
	return &agent.Turn{Ref: agent.Ref{Task: name}, Message: task.Message{ID: "m-" + name, Command: task.Start,
		SentAt: time.Now(), DataItems: []task.DataItem{task.Text(text)}}}
}

// carryOut carries a turn out, and returns the reports in one line, and the task's name.
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
			g.pause(time.Second)
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

// A hundred turns lose and repeat nothing though their connection is cut, by either way and again and again.
func TestCuts(t *testing.T) {
	for name, cut := range map[string]func(g *gateway){
		"broken":  func(g *gateway) { g.net.Cut("gw.test") },
		"restart": func(g *gateway) { g.closeAll(aun.CloseRestart) },
		"down": func(g *gateway) {
			g.stop()
			g.pause(3 * time.Second)
			g.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
				var wg sync.WaitGroup
				for i := range 100 {
					wg.Go(func() {
						g.pause(time.Duration(i) * 7 * time.Millisecond)
						text := fmt.Sprintf("%ds", 1+i%5)
						got, _ := carryOut(t, a, start(fmt.Sprint("t", i), "slow "+text))
						if !strings.HasSuffix(got, "awaiting-completion result="+text) {
							t.Errorf("%d: %s", i, got)
						}
					})
				}
				for range 3 {
					g.pause(900 * time.Millisecond)
					cut(g)
				}
				wg.Wait()
				if g.tasksCreated() != 100 || g.count("auth.connect") < 2 {
					t.Errorf("%d tasks were created, on %d connections", g.tasksCreated(), g.count("auth.connect"))
				}
			})
		})
	}
}

// A task.create with a lost answer is looked for, and sent again only if the agent does not have it.
func TestLostCreate(t *testing.T) {
	for name, executed := range map[string]bool{"received": true, "not received": false} {
		t.Run(name, func(t *testing.T) {
			withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
				carryOut(t, a, start("other", "echo hello")) // the same input, but another turn's
				var lost atomic.Bool
				g.intercept(func(r *aun.Request) bool {
					if r.Method != "task.create" || lost.Swap(true) {
						return true
					}
					if executed {
						_, _ = g.task(r)
					}
					go g.net.Cut("gw.test")
					return false
				})
				got, ref := carryOut(t, a, start("t", "echo hello"))
				if !strings.HasSuffix(got, "awaiting-completion result=hello") || ref.Task != "task_2" || g.tasksCreated() != 2 {
					t.Errorf("%s of %d: %s", ref.Task, g.tasksCreated(), got)
				}
			})
		})
	}
}

// After a crash, the next process finds the task of a turn without a name yet.
func TestResumeWithoutAName(t *testing.T) {
	withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range a.Run(ctx, start("t", "slow 5s"), true) {
			cancel() // after the first report; it is lost
		}
		a = g.process("ws://gw.test/aun")
		defer a.Close()
		fold, state := task.NewFold(task.Task{}), task.None
		for rep, err := range a.Resume(t.Context(), start("t", "slow 5s")) {
			if err != nil {
				t.Fatal(err)
			}
			apply(&fold, &rep)
			state = rep.State
		}
		if state != task.AwaitingCompletion || len(fold.Task().Products) != 1 || g.tasksCreated() != 1 {
			t.Errorf("%s of %d with %+v", state, g.tasksCreated(), fold.Task().Products)
		}
	})
}

// TestResumeOfWhatIsNotThere: after a crash, the next process may send a turn not received by the agent, but not one
// with a task named and forgotten by the agent.
func TestResumeOfWhatIsNotThere(t *testing.T) {
	never := func(c *upstream.Config) { c.Resend = upstream.ResendNever }
	patient := func(c *upstream.Config) { c.ResendAfter = 10 * time.Second }
	for _, tc := range []struct {
		name   string
		change func(*upstream.Config)
		named  bool
		cont   bool
		want   task.Kind
	}{
		{"a start that was not received", patient, false, false, task.AgentUnavailable},
		{"a task that is forgotten", patient, true, false, task.TaskNotFound},
		{"a start that must not be sent again", never, false, false, task.AgentTimeout},
		{"a continue that was not received", patient, false, true, task.AgentUnavailable},
		{"a continue that must not be sent again", never, false, true, task.AgentTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
				turn := start("t", "echo more")
				if turn.Named = tc.named; tc.cont {
					endedTurn(t, a, turn)
				}
				a = g.process("ws://gw.test/aun", tc.change)
				defer a.Close()
				for rep, err := range a.Resume(t.Context(), turn) {
					if err == nil || task.KindOf(err) != tc.want {
						t.Errorf("it says %+v, %v", rep, err)
					}
				}
			})
		})
	}
}

// TestResumeFindsTheNextTask: a continue answered by another task of the agent, after the end of its own, is found
// after a crash, also if nothing is sent again.
func TestResumeFindsTheNextTask(t *testing.T) {
	withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
		turn := start("t", "echo more")
		endedTurn(t, a, turn)
		carryOut(t, a, turn) // its name is lost
		a = g.process("ws://gw.test/aun", func(c *upstream.Config) { c.Resend = upstream.ResendNever })
		defer a.Close()
		var last agent.Report
		for rep, err := range a.Resume(t.Context(), turn) {
			if last = rep; err != nil {
				t.Error(err)
			}
		}
		if last.State != task.AwaitingCompletion || last.Ref == nil || last.Ref.Task != "task_2" {
			t.Errorf("it ends with %+v", last)
		}
	})
}

// endedTurn makes a turn the continue of a task ended by the agent.
func endedTurn(t *testing.T, a *upstream.Agent, turn *agent.Turn) {
	t.Helper()
	for rep, err := range a.Run(t.Context(), start("before", "echo one"), true) {
		if err != nil {
			t.Fatal(err)
		}
		if rep.Ref != nil {
			turn.Ref = *rep.Ref
		}
		turn.Revision = rep.Revision
		turn.Known = rep.Products
	}
	turn.From, turn.Message.Command = task.AwaitingCompletion, task.Continue
	turn.Withdrawn, turn.Known = turn.Known, nil
}

// An agent in peer mode is spoken to without a gateway, and must be the configured one.
func TestPeer(t *testing.T) {
	withGateway(t, func(t *testing.T, _ *upstream.Agent, g *gateway) {
		a := g.process("ws://gw.test/acp")
		defer a.Close()
		if got, _ := carryOut(t, a, start("t", "echo hello")); got != "accepted working awaiting-completion result=hello" {
			t.Error(got)
		}
		if g.count("auth.connect") != 0 || g.count("peer.confirm") != 1 {
			t.Error("the peer was spoken to as a gateway")
		}
	})
}

// If there is no URL, the gateway is found out at the issuer, and then at the agent's own host.
func TestDiscovery(t *testing.T) {
	for _, host := range []string{"gateway.aid.test", "agent.aid.test"} {
		withGateway(t, func(t *testing.T, _ *upstream.Agent, g *gateway) {
			g.net.Serve(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/.well-known/aun-gateway" {
					fmt.Fprint(w, `{"gateways":[{"url":"ws://nowhere.test/aun"},{"url":"ws://gw.test/aun","priority":1}]}`)
				}
			}))
			a := g.process("")
			defer a.Close()
			if got, _ := carryOut(t, a, start("t", "echo hello")); !strings.HasSuffix(got, "result=hello") {
				t.Error(got)
			}
		})
	}
}

// A gateway sending its own certificate only is asked for those of its issuers. They count only if they lead to the
// roots.
func TestIssuers(t *testing.T) {
	for name, trusts := range map[string]bool{"the root": true, "another root": false} {
		t.Run(name, func(t *testing.T) {
			withGateway(t, func(t *testing.T, _ *upstream.Agent, g *gateway) {
				alone := func(aid string) *aun.Identity {
					id := g.pki.Identity(aid)
					id.Chain = id.Chain[:1]
					return id
				}
				service, err := aun.NewAuthority(aun.AuthorityConfig{Identity: alone("gw.aid.test"), Roots: g.pki.Roots()})
				if err != nil {
					t.Fatal(err)
				}
				g.authority = service
				var asked atomic.Int64
				g.net.Serve("issuers.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/pki/chain" {
						g.ServeHTTP(w, r)
						return
					}
					asked.Add(1)
					_, _ = w.Write(g.pki.RootsPEM())
				}))
				trusted := g.pki
				if !trusts {
					trusted = auntest.NewPKI(t)
				}
				roots, err := aun.NewRoots(trusted.RootPEM())
				if err != nil {
					t.Fatal(err)
				}
				var pool auntransport.Pool
				a := upstream.New(upstream.Config{Logger: quiet, Resolver: upstream.NewEndpoint(codec.Client("agent.aid.test"),
					pool.New(aun.ClientConfig{Identity: alone("alice.aid.test"), Roots: roots, URL: "ws://issuers.test/aun",
						Peer: "agent.aid.test", HTTP: g.net.Client(), Log: quiet}, 0))})
				defer a.Close()
				got, _ := carryOut(t, a, start("t", "echo hello"))
				if strings.HasSuffix(got, "result=hello") != trusts || asked.Load() == 0 {
					t.Errorf("after %d requests for the issuers: %s", asked.Load(), got)
				}
			})
		})
	}
}

// An answer to task.get is asked for again if it is older than an event.
func TestStaleGet(t *testing.T) {
	withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
		stale := 0
		g.intercept(func(r *aun.Request) bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			if task := g.tasks["task_1"]; r.Method == "task.get" && task["status"] == "completed" && stale < 2 {
				stale++
				_ = r.Reply([]byte(`{"task_id":"task_1","status":"working","updated_at":"1999-12-31T00:00:00Z"}`))
				return false
			}
			return true
		})
		_, ref := carryOut(t, a, start("t", "echo hello")) // its own get is stale, so the event alone ends it
		turn := start("t", "")
		turn.Ref = ref
		for rep, err := range a.Resume(t.Context(), turn) {
			if err != nil || rep.State != task.AwaitingCompletion {
				t.Errorf("%s, %v", rep.State, err)
			}
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if stale != 2 {
			t.Errorf("%d answers were stale", stale)
		}
	})
}

// A gateway not answering a ping is cut, and connected to again. A token is refreshed before it ends.
func TestSilentGateway(t *testing.T) {
	withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
		var silent atomic.Bool
		g.intercept(func(r *aun.Request) bool { return !silent.Load() || r.Method != "meta.ping" })
		if got, _ := carryOut(t, a, start("t", "slow 4m")); !strings.HasSuffix(got, "result=4m") {
			t.Error(got)
		}
		g.pause(2 * time.Hour)
		if g.count("auth.refresh_token") < 2 || g.count("auth.aid_login1") != 1 || g.count("auth.connect") != 1 {
			t.Errorf("calls %d, %d, %d", g.count("auth.refresh_token"), g.count("auth.aid_login1"), g.count("auth.connect"))
		}
		silent.Store(true)
		g.pause(time.Minute)
		silent.Store(false)
		if got, _ := carryOut(t, a, start("t2", "echo hello")); !strings.HasSuffix(got, "result=hello") {
			t.Error(got)
		}
		if g.count("auth.connect") < 2 {
			t.Error("the silent connection was kept")
		}
	})
}
