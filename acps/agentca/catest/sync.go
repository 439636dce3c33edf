// SPDX-License-Identifier: Apache-2.0

package catest

import (
	"fmt"
	"net/http"
	"strconv"
)

// turned answers the requests that wait until an agent is enabled or disabled. ca.mu is held.
func (ca *CA) turned() {
	ca.seq++
	close(ca.news)
	ca.news = make(chan struct{})
}

// sync answers by DSP which agents are active: by all of them, at once or when one was enabled or disabled.
func (ca *CA) sync(w http.ResponseWriter, r *http.Request) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	if r.URL.Path == "/acps-dsp-v2/info" {
		answer(w, http.StatusOK, map[string]any{"retention": map[string]any{"newest_seq": ca.seq}})
		return
	}
	if r.URL.Path == "/acps-dsp-v2/changes" && r.URL.Query().Get("seq") == strconv.Itoa(ca.seq) {
		news := ca.news
		ca.mu.Unlock()
		select {
		case <-news:
		case <-r.Context().Done():
		}
		ca.mu.Lock()
	}
	h := w.Header()
	h.Set("X-Next-Seq", strconv.Itoa(ca.seq))
	h.Set("X-Snapshot-Id", "all")
	h.Set("X-Snapshot-Seq", strconv.Itoa(ca.seq))
	h.Set("X-Snapshot-Chunk-Total", "1")
	for aic, a := range ca.agents {
		fmt.Fprintf(w, `{"seq":%d,"op":"upsert","type":"acs","id":%q,"payload":{"aic":%[2]q,"active":%t}}`+"\n", ca.seq, aic,
			a.Active)
	}
}
