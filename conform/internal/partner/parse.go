// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// wrong reports that something is wrong, unless the Partner accepts it.
func (p *Partner) wrong(is bool, name string) bool { return is && !p.Accepts[name] }

// parse reads the envelope.
func (p *Partner) parse(c *Call) *Error {
	if p.wrong(len(c.Body) > maxBody, "large") {
		return p.failure("InvalidRequest", Object{"limit": maxBody})
	}
	bom := []byte("\xEF\xBB\xBF")
	if p.wrong(bytes.HasPrefix(c.Body, bom), "bom") || p.wrong(!utf8.Valid(c.Body), "utf8") {
		return p.failure("ParseError", nil)
	}
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(c.Body, bom)))
	decoder.UseNumber()
	if err := decoder.Decode(&c.Object); err != nil && !p.Accepts["json"] {
		return p.failure("ParseError", nil)
	}
	if _, err := decoder.Token(); p.wrong(err != io.EOF, "trailing") {
		return p.failure("ParseError", nil)
	}
	if batch, is := c.Object.([]any); is && p.Accepts["batch"] && len(batch) > 0 {
		c.Object = batch[0]
	}
	object, is := c.Object.(Object)
	if p.wrong(!is, "no object") {
		return p.failure("InvalidRequest", nil)
	}
	id, has := object["id"]
	switch id.(type) {
	case string, json.Number, nil:
		c.ID = id
	default:
		if p.wrong(true, "type of id") {
			return p.failure("InvalidRequest", nil)
		}
		c.ID = id
	}
	method, isText := object["method"].(string)
	c.Method = method
	if p.wrong(!has, "no id") || p.wrong(object["jsonrpc"] != "2.0", "jsonrpc") || p.wrong(!isText, "no method") {
		return p.failure("InvalidRequest", nil)
	}
	methods := []string{"rpc", "stream", "group", "notification/start", "notification/set", "notification/get",
		"notification/delete"}
	if p.wrong(!slices.Contains(methods, method), "method") {
		return p.failure("MethodNotFound", Object{"method": method})
	}
	c.Params, is = object["params"].(Object)
	if p.wrong(!is && method != "group", "params") {
		return p.invalid("params")
	}
	return nil
}

// check looks at the command, and at the identity.
func (p *Partner) check(c *Call) *Error {
	switch c.Method {
	case "group":
		return nil
	case "rpc", "stream", "notification/start":
	default:
		task, _ := c.Params["taskId"].(string)
		if p.wrong(task == "", "taskId of a configuration") {
			return p.invalid("taskId")
		}
		return nil
	}
	member := "message"
	if _, second := c.Params["command"].(Object); second && c.Method == "rpc" {
		member, c.Version = "command", &v2
	}
	message, is := c.Params[member].(Object)
	c.Message = message
	if p.wrong(!is, "no message") {
		return p.invalid(member)
	}
	if message["type"] == v2.Command {
		c.Version = &v2
	}
	if p.wrong(message["type"] != c.Version.Command, "type of message") {
		return p.invalid("type")
	}
	c.Command = c.Text("command")
	id := c.Text("taskId")
	control := strings.ContainsFunc(id, func(r rune) bool { return r < ' ' })
	sent := c.Text("sentAt")
	_, badTime := time.Parse(time.RFC3339Nano, sent)
	commands := []string{"start", "get", "continue", "complete", "cancel", "re-stream"}
	role := c.Text("senderRole")
	for _, rule := range []struct {
		wrong        bool
		name, member string
	}{
		{c.Text("id") == "", "id of message", "id"},
		{c.Text("senderId") == "", "senderId", "senderId"},
		{role == "", "no senderRole", "senderRole"},
		{role != "leader" && role != "", "senderRole", "senderRole"},
		{sent == "", "no sentAt", "sentAt"},
		{sent != "" && badTime != nil, "sentAt", "sentAt"},
		{c.Command == "", "no command", "command"},
		{c.Command != "" && !slices.Contains(commands, c.Command), "command", "command"},
		{id == "", "taskId", "taskId"},
		{len(id) > maxTaskID || control, "form of taskId", "taskId"},
	} {
		if p.wrong(rule.wrong, rule.name) {
			return p.invalid(rule.member)
		}
	}
	if failure := p.items(c); failure != nil {
		return failure
	}
	params, has := message["commandParams"]
	if object, is := params.(Object); p.wrong(has && params != nil && !is, "type of commandParams") {
		return p.invalid("commandParams")
	} else if failure := p.params(c, object); failure != nil {
		return failure
	}
	if c.Nameless && !p.Accepts["nameless"] {
		return p.failure("AuthenticationRequiredError", nil)
	}
	if p.wrong(c.Caller != "" && !strings.EqualFold(c.Caller, c.Text("senderId")), "other sender") {
		return p.failure("AuthorizationFailedError", nil)
	}
	return nil
}

// params checks those of the commands.
func (p *Partner) params(c *Call, params Object) *Error {
	number := func(name string) bool {
		v := params[name]
		if v == nil {
			return true
		}
		n, is := v.(json.Number)
		f, err := n.Float64()
		return is && err == nil && f == math.Trunc(f) && f >= 0
	}
	for _, name := range []string{"lastEventSeq", "responseTimeout", "timeout", "awaitingInputTimeout",
		"awaitingCompletionTimeout", "maxProductsBytes"} {
		if p.wrong(!number(name), name) {
			return p.invalid(name)
		}
	}
	for _, name := range []string{c.Version.Since, "lastStateChangedAt"} {
		if v := params[name]; v != nil {
			s, _ := v.(string)
			if _, err := time.Parse(time.RFC3339Nano, s); p.wrong(err != nil, "since") {
				return p.invalid(name)
			}
		}
	}
	states, is := params["notifyOnStates"].([]any)
	if p.wrong(!is && params["notifyOnStates"] != nil, "notifyOnStates") {
		return p.invalid("notifyOnStates")
	}
	for _, s := range states {
		if p.wrong(!slices.Contains(allStates, s), "notifyOnStates") {
			return p.invalid("notifyOnStates")
		}
	}
	return nil
}

var allStates = []any{"accepted", "working", "awaiting-input", "awaiting-completion", "completed", "canceled", "failed",
	"rejected"}

// items checks the data items of a command.
func (p *Partner) items(c *Call) *Error {
	value, has := c.Message["dataItems"]
	items, is := value.([]any)
	if p.wrong(value != nil && !is, "type of dataItems") || p.wrong(!has && !c.Version.V2, "no dataItems") {
		return p.invalid("dataItems")
	}
	for _, item := range items {
		object, is := item.(Object)
		_, text := object["text"].(string)
		_, data := object["data"].(Object)
		uri, hasURI := object["uri"].(string)
		content, hasBytes := object["bytes"].(string)
		_, encoded := base64.StdEncoding.DecodeString(content)
		_, form := url.Parse(uri)
		kind := object["type"]
		known := kind == "text" || kind == "file" || kind == "data"
		if p.wrong(!is, "item") || p.wrong(!known, "type of item") || p.wrong(kind == "text" && !text, "text") ||
			p.wrong(kind == "data" && !data, "data") || p.wrong(kind == "file" && hasURI && hasBytes, "uri and bytes") ||
			p.wrong(kind == "file" && !hasURI && !hasBytes, "neither uri nor bytes") ||
			p.wrong(kind == "file" && (encoded != nil || form != nil), "base64") {
			return p.invalid("dataItems")
		}
	}
	return nil
}
