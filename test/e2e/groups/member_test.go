// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// newMember starts a gateway that may connect to a broker. brokers are patterns of allow_brokers; group are further
// settings of the group block.
func newMember(t testing.TB, agent, brokers string, group ...string) *site.Member {
	t.Helper()
	m := site.MakeMember(t)
	m.Config = m.Fronting(agent, brokers, group...)
	m.Start(m.Config)
	return m
}
