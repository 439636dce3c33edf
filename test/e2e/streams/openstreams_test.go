// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestOpenStreams lists streams over every transport, by the admin API and by caddy aip streams.
func TestOpenStreams(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers aip a2a\n\t}"})
	admin := s.AdminAddress()
	if status, stdout, stderr := s.Caddy("aip", "streams", "--address", admin); status != 0 ||
		stdout != "No such stream is open.\n" {
		t.Errorf("an empty list is %q (%d %s)", stdout, status, stderr)
	}
	l := site.LeaderOf(t, s.URL())
	transports := l.Transports(t)
	for _, version := range []string{"1", "2", "3"} {
		o, _ := l.Open(t, transports[version], site.StreamBody(l.Sender, "start", "h"+version, "ask", ""))
		o.Until("awaiting-input")
	}
	grpc, err := site.GRPCCaller(t, s, devpkitest.KeyPair(t, site.Certificates(t).Leader)).
		SendStreamingMessage(site.Within(t, 2*site.Patience), site.GRPCMessage("slow 60000"))
	site.NoError(t, err)
	sent, err := grpc.Recv()
	site.NoError(t, err)
	again := site.StreamBody(l.Sender, "re-stream", "h2", "", `"commandParams":{"lastEventSeq":1},`)
	over, _ := l.Open(t, transports["2"], again)
	over.Until("awaiting-input")

	first := "HTTP/1.1"
	if runtime.GOOS == "linux" {
		first = "HTTP/1.1, taken over"
	}
	id := sent.GetTask().GetId()
	want := []string{
		"h1 start " + first + " aip", "h2 start HTTP/2.0 aip", "h3 start HTTP/3.0 aip",
		id + " start gRPC a2a/1.0-grpc", "h2 re-stream HTTP/2.0 aip",
	}
	var all []gjson.Result
	site.Eventually(t, "all streams are listed, and have sent all events", func() bool {
		all = s.Listed("streams", url.Values{})
		behind := slices.ContainsFunc(all, func(one gjson.Result) bool { return one.Get("behind").Uint() != 0 })
		return len(all) == len(want) && all[0].Get("transport").String() == first && !behind
	})
	described := func(list []gjson.Result) (got []string) {
		for _, one := range list {
			got = append(got, one.Get("task").String()+" "+one.Get("command").String()+" "+
				one.Get("transport").String()+" "+one.Get("dialect").String())
		}
		return got
	}
	if diff := cmp.Diff(want, described(all)); diff != "" {
		t.Errorf("the streams (-want +got):\n%s", diff)
	}
	for _, one := range all {
		if one.Get("leader").String() != l.Sender || one.Get("user_id").String() != l.Sender ||
			one.Get("partner").String() != "http://"+agent || !strings.Contains(one.Get("address").String(), "127.0.0.1:") ||
			one.Get("since").Time().IsZero() || one.Get("events").Uint() == 0 || !one.Get("behind").Exists() {
			t.Errorf("a stream is %s", one)
		}
	}
	if n, m := all[1].Get("events").Uint(), all[4].Get("events").Uint(); n != m+1 || all[1].Get("last").Uint() != n {
		t.Errorf("two streams of one task have sent %d and %d events", n, m)
	}
	for query, n := range map[string]int{
		"limit=1": 5, "limit=2": 5, "task=h2": 2, "task=h2&limit=1": 2, "task=none": 0,
		"leader=" + l.Sender: 5, "leader=x": 0, "partner=" + url.QueryEscape("http://"+agent): 5, "partner=x": 0,
		"after=" + all[3].Get("number").String(): 1,
	} {
		q, err := url.ParseQuery(query)
		site.NoError(t, err)
		if got := described(s.Listed("streams", q)); len(got) != n {
			t.Errorf("%s: %q", query, got)
		}
	}
	_, list, _ := s.Caddy("aip", "streams", "--task", "h2", "--address", admin)
	row := `h2 +\S+ +\d+ +0 +HTTP/2.0 +aip +127.0.0.1:\d+ +` + l.Sender + ` +` + regexp.QuoteMeta(agent) + `\n`
	if !regexp.MustCompile(`^TASK +SINCE .*\n` + row + row + `$`).MatchString(list) {
		t.Errorf("the list is\n%s", list)
	}
	_, list, _ = s.Caddy("aip", "streams", "--json", "--limit", "2", "--address", admin)
	if got := described(gjson.Get(list, "streams").Array()); len(got) != 2 {
		t.Errorf("two streams in JSON are %q", list)
	}

	for query, want := range map[string]string{
		"?state=working": "use partner, leader,", "?after=x": "must be the number of a stream", "?limit=0": "above 0",
	} {
		if status, body := s.Asked(http.MethodGet, "/aip/streams"+query, ""); status != http.StatusBadRequest ||
			!strings.Contains(string(body), want) {
			t.Errorf("%s is answered with %d %s", query, status, body)
		}
	}
	if status, _ := s.Asked(http.MethodPost, "/aip/streams", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("a POST is answered with %d", status)
	}

	// A stream that has ended is not listed.
	l.Cancel("h2")
	site.Eventually(t, "two streams have ended", func() bool {
		return fmt.Sprint(described(s.Listed("streams", url.Values{}))) ==
			fmt.Sprint([]string{want[0], want[2], want[3]})
	})
}
