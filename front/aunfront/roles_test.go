// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestRoles: the roles that may call each method of a task, by the visibility of the task.
func TestRoles(t *testing.T) {
	const (
		notFound, denied, delegation = -32170, -32175, -32178
	)
	methods := []struct {
		method, more                           string
		owner, participant, stranger, ofPublic int // codes; 0 for success
	}{
		{"task.get", "", 0, 0, notFound, 0},
		{"task.children", "", 0, 0, notFound, 0},
		{"task.accept", "", denied, denied, notFound, denied},
		{"task.reject", "", denied, denied, notFound, denied},
		{"task.complete", "", denied, denied, notFound, denied},
		{"task.fail", `,"reason":"x"`, denied, denied, notFound, denied},
		{"task.delegate", `,"to":"` + translator + `","input":"x"`, 0, delegation, notFound, delegation},
		{"task.send_input", `,"input":"x"`, -32171, denied, notFound, denied},
		{"task.cancel", "", 0, denied, notFound, denied},
	}
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice, bob, eve := w.connect("alice.aid.test", "d"), w.connect("bob.aid.test", "d"), w.connect("eve.aid.test", "d")
		for _, m := range methods {
			check := func(who string, c *client, id string, want int) {
				t.Helper()
				if _, code := c.call(m.method, fmt.Sprintf(`{"task_id":%q%s}`, id, m.more)); code != want {
					t.Errorf("%s by %s: %d, want %d", m.method, who, code, want)
				}
			}
			shared := alice.create(reviewer, `,"participants":["bob.aid.test"]`)
			public := alice.create(reviewer, `,"visibility":"public"`)
			private := alice.create(reviewer, `,"visibility":"private","participants":["bob.aid.test"]`)
			for _, id := range []string{shared, public, private} {
				w.say(id, working)
			}
			synctest.Wait()
			check("a participant", bob, shared, m.participant)
			check("a participant of a private task", bob, private, m.stranger)
			check("a stranger", eve, shared, m.stranger)
			check("a stranger, of a public task", eve, public, m.ofPublic)
			check("a stranger, of a task that is not there", eve, "task_X", notFound)
			check("the owner", alice, shared, m.owner)
			check("the owner, of a task that is not there", alice, "task_X", notFound)
		}
		for id, want := range map[string]int{alice.create(reviewer, ""): notFound, "x": notFound} {
			if _, code := eve.call("task.subscribe", `{"task_ids":["`+id+`"]}`); code != want {
				t.Errorf("a stranger subscribes: %d", code)
			}
		}
		if n := len(eve.must("task.list", `{}`).Get("tasks").Array()); n != 0 {
			t.Errorf("a stranger lists %d tasks", n)
		}
		for _, tc := range []struct {
			method, params string
			want           int
		}{
			{"task.create", `{"to":"unknown.aid.test","input":"x"}`, -32010},
			{"task.create", `{"to":"?","input":"x"}`, -32602},
			{"task.create", `{"to":"` + reviewer + `"}`, -32602},
			{"task.create", `{"to":"` + reviewer + `","input":"x","visibility":"secret"}`, -32602},
			{"task.get", `{}`, -32602},
			{"task.get", `{"task_id":7}`, -32602},
			{"task.subscribe", `{"task_ids":[]}`, -32602},
			{"task.subscribe", `{"task_ids":["x"],"events":["born"]}`, -32602},
			{"task.list", `{"cursor":"x y"}`, -32602},
			{"task.destroy", `{}`, -32601},
			{"group.list_my", `{}`, -32601},
			{"group.v2.bootstrap", `{}`, -32601},
			{"storage.get", `{}`, -32601},
		} {
			if _, code := alice.call(tc.method, tc.params); code != tc.want {
				t.Errorf("%s %s: %d, want %d", tc.method, tc.params, code, tc.want)
			}
		}
		w.stop()
	})
}

// TestEndedTasks: an ended task answers according to its end.
func TestEndedTasks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "d")
		end := map[string]agent.Report{
			"completed": finished,
			"failed":    {State: task.Failed, Items: []task.DataItem{task.Text("no")}},
			"rejected":  {State: task.Rejected, Items: []task.DataItem{task.Text("no")}},
		}
		for status, code := range map[string]int{
			"completed": -32171, "failed": -32186, "rejected": -32177, "canceled": -32173,
		} {
			id := alice.create(reviewer, "")
			if rep, ok := end[status]; ok {
				w.say(id, rep)
			} else {
				alice.must("task.cancel", params(id))
			}
			synctest.Wait()
			if got := alice.must("task.get", params(id)).Get("status").String(); got != status {
				t.Errorf("the task is %s, want %s", got, status)
			}
			for method, more := range map[string]string{
				"task.cancel": "", "task.send_input": `,"input":"x"`, "task.delegate": `,"to":"` + translator + `","input":"x"`,
			} {
				if _, got := alice.call(method, `{"task_id":"`+id+`"`+more+`}`); got != code {
					t.Errorf("%s of a task that is %s: %d, want %d", method, status, got, code)
				}
			}
		}
		w.stop()
	})
}

