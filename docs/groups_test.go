// SPDX-License-Identifier: Apache-2.0

package docs

import "testing"

// TestDocsGroupLimits holds the limits that docs/groups.md names against the constants of group.
func TestDocsGroupLimits(t *testing.T) {
	constants, _ := constantsOf(t, "group/*.go", "group/broker/*.go", "replay/store.go")
	checkLimits(t, "docs/groups.md", map[string]string{
		"groups of a Partner, `max_groups`":                                             "DefaultMaxGroups",
		"groups of one Leader, `max_groups_per_leader`":                                 "DefaultMaxGroupsPerLeader",
		"groups on one connection":                                                      "linksPerConnection",
		"time of an invitation: look-up, connection, TLS, login, queue":                 "DefaultTimeout",
		"messages of a group in work, `prefetch`":                                       "DefaultPrefetch",
		"messages that the broker has not confirmed, of one group":                      "MaxUnconfirmed",
		"bytes of these messages":                                                       "maxUnconfirmedBytes",
		"time for which a task that is not published to its end is kept, `keep_unread`": "DefaultPinFor",
		"longest pause between attempts to connect":                                     "longestRetry",
		"pause between attempts of a membership that waits for an invitation":           "waitingRetry",
		"time for which a membership without a connection is kept":                      "keepLost",
		"time for which a membership without its exchange is kept, `exchange_wait`":     "DefaultExchangeWait",
		"time for which the broker keeps a queue that nobody uses (`x-expires`)":        "queueExpires",
		"time in which the tasks of a group are canceled when the Partner leaves":       "cancelLimit",
	}, constants)
}
