// SPDX-License-Identifier: Apache-2.0

package gateway

// A Sink is a front's connection to the caller of a stream. One goroutine at a time calls its methods. Only Flush and
// TryFlush write to the connection; the others buffer their input.
type Sink interface {
	// Event adds a frame of the event with the number seq; 0 for none. build appends the frame's data, one line, and
	// returns it with the frame's name, and whether more frames of the event follow: only the last frame carries the
	// number. If data is nil, there is no frame. Event calls build once, before it returns.
	Event(seq uint64, build func(dst []byte) (data []byte, name string, more bool))
	// Data adds a frame without a number: the error at the end of the stream. build appends its data.
	Data(build func(dst []byte) []byte)
	// Comment adds a line for people. A front without comments drops it.
	Comment(text string)
	// Buffered returns the number of buffered bytes.
	Buffered() int
	// Flush sends the buffered bytes. If nothing is, it may send a heartbeat, or the head of the answer. It may wait for
	// the caller. An error ends the stream.
	Flush() error
}

// An AbortSink is a Sink with an interruptible Flush.
type AbortSink interface {
	Sink
	// Abort fails a Flush waiting for the caller. It is called by any goroutine while Flush runs, and does not wait.
	Abort()
}

// A TrySink is a Sink knowing whether its connection takes more without waiting for the caller. Then events are sent by
// the goroutine appending them to the task's log, or by one of a few for all streams.
type TrySink interface {
	Sink
	// TryFlush is Flush if Flush does not wait for the caller. Otherwise it does nothing, and returns false.
	TryFlush() (done bool, err error)
}
