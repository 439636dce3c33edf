// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// envelopes are deviations of the answers' form.
var envelopes = []Mutant{
	{"no version of JSON-RPC", "5", envelope(del("jsonrpc"))},
	{"version 1.0 of JSON-RPC", "5", envelope(put("1.0", "jsonrpc"))},
	{"a number as version of JSON-RPC", "5", envelope(put(2, "jsonrpc"))},
	{"no id", "5", envelope(del("id"))},
	{"null as id", "5", envelope(put(nil, "id"))},
	{"an id of its own", "5", envelope(put("1", "id"))},
	{"a number in the id becomes a text", "5", envelope(func(o object) {
		if n, is := o["id"].(json.Number); is {
			o["id"] = n.String()
		}
	})},
	{"a text in the id becomes a number", "5", envelope(func(o object) {
		if n, err := strconv.Atoi(fmt.Sprint(o["id"])); err == nil {
			o["id"] = n
		}
	})},
	{"an id in lower case", "5", envelope(func(o object) {
		if s, is := o["id"].(string); is {
			o["id"] = strings.ToLower(s)
		}
	})},
	{"a result and an error", "5", envelope(func(o object) {
		if o["error"] != nil {
			o["result"] = object{}
		}
	})},
	{"an error beside the result", "5", envelope(func(o object) {
		if o["result"] != nil {
			o["error"] = object{"code": 0, "message": "ok"}
		}
	})},
	{"neither a result nor an error", "5", envelope(func(o object) { delete(o, "error") })},
	{"the code of an error as a text", "5", failed(func(o object) { o["code"] = fmt.Sprint(o["code"]) })},
	{"an error without a code", "5", failed(del("code"))},
	{"an error without a message", "5", failed(del("message"))},
	{"a number as message of an error", "5", failed(put(1, "message"))},
	{"a text as error", "5", envelope(func(o object) {
		if o["error"] != nil {
			o["error"] = "it failed"
		}
	})},
	{"an answer of HTML", "5|6.1", func(p *partner.Partner) {
		p.Body = func(c *partner.Call, _ []byte) []byte {
			c.Header.Set("Content-Type", "text/html")
			return []byte("<p>ok</p>")
		}
	}},
	{"the content type text/plain", "5|6.1", func(p *partner.Partner) {
		p.Body = func(c *partner.Call, b []byte) []byte {
			c.Header.Set("Content-Type", "text/plain")
			return b
		}
	}},
	{"an answer in an array", "5|6.1", body(func(b []byte) []byte { return append(append([]byte("["), b...), ']') })},
	{"an answer twice", "5|6.1", body(func(b []byte) []byte { return bytes.Repeat(b, 2) })},
	{"an answer as a text of JSON", "5|6.1", body(func(b []byte) []byte { return []byte(strconv.Quote(string(b))) })},
	{"a large request gets null", "4.5", func(p *partner.Partner) {
		p.Body = func(c *partner.Call, b []byte) []byte {
			if len(c.Body) > 1<<20 {
				return []byte("null")
			}
			return b
		}
	}},
	{"an answer without its end", "5|6.1", body(func(b []byte) []byte { return b[:len(b)-1] })},
	{"an empty answer", "5|6.1", body(func([]byte) []byte { return nil })},
	{"the status 500 of HTTP with a result", "5|6.1", func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			if o["result"] != nil && c.Method == "rpc" {
				c.Status = http.StatusInternalServerError
			}
		}
	}},
	{"a request that is no JSON gets another code", "5", code("ParseError", -32000)},
	{"a request that is no JSON is an internal error", "5", code("ParseError", -32603)},
	{"a request that is none of JSON-RPC gets another code", "5", code("InvalidRequest", -32000)},
	{"an unknown method gets the code of invalid params", "5", code("MethodNotFound", -32602)},
	{"an unknown method is a request that is none", "5", code("MethodNotFound", -32600)},
	{"invalid params are an internal error", "5|4.3|6", code("InvalidParams", -32603)},
	{"invalid params get the code of an unknown task", "5|4.3|6", code("InvalidParams", -32001)},
	{"an unknown task is an internal error", "5|6", code("TaskNotFoundError", -32603)},
	{"an unknown task is invalid params", "5|6", code("TaskNotFoundError", -32602)},
	{"an id that cannot be read is not null", "5", func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			if c.ID == nil && o["error"] != nil {
				o["id"] = "unknown"
			}
		}
	}},
	{"an id that cannot be read is absent", "5", func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			if c.ID == nil && o["error"] != nil {
				delete(o, "id")
			}
		}
	}},
}

// requests are deviations in what the Partner accepts.
var requests = []Mutant{
	{"half a request is executed", "5", accepts("json", "trailing", "no object", "no id", "jsonrpc", "no method", "method",
		"params", "no message")},
	{"bytes behind a request are ignored", "5", accepts("trailing")},
	{"the version of JSON-RPC is not read", "5", accepts("jsonrpc")},
	{"a request without a method is executed", "5", func(p *partner.Partner) {
		accepts("no method", "method")(p)
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == "" {
				c.Method = "rpc"
			}
			return next()
		}
	}},
	{"an unknown method is executed", "5", func(p *partner.Partner) {
		accepts("method")(p)
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if !strings.Contains("rpc stream group notification/", strings.SplitAfter(c.Method, "/")[0]) {
				return object{}, nil
			}
			return next()
		}
	}},
	{"an object as id is accepted", "5", accepts("type of id")},
	{"a text as params is accepted", "5", func(p *partner.Partner) {
		accepts("params")(p)
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Params == nil {
				return object{}, nil
			}
			return next()
		}
	}},
	{"no message is needed", "6.1|5|4.3", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Params["message"] == nil && c.Params["command"] == nil && c.Method == "rpc" {
				return object{}, nil
			}
			return next()
		}
	}},
	{"no taskId is needed", "4.3|6|5", accepts("taskId")},
	{"no senderId is needed", "4.3|6.0", accepts("senderId", "other sender")},
	{"any senderRole is accepted", "4.3", accepts("senderRole")},
	{"a sentAt that is no time is accepted", "4.3", accepts("sentAt")},
	{"an unknown command is answered with the task", "4.3|6.1", accepts("command")},
	{"any type of a message is accepted", "4.3", accepts("type of message")},
	{"dataItems that are no array are accepted", "4.3|4.5", accepts("type of dataItems")},
	{"a data item of an unknown type is accepted", "4.5", accepts("type of item")},
	{"a data item that is no object is accepted", "4.5", accepts("item", "type of item")},
	{"a text item without a text is accepted", "4.5", accepts("text")},
	{"a data item without its data is accepted", "4.5", accepts("data")},
	{"a file with uri and bytes is accepted", "4.5", accepts("uri and bytes")},
	{"a file with neither uri nor bytes is accepted", "4.5", accepts("neither uri nor bytes")},
	{"a file with bytes that are no base64 is accepted", "4.5", accepts("base64")},
	{"commandParams that are no object are accepted", "4.3", accepts("type of commandParams")},
	{"an unknown task is answered with null", "5|6", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			v, failure := next()
			if failure != nil && failure.Name == "TaskNotFoundError" {
				return nil, nil
			}
			return v, failure
		}
	}},
}
