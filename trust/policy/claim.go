// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// claimed holds if a claim of the caller's token has one of a few values, or is a list with one of them. The name of a
// claim in an object is the object's name, a dot, and its own. A claim scope or scp is a list of words.
type claimed struct {
	name   string
	values []string
}

func (h claimed) holds(c *Call) bool {
	claims := c.Peer.Claims
	if claims == nil || !c.Peer.Verified() {
		return false
	}
	v := memberAt(gjson.Parse(claims.JSON), h.name)
	switch {
	case v.Type == gjson.String && (h.name == "scope" || h.name == "scp"):
		for scope := range strings.FieldsSeq(v.Str) {
			if slices.Contains(h.values, scope) {
				return true
			}
		}
		return false
	case v.IsArray():
		found := false
		v.ForEach(func(_, one gjson.Result) bool {
			found = h.is(one)
			return !found
		})
		return found
	}
	return h.is(v)
}

// is reports whether a value is one of those of the condition: a text, or a number, true or false as it is written.
func (h claimed) is(v gjson.Result) bool {
	switch v.Type {
	case gjson.String:
		return slices.Contains(h.values, v.Str)
	case gjson.Number, gjson.True, gjson.False:
		return slices.Contains(h.values, v.Raw)
	}
	return false
}

// memberAt returns the member of an object by its name, or else a member of the object named by the beginning of the
// name.
func memberAt(object gjson.Result, name string) (found gjson.Result) {
	if found = jsonrpc.Member(object, name); found.Exists() || !object.IsObject() {
		return found
	}
	object.ForEach(func(key, v gjson.Result) bool {
		if rest, ok := strings.CutPrefix(name, key.Str+"."); ok && rest != "" && v.IsObject() {
			found = memberAt(v, rest)
		}
		return !found.Exists()
	})
	return found
}
