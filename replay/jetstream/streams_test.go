// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestCheck: a wrong stream is named with its field, and with the remedy; it is not changed. The operator's settings
// may be anything.
func TestCheck(t *testing.T) {
	t.Parallel()
	nc := connect(t, servers.URL())
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range []struct {
		field, do string // no field: the stream is taken
		change    func(c *jetstream.StreamConfig)
	}{
		{"", "", func(c *jetstream.StreamConfig) {}},
		{"", "", func(c *jetstream.StreamConfig) {
			c.Description, c.Metadata, c.Compression = "ours", map[string]string{"team": "a"}, jetstream.S2Compression
		}},
		{"", "", func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }},
		{"subjects", "edit", func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, c.Name+".more") }},
		{"storage", "another prefix", func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }},
		{"replicas", "edit", func(c *jetstream.StreamConfig) { c.Replicas = 3 }},
		{"retention", "another prefix", func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }},
		{"max_msgs_per_subject", "edit", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 2 }},
		{"max_msgs", "edit", func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 }},
		{"discard", "edit", func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = 1<<20, jetstream.DiscardOld }},
		{"max_age", "edit", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"max_msg_size", "edit", func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 }},
		{"max_consumers", "another prefix", func(c *jetstream.StreamConfig) { c.MaxConsumers = 1 }},
		{"deny_purge", "another prefix", func(c *jetstream.StreamConfig) { c.DenyPurge = true }},
		{"allow_atomic", "edit", func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false }},
		{"allow_direct", "edit", func(c *jetstream.StreamConfig) { c.AllowDirect = false }},
		{"republish", "edit", func(c *jetstream.StreamConfig) { c.RePublish = nil }},
		{"republish", "edit", func(c *jetstream.StreamConfig) { c.RePublish.HeadersOnly = true }},
		{"republish", "edit", func(c *jetstream.StreamConfig) { c.RePublish.Destination = c.Name + "-elsewhere.>" }},
		{"subject_transform", "edit", func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: c.Name + ".>", Destination: c.Name + ".>"}
		}},
	} {
		c := Config{Prefix: fmt.Sprint("check", i), Shards: 1, Replicas: 1}.withDefaults()
		made := c.wants(0)
		test.change(&made)
		patiently(t, func(ctx context.Context) error {
			_, err := js.CreateStream(ctx, made)
			return err
		})
		_, err := Open(t.Context(), nc, c)
		switch {
		case test.field == "" && err != nil:
			t.Errorf("stream %d is refused: %v", i, err)
		case test.field == "":
		case err == nil:
			t.Errorf("stream %d is taken, although its %s is wrong", i, test.field)
		default:
			said := err.Error()
			if !strings.HasPrefix(said, "the stream "+made.Name+" has "+test.field+" ") || !strings.Contains(said, test.do) ||
				!strings.Contains(said, "but must have") {
				t.Errorf("%s: %s", test.field, said)
			}
		}
		if s, err := js.Stream(t.Context(), made.Name); err != nil || s.CachedInfo().Config.MaxMsgs != made.MaxMsgs {
			t.Errorf("the stream has been changed: %v", err)
		}
		if err := js.DeleteStream(t.Context(), made.Name); err != nil {
			t.Error(err)
		}
	}
}

// TestVersion: too old servers are refused, with the remedy.
func TestVersion(t *testing.T) {
	for version, ok := range map[string]bool{
		"2.15.0": true, "2.15.2": true, "2.16.0-RC.1": true, "3.0.0": true, "2.14.9": false, "2.9.25": false, "1.99.0": false,
		"": false, "nightly": false,
	} {
		err := CheckVersion(version)
		if (err == nil) != ok {
			t.Errorf("the version %q: %v", version, err)
		}
		if err != nil && !strings.Contains(err.Error(), "2.15") {
			t.Errorf("the error does not say what is needed: %v", err)
		}
	}
}

