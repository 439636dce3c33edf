// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

const (
	cardAge      = time.Minute      // until a card is fetched again, or looked for if there was none
	cardPause    = 5 * time.Second  // after a failure, before the card is fetched again
	fetchTimeout = 10 * time.Second // of one fetch

	// pushesWait is a turn's longest wait for the first card, counted from the start of its fetch.
	pushesWait = 500 * time.Millisecond
)

// Card keeps an agent's card, and fetches it again when it is old. Meanwhile it returns the old one. Its
// methods may be called by any number of goroutines at once.
type Card struct {
	config Config

	mu       sync.Mutex
	closed   bool
	card     *translate.Card // the last one; nil until there is one
	changed  time.Time       // when card was first seen
	fetched  time.Time       // when the last fetch ended
	err      error           // of the last fetch
	first    time.Time       // when the first fetch began
	fetching *flight[*translate.Card]
}

// NewCard returns the card of an agent. Nothing is sent before it is asked for. The caller must close it.
func NewCard(config Config) *Card { return &Card{config: config} }

// Close ends the fetch under way, and waits for it. The card stays as it is.
func (c *Card) Close() {
	c.mu.Lock()
	c.closed = true
	fetch := c.fetching
	c.mu.Unlock()
	if fetch != nil {
		fetch.stop()
	}
}

// Get returns the card, and when it has last changed. It waits for the agent only if there is no card yet, and no
// longer than ctx allows. A silent agent keeps its last card.
func (c *Card) Get(ctx context.Context) (*translate.Card, time.Time, error) {
	card, changed, fetch, err := c.look()
	if fetch == nil {
		return card, changed, err
	}
	if _, err := fetch.wait(ctx); err != nil {
		return nil, time.Time{}, err
	}
	card, changed, _, err = c.look()
	return card, changed, err
}

// Pushes reports whether the agent notifies webhooks, and has no streams. A hanging card server must not stall turns,
// so it waits only for the first card, and at most for pushesWait; until there is a card, the answer is no.
func (c *Card) Pushes(ctx context.Context) bool {
	card, _ := c.soon(ctx)
	return card != nil && card.Push && !card.Streaming
}

// Streams reports whether there are no streams by the card, and the time of its last change. A card need not speak of
// streams. It waits as Pushes does; without a card, there may be streams, and since is the zero time.
func (c *Card) Streams(ctx context.Context) (none bool, since time.Time) {
	card, changed := c.soon(ctx)
	return card != nil && !card.Streaming, changed
}

// soon returns the card, and when it has last changed; nil if there is none within pushesWait.
func (c *Card) soon(ctx context.Context) (*translate.Card, time.Time) {
	card, changed, fetch, _ := c.look()
	if fetch != nil {
		c.mu.Lock()
		until := c.first.Add(pushesWait)
		c.mu.Unlock()
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		if _, err := fetch.wait(ctx); err == nil {
			card, changed, _, _ = c.look()
		}
	}
	return card, changed
}

// look returns the card, and begins to fetch it if there is none or it is old. fetch is set if there is no card yet.
func (c *Card) look() (_ *translate.Card, changed time.Time, fetch *flight[*translate.Card], _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := time.Since(c.fetched)
	known := c.err == nil && c.card != nil || errors.Is(c.err, errNoCard)
	fresh := known && age < cardAge || c.err != nil && age < cardPause
	if !fresh && c.fetching == nil && !c.closed {
		if c.first.IsZero() {
			c.first = time.Now()
		}
		c.fetching = startFlight(c.fetch, c.fetchEnded)
	}
	switch {
	case c.card != nil:
		return c.card, c.changed, nil, nil
	case c.fetching != nil:
		return nil, time.Time{}, c.fetching, nil
	case c.err == nil:
		return nil, time.Time{}, nil, errClosed
	}
	return nil, time.Time{}, nil, c.err
}

var errClosed = errors.New("discovery: the card is closed")

func (c *Card) fetch(ctx context.Context) (*translate.Card, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return FetchCard(ctx, c.config)
}

// fetchEnded stores the result of a fetch.
func (c *Card) fetchEnded(fetch *flight[*translate.Card]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fetching, c.fetched, c.err = nil, time.Now(), fetch.err
	if p, ok := fetch.err.(*callPanic); ok {
		c.err = upstream.Failed(task.Internal, upstream.NoReason, p,
			"the gateway failed while it fetched the agent's card")
	}
	if card := fetch.result; fetch.err == nil && (c.card == nil || !bytes.Equal(card.Raw, c.card.Raw)) {
		c.card, c.changed = card, c.fetched
	}
}
