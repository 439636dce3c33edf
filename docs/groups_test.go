// SPDX-License-Identifier: Apache-2.0

package docs

import "testing"

// TestDocsGroupLimits holds the limits that docs/groups.md names, but for those that are options, against the constants
// of group.
func TestDocsGroupLimits(t *testing.T) {
	constants, _ := constantsOf(t, "front/group/*.go", "front/group/broker/*.go")
	checkLimits(t, "docs/groups.md", map[string]string{
		"groups on one connection":                                  "linksPerConnection",
		"time of an invitation, from look-up to queue":              "DefaultTimeout",
		"unconfirmed messages of one group":                         "MaxUnconfirmed",
		"their bytes":                                               "maxUnconfirmedBytes",
		"waiting invitations to one group":                          "maxRepeated",
		"invitations from an inbox in work":                         "inboxPrefetch",
		"refusals without a `user_id`, of one Partner, in a minute": "maxClaims",
		"the same, to one Leader":                                   "maxClaimsOfLeader",
		"size of an invitation in an inbox":                         "maxInboxMessage",
		"time after the expiry of an invitation":                    "clockSkew",
		"longest pause between attempts to connect":                 "longestRetry",
		"the same, while it waits for an invitation":                "waitingRetry",
		"age of a membership without a connection":                  "keepLost",
		"age of an unused queue (`x-expires`)":                      "queueExpires",
		"time to cancel tasks before it leaves":                     "cancelLimit",
	}, constants)
}
