// SPDX-License-Identifier: Apache-2.0

// Package codes lists the codes of the errors of AUN (services specification, the appendix of errors, and "task.*").
// From -32000 on, their numbers have other meanings in AIP and A2A.
package codes

import "github.com/aip-gateway/aip-gateway/internal/jsonrpc"

// The codes of errors.
const (
	ParseError     = jsonrpc.ParseError
	InvalidRequest = jsonrpc.InvalidRequest
	MethodNotFound = -32601
	InvalidParams  = -32602
	Internal       = -32603

	Version            = -32000 // no version of the protocol is common to both ends
	AuthFailed         = -32001
	CertificateInvalid = -32002 // or an unknown, used or expired nonce
	SignatureInvalid   = -32003
	PermissionDenied   = -32004
	TokenExpired       = -32005
	AgentOffline       = -32010
	AgentTimeout       = -32011 // or a session not found
	NotInitialized     = -32013 // a method in need of a login
	LimitExceeded      = -32050 // the gateway's own

	SearchUnavailable = -32160
	AgentNotFound     = -32161
	InvalidQuery      = -32162
	SnapshotStale     = -32163
	CursorExpired     = -32164

	TaskNotFound        = -32170
	TaskStateInvalid    = -32171
	TaskInputRequired   = -32172
	TaskCanceled        = -32173
	TaskTooLarge        = -32174
	TaskAccessDenied    = -32175
	TaskAlreadyAccepted = -32176
	TaskRejected        = -32177
	DelegationDenied    = -32178
	ChildLimitExceeded  = -32179
	CompletionBlocked   = -32185
	TaskFailed          = -32186
)
