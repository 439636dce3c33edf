// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http"

	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// allOverviews answers with what all gateways have counted together. An agent is down where it is so for one of them.
func allOverviews(a *Admin, r *http.Request, q question) (any, error) {
	all, missing, err := askNodes[adminapi.Overview](a, r, q)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	sum := all[0].page
	for i, one := range all {
		if sum.Gateways = append(sum.Gateways, one.name); i > 0 {
			addOverview(sum, one.page)
		}
	}
	sum.Missing = missing
	return sum, nil
}

// addOverview adds the overview of another gateway.
func addOverview(into, of *adminapi.Overview) {
	addActivity(&into.Activity, &of.Activity)
	into.Dead += of.Dead
	if of.Since.Before(into.Since) {
		into.Since = of.Since
	}
	if into.Now != nil && of.Now != nil {
		if into.Now.Tasks == nil { // of an answer without them
			into.Now.Tasks = make(map[string]int64)
		}
		for state, n := range of.Now.Tasks {
			into.Now.Tasks[state] += n
		}
		into.Now.Pending += of.Now.Pending
		into.Now.Streams += of.Now.Streams
	}
	for i := range of.Agents {
		addAgent(into, &of.Agents[i])
	}
}

func addAgent(into *adminapi.Overview, of *adminapi.AgentOverview) {
	for i := range into.Agents {
		a := &into.Agents[i]
		if a.Partner != of.Partner {
			continue
		}
		addActivity(&a.Activity, &of.Activity)
		a.Running += of.Running
		a.Queued += of.Queued
		if a.State == adminapi.AgentUnknown || of.State == adminapi.AgentDown {
			a.AgentHealth = of.AgentHealth
		}
		return
	}
	into.Agents = append(into.Agents, *of)
}

func addActivity(into, of *adminapi.Activity) {
	into.Calls += of.Calls
	into.Errors += of.Errors
	into.Failures += of.Failures
	into.First = addTook(into.First, of.First)
	into.Settled = addTook(into.Settled, of.Settled)
}

func addTook(one, two adminapi.Took) adminapi.Took {
	var sum measure.Counts
	for _, t := range []adminapi.Took{one, two} {
		if t.Buckets != nil {
			sum.Add(*t.Buckets)
		}
	}
	return tookOf(sum)
}
