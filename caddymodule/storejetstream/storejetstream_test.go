// SPDX-License-Identifier: Apache-2.0

package storejetstream

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/replay"
)

// jetStreamOf reads the driver from a Caddyfile, in which DIR is a directory with secrets, and checks it.
func jetStreamOf(t *testing.T, text string) (*Store, error) {
	t.Helper()
	dir := t.TempDir()
	const seed = "SUANQDPB2RUOE4ETUA26CNX7FUKE5ZZKFCQIIW63OX225F2CO7UEXTM7ZY" // of the documentation of NATS
	for name, content := range map[string]string{
		"seed": seed, "password": "hunter2\n",
		"creds": "-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n" +
			"-----BEGIN USER NKEY SEED-----\n" + seed + "\n------END USER NKEY SEED------\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := new(Store)
	p := conftest.Parser(strings.ReplaceAll(text, "DIR", dir))
	if s.Read(p); p.Failed() != nil {
		return nil, p.Failed()
	}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	if err := s.Provision(ctx); err != nil {
		return nil, err
	}
	return s, s.Validate()
}

// TestJetStreamInACaddyfile holds what a configuration sets.
func TestJetStreamInACaddyfile(t *testing.T) {
	t.Setenv("THE_NODE", "east-1")
	t.Setenv("THE_SERVER", "a:8222")
	got, err := jetStreamOf(t, `jetstream nats://a tls://b:4443 {
		user gateway {file.DIR/password}
		tls {
			server_name nats.example.com
		}
		monitor http://{env.THE_SERVER} https://b:8222/varz/..
		node {env.THE_NODE}
		lease 5s
		shards 64
		replicas 1
		allow_single_replica
		prefix tasks
		retention 1h
		max_size 20GiB
	}`)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Password, "{file.") {
		t.Error("the password is replaced in the configuration, which Caddy shows")
	}
	got.Password = ""
	want := &Store{
		URLs: []string{"nats://a", "tls://b:4443"}, User: "gateway", TLS: NATSTLS{ServerName: "nats.example.com"},
		Monitor: []string{"http://a:8222", "https://b:8222/varz/.."},
		Node:    "east-1", Lease: caddy.Duration(5 * time.Second), Shards: 64, Replicas: 1, AllowSingleReplica: true,
		Prefix: "tasks",
		Limits: store.Limits{Retention: caddy.Duration(time.Hour), KeepUnread: caddy.Duration(replay.DefaultPinFor),
			MaxBytes: 64 << 20, MaxSize: 20 << 30},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err = jetStreamOf(t, "jetstream nats://a")
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	want = &Store{URLs: []string{"nats://a"}, Node: notInNodeName.ReplaceAllString(host, "-"),
		Lease: caddy.Duration(3 * time.Second), Shards: 16, Replicas: 3, Prefix: "aip",
		Limits: store.Limits{Retention: caddy.Duration(replay.DefaultRetention),
			KeepUnread: caddy.Duration(replay.DefaultPinFor), MaxBytes: 64 << 20}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// TestJetStreamLogins holds that each way to log in is read when a connection is made.
func TestJetStreamLogins(t *testing.T) {
	for name, has := range map[string]func(*nats.Options) bool{
		"user gateway {file.DIR/password}": func(o *nats.Options) bool {
			user, password := o.UserInfo()
			return user == "gateway" && password == "hunter2"
		},
		"token {file.DIR/password}": func(o *nats.Options) bool { return o.TokenHandler() == "hunter2" },
		"nkey DIR/seed": func(o *nats.Options) bool {
			return strings.HasPrefix(o.Nkey, "U") && o.SignatureCB != nil
		},
		"credentials DIR/creds": func(o *nats.Options) bool { return o.UserJWT != nil && o.SignatureCB != nil },
	} {
		s, err := jetStreamOf(t, "jetstream nats://a {\n"+name+"\n}")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		opts, err := s.connection()
		if err != nil {
			t.Fatal(err)
		}
		var o nats.Options
		for _, set := range opts {
			if err := set(&o); err != nil {
				t.Fatal(err)
			}
		}
		if !has(&o) {
			t.Errorf("%s: the options of a connection do not have it: %+v", name, o)
		}
	}
}

// TestJetStreamMistakes holds what is said about mistakes, none of which quotes a secret.
func TestJetStreamMistakes(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "store jetstream needs the URLs of the servers, such as nats://host"},
		{"http://a", `"http://a" is no URL of a NATS server; write nats://host or tls://host`},
		{"a:4222", `"a:4222" is no URL of a NATS server`},
		{"nats://a/x", `the URL "nats://a/x" of a server must be scheme, host and port alone`},
		{"nats://me:hunter2@a", "the URL of a server holds credentials, which logs would show; use user"},
		{"nats://me:hunter2%@a", "the URL of a server holds credentials, which logs would show; use user"},
		{"nats://{env.MISSING_HOST}", "the URL of a server has a placeholder without a value: {env.MISSING_HOST}"},
		{"nats://a {\nuser me\n}", "user needs a name and a password"},
		{"nats://a {\nuser me \"\"\n}", "user needs a name and a password"},
		{"nats://a {\nuser me {env.NONE}\n}", "the password of user has a placeholder without a value: {env.NONE}"},
		{"nats://a {\ntoken {file./none}\n}", "token has a placeholder without a value: {file./none}"},
		{"nats://a {\nnkey DIR/password\n}", "/password holds no seed of an NKey of a user that can be read"},
		{"nats://a {\nnkey {env.NONE}\n}", "nkey: the name of a file has a placeholder without a value: {env.NONE}"},
		{"nats://a {\ncredentials /none\n}", "credentials: open /none: no such file or directory"},
		{"nats://a {\ncredentials DIR/seed\n}", "/seed does not hold the JWT of a user and the seed of its key"},
		{"nats://a {\ntoken hunter2\nnkey DIR/seed\n}", "token and nkey are given; the gateway logs in by one of them"},
		{"nats://a {\ntls {\nca /none\n}\n}", "tls ca: open /none"},
		{"nats://a {\ntls {\nclient_cert /none /none\n}\n}", "tls client_cert: open /none"},
		{"nats://a {\nmonitor a:8222\n}", `monitor: "a:8222" is no http or https URL`},
		{"nats://a {\nmonitor http://me:hunter2@a:8222\n}", "monitor: a URL holds credentials, which logs would show"},
		{"nats://a {\nmonitor http://me:hunter2%@a\n}", "monitor: a URL holds credentials, which logs would show"},
		{"nats://a {\nnode east.1\n}", `node is "east.1", but must be 1 to 64 letters, digits, - and _`},
		{"nats://a {\nnode {env.NONE}\n}", "node has a placeholder without a value: {env.NONE}"},
		{"nats://a {\nprefix a.b\n}", `prefix is "a.b", but must be 1 to 32 letters, digits, - and _`},
		{"nats://a {\nlease 100ms\n}", "lease is 100ms, but must be 1s to 1m0s"},
		{"nats://a {\nshards 2000\n}", "shards is 2000, but must be 1 to 1024"},
		{"nats://a {\nreplicas 1\n}", "with one replica, the loss of a server is the loss of tasks"},
		{"nats://a {\nreplicas 2\n}", "replicas is 2, but must be 3 or 5"},
		{"nats://a {\nallow_single_replica yes\n}", "allow_single_replica takes no value"},
	} {
		_, err := jetStreamOf(t, "jetstream "+tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", tt.text, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error quotes a secret: %v", tt.text, err)
		}
	}
}

