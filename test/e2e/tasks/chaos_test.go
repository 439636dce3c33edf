// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// ledger is an agent that remembers its tasks, and how often each was given to it.
type ledger struct {
	mu    sync.Mutex
	tasks map[string]*entry
}

type entry struct {
	text  string
	turns int
	due   time.Time
}

func (l *ledger) answer(w http.ResponseWriter, _ *http.Request, h site.Heard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.tasks[h.Params.ID]
	switch {
	case strings.HasPrefix(h.Method, "tasks/send"):
		text := gjson.GetBytes(h.Body, "params.message.parts.0.text").Str
		if e == nil {
			e = &entry{text: text, due: time.Now().Add(300 * time.Millisecond)}
			l.tasks[h.Params.ID] = e
		}
		e.turns++
	case h.Method != "tasks/get":
		site.WriteError(w, h, -32601, "Method not found")
		return
	case e == nil:
		site.WriteError(w, h, -32001, "Task not found")
		return
	}
	switch {
	case time.Now().Before(e.due):
		site.WriteTask(w, h, "working", "")
	case strings.HasPrefix(e.text, "fail"):
		site.WriteTask(w, h, "failed", e.text)
	default:
		site.WriteTask(w, h, "completed", e.text)
	}
}

// TestTasksUnderFaults kills, reloads and cuts, on the way to the agent and on the way to the gateway, while tasks run.
// Each ends as its agent says, and the agent is given each once.
func TestTasksUnderFaults(t *testing.T) {
	t.Parallel()
	const tasks, workers = 300, 30
	l := &ledger{tasks: make(map[string]*entry)}
	agent := site.NewFakeAgent(t, l.answer)
	down := new(atomic.Bool) // the agent's address refuses what is sent, as an agent that restarts does
	between := site.NewWire(t, strings.TrimPrefix(agent.URL, "http://"), func() site.Damage {
		switch n := rand.IntN(10); {
		case n < 2:
			return site.Damage{After: rand.IntN(200)}
		case n < 4 || down.Load():
			return site.Damage{After: 0}
		}
		return site.Damage{After: -1}
	})
	s := site.New(t)
	c := site.Config{Store: "store pebble " + s.Dir + "/store",
		Handle: "aip_gateway a2a/legacy http://" + between.Address() + " {\nagent {\nresend always\n}\n}"}
	s.Start(c)
	var all sync.WaitGroup
	var ended atomic.Int64
	got := make([]*task.Task, tasks)
	for worker := range workers {
		caller := site.LeaderOf(t, s.URL())
		all.Go(func() {
			defer caller.Close()
			for i := worker; i < tasks; i += workers {
				got[i] = chaosTask(t, caller, fmt.Sprint("c", i), []string{"do", "fail"}[i%2])
				ended.Add(1)
			}
		})
	}
	stop := make(chan struct{})
	var trouble sync.WaitGroup
	trouble.Go(func() {
		// The kills have an end: a start that may be lost is sent again when the agent has not known it for the time of
		// resend after, in one life of the gateway.
		for i := range 30 {
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
			}
			switch i % 6 {
			case 1, 4:
				between.Cut()
			case 2:
				down.Store(true)
			case 3:
				down.Store(false)
				if stderr := s.Reload(c); stderr != "" {
					t.Errorf("a reload failed: %s", stderr)
				}
			case 5:
				s.Kill()
				s.Start(c)
			}
		}
	})
	all.Wait()
	close(stop)
	trouble.Wait()

	byText := make(map[string]*entry)
	l.mu.Lock()
	for e := range maps.Values(l.tasks) {
		byText[e.text] = e
	}
	l.mu.Unlock()
	for i, tk := range got {
		text := []string{"do", "fail"}[i%2] + fmt.Sprint(" c", i)
		want := task.AwaitingCompletion
		if i%2 == 1 {
			want = task.Failed
		}
		switch e := byText[text]; {
		case tk == nil:
		case e == nil:
			t.Errorf("%s is %s, and the agent never had it: %s", tk.ID, tk.Status.State, site.Says(tk.Status.DataItems))
		case tk.Status.State != want || len(site.Product(tk)) == 0 || site.Product(tk)[0] != text:
			t.Errorf("%s is %+v, want %s", tk.ID, site.AnswerOf(tk), want)
		case e.turns != 1:
			t.Errorf("%s was given to the agent %d times", tk.ID, e.turns)
		}
	}
}

// chaosTask starts a task and asks for it until it rests, whatever becomes of the calls.
func chaosTask(t *testing.T, c *site.Caller, id, what string) *task.Task {
	call := site.StartCall(id, what+" "+id)
	call.Terms.Response = time.Second
	again := time.NewTicker(100 * time.Millisecond) // as a Leader asks again
	defer again.Stop()
	for giveUp := time.Now().Add(3 * site.Patience); time.Now().Before(giveUp); {
		got, err := c.Try(call)
		var refusal *leader.Error
		if errors.As(err, &refusal) && refusal.Code != -32603 {
			t.Errorf("%s was refused: %v", id, site.Explain(err))
			return nil
		}
		if err == nil && got.Status.State.Settled() {
			return got
		}
		<-again.C
	}
	t.Errorf("%s has not ended", id)
	return nil
}

