// SPDX-License-Identifier: Apache-2.0

package agentapi

import "github.com/aip-gateway/aip-gateway/translate/internal/wire"

const name = "agentapi"

// family is the name of the extensions of the Agent API. Those of a message are members of its request, such as model
// and temperature. Those of a data item are the type of its content, if the item does not say it,
// {"agentapi":{"type":"refusal"}}, and the head of its message (see head).
const family wire.Family = "agentapi"

// requestNames are the members of a request never replaced by an extension: those with the question, and with its
// caller. They are written without underscores, as wire.Names compares them.
const requestNames wire.Names = "input stream sessionId userId id responseId previousResponseId"

// The values of the member object.
const (
	objectResponse = "response"
	objectMessage  = "message"
	objectContent  = "content"
)

// The statuses of responses, messages and contents.
const (
	statusQueued     = "queued"
	statusCreated    = "created"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusCanceled   = "canceled"
	statusFailed     = "failed"
	statusRejected   = "rejected"
	statusUnknown    = "unknown"
)

// The types of messages with a meaning for the gateway.
const (
	typeMessage            = "message"
	typeFunctionCall       = "function_call"
	typeFunctionCallOutput = "function_call_output"
	typeApprovalRequest    = "mcp_approval_request"
	typeApprovalResponse   = "mcp_approval_response"
	typeHeartbeat          = "heartbeat"
	typeError              = "error"
	typeUIResponse         = "a2ui_response"
	typeUIAction           = "a2ui_action"
)

// The types of contents.
const (
	typeText    = "text"
	typeData    = "data"
	typeImage   = "image"
	typeVideo   = "video"
	typeAudio   = "audio"
	typeFile    = "file"
	typeRefusal = "refusal"
)

// contentTypes are the types of contents. A server refuses a request with a content of another type.
var contentTypes = []string{typeText, typeData, typeImage, typeVideo, typeAudio, typeFile, typeRefusal}

// The roles of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleSystem    = "system"
	roleTool      = "tool"
)

// roles are those of a message.
var roles = []string{roleUser, roleAssistant, roleSystem, roleTool}

// typeReasoning is the type of an agent's words while it works.
const typeReasoning = "reasoning"
