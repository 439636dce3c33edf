// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// serveAUN starts a gateway with an AUN side in front of the sample agent.
func serveAUN(t testing.TB) *site.AUNSite {
	t.Helper()
	_, address := site.SampleAgent(t)
	s := site.NewAUN(t)
	s.Start(s.Config("a2a/legacy http://" + address))
	return s
}

// productTexts returns the texts of the products of a task.
func productTexts(t *task.Task) (all string) {
	for _, p := range t.Products {
		for _, item := range p.DataItems {
			all += item.Text
		}
	}
	return all
}

// assign connects the agent, until the end of the test or stop.
func assign(s *site.AUNSite, a *aunpeer.Assignee) (stop func()) {
	s.T.Helper()
	a.Client = s.Client(site.AUNWorker)
	conn := site.Must(a.Client.Online(s.Soon()))(s.T)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = a.ServeOn(ctx, conn) })
	stop = func() {
		cancel()
		serving.Wait()
	}
	s.T.Cleanup(stop)
	return stop
}

// givenTask waits until an agent is sent a new task with a text, and returns the id by which the agent knows it.
func givenTask(s *site.AUNSite, worker *aunpeer.Conn, text string) (id string) {
	s.T.Helper()
	site.Must(worker.Event(s.Soon(), func(f aunpeer.Frame) bool {
		var t aunpeer.Task
		if json.Unmarshal(f.Params, &t) != nil || f.Method != "event/task.updated" || t.Input.String() != text {
			return false
		}
		if id = t.TaskID; t.Assignee != site.AUNWorker || t.Status != "submitted" {
			s.T.Errorf("the agent is sent %s", f.Params)
		}
		return true
	}))(s.T)
	return id
}

// crash kills the gateway, and starts it again.
func crash(s *site.AUNSite, c site.Config) {
	s.T.Helper()
	s.Kill()
	s.Start(c)
}

// endsWith expects the end of a connection.
func endsWith(s *site.AUNSite, what string, conn *aunpeer.Conn, want int) {
	s.T.Helper()
	if code, reason, err := conn.Closed(s.Soon()); code != want {
		s.T.Errorf("%s: the connection ended with %d %q (%v), want %d", what, code, reason, err, want)
	}
}
