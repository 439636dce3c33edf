// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// seeds adds the bodies of an authority that were captured.
func seeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("testdata/captured/*")
	if err != nil || len(files) < 5 {
		f.Fatalf("there are %d captured bodies: %v", len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
}

// FuzzAuthority reads whatever an authority or a registry may answer.
func FuzzAuthority(f *testing.F) {
	seeds(f)
	f.Add([]byte(`{"type":"urn:acps:error:"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if e, err := ReadEAB(body); err == nil && (e.KeyID == "" || len(e.mac) < minMAC) {
			t.Errorf("an EAB lacks something: %+v", e)
		}
		if p := readProblem(http.StatusBadRequest, http.Header{"Retry-After": {string(body)}}, body); p.Kind == "" ||
			len(p.Detail) > maxDetail+4 || p.Wait < 0 || p.Wait > maxProblemWait {
			t.Errorf("a problem is %+v", p)
		}
		id := identifier{Type: "agent", Value: "1.2.156.3088.1.0001.00001.NENBED.MH2BLU.0VKU", Usage: ServerAuth}
		if o, err := readOrder(body, id); err == nil && (o.Finalize == "" || o.Status == orderValid && o.Certificate == "") {
			t.Errorf("an order lacks something: %+v", o)
		}
		if file, err := readAuthorization(body); err == nil && file != nil && !IsToken(file.Token) {
			t.Errorf("a challenge has the token %q", file.Token)
		}
		if d, err := readDirectory(body); err == nil && d.NewOrder == "" {
			t.Errorf("a directory lacks something: %+v", d)
		}
		if chain, err := readChain(body); err == nil {
			key, _, err := newKey()
			if err != nil {
				t.Fatal(err)
			}
			if checkChain(chain, key, "", ServerAuth, time.Now()) == nil {
				t.Error("a chain with another key is taken")
			}
		}
	})
}

// FuzzRecord reads whatever a storage may have.
func FuzzRecord(f *testing.F) {
	seeds(f)
	f.Add([]byte(`{"certificates":{"serverAuth":{"chain":"x","key":"y","order":{"key":"z"}},"clientAuth":null}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := readRecord(body)
		if err != nil {
			return
		}
		for _, h := range r.Certificates {
			if pair, err := h.pair(); err == nil && pair != nil && pair.Leaf == nil {
				t.Error("a pair has no leaf")
			}
		}
	})
}
