// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/replay"
)

// Defaults of Config.
const (
	DefaultPrefix   = "aip"
	DefaultShards   = 16
	DefaultReplicas = 3
)

// Config names the streams of the logs, and the settings for keeping them.
type Config struct {
	Prefix   string // of the names of streams and of subjects; letters, digits, - and _
	Shards   int
	Replicas int // of each stream
	Settings replay.Settings
	Log      *slog.Logger // nil for none

	// CheckAfter is the time, more or less, a reader on another node than the owner's waits until it looks for missed
	// records; default 5 s.
	CheckAfter time.Duration
	// GiveUp is the longest wait of an append for the store to know whether it was written; then it fails with
	// ErrUnavailable; default 10 s.
	GiveUp time.Duration

	maxPurges  int           // see the constants; for tests
	purgeAfter time.Duration // likewise
}

// withDefaults returns c with the defaults for unset fields.
func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Shards == 0 {
		c.Shards = DefaultShards
	}
	if c.Replicas == 0 {
		c.Replicas = DefaultReplicas
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.CheckAfter == 0 {
		c.CheckAfter = 5 * time.Second
	}
	if c.GiveUp == 0 {
		c.GiveUp = 10 * time.Second
	}
	if c.purgeAfter == 0 {
		c.purgeAfter = purgeAfter
	}
	if c.maxPurges == 0 {
		c.maxPurges = maxPurges
	}
	return c
}

// Streams are the streams of all shards. The methods may be called by any number of goroutines at once.
type Streams struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	config Config
	shards []*stream
	plain  atomic.Bool // see Plain
	rests  *rests
	// filling has a value while a standby reads old heads.
	filling  chan struct{}
	underway underway
	counters
}

// Plain says whether gateways with protocol 1 live. Then owners write what those can read: heads without records, and a
// message at the subject of batches at the end of each batch.
func (s *Streams) Plain(plain bool) { s.plain.Store(plain) }

// inlineBytes returns the greatest number of bytes of the records in a head.
func (s *Streams) inlineBytes() int {
	if s.plain.Load() {
		return 0
	}
	return inlineBytes
}

// counters count events since Open.
type counters struct {
	appends                                              measure.Durations
	batches, resent, conflicts, fenced, missed, unpurged atomic.Uint64
}

// Counts are the events since Open, and the present state.
type Counts struct {
	Appends   measure.Snapshot // that were written, with their times
	Batches   uint64           // of these appends
	Resent    uint64           // batches sent again: one had no answer, or was refused
	Conflicts uint64           // appends slower than another writer's
	Fenced    uint64           // appends refused because another node had claimed the shard
	Missed    uint64           // checks on another node than the owner's that found an append without a notification
	Unpurged  uint64           // times dropped messages were left in a stream, since too much waits to be purged
	Standby   int              // present number of logs of others' shards whose heads are kept; see StandBy
}

// Counts returns them.
func (s *Streams) Counts() Counts {
	return Counts{s.appends.Snapshot(), s.batches.Load(), s.resent.Load(), s.conflicts.Load(), s.fenced.Load(),
		s.missed.Load(), s.unpurged.Load(), s.standbyLogs()}
}

// ErrClaimed is the error of a claim after another record than the present one.
var ErrClaimed = errors.New("another node has claimed the shard")

// Open makes the missing streams, and checks the existing ones. An error about a stream names the wrong field, and the
// remedy. nc stays the caller's. The caller closes it when nothing uses the Streams any more.
func Open(ctx context.Context, nc *nats.Conn, c Config) (*Streams, error) {
	c = c.withDefaults()
	if err := CheckVersion(nc.ConnectedServerVersion()); err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(requestLimit))
	if err != nil {
		return nil, err
	}
	s := &Streams{nc: nc, js: js, config: c, filling: make(chan struct{}, 1)}
	if s.rests, err = newRests(); err != nil {
		return nil, err
	}
	for i := range c.Shards {
		if err := s.ensure(ctx, i); err != nil {
			return nil, err
		}
		s.shards = append(s.shards, newStream(s, i))
	}
	return s, nil
}

// Version is the oldest usable version of a server, as major and minor number: older ones know no atomic batches with
// checks that hold on several replicas.
const (
	versionMajor = 2
	versionMinor = 15
)

// CheckVersion returns an error for a server with too old a version, or with none.
func CheckVersion(version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("the NATS server has the version %q, which is no version; it must be %d.%d or later", version,
			versionMajor, versionMinor)
	}
	if major < versionMajor || major == versionMajor && minor < versionMinor {
		return fmt.Errorf("the NATS server has the version %s; upgrade all servers to %d.%d or later", version, versionMajor,
			versionMinor)
	}
	return nil
}

// wants returns the configuration of the stream of a shard.
func (c Config) wants(shard int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               c.stream(shard),
		Description:        fmt.Sprintf("shard %d of the logs of aip-gateway", shard),
		Subjects:           []string{c.subjects(shard) + ">"},
		Retention:          jetstream.LimitsPolicy,
		Discard:            jetstream.DiscardNew,
		Storage:            jetstream.FileStorage,
		Replicas:           c.Replicas,
		MaxMsgs:            -1,
		MaxBytes:           -1,
		MaxMsgSize:         -1,
		MaxMsgsPerSubject:  1,
		AllowDirect:        true,
		AllowAtomicPublish: true,
		RePublish: &jetstream.RePublish{
			Source:      c.subjects(shard) + ">",
			Destination: c.live(shard) + ">",
		},
	}
}

