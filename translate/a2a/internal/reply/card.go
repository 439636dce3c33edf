// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"github.com/aip-gateway/aip-gateway/jsonrpc"
)

// An agent may have a second card, which only those see whom it knows: the extended one. The gateway, which the agent
// knows, asks for it, and tells it to its own callers as it does with the first.

// describeID is the id of the request for a card, which is about no task.
const CardID = "card"

// description returns the card in an answer. failed gives the agent's errors a kind.
func Card(body []byte, failed func(*jsonrpc.Failure) error) ([]byte, error) {
	res, err := Parse(body)
	switch {
	case err != nil:
		return nil, err
	case res.Failure != nil:
		return nil, failed(res.Failure)
	case !res.Result.IsObject():
		return nil, Refuse("the agent's answer has a result that is no card")
	}
	return []byte(res.Result.Raw), nil
}
