// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// v2 is AIP v02: a command is a TaskCommand.
var v2 = version{
	name: nameV2, command: typeCommand, find: (*reader).findCommand,
	responseTimeout: "timeout", lastMessageSentAt: "lastCommandSentAt",
}

// Decode implements translate.Server.
func (*serverV2) Decode(req *translate.Request) (translate.Call, error) { return decode(req, &v2) }

// findCommand finds the TaskCommand in the params of v02. Which of the members command and message holds it differs by
// method and by version, so both are read, but not both at once.
func (r *reader) findCommand(params gjson.Result) (command gjson.Result) {
	if !params.IsObject() {
		r.Fail("", "params must be an object with the member command")
		return command
	}
	command, at := wire.Member(params, "command"), "command"
	if message := wire.Member(params, "message"); wire.Absent(command) && !wire.Absent(message) {
		command, at = message, "message"
	} else if !wire.Absent(message) {
		r.Fail("message", "message must be left out where there is a command")
	}
	r.Prefix += at + "."
	if !command.IsObject() {
		r.Fail("", "%s must be an object", at)
	}
	return command
}
