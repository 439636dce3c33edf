// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

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
			return fmt.Sprintf("%d %s", status, quoted(word(body, "error", "details", "0", "reason")))
		}
		cell := minus(code)
		if status != 200 {
			cell += fmt.Sprintf(" (%d)", status)
		}
		if typ := word(body, "error", "data", "errorType"); typ != "" {
			cell += "*"
			if want := strings.ToUpper(strings.ReplaceAll(task.KindOf(err).String(), "-", "_")); typ != want {
				t.Errorf("%s: the errorType is %s, want %s", mappedServers[at].Name(), typ, want)
			}
		}
		return cell
	}
	var want [][]string
	var kinds []string
	for _, kind := range task.Kinds() {
		err := task.Errorf(kind, "x")
		f := func(at int) string { return answered(at, err) }
		aip := f(inAIP)
		switch kind {
		case task.InvitationRejected, task.ConnectionFailed: // of both versions
			aip += ", " + f(inAIP2)
		default:
			aip = alike(t, f, inAIP, inAIP2)
		}
		row := []string{kind.String(), aip, f(inLegacy), f(in03), f(in10), f(inREST)}
		want, kinds = append(want, row), append(kinds, kind.String())
		for _, number := range []string{"−32007", "−32008", "−32009"} {
			if slices.ContainsFunc(row[2:], func(cell string) bool { return strings.HasPrefix(cell, number) }) {
				t.Errorf("%s is %s in %v", kind, number, row)
			}
		}
		if a, b := answered(in10, err), answered(inREST, err); word(
			mappedServers[in10].AppendError(nil, jsonrpc.ID("1"), err),
			"error",
			"data",
			"0",
			"reason",
		) != strings.Trim(
			b[4:],
			"`",
		) {
			t.Errorf("%s: the two bindings of 1.0 give different reasons (%s, %s)", kind, a, b)
		}
	}
	mapped(t, header("kind", "aip, aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0", "a2a/1.0-rest"), want)

	var explained []string
	for _, row := range tables(pages(t)["docs/mapping.md"], "| kind | when |") {
		explained = append(explained, strings.Split(row[0], ", ")...)
	}
	slices.Sort(kinds)
	slices.Sort(explained)
	if diff := cmp.Diff(kinds, explained); diff != "" {
		t.Errorf("docs/mapping.md does not explain every kind (-code +page):\n%s", diff)
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
	var want [][]string
	for _, code := range codes {
		var rows [][]string
		for at := range mappedClients {
			kind, known := kindOf(at, fmt.Sprintf(`{"code":%d,"message":""}`, code))
			if !known {
				continue
			}
			i := slices.IndexFunc(rows, func(row []string) bool { return row[1] == kind.String() })
			if i < 0 {
				i, rows = len(rows), append(rows, []string{minus(code), kind.String(), ""})
			}
			rows[i][2] = strings.TrimPrefix(rows[i][2]+", "+mappedServers[at].Name(), ", ")
		}
		for _, row := range rows {
			if row[2] == mappedNames(inAIP, inAIP2, inLegacy, in03, in10, inREST) {
				row[2] = "all"
			}
		}
		want = append(want, rows...)
	}
	mapped(t, header("agent's code", "kind", "in"), merged(want, 0))

	want = nil
	for _, reason := range strings.Fields("PARSE_ERROR INVALID_REQUEST METHOD_NOT_FOUND INVALID_PARAMS INTERNAL_ERROR " +
		"TASK_NOT_FOUND TASK_NOT_CANCELABLE " +
		"PUSH_NOTIFICATION_NOT_SUPPORTED UNSUPPORTED_OPERATION CONTENT_TYPE_NOT_SUPPORTED INVALID_AGENT_RESPONSE " +
		"EXTENDED_AGENT_CARD_NOT_CONFIGURED " +
		"EXTENSION_SUPPORT_REQUIRED VERSION_NOT_SUPPORTED UNAUTHENTICATED ACCESS_TOKEN_INVALID PERMISSION_DENIED " +
		"LIMIT_EXCEEDED AGENT_UNAVAILABLE AGENT_TIMEOUT STORE_UNAVAILABLE") {
		f := func(at int) string {
			list := `"details"`
			if at == in10 {
				list = `"data"`
			}
			kind, _ := kindOf(
				at,
				fmt.Sprintf(
					`{"code":-1,"message":"",%s:[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":%q}]}`,
					list,
					reason,
				),
			)
			return kind.String()
		}
		kind := alike(t, f, in10, inREST)
		i := slices.IndexFunc(want, func(row []string) bool { return row[1] == kind })
		if i < 0 {
			want = append(want, []string{quoted(reason), kind})
			continue
		}
		want[i][0] += ", " + quoted(reason)
	}
	mapped(t, header("agent's reason", "kind"), want)
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
