// SPDX-License-Identifier: Apache-2.0

package natsdriver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/replay"
)

// Registry is the registry of nodes. It implements cluster.Registry.
type Registry struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	prefix  string // of subjects
	wants   jetstream.StreamConfig
	ensured atomic.Bool // the stream is as it must be
}

// forgetAfter is the time the record of a node is kept after its last write.
const forgetAfter = 24 * time.Hour

// wants returns the configuration of the stream.
func wants(prefix string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              prefix + "-nodes",
		Description:       "the nodes of aip-gateway that share the logs",
		Subjects:          []string{prefix + ".nodes.*"},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		Replicas:          replicas,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxMsgSize:        -1,
		MaxMsgsPerSubject: 1,
		MaxAge:            forgetAfter,
		RePublish: &jetstream.RePublish{
			Source: prefix + ".nodes.*", Destination: prefix + ".seen.{{wildcard(1)}}",
		},
	}
}

// NewRegistry returns the registry of a connection. The connection stays the caller's. The stream is made when it is
// missing, and checked, before the first record is read. If it is wrong, cluster.Joined then returns the error.
func NewRegistry(nc *nats.Conn, prefix string, replicas int) (*Registry, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	return &Registry{nc: nc, js: js, prefix: prefix, wants: wants(prefix, replicas)}, nil
}

// ensure makes the stream if it is missing, and checks it: once, and again when it may have been removed.
func (r *Registry) ensure(ctx context.Context) error {
	if r.ensured.Load() {
		return nil
	}
	found, err := r.js.Stream(ctx, r.wants.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		found, err = r.js.CreateStream(ctx, r.wants)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another node has made it meanwhile
			found, err = r.js.Stream(ctx, r.wants.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("the stream %s cannot be opened: %w: %w", r.wants.Name, replay.ErrUnavailable, err)
	}
	err = check(r.wants, found.CachedInfo().Config)
	r.ensured.Store(err == nil)
	return err
}

// check returns an error if the stream is not as it must be.
func check(want, got jetstream.StreamConfig) error {
	wrong := func(field string, has, wants any) error {
		return fmt.Errorf("the stream %s has %s %v, but must have %v: stop all gateways and remove it; it is made again",
			want.Name, field, has, wants)
	}
	switch {
	case strings.Join(got.Subjects, " ") != strings.Join(want.Subjects, " "):
		return wrong("subjects", got.Subjects, want.Subjects)
	case got.Storage != want.Storage:
		return wrong("storage", got.Storage, want.Storage)
	case got.Replicas != want.Replicas:
		return fmt.Errorf("the stream %s has replicas %d, but must have %d: change it by `nats stream edit`, or set "+
			"replicas in the configuration of the gateway", want.Name, got.Replicas, want.Replicas)
	case got.MaxMsgsPerSubject != 1:
		return wrong("max_msgs_per_subject", got.MaxMsgsPerSubject, 1)
	case got.AllowDirect:
		return wrong("allow_direct", true, "false, because a replica may not know the last record")
	case got.MaxAge != 0 && got.MaxAge < time.Hour:
		return wrong("max_age", got.MaxAge, want.MaxAge)
	case got.RePublish == nil || got.RePublish.Source != want.RePublish.Source ||
		got.RePublish.Destination != want.RePublish.Destination || got.RePublish.HeadersOnly:
		return wrong("republish", got.RePublish, want.RePublish.Source+" to "+want.RePublish.Destination)
	}
	return nil
}

// Write implements cluster.Registry.
func (r *Registry) Write(ctx context.Context, name string, record []byte, expect uint64) (uint64, error) {
	if err := r.ensure(ctx); err != nil {
		return 0, err
	}
	ack, err := r.js.Publish(ctx, r.prefix+".nodes."+name, record,
		jetstream.WithExpectLastSequencePerSubject(expect), jetstream.WithRetryAttempts(0))
	if isConflict(err) {
		return 0, cluster.ErrConflict
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		r.ensured.Store(false) // it has no leader, or was removed
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", replay.ErrUnavailable, err)
	}
	return ack.Sequence, nil
}

// isConflict reports whether an error is for another last sequence of a subject. A stream with several replicas has a
// code of its own for it.
func isConflict(err error) bool {
	e, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || e.ErrorCode == wrongLastConstant)
}

const wrongLastConstant jetstream.ErrorCode = 10164

// All implements cluster.Registry.
func (r *Registry) All(ctx context.Context) ([]cluster.Record, error) {
	if err := r.ensure(ctx); err != nil {
		return nil, err
	}
	all, err := r.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", replay.ErrUnavailable, err)
	}
	return all, nil
}

func (r *Registry) all(ctx context.Context) (all []cluster.Record, err error) {
	s, err := r.js.Stream(ctx, r.wants.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		r.ensured.Store(false)
	}
	if err != nil {
		return nil, err
	}
	subjects := r.prefix + ".nodes."
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(subjects+"*"))
	if err != nil {
		return nil, err
	}
	for subject := range info.State.Subjects {
		m, err := s.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it was forgotten meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, cluster.Record{Name: strings.TrimPrefix(subject, subjects), Data: m.Data, Revision: m.Sequence,
			Registry: info.Created.Format(time.RFC3339Nano)})
	}
	return all, nil
}

// Watch implements cluster.Registry.
func (r *Registry) Watch(f func(cluster.Record)) (func(), error) {
	subjects := r.prefix + ".seen."
	sub, err := r.nc.Subscribe(subjects+"*", func(m *nats.Msg) {
		revision, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
		if err == nil {
			f(cluster.Record{Name: strings.TrimPrefix(m.Subject, subjects), Data: m.Data, Revision: revision})
		}
	})
	if err != nil {
		return nil, err
	}
	return func() { sub.Unsubscribe() }, nil // an error means a closed connection
}
