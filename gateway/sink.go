// SPDX-License-Identifier: Apache-2.0

package gateway

// A Sink is a front's connection to the caller of a stream. One goroutine at a time calls its methods. Only Flush and
// TryFlush write to the connection; the others buffer what they are given.
type Sink interface {
	// Event adds a frame of the event with the number seq; 0 for none. build appends the frame's data, one line, and
	// returns it with the frame's name, and whether more frames of the event follow: only the last frame carries the
	// number. If data is nil, there is no frame. Event calls build once, before it returns.
	Event(seq uint64, build func(dst []byte) (data []byte, name string, more bool))
	// Data adds a frame without a number: the error with which the stream ends. build appends its data.
	Data(build func(dst []byte) []byte)
	// Comment adds a line for people. A front that has no comments drops it.
	Comment(text string)
	// Buffered returns how many bytes are buffered.
	Buffered() int
	// Flush sends what is buffered. If nothing is, it may send a heartbeat. It may wait for the caller. An error ends
	// the stream.
	Flush() error
}

// An AbortSink is a Sink whose Flush can be ended.
type AbortSink interface {
	Sink
	// Abort has a Flush fail that waits for the caller. It is called by any goroutine while Flush runs, and does not wait.
	Abort()
}

// A TrySink is a Sink that knows whether its connection takes more without waiting for the caller. Then events are
// sent by the goroutine that appends them to the task's log, or by one of a few that serve all streams.
type TrySink interface {
	Sink
	// TryFlush is Flush if that does not wait for the caller. Otherwise it does nothing, and reports that.
	TryFlush() (done bool, err error)
}
