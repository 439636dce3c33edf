// SPDX-License-Identifier: Apache-2.0

package group

import (
	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/task"
)

// reply is a Task published because of a command, not of an event: the answer to a get, or the refusal of a start. It
// is not stored, so its command is acknowledged when the reply is confirmed, and executed again after a crash.
type reply struct {
	id     string
	append func(dst []byte, t *task.Task) []byte // appends the Task; t is nil if the reply has no follower
	trace  map[string]string                     // the headers with the trace of the command
	acks   []func()                              // of the commands answered by it
}

// acknowledge acknowledges the commands. mu is held.
func (r *reply) acknowledge() {
	for _, ack := range r.acks {
		ack()
	}
	r.acks = nil
}

// replies are in the order of their commands.
type replies []*reply

// add adds a reply, unless it is there already: a command delivered again has the same. It returns the one in the list,
// with the acks of both.
func (list *replies) add(r *reply) *reply {
	for _, had := range *list {
		if had.id == r.id {
			had.acks = append(had.acks, r.acks...)
			return had
		}
	}
	*list = append(*list, r)
	return r
}

// maxReplies is the most replies waiting while the member is muted: their commands are acknowledged, so the prefetch
// does not bound them.
const maxReplies = 64

// reply has a reply without a follower published.
func (t *groupTasks) reply(r *reply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r = t.replies.add(r)
	if t.muted {
		r.acknowledge()
		t.replies = t.replies[max(0, len(t.replies)-maxReplies):]
	}
	t.resume()
}

// get has a task published as it is, when all its events up to now are. It reports false if the task has no follower.
func (t *groupTasks) get(taskID string, r *reply) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.followers[taskID]
	if f == nil {
		return false
	}
	r = f.gets.add(r)
	if t.muted {
		r.acknowledge()
		f.gets = f.gets[len(f.gets)-1:] // the others would be the same
	}
	f.finished = false
	t.enqueue(f)
	return true
}

// sendReply publishes the first of the replies. mu is held.
func (t *groupTasks) sendReply(epoch uint64) {
	r := t.replies[0]
	body := r.append(nil, nil)
	if !t.await(epoch, len(body)) || len(t.replies) == 0 || t.replies[0] != r {
		return
	}
	err := t.send(broker.Message{ID: r.id, Body: body, Headers: r.trace},
		func(err error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			if err != nil || epoch != t.epoch {
				return
			}
			t.confirmed(len(body))
			t.sent = t.sent[1:]
			r.acknowledge()
		})
	if err != nil {
		t.link = nil
		return
	}
	t.replies, t.sent = t.replies[1:], append(t.sent, r)
	t.published(len(body))
}

// answer has a message published as a reply.
func (t *groupTasks) answer(r *reply, body []byte) {
	r.append = func([]byte, *task.Task) []byte { return body }
	t.reply(r)
}
