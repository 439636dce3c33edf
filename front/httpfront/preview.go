// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/protobytes"
	"github.com/aip-gateway/aip-gateway/task"
)

// Previewer finds out the senders and the operations of requests, ahead of a Front, for the handlers in between. It may
// be used by any number of goroutines at once.
type Previewer struct {
	Reader *gateway.Reader
	// Authenticate is like a Config's, and the Front does not use its own. If it is nil, the preview knows the client
	// certificate of the connection alone, and the Front finds out the caller.
	Authenticate func(*http.Request) (identity.Peer, error)
	Proofs       string // as those of a Config
	Base         string // the path of the Partner's mount
	BodyTimeout  time.Duration
}

// Preview is the knowledge of a request before its Front has it. The operation of the request is read at the first
// question for it: its body is kept then, and a handler reading the request's body later gets all of it. It may be used
// by any number of goroutines at once.
type Preview struct {
	previewer *Previewer
	peer      identity.Peer // as the Front has it
	err       error         // of Authenticate

	w       http.ResponseWriter
	request *http.Request // as it came
	url     url.URL       // likewise, since later handlers may change it

	mu       sync.Mutex
	judged   bool          // accepted is known
	accepted identity.Peer // as the Guard has it

	of      gateway.Request // holds the body, and its memory
	asked   bool            // what and failed are known
	what    gateway.Asked
	failed  error // the reason why the body was not read: no handler gets it then
	read    int   // bytes of the kept body read again
	end     error // after the kept body; nil: the rest was not read
	passing bool  // the body is being read by another handler
	summary *gateway.Summary
}

type previewKey struct{}

// Begin returns the preview of a request, and the request for the next handler. The preview must be ended after the
// handler's return.
func (p *Previewer) Begin(w http.ResponseWriter, r *http.Request) (*Preview, *http.Request) {
	v := &Preview{previewer: p, w: w, request: r, url: *r.URL}
	if p.Authenticate != nil {
		v.peer, v.err = p.Authenticate(r)
	} else {
		v.peer, v.err = ofConnection(r)
	}
	next := r.WithContext(context.WithValue(r.Context(), previewKey{}, v))
	if r.Body != nil && r.Body != http.NoBody {
		next.Body = &previewBody{r.Body, v}
	}
	return v, next
}

// PreviewOf returns the preview of a request; nil for none.
func PreviewOf(ctx context.Context) *Preview {
	v, _ := ctx.Value(previewKey{}).(*Preview)
	return v
}

// Peer returns the sender of the request, as a Config's Authenticate does.
func (v *Preview) Peer() (identity.Peer, error) { return v.peer, v.err }

// Accepted returns the proven sender of the request; the zero Peer for a caller without a proof.
func (v *Preview) Accepted() identity.Peer {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.accept()
}

// accept finds out the proven sender of the request, once. v.mu is held.
func (v *Preview) accept() identity.Peer {
	if !v.judged {
		v.judged = true
		if v.err == nil {
			v.accepted = v.previewer.Reader.Accepts(v.request.Context(), v.peer)
		}
	}
	return v.accepted
}

// Asked returns the operation of the request: none if its path is none of the Partner's. After an error, the body could
// not be read. Its Asked is then as for an undecodable body, and no handler can read the body later.
func (v *Preview) Asked() (gateway.Asked, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.asked {
		v.asked = true
		v.ask()
	}
	return v.what, v.failed
}

// pass leaves the body, and the counting of its memory, to the Front. It returns the result of Asked; nil if Asked was
// not called.
func (v *Preview) pass() *gateway.Asked {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.of.Uncount()
	if !v.asked {
		return nil
	}
	return &v.what
}

// report sets the place for the Front's summary of the request.
func (v *Preview) report(s *gateway.Summary) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.summary = s
}

// Summary returns the Front's summary of the request once it has answered; nil before it has the request.
func (v *Preview) Summary() *gateway.Summary {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.summary
}

// End gives back everything the preview holds.
func (v *Preview) End() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asked = true; v.of.Body != nil {
		v.drop(errEnded)
	}
	v.of.Release()
}

var errEnded = errors.New("the request has ended")

// drop drops the kept body. Later readers get an error. v.mu is held.
func (v *Preview) drop(end error) {
	v.of.Release()
	if v.end == nil {
		v.end = end
	}
}

