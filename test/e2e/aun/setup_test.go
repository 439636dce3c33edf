// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// serveAUN starts a gateway with an AUN side in front of the sample agent.
func serveAUN(t testing.TB) *site.AUNSite {
	t.Helper()
	_, address := site.SampleAgent(t)
	s := site.NewAUN(t)
	s.Start(s.Config("a2a/legacy http://" + address))
	return s
}

// productTexts returns the texts of the products of a task.
func productTexts(t *task.Task) (all string) {
	for _, p := range t.Products {
		for _, item := range p.DataItems {
			all += item.Text
		}
	}
	return all
}
