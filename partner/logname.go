// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/aip-gateway/aip-gateway/quota"
)

// Class is the class of the logs of tasks in the store. An Engine looks at no others, so that writers of other
// classes may share its store.
const Class = 't'

// A log's name is, after the class, the Partner's, the Leader's and the task's, so that two Leaders using the same
// taskId never meet. None of the three can hold the separator.
const separator = "\x00"

func logName(partner, leader, taskID string) string {
	return string(Class) + partner + separator + leader + separator + taskID
}

func splitLogName(log string) (partner, leader, taskID string) {
	partner, rest, _ := strings.Cut(strings.TrimPrefix(log, string(Class)), separator)
	leader, taskID, _ = strings.Cut(rest, separator)
	return partner, leader, taskID
}

// ownerOf returns whose limits a log counts against: its Partner and Leader, all unverified Leaders being one.
func ownerOf(log string) string {
	partner, leader, _ := splitLogName(log)
	if key := quota.Key(leader); key != leader {
		return string(Class) + partner + separator + key + separator
	}
	return log[:strings.LastIndex(log, separator)+1]
}

// derive makes a name that is the same for the same parts, for ever, and tells nothing of them.
func derive(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(kind + separator + strings.Join(parts, separator)))
	return kind + "-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}
