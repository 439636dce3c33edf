// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct{ body, id, method, params string }{
		"plain": {`{"jsonrpc":"2.0","id":"1","method":"rpc","params":{"a":1}}`, `"1"`, "rpc", `{"a":1}`},
		"spread out": {" {\r\n\t\"jsonrpc\" : \"2.0\" , \"method\":\"m\",\n\"id\" : 1 , \"params\" : [ ] }\n", `1`,
			"m", `[ ]`},
		"no params": {`{"jsonrpc":"2.0","id":1,"method":"m"}`, `1`, "m", ``},
		"null id":   {`{"jsonrpc":"2.0","id":null,"method":"m"}`, `null`, "m", ``},
		"large id": {`{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}`,
			`123456789012345678901234567890`, "m", ``},
		"decimal id":      {`{"jsonrpc":"2.0","id":1.0,"method":"m"}`, `1.0`, "m", ``},
		"exponent id":     {`{"jsonrpc":"2.0","id":-1e+3,"method":"m"}`, `-1e+3`, "m", ``},
		"escaped id":      {`{"jsonrpc":"2.0","id":"\u0041\/\ud83d\ude00","method":"m"}`, `"\u0041\/\ud83d\ude00"`, "m", ``},
		"escaped names":   {`{"\u006asonrpc":"\u0032.0","\u0069d":7,"m\u0065thod":"r\u0070c"}`, `7`, "rpc", ``},
		"unknown members": {`{"x":[{"jsonrpc":1}],"jsonrpc":"2.0","id":1,"method":"m","result":2}`, `1`, "m", ``},
		"same key, other object": {`{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":1,"a":{"id":2},"b":[{"id":3},` +
			`{"id":4}]}}`,
			`1`, "m", `{"id":1,"a":{"id":2},"b":[{"id":3},{"id":4}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := Parse([]byte(tt.body), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got := []string{string(req.ID), req.Method, req.Params.Raw}
			if d := cmp.Diff([]string{tt.id, tt.method, tt.params}, got); d != "" {
				t.Error(d)
			}
			if want := tt.params != ""; req.Params.Exists() != want {
				t.Errorf("params exist: %v, want %v", !want, want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	request := func(params string) string {
		return `{"jsonrpc":"2.0","id":"x1","method":"rpc","params":` + params + `}`
	}
	type want struct {
		Code             int
		ID, Field, Limit string
		Max, Offset      int
	}
	parse := func(offset int) want { return want{Code: ParseError, ID: "null", Offset: offset} }
	invalid := func(id, field string) want { return want{Code: InvalidRequest, ID: id, Field: field} }
	const strAt = len(`{"jsonrpc":"2.0","id":"x1","method":"rpc","params":{"a":`)

	for name, tt := range map[string]struct {
		body string
		want want
	}{
		// -32700
		"empty":                   {``, parse(0)},
		"blank":                   {"  \n", parse(3)},
		"byte order mark":         {"\xef\xbb\xbf" + request(`{}`), parse(0)},
		"UTF-16":                  {"{\x00\"\x00", parse(1)},
		"trailing bytes":          {request(`{}`) + `x`, parse(len(request(`{}`)))},
		"second value":            {request(`{}`) + "\n" + request(`{}`), parse(len(request(`{}`)) + 1)},
		"trailing NUL":            {request(`{}`) + "\x00", parse(len(request(`{}`)))},
		"invalid UTF-8":           {request("{\"a\":\"\xff\"}"), parse(strAt)},
		"invalid UTF-8, long":     {request("{\"a\":\"0123456789abcde\xc3\"}"), parse(strAt)},
		"overlong UTF-8":          {request("{\"a\":\"\xc0\x80\"}"), parse(strAt)},
		"surrogate in UTF-8":      {request("{\"a\":\"\xed\xa0\x80\"}"), parse(strAt)},
		"invalid UTF-8 in a key":  {request("{\"\xff\":1}"), parse(strAt - 4)},
		"lone high surrogate":     {request(`{"a":"\ud800"}`), parse(strAt + 1)},
		"lone low surrogate":      {request(`{"a":"\udc00"}`), parse(strAt + 1)},
		"two high surrogates":     {request(`{"a":"\ud800\ud800"}`), parse(strAt + 1)},
		"high and no low":         {request(`{"a":"\ud800\u0041"}`), parse(strAt + 1)},
		"surrogate in the id":     {`{"jsonrpc":"2.0","id":"\ud800","method":"m"}`, parse(23)},
		"unknown escape":          {request(`{"a":"\x41"}`), parse(strAt + 1)},
		"short escape":            {request(`{"a":"\u12"}`), parse(strAt + 1)},
		"control character":       {request("{\"a\":\"\n\"}"), parse(strAt + 1)},
		"control character, long": {request("{\"a\":\"01234567\x1f\"}"), parse(strAt + 9)},
		"open string":             {`{"a`, parse(3)},
		"open escape":             {`{"a\`, parse(3)},
		"open object":             {`{"a":1`, parse(6)},
		"open array":              {`[1`, parse(2)},
		"no value":                {`{"a":}`, parse(5)},
		"cut off":                 {`{"a":`, parse(5)},
		"no colon":                {`{"a" 1}`, parse(5)},
		"no key":                  {`{1:2}`, parse(1)},
		"comma at the end":        {`{"a":1,}`, parse(7)},
		"comma at an array's end": {`[1,]`, parse(3)},
		"comma only":              {`[,]`, parse(1)},
		"single quotes":           {`{'a':1}`, parse(1)},
		"comment":                 {`{/**/}`, parse(1)},
		"leading zero":            {`{"a":01}`, parse(5)},
		"plus":                    {`{"a":+1}`, parse(5)},
		"point first":             {`{"a":.5}`, parse(5)},
		"point last":              {`{"a":5.}`, parse(5)},
		"no exponent":             {`{"a":5e+}`, parse(5)},
		"minus only":              {`{"a":-}`, parse(5)},
		"NaN":                     {`{"a":NaN}`, parse(5)},
		"nan":                     {`{"a":nan}`, parse(5)},
		"TRUE":                    {`{"a":TRUE}`, parse(5)},
		"truth":                   {`{"a":tru}`, parse(5)},
		"no-break space":          {"{\u00a0}", parse(1)},
		"broken batch":            {`[{"jsonrpc"`, parse(11)},
		"grammar before twice":    {`{"a":1,"a":2`, parse(12)},

		// -32600
		"batch":           {`[` + request(`{}`) + `]`, invalid("null", "")},
		"empty batch":     {`[]`, invalid("null", "")},
		"string":          {`"rpc"`, invalid("null", "")},
		"number":          {`1`, invalid("null", "")},
		"null":            {`null`, invalid("null", "")},
		"no members":      {`{}`, invalid("null", "jsonrpc")},
		"no jsonrpc":      {`{"id":1,"method":"m"}`, invalid("1", "jsonrpc")},
		"jsonrpc 1.0":     {`{"jsonrpc":"1.0","id":1,"method":"m"}`, invalid("1", "jsonrpc")},
		"jsonrpc number":  {`{"jsonrpc":2.0,"id":1,"method":"m"}`, invalid("1", "jsonrpc")},
		"jsonrpc null":    {`{"jsonrpc":null,"id":1,"method":"m"}`, invalid("1", "jsonrpc")},
		"id true":         {`{"jsonrpc":"2.0","id":true,"method":"m"}`, invalid("null", "id")},
		"id false":        {`{"jsonrpc":"2.0","id":false,"method":"m"}`, invalid("null", "id")},
		"id object":       {`{"jsonrpc":"2.0","id":{},"method":"m"}`, invalid("null", "id")},
		"id array":        {`{"jsonrpc":"2.0","id":[1],"method":"m"}`, invalid("null", "id")},
		"no method":       {`{"jsonrpc":"2.0","id":"1"}`, invalid(`"1"`, "method")},
		"method number":   {`{"jsonrpc":"2.0","id":"1","method":1}`, invalid(`"1"`, "method")},
		"method null":     {`{"jsonrpc":"2.0","id":"1","method":null}`, invalid(`"1"`, "method")},
		"capital members": {`{"JSONRPC":"2.0","id":1,"method":"m"}`, invalid("1", "jsonrpc")},
		"member twice":    {`{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}`, invalid("1", "method")},
		"id twice":        {`{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}`, invalid("null", "id")},
		"key twice": {request(`{"message":{"taskId":"a","taskId":"a"}}`),
			invalid(`"x1"`, "params.message.taskId")},
		"key twice, escaped": {request(`{"message":{"taskId":"a","task\u0049d":"a"}}`),
			invalid(`"x1"`, "params.message.taskId")},
		"key twice in an array": {request(`{"a":[[1,"b"],{"c":1},{"c":[0,{"x":"}","x":2}]}]}`),
			invalid(`"x1"`, "params.a[2].c[1].x")},
		"empty key twice": {request(`{"":1,"":2}`), invalid(`"x1"`, "params.")},
		"too deep": {request(strings.Repeat("[", 64) + strings.Repeat("]", 64)),
			want{Code: InvalidRequest, ID: `"x1"`, Limit: "depth", Max: 64}},
		"too deep, endless": {`{"a":` + strings.Repeat("[", 100_000),
			want{Code: InvalidRequest, ID: "null", Limit: "depth", Max: 64}},
		"too large": {request(`{"a":"` + strings.Repeat("a", DefaultBytes) + `"}`),
			want{Code: InvalidRequest, ID: "null", Limit: "bytes", Max: DefaultBytes}},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := Parse([]byte(tt.body), Limits{})
			if err == nil {
				t.Fatalf("parsed as %+v", req)
			}
			got := want{err.Code, string(err.ID), err.Field, err.Limit, err.Max, err.Offset}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("%v\n%s", err, d)
			}
			if err.Detail == "" || !strings.Contains(err.Error(), err.Detail) {
				t.Errorf("no detail in %q", err.Error())
			}
		})
	}
}

// TestCheck is about requests taken by Parse, so that a dialect can report other mistakes first.
func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct{ body, id, field string }{
		"all there":     {`{"jsonrpc":"2.0","id":"1","method":"m","params":{}}`, "", ""},
		"null id":       {`{"jsonrpc":"2.0","id":null,"method":"m","params":[]}`, "", ""},
		"no params":     {`{"jsonrpc":"2.0","id":1,"method":"m"}`, "", ""},
		"no id":         {`{"jsonrpc":"2.0","method":"m","params":"a"}`, "null", "id"},
		"params string": {`{"jsonrpc":"2.0","id":"x1","method":"m","params":"a"}`, `"x1"`, "params"},
		"params null":   {`{"jsonrpc":"2.0","id":"x1","method":"m","params":null}`, `"x1"`, "params"},
		"params number": {`{"jsonrpc":"2.0","id":"x1","method":"m","params":1}`, `"x1"`, "params"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := Parse([]byte(tt.body), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got := []string{"", ""}
			if bad := req.Check(); bad != nil {
				got = []string{string(bad.ID), bad.Field}
				if bad.Code != InvalidRequest || bad.Detail == "" {
					t.Errorf("got %+v", bad)
				}
			}
			if d := cmp.Diff([]string{tt.id, tt.field}, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseValue(t *testing.T) {
	type want struct {
		Raw          string
		Code         int
		Field, Limit string
		Max, Offset  int
	}
	for name, tt := range map[string]struct {
		body string
		want want
	}{
		"object":          {`{"id":1,"a":{"id":1}}`, want{Raw: `{"id":1,"a":{"id":1}}`}},
		"array":           {"\n[1, {}]\t", want{Raw: `[1, {}]`}},
		"string":          {`"a"`, want{Raw: `"a"`}},
		"number":          {`1.0`, want{Raw: `1.0`}},
		"null":            {`null`, want{Raw: `null`}},
		"empty":           {``, want{Code: ParseError}},
		"a member behind": {`{"a":1},"b":2`, want{Code: ParseError, Offset: 7}},
		"a second value":  {`{} {}`, want{Code: ParseError, Offset: 3}},
		"lone surrogate":  {`"\ud800"`, want{Code: ParseError, Offset: 1}},
		"a key twice":     {`[{"a":{"b":1,"b":2}}]`, want{Code: InvalidRequest, Field: "[0].a.b"}},
		"an id twice":     {`{"id":1,"id":2}`, want{Code: InvalidRequest, Field: "id"}},
		"as deep as it is": {strings.Repeat("[", 64) + strings.Repeat("]", 64),
			want{Raw: strings.Repeat("[", 64) + strings.Repeat("]", 64)}},
		"too deep": {strings.Repeat("[", 65) + strings.Repeat("]", 65),
			want{Code: InvalidRequest, Limit: "depth", Max: 64}},
		"too large": {`"` + strings.Repeat("a", DefaultBytes) + `"`, want{Code: InvalidRequest, Limit: "bytes",
			Max: DefaultBytes}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := ParseValue([]byte(tt.body), Limits{})
			got := want{Raw: v.Raw}
			if err != nil {
				got = want{v.Raw, err.Code, err.Field, err.Limit, err.Max, err.Offset}
				if err.ID != nil {
					t.Errorf("it has the id %s", err.ID)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[]}}`)
	if _, err := Parse(body, Limits{Bytes: len(body), Depth: 3}); err != nil {
		t.Errorf("just within the limits: %v", err)
	}
	if _, err := Parse(body, Limits{Bytes: len(body) - 1}); err == nil || err.Limit != "bytes" {
		t.Errorf("one byte too many: %v", err)
	}
	if _, err := Parse(body, Limits{Depth: 2}); err == nil || err.Limit != "depth" {
		t.Errorf("one level too deep: %v", err)
	}
	deep := `{"jsonrpc":"2.0","id":1,"method":"m","params":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`
	if _, err := Parse([]byte(deep), Limits{}); err != nil {
		t.Errorf("the default depth: %v", err)
	}
}

// TestManyKeys has more keys than are compared pair by pair.
func TestManyKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"jsonrpc":"2.0","id":1,"method":"m","params":{`)
	for i := range 100_000 {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	open := b.String()
	if _, err := Parse([]byte(open+`"last":0}}`), Limits{}); err != nil {
		t.Error(err)
	}
	_, err := Parse([]byte(open+`"k\u0037":0}}`), Limits{})
	if err == nil || err.Field != "params.k7" {
		t.Errorf("a key twice among many: %v", err)
	}
}

func TestLongPathIsCut(t *testing.T) {
	name := strings.Repeat("名", 1000)
	_, err := Parse([]byte(`{"`+name+`":1,"`+name+`":2}`), Limits{})
	if err == nil || len(err.Field) > maxPath+len("…") || !strings.HasSuffix(err.Field, "名…") {
		t.Errorf("got %v", err)
	}
}

func TestParseResponse(t *testing.T) {
	type failure struct {
		Code    int64
		Message string
		Data    string
	}
	type response struct {
		ID, Result string
		Failure    *failure
	}
	for name, tt := range map[string]struct {
		body string
		want response
	}{
		"result":      {`{"jsonrpc":"2.0","id":"1","result":{"a":1}}`, response{`"1"`, `{"a":1}`, nil}},
		"null result": {`{"jsonrpc":"2.0","id":1,"result":null}`, response{`1`, `null`, nil}},
		"null error":  {`{"jsonrpc":"2.0","id":1,"result":[],"error":null}`, response{`1`, `[]`, nil}},
		"no id":       {`{"jsonrpc":"2.0","result":1}`, response{``, `1`, nil}},
		"no jsonrpc":  {`{"id":null,"result":1}`, response{`null`, `1`, nil}},
		"error": {`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found","data":{"taskId":"t"}}}`,
			response{`1`, ``, &failure{-32001, "Task not found", `{"taskId":"t"}`}}},
		"error and null result": {`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-1.0,"message":"\u0041"}}`,
			response{`1`, ``, &failure{-1, "A", ``}}},
		"error, nulls": {`{"jsonrpc":null,"id":1,"error":{"code":5,"message":null,"data":null}}`,
			response{`1`, ``, &failure{5, "", ``}}},
		"error and result": {`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":5}}`,
			response{`1`, ``, &failure{5, "", ``}}},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := ParseResponse([]byte(tt.body), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got := response{ID: string(res.ID), Result: res.Result.Raw}
			if f := res.Failure; f != nil {
				got.Failure = &failure{f.Code, f.Message, f.Data.Raw}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseResponseRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		body, field string
		code        int
	}{
		"not JSON":       {`<html>`, "", ParseError},
		"empty":          {``, "", ParseError},
		"array":          {`[]`, "", InvalidRequest},
		"neither":        {`{"jsonrpc":"2.0","id":1}`, "result", InvalidRequest},
		"only null":      {`{"jsonrpc":"2.0","id":1,"error":null}`, "result", InvalidRequest},
		"version":        {`{"jsonrpc":"1.0","id":1,"result":1}`, "jsonrpc", InvalidRequest},
		"id":             {`{"jsonrpc":"2.0","id":{},"result":1}`, "id", InvalidRequest},
		"error string":   {`{"jsonrpc":"2.0","id":1,"error":"boom"}`, "error", InvalidRequest},
		"no code":        {`{"jsonrpc":"2.0","id":1,"error":{"message":"boom"}}`, "error.code", InvalidRequest},
		"code string":    {`{"jsonrpc":"2.0","id":1,"error":{"code":"1"}}`, "error.code", InvalidRequest},
		"message number": {`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":1}}`, "error.message", InvalidRequest},
		"key twice":      {`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":1}}`, "result.a", InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := ParseResponse([]byte(tt.body), Limits{})
			if err == nil {
				t.Fatalf("parsed as %+v", res)
			}
			if err.Field != tt.field || err.Code != tt.code {
				t.Errorf("got %d at %q, want %d at %q", err.Code, err.Field, tt.code, tt.field)
			}
		})
	}
}

func TestAppend(t *testing.T) {
	const prefix = "before "
	for name, tt := range map[string]struct {
		got  []byte
		want string
	}{
		"result": {End(append(BeginResult([]byte(prefix), ID(`1e3`)), `[]`...)), `{"jsonrpc":"2.0","id":1e3,"result":[]}`},
		"request": {End(append(BeginRequest([]byte(prefix), ID(`"a"`), "m\"x"), `{}`...)),
			`{"jsonrpc":"2.0","id":"a","method":"m\"x","params":{}}`},
		"error": {AppendError([]byte(prefix), nil, -32700, "Invalid\n", nil),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Invalid\n"}}`},
		"data": {AppendError([]byte(prefix), ID(`1`), 1, "m", []byte(`{"a":1}`)),
			`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"a":1}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(prefix+tt.want, string(tt.got)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestInt(t *testing.T) {
	for raw, want := range map[string]struct {
		n  int64
		ok bool
	}{
		"0": {0, true}, "-0": {0, true}, "0.0": {0, true}, "0e999999999999999999": {0, true},
		"1": {1, true}, "1.0": {1, true}, "1.00e0": {1, true}, "10e-1": {1, true}, "0.1e1": {1, true},
		"120": {120, true}, "12.5e1": {125, true}, "-30000": {-30000, true}, "1E3": {1000, true}, "1e+3": {1000, true},
		"9007199254740993":    {9007199254740993, true},
		"9223372036854775807": {math.MaxInt64, true},
		"9223372036854775808": {math.MaxInt64, true},
		"1e400":               {math.MaxInt64, true},
		"-1e400":              {-math.MaxInt64, true},
		"1e99999999999999999": {math.MaxInt64, true},
		"1.5":                 {0, false}, "15e-1": {0, false}, "1e-99999999999999999": {0, false}, "0.001": {0, false},
		`"1"`: {0, false}, "true": {0, false}, "null": {0, false}, "": {0, false}, "{}": {0, false},
	} {
		n, ok := Int(gjson.Parse(raw))
		if n != want.n || ok != want.ok {
			t.Errorf("Int(%s) = %d, %v, want %d, %v", raw, n, ok, want.n, want.ok)
		}
	}
}

var seeds = []string{
	`{"jsonrpc":"2.0","id":"1","method":"rpc","params":{"message":{"taskId":"a","dataItems":[{"type":"text",` +
		`"text":"\u00e9\ud83d\ude00 北京"}]}}}`,
	`{"jsonrpc":"2.0","id":-1.5e+10,"method":"m"}`, `{"a":1,"a":2}`, `[[[[]]]]`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}",
	`nul`, `{"id":1}`,
}

// FuzzParse compares Parse with encoding/json: the latter must take everything for JSON that Parse takes for it, and
// must read the same out of it.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := string(body)
		req, perr := Parse(body, Limits{})
		res, rerr := ParseResponse(body, Limits{})
		if string(body) != before {
			t.Fatal("the body has changed")
		}
		if !json.Valid(body) && (perr == nil || rerr == nil) {
			t.Fatal("encoding/json finds this not to be JSON")
		}
		for _, err := range []*Error{perr, rerr} {
			if err != nil && !json.Valid(err.ID) {
				t.Fatalf("the id %q of an error is not JSON", err.ID)
			}
		}
		var want struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  json.RawMessage `json:"params"`
			Result  json.RawMessage `json:"result"`
		}
		if perr == nil {
			// encoding/json matches names in any case, and so may hide a member read by Parse.
			var all map[string]json.RawMessage
			if err := json.Unmarshal(body, &all); err != nil {
				t.Fatal(err)
			}
			want.ID, want.Params = all["id"], all["params"]
			if err := json.Unmarshal(all["method"], &want.Method); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{string(want.ID), want.Method, string(want.Params)},
				[]string{string(req.ID), req.Method, req.Params.Raw}); d != "" {
				t.Fatal(d)
			}
			answer, err := ParseResponse(End(append(BeginResult(nil, req.ID), "{}"...)), Limits{})
			if err != nil || string(answer.ID) != string(req.ID) {
				t.Fatalf("the answer has the id %q, want %q (%v)", answer.ID, req.ID, err)
			}
		}
		if rerr == nil && res.Failure == nil && !json.Valid([]byte(res.Result.Raw)) {
			t.Fatalf("the result %q is not JSON", res.Result.Raw)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for name, body := range map[string]string{
		"start": `{"jsonrpc":"2.0","method":"rpc","id":"1","params":{"message":{"type":"message","id":"msg-5678",` +
			`"sentAt":"2025-09-01T11:58:00+08:00","senderRole":"leader","senderId":"agent-leader-aic","command":"start",` +
			`"dataItems":[{"type":"text","text":"请帮我做一个3天北京文化主体游的行程安排。"}],` +
			`"taskId":"task-1234","sessionId":"session-91011"}}}`,
		"base64": `{"jsonrpc":"2.0","method":"rpc","id":"1","params":{"bytes":"` + strings.Repeat("QUJD", 1<<18) + `"}}`,
	} {
		b.Run(name, func(b *testing.B) {
			body := []byte(body)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(body, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