// TestPins: an ended log stays while another one pins it, for the owner and for the next one; if room is needed, it is
// dropped last.
func TestPins(t *testing.T) {
	t.Parallel()
	const size = 20_000
	settings := replay.Settings{Retention: time.Millisecond, PinFor: 48 * time.Hour}
	s := open(t, Config{Replicas: 3, Settings: settings})
	must := func(a replay.Append) {
		t.Helper()
		if err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(log string) {
		t.Helper()
		patiently(t, func(ctx context.Context) error {
			if _, err := s.Head(ctx, log); !errors.Is(err, replay.ErrNotFound) {
				return fmt.Errorf("%s: %v, want ErrNotFound", log, err)
			}
			return nil
		})
	}
	record := [][]byte{make([]byte, size)}
	must(replay.Append{Log: "pin", Lists: []replay.Listing{replay.Pin("pinned", 0), replay.Pin("pinned too", 0)}})
	for _, log := range []string{"pinned", "pinned too", "free"} {
		must(replay.Append{Log: log, Records: record, End: true})
	}
	for range 2 {
		gone("free")
		if _, err := s.Head(t.Context(), "pinned"); err != nil {
			t.Errorf("a log that is pinned: %v", err)
		}
		s = reopen(t, s, settings).(opened)
	}
	defer s.Close()
	settings.Retention, settings.MaxSize = time.Hour, 3*size+size/2
	s.Configure(settings)
	for i := range 2 {
		must(replay.Append{Log: fmt.Sprint("late", i), Records: record, End: true})
	}
	gone("late0")
	for _, log := range []string{"pinned", "pinned too", "late1"} {
		if _, err := s.Head(t.Context(), log); err != nil {
			t.Errorf("%s: %v", log, err)
		}
	}
	settings.MaxSize = 1
	s.Configure(settings)
	gone("pinned")
	// Dropped messages are purged: at last the stream has the pin, the owner's record and the mark.
	patiently(t, func(ctx context.Context) error {
		stream, err := s.of.js.Stream(ctx, s.st.name)
		if err == nil && stream.CachedInfo().State.Msgs != 3 {
			err = fmt.Errorf("the stream has %d messages, want 3", stream.CachedInfo().State.Msgs)
		}
		return err
	})
}

// TestLostPart: an answer with a part lost on its way is taken up to this part alone.
func TestLostPart(t *testing.T) {
	t.Parallel()
	nc := connect(t, servers.URL())
	s := streams(t, nc, Config{Replicas: 1})
	for name, c := range map[string]struct{ sent, want []uint64 }{
		"nothing lost":  {[]uint64{3, 5, 9}, []uint64{3, 5, 9}},
		"in the middle": {[]uint64{3, 0, 9}, []uint64{3}},
		"the first one": {[]uint64{0, 5, 9}, nil},
	} {
		fake := newStream(s, 0)
		fake.name = "fake-" + strings.ReplaceAll(name, " ", "-")
		sub, err := nc.Subscribe("$JS.API.DIRECT.GET."+fake.name, func(request *nats.Msg) {
			before := ""
			for i, seq := range []uint64{3, 5, 9} {
				m := nats.NewMsg(request.Reply)
				m.Data = []byte("x")
				m.Header = nats.Header{"Nats-Stream": {fake.name}, "Nats-Subject": {"s"}, "Nats-Num-Pending": {"0"},
					"Nats-Time-Stamp": {time.Now().Format(time.RFC3339Nano)}, "Nats-Sequence": {fmt.Sprint(seq)},
					"Nats-Last-Sequence": {cmp.Or(before, "0")}}
				before = fmt.Sprint(seq)
				if c.sent[i] == seq {
					_ = nc.PublishMsg(m)
				}
			}
			end := nats.NewMsg(request.Reply)
			end.Header = nats.Header{"Status": {"204"}, "Description": {"EOB"}}
			_ = nc.PublishMsg(end)
		})
		if err != nil {
			t.Fatal(err)
		}
		found, err := fake.direct(t.Context(), 1, "s", 10, pageBytes)
		var got []uint64
		for _, m := range found {
			got = append(got, m.seq)
		}
		if lost := len(c.want) < 3; !slices.Equal(got, c.want) || lost != errors.Is(err, replay.ErrUnavailable) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
		found, _, err = fake.lastOf(t.Context(), []string{"s"}, 0)
		if lost := len(c.want) < 3; lost != errors.Is(err, replay.ErrUnavailable) || lost == (len(found) == 3) {
			t.Errorf("%s: the last ones are %v, %v", name, found, err)
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Error(err)
		}
	}
}
