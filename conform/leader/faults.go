// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// Fault is one way in which the Partner misbehaves.
type Fault struct {
	// Name is the first part of the path under which it is.
	Name string
	// Does says what happens, and Wants what a Leader does well to do.
	Does, Wants string

	change func(p *partner.Partner)
	wrap   func(http.Handler) http.Handler
}

// Faults returns all, the ones that matter most first.
func Faults() []Fault { return faults }

const (
	retry  = "it sends the same start again, with the same taskId"
	resume = "it streams again behind the last eventSeq"
	bound  = "it gives up at a bound of its own, and cancels the task"
	doubt  = "it takes nothing of it for an answer"
)

var faults = []Fault{
	{"lost-request", "the first start is lost before it is executed", retry, once("start", false), nil},
	{"lost-answer", "the first start is executed, and its answer is lost", retry, once("start", true), nil},
	{"502", "the first call has the status 502, and was executed", retry, nil, statusOnce(http.StatusBadGateway, true)},
	{"503", "the first call has the status 503, and was not executed", retry, nil,
		statusOnce(http.StatusServiceUnavailable, false)},
	{"cut-at-header", "a stream is cut before its first event", resume, cut(0), nil},
	{"cut-between-events", "a stream is cut behind its second event", resume, cut(2), nil},
	{"cut-in-event", "a stream is cut in its third event", resume, cutIn(3), nil},
	{"cut-as-an-end", "a stream ends behind its second event as if it were complete", resume, endAt(2, false), nil},
	{"cut-in-silence", "a stream is silent behind its second event, and stays open", resume, endAt(2, true), nil},
	{"cut-before-the-last", "a stream is cut in place of the status that ends the turn", resume, cutLast, nil},
	{"completes", "a task is completed unasked", "it takes the products", later("awaiting-completion", "completed"), nil},
	{"cancels", "a task is canceled unasked while it works", "it reports that there is no result",
		later("working", "canceled"), nil},
	{"wakes", "a completed task works again", "it believes the first end", later("completed", "working"), nil},
	{"forgets", "the Partner knows no task behind its start", "it starts the work at most once more", forget, nil},
	{"endless", "an answer in JSON never ends", bound, nil, always(endless)},
	{"silence", "there is no answer", bound, nil, always(silence)},
	{"trickle", "an answer comes byte by byte", bound, nil, trickle},
	{"wrong-order", "events come in the wrong order", "it sorts by eventSeq", swap, nil},
	{"garbage", "answers are HTML with the status 200", doubt, nil, always(garbage)},
	{"foreign-events", "a stream has events of another task", "it leaves them out", foreign, nil},
	{"refused", "the caller may not do this", "it does not repeat the call", refused("AuthorizationFailedError"), nil},
	{"unknown-caller", "the caller is not known", "it does not repeat the call",
		refused("AuthenticationRequiredError"), nil},
	{"v2-only", "the Partner speaks v02 alone", "it speaks v02, or reports the error", secondOnly, nil},
	{"huge", "a product has 64 MiB", bound, nil, always(huge)},
	{"deep", "structured data has 100,000 levels", bound, nil, always(deep)},
	{"flood", "a stream has its first event again and again, without end", bound, nil, flood},
	{"slow-cancel", "a cancel is answered after 20 seconds", bound, slowCancel, nil},
	{"refused-cancel", "a cancel is refused with -32002, and the task goes on", "it asks for the task's state",
		refusedCancel, nil},
}

// abort closes the connection without an answer.
func abort() { panic(http.ErrAbortHandler) }

// commandOf returns the command of a call that was not looked at yet.
func commandOf(c *partner.Call) partner.Object {
	for _, member := range []string{"message", "command"} {
		if o, is := c.Params[member].(partner.Object); is {
			return o
		}
	}
	return nil
}

// once loses the first call with a command.
func once(command string, execute bool) func(*partner.Partner) {
	return func(p *partner.Partner) {
		var first sync.Once
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if commandOf(c)["command"] == command {
				first.Do(func() {
					if execute {
						next()
					}
					abort()
				})
			}
			return next()
		}
	}
}

