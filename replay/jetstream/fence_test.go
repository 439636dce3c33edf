// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/replay"
)

// TestFence: when another node has claimed a shard, the appends of the former owner change nothing, whatever they are.
func TestFence(t *testing.T) {
	record := [][]byte{[]byte("of the former owner")}
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprint("R", replicas), func(t *testing.T) {
			t.Parallel()
			s := streams(t, connect(t, servers.URL()), Config{Replicas: replicas})
			other := streams(t, connect(t, servers.URL()), s.config)
			first := claim(t, s, 0, "a")
			for _, log := range []string{"known", "other"} {
				if err := first.Append(t.Context(), replay.Append{Log: log, Records: [][]byte{{1}, {2}, {3}}}); err != nil {
					t.Fatal(err)
				}
			}
			want, _, _, err := first.Load(t.Context(), "known")
			if err != nil {
				t.Fatal(err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			for form, a := range map[string]replay.Append{
				"begin":    {Log: "new", Records: record},
				"empty":    {Log: "new"},
				"intent":   {Log: "new", Intent: true, DueAt: replay.Recover},
				"records":  {Log: "known", Expect: 1, Records: record},
				"metadata": {Log: "known", Expect: 1, Metadata: record[0]},
				"large":    {Log: "known", Expect: 1, Records: [][]byte{make([]byte, 3<<20)}},
				"trim":     {Log: "known", Expect: 1, Trim: 2, Snapshot: record[0]},
				"end":      {Log: "known", Expect: 1, End: true},
				"drop":     {Log: "known", Expect: 1, Drop: true},
			} {
				former := claim(t, s, 0, "a")
				present := claim(t, other, 0, "b")
				values := []value{newValue(former.st.headSubject("x"), record[0], 1000)}
				err := former.publish(t.Context(), former.messages(values))
				var api *jetstream.APIError
				if !errors.As(err, &api) || api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence &&
					api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequenceConstant {
					t.Errorf("a batch of the former owner is refused by %v", err)
				}
				if err := former.Append(t.Context(), a); !errors.Is(err, replay.ErrFenced) {
					t.Errorf("%s: %v, want ErrFenced", form, err)
				}
				select {
				case <-former.Fenced():
				default:
					t.Errorf("%s: the former owner does not know", form)
				}
				if err := former.Append(t.Context(), a); !errors.Is(err, replay.ErrFenced) {
					t.Errorf("%s, again: %v, want ErrFenced", form, err)
				}
				if err := former.Release(t.Context()); !errors.Is(err, replay.ErrFenced) {
					t.Errorf("%s: the former owner releases the shard: %v", form, err)
				}
				h, _, records, err := s.Logs(0).Load(t.Context(), "known")
				if err != nil || h.Revision != want.Revision || len(records) != 3 {
					t.Errorf("%s: then the log is %+v with %d records: %v", form, h, len(records), err)
				}
				if _, err := s.Logs(0).Head(t.Context(), "new"); !errors.Is(err, replay.ErrNotFound) {
					t.Errorf("%s: then there is a new log: %v", form, err)
				}
				if h, err := present.Head(t.Context(), "known"); err != nil || h.Revision != want.Revision {
					t.Errorf("%s: the present owner has %+v, %v", form, h, err)
				}
				if err := present.Append(t.Context(), replay.Append{Log: "by b " + form}); err != nil {
					t.Errorf("%s: the present owner cannot append: %v", form, err)
				}
				if err := present.Release(t.Context()); err != nil {
					t.Errorf("%s: %v", form, err)
				}
			}
		})
	}
}

