// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// alarmed is a broker with an alarm at times: then it blocks a connection at the first publication there, as RabbitMQ
// does, and reads nothing more from it.
type alarmed struct {
	mu     sync.Mutex
	over   chan struct{} // closed when the alarm is over; nil without one
	stopAt string        // the method to block the next connection at, as if another link had published
	asked  []string      // requests about queues
	queues int
}

const (
	publish, acked     = "\x00\x3c\x00\x28", "\x00\x3c\x00\x50"
	blocked, unblocked = "\x00\x0a\x00\x3c\x0dlow on memory", "\x00\x0a\x00\x3d"
	declareQueue       = "\x00\x32\x00\x0a"
	deleteQueue        = "\x00\x32\x00\x28"
	bindQueue          = "\x00\x32\x00\x14"
	cancel             = "\x00\x3c\x00\x1e"
	notFound           = "\x00\x14\x00\x28\x01\x94\x09NOT_FOUND\x00\x32\x00\x0a"
)

func (a *alarmed) serve(c net.Conn) {
	greet(c, begin(""))
	answer(c, 1, frame(tune))
	answer(c, 2, frame("\x00\x0a\x00\x29\x00"))
	var published byte
	for {
		channel, method, rest := readMethod(c)
		if method == "" || method == closes {
			return
		}
		a.mu.Lock()
		over := a.over
		if method != publish && method != a.stopAt {
			over = nil
		} else if method == a.stopAt {
			a.stopAt = ""
		}
		a.mu.Unlock()
		if over != nil {
			_, _ = io.WriteString(c, frame(blocked))
			<-over
			_, _ = io.WriteString(c, frame(unblocked))
		}
		reply := a.reply(method, rest)
		if method == publish {
			published++
			reply = acked + "\x00\x00\x00\x00\x00\x00\x00" + string([]byte{published}) + "\x00"
		}
		if reply != "" {
			_, _ = io.WriteString(c, onChannel(channel, reply))
		}
	}
}

// reply answers a method, for one queue.
func (a *alarmed) reply(method, rest string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	passive := method == declareQueue && rest[3+rest[2]]&1 != 0
	switch {
	case passive && a.queues == 0:
		return notFound
	case method == declareQueue && !passive:
		a.queues = 1
		a.asked = append(a.asked, "declare")
	case method == cancel:
		return "\x00\x3c\x00\x1f\x01x"
	case method == bindQueue:
		a.asked = append(a.asked, "bind")
	case method == deleteQueue:
		a.queues = 0
		a.asked = append(a.asked, "delete")
	}
	return answers[method]
}

// raise raises the alarm, and returns the function to end it.
func (a *alarmed) raise(stopAt string) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over, a.stopAt = make(chan struct{}), stopAt
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		close(a.over)
		a.over = nil
	})
}

func (a *alarmed) pool(t *testing.T) (*broker.Pool, broker.Config) {
	noLeak(t)
	pool := broker.NewPool(0)
	return pool, broker.Config{Address: server(t, a.serve), Dialer: loopback, Login: broker.Password("user", "secret"),
		Exchange: "group", Queue: "own", Declare: true}
}

// published publishes a message, and returns the channel for the broker's answer.
func published(t *testing.T, l *broker.Link) <-chan error {
	t.Helper()
	confirmed := make(chan error, 1)
	if err := l.Publish(broker.Message{ID: "1"}, func(err error) { confirmed <- err }); err != nil {
		t.Fatal(err)
	}
	return confirmed
}

// TestJoinDuringAnAlarm: a group joining while the broker has an alarm gets an unblocked connection. Those on the
// blocked one go on when the alarm is over.
func TestJoinDuringAnAlarm(t *testing.T) {
	var a alarmed
	pool, config := a.pool(t)
	defer pool.Close()
	first := join(t, pool, config)
	end := a.raise("")
	defer end()
	confirmed := published(t, first)
	asynctest.Eventually(t, "the first connection is blocked", first.Blocked)
	second := join(t, pool, config)
	receive(t, second, func(*broker.Delivery) {})
	if second.Blocked() || pool.Connections() != 2 {
		t.Errorf("there are %d connections", pool.Connections())
	}
	var failed *broker.Error
	if err := first.Receive(t.Context(), func(*broker.Delivery) {}); !errors.As(err, &failed) ||
		failed.Kind != broker.NoAnswer {
		t.Errorf("a consumer on a blocked connection fails with %v", err)
	}
	if idle, err := first.Idle(t.Context()); idle || err != nil {
		t.Errorf("a queue that cannot be asked for is idle: %v, %v", idle, err)
	}
	if err := second.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	end()
	if err := <-confirmed; err != nil {
		t.Errorf("the publication fails with %v", err)
	}
	if err := first.Err(); err != nil {
		t.Errorf("the first link has ended: %v", err)
	}
}

// TestBlockedWhileJoining: a join is tried once more on a fresh connection if its own is blocked meanwhile, at any
// step. The work of the first try after the alarm costs the group nothing.
func TestBlockedWhileJoining(t *testing.T) {
	for name, step := range map[string]string{"channel": "\x00\x14\x00\x0a", "exchange": "\x00\x28\x00\x0a",
		"queue": declareQueue, "binding": bindQueue, "confirms": "\x00\x55\x00\x0a", "prefetch": "\x00\x3c\x00\x0a"} {
		t.Run(name, func(t *testing.T) {
			var a alarmed
			pool, config := a.pool(t)
			other := config
			other.Exchange = ""
			config.Queue, other.Queue = "own", "other"
			a.queues = 1
			first := join(t, pool, other)
			a.queues = 0
			end := a.raise(step)
			defer end()
			l := join(t, pool, config)
			receive(t, l, func(*broker.Delivery) {})
			if l.Blocked() || !first.Blocked() {
				t.Errorf("blocked: %v, and the link before %v", l.Blocked(), first.Blocked())
			}
			end()
			asynctest.Eventually(t, "the first connection is not blocked", func() bool { return !first.Blocked() })
			for _, link := range []*broker.Link{first, l} {
				if _, err := link.Idle(t.Context()); err != nil {
					t.Errorf("a link fails with %v", err)
				}
			}
			pool.Close() // the first try has done all its work
			if slices.Contains(a.asked, "delete") {
				t.Errorf("the queue is lost: %q", a.asked)
			}
		})
	}
}

// TestLeaveWhileBlocked: a queue not deletable on a blocked connection is deleted on another one.
func TestLeaveWhileBlocked(t *testing.T) {
	var a alarmed
	pool, config := a.pool(t)
	defer pool.Close()
	l := join(t, pool, config)
	end := a.raise("")
	defer end()
	confirmed := published(t, l)
	asynctest.Eventually(t, "the connection is blocked", l.Blocked)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.Leave(ctx); err == nil {
		t.Error("a queue is deleted at a broker that reads nothing")
	}
	if err := <-confirmed; err == nil {
		t.Error("a publication is confirmed by a broker that reads nothing")
	}
	again := config
	again.Declare = false
	if err := join(t, pool, again).Leave(t.Context()); err != nil {
		t.Errorf("on another connection, the queue is not deleted: %v", err)
	}
}
