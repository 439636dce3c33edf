// SPDX-License-Identifier: Apache-2.0

package auntransport

import "sync"

// The most messages of one exchange waiting to be read. If an agent sends more, the exchange ends, and the task is
// polled.
const (
	maxQueued      = 4096
	maxQueuedBytes = 8 << 20
)

// message is one message of an exchange.
type message struct {
	name  string
	data  []byte
	event bool // it came unasked
	// Of a conversation.
	says   bool // the agent has said something to be a product
	starts bool // the agent has declared itself at work
}

// queue holds the messages arrived in an exchange and not yet read. Any goroutine may push; one reads.
type queue struct {
	mu    sync.Mutex
	list  []message
	bytes int
	ended error         // the error after the messages; nil while more may come
	wake  chan struct{} // has a value after a push or an end
}

func newQueue() queue { return queue{wake: make(chan struct{}, 1)} }

// push adds a message, unless the queue has ended. Beyond the limit, the queue ends.
func (q *queue) push(m message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended != nil {
		return
	}
	if len(q.list) == maxQueued || q.bytes+len(m.data) > maxQueuedBytes {
		q.ended = errTooMany
	} else {
		q.list = append(q.list, m)
		q.bytes += len(m.data)
	}
	q.signal()
}

// replace replaces all waiting messages by one.
func (q *queue) replace(m message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list, q.bytes = []message{m}, len(m.data)
	q.signal()
}

// end ends the queue, unless it has ended.
func (q *queue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended == nil {
		q.ended = err
	}
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pop takes the first message. ok is false if there is none; err is then the end, or nil.
func (q *queue) pop() (m message, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 {
		return m, false, q.ended
	}
	m = q.list[0]
	q.bytes -= len(m.data)
	if q.list = q.list[1:]; len(q.list) == 0 {
		q.list = nil
	}
	return m, true, nil
}

// ready reports whether pop returns a message.
func (q *queue) ready() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) > 0
}