// TestClaim: a claim expects the record known to the caller, and its contents are read by all.
func TestClaim(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	zero, err := s.Owner(t.Context(), 0)
	if err != nil || zero != (Owner{}) {
		t.Fatalf("at first the owner is %+v, %v", zero, err)
	}
	a, err := s.Claim(t.Context(), 0, zero, "a", "1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), 0, zero, "b", "1"); !errors.Is(err, ErrClaimed) {
		t.Errorf("a claim after a former record: %v", err)
	}
	known, err := s.Owner(t.Context(), 0)
	if err != nil || known.Node != "a" || known.Incarnation != "1" || known != a.Owner() {
		t.Errorf("the owner is %+v, %v", known, err)
	}
	if err := a.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), 0, known, "b", "1"); !errors.Is(err, ErrClaimed) {
		t.Errorf("a claim after a record that was released: %v", err)
	}
	free, err := s.Owner(t.Context(), 0)
	if err != nil || free.Node != "" || free.Epoch <= known.Epoch {
		t.Errorf("then the owner is %+v, %v", free, err)
	}
}

// TestLostAnswers cuts the connection of an owner when a batch is under way: each append is answered by its outcome.
func TestLostAnswers(t *testing.T) {
	for _, test := range []struct {
		name   string
		lose   func(p *natstest.Proxy)
		loses  bool // the batch, and not its acknowledgement
		claims bool // another node claims the shard meanwhile
		want   error
	}{
		{"the acknowledgement", func(p *natstest.Proxy) { p.Mute(true) }, false, false, nil},
		{"the batch", func(p *natstest.Proxy) { p.Deaf(true) }, true, false, nil},
		{"the acknowledgement and the shard", func(p *natstest.Proxy) { p.Mute(true) }, false, true, nil},
		{"the batch and the shard", func(p *natstest.Proxy) { p.Deaf(true) }, true, true, replay.ErrFenced},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, err := natstest.NewProxy(servers.Servers[0])
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			direct := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
			own := claim(t, openStreams(t, connect(t, p.URL()), direct.config), 0, "a")
			defer own.Close()
			if err := own.Append(t.Context(), replay.Append{Log: "log", Records: [][]byte{{1}}}); err != nil {
				t.Fatal(err)
			}
			test.lose(p)
			answer := make(chan error, 1)
			go func() {
				answer <- own.Append(context.Background(), replay.Append{Log: "log", Expect: 1, Records: [][]byte{{2}}})
			}()
			want := uint64(1)
			if !test.loses {
				want = 2
			}
			patiently(t, func(ctx context.Context) error {
				h, err := direct.Logs(0).Head(ctx, "log")
				if err == nil && h.Revision != want {
					err = errors.New("it is not written yet")
				}
				return err
			})
			select {
			case err := <-answer:
				t.Fatalf("the writer is answered while nothing can be known: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			var other *Store
			if test.claims {
				other = claim(t, direct, 0, "b")
				defer other.Close()
			}
			p.Reset()
			if err := <-answer; !errors.Is(err, test.want) {
				t.Errorf("the writer is answered with %v, want %v", err, test.want)
			}
			h, _, records, err := direct.Logs(0).Load(t.Context(), "log")
			wanted := uint64(2)
			if test.want != nil {
				wanted = 1
			}
			if err != nil || h.Revision != wanted || uint64(len(records)) != wanted {
				t.Errorf("the log has the revision %d and %d records: %v; want %d", h.Revision, len(records), err, wanted)
			}
			writer := own
			if other != nil {
				writer = other
			}
			if err := writer.Append(t.Context(), replay.Append{Log: "log", Expect: wanted, Records: [][]byte{{3}}}); err != nil {
				t.Errorf("the next append: %v", err)
			}
		})
	}
}

