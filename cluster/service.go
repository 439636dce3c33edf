// SPDX-License-Identifier: Apache-2.0

package cluster

import "context"

// Request is a request to a service counting the memory of its calls itself.
type Request struct {
	Shard int    // -1 for a request to a node
	Head  []byte // the first bytes of the body: all of a small one
	Size  int    // bytes of the body

	rest  func(context.Context) ([]byte, error) // nil for none
	atEnd func()
}

// Body returns the whole body. It asks for the rest now. It is called once. Its error is for the cluster: the service
// returns it.
func (q *Request) Body(ctx context.Context) ([]byte, error) {
	if len(q.Head) == q.Size {
		return q.Head, nil
	}
	return q.rest(ctx)
}

// AtEnd has f called when the reply was sent, or is not going to be.
func (q *Request) AtEnd(f func()) { q.atEnd = f }

func (q *Request) end() {
	if q.atEnd != nil {
		q.atEnd()
	}
}

// service carries out requests of other nodes, and of this one.
type service struct {
	answer  func(ctx context.Context, q *Request) ([]byte, error)
	bounded bool // the cluster counts the memory of its calls
	serving int  // calls made by other nodes
	held    int  // bytes of their bodies, if the cluster counts them
}

// handle has a service answer requests. The last function counts.
func (s *calls) handle(name string, bounded bool, answer func(context.Context, *Request) ([]byte, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.services[name] == nil {
		s.services[name] = new(service)
	}
	s.services[name].answer, s.services[name].bounded = answer, bounded
}

// answerOf returns the function of a service; nil for none.
func (s *calls) answerOf(name string) func(context.Context, *Request) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.services[name]; of != nil {
		return of.answer
	}
	return nil
}

// fits reports whether a body of a size may be held. The mutex is held.
func (of *service) fits(size int) bool {
	return !of.bounded || size <= maxUnasked || of.held+size <= maxHeld
}

// keep counts a reply, if it may be held.
func (s *calls) keep(of *service, size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !of.fits(size) {
		return false
	}
	s.hold(of, size)
	return true
}

// hold counts a body, or, with a negative size, its release. The mutex is held.
func (s *calls) hold(of *service, size int) {
	s.held += size
	if max(size, -size) > maxUnasked {
		of.held += size
	}
}
