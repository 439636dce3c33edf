// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"net/url"
	"strings"
)

// A conversation is a user_id and a session_id of a caller. Its name is the session of its tasks: the session_id alone,
// if the user_id is the same, as for callers without a user_id; otherwise both, with a slash between them.

// conversation returns the name of a conversation.
func conversation(user, session string) string {
	if user == session && !strings.Contains(session, "/") {
		return session
	}
	return url.PathEscape(user) + "/" + session
}

// userAndSession returns the user and the session in the name of a conversation.
func userAndSession(conversation string) (user, session string) {
	escaped, session, both := strings.Cut(conversation, "/")
	if !both {
		return conversation, conversation
	}
	user, err := url.PathUnescape(escaped)
	if err != nil { // a name of another dialect
		return conversation, conversation
	}
	return user, session
}

// IsInSession implements translate.Sessions: the user and session named in a request beside a response must be those of
// the response. A missing user_id or session_id may be any.
func (server) IsInSession(named, session string) bool {
	user, id := userAndSession(named)
	ofUser, ofID := userAndSession(session)
	return (user == "" || user == ofUser) && (id == "" || id == ofID)
}

// The id of a response names the task behind it, and the message answered by it.
const responsePrefix = "response_"

// responseID returns the id of the response of a task to a message.
func responseID(taskID, messageID string) string { return responsePrefix + taskID + "_" + messageID }

// answeredBy returns the task and the message in the id of a response.
func answeredBy(response string) (taskID, messageID string, ok bool) {
	rest, ok := strings.CutPrefix(response, responsePrefix)
	end := strings.LastIndexByte(rest, '_')
	if !ok || end <= 0 {
		return "", "", false
	}
	return rest[:end], rest[end+1:], true
}
