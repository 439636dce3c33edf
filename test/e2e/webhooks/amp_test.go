// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// TestAMP: the heartbeat of a Partner is there as soon as it serves, calls are in the records, and those that were
// refused are signed. Nothing of a message is in them.
func TestAMP(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.New(t)
	pki := site.Certificates(t)
	dir := filepath.Join(s.Dir, "amp")
	s.Env = append(s.Env, "AMP_LOG_DIR="+dir)
	aic := string(pki.Server.AIC)
	s.Start(site.Config{
		Store: "store memory\n\t\tamp {\n\t\t\trecords heartbeat access audit\n\t\t\tsign " + pki.Server.Cert + " " +
			pki.Server.Key + "\n\t\t}",
		Handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\taic " + aic + "\n\t}",
	})
	beats := ampRecords(s, "heartbeat", "aic", aic)
	if len(beats) != 1 || beats[0].Get("logType").Str != "heartbeat" || !beats[0].Get("body.uptimeSeconds").Exists() {
		t.Errorf("the heartbeats are %v", beats)
	}
	l := site.LeaderOf(t, s.URL())
	l.Start("task-1", "a secret word")
	access := ampRecords(s, "access", "correlationId", "task-1")
	one := access[len(access)-1]
	if one.Get("body.caller.aic").Str != string(pki.Leader.AIC) || one.Get("body.request.method").Str != "start" ||
		one.Get("body.caller.ip").Str != "127.0.0.1" || one.Get("body.error").Exists() {
		t.Errorf("a record of access is %v", one)
	}
	for _, r := range ampRecords(s, "audit", "correlationId", "task-1") {
		if r.Get("integrity.alg").Str == "" || r.Get("integrity.kid").Str == "" || r.Get("integrity.sig").Str == "" ||
			r.Get("body.actor.id").Str != string(pki.Leader.AIC) {
			t.Errorf("a record of audit is %v", r)
		}
	}
	for _, kind := range []string{"access", "audit"} {
		content, err := os.ReadFile(filepath.Join(dir, "amp_"+kind+"_aip-gateway.jsonl"))
		if err != nil || strings.Contains(string(content), "secret word") {
			t.Errorf("%s: %v, or what a Leader says is in it", kind, err)
		}
	}
}

// ampRecords returns the records of a type, as soon as one of them has a member with a value.
func ampRecords(s *site.Site, kind, path, value string) (all []gjson.Result) {
	s.T.Helper()
	site.Eventually(s.T, "a record of "+kind+" with "+path+" "+value, func() bool {
		content, _ := os.ReadFile(filepath.Join(s.Dir, "amp", "amp_"+kind+"_aip-gateway.jsonl"))
		all = nil
		found := false
		for line := range strings.Lines(string(content)) {
			if !strings.HasSuffix(line, "\n") {
				break // it is being written
			}
			all = append(all, gjson.Parse(line))
			found = found || gjson.Get(line, path).String() == value
		}
		return found
	})
	return all
}
