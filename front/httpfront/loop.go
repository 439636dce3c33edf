// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"errors"
	"net/http"

	"github.com/aip-gateway/aip-gateway/front/httpfront/takeover"
)

// loopAfter is the number of calls on a connection after which a loop serves the next ones: for a caller with a
// connection for each call it would only waste the time.
const loopAfter = 2

// loop has a loop serve the next calls on the connection of a request, if it can. received is the number of bytes read
// of the request's body. After an error, the connection is lost.
func (f *Front) loop(w http.ResponseWriter, r *http.Request, received int) error {
	if f.config.Loop == nil || r.ProtoMajor != 1 || received == 0 || r.ContentLength != int64(received) ||
		!hasOwnBody(r) || r.Header["Expect"] != nil || f.gateway.Draining() {
		return nil
	}
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok || !c.bare || c.calls.Add(1) != loopAfter {
		return nil
	}
	err := takeover.Serve(w, r, takeover.LoopOptions{Socket: c.socket, Passes: f.config.Loop})
	if errors.Is(err, takeover.ErrUnable) {
		return nil
	}
	return err
}

// WaitForLoops waits until the calls in loops have ended, on all servers shutting down.
func WaitForLoops(ctx context.Context) error { return takeover.Wait(ctx) }
