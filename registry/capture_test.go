// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// captured returns the answer in a file of testdata: what a registry of ACPs 2.1 has said.
func captured(t testing.TB, name string) (status int, body string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	_, answer, found := strings.Cut(string(text), "\n--------------------\n")
	head, body, _ := strings.Cut(answer, "\n\n")
	line, _, _ := strings.Cut(head, "\n")
	status, err = strconv.Atoi(strings.TrimPrefix(line, "HTTP/1.1 "))
	if err != nil || !found {
		t.Fatalf("%s has no answer", name)
	}
	return status, body
}

func open(t testing.TB, url string) *Client {
	t.Helper()
	c, err := New(Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