// TestMonitor holds what is read at the monitoring endpoints of the servers.
func TestMonitor(t *testing.T) {
	const synced, recent = `{"config": {"sync_always": true}}`, `{"server_id": "A", "version": "2.15.2"}`
	for _, tt := range []struct{ jsz, varz, want string }{
		{`{"config": {"sync_interval": 120000000000, "sync_always": true}}`, recent, ""},
		{`{"config": {"sync_interval": 120000000000}}`, recent,
			"syncs its writes to the disk every 2m0s only; set sync_interval: always"},
		{`{"disabled": true}`, recent, "has no JetStream; add a jetstream block"},
		{`{}`, recent, "is not the monitoring endpoint of a NATS server"},
		{synced, `{}`, "is not the monitoring endpoint of a NATS server"},
		{`<html>`, `<html>`, "is not the monitoring endpoint of a NATS server"},
		{synced, `{"server_id": "A", "version": "2.14.9"}`, "cannot be used: the NATS server has the version 2.14.9"},
	} {
		server := monitored(tt.jsz, tt.varz)
		_, err := askServer(t.Context(), server.URL+"/")
		server.Close()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s, %s: error %v, want %s", tt.jsz, tt.varz, err, tt.want)
		}
		if _, err := askServer(t.Context(), server.URL); err == nil ||
			!strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("a server that is down: %v", err)
		}
	}
}

// monitored serves the monitoring of a server.
func monitored(jsz, varz string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(map[string]string{"/jsz": jsz, "/varz": varz}[r.URL.Path]))
	}))
}

// TestMonitorAll: all servers are checked whose monitoring is named, and the others of their cluster are counted.
func TestMonitorAll(t *testing.T) {
	const good = `{"config": {"sync_always": true}, "meta_cluster": {"cluster_size": 3}}`
	var all []string
	for _, id := range []string{"A", "B", "C"} {
		server := monitored(good, `{"server_id": "`+id+`", "version": "2.15.2"}`)
		defer server.Close()
		all = append(all, server.URL)
	}
	old := monitored(good, `{"server_id": "C", "version": "2.12.1"}`)
	defer old.Close()
	down := fmt.Sprint("http://127.0.0.1:", freeport.Closed(t))
	alone := monitored(`{"config": {"sync_always": true}}`, `{"server_id": "A", "version": "2.15.2"}`)
	defer alone.Close()
	for name, tt := range map[string]struct {
		monitor         []string
		unnamed, silent int
		fails           string
	}{
		"all":              {monitor: all},
		"one":              {monitor: all[:1], unnamed: 2},
		"one twice":        {monitor: []string{all[0], all[0] + "/"}, unnamed: 2},
		"two, and one old": {monitor: []string{all[0], all[1], old.URL}, fails: "version 2.12.1"},
		"one of two down":  {monitor: []string{all[0], down}, unnamed: 1, silent: 1},
		"a single server":  {monitor: []string{alone.URL}},
	} {
		silent := 0
		s := Store{Monitor: tt.monitor}
		unnamed, err := s.checkServers(t.Context(), func(string, error) { silent++ })
		if unnamed != tt.unnamed || silent != tt.silent || (err == nil) != (tt.fails == "") ||
			err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s: %d are not named, %d silent, error %v; want %+v", name, unnamed, silent, err, tt)
		}
	}
}
