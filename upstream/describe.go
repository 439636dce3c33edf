// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"io"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Describe returns the card that the agent shows to those whom it knows. One that has none is UnsupportedOperation.
func (h *HTTP) Describe(ctx context.Context) ([]byte, error) {
	codec, ok := h.config.Codec.(translate.Describer)
	if !ok {
		return nil, task.Errorf(task.UnsupportedOperation, "the agent has no card but the public one")
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if !h.config.Slots.asks.acquire(ctx) {
		return nil, ended(ctx)
	}
	defer h.config.Slots.asks.release()
	x, err := h.open(ctx, errand{what: translate.Describe, body: codec.AppendDescribe(nil)}, h.rpc.url(), h.unary)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(x, maxCard+1))
	if err != nil {
		err = x.broken(err, "in the middle of its card")
	} else if len(body) > maxCard {
		err = x.tooLarge(maxCard)
	}
	var card []byte
	if err == nil {
		if card, err = codec.Description(body); err != nil {
			err = x.refused(err)
		}
	}
	x.close(err)
	return card, err
}

// Describe is what it is for HTTP.
func (a *FoundAgent) Describe(ctx context.Context) ([]byte, error) {
	h, err := a.get(ctx)
	if err != nil {
		return nil, err
	}
	return h.Describe(ctx)
}
