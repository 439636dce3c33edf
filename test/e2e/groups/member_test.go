// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
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

// nothingOf demands that a secret is in no log line.
func nothingOf(t testing.TB, m *site.Member, secret string) {
	t.Helper()
	if strings.Contains(m.Out.String(), secret) {
		t.Errorf("%s is in the log", secret)
	}
}

// waitForLoss waits until a member has noticed that it has lost its connection to the broker.
func waitForLoss(m *site.Member) {
	m.T.Helper()
	site.Eventually(m.T, "the member tries to come back", func() bool {
		groups := m.Groups()
		return len(groups) == 1 && groups[0].Get("state").String() != "joined"
	})
}

// leftNothing reports connections, queues and goroutines of a member that is in no group.
func leftNothing(t testing.TB, m *site.Member, b *rabbittest.Broker) {
	t.Helper()
	site.Eventually(t, "the broker has no connection of "+m.AIC, func() bool {
		names, err := b.Connections()
		site.NoError(t, err)
		return !strings.Contains(strings.Join(names, "\n"), m.AIC)
	})
	vhosts, err := b.Eval("rabbit_vhost:list_names()")
	site.NoError(t, err)
	for _, match := range regexp.MustCompile(`<<"([^"]*)">>`).FindAllStringSubmatch(vhosts, -1) {
		queues, err := b.Queues(match[1])
		site.NoError(t, err)
		for _, queue := range queues {
			if strings.Contains(queue, m.AIC) {
				t.Errorf("the queue %s stays in %s", queue, match[1])
			}
		}
	}
	site.Eventually(t, "the gateway has no goroutine of a broker", func() bool {
		_, stacks := m.Asked(http.MethodGet, "/debug/pprof/goroutine?debug=2", "")
		return !bytes.Contains(stacks, []byte("amqp091")) && !bytes.Contains(stacks, []byte("front/group/broker"))
	})
}
