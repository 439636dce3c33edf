// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// aunName returns the AID of an agent of the matrix.
func aunName(back string) string { return back + "." + site.AUNIssuer }

// aunOption returns the option aun of the matrix, whose files it makes.
func (w *world) aunOption(t *testing.T) string {
	t.Helper()
	s := &site.AUNSite{Site: w.site, PKI: site.Must(site.AUNPKI())(t)}
	s.File("aun.pem", site.Must(site.Must(s.PKI.Issue(site.AUNGateway))(t).PEM())(t))
	s.File("roots.pem", s.PKI.Issuer.ChainPEM())
	return fmt.Sprintf("\n\t\taun {\n\t\t\tcert %[1]s/aun.pem\n\t\t\troots %[1]s/roots.pem\n\t\t}", w.site.Dir)
}

// aunTalker is the AID of an agent that has messages only.
const aunTalker = "talker.aid.test"

// newAUNRecorder starts an agent of AUN with its gateway, and keeps what the gateway of the matrix asks it.
func newAUNRecorder(t *testing.T, agent string) *recorder {
	t.Helper()
	pki := site.Must(site.AUNPKI())(t)
	r := new(recorder)
	far := &aunpeer.Gateway{PKI: pki, ID: site.Must(pki.Issue("auth.aid.test"))(t), Agent: agent,
		Messages: agent == aunTalker, Marks: true}
	far.Fault = func(method string, params json.RawMessage) aunpeer.Fault {
		switch method {
		case "task.create", "task.send_input", "task.cancel", "message.send": // a task.get may follow the event of the end
			about := ""
			for _, one := range far.Tasks() {
				if one.TaskID == gjson.GetBytes(params, "task_id").Str {
					about = one.Input.String()
				}
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.all = append(r.all, &exchange{method: "GET", path: "/aun",
				body: fmt.Appendf(nil, `{"method":%q,"params":%s,"about":%q}`, method, params, about)})
		}
		return aunpeer.None
	}
	far.Open()
	server := httptest.NewServer(far)
	t.Cleanup(func() {
		far.Close()
		server.Close()
	})
	r.url = strings.Replace(server.URL, "http:", "ws:", 1)
	return r
}

// newAssignee returns an agent of AUN that is to connect to the gateway of the matrix, and keeps of which tasks it
// hears. A task is open for it until it hears that the task has ended.
func newAssignee() (*aunpeer.Assignee, *recorder) {
	r := new(recorder)
	return &aunpeer.Assignee{Heard: func(t aunpeer.TaskEvent) {
		body := fmt.Appendf(nil, `{"method":"event/task.updated","params":{"id":%q},"about":%q}`, t.TaskID, t.Input)
		r.mu.Lock()
		defer r.mu.Unlock()
		if t.Status == "canceled" {
			body = fmt.Appendf(nil, `{"method":"task.cancel","params":{"task_id":%q},"about":%q}`, t.TaskID, t.Input)
		}
		for _, e := range r.all {
			if id, _ := e.task(); id == t.TaskID {
				e.open = false
			}
		}
		r.all = append(r.all, &exchange{method: "GET", path: "/aun", body: body, open: !aunpeer.Ended(t.Status)})
	}}, r
}

// assign connects an agent to the gateway of the matrix.
func (w *world) assign(t *testing.T, a *aunpeer.Assignee) {
	t.Helper()
	u, pki := site.Must(url.Parse(w.url))(t), site.Must(site.AUNPKI())(t)
	a.Client = &aunpeer.Client{ID: site.Must(pki.Issue(site.AUNWorker))(t), PKI: pki, HTTP: aunpeer.To(u.Host),
		URL: "ws://" + u.Host + "/aun"}
	conn := site.Must(a.Client.Online(site.Within(t, site.Patience)))(t)
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = a.ServeOn(ctx, conn) }) // it ends with the test
	t.Cleanup(func() {
		stop()
		serving.Wait()
	})
}

// aunDriver is an AUN client at work on one agent.
type aunDriver struct {
	t     *testing.T
	conn  *aunpeer.Conn
	agent string
}

var aunCallers atomic.Int64