// silent is an agent that takes connections and never answers.
type silent struct {
	net.Listener
	mu        sync.Mutex
	conns     map[net.Conn]bool
	now, most int
	done      sync.WaitGroup
}

func newSilent(t testing.TB) *silent {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &silent{Listener: l, conns: make(map[net.Conn]bool)}
	a.done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			a.count(conn, 1)
			a.done.Go(func() {
				io.Copy(io.Discard, conn)
				conn.Close()
				a.count(conn, -1)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		a.mu.Lock()
		for conn := range a.conns {
			conn.Close()
		}
		a.mu.Unlock()
		a.done.Wait()
	})
	return a
}

func (a *silent) count(conn net.Conn, by int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now += by; by > 0 {
		a.conns[conn] = true
	} else {
		delete(a.conns, conn)
	}
	a.most = max(a.most, a.now)
}

func (a *silent) counted() (now, most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now, a.most
}

// TestMaxRuns holds that more tasks than an agent takes wait, before and after a restart, and that the gateway serves
// calls meanwhile.
func TestMaxRuns(t *testing.T) {
	t.Parallel()
	const runs = 40
	agent := newSilent(t)
	s := site.New(t)
	c := site.Config{
		Handle: fmt.Sprintf(
			"handle_path /silent/* {\naip_gateway {\nagent a2a/legacy http://%s {\nmax_runs %d\n}\n}\n}\nhandle "+
				"{\naip_gateway a2a/legacy %s\n}\n",
			agent.Addr(),
			runs,
			site.NewFakeAgent(t, nil).URL,
		),
	}
	s.Start(c)
	hanging := site.LeaderOf(t, s.URL()+"/silent")
	started, refused := 0, 0
	for i := range 10 * runs {
		call := site.StartCall(fmt.Sprint("h", i), "hello")
		call.Terms.Response = time.Millisecond
		got, err := hanging.Try(call)
		var refusal *leader.Error
		switch {
		case errors.As(err, &refusal) && refusal.Code == -32050 && gjson.GetBytes(refusal.Data, "limit").Str == "max_runs":
			refused++
		case err != nil:
			t.Fatal(site.Explain(err))
		case got.Status.State == task.Working || got.Status.State == task.Accepted:
			started++
		}
	}
	if started < 8*runs || refused == 0 || started+refused != 10*runs {
		t.Errorf("%d tasks were started and %d refused", started, refused)
	}
	check := func(when string) {
		t.Helper()
		site.Eventually(t, "the agent is connected "+when, func() bool { now, _ := agent.counted(); return now > 0 })
		for i := range 20 {
			hanging.Get(fmt.Sprint("h", i))
		}
		quick := site.LeaderOf(t, s.URL())
		defer quick.Close()
		if got := quick.Start(when, "hello"); got.Status.State != task.AwaitingCompletion {
			t.Errorf("%s: another agent's task is %s", when, got.Status.State)
		}
		if _, most := agent.counted(); most > runs {
			t.Errorf("%s: there were %d connections at once", when, most)
		}
	}
	check("before")
	s.Kill()
	site.Eventually(
		t,
		"the connections of the killed process are closed",
		func() bool { now, _ := agent.counted(); return now == 0 },
	)
	s.Start(c)
	hanging = site.LeaderOf(t, s.URL()+"/silent")
	check("after")
	if n := strings.Count(s.Out.String(), "\n"); n > 100 {
		t.Errorf("the log has %d lines after the restart", n)
	}
}

// TestMaxRunsPerLeader holds that a Leader with more tasks than it may have under way leaves runs of the agent to
// another one.
func TestMaxRunsPerLeader(t *testing.T) {
	t.Parallel()
	agent := newSilent(t)
	s := site.New(t)
	s.Start(site.Config{Handle: fmt.Sprintf(
		"aip_gateway {\nagent a2a/legacy http://%s {\nmax_runs 40\nmax_runs_per_leader 3\n}\n}\n", agent.Addr())})
	start := func(c *site.Caller, id string) {
		t.Helper()
		call := site.StartCall(id, "hello")
		call.Terms.Response = time.Millisecond
		if got, err := c.Try(call); err != nil || got.Status.State.Settled() {
			t.Fatalf("%s: %+v, %v", id, got, err)
		}
	}
	under := func(want int) {
		t.Helper()
		site.Eventually(t, fmt.Sprintf("the agent has %d requests", want), func() bool {
			now, _ := agent.counted()
			return now == want
		})
	}
	one := site.LeaderOf(t, s.URL())
	for i := range 10 {
		start(one, fmt.Sprint("t", i))
	}
	under(3)
	s.WaitFor(t, "turns wait for a free run of the agent")
	f := site.Certificates(t).LeaderV1
	start(site.CallerWith(t, s.URL(), string(f.AIC), devpkitest.KeyPair(t, f)), "t0")
	under(4)
	if _, most := agent.counted(); most != 4 {
		t.Errorf("the agent had %d requests at once", most)
	}
}
