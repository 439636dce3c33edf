// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// The most of an answer that does not end, and the pause between two bytes of a trickle.
const (
	mostEndless = 1 << 30
	deepest     = 100_000
	largest     = 64 << 20
	bytePause   = 100 * time.Millisecond
)

// always answers each call in the same way.
func always(answer http.HandlerFunc) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler { return answer }
}

func endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"jsonrpc":"2.0","id":"`)
	flush := http.NewResponseController(w)
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	for n := 0; n < mostEndless && r.Context().Err() == nil; n += len(chunk) {
		if _, err := w.Write(chunk); err != nil || flush.Flush() != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func garbage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	io.WriteString(w, "<!doctype html><title>Welcome</title><p>It works!")
}

func deep(w http.ResponseWriter, r *http.Request) {
	task(w, r, func() {
		io.WriteString(w, `{"type":"data","data":{"deep":`)
		io.WriteString(w, strings.Repeat("[", deepest)+strings.Repeat("]", deepest)+"}}")
	})
}

func huge(w http.ResponseWriter, r *http.Request) {
	task(w, r, func() {
		io.WriteString(w, `{"type":"text","text":"`)
		chunk := bytes.Repeat([]byte("x"), 64<<10)
		for n := 0; n < largest; n += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		io.WriteString(w, `"}`)
	})
}

// task answers with a Task of either version. write writes the data item of its product.
func task(w http.ResponseWriter, r *http.Request, write func()) {
	var request struct {
		ID     json.RawMessage
		Params map[string]struct{ TaskID, SessionID string }
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil || json.Unmarshal(body, &request) != nil {
		http.Error(w, "the request must be one of JSON-RPC", http.StatusBadRequest)
		return
	}
	command, kind := request.Params["message"], "task"
	if second, is := request.Params["command"]; is {
		command, kind = second, "task-result"
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"type":%q,"id":%q,"taskId":%q,"sessionId":%q,"senderId":%q,`+
		`"status":{"state":"awaiting-completion","stateChangedAt":%q},"products":[{"id":"product-1","dataItems":[`,
		request.ID, kind, command.TaskID, command.TaskID, command.SessionID, AIC, time.Now().Format(time.RFC3339))
	write()
	io.WriteString(w, "]}]}}")
}

// flood repeats the first event of a stream for as long as the Leader reads.
func flood(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&flooding{w}, r) })
}

type flooding struct{ http.ResponseWriter }

// Unwrap lets a ResponseController flush.
func (f *flooding) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *flooding) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	if f.Header().Get("Content-Type") != "text/event-stream" {
		return n, err
	}
	for sent := n; err == nil && sent < mostEndless; sent += n {
		n, err = f.ResponseWriter.Write(b)
	}
	return n, err
}

// trickle writes answers byte by byte.
func trickle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&slow{ResponseWriter: w, r: r}, r)
	})
}

type slow struct {
	http.ResponseWriter
	r *http.Request
}

// Unwrap lets a ResponseController flush.
func (s *slow) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *slow) Write(b []byte) (int, error) {
	flush := http.NewResponseController(s.ResponseWriter)
	for i := range b {
		select {
		case <-time.After(bytePause):
		case <-s.r.Context().Done():
			return i, s.r.Context().Err()
		}
		if _, err := s.ResponseWriter.Write(b[i : i+1]); err != nil {
			return i, err
		}
		if err := flush.Flush(); err != nil {
			return i + 1, err
		}
	}
	return len(b), nil
}