// TestDelegation: a task is divided, up to limits, and each part is a task of its own.
func TestDelegation(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "d")
		delegate := func(id string) (string, int) {
			got, code := alice.call("task.delegate", `{"task_id":"`+id+`","to":"`+translator+`","input":"part"}`)
			return got.Get("task_id").String(), code
		}
		root := alice.create(reviewer, "")
		alice.must("task.subscribe", `{"task_ids":["`+root+`"],"events":["delegated"]}`)
		id := root
		for depth := 1; depth <= maxDepth; depth++ {
			child, code := delegate(id)
			if code != 0 {
				t.Fatalf("depth %d: %d", depth, code)
			}
			id = child
		}
		if _, code := delegate(id); code != -32179 {
			t.Errorf("too deep: %d", code)
		}
		if e := alice.next(); e.method != "event/task.delegated" || e.params.Get("task_id").String() != root {
			t.Errorf("the event is %s %s", e.method, e.params.Raw)
		}
		for range maxChildren - 1 {
			if _, code := delegate(root); code != 0 {
				t.Fatal(code)
			}
		}
		if _, code := delegate(root); code != -32179 {
			t.Errorf("too many: %d", code)
		}
		list := alice.must("task.children", params(root)).Get("children").Array()
		if len(list) != maxChildren || list[0].Get("assignee").String() != translator ||
			list[0].Get("status").String() != "submitted" || list[0].Get("parent_task_id").String() != root {
			t.Errorf("%d children, the first is %s", len(list), list[0].Raw)
		}
		got := alice.must("task.get", params(root))
		if n := len(got.Get("children").Array()); n != maxChildren {
			t.Errorf("the task has %d children", n)
		}
		if parent := alice.must("task.get", params(id)).Get("parent_task_id").String(); parent == "" {
			t.Error("a child has no parent")
		}
		w.stop()
	})
}

// TestList: the tasks of an owner, at several agents, page by page.
func TestList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "d")
		want := map[string]bool{}
		for _, aid := range []string{reviewer, translator, reviewer} {
			id := alice.create(aid, "")
			want[id] = true
			w.say(id, working)
		}
		synctest.Wait()
		cursor, pages := "null", 0
		for more := true; more; pages++ {
			got := alice.must("task.list", `{"status":"working","limit":2,"cursor":`+cursor+`}`)
			for _, one := range got.Get("tasks").Array() {
				delete(want, one.Get("task_id").String())
			}
			cursor, more = got.Get("next_cursor").Raw, got.Get("has_more").Bool()
		}
		if len(want) != 0 || pages != 2 {
			t.Errorf("%d pages, and %v are not listed", pages, want)
		}
		pending := alice.create(reviewer, "")
		if got := alice.must("task.list", `{"status":"submitted"}`); got.Get("tasks.0.task_id").String() != pending ||
			got.Get("tasks.0.status").String() != "submitted" {
			t.Errorf("%s", got.Raw)
		}
		if got := alice.must("task.list", `{"status":"failed"}`); len(got.Get("tasks").Array()) != 0 {
			t.Errorf("%s", got.Raw)
		}
		w.stop()
	})
}

// TestRepeatedCreate: a message with an id makes one task, however often it is sent.
func TestRepeatedCreate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "d")
		id := alice.create(reviewer, `,"message_id":"m1"`)
		if again := alice.create(reviewer, `,"message_id":"m1"`); again != id {
			t.Errorf("%s and %s", id, again)
		}
		if other := alice.create(reviewer, `,"message_id":"m2"`); other == id {
			t.Error("another message makes the same task")
		}
		w.stop()
	})
}

// TestPagesOfChildren: a page has the number of children the client wants, and of none is more read than its state: one
// too large for a frame is listed like any other.
func TestPagesOfChildren(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "d1")
		root := alice.create(reviewer, "")
		want := []string{}
		for i := range 7 {
			child := alice.must("task.delegate", `{"task_id":"`+root+`","to":"`+translator+`","input":"go"}`).
				Get("task_id").String()
			status := "submitted"
			switch i {
			case 3:
				w.say(child, finished)
				status = "completed"
			case 5:
				w.say(child, piece(strings.Repeat("x", aun.MaxFrame), true))
				status = "working"
			}
			want = append(want, child+" "+status)
		}
		synctest.Wait()
		for _, limit := range []int{0, 1, 3, 7, 50} {
			got, cursor := []string{}, ""
			for more := true; more; {
				p := `{"task_id":"` + root + `","cursor":"` + cursor + `"`
				if limit > 0 {
					p += fmt.Sprint(`,"limit":`, limit)
				}
				page := alice.must("task.children", p+"}")
				list := page.Get("children").Array()
				for _, child := range list {
					got = append(got, child.Get("task_id").String()+" "+child.Get("status").String())
				}
				if limit > 0 && len(list) > limit {
					t.Errorf("a page of %d has %d children", limit, len(list))
				}
				cursor, more = page.Get("next_cursor").String(), page.Get("has_more").Bool()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
			}
		}
		for _, bad := range []string{`"limit":0`, `"limit":"x"`, `"cursor":"x"`} {
			if _, code := alice.call("task.children", `{"task_id":"`+root+`",`+bad+`}`); code != -32602 {
				t.Errorf("%s: %d", bad, code)
			}
		}
		w.stop()
	})
}

// service is a Service without methods.
type service struct{ Service }

// TestNamespaces: each namespace is named once.
func TestNamespaces(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.Services = map[string]Service{"meta": service{}, "search": service{}}
		w.start()
		c := w.dial("/aun")
		nonce := c.next().params.Get("nonce").String()
		tokens, err := aun.Login(t.Context(), c.conn, w.pki.Identity("alice.aid.test"), w.pki.Roots(), nil)
		if err != nil {
			t.Fatal(err)
		}
		hello, err := aun.Connect(t.Context(), c.conn, nonce, tokens, "d", "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"auth", "meta", "search", "task"}, hello.Namespaces); diff != "" {
			t.Errorf("namespaces (-want +got):\n%s", diff)
		}
		w.stop()
	})
}
