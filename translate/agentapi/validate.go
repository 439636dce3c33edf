// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// mismatch is the error of a member of another type than the schema's, as the framework of the Agent API's server names
// it.
type mismatch string

// The types of the schema.
const (
	noText    mismatch = "string_type"
	noFlag    mismatch = "bool_type"
	noList    mismatch = "list_type"
	noObject  mismatch = "dict_type"
	noInteger mismatch = "int_type"
	noNumber  mismatch = "float_type"
)

// typeSentences are the sentences of the framework for the types.
var typeSentences = map[mismatch]string{
	noText:    "Input should be a valid string",
	noFlag:    "Input should be a valid boolean",
	noList:    "Input should be a valid list",
	noObject:  "Input should be a valid dictionary",
	noInteger: "Input should be a valid integer",
	noNumber:  "Input should be a valid number",
}

// typeKey is the member of an error's data with its mismatch. It is not sent.
const typeKey = "type"

// wrongType is the error of a member of another type. The field is empty for the body.
func wrongType(field string, is mismatch) *task.Error {
	return task.Errorf(task.InvalidRequest, "%s", typeSentences[is]).WithField(field).WithData(typeKey, is)
}

// isType reports whether a member is missing, or of its type; else it is the error of the request.
func (r *request) isType(v gjson.Result, field string, is mismatch) bool {
	ok := false
	switch is {
	case noText:
		ok = v.Type == gjson.String
	case noFlag:
		ok = v.IsBool()
	case noList:
		ok = v.IsArray()
	case noObject:
		ok = v.IsObject()
	case noInteger:
		_, ok = jsonrpc.Int(v)
	case noNumber:
		ok = v.Type == gjson.Number
	}
	if ok = ok || wire.Absent(v); !ok && r.Err == nil {
		r.Err = wrongType(field, is)
	}
	return ok
}

// The server of the Agent API takes some values in another type than the schema's, and so does the gateway.

// asFlag returns a flag written as a string or a number as true or false; others as they are.
func asFlag(v gjson.Result) gjson.Result {
	word := strings.ToLower(v.Str)
	if v.Type == gjson.Number {
		word = v.Raw
	}
	switch word {
	case "true", "t", "yes", "y", "on", "1":
		return gjson.Result{Type: gjson.True, Raw: "true"}
	case "false", "f", "no", "n", "off", "0":
		return gjson.Result{Type: gjson.False, Raw: "false"}
	}
	return v
}

// asNumber returns a number written as a string as a number; others as they are.
func asNumber(v gjson.Result) gjson.Result {
	if v.Type != gjson.String || !json.Valid([]byte(v.Str)) {
		return v
	}
	if n := gjson.Parse(v.Str); n.Type == gjson.Number {
		return n
	}
	return v
}

// asID returns an id written as an integer as a string; others as they are.
func asID(v gjson.Result) gjson.Result {
	if v.Type == gjson.Number && !strings.ContainsAny(v.Raw, ".eE") {
		v.Type, v.Str = gjson.String, v.Raw
	}
	return v
}

// checkTypes checks the types of all members read by the gateway.
func (r *request) checkTypes() {
	r.isType(r.stream, "stream", noFlag)
	r.isType(r.user, "user_id", noText)
	r.isType(r.session, "session_id", noText)
	r.isType(r.id, "id", noText)
	r.isType(r.responseID, "response_id", noText)
	r.isType(r.previous, "previous_response_id", noText)
	r.isType(r.n, "n", noInteger)
	r.isType(r.maxTokens, "max_tokens", noInteger)
	r.isType(r.temperature, "temperature", noNumber)
	r.eachMember(r.input, "input", func(name string, v gjson.Result) {
		switch name {
		case "role", "type":
			r.isType(v, "."+name, noText)
		case "content":
			r.eachMember(v, ".content", func(name string, v gjson.Result) {
				switch name {
				case "type", "text", "refusal":
					r.isType(v, "."+name, noText)
				}
			})
		}
	})
}

// eachMember calls f with each member, but for null, of each object of a list, until an object has an error. An error
// of f has the path behind the object.
func (r *request) eachMember(v gjson.Result, field string, f func(name string, v gjson.Result)) {
	if v.Type == gjson.String { // a text
		return
	}
	if r.isType(v, field, noList); r.Err != nil || wire.Absent(v) {
		return
	}
	i := 0
	jsonrpc.ForEach(v, func(_, entry gjson.Result) bool {
		if entry.IsObject() {
			wire.Members(entry, f)
		} else {
			r.Err = wrongType("", noObject)
		}
		if r.Err != nil {
			r.Err.Field = field + "[" + strconv.Itoa(i) + "]" + r.Err.Field
		}
		i++
		return r.Err == nil && i <= wire.MaxItems
	})
}

// maxAnswers is the largest n.
const maxAnswers = 5

// checkRanges checks the values passed on to the agent, as far as the schema has ranges.
func (r *request) checkRanges() {
	if n, _ := jsonrpc.Int(r.n); !wire.Absent(r.n) && (n < 1 || n > maxAnswers) {
		r.Fail("n", "n must be from 1 to %d", maxAnswers)
	}
}

// checkRole checks the role of a message.
func (r *request) checkRole(role string) {
	if role != "" && !slices.Contains(roles, role) {
		r.Fail(".role", "role must be one of %s", strings.Join(roles, ", "))
	}
}

// CheckContent implements translate.ContentChecker.
func (server) CheckContent(media string) error {
	if !isJSON(media) {
		return wrongType("", noObject)
	}
	return nil
}

// isJSON reports whether a media type is the one of JSON, or none.
func isJSON(media string) bool {
	return media == "" || media == "application/json" ||
		strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}
