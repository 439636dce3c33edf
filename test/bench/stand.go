// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// stand is an engine over a store of its own, and the receivers that it notifies.
type stand struct {
	ctx       context.Context // ends with its cause when the sink does
	stop      context.CancelCauseFunc
	dir       string
	store     *pebble.Store
	engine    *notify.Engine
	sink      *sink
	reading   sync.WaitGroup
	listeners []net.Listener // the system accepts connections for them, and no program reads them
	tasks     []*changing

	pending chan struct{} // holds one for each notification that has not arrived

	mu     sync.Mutex
	delays []time.Duration
	again  int
}

// changing is a task whose state goes to and fro. It has one writer.
type changing struct {
	log string
	seq uint64
	at  time.Time
}

func newStand(ctx context.Context) (_ *stand, err error) {
	s := &stand{pending: make(chan struct{}, pending)}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.sink, err = newSink(ctx); err != nil {
		return nil, err
	}
	s.reading.Go(s.read)
	if s.dir, err = os.MkdirTemp("", "aip-bench-"); err != nil {
		return nil, err
	}
	if s.store, err = pebble.Open(s.dir, replay.Settings{}, nil); err != nil {
		return nil, err
	}
	return s, s.open()
}

// open opens an engine over the store.
func (s *stand) open() error {
	engine, err := notify.NewProcess(nil).Open(s.ctx, s.store)
	if err != nil {
		return err
	}
	s.engine = engine
	wire := aip.Server()
	s.engine.Configure(notify.Config{
		Egress:   &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Dialects: func(*task.Webhook, string) translate.Notifier { return wire },
		Log:      slog.New(slog.DiscardHandler), // that endpoints are dead is known
	})
	return nil
}

func (s *stand) close() (err error) {
	if s.engine != nil {
		s.engine.Close()
	}
	if s.store != nil {
		err = s.store.Close()
	}
	if s.sink != nil {
		s.sink.stdin.Close() // the last of what it says is read before it is waited for
		s.reading.Wait()
		s.sink.close()
	}
	for _, l := range s.listeners {
		l.Close()
	}
	s.stop(nil)
	return errors.Join(err, os.RemoveAll(s.dir))
}

// read counts arrivals until the sink ends.
func (s *stand) read() {
	for {
		a, err := s.sink.next()
		if err != nil {
			s.stop(fmt.Errorf("the sink has ended: %w", err))
			return
		}
		s.mu.Lock()
		if a.again {
			s.again++
		} else {
			s.delays = append(s.delays, a.delay)
		}
		s.mu.Unlock()
		if !a.again {
			<-s.pending
		}
	}
}

// take returns how long what has arrived since the last time took, sorted, and how much came more than once in all.
func (s *stand) take() ([]time.Duration, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delays := s.delays
	s.delays = nil
	slices.Sort(delays)
	return delays, s.again
}

// live sets the webhooks of the sink.
func (s *stand) live() error {
	for i := range liveTasks {
		s.tasks = append(s.tasks, &changing{log: fmt.Sprintf("tbench\x00leader\x00task-%d", i), at: time.Now()})
	}
	return together(liveTasks, func(i int) error { return s.set(s.tasks[i], "http://"+s.sink.addr+"/hook") })
}

// bury sets the webhooks of endpoints that are dead, and makes a notification for each. Each is an address of its
// own on loopback: where the sink's port is closed, or where the system accepts connections and no program reads them.
func (s *stand) bury() error {
	// no process can listen on it on all addresses while the sink has it on one
	_, port, err := net.SplitHostPort(s.sink.addr)
	if err != nil {
		return err
	}
	var endpoints []string
	for i := range deadEndpoints / 2 {
		endpoints = append(endpoints, net.JoinHostPort(fmt.Sprintf("127.1.%d.%d", i/250, 1+i%250), port))
		l, err := net.Listen("tcp", fmt.Sprintf("127.2.%d.%d:0", i/250, 1+i%250))
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, l)
		endpoints = append(endpoints, l.Addr().String())
	}
	return together(len(endpoints)*deadTasks, func(i int) error {
		e, n := i%len(endpoints), i/len(endpoints)
		t := &changing{log: fmt.Sprintf("tbench\x00leader-%d\x00task-%d", e, n), at: time.Now()}
		if err := s.set(t, "http://"+endpoints[e]+"/hook"); err != nil {
			return err
		}
		s.notify(t)
		return nil
	})
}

func (s *stand) set(t *changing, url string) error {
	_, err := s.engine.Set(
		s.ctx, t.log, task.Webhook{URL: url, Token: "a-token-of-some-length", Dialect: "aip"}, notify.At{})
	return err
}

// notify reports the task's next change to the engine, as the life-cycle does. The change holds its time.
func (s *stand) notify(t *changing) {
	t.seq++
	state := task.Working
	if t.seq%2 == 0 {
		state = task.AwaitingInput
	}
	now := time.Now()
	if !now.After(t.at.Add(time.Millisecond)) {
		t.at = t.at.Add(time.Millisecond)
	} else {
		t.at = now
	}
	at := strconv.FormatInt(now.UnixNano(), 10)
	s.engine.Notify(
		s.ctx,
		t.log,
		[]task.Change{{Seq: t.seq, Task: &task.Task{ID: t.log[len("tbench\x00leader\x00"):], SessionID: "session-1",
			Status:   task.Status{State: state, ChangedAt: t.at, DataItems: []task.DataItem{task.Text(at + " ")}},
			Products: []task.Product{{ID: "artifact-0", DataItems: []task.DataItem{task.Text("echo: hello there")}}}}}},
	)
}

// feed reports changes of the tasks, one after the other, for so long: as fast as they are delivered, or one every
// so often. It ends early where the sink does.
func (s *stand) feed(d, every time.Duration) {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	n := feeders
	if every > 0 {
		n = 1
	}
	var group sync.WaitGroup
	for f := range n {
		group.Go(func() {
			for i := f; ; i += n { // a task has one writer
				if i >= len(s.tasks) {
					i = f
				}
				select {
				case s.pending <- struct{}{}:
				case <-ctx.Done():
					return
				}
				s.notify(s.tasks[i])
				if every > 0 {
					select {
					case <-time.After(every):
					case <-ctx.Done():
					}
				}
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	group.Wait()
}

// awaitAll waits until all notifications have arrived.
func (s *stand) awaitAll() error {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	for arrived := range pending {
		select {
		case s.pending <- struct{}{}:
		case <-ctx.Done():
			if err := context.Cause(s.ctx); err != nil {
				return err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return fmt.Errorf(
				"of the notifications, %d have arrived after a minute and %d have not; the engine has %+v",
				len(s.delays),
				len(s.pending)-arrived,
				s.counts(),
			)
		}
	}
	for range pending {
		<-s.pending
	}
	return nil
}

// together calls f for 0 to n-1, several at once, until one fails.
func together(n int, f func(i int) error) (failed error) {
	var group sync.WaitGroup
	var once sync.Once
	var next atomic.Int64
	for range 32 {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					once.Do(func() { failed = err })
					next.Store(int64(n))
				}
			}
		})
	}
	group.Wait()
	return failed
}

// counts returns what the engine has done.
func (s *stand) counts() notify.Counts { return notify.Engines{s.engine}.Counts() }
