// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Probes returns the questions for telling a Partner from other agents: a get, in each version. sender is the AIC of
// the asking Leader. id is the name of a task of no Partner.
func Probes(sender, id string) (probes []translate.Probe) {
	for _, c := range []translate.Client{ClientV2(sender), Client(sender)} {
		ref := agent.Ref{Task: id, Session: id}
		c = c.For(translate.Query{ID: "1", Task: id, Session: id})
		probes = append(probes, translate.Probe{
			Dialect: c.Name(), Body: c.(translate.Getter).AppendGet(nil, ref), Judge: judge,
			Asks: "get", Why: "it knows the command get of " + c.Name(),
		})
	}
	return probes
}

// known are the errors of §5.2 for a get by a Partner that understood it: there is no such task, or the caller may not
// ask.
var known = []int64{-32001, -32008, -32009, -32010}

// judge reads the answer to a probe. A failed Partner may have understood it or not.
func judge(body []byte) translate.Verdict {
	res, bad := jsonrpc.ParseResponse(body, jsonrpc.Limits{})
	switch {
	case bad != nil || res.Failure != nil && res.Failure.Code == -32603:
		return translate.Unsure
	case res.Failure == nil && res.Result.IsObject() || res.Failure != nil && slices.Contains(known, res.Failure.Code):
		return translate.Yes
	}
	return translate.No
}
