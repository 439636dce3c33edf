// SPDX-License-Identifier: Apache-2.0

package amp

import (
	"bufio"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

const aic = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"

// open returns a Log of some types in a directory of its own.
func open(t *testing.T, c Config, types ...Type) *Log {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	c.Name, c.Types, c.Log = "test", types, slog.New(slog.DiscardHandler)
	if c.Counts == nil {
		c.Counts = new(Counts)
	}
	if c.MaxSize == 0 {
		c.MaxSize = 1 << 20
	}
	return Open(c)
}

// records returns the records in a file.
func records(t *testing.T, name string) (all []Object) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var o Object
		if err := json.Unmarshal([]byte(line), &o); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("the line %q is no record: %v", line, err)
		}
		all = append(all, o)
	}
	return all
}

// TestHeartbeats: the first one comes at once, then one in each interval, while the agent is alive.
func TestHeartbeats(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var alive atomic.Bool
		alive.Store(true)
		l := open(t, Config{Dir: dir}, Heartbeat)
		r := NewReporter(l, []Agent{
			{AIC: aic, Alive: alive.Load}, {AIC: "2", Alive: func() bool { return true }},
		}, 15*time.Second, time.Now().Add(-time.Hour))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		bubble.Pass(time.Second)
		alive.Store(false)
		bubble.Pass(15 * time.Second)
		alive.Store(true)
		bubble.Pass(15 * time.Second)
		cancel()
		<-done
		l.Close()
		var got []string
		for _, o := range records(t, filepath.Join(dir, "amp_heartbeat_test.jsonl")) {
			got = append(got, o["aic"].(string)+" "+o["timestamp"].(string))
			if o["logType"] != "heartbeat" || o["schemaVersion"] != "1.0.0" || len(o["logId"].(string)) != 36 ||
				o["body"].(Object)["uptimeSeconds"].(float64) < 3600 {
				t.Errorf("a heartbeat is %v", o)
			}
		}
		want := []string{
			aic + " 2000-01-01T00:00:00.000Z", "2 2000-01-01T00:00:00.000Z", "2 2000-01-01T00:00:15.000Z",
			aic + " 2000-01-01T00:00:30.000Z", "2 2000-01-01T00:00:30.000Z",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the heartbeats (-want +got):\n%s", diff)
		}
	})
}

func TestMetricsAndAccess(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, Config{Dir: dir, Resource: Object{"service.name": "x"}}, Metrics, Access)
		r := NewReporter(l, []Agent{{AIC: aic, Alive: func() bool { return true },
			Load: func() (int, int, int) { return 3, 1, 8 }}}, time.Minute, time.Now())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		for i := range 100 {
			r.Called(&Call{AIC: aic, Began: time.Now(), Took: time.Duration(i+1) * time.Millisecond, Command: "start",
				Dialect: "aip/2", Caller: "9", Task: "t", Failed: i < 2, Trace: Trace{"a", "b"}})
		}
		r.Called(&Call{AIC: "other"})
		bubble.Pass(2*time.Minute + time.Second)
		cancel()
		<-done
		l.Close()
		measured := records(t, filepath.Join(dir, "amp_metrics_test.jsonl"))
		want := []any{
			Object{"uptimeSeconds": 60.0, "loadMetrics": Object{"activeTasks": 3.0, "queuedTasks": 1.0, "maxActiveTasks": 8.0},
				"windowMetrics": []any{Object{"window": "PT1M", "successRate": 98.0, "requestTotal": 100.0,
					"requestPerSecond": 1.667, "avgLatencyMs": 50.5, "p50LatencyMs": 50.0, "p90LatencyMs": 90.0,
					"p95LatencyMs": 95.0, "p99LatencyMs": 99.0}}},
			Object{"uptimeSeconds": 120.0, "loadMetrics": Object{"activeTasks": 3.0, "queuedTasks": 1.0, "maxActiveTasks": 8.0},
				"windowMetrics": []any{Object{"window": "PT1M", "successRate": 100.0, "requestTotal": 0.0,
					"requestPerSecond": 0.0}}},
		}
		if diff := cmp.Diff(want, []any{measured[0]["body"], measured[1]["body"]}); diff != "" {
			t.Errorf("the metrics (-want +got):\n%s", diff)
		}
		access := records(t, filepath.Join(dir, "amp_access_test.jsonl"))
		if len(access) != 101 {
			t.Fatalf("%d records of access", len(access))
		}
		delete(access[0], "logId")
		if diff := cmp.Diff(Object{
			"schemaVersion": "1.0.0", "timestamp": "2000-01-01T00:00:00.000Z", "aic": aic, "logType": "access",
			"traceId": "a", "spanId": "b", "correlationId": "t", "severityText": "ERROR", "severityNumber": 17.0,
			"resource": Object{"service.name": "x"},
			"body": Object{"durationMs": 1.0, "callee": Object{"aic": aic}, "caller": Object{"aic": "9"},
				"request": Object{"method": "start", "url": "aip/2", "route": "aip/2"}},
		}, access[0]); diff != "" {
			t.Errorf("a record of access (-want +got):\n%s", diff)
		}
	})
}

