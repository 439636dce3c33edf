// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// TestRepaired: bodies of agents in not quite JSON can be read.
//
// Lenient: half of a surrogate pair
// Lenient: a byte order mark, or a record separator before JSON
// Lenient: NaN, Infinity
func TestRepaired(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"nothing":                   {`{"a":"\ud83d\ude00 NaN \\ud83d \"NaN","b":[-1]}`, ``},
		"a byte order mark":         {"\xef\xbb\xbf{}", `{}`},
		"two byte order marks":      {"\xef\xbb\xbf\xef\xbb\xbf{}", `{}`},
		"a high surrogate":          {`{"a":"x\ud83d"}`, `{"a":"x\ufffd"}`},
		"a high surrogate, inside":  {`{"a\ud83dz":"x\ud83d\n"}`, `{"a\ufffdz":"x\ufffd\n"}`},
		"a low surrogate":           {`{"a":"\ude00x"}`, `{"a":"\ufffdx"}`},
		"two high surrogates":       {`["\ud83d\ud83d\ude00"]`, `["\ufffd\ud83d\ude00"]`},
		"a pair in the wrong order": {`["\ude00\ud83d"]`, `["\ufffd\ufffd"]`},
		"numbers that are none":     {`{"NaN":NaN,"b":[Infinity, -Infinity]}`, `{"NaN":null,"b":[null, null]}`},
		"all of them":               {"\xef\xbb\xbf[NaN,\"\\ud83d\"]", `[null,"\ufffd"]`},
		"no JSON":                   {`"\u12`, ``},
		"a backslash at the end":    {`"\`, ``},
		"nothing at all":            {``, ``},
	} {
		in := []byte(tc.in)
		if got := string(jsonrpc.Repaired(in)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if string(in) != tc.in {
			t.Errorf("%s: the body has changed", name)
		}
	}
}

// FuzzRepaired: JSON is not repaired, and a repaired body is not repaired again.
func FuzzRepaired(f *testing.F) {
	for _, s := range []string{`{"a":"\ud83d"}`, "\xef\xbb\xbf[NaN]", `["\\\"-Infinity"]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		once := jsonrpc.Repaired(body)
		if _, bad := jsonrpc.ParseValue(body, jsonrpc.Limits{}); bad == nil && once != nil {
			t.Errorf("%q is JSON, and became %q", body, once)
		}
		if again := jsonrpc.Repaired(once); again != nil {
			t.Errorf("%q became %q, and then %q", body, once, again)
		}
	})
}