// ensure makes the stream of a shard, or checks it.
func (s *Streams) ensure(ctx context.Context, shard int) error {
	want := s.config.wants(shard)
	for {
		once, stop := context.WithTimeout(ctx, requestLimit)
		found, err := s.js.Stream(once, want.Name)
		stop()
		if err == nil {
			return checkStream(want, found.CachedInfo().Config)
		}
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("the stream %s cannot be looked up: %w", want.Name, err)
		}
		once, stop = context.WithTimeout(ctx, requestLimit)
		_, err = s.js.CreateStream(once, want)
		stop()
		if err == nil {
			return nil
		} else if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return fmt.Errorf("the stream %s cannot be made: %w", want.Name, err)
		}
		// Another node has made it meanwhile.
	}
}

// checkStream returns an error if a stream is not as it must be. Its description, metadata, placement and compression
// are the operator's.
func checkStream(want, got jetstream.StreamConfig) error {
	wrong := func(field string, has, wants any, do string) error {
		return fmt.Errorf("the stream %s has %s %v, but must have %v: %s", want.Name, field, has, wants, do)
	}
	const edit = "change it by `nats stream edit`"
	const begin = "this cannot be changed; set another prefix, or remove the stream with all that it has"
	switch {
	case strings.Join(got.Subjects, " ") != strings.Join(want.Subjects, " "):
		return wrong("subjects", got.Subjects, want.Subjects, edit+", or set another prefix")
	case got.Storage != want.Storage:
		return wrong("storage", got.Storage, want.Storage, begin)
	case got.Replicas != want.Replicas:
		return wrong("replicas", got.Replicas, want.Replicas, edit+", or set replicas in the configuration of the gateway")
	case got.Retention != want.Retention:
		return wrong("retention", got.Retention, want.Retention, begin)
	case got.MaxMsgsPerSubject != want.MaxMsgsPerSubject:
		return wrong("max_msgs_per_subject", got.MaxMsgsPerSubject, want.MaxMsgsPerSubject, edit)
	case got.MaxMsgs > 0:
		return wrong("max_msgs", got.MaxMsgs, "no limit (-1)", edit)
	case got.MaxBytes > 0 && got.Discard != jetstream.DiscardNew:
		return wrong("discard", got.Discard, "new, because it has a greatest size", edit)
	case got.MaxAge != 0:
		return wrong("max_age", got.MaxAge, "no limit (0)", edit)
	case got.MaxMsgSize > 0:
		return wrong("max_msg_size", got.MaxMsgSize, "no limit (-1)", edit)
	case got.MaxConsumers > 0 && got.MaxConsumers < 16:
		return wrong("max_consumers", got.MaxConsumers, "no limit (-1)", begin)
	case got.NoAck:
		return wrong("no_ack", true, false, edit)
	case got.Sealed:
		return wrong("sealed", true, false, begin)
	case got.DenyPurge:
		return wrong("deny_purge", true, false, begin)
	case got.Mirror != nil:
		return wrong("mirror", got.Mirror.Name, "none", begin)
	case len(got.Sources) > 0:
		return wrong("sources", len(got.Sources), "none", edit)
	case got.SubjectTransform != nil:
		return wrong("subject_transform", got.SubjectTransform.Source, "none", edit)
	case !got.AllowAtomicPublish:
		return wrong("allow_atomic", false, true, edit)
	case !got.AllowDirect:
		return wrong("allow_direct", false, true, edit)
	case got.RePublish == nil:
		return wrong("republish", "nothing", want.RePublish.Source+" to "+want.RePublish.Destination, edit)
	case got.RePublish.Source != want.RePublish.Source || got.RePublish.Destination != want.RePublish.Destination:
		return wrong("republish", got.RePublish.Source+" to "+got.RePublish.Destination,
			want.RePublish.Source+" to "+want.RePublish.Destination, edit)
	case got.RePublish.HeadersOnly:
		return wrong("republish", "headers only", "whole messages", edit)
	}
	return nil
}

// Count returns the number of shards.
func (s *Streams) Count() int { return len(s.shards) }

// Logs returns the logs of a shard to read them. Another node may own the shard.
func (s *Streams) Logs(shard int) replay.Logs { return s.shards[shard].remote }

// Owner returns the owner's record of a shard, as the leader of its stream has it; the zero one if no node has ever
// owned it.
func (s *Streams) Owner(ctx context.Context, shard int) (Owner, error) {
	return s.shards[shard].owner(ctx)
}

// Claim writes the next owner's record, if after is the present one, and opens the store. From then on the appends of
// the owner before are refused. The error is ErrClaimed if after is not the present record.
func (s *Streams) Claim(ctx context.Context, shard int, after Owner, node, incarnation string) (*Store, error) {
	st := s.shards[shard]
	owner, err := st.claim(ctx, after, node, incarnation)
	if err != nil {
		return nil, err
	}
	return openStore(ctx, st, owner)
}

// Release writes an owner's record without a node, if after is the present one; otherwise the error is ErrClaimed.
func (s *Streams) Release(ctx context.Context, shard int, after Owner) error {
	_, err := s.shards[shard].claim(ctx, after, "", "")
	return err
}