// statusOnce answers the first call with a status of HTTP.
func statusOnce(status int, execute bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		var first sync.Once
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			failed := false
			first.Do(func() {
				if failed = true; execute {
					next.ServeHTTP(&nowhere{header: make(http.Header)}, r)
				}
			})
			if failed {
				w.Header().Set("Retry-After", "1")
				http.Error(w, http.StatusText(status), status)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// nowhere is where an answer goes that is lost.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header { return n.header }
func (n *nowhere) WriteHeader(int)     {}

// Write ends a stream at its first event.
func (n *nowhere) Write(b []byte) (int, error) {
	if n.header.Get("Content-Type") == "text/event-stream" {
		return 0, http.ErrHandlerTimeout
	}
	return len(b), nil
}

// counts calls see with the number of each event in the first stream of a call.
func counts(see func(n int, c *partner.Call, e *partner.Event, frame []byte) []byte) func(*partner.Partner) {
	return func(p *partner.Partner) {
		var mu sync.Mutex
		events := make(map[*partner.Call]int)
		p.Frame = func(c *partner.Call, e *partner.Event, frame []byte) []byte {
			if c.Command == "re-stream" {
				return frame
			}
			mu.Lock()
			events[c]++
			n := events[c]
			mu.Unlock()
			return see(n, c, e, frame)
		}
	}
}

func cut(behind int) func(*partner.Partner) {
	return counts(func(n int, _ *partner.Call, _ *partner.Event, frame []byte) []byte {
		if n > behind {
			abort()
		}
		return frame
	})
}

func cutIn(number int) func(*partner.Partner) {
	return counts(func(n int, _ *partner.Call, _ *partner.Event, frame []byte) []byte {
		if n == number {
			return frame[:len(frame)/2]
		}
		if n > number {
			abort()
		}
		return frame
	})
}

func endAt(behind int, silent bool) func(*partner.Partner) {
	return counts(func(n int, c *partner.Call, _ *partner.Event, frame []byte) []byte {
		if n <= behind {
			return frame
		}
		if silent {
			<-c.HTTP.Context().Done()
		}
		return nil
	})
}

func cutLast(p *partner.Partner) {
	counts(func(_ int, _ *partner.Call, e *partner.Event, frame []byte) []byte {
		if e.State != "" && e.State != "accepted" && e.State != "working" {
			abort()
		}
		return frame
	})(p)
}

// later changes the state of a task unasked, soon behind another one.
func later(state, next string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Accepts["life after the end"] = true
		p.Later(state, next, 300*time.Millisecond)
	}
}

func forget(p *partner.Partner) {
	p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
		if o := commandOf(c); o != nil && o["command"] != "start" {
			return nil, p.Failure("TaskNotFoundError")
		}
		return next()
	}
}

func refused(name string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Handle = func(*partner.Call, func() (any, *partner.Error)) (any, *partner.Error) { return nil, p.Failure(name) }
	}
}

func secondOnly(p *partner.Partner) {
	p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
		if o := commandOf(c); o != nil && o["type"] != "task-command" {
			return nil, p.Failure("InvalidParams")
		}
		return next()
	}
}

func slowCancel(p *partner.Partner) {
	p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
		if commandOf(c)["command"] == "cancel" {
			select {
			case <-time.After(20 * time.Second):
			case <-c.HTTP.Context().Done():
			}
		}
		return next()
	}
}

func refusedCancel(p *partner.Partner) {
	p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
		if commandOf(c)["command"] == "cancel" {
			return nil, p.Failure("TaskNotCancelableError")
		}
		return next()
	}
}

// swap changes the order of an event and the next one.
func swap(p *partner.Partner) {
	var mu sync.Mutex
	held := make(map[*partner.Call][]byte)
	p.Frame = func(c *partner.Call, e *partner.Event, frame []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		before := held[c]
		if before == nil && e.State == "" {
			held[c] = frame
			return []byte{}
		}
		delete(held, c)
		return append(bytes.Clone(frame), before...)
	}
}

// foreign puts an event of another task before each.
func foreign(p *partner.Partner) {
	p.Event = func(t *partner.Task, e *partner.Event) []*partner.Event {
		other := partner.Object{"type": t.Version.Update, "taskId": "task-of-another-leader", "sessionId": "another",
			"status": partner.Object{"state": "failed", "stateChangedAt": "2026-01-01T00:00:00+08:00"}}
		number := len(t.Events)
		e.Seq = number + 2
		return []*partner.Event{{Seq: number + 1, Object: other}, e}
	}
}
