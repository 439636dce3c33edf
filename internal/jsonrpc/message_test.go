// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"reflect"
	"testing"
)

// FuzzParseMessage holds ParseMessage to Parse and ParseResponse: a message with a method is read as the one does, and
// all others as the other.
func FuzzParseMessage(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{}}`, `{"jsonrpc":"2.0","method":"a"}`,
		`{"jsonrpc":"2.0","id":"x","result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":1,"method":null,"result":1}`, `[]`, `{`, `{"method":"a","method":"b"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := ParseMessage(body, Limits{})
		request, notRequest := Parse(body, Limits{})
		response, notResponse := ParseResponse(body, Limits{})
		switch {
		case err == nil && m.IsRequest:
			if notRequest != nil || !reflect.DeepEqual(m.Request, request) {
				t.Errorf("read as the request %+v, not %+v (%v)", m.Request, request, notRequest)
			}
		case err == nil:
			if notResponse != nil || !reflect.DeepEqual(m.Response, response) {
				t.Errorf("read as the response %+v, not %+v (%v)", m.Response, response, notResponse)
			}
		case notRequest == nil || notResponse == nil && !m.IsRequest:
			t.Errorf("refused by %v, but it is a request (%v) or a response (%v)", err, notRequest, notResponse)
		}
	})
}
