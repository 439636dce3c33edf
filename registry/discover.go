// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"net/http"
)

// Discover returns the ACS of an agent, by its AIC, from a discovery server (ADP v02), whose base is the URL of the
// Client. One that the server does not know, or hides, is NotFound. Redirects are not followed.
func (c *Client) Discover(ctx context.Context, aic string) (json.RawMessage, error) {
	type condition struct {
		Field string `json:"field"`
		Op    string `json:"op"`
		Value any    `json:"value"`
	}
	type filter struct {
		Conditions []condition `json:"conditions"`
	}
	question := struct {
		Type   string `json:"type"`
		Filter filter `json:"filter"`
		Limit  int    `json:"limit"`
	}{"filtered", filter{[]condition{{"aic", "eq", aic}}}, 1}
	var answer struct {
		Result *struct {
			ACSMap map[string]json.RawMessage `json:"acsMap"`
		} `json:"result"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	err := c.do(ctx, call{method: http.MethodPost, path: "/discover", body: question, limit: maxACS}, &answer)
	switch {
	case err != nil:
		return nil, err
	case answer.Error != nil:
		return nil, &Error{Kind: Refused, Detail: printable(answer.Error.Message)}
	case answer.Result == nil:
		return nil, &Error{Kind: Malformed, Detail: "it is no answer of a discovery server"}
	}
	acs := answer.Result.ACSMap[aic]
	if len(acs) == 0 || acs[0] != '{' {
		return nil, &Error{Kind: NotFound}
	}
	return acs, nil
}
