// SPDX-License-Identifier: Apache-2.0

package docs

import "testing"

// TestDocsGroupLimits holds the limits that docs/groups.md names, but for those that are options, against the constants
// of group.
func TestDocsGroupLimits(t *testing.T) {
	constants, _ := constantsOf(t, "front/group/*.go", "front/group/broker/*.go")
	checkLimits(t, "docs/groups.md", map[string]string{
		"groups on one connection":                                                 "linksPerConnection",
		"time of an invitation: look-up, connection, TLS, login, queue":            "DefaultTimeout",
		"messages that the broker has not confirmed, of one group":                 "MaxUnconfirmed",
		"bytes of these messages":                                                  "maxUnconfirmedBytes",
		"invitations to one group that wait for the one before":                    "maxRepeated",
		"invitations from an inbox in work":                                        "inboxPrefetch",
		"refusals of invitations without a `user_id`, of one Partner, in a minute": "maxClaims",
		"the same, to one Leader":                                                  "maxClaimsOfLeader",
		"size of an invitation in an inbox":                                        "maxInboxMessage",
		"time for which an invitation counts after it has expired":                 "clockSkew",
		"longest pause between attempts to connect":                                "longestRetry",
		"pause between attempts of a membership that waits for an invitation":      "waitingRetry",
		"time for which a membership without a connection is kept":                 "keepLost",
		"time for which the broker keeps a queue that nobody uses (`x-expires`)":   "queueExpires",
		"time in which the tasks of a group are canceled when the Partner leaves":  "cancelLimit",
	}, constants)
}