// ask reads the operation of the request. v.mu is held.
func (v *Preview) ask() {
	p, r := v.previewer, *v.request
	r.URL = &v.url
	path, ok := below(p.Base, r.URL)
	v.of.GRPC = isGRPC(&r)
	if !ok || !p.Reader.Match(&v.of, r.Method, path) || v.of.Allow() != "" {
		return
	}
	describe(&v.of, &r)
	v.what = gateway.Asked{Method: v.of.RoutedMethod(), Command: gateway.Unread}
	if r.Body != nil && r.Body != http.NoBody && r.Method != http.MethodGet && r.Method != http.MethodDelete {
		if v.passing {
			return
		}
		if err := v.keep(); err != nil {
			v.failed = err
			v.drop(err)
			return
		}
	}
	kept := v.of.Body
	if v.of.GRPC && kept != nil {
		message, err := v.message(r.Header.Get("Grpc-Encoding"))
		if err != nil {
			v.failed = err
			v.drop(err)
			return
		}
		v.of.Body = &message
	}
	v.what = p.Reader.Ask(&v.of)
	v.of.Body = kept
}

// hold takes the memory for n bytes of the body.
func (v *Preview) hold(n int) error {
	return v.previewer.Reader.Hold(v.request.Context(), v.accept(), &v.of, n)
}

// keep reads the body, or of one of gRPC its first message. v.mu is held.
func (v *Preview) keep() error {
	p, in, length := v.previewer, io.Reader(v.request.Body), v.request.ContentLength
	defer limitReading(v.w, p.BodyTimeout).end()
	most := p.Reader.MaxBody(v.accept())
	if v.of.GRPC {
		in, length, most = &firstMessage{from: in}, -1, most+grpcPrefix
	}
	if length > int64(most) {
		return p.Reader.TooLarge(v.accept())
	}
	v.of.Body = gateway.NewBody()
	if err := readBody(in, v.of.Body, length, most, v); err != nil {
		return err
	}
	if len(*v.of.Body) > most {
		return p.Reader.TooLarge(v.accept())
	}
	if !v.of.GRPC {
		v.end = io.EOF
	}
	return nil
}

// message returns the message in a kept body of gRPC. v.mu is held.
func (v *Preview) message(encoding string) ([]byte, error) {
	body := *v.of.Body
	if len(body) < grpcPrefix {
		return nil, nil // the Front reports the lack
	}
	message := body[grpcPrefix:]
	if body[0]&1 == 0 {
		return message, nil
	}
	if encoding != protobytes.Gzip {
		return nil, nil // likewise
	}
	most := v.previewer.Reader.MaxBody(v.accept())
	reader, _ := protobytes.Gunzip(most)
	inflate := reader()
	if err := inflate.Reset(bytes.NewReader(message)); err != nil {
		return nil, nil //nolint:nilerr // likewise
	}
	var plain []byte
	if err := readBody(inflate, &plain, -1, most, v); err != nil {
		if task.KindOf(err) == task.LimitExceeded {
			return nil, err
		}
		return nil, nil // likewise
	}
	if len(plain) > most {
		return nil, v.previewer.Reader.TooLarge(v.accept())
	}
	return plain, nil
}

// previewBody is the body of a request with a preview.
type previewBody struct {
	io.ReadCloser
	v *Preview
}

// Read implements io.Reader.
func (b *previewBody) Read(dst []byte) (int, error) {
	n, err, all := b.v.again(dst)
	if all {
		return b.ReadCloser.Read(dst)
	}
	return n, err
}

// rest returns the rest of the body, also of one too large for the preview.
func (b *previewBody) rest() io.Reader {
	b.v.mu.Lock()
	defer b.v.mu.Unlock()
	if b.v.failed != nil {
		return b.ReadCloser
	}
	return b
}

// again reads from the kept body. It reports whether all of it was read, and the rest is to be read.
func (v *Preview) again(dst []byte) (n int, err error, all bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if kept := v.of.Body; kept != nil {
		n = copy(dst, (*kept)[v.read:])
		if v.read += n; v.read == len(*kept) {
			v.of.Release()
		}
		if n > 0 {
			return n, nil, false
		}
	}
	if v.end != nil {
		return 0, v.end, false
	}
	v.passing = true
	return 0, nil, true
}

// grpcPrefix is the size of the prefix of a message of gRPC: a flag, and the size of the message.
const grpcPrefix = 5

// firstMessage reads the first message of a body of gRPC, and no byte more.
type firstMessage struct {
	from   io.Reader
	prefix []byte
	left   uint32
}

// Read implements io.Reader.
func (m *firstMessage) Read(dst []byte) (int, error) {
	if missing := grpcPrefix - len(m.prefix); missing > 0 {
		n, err := m.from.Read(dst[:min(len(dst), missing)])
		if m.prefix = append(m.prefix, dst[:n]...); len(m.prefix) == grpcPrefix {
			m.left = binary.BigEndian.Uint32(m.prefix[1:])
		}
		return n, err
	}
	if m.left == 0 {
		return 0, io.EOF
	}
	n, err := m.from.Read(dst[:min(uint64(len(dst)), uint64(m.left))])
	m.left -= uint32(n)
	return n, err
}