// verified reports whether the signature of a record is that of a key, as a monitor would check it that knows nothing
// but the line.
func verified(t *testing.T, o Object, n Names, public crypto.PublicKey) bool {
	t.Helper()
	integrity := o["integrity"].(Object)
	delete(o, "integrity")
	covered, encoding := o, base64.RawURLEncoding
	if n == Camel {
		covered, encoding = Object{}, base64.StdEncoding
		for _, name := range []string{"timestamp", "aic", "logId", "traceId", "spanId", "correlationId", "logType", "body"} {
			if v, ok := o[name]; ok {
				covered[name] = v
			}
		}
	}
	// The canonical form of ASCII without <, > and & is that of encoding/json.
	text, err := json.Marshal(covered)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := encoding.DecodeString(integrity["sig"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if integrity["kid"] != "AB12" {
		t.Errorf("the kid is %v", integrity["kid"])
	}
	sum := sha256.Sum256(text)
	switch key := public.(type) {
	case ed25519.PublicKey:
		return integrity["alg"] == "EdDSA" && ed25519.Verify(key, text, sig)
	case *ecdsa.PublicKey:
		return integrity["alg"] == "ES256" && len(sig) == 64 &&
			ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
	case *rsa.PublicKey:
		return integrity["alg"] == "RS256" && rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) == nil
	}
	return false
}

func TestAudit(t *testing.T) {
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	r, _ := rsa.GenerateKey(rand.Reader, 2048)
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(0xab12)}
	if _, err := NewSigner(&tls.Certificate{Leaf: leaf, PrivateKey: p384}); err != ErrKey {
		t.Errorf("a key on P-384: %v", err)
	}
	for _, key := range []crypto.Signer{ed, ec, r} {
		for _, n := range []Names{Camel, Snake} {
			signer, err := NewSigner(&tls.Certificate{Leaf: leaf, PrivateKey: key})
			if err != nil {
				t.Fatal(err)
			}
			dir, counts := t.TempDir(), new(Counts)
			l := open(t, Config{Dir: dir, Names: n, Counts: counts, Signer: func(of string) (*Signer, error) {
				if of != aic {
					return nil, os.ErrNotExist
				}
				return signer, nil
			}}, Audit)
			report := NewReporter(l, nil, time.Minute, time.Now())
			for _, c := range []Call{
				{AIC: aic, Command: "start", Caller: "9", Leader: "9", Task: "t", Address: "192.0.2.1"},
				{AIC: aic, Command: "get", Error: "authorization-failed", Refused: true},
				{AIC: aic, Command: "get"},
				{AIC: "another", Command: "start"},
			} {
				c.Began = time.Now()
				report.Called(&c)
			}
			l.Close()
			got := records(t, filepath.Join(dir, "amp_audit_test.jsonl"))
			if written, lost := counts.Of(Audit); len(got) != 2 || written != 2 || lost != 1 {
				t.Fatalf("%d records, written %d, lost %d", len(got), written, lost)
			}
			for _, o := range got {
				if !verified(t, o, n, key.Public()) {
					t.Errorf("%s %T: the signature is wrong", n, key)
				}
				o["body"].(Object)["target"] = Object{}
			}
			want := Object{"actor": Object{"id": "9", "ip": "192.0.2.1", "name": "9", "type": "service"},
				"action": Object{"name": "task.start", "type": "task", "method": " start"}, "target": Object{},
				"result": Object{"status": "success"}}
			if diff := cmp.Diff(want, got[0]["body"]); diff != "" {
				t.Errorf("a record of audit (-want +got):\n%s", diff)
			}
			if n == Snake && (got[0]["log_type"] != "audit" || got[0]["schema_version"] != "1.0" || got[0]["log_id"] == nil) {
				t.Errorf("in snake case: %v", got[0])
			}
		}
	}
}

// TestRotation: a forwarder that follows the file, as tail -F does, gets each record once, and in order.
func TestRotation(t *testing.T) {
	dir, counts := t.TempDir(), new(Counts)
	name := filepath.Join(dir, "amp_access_test.jsonl")
	l := open(t, Config{Dir: dir, MaxSize: 2000, Keep: 3, Counts: counts}, Access)
	follow := func() *os.File {
		for {
			if f, err := os.Open(name); err == nil {
				return f
			}
		}
	}
	const n = 60
	l.Add(Record{Type: Access, AIC: "0", Body: Object{}})
	f := follow()
	var got []string
	in, line := bufio.NewReader(f), ""
	for i := 1; len(got) < n; {
		part, err := in.ReadString('\n')
		if line += part; err == nil {
			var o Object
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			got, line = append(got, o["aic"].(string)), ""
			if i < n { // the next one, when this one was read
				l.Add(Record{Type: Access, AIC: strings.Repeat("x", i), Body: Object{}})
				i++
			}
			continue
		}
		opened, _ := f.Stat()
		if named, err := os.Stat(name); err == nil && !os.SameFile(opened, named) {
			rest, _ := io.ReadAll(in) // what was added before it was renamed
			if len(rest) > 0 {
				in = bufio.NewReader(io.MultiReader(strings.NewReader(string(rest)), f))
				continue
			}
			f.Close()
			f = follow()
			in = bufio.NewReader(f)
		}
	}
	f.Close()
	l.Close()
	for i, one := range got[1:] {
		if len(one) != i+1 {
			t.Fatalf("record %d has the AIC %s", i+1, one)
		}
	}
	files, _ := filepath.Glob(name + "*")
	if len(files) != 4 {
		t.Errorf("the files are %v", files)
	}
	if written, lost := counts.Of(Access); written != n || lost != 0 {
		t.Errorf("written %d, lost %d", written, lost)
	}
}

