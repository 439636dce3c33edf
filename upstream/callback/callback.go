// SPDX-License-Identifier: Apache-2.0

package callback

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// Limits of an agent's pushes.
const (
	MaxPush      = 16 << 20 // bytes of one body
	maxPushes    = 64       // bodies waiting for their turn; then the agent is asked to push again
	maxSeen      = 1024     // bodies recognized; beyond it, an old one may be taken for a new one
	maxChallenge = 1 << 10  // bytes of a validationToken
)

// Server receives the pushes of agents. Every turn waiting for pushes has an address and a token of its own. They are
// invalid after the turn. The zero Server is ready for use; it may be used by any number of goroutines at once.
type Server struct {
	taken, refused atomic.Uint64 // pushes

	mu   sync.Mutex
	open map[string]*callback
}

// Counts are the counts of a Server's pushes.
type Counts struct {
	Open           int    // turns open to pushes now
	Taken, Refused uint64 // pushes since the process began
}

// Counts returns the counts of now.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{Open: len(s.open), Taken: s.taken.Load(), Refused: s.refused.Load()}
}

// At returns the Listener of one agent. Its pushes arrive below a URL of the server. pushes reports whether the agent
// pushes and has no streams.
func (s *Server) At(url string, pushes func(context.Context) bool) upstream.Listener {
	return &listener{s, strings.TrimSuffix(url, "/") + "/", pushes}
}

// listener is a Server at a URL, for one agent.
type listener struct {
	server *Server
	url    string
	pushes func(context.Context) bool
}

// Listen implements upstream.Listener.
func (l *listener) Listen(ctx context.Context, _ agent.Ref) *upstream.Inbox {
	if !l.pushes(ctx) {
		return nil
	}
	cb := l.server.begin()
	return &upstream.Inbox{
		Webhook:  &task.Webhook{URL: l.url + cb.id, Token: cb.token},
		Messages: cb.bodies,
		Close:    func() { l.server.end(cb) },
	}
}

// callback is one turn open to pushes.
type callback struct {
	id, token string
	bodies    chan []byte // an empty one is only a reason to ask

	mu   sync.Mutex
	seen *simplelru.LRU[[sha256.Size]byte, struct{}] // the last bodies queued
}

// begin makes an address for a turn. The caller must end it.
func (s *Server) begin() *callback {
	seen, err := simplelru.NewLRU[[sha256.Size]byte, struct{}](maxSeen, nil)
	if err != nil {
		panic(err) // the size is not positive
	}
	cb := &callback{
		id: strings.ToLower(rand.Text()), token: rand.Text(), bodies: make(chan []byte, maxPushes), seen: seen,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[string]*callback)
	}
	s.open[cb.id] = cb
	return cb
}

func (s *Server) end(cb *callback) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, cb.id)
}

func (s *Server) find(id string) *callback {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

// idOf returns the id of the turn, the last part of a path.
func idOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Has reports whether a turn of this process waits for pushes to a path, and whether a push with some header fields
// would be taken as one of its agent.
func (s *Server) Has(path string, h http.Header) (has, authorized bool) {
	cb := s.find(idOf(path))
	return cb != nil, cb != nil && cb.authorized(h)
}

// ServeHTTP receives one push. The last part of its path names the turn.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	taken := s.serve(w, r)
	switch {
	case r.Method != http.MethodPost:
	case taken:
		s.taken.Add(1)
	default:
		s.refused.Add(1)
	}
}

// serve is ServeHTTP, and reports whether a push was taken.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) bool {
	cb := s.find(idOf(r.URL.Path))
	switch {
	case cb == nil:
		http.Error(w, "no turn waits for this", http.StatusNotFound)
	case r.Method == http.MethodGet:
		// Some agents check an address before they use it: their request must be answered.
		challenge := r.URL.Query().Get("validationToken")
		if challenge == "" || len(challenge) > maxChallenge {
			http.Error(w, "a validationToken is missing", http.StatusBadRequest)
			return false
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, challenge)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "a push must be a POST request", http.StatusMethodNotAllowed)
	case !cb.authorized(r.Header):
		http.Error(w, "the token is wrong or missing", http.StatusUnauthorized)
	default:
		return cb.receive(w, r)
	}
	return false
}

// TokenFields are the agents' header fields for the token of a turn, beside Authorization. They are not to be changed.
var TokenFields = []string{"X-A2A-Notification-Token", "A2A-Notification-Token", "X-ACPS-AIP-Notification-Token"}

// authorized reports whether a push carries the turn's token, in any of the agents' fields for it.
func (cb *callback) authorized(h http.Header) bool {
	given := func(token string) bool { return subtle.ConstantTimeCompare([]byte(token), []byte(cb.token)) == 1 }
	for _, name := range TokenFields {
		if given(h.Get(name)) {
			return true
		}
	}
	return given(strings.TrimPrefix(h.Get("Authorization"), "Bearer "))
}

// receive answers a push with the right token, and reports whether it was taken.
func (cb *callback) receive(w http.ResponseWriter, r *http.Request) bool {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !strings.HasSuffix(t, "json") {
		http.Error(w, "a push must be JSON", http.StatusUnsupportedMediaType)
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxPush))
	if err != nil {
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the body did not arrive, or is too large", status)
		return false
	}
	if !cb.queue(body) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the turn has not read what was pushed before; push again", http.StatusServiceUnavailable)
		return false
	}
	w.WriteHeader(http.StatusOK)
	return true
}

// queue hands a body to the turn. It returns false if the turn has too many already. A repeated body may report an old
// state, so it becomes a reason to ask.
func (cb *callback) queue(body []byte) bool {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	sum := sha256.Sum256(body)
	if cb.seen.Contains(sum) {
		body = []byte{}
	}
	select {
	case cb.bodies <- body:
	default:
		return false
	}
	cb.seen.Add(sum, struct{}{})
	return true
}
