// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/translate"
)

// How long a card is taken for what it was, and how long an agent that shows none is not asked again.
const (
	cardAge     = time.Minute
	cardPatient = 5 * time.Second
)

// Card keeps an agent's card, and fetches it again when it has grown old. Its methods may be called by any number of
// goroutines at once.
type Card struct {
	config DiscoverConfig

	mu      sync.Mutex
	card    *translate.Card // the last one; nil until there is one
	changed time.Time       // when card was first seen
	asked   time.Time
	err     error // of the last attempt
}

// NewCard returns the card of an agent. Nothing is sent before it is asked for.
func NewCard(config DiscoverConfig) *Card { return &Card{config: config} }

// Get returns the card, and when it has last changed. An agent that does not answer leaves the card that it showed
// before. Those who ask at the same time wait for one answer.
func (c *Card) Get(ctx context.Context) (*translate.Card, time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := time.Since(c.asked)
	if c.card != nil && age < cardAge || c.err != nil && age < cardPatient {
		return c.card, c.changed, c.failure()
	}
	// The fetch belongs to all who wait, so it does not end with the one who began it.
	fetching, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	card, err := FetchCard(fetching, c.config)
	c.asked, c.err = time.Now(), err
	if err == nil && (c.card == nil || !bytes.Equal(card.Raw, c.card.Raw)) {
		c.card, c.changed = card, c.asked
	}
	return c.card, c.changed, c.failure()
}

// failure is the error to tell: none while there is a card.
func (c *Card) failure() error {
	if c.card != nil {
		return nil
	}
	return c.err
}

// Pushes reports whether the agent tells webhooks, and has no streams.
func (c *Card) Pushes(ctx context.Context) bool {
	card, _, err := c.Get(ctx)
	return err == nil && card.Push && !card.Streaming
}