// TestLateOutcome: an append answered with ErrUnavailable, and turning out to be written, is read as it was when it was
// appended, and a drop likewise ends the readers.
func TestLateOutcome(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	p, err := natstest.NewProxy(servers.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	direct := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	c := direct.config
	c.GiveUp = 10 * time.Second // the first append of a slow machine takes less
	own := claim(t, openStreams(t, connect(t, p.URL(), nats.IgnoreDiscoveredServers()), c), 0, "a")
	defer own.Close()
	if err := own.Append(ctx, replay.Append{Log: "log", Records: [][]byte{[]byte("log/1")}}); err != nil {
		t.Fatal(err)
	}
	read, ended := make(chan uint64, 2), make(chan error, 1)
	go func() { ended <- followLog(ctx, own, "log", 0, func(seq uint64) { read <- seq }) }()
	next := func(want uint64) {
		t.Helper()
		select {
		case got := <-read:
			if got != want {
				t.Fatalf("the reader has record %d, want %d", got, want)
			}
		case err := <-ended:
			t.Fatalf("the reader ends before record %d: %v", want, err)
		}
	}
	late := func(a replay.Append) {
		t.Helper()
		p.Mute(true)
		if err := own.Append(ctx, a); !errors.Is(err, replay.ErrUnavailable) {
			t.Fatalf("Append: %v, want ErrUnavailable", err)
		}
		for _, r := range a.Records {
			clear(r) // it is the writer's again
		}
		patiently(t, func(ctx context.Context) error {
			h, err := direct.Logs(0).Head(ctx, a.Log)
			if a.Drop && errors.Is(err, replay.ErrNotFound) {
				return nil
			}
			if err == nil && (a.Drop || h.Revision != a.Expect+1) {
				err = errors.New("it is not written yet")
			}
			return err
		})
		p.Reset()
	}
	next(1)
	late(replay.Append{Log: "log", Expect: 1, Records: [][]byte{[]byte("log/2")}})
	next(2)
	patiently(t, func(context.Context) error { return own.Writable() })
	late(replay.Append{Log: "log", Expect: 2, Drop: true})
	if err := <-ended; !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("the reader of a log that was dropped: %v, want ErrNotFound", err)
	}
}

// TestReadWhileUnavailable: once an append was given up, an unanswered read is given up soon, too, and those after it
// at once: a caller waiting for the lock of a log being read waits for the append already.
func TestReadWhileUnavailable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	p, err := natstest.NewProxy(servers.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	c := streams(t, connect(t, servers.URL()), Config{Replicas: 3}).config
	c.GiveUp = time.Hour
	own := claim(t, openStreams(t, connect(t, p.URL(), nats.IgnoreDiscoveredServers()), c), 0, "a")
	defer own.Close()
	if err := own.Append(ctx, replay.Append{Log: "log", Records: [][]byte{make([]byte, inlineBytes)}}); err != nil {
		t.Fatal(err)
	}
	p.Mute(true)
	appended := make(chan error, 1)
	go func() {
		appended <- own.Append(ctx, replay.Append{Log: "log", Expect: 1, Records: [][]byte{[]byte("log/2")}})
	}()
	patiently(t, func(context.Context) error {
		own.mu.Lock()
		defer own.mu.Unlock()
		if own.pending == nil {
			return errors.New("nothing is written yet")
		}
		return nil
	})
	own.suspend() // as after GiveUp
	if err := <-appended; !errors.Is(err, replay.ErrUnavailable) {
		t.Fatalf("Append: %v, want ErrUnavailable", err)
	}
	if _, _, _, err := own.Load(ctx, "log"); !errors.Is(err, replay.ErrUnavailable) || ctx.Err() != nil {
		t.Errorf("Load: %v, want ErrUnavailable", err)
	}
	if _, _, err := own.reading(ctx); !errors.Is(err, replay.ErrUnavailable) {
		t.Errorf("the next read may begin: %v, want ErrUnavailable", err)
	}
	p.Reset()
	patiently(t, func(context.Context) error {
		_, _, _, err := own.Load(ctx, "log")
		return err
	})
}

