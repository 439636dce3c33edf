// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// object is the params of a command.
type object map[string]any

// Page is a page of a browser, and a record of its events.
type Page struct {
	t       testing.TB
	conn    *connection
	session string

	mu       sync.Mutex
	requests []string
	problems []string
}

// Open opens an empty page with a size.
func (b *Browser) Open(width, height int) *Page {
	b.t.Helper()
	p := &Page{t: b.t, conn: b.conn}
	var target struct{ TargetID string }
	p.browser("Target.createTarget", object{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	p.browser("Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached)
	p.session = attached.SessionID
	b.conn.mu.Lock()
	b.conn.pages[p.session] = p
	b.conn.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log", "Audits"} {
		p.do(domain+".enable", nil, nil)
	}
	p.Resize(width, height)
	return p
}

// event takes an event of the page.
func (p *Page) event(method string, params json.RawMessage) {
	var e struct {
		Request struct{ URL string }
		Type    string
		Message string
		Details struct {
			Text      string
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
		Entry struct{ Level, Source, Text, URL string }
		Issue struct {
			Code    string
			Details json.RawMessage
		}
		Args []struct{ Value any }
	}
	if err := json.Unmarshal(params, &e); err != nil && method != "Network.requestWillBeSent" {
		return // not a recorded event
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch method {
	case "Network.requestWillBeSent":
		p.requests = append(p.requests, e.Request.URL)
	case "Page.javascriptDialogOpening":
		p.problems = append(p.problems, "a dialog: "+e.Message)
	case "Runtime.exceptionThrown":
		p.problems = append(p.problems, "an exception: "+e.Details.Text+" "+e.Details.Exception.Description)
	case "Runtime.consoleAPICalled":
		p.problems = append(p.problems, fmt.Sprintf("console.%s: %v", e.Type, e.Args))
	case "Log.entryAdded":
		p.problems = append(p.problems, e.Entry.Level+": "+e.Entry.Text+" "+e.Entry.URL)
	case "Audits.issueAdded":
		p.problems = append(p.problems, fmt.Sprintf("issue: %s %s", e.Issue.Code, e.Issue.Details))
	}
}

func (p *Page) browser(method string, params, into any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.conn.call(ctx, "", method, params, into); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Page) do(method string, params, into any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.conn.call(ctx, p.session, method, params, into); err != nil {
		p.t.Fatal(err)
	}
}

// Go opens a URL.
func (p *Page) Go(url string) {
	p.t.Helper()
	var res struct{ ErrorText string }
	p.do("Page.navigate", object{"url": url}, &res)
	if res.ErrorText != "" {
		p.t.Fatalf("%s: %s", url, res.ErrorText)
	}
}

// Eval evaluates JavaScript on the page, awaits it if it is a promise, and decodes its value unless into is nil.
func (p *Page) Eval(expression string, into any) {
	p.t.Helper()
	value, exception := p.evaluate(expression)
	if exception != "" {
		p.t.Fatalf("%s: %s", expression, exception)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(value, into); err != nil {
		p.t.Fatalf("%s is %s: %v", expression, value, err)
	}
}

// evaluate evaluates JavaScript as if a user had caused it, and returns its value, or the exception it has thrown.
func (p *Page) evaluate(expression string) (value json.RawMessage, exception string) {
	p.t.Helper()
	var res struct {
		Result  struct{ Value json.RawMessage }
		Details *struct {
			Text      string
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	p.do("Runtime.evaluate", object{
		"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true,
	}, &res)
	if res.Details != nil {
		return nil, res.Details.Text + " " + res.Details.Exception.Description
	}
	return res.Result.Value, ""
}

// Wait waits until a JavaScript expression is true. An exception counts as false, since a page about to be replaced by
// another one lacks elements for a moment.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for {
		value, exception := p.evaluate("!!(" + expression + ")")
		if string(value) == "true" {
			return
		}
		if <-tick.C; time.Now().After(deadline) {
			p.t.Fatalf("the page never has %s; %s it shows\n%s", expression, exception, p.Text())
		}
	}
}

// WaitText waits until the page shows a text.
func (p *Page) WaitText(text string) {
	p.t.Helper()
	p.Wait("document.body?.innerText.includes(" + Quote(text) + ")")
}

// Text returns the text shown by the page.
func (p *Page) Text() (text string) {
	p.t.Helper()
	p.Eval("document.body?.innerText ?? \"\"", &text)
	return text
}

// Quote returns a string as JavaScript writes it.
func Quote(text string) string {
	quoted, _ := json.Marshal(text) // never fails
	return string(quoted)
}

// Click clicks the first element of a selector, once it is shown and enabled.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.click("document.querySelector(" + Quote(selector) + ")")
}

// ClickText clicks the first element of a selector with a text, once it is shown and enabled.
func (p *Page) ClickText(selector, text string) {
	p.t.Helper()
	p.click("[...document.querySelectorAll(" + Quote(selector) + ")].find((e) => e.textContent === " + Quote(text) + ")")
}

// click clicks the element of an expression. It is found and clicked at once: the page may be replaced at any time.
func (p *Page) click(expression string) {
	p.t.Helper()
	p.Wait("((e) => e?.checkVisibility() && !e.disabled && (e.click(), true))(" + expression + ")")
}

// codes are the keys with names.
var codes = map[string]int{"Enter": 13, "Escape": 27, "Tab": 9, "Backspace": 8}

// Press presses keys, one after another: each is a character, or a name such as Enter.
func (p *Page) Press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		params := object{"type": "keyDown", "key": key}
		switch code, named := codes[key]; {
		case key == "Enter":
			params["text"], params["windowsVirtualKeyCode"], params["code"] = "\r", code, key
		case named:
			params["windowsVirtualKeyCode"], params["code"] = code, key
		default:
			params["text"] = key
		}
		p.do("Input.dispatchKeyEvent", params, nil)
		p.do("Input.dispatchKeyEvent", object{"type": "keyUp", "key": key}, nil)
	}
}

// Type types a text into the element with the focus.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.do("Input.insertText", object{"text": text}, nil)
}

// Resize changes the size of the page.
func (p *Page) Resize(width, height int) {
	p.t.Helper()
	p.do("Emulation.setDeviceMetricsOverride",
		object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Prefer sets the color scheme of the system: light or dark.
func (p *Page) Prefer(scheme string) {
	p.t.Helper()
	p.do("Emulation.setEmulatedMedia",
		object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Screenshot returns a picture of the page, as PNG.
func (p *Page) Screenshot() []byte {
	p.t.Helper()
	var res struct{ Data []byte }
	p.do("Page.captureScreenshot", object{"format": "png"}, &res)
	return res.Data
}

// Requests returns the URLs requested by the page.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.requests...)
}

// Problems returns everything absent from a good page: dialogs, exceptions, lines of the console, violations of the
// policy, issues found by the browser. A line with one of the expected parts is left out.
func (p *Page) Problems(expected ...string) (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
next:
	for _, problem := range p.problems {
		for _, part := range expected {
			if strings.Contains(problem, part) {
				continue next
			}
		}
		all = append(all, problem)
	}
	return all
}
