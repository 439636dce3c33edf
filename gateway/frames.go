// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// framer gives a sink the frames of a stream. It is used again for each event, so an event costs no allocation.
type framer struct {
	encoder translate.Encoder
	direct  translate.RecordEncoder // the encoder, if it encodes events from their stored form
	results translate.ResultEncoder // the encoder, if it shows the whole task wherever the task settles
	build   func(dst []byte) (data []byte, name string, more bool)

	// The source of the encoding: one of these.
	task   *task.Task
	event  *task.Event
	result *task.Task // after the event resultSeq
	record replay.Record

	resultSeq uint64

	unnumbered bool // the frames carry no number

	frame translate.Frame // the last one built
	sent  bool            // the sink was given a frame
}

func (f *framer) init(e translate.Encoder) {
	f.encoder, f.build = e, f.append
	f.direct, _ = e.(translate.RecordEncoder)
	f.results, _ = e.(translate.ResultEncoder)
}

// snapshot gives a sink the frames of the whole task. It reports whether the dialect's stream ends with them.
func (f *framer) snapshot(out Sink, seq uint64, t *task.Task) (end bool) {
	f.task = t
	return f.write(out, seq)
}

// settled gives a sink the frames of an event settling the task. t is the task after it.
func (f *framer) settled(out Sink, seq uint64, t *task.Task) (end bool) {
	f.result, f.resultSeq = t, seq
	return f.write(out, seq)
}

// add gives a sink the frames of an event. It reports whether the dialect's stream ends with them.
func (f *framer) add(out Sink, rec *replay.Record) (end bool, err error) {
	if f.direct != nil {
		f.record = *rec
		return f.write(out, rec.Seq), nil
	}
	ev, err := task.DecodeEvent(rec.Data)
	if err != nil {
		return false, errDamaged(err)
	}
	ev.Seq = rec.Seq
	f.event = &ev
	return f.write(out, rec.Seq), nil
}

func errDamaged(err error) error {
	return task.Errorf(task.Internal, "the task's log is damaged").WithCause(err)
}

// write gives a sink all frames of the source. It keeps none of it.
func (f *framer) write(out Sink, seq uint64) (end bool) {
	if f.unnumbered {
		seq = 0
	}
	for more := true; more; more = f.frame.Next != nil {
		out.Event(seq, f.build)
		f.sent = f.sent || f.frame.Data != nil
	}
	end = f.frame.End
	f.task, f.event, f.result, f.record, f.frame = nil, nil, nil, replay.Record{}, translate.Frame{}
	return end
}

// append appends the next frame.
func (f *framer) append(dst []byte) (data []byte, name string, more bool) {
	switch {
	case f.frame.Next != nil:
		f.frame = f.frame.Next(dst)
	case f.task != nil:
		f.frame = f.encoder.Snapshot(dst, f.task)
	case f.event != nil:
		f.frame = f.encoder.Event(dst, f.event)
	case f.result != nil:
		f.frame = f.results.Result(dst, f.resultSeq, f.result)
	default:
		f.frame = f.direct.Record(dst, f.record.Seq, f.record.Data)
	}
	return f.frame.Data, f.frame.Name, f.frame.Next != nil
}
