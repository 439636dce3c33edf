// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// A caller activates extensions of A2A by a header field, not in the body. They are kept with its message, so that
// every process sending the message to an agent names the same extensions.

// activated is the member of a request's extensions with them. It is no member of any version's params.
const activated = "activatedExtensions"

// Limits of a caller's activated extensions. Extensions beyond them are ignored, as agents ignore unknown ones.
const (
	maxActivated    = 16
	maxActivatedURI = 256
)

// Activate gathers the extensions activated by header fields.
func (r *Request) Activate(fields []string) {
	uris := listed(fields...)
	if uris == "" {
		return
	}
	var members wire.Extensions
	members.Add("uris", gjson.Result{Raw: string(task.AppendString(nil, uris)), Type: gjson.String})
	r.Params.AddObject(activated, &members, "")
}

// listed returns the URIs in header fields as one field lists them; empty for none.
func listed(fields ...string) string {
	var uris []string
	for _, field := range fields {
		for uri := range strings.SplitSeq(field, ",") {
			uri = strings.TrimSpace(uri)
			if isURI(uri) && len(uris) < maxActivated && !slices.Contains(uris, uri) {
				uris = append(uris, uri)
			}
		}
	}
	return strings.Join(uris, ", ")
}

// isURI reports whether a text may be the URI of an extension, in a list in a header field.
func isURI(s string) bool {
	return s != "" && len(s) <= maxActivatedURI && strings.Contains(s, ":") &&
		!strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"<>\^{|}`+"`", c) })
}

// Activated returns the extensions that a caller has activated, as a header field lists them; empty for none. They are
// read as if they came from a header field, because callers of other dialects write extensions of A2A as metadata.
func Activated(extra json.RawMessage) string {
	uris := wire.MemberOf(member(extra, activated), "uris")
	if len(uris) == 0 {
		return ""
	}
	return listed(gjson.ParseBytes(uris).Str)
}