func newAUNDriver(t *testing.T, mount string) driver {
	t.Helper()
	u := site.Must(url.Parse(mount))(t)
	pki := site.Must(site.AUNPKI())(t)
	// Each has an AID of its own: the logins of one AID that are under way are bounded.
	id := site.Must(pki.Issue(fmt.Sprintf("caller-%d.aid.test", aunCallers.Add(1))))(t)
	client := &aunpeer.Client{ID: id, PKI: pki, HTTP: aunpeer.To(u.Host), URL: "ws://" + u.Host + "/aun"}
	d := &aunDriver{t: t, agent: aunName(path.Base(u.Path))}
	d.conn = site.Must(client.Online(site.Within(t, site.Patience)))(t)
	t.Cleanup(d.conn.Cut)
	return d
}

// call calls a method that succeeds.
func (d *aunDriver) call(method string, params any) gjson.Result {
	d.t.Helper()
	result, err := d.conn.Call(site.Within(d.t, site.Patience), method, params)
	if err != nil {
		d.t.Fatalf("%s: %v", method, err)
	}
	return gjson.ParseBytes(result)
}

// create creates a task and subscribes to it.
func (d *aunDriver) create(text string) (id string) {
	d.t.Helper()
	id = d.call("task.create", map[string]any{"to": d.agent, "input": aunpeer.Text(text)}).Get("task_id").Str
	d.call("task.subscribe", map[string]any{"task_ids": []string{id}})
	return id
}

// next returns the next event of a task.
func (d *aunDriver) next(id string) view {
	d.t.Helper()
	f, err := d.conn.Event(site.Within(d.t, site.Patience), func(f aunpeer.Frame) bool {
		return gjson.GetBytes(f.Params, "task_id").Str == id
	})
	if err != nil {
		d.t.Fatal(err)
	}
	e := gjson.ParseBytes(f.Params)
	if f.Method == "event/task.artifact" {
		return view{Kind: "piece", ID: id, Holds: aunContent(e.Get("artifact")), adds: e.Get("append").Bool()}
	}
	v := viewOfAUN(e)
	v.Kind, v.all = "status", false
	return v
}

// viewOfAUN reads a task.
func viewOfAUN(v gjson.Result) view {
	t := view{Kind: "task", ID: v.Get("task_id").Str, all: true}
	t.State = strings.ReplaceAll(v.Get("status").Str, "_", "-")
	if m := v.Get("message"); m.Exists() {
		t.Says = aunContent(m)
	}
	for _, a := range v.Get("artifacts").Array() {
		t.Holds += aunContent(a)
	}
	return t
}

// aunContent returns what a content holds.
func aunContent(v gjson.Result) string {
	c := v.Get("content")
	switch v.Get("type").Str {
	case "multipart":
		all := ""
		for _, part := range c.Array() {
			all += aunContent(part)
		}
		return all
	case "json":
		return c.Raw
	}
	_, data, ok := strings.Cut(c.Str, ";base64,")
	if ok && v.Get("type").Str == "file" {
		return data
	}
	return c.Str
}

func (d *aunDriver) send(text, id string) view {
	d.t.Helper()
	if id == "" {
		id = d.create(text)
	} else {
		d.call("task.send_input", map[string]any{"task_id": id, "input": aunpeer.Text(text)})
	}
	for !site.RestsIn(d.next(id).State) {
	}
	return d.get(id)
}

func (d *aunDriver) get(id string) view {
	d.t.Helper()
	return viewOfAUN(d.call("task.get", map[string]any{"task_id": id}))
}

func (d *aunDriver) cancel(id string) view {
	d.t.Helper()
	return viewOfAUN(d.call("task.cancel", map[string]any{"task_id": id}))
}

func (d *aunDriver) finish(string) view { return view{State: "completed"} }

func (d *aunDriver) stream(text string) (events []view) {
	d.t.Helper()
	id := d.create(text)
	for {
		e := d.next(id)
		if events = append(events, e); site.RestsIn(e.State) {
			return events
		}
	}
}

func (d *aunDriver) start(text string) (id string, wait func() string) {
	d.t.Helper()
	id = d.create(text)
	for d.next(id).State != "working" {
	}
	return id, func() string {
		for {
			if e := d.next(id); site.RestsIn(e.State) {
				return e.State
			}
		}
	}
}

// hooked is not called: AUN has no webhooks.
func (d *aunDriver) hooked(string, string, string) view { return view{} }
