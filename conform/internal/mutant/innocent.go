// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// Innocents returns differences that no check may fail.
func Innocents() []Mutant { return innocents }

var innocents = []Mutant{
	{"the members of objects in another order", "", everywhere(func(b []byte) []byte { return reorder(b) })},
	{"white space between the members", "", everywhere(spaced)},
	{"more members in each answer", "", envelope(put("x", "extension"))},
	{"more members in each task", "", result(put(object{"of": []any{1}}, "extension"))},
	{"more members in each status", "", changed("", put(1, "extension"))},
	{"more members in each product", "", product(put("x", "extension"))},
	{"more members in each data item", "", item("text", put(object{"language": "en"}, "metadata"))},
	{"null in members that are not needed", "", result(func(o object) {
		o["groupId"], o["mentions"] = nil, nil
		if s, is := o["status"].(object); is && s["dataItems"] == nil {
			s["dataItems"] = nil
		}
	})},
	{"null as error beside a result", "", envelope(func(o object) {
		if o["result"] != nil {
			o["error"] = nil
		}
	})},
	{"no products in a task that has none", "", result(func(o object) {
		if all, is := o["products"].([]any); is && len(all) == 0 {
			delete(o, "products")
		}
	})},
	{"null as products in a task that has none", "", result(func(o object) {
		if all, is := o["products"].([]any); is && len(all) == 0 {
			o["products"] = nil
		}
	})},
	{"an empty list of data items in each status", "", result(func(o object) {
		if s, is := o["status"].(object); is && s["dataItems"] == nil {
			s["dataItems"] = []any{}
		}
	})},
	{"a senderId in each task", "", func(p *partner.Partner) {
		p.Result = func(_ *partner.Task, o object) { o["senderId"] = p.AIC }
	}},
	{"numbers of events with gaps", "", event(func(e *partner.Event) { e.Seq = e.Seq.(int)*7 - 3 })},
	{"numbers of events from 0", "", event(func(e *partner.Event) { e.Seq = e.Seq.(int) - 1 })},
	{"numbers of events from a million", "", event(func(e *partner.Event) { e.Seq = e.Seq.(int) + 1_000_000 })},
	{"other ids of products", "", product(func(o object) { o["id"] = fmt.Sprintf("urn:product:%v/ü", o["id"]) })},
	{"no names of products", "", product(func(o object) {
		delete(o, "name")
		delete(o, "description")
	})},
	{"times in UTC", "", changed("", shift(func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }))},
	{"times with nine digits", "", changed("", shift(func(t time.Time) string {
		return t.UTC().Format("2006-01-02T15:04:05.000000000Z")
	}))},
	{"times in another zone", "", changed("", shift(func(t time.Time) string {
		return t.In(time.FixedZone("", -5*60*60)).Format(time.RFC3339Nano)
	}))},
	{"SSE without a space behind data:", "", frame(func(b []byte) []byte {
		return bytes.Replace(b, []byte(": "), []byte(":"), 1)
	})},
	{"SSE with CR LF", "", frame(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) })},
	{"SSE with comments", "", frame(func(b []byte) []byte { return append([]byte(": ping\n\n"), b...) })},
	{"SSE with names and ids", "", frame(func(b []byte) []byte {
		return append([]byte("event: message\nid: 7\n"), b...)
	})},
	{"SSE with a time to wait", "", frame(func(b []byte) []byte { return append([]byte("retry: 1000\n"), b...) })},
	{"SSE in several lines", "", frame(func(b []byte) []byte {
		var lines bytes.Buffer
		if json.Indent(&lines, bytes.TrimSpace(b[len("data: "):]), "", " ") != nil {
			return b
		}
		return []byte("data: " + strings.ReplaceAll(lines.String(), "\n", "\ndata: ") + "\n\n")
	})},
	{"SSE with a charset", "", func(p *partner.Partner) {
		p.HTTP = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/stream") && strings.Contains(r.Header.Get("Accept"), "event-stream") {
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			}
			return false
		}
		p.Body = func(c *partner.Call, b []byte) []byte {
			c.Header.Set("Content-Type", "application/json")
			return b
		}
	}},
	{"JSON with a charset", "", func(p *partner.Partner) {
		p.Body = func(c *partner.Call, b []byte) []byte {
			c.Header.Set("Content-Type", "application/json; charset=utf-8")
			return b
		}
	}},
	{"letters as escapes", "", everywhere(escaped)},
	{"details with each error", "", failed(func(o object) {
		data, _ := o["data"].(object)
		o["data"] = with(data, "details", []any{"x"})
	})},
	{"other words in errors", "", failed(put("没有", "message"))},
	{"no id, no role and no time of a message are needed", "", accepts("id of message", "no senderRole", "no sentAt")},
	{"a message whose id comes again is executed again", "", accepts("second message")},
	{"a clock that is ten minutes behind", "", func(p *partner.Partner) {
		p.Now = func() time.Time { return time.Now().Add(-10 * time.Minute) }
	}},
	{"other headers", "", func(p *partner.Partner) {
		p.HTTP = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Server", "other/1")
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Request-Id", "1")
			return false
		}
	}},
}

// everywhere changes the bytes of answers and of events, as long as they mean the same.
func everywhere(change func([]byte) []byte) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Body = func(_ *partner.Call, b []byte) []byte { return change(b) }
		p.Frame = func(_ *partner.Call, _ *partner.Event, b []byte) []byte {
			changed := change(bytes.TrimSpace(b[len("data: "):]))
			return append(append([]byte("data: "), bytes.ReplaceAll(changed, []byte("\n"), []byte(" "))...), "\n\n"...)
		}
	}
}

// reorder writes the members of the outermost object backwards.
func reorder(b []byte) []byte {
	var o map[string]json.RawMessage
	if json.Unmarshal(b, &o) != nil {
		return b
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for _, name := range []string{"result", "error", "jsonrpc", "id"} {
		if v, has := o[name]; has {
			if out.Len() > 1 {
				out.WriteByte(',')
			}
			fmt.Fprintf(&out, "%q:%s", name, v)
		}
	}
	out.WriteByte('}')
	return out.Bytes()
}

func spaced(b []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, b, " ", "\t") != nil {
		return b
	}
	return append(out.Bytes(), '\n')
}

// escaped writes some letters of names and texts as escapes.
func escaped(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte(`"status"`), []byte(`"\u0073tatus"`))
	b = bytes.ReplaceAll(b, []byte(`"jsonrpc"`), []byte(`"\u006asonrpc"`))
	return bytes.ReplaceAll(b, []byte(`"eventSeq"`), []byte(`"event\u0053eq"`))
}

// shift writes the time of a status otherwise.
func shift(format func(time.Time) string) func(object) {
	return func(status object) {
		if at, err := time.Parse(time.RFC3339Nano, status["stateChangedAt"].(string)); err == nil {
			status["stateChangedAt"] = format(at)
		}
	}
}
