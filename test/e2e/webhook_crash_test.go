// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// watched is a task with a webhook, as its Leader knows it.
type watched struct {
	id    string
	doubt bool // it is unknown whether it was started
}

func (w watched) path() string { return "/" + w.id }

// liveWatched starts one task after another, each with a webhook, until the gateway is gone.
func liveWatched(c *caller, to *sink, name string, random *rand.Rand) (all []watched) {
	for i := 0; ; i++ {
		w := watched{id: fmt.Sprintf("%s-%d", name, i)}
		if !c.trySet(hook{URL: to.origin() + w.path(), Token: "t", TaskID: w.id}) {
			return all
		}
		_, err := c.try(startCall(w.id, []string{"hello", "ask", "fail"}[random.IntN(3)]))
		w.doubt = err != nil
		all = append(all, w)
		for turn := 0; err == nil && turn < random.IntN(4); turn++ {
			_, err = c.try(
				commandCall([]task.Command{task.Continue, task.Continue, task.Complete, task.Cancel}[random.IntN(4)], w.id, "more"),
			)
		}
		if lost(c, err) {
			return all
		}
	}
}

// lost reports whether an error is that of a gateway that is gone. Others fail the test.
func lost(c *caller, err error) bool {
	var refusal *leader.Error
	if errors.As(err, &refusal) {
		c.t.Errorf("refused: %s", refusal.Raw)
	}
	return err != nil
}

// trySet sets a webhook, and reports false where no answer came.
func (c *caller) trySet(h hook) bool {
	body := fmt.Appendf(
		nil,
		`{"jsonrpc":"2.0","id":"1","method":"notification/set","params":{"url":%q,"token":%q,"taskId":%q}}`,
		h.URL,
		h.Token,
		h.TaskID,
	)
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.mount+"/notification/set", bytes.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.HTTP.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && !strings.Contains(string(answer), `"result":{"id":"notification-`) {
		c.t.Errorf("set of %s is answered %s", h.TaskID, answer)
	}
	if err == nil {
		c.course.step()
	}
	return err == nil
}

// anySeed is the seed of a test's randomness: the one of the environment, or another every time.
func anySeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("AIP_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the seed is %d; AIP_SEED=%d uses it again", seed, seed)
	return seed
}

// TestWebhookKill kills the gateway at random moments, while the receiver is there, refuses, or is not, and demands
// that in the end the webhooks were notified of everything in the tasks' histories, each change under one id.
func TestWebhookKill(t *testing.T) {
	t.Parallel()
	const rounds, workers = 5, 4
	seed := anySeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	_, agent := sampleAgent(t)
	s, to := newSite(t), newSink(t)
	c := config{
		store:  "store pebble " + s.dir + "/store {\nsync state\n}",
		notify: here + "attempts 100",
		handle: "aip_gateway a2a/legacy http://" + agent,
	}
	var known []watched
	for round := range rounds {
		switch random.IntN(3) {
		case 0:
			to.down()
		case 1:
			to.answers(always(refusal(500)))
			to.up()
		case 2:
			to.answers(always(taken()))
			to.up()
		}
		s.start(c)
		s.awake()
		s.enable(to.origin())
		made := make([][]watched, workers)
		var all sync.WaitGroup
		load := new(course)
		kill := load.after(20 + random.IntN(180))
		for w := range workers {
			leader := leaderOf(t, s.url())
			leader.course = load
			random := rand.New(rand.NewPCG(seed, uint64(round*workers+w+1)))
			all.Go(func() {
				defer leader.Close()
				made[w] = liveWatched(leader, to, fmt.Sprintf("%d-%d", round, w), random)
			})
		}
		<-kill
		s.kill()
		all.Wait()
		for _, m := range made {
			known = append(known, m...)
		}
	}
	to.answers(always(taken()))
	to.up()
	s.start(c)
	checkWatched(t, s, to, known)
	t.Logf("%d tasks, %d notifications", len(known), len(to.arrived("")))
}

// checkWatched demands that a sink was notified of the whole histories of tasks, as they are now.
func checkWatched(t *testing.T, s *site, to *sink, known []watched) {
	t.Helper()
	c := leaderOf(t, s.url())
	for _, w := range known {
		got, err := c.settled(w.id)
		var refusal *leader.Error
		if w.doubt && errors.As(err, &refusal) && refusal.Code == -32001 {
			got = new(task.Task) // the start was lost, and the sink must not have got anything else
		} else if err != nil {
			t.Errorf("%s: %v", w.id, explain(err))
			continue
		}
		to.nudged(w.path(), got.StatusHistory, func() { s.enable(to.origin()) })
	}
	if strings.Contains(s.out.String(), `"level":"error"`) {
		t.Errorf("the log has errors")
	}
	s.idle()
	if left := s.deliveries(""); len(left) != 0 {
		t.Errorf("there is still to be delivered: %+v", left)
	}
}

// TestWebhookKillAfterStart kills the gateway as soon as a start was answered.
func TestWebhookKillAfterStart(t *testing.T) {
	t.Parallel()
	agent, to := newFakeAgent(t, nil), newSink(t)
	s := newSite(t)
	c := config{notify: here, handle: "aip_gateway a2a/legacy " + agent.url}
	var known []watched
	for i := range 4 {
		if i < 2 {
			to.down()
		} else {
			to.up()
		}
		s.start(c)
		leader := leaderOf(t, s.url())
		w := watched{id: fmt.Sprint("task-", i)}
		set := leader.setHook(hook{URL: to.origin() + w.path(), Token: "t", TaskID: w.id})
		leader.notifyStart(w.id, set.ID)
		s.kill()
		known = append(known, w)
	}
	s.start(c)
	checkWatched(t, s, to, known)
}
