// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// subscribe subscribes to a task.
func (c *client) subscribe(id string) {
	c.t.Helper()
	c.must("task.subscribe", `{"task_ids":["`+id+`"]}`)
}

// TestResume: a device subscribing again after a cut continues at its old position; an event that may have been sent
// already has the same number. Another device begins now.
func TestResume(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "d1")
		id := alice.create(reviewer, "")
		seen, last := 0, int64(0)
		read := func(c *client) {
			for {
				select {
				case e := <-c.events:
					seq := e.params.Get("seq").Int()
					if seq <= last {
						continue // sent again, because its arrival was not known
					}
					if seq != last+1 && e.method != "event/task.completed" { // awaiting completion is not shown
						t.Errorf("%d follows %d", seq, last)
					}
					if last = seq; e.method == "event/task.artifact" {
						if got := e.params.Get("artifact.content").String(); got != strconv.Itoa(seen) {
							t.Errorf("piece %q, want %d", got, seen)
						}
						seen++
					}
				default:
					return
				}
			}
		}
		const rounds, pieces = 20, 10
		for round := range rounds {
			alice.subscribe(id)
			for i := range pieces {
				w.say(id, piece(strconv.Itoa(round*pieces+i), false))
				if i == pieces/2 {
					synctest.Wait()
				}
			}
			if round%2 == 0 {
				synctest.Wait()
			}
			alice.cut()
			read(alice)
			switch round {
			case rounds / 2: // the process restarts
				w.stop()
				w.start()
			case rounds / 4: // long enough for the positions to be stored
				time.Sleep(time.Second)
			}
			alice = w.connect("alice.aid.test", "d1")
		}
		other := w.connect("alice.aid.test", "d2")
		synctest.Wait()
		other.subscribe(id)
		alice.subscribe(id)
		w.say(id, finished)
		synctest.Wait()
		read(alice)
		if seen != rounds*pieces {
			t.Errorf("%d pieces", seen)
		}
		if e := other.next(); e.String() != "completed completed" {
			t.Errorf("another device begins with %s", e)
		}
		// The end is known, too.
		synctest.Wait()
		time.Sleep(time.Second)
		for range 2 {
			alice.cut()
			alice = w.connect("alice.aid.test", "d1")
			alice.subscribe(id)
			synctest.Wait()
			read(alice)
		}
		if e := len(alice.events); e != 0 {
			t.Errorf("%d events after the end", e)
		}
		w.stop()
	})
}

// TestNothingTwice: events read by a client are not sent again, even if its connection breaks right after it.
func TestNothingTwice(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "d1")
		id := alice.create(reviewer, "")
		next := int64(1)
		for round := range 10 {
			alice.subscribe(id)
			w.say(id, piece(strconv.Itoa(round), false))
			synctest.Wait() // the client has answered the ping
			for len(alice.events) > 0 {
				if seq := alice.next().params.Get("seq").Int(); seq != next {
					t.Errorf("event %d, want %d", seq, next)
				}
				next++
			}
			alice.cut()
			alice = w.connect("alice.aid.test", "d1")
		}
		if next != 13 { // and the two states before them
			t.Errorf("the last event is %d", next-1)
		}
		w.stop()
	})
}

// TestUnsubscribe: after an unsubscribe nothing is sent, and a later subscribe continues.
func TestUnsubscribe(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "")
		id := alice.create(reviewer, "")
		alice.subscribe(id)
		w.say(id, working)
		synctest.Wait()
		if n := len(alice.events); n != 2 {
			t.Fatalf("%d events", n)
		}
		if got := alice.must("task.unsubscribe", `{"task_ids":["`+id+`","x"]}`).Get("unsubscribed").Raw; got != `["`+id+`"]` {
			t.Error(got)
		}
		w.say(id, piece("0", false))
		synctest.Wait()
		if n := len(alice.events); n != 2 {
			t.Fatalf("%d events after the unsubscribe", n)
		}
		alice.must("task.subscribe", `{"task_ids":["`+id+`"],"events":["artifact","completed"]}`)
		w.say(id, asks)
		synctest.Wait()
		alice.must("task.send_input", `{"task_id":"`+id+`","input":"x"}`)
		w.say(id, finished)
		synctest.Wait()
		var got []string
		for len(alice.events) > 0 {
			got = append(got, alice.next().String())
		}
		if want := "[updated submitted updated working artifact 0 completed completed]"; fmt.Sprint(got) != want {
			t.Errorf("%v, want %s", got, want)
		}
		w.stop()
	})
}