// TestLostClaim: a claim whose request was lost with the connection is sent again, however long the caller would wait.
func TestLostClaim(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	p, err := natstest.NewProxy(servers.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	direct := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	nc := connect(t, p.URL(), nats.IgnoreDiscoveredServers())
	s := openStreams(t, nc, direct.config)
	p.Deaf(true)
	sent := nc.Stats().OutMsgs
	done := make(chan error, 1)
	go func() {
		st, err := s.Claim(ctx, 0, Owner{}, "a", "1")
		if err == nil {
			err = st.Close()
		}
		done <- err
	}()
	patiently(t, func(context.Context) error {
		if nc.Stats().OutMsgs == sent {
			return errors.New("nothing is sent yet")
		}
		return nil
	})
	p.Reset()
	if err := <-done; err != nil {
		t.Errorf("Claim: %v", err)
	}
}

// TestReleaseUnopened: a record is taken back without its store, and not when it is not the present one any more.
func TestReleaseUnopened(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	first := claim(t, s, 0, "a")
	former := first.Owner()
	if err := s.Release(t.Context(), 0, former); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Owner(t.Context(), 0); err != nil || o.Node != "" || o.Epoch <= former.Epoch {
		t.Errorf("then the owner is %+v: %v", o, err)
	}
	if err := first.Append(t.Context(), replay.Append{Log: "x"}); !errors.Is(err, replay.ErrFenced) {
		t.Errorf("the former owner appends: %v", err)
	}
	if err := s.Release(t.Context(), 0, former); !errors.Is(err, ErrClaimed) {
		t.Errorf("released again: %v, want ErrClaimed", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}

// TestConfirm: the owner is confirmed, whether it has appended or not, until another node has claimed the shard.
func TestConfirm(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprint("R", replicas), func(t *testing.T) {
			t.Parallel()
			s := streams(t, connect(t, servers.URL()), Config{Replicas: replicas})
			other := streams(t, connect(t, servers.URL()), s.config)
			first := claim(t, s, 0, "a")
			for i := range 3 {
				if err := first.Confirm(t.Context()); err != nil {
					t.Error(err)
				}
				if err := first.Append(t.Context(), replay.Append{Log: fmt.Sprint(i), Records: [][]byte{{1}}}); err != nil {
					t.Error(err)
				}
			}
			second := claim(t, other, 0, "b") // writes nothing
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := first.Confirm(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("without time: %v", err)
			}
			for range 2 {
				if err := first.Confirm(t.Context()); !errors.Is(err, replay.ErrFenced) {
					t.Errorf("the former owner: %v, want ErrFenced", err)
				}
			}
			<-first.Fenced()
			if err := second.Confirm(t.Context()); err != nil {
				t.Error(err)
			}
			for _, st := range []*Store{first, second} {
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := first.Confirm(t.Context()); err == nil {
				t.Error("a store that is closed is confirmed")
			}
		})
	}
}

// TestFenceTogether: what a former owner writes together is refused, too, if the next owner has written the same at the
// sequence of its last message.
func TestFenceTogether(t *testing.T) {
	for name, plain := range map[string]bool{"a drop": false, "the end of a batch": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := streams(t, connect(t, servers.URL()), Config{Replicas: 3, purgeAfter: time.Hour})
			other := openStreams(t, connect(t, servers.URL()), s.config)
			s.Plain(plain)
			other.Plain(plain)
			former := claim(t, s, 0, "a")
			defer former.Close()
			begin(t, former, "known", "gone")
			present := claim(t, other, 0, "b")
			defer present.Close()
			st := former.st
			values := []value{newValue(st.headSubject("known"), []byte("by a"), 1000)}
			if plain {
				values = append(values, newValue(st.headSubject("gone"), []byte("by a"), 1000))
				if err := present.Confirm(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else {
				values = append(values, value{subject: st.headSubject("gone"), parts: [][]byte{nil}})
				drops(t, present, "gone")
			}
			if want := former.last + uint64(len(former.messages(values))); present.last != want {
				t.Fatalf("the present owner has written up to %d, want %d", present.last, want)
			}
			if _, err := former.commit(t.Context(), values); !errors.Is(err, replay.ErrFenced) {
				t.Errorf("a batch of the former owner: %v, want ErrFenced", err)
			}
		})
	}
}
