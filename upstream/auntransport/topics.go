// SPDX-License-Identifier: Apache-2.0

package auntransport

import (
	"cmp"
	"log/slog"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// topics finds the exchanges of an event, by its task, and knows the time of the last event of a task.
type topics struct {
	mu     sync.Mutex
	of     map[string][]*exchange
	latest *lru.Cache[string, time.Time] // by task; it outlives the exchanges, for the gets after a cut

	silence *lru.Cache[string, silence] // by conversation
	seq     int64                       // of the last message of any conversation
	cut     map[string]time.Time        // the conversations with their turns cut, and to be resumed
	log     *slog.Logger
}

// silence is the time of an agent's silence after a message.
type silence struct {
	after int64 // the last message
	since time.Time
}

// maxLatest is the number of tasks with the time of the last event kept.
const maxLatest = 16384

func (t *topics) init(log *slog.Logger) {
	t.log, t.cut = cmp.Or(log, slog.Default()), make(map[string]time.Time)
	t.of = make(map[string][]*exchange)
	t.latest, _ = lru.New[string, time.Time](maxLatest) // the sizes are positive
	t.silence, _ = lru.New[string, silence](maxLatest)
}

// add has an exchange receive the events of a task.
func (t *topics) add(taskID string, x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[taskID] = append(t.of[taskID], x)
	delete(t.cut, taskID)
}

// remove undoes add. cut reports, of a conversation, whether its turn is to be resumed.
func (t *topics) remove(taskID string, x *exchange, cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cut && len(t.cut) < maxLatest {
		t.cut[taskID] = time.Now()
	}
	list := t.of[taskID]
	for i := range list {
		if list[i] == x {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if t.of[taskID] = list; len(list) == 0 {
		delete(t.of, taskID)
	}
}

// deliver hands a notification to the exchanges of its task. It does not wait.
func (t *topics) deliver(_ *aun.Conn, method string, params gjson.Result) {
	if method == codec.MessageReceived {
		t.deliverMessage(params)
		return
	}
	if !strings.HasPrefix(method, codec.EventPrefix) {
		return
	}
	taskID := params.Get("task_id").String()
	at := timeOf(params)
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.of[taskID]
	if len(list) == 0 {
		return
	}
	if last, ok := t.latest.Get(taskID); !at.IsZero() && (!ok || at.After(last)) {
		t.latest.Add(taskID, at)
	}
	for _, x := range list {
		x.queue.push(message{name: method, data: []byte(params.Raw), event: true})
	}
}

// isOlder reports whether an agent's answer about a task is older than an event of the task received already. Times are
// compared with the precision of the less precise one.
func (t *topics) isOlder(taskID string, result gjson.Result) bool {
	at := timeOf(result)
	t.mu.Lock()
	last, ok := t.latest.Peek(taskID)
	t.mu.Unlock()
	if !ok || at.IsZero() {
		return false
	}
	for _, unit := range [...]time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if at.Truncate(unit).Equal(at) {
			last = last.Truncate(unit)
			break
		}
	}
	return at.Before(last)
}

// timeOf returns when a task was last changed; zero if it does not say so.
func timeOf(v gjson.Result) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, v.Get("updated_at").String())
	return at
}