// TestSubscriptionLimit: a connection follows no more tasks than it may.
func TestSubscriptionLimit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.Limits.Subscriptions = 2
		w.start()
		alice := w.connect("alice.aid.test", "d")
		ids := []string{alice.create(reviewer, ""), alice.create(reviewer, ""), alice.create(reviewer, "")}
		list := `{"task_ids":["` + ids[0] + `","` + ids[1] + `","` + ids[2] + `"]}`
		if got := alice.must("task.subscribe", list).Get("subscribed").Array(); len(got) != 2 {
			t.Errorf("subscribed to %d", len(got))
		}
		if _, code := alice.call("task.subscribe", `{"task_ids":["`+ids[2]+`"]}`); code != -32050 {
			t.Errorf("beyond the limit: %d", code)
		}
		alice.must("task.unsubscribe", `{"task_ids":["`+ids[0]+`"]}`)
		synctest.Wait()
		time.Sleep(time.Second)
		alice.subscribe(ids[2])
		w.stop()
	})
}

// TestReadersHaveTheirOwnStreams: a follower of another one's public tasks uses up streams of its own.
func TestReadersHaveTheirOwnStreams(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.streams = 3
		w.start()
		alice, evil := w.connect("alice.aid.test", "d"), w.connect("evil.aid.test", "d")
		var ids []string
		for range 5 {
			ids = append(ids, alice.create(reviewer, `,"visibility":"public"`))
		}
		list := `{"task_ids":["` + strings.Join(ids, `","`) + `"]}`
		for _, c := range []*client{evil, alice} {
			if got := c.must("task.subscribe", list).Get("subscribed").Array(); len(got) != 3 {
				t.Errorf("subscribed to %d tasks, want 3", len(got))
			}
		}
		w.stop()
	})
}

// TestLongAway: a device away for longer than the store keeps other tasks gets the rest of a task it follows. Then the
// task is dropped.
func TestLongAway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "d1")
		id := alice.create(reviewer, "")
		alice.subscribe(id)
		w.say(id, piece("0", false))
		synctest.Wait()
		time.Sleep(time.Second)
		alice.cut()
		w.say(id, piece("1", true))
		w.say(id, finished)
		time.Sleep(3 * replay.DefaultRetention)
		w.stop()
		w.start()
		alice = w.connect("alice.aid.test", "d1")
		alice.subscribe(id)
		for _, want := range []string{"artifact", "completed"} {
			if e := alice.next(); e.method != "event/task."+want {
				t.Errorf("an event is %s, want %s", e, want)
			}
		}
		time.Sleep(2 * time.Hour) // now nothing is to be received any more
		alice = w.connect("alice.aid.test", "d1")
		if _, code := alice.call("task.subscribe", `{"task_ids":["`+id+`"]}`); code == 0 {
			t.Error("the task is still there")
		}
		w.stop()
	})
}

// TestPositions: an AID has a bounded number of positions. One is dropped when its device has the last event of the
// task, or when the task is gone.
func TestPositions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		positions := func() (n int) {
			for e, err := range w.store.List(t.Context(), string(logname.AUN), "") {
				if err != nil {
					t.Fatal(err)
				}
				if logname.FollowerOf(e.Log) != "" {
					n++
				}
			}
			return n
		}
		want := func(what string, n int) {
			t.Helper()
			synctest.Wait()
			time.Sleep(time.Second)
			if got := positions(); got != n {
				t.Errorf("%s: %d positions, want %d", what, got, n)
			}
		}
		alice := w.connect("alice.aid.test", "d1")
		id := alice.create(reviewer, "")
		alice.subscribe(id)
		w.say(id, working)
		want("while the task runs", 1)
		front := w.front
		if err := positionsOf(front).Take("alice.aid.test", maxPositions-1, positionLimits); err != nil {
			t.Fatal(err)
		}
		other := w.connect("alice.aid.test", "d2")
		other.must("task.subscribe", `{"task_ids":["`+id+`"],"after":{"`+id+`":0}}`)
		want("with as many as an AID may have", 1)
		positionsOf(front).Give("alice.aid.test", maxPositions-1)
		w.say(id, piece("0", false))
		want("with room again", 2)
		w.stop() // everything is counted again
		w.start()
		synctest.Wait()
		if err := positionsOf(w.front).Take("alice.aid.test", maxPositions-1, positionLimits); err == nil {
			t.Error("the positions of an earlier process are not counted")
		}
		alice = w.connect("alice.aid.test", "d1")
		alice.subscribe(id)
		w.say(id, finished)
		want("when one device has the last event", 1)
		time.Sleep(3 * recheck)
		want("while another device is to get it", 1)
		time.Sleep(replay.DefaultPinFor)
		want("when the task is gone", 0)
		if err := positionsOf(w.front).Take("alice.aid.test", maxPositions, positionLimits); err != nil {
			t.Errorf("positions are still counted: %v", err)
		}
		w.stop()
	})
}

// positionsOf returns the counter of positions.
func positionsOf(f *Front) *limit.Counter { return &f.config.Index.homes.Of(0).positions }
