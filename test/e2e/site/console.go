// SPDX-License-Identifier: Apache-2.0

package site

import (
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/browser"
)

// WantGoodPage demands that nothing went wrong on a page, and that it asked no other server for anything. A line of the
// console that has one of the expected parts is allowed.
func WantGoodPage(t *testing.T, p *browser.Page, url string, expected ...string) {
	t.Helper()
	for _, problem := range p.Problems(expected...) {
		t.Errorf("on the page: %s", problem)
	}
	var text string
	if p.Eval(`document.body.innerText`, &text); strings.Contains(text, "[object ") {
		t.Errorf("the page shows an object: %s", text)
	}
	origin := url[:strings.Index(url, "/aip/")] + "/"
	for _, request := range p.Requests() {
		if !strings.HasPrefix(request, origin) {
			t.Errorf("the page requested %s", request)
		}
	}
}
