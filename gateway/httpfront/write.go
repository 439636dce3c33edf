// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// pieceSize is how much of an answer is written at a time, in bytes.
const pieceSize = 64 << 10

// write writes an answer. From HTTP/2 on, a caller may leave no room even for a small one. There a deadline is that of
// one stream, and it stays: the last of an answer is sent when its handler has returned.
func (f *Front) write(w http.ResponseWriter, r *http.Request, body []byte) error {
	timeout := f.config.WriteTimeout
	if r.ProtoMajor < 2 {
		return writePieces(r.Context(), w, body, timeout)
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(timeout))
	err := writePieces(r.Context(), w, body, timeout)
	if len(body) > pieceSize { // those of the pieces were taken back
		_ = control.SetWriteDeadline(time.Now().Add(timeout))
	}
	return err
}

// writePieces writes an answer. A large one is written in pieces, each of which its caller must take in in time, so
// that a caller that reads nothing does not hold memory for ever.
func writePieces(ctx context.Context, w http.ResponseWriter, body []byte, timeout time.Duration) error {
	if len(body) <= pieceSize {
		_, err := w.Write(body)
		return err
	}
	defer guardConnection(ctx, timeout)()
	control := http.NewResponseController(w)
	defer control.SetWriteDeadline(time.Time{})
	for piece := range slices.Chunk(body, pieceSize) {
		// Where the connection has no deadlines (a test's recorder), the server's own timeouts are all there is.
		_ = control.SetWriteDeadline(time.Now().Add(timeout))
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}
