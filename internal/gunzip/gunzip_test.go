// SPDX-License-Identifier: Apache-2.0

package gunzip

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTransport: an answer is read as it was before its server has compressed it.
func TestTransport(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Error("compression is asked for")
		}
		switch r.URL.Path {
		case "/plain":
			io.WriteString(w, "plain")
		case "/gzip":
			w.Header().Set("Content-Encoding", "GZIP")
			z := gzip.NewWriter(w)
			io.WriteString(z, "compressed")
			z.Close()
		case "/broken":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "plain")
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: Transport{&http.Transport{DisableCompression: true}}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]string{"/plain": "plain", "/gzip": "compressed", "/broken": ""} {
		res, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if broken := errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF); string(got) != want ||
			broken != (want == "") {
			t.Errorf("%s: %q, %v", path, got, err)
		}
		if res.Header.Get("Content-Encoding") != "" && res.ContentLength >= 0 {
			t.Errorf("%s has the header %v", path, res.Header)
		}
	}
}

// TestReaderFollows: flushed bytes are read before more have come.
func TestReaderFollows(t *testing.T) {
	from, to := io.Pipe()
	defer from.Close()
	z := gzip.NewWriter(to)
	go func() {
		io.WriteString(z, "one")
		z.Flush()
	}()
	buf := make([]byte, 10)
	if n, err := NewReader(from).Read(buf); err != nil || string(buf[:n]) != "one" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if _, err := NewReader(strings.NewReader("")).Read(buf); err != io.EOF {
		t.Errorf("nothing is read as %v", err)
	}
}
