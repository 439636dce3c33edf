// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// watched is a task with a webhook, as its Leader knows it.
type watched struct {
	id    string
	doubt bool // it is unknown whether it was started
}

func (w watched) path() string { return "/" + w.id }

// liveWatched starts one task after another, each with a webhook, until the gateway is gone.
func liveWatched(c *site.Caller, to *site.Sink, name string, random *rand.Rand) (all []watched) {
	for i := 0; ; i++ {
		w := watched{id: fmt.Sprintf("%s-%d", name, i)}
		if !c.TrySet(site.Hook{URL: to.Origin() + w.path(), Token: "t", TaskID: w.id}) {
			return all
		}
		_, err := c.Try(site.StartCall(w.id, []string{"hello", "ask", "fail"}[random.IntN(3)]))
		w.doubt = err != nil
		all = append(all, w)
		for turn := 0; err == nil && turn < random.IntN(4); turn++ {
			_, err = c.Try(
				site.CommandCall([]task.Command{task.Continue, task.Continue, task.Complete, task.Cancel}[random.IntN(4)], w.id,
					"more"),
			)
		}
		if lost(c, err) {
			return all
		}
	}
}

// lost reports whether an error is that of a gateway that is gone. Others fail the test.
func lost(c *site.Caller, err error) bool {
	var refusal *leader.Error
	if errors.As(err, &refusal) {
		c.T.Errorf("refused: %s", refusal.Raw)
	}
	return err != nil
}

// TestWebhookKill kills the gateway at random moments, while the receiver is there, refuses, or is not, and demands
// that in the end the webhooks were notified of everything in the tasks' histories, each change under one id.
func TestWebhookKill(t *testing.T) {
	t.Parallel()
	const rounds, workers = 5, 4
	seed := site.AnySeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	_, agent := site.SampleAgent(t)
	s, to := site.New(t), site.NewSink(t)
	c := site.Config{
		Store:  "store pebble " + s.Dir + "/store {\nsync state\n}",
		Notify: site.AllowHere + "attempts 100",
		Handle: "aip_gateway a2a/legacy http://" + agent,
	}
	var known []watched
	for round := range rounds {
		switch random.IntN(3) {
		case 0:
			to.Down()
		case 1:
			to.Answers(site.Always(site.Refusal(500)))
			to.Up()
		case 2:
			to.Answers(site.Always(site.Taken()))
			to.Up()
		}
		s.Start(c)
		s.Awake()
		s.Enable(to.Origin())
		made := make([][]watched, workers)
		var all sync.WaitGroup
		load := new(site.Course)
		kill := load.After(20 + random.IntN(180))
		for w := range workers {
			leader := site.LeaderOf(t, s.URL())
			leader.Course = load
			random := rand.New(rand.NewPCG(seed, uint64(round*workers+w+1)))
			all.Go(func() {
				defer leader.Close()
				made[w] = liveWatched(leader, to, fmt.Sprintf("%d-%d", round, w), random)
			})
		}
		<-kill
		s.Kill()
		all.Wait()
		for _, m := range made {
			known = append(known, m...)
		}
	}
	to.Answers(site.Always(site.Taken()))
	to.Up()
	s.Start(c)
	checkWatched(t, s, to, known)
	t.Logf("%d tasks, %d notifications", len(known), len(to.Arrived("")))
}

// checkWatched demands that a sink was notified of the whole histories of tasks, as they are now.
func checkWatched(t *testing.T, s *site.Site, to *site.Sink, known []watched) {
	t.Helper()
	c := site.LeaderOf(t, s.URL())
	for _, w := range known {
		got, err := c.Settled(w.id)
		var refusal *leader.Error
		if w.doubt && errors.As(err, &refusal) && refusal.Code == -32001 {
			got = new(task.Task) // the start was lost, and the sink must not have got anything else
		} else if err != nil {
			t.Errorf("%s: %v", w.id, site.Explain(err))
			continue
		}
		to.Nudged(w.path(), got.StatusHistory, func() { s.Enable(to.Origin()) })
	}
	if strings.Contains(s.Out.String(), `"level":"error"`) {
		t.Errorf("the log has errors")
	}
	idle(s)
	if left := s.Deliveries(""); len(left) != 0 {
		t.Errorf("there is still to be delivered: %+v", left)
	}
}

// TestWebhookKillAfterStart kills the gateway as soon as a start was answered.
func TestWebhookKillAfterStart(t *testing.T) {
	t.Parallel()
	agent, to := site.NewFakeAgent(t, nil), site.NewSink(t)
	s := site.New(t)
	c := site.Config{Notify: site.AllowHere, Handle: "aip_gateway a2a/legacy " + agent.URL}
	var known []watched
	for i := range 4 {
		if i < 2 {
			to.Down()
		} else {
			to.Up()
		}
		s.Start(c)
		leader := site.LeaderOf(t, s.URL())
		w := watched{id: fmt.Sprint("task-", i)}
		set := leader.SetHook(site.Hook{URL: to.Origin() + w.path(), Token: "t", TaskID: w.id})
		notifyStart(leader, w.id, set.ID)
		s.Kill()
		known = append(known, w)
	}
	s.Start(c)
	checkWatched(t, s, to, known)
}
