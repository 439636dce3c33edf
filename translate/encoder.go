// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"github.com/aip-gateway/aip-gateway/task"
)

// Encoder writes the frames of one stream, in order. It is used by one goroutine.
type Encoder interface {
	// Snapshot appends the first frame of the whole task.
	Snapshot(dst []byte, t *task.Task) Frame
	// Event appends the first frame of an event. A Frame without Data is for an event not shown by the dialect.
	Event(dst []byte, ev *task.Event) Frame
}

// A RecordEncoder is an Encoder writing events as the log has them, so that an event is sent without being decoded.
type RecordEncoder interface {
	// Record does the same as Event, from the stored form of the event.
	Record(dst []byte, seq uint64, record []byte) Frame
}

// A ResultEncoder is an Encoder showing the whole task each time it settles.
type ResultEncoder interface {
	// Result does the same as Event, for a Status settling the task. t is the task after it, without histories.
	Result(dst []byte, seq uint64, t *task.Task) Frame
}

// A Keeper is an Encoder keeping its output until the end of the stream.
type Keeper interface {
	// Kept returns the number of bytes kept, approximately.
	Kept() int64
}

// Frame is one message of a stream, such as one event of SSE.
//
// Most dialects have one frame for an event. If a dialect has several, each names the Next one. A transport with
// numbers of messages gives the event's number to the last frame only: a caller that has seen only some of the frames
// then resumes after the event before, and receives all frames of the event again. So a frame with Data may only be
// followed by frames with Data.
type Frame struct {
	Name string                 // the name of the event in SSE; empty for the default
	Data []byte                 // dst with one line appended; nil for nothing
	End  bool                   // the dialect's stream ends here, though the task may continue; set on the last frame only
	Next func(dst []byte) Frame // appends the next frame of the same event; nil on the last frame
}
