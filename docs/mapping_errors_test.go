// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// kindsHeader is that of the table of all kinds of errors.
var kindsHeader = header("kind", "a2a/1.0", "a2a/1.0-rest", "a2a/1.0-grpc", "when")

// answeredKinds are those in answers to callers; the others fail the task, as the page says.
func answeredKinds() []task.Kind {
	return slices.DeleteFunc(slices.Clone(task.Kinds()), func(k task.Kind) bool {
		return k == task.InvalidAgentResponse || k == task.AgentUnavailable || k == task.AgentTimeout
	})
}

// inCapitals returns a kind as errors name it.
func inCapitals(k task.Kind) string { return strings.ToUpper(strings.ReplaceAll(k.String(), "-", "_")) }

func TestDocsMappingErrors(t *testing.T) {
	answered := func(at int, err error) string {
		body := mappedServers[at].AppendError(nil, jsonrpc.ID("1"), err)
		status := 200
		if s, ok := mappedServers[at].(translate.Statuser); ok {
			status = s.Status(err)
		}
		code, convErr := strconv.Atoi(string(dig(body, "error", "code")))
		if convErr != nil {
			t.Fatalf("%s: %s", mappedServers[at].Name(), body)
		}
		if at == inREST {
			if code != status {
				t.Errorf("%s: the status is %d, and the code %d", mappedServers[at].Name(), status, code)
			}
			cell := strconv.Itoa(status)
			if reason := word(body, "error", "details", "0", "reason"); reason != inCapitals(task.KindOf(err)) {
				cell += " " + quoted(reason)
			}
			return cell
		}
		cell := minus(code)
		if status != 200 {
			cell += fmt.Sprintf(" (%d)", status)
		}
		if typ := word(body, "error", "data", "errorType"); typ != "" {
			cell += "*"
			if want := inCapitals(task.KindOf(err)); typ != want {
				t.Errorf("%s: the errorType is %s, want %s", mappedServers[at].Name(), typ, want)
			}
		}
		return cell
	}
	var want, others [][]string
	for _, kind := range answeredKinds() {
		err := task.Errorf(kind, "x")
		f := func(at int) string { return answered(at, err) }
		aip := f(inAIP)
		switch kind {
		case task.InvitationRejected, task.ConnectionFailed: // of both versions
			aip += ", " + f(inAIP2)
		default:
			aip = alike(t, f, inAIP, inAIP2)
		}
		want = append(want, []string{kind.String(), f(in10), f(inREST)})
		row := []string{kind.String(), aip, f(inLegacy), f(in03)}
		if slices.ContainsFunc(row[1:], func(cell string) bool { return cell != f(in10) }) {
			others = append(others, row)
		}
		for _, number := range []string{"−32007", "−32008", "−32009"} {
			if slices.ContainsFunc(append(row[2:], f(in10)), func(cell string) bool { return strings.HasPrefix(cell, number) }) {
				t.Errorf("%s is %s in %v", kind, number, row)
			}
		}
		a := word(mappedServers[in10].AppendError(nil, jsonrpc.ID("1"), err), "error", "data", "0", "reason")
		b := word(mappedServers[inREST].AppendError(nil, jsonrpc.ID("1"), err), "error", "details", "0", "reason")
		if a != b {
			t.Errorf("%s: the two bindings of 1.0 give different reasons (%s, %s)", kind, a, b)
		}
	}
	mapped(t, kindsHeader, want, 0, 1, 2)
	mapped(t, header("kind", "aip, aip/2", "a2a/legacy", "a2a/0.3"), others)
	for _, row := range tables(pages(t)["docs/mapping.md"], kindsHeader) {
		if row[4] == "" {
			t.Errorf("docs/mapping.md does not explain %s", row[0])
		}
	}

	_, err := mappedServers[in10].Decode(&translate.Request{Request: jsonrpc.Request{Method: "GetTask"}, Version: "2.0"})
	if a, b := answered(in10, err), answered(inREST, err); a != "−32009" || b != "400 `VERSION_NOT_SUPPORTED`" {
		t.Errorf("a version that is not supported is answered as %s and %s", a, b)
	}
}

