// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"bytes"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Probe returns the question for telling an agent of the Agent API from others: a request without its input. Every
// agent refuses it before it works.
func Probe() translate.Probe {
	return translate.Probe{Dialect: name, Body: []byte("{}"), Asks: "{}", Why: "it asks for the input", Judge: judge}
}

// judge reads the answer to a probe: the sentence of the validation names the missing member, as an event of a stream
// or as the answer.
func judge(body []byte) translate.Verdict {
	if res, bad := jsonrpc.ParseResponse(body, jsonrpc.Limits{}); bad == nil &&
		(res.Failure != nil || bytes.Contains(body, []byte(`"jsonrpc"`))) {
		return translate.No
	}
	refuses := bytes.Contains(body, []byte(`"error"`)) || bytes.Contains(body, []byte(`"detail"`))
	if refuses && bytes.Contains(body, []byte("input")) {
		return translate.Yes
	}
	return translate.Unsure
}
