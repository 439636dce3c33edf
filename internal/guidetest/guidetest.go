// SPDX-License-Identifier: Apache-2.0

// Package guidetest holds the transcripts in the guides to the gateway's behaviour.
package guidetest

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Replay has play carry out the commands of a transcript, a block of code of a language in a page, and return the
// transcript as it is now. If the two differ, the test fails; with update, the page is changed instead.
func Replay(t *testing.T, page, language string, update bool, play func(transcript string) string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```" + regexp.QuoteMeta(language) + "\n(.*?)```").FindSubmatchIndex(text)
	if found == nil {
		t.Fatalf("%s has no transcript", page)
	}
	transcript := string(text[found[2]:found[3]])
	now := play(transcript)
	if update {
		text = []byte(string(text[:found[2]]) + now + string(text[found[3]:]))
		if err := os.WriteFile(page, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(transcript, now); diff != "" {
		t.Errorf("the transcript of the guide (-page +gateway):\n%s", diff)
	}
}
