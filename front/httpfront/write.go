// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// pieceSize is the size of a piece of an answer, in bytes.
const pieceSize = 64 << 10

// write writes an answer. From HTTP/2 on, a caller may block even a small one by flow control. There a deadline belongs
// to one stream of the connection. It is not taken back, because the end of an answer is sent after its handler has
// returned.
func (f *Front) write(w http.ResponseWriter, r *http.Request, body []byte, q *gateway.Request) error {
	timeout := f.config.WriteTimeout
	if r.ProtoMajor < 2 {
		return writePieces(r.Context(), w, body, timeout, q)
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(timeout))
	err := writePieces(r.Context(), w, body, timeout, q)
	if len(body) > pieceSize { // the deadlines of the pieces were taken back
		_ = control.SetWriteDeadline(time.Now().Add(timeout))
	}
	return err
}

// writePieces writes an answer. A large one is written in pieces. The caller must read each piece in time, so a caller
// reading nothing does not hold memory for ever; and meanwhile the memory is lent to others.
func writePieces(
	ctx context.Context, w http.ResponseWriter, body []byte, timeout time.Duration, q *gateway.Request,
) error {
	if len(body) <= pieceSize {
		_, err := w.Write(body)
		return err
	}
	defer guardConnection(ctx, timeout)()
	control := http.NewResponseController(w)
	abort := func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) }
	defer control.SetWriteDeadline(time.Time{})
	for piece := range slices.Chunk(body, pieceSize) {
		// A connection without deadlines (a test's recorder) has only the timeouts of the server.
		_ = control.SetWriteDeadline(time.Now().Add(timeout))
		if err := writePiece(w, piece, q, abort); err != nil {
			return err
		}
	}
	return nil
}

func writePiece(w http.ResponseWriter, piece []byte, q *gateway.Request, abort func()) error {
	q.Lend(abort)
	defer q.TakeBack()
	_, err := w.Write(piece)
	return err
}
