// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// request makes the request of a step.
func (t *scenario) request(s *acts.Step, v verifier) (wire.Request, *outcome, error) {
	if s.Raw != nil {
		r, err := t.raw(s.Raw, v)
		return r, &outcome{raw: true}, err
	}
	p := t.scope.protocol
	operation, known := p.Operations[s.Operation]
	if !known {
		return wire.Request{}, nil, &skipped{fmt.Sprintf("%s has no operation %s", p.ID, s.Operation)}
	}
	address, err := t.runner.url(operation.URL)
	if err != nil {
		return wire.Request{}, nil, &skipped{err.Error()}
	}
	o := &outcome{path: "result", form: p.Events}
	if operation.Root != nil {
		o.path = *operation.Root
	}
	r := wire.Request{Method: "POST", URL: address, Headers: map[string]string{"Accept": "application/json"}}
	if operation.Stream {
		r.Headers["Accept"] = "text/event-stream, application/json"
	}
	for _, headers := range []map[string]string{p.Headers, t.runner.profile.Headers} {
		maps.Copy(r.Headers, headers)
	}
	if operation.HTTP != "" && operation.Below == "" {
		r.Method = operation.HTTP
		return r, o, nil
	}
	named, err := names(s.Params, v.vars)
	if err != nil {
		return r, nil, err
	}
	if s.Command != nil {
		if operation.Command == "" {
			return r, nil, fmt.Errorf("the operation %s of %s has no command", s.Operation, p.ID)
		}
		named = acts.Merge(map[string]any{operation.Command: s.Command}, named)
	}
	merged := acts.Merge(operation.Params, named)
	for _, name := range operation.Inline {
		inner, is := merged[name].(map[string]any)
		if delete(merged, name); !is {
			continue
		}
		maps.Copy(merged, inner)
	}
	params, err := v.vars.Resolve(merged)
	if err != nil {
		return r, nil, err
	}
	if operation.Below != "" {
		object, _ := params.(map[string]any)
		err := rest(&r, operation, object)
		return r, o, err
	}
	envelope, err := v.vars.Resolve(acts.Merge(map[string]any{"jsonrpc": "2.0", "id": "rpc-" + uuid(),
		"method": operation.Method, "params": params}, s.Envelope))
	if err != nil {
		return r, nil, err
	}
	r.Headers["Content-Type"] = "application/json"
	if r.Body, err = json.Marshal(envelope); err != nil {
		return r, nil, err
	}
	return r, o, setHeaders(r.Headers, s.Headers, v)
}

// rest puts params into the path, and the query or the body, of a request without JSON-RPC.
func rest(r *wire.Request, operation acts.Operation, params map[string]any) error {
	r.Method = operation.HTTP
	path := operation.Below
	query := make(url.Values)
	for name, value := range params {
		text, isText := value.(string)
		if !isText {
			text = brief(value)
		}
		if in := "{" + name + "}"; strings.Contains(path, in) {
			path = strings.ReplaceAll(path, in, url.PathEscape(text))
			delete(params, name)
		} else {
			query.Set(name, text)
		}
	}
	r.URL = strings.TrimSuffix(r.URL, "/") + path
	if r.Method != "POST" {
		if len(query) > 0 {
			r.URL += "?" + query.Encode()
		}
		return nil
	}
	r.Headers["Content-Type"] = "application/json"
	var err error
	r.Body, err = json.Marshal(params)
	return err
}

// names resolves references in names of members, and leaves the values.
func names(params map[string]any, vars acts.Vars) (map[string]any, error) {
	resolved := make(map[string]any, len(params))
	for name, value := range params {
		key, err := vars.Text(name)
		if err != nil {
			return nil, err
		}
		if object, is := value.(map[string]any); is {
			if value, err = names(object, vars); err != nil {
				return nil, err
			}
		}
		resolved[key] = value
	}
	return resolved, nil
}

func (t *scenario) raw(raw *acts.Raw, v verifier) (wire.Request, error) {
	r := wire.Request{Method: raw.Method, Headers: make(map[string]string)}
	path, err := v.vars.Text(raw.Path)
	if err != nil {
		return r, err
	}
	if r.URL, err = t.runner.rawURL(path); err != nil {
		return r, err
	}
	maps.Copy(r.Headers, t.runner.profile.Headers)
	switch {
	case raw.BodyBase64 != "":
		if r.Body, err = base64.StdEncoding.DecodeString(raw.BodyBase64); err != nil {
			return r, fmt.Errorf("body_base64: %w", err)
		}
	case raw.BodyRaw != "":
		text, err := v.vars.Text(raw.BodyRaw)
		if err != nil {
			return r, err
		}
		if again := raw.Repeat; again != nil {
			if len(again.Of)*max(again.Times, 0) > maxRepeated {
				return r, fmt.Errorf("repeat makes more than %d bytes", maxRepeated)
			}
			text = strings.ReplaceAll(text, "{{$repeat}}", strings.Repeat(again.Of, max(again.Times, 0)))
		}
		r.Body = []byte(text)
	case raw.Body != nil:
		body, err := v.vars.Resolve(raw.Body)
		if err != nil {
			return r, err
		}
		if r.Body, err = json.Marshal(body); err != nil {
			return r, err
		}
	}
	if r.Body != nil {
		r.Headers["Content-Type"] = "application/json"
	}
	return r, setHeaders(r.Headers, raw.Headers, v)
}

// setHeaders puts headers in place of those with the same names.
func setHeaders(headers, over map[string]string, v verifier) (err error) {
	for name, value := range over {
		for other := range headers {
			if strings.EqualFold(name, other) {
				delete(headers, other)
			}
		}
		if value == acts.Absent {
			continue
		}
		if headers[name], err = v.vars.Text(value); err != nil {
			return err
		}
	}
	return nil
}