// TestFailedWrites: no record waits for a file that cannot be written, and later ones are written when it can.
func TestFailedWrites(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		dir, counts := filepath.Join(t.TempDir(), "missing"), new(Counts)
		l := open(t, Config{Dir: dir, Counts: counts}, Access)
		l.Add(Record{Type: Access, AIC: "lost", Body: Object{}})
		l.Add(Record{Type: Heartbeat}) // is not written
		synctest.Wait()
		if _, lost := counts.Of(Access); lost != 1 {
			t.Errorf("%d were lost, want 1", lost)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "amp_access_test.jsonl")
		if err := os.WriteFile(name, []byte(`{"torn":`), 0o600); err != nil {
			t.Fatal(err)
		}
		l.Add(Record{Type: Access, AIC: "1", Body: Object{}})
		synctest.Wait()
		if written, _ := counts.Of(Access); written != 1 {
			t.Errorf("%d were written, want 1", written)
		}
		if err := os.Rename(name, name+".old"); err != nil { // as logrotate does
			t.Fatal(err)
		}
		l.Add(Record{Type: Access, AIC: "2", Body: Object{}})
		l.Close()
		l.Close()
		l.Add(Record{Type: Access, AIC: "late", Body: Object{}})
		old, err := os.ReadFile(name + ".old")
		if err != nil || !strings.HasPrefix(string(old), "{\"torn\":\n{\"aic\":\"1\"") {
			t.Errorf("the old file has %q", old)
		}
		if got := records(t, name); len(got) != 1 || got[0]["aic"] != "2" {
			t.Errorf("the new file has %v", got)
		}
		if _, lost := counts.Of(Access); lost != 2 {
			t.Errorf("%d were lost", lost)
		}
	})
}

// TestFullQueue: what comes when the queue is full is lost, and the caller does not wait.
func TestFullQueue(t *testing.T) {
	counts, stuck, go1 := new(Counts), make(chan struct{}), make(chan struct{})
	l := open(t, Config{Counts: counts, Signer: func(string) (*Signer, error) {
		close(stuck)
		<-go1
		return nil, os.ErrDeadlineExceeded
	}}, Audit, Access)
	l.Add(Record{Type: Audit, Body: Object{}})
	<-stuck
	for range queued + 3 {
		l.Add(Record{Type: Access, Body: Object{}})
	}
	if _, lost := counts.Of(Access); lost != 3 {
		t.Errorf("%d were lost, want 3", lost)
	}
	close(go1)
	l.Close()
	if written, _ := counts.Of(Access); written != queued {
		t.Errorf("%d were written", written)
	}
}

// TestCanonical has the examples of RFC 8785.
func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{Object{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew", "1": "One", "\U0001f600": "Smiley",
			"\u0080": "Control", "\u00f6": "o"},
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"\u00f6\":\"o\",\"\u20ac\":\"Euro Sign\"," +
				"\"\U0001f600\":\"Smiley\",\"\ufb33\":\"Hebrew\"}"},
		{[]any{333333333.33333329, 1e30, 4.5, 2e-3, 1e-27, 1e21, 123456789012.0, -0.5},
			`[333333333.3333333,1e+30,4.5,0.002,1e-27,1e+21,123456789012,-0.5]`},
		{"\u20ac$\u000f\nA'B\"\\\\\"/<\u2028", "\"\u20ac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/<\u2028\""},
		{Object{"b": []any{true, nil, 7, int64(8)}, "a": Object{}}, `{"a":{},"b":[true,null,7,8]}`},
	} {
		if got := string(appendCanonical(nil, c.v)); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
}

// FuzzCanonical: any JSON stays what it is, in one line, and its canonical form is that of itself.
func FuzzCanonical(f *testing.F) {
	f.Add(`{"b":[1,2.5e-7,"\u2028<"],"a":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		var v, again any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		made := appendCanonical(nil, v)
		if err := json.Unmarshal(made, &again); err != nil {
			t.Fatalf("%s: %v", made, err)
		}
		if diff := cmp.Diff(v, again); diff != "" || strings.Contains(string(made), "\n") {
			t.Errorf("%s became %s", text, made)
		}
		if second := appendCanonical(nil, again); string(second) != string(made) {
			t.Errorf("%s, and then %s", made, second)
		}
	})
}