func TestDocsMappingAgentErrors(t *testing.T) {
	kindOf := func(at int, failure string) (task.Kind, bool) {
		body := `{"jsonrpc":"2.0","id":1,"error":` + failure + `}`
		if at == inREST {
			body = `{"error":` + failure + `}`
		}
		_, err := mappedClients[at].Reply([]byte(body), nil)
		e, ok := errors.AsType[*task.Error](err)
		if !ok {
			t.Fatalf("%s %s: %v", mappedClients[at].Name(), failure, err)
		}
		return e.Kind, e.Kind != task.Internal || !strings.HasPrefix(e.Detail, "the agent reports error")
	}
	var codes []int
	for code := -32768; code <= -31000; code++ {
		codes = append(codes, code)
	}
	for code := 100; code < 600; code++ {
		codes = append(codes, code)
	}
	numbers := make(map[task.Kind]map[string][]string) // by the names of their dialects
	for _, code := range codes {
		names := make(map[task.Kind][]int)
		for at := range mappedClients {
			if kind, known := kindOf(at, fmt.Sprintf(`{"code":%d,"message":""}`, code)); known {
				names[kind] = append(names[kind], at)
			}
		}
		for kind, dialects := range names {
			if numbers[kind] == nil {
				numbers[kind] = make(map[string][]string)
			}
			in := together[mappedNames(dialects...)]
			if in == "" {
				t.Errorf("%d is %s in %s: name these", code, kind, mappedNames(dialects...))
			}
			numbers[kind][in] = append(numbers[kind][in], minus(code))
		}
	}
	reasons := make(map[task.Kind][]string)
	for _, reason := range strings.Fields("PARSE_ERROR INVALID_REQUEST METHOD_NOT_FOUND INVALID_PARAMS INTERNAL_ERROR " +
		"TASK_NOT_FOUND TASK_NOT_CANCELABLE " +
		"PUSH_NOTIFICATION_NOT_SUPPORTED UNSUPPORTED_OPERATION CONTENT_TYPE_NOT_SUPPORTED INVALID_AGENT_RESPONSE " +
		"EXTENDED_AGENT_CARD_NOT_CONFIGURED " +
		"EXTENSION_SUPPORT_REQUIRED VERSION_NOT_SUPPORTED UNAUTHENTICATED ACCESS_TOKEN_INVALID PERMISSION_DENIED " +
		"LIMIT_EXCEEDED AGENT_UNAVAILABLE AGENT_TIMEOUT STORE_UNAVAILABLE") {
		var kinds []task.Kind
		for at, list := range map[int]string{in10: "data", inREST: "details"} {
			kind, _ := kindOf(at, fmt.Sprintf(
				`{"code":-1,"message":"",%q:[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":%q}]}`, list, reason))
			kinds = append(kinds, kind)
		}
		if kinds[0] != kinds[1] {
			t.Errorf("the two bindings of 1.0 take %s for %s and %s", reason, kinds[0], kinds[1])
		}
		reasons[kinds[0]] = append(reasons[kinds[0]], reason)
	}
	var want [][]string
	for _, kind := range task.Kinds() {
		if numbers[kind] == nil && reasons[kind] == nil {
			continue
		}
		var special []string
		for _, in := range slices.Sorted(maps.Keys(numbers[kind])) {
			if in != "all" {
				special = append(special, strings.Join(numbers[kind][in], ", ")+" in "+in)
			}
		}
		want = append(want, []string{kind.String(), strings.Join(numbers[kind]["all"], ", "),
			strings.Join(special, "; "), quoted(reasons[kind]...)})
	}
	mapped(t, header("kind", "all", "some", "reason in 1.0"), want)
}

// together are the names of dialects with the same numbers.
var together = map[string]string{
	mappedNames(inAIP, inAIP2, inLegacy, in03, in10, inREST): "all",
	mappedNames(inAIP, inAIP2):                               "AIP",
	mappedNames(inLegacy, in03, in10, inREST):                "A2A",
	mappedNames(in03, in10, inREST):                          "A2A from 0.3",
	mappedNames(inAIP, inAIP2, in03, in10, inREST):           "AIP and A2A from 0.3",
	mappedNames(in03):                                        "0.3",
	mappedNames(in10, inREST):                                "1.0",
}

// TestDocsMappingHTTP has agents answer with a page in place of JSON.
func TestDocsMappingHTTP(t *testing.T) {
	rows := tables(pages(t)["docs/mapping.md"], header("HTTP", "the task's status says"))
	said := 0
	for _, row := range rows {
		for status := range strings.SplitSeq(row[0], ", ") {
			code, err := strconv.Atoi(strings.Replace(status, "xx", "02", 1))
			if err != nil {
				code = http.StatusTeapot // the others
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
			transport, err := httptransport.New(httptransport.Config{URL: server.URL, Codec: a2a.Legacy()})
			if err != nil {
				t.Fatal(err)
			}
			h := upstream.New(upstream.Config{
				Resolver: upstream.NewEndpoint(a2a.Legacy(), transport), Logger: slog.New(slog.DiscardHandler),
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err = h.Cancel(ctx, &agent.Turn{Ref: agent.Ref{Task: "t"}})
			cancel()
			h.Close()
			server.Close()
			e, ok := errors.AsType[*task.Error](err)
			if !ok || !strings.HasPrefix(e.Detail, row[1]) || !strings.Contains(e.Detail, fmt.Sprintf("(HTTP %d", code)) {
				t.Errorf("docs/mapping.md says of HTTP %s %q, the gateway %v", status, row[1], err)
			}
			said++
		}
	}
	if said < 11 {
		t.Errorf("only %d statuses were found", said)
	}
}
