// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
)

const groupAIC = "10001000011K912345E789ABCDEF2353"

// TestGroupMistakes holds that each mistake in the option group is a sentence that names the setting.
func TestGroupMistakes(t *testing.T) {
	pki := devpkitest.Make(t, devpki.Options{})
	brokers := []string{"mq.example.com"}
	for _, tt := range []struct {
		name  string
		group Group
		aic   string
		want  string
	}{
		{"no aic", Group{AllowBrokers: brokers}, "-", "set aic"},
		{"no broker", Group{}, "", "name the brokers of your Leaders in allow_brokers"},
		{"inbox", Group{Inbox: "amqp://mq.example.com/acps"}, "", `inbox: "amqp://mq.example.com/acps": it must be amqps://`},
		{"inbox without a certificate", Group{Inbox: "amqps://mq.example.com/acps"}, "",
			"inbox: the Partner logs in there by"},
		{"no inbox", Group{AllowBrokers: brokers, InboxWithoutUserID: true}, "",
			"inbox: inbox_without_user_id needs the URL of an inbox"},
		{"no Leader", Group{AllowBrokers: brokers, AllowExchanges: map[string][]string{"leader": {"x"}}}, "",
			`allow_exchanges: "leader" is no AIC of a Leader`},
		{"star", Group{AllowBrokers: brokers, AllowExchanges: map[string][]string{groupAIC: {"a*b"}}}, "",
			`allow_exchanges: "a*b" is not the name of an exchange`},
		{"no groups", Group{AllowBrokers: brokers, MaxGroups: -1}, "", "max_groups is -1"},
		{"key", Group{AllowBrokers: brokers, TokenKey: "se cret"}, "", "openssl rand -hex 32"},
		{"short key", Group{AllowBrokers: brokers, TokenKey: "0a0b"}, "", "has 2 bytes, but must have 32"},
		{"placeholder", Group{AllowBrokers: brokers, TokenKey: "{env.NOT_SET}"}, "", "placeholder without a value"},
		{"no file", Group{AllowBrokers: brokers, TLS: GroupTLS{CA: []string{"nowhere.pem"}}}, "", "tls ca: open"},
		{"no key file", Group{AllowBrokers: brokers, TLS: GroupTLS{Cert: pki.Leader.Cert}}, "",
			"client_cert needs a certificate and its key"},
		{"not obtained", Group{AllowBrokers: brokers, TLS: GroupTLS{Obtained: true}}, "",
			"tls client_cert aip needs the aic of the Partner, and the global option aip { certificates"},
		{"another's key", Group{AllowBrokers: brokers, TLS: GroupTLS{Cert: pki.Leader.Cert, Key: pki.Server.Key}}, "",
			"tls client_cert: private key does not match public key"},
	} {
		aic := groupAIC
		if tt.aic != "" {
			aic = ""
		}
		tt.group.fillDefaults()
		err := tt.group.check(aic != "", []string{"aip"})
		if err == nil {
			err = tt.group.provision(nil)
		}
		if err == nil || !strings.HasPrefix(err.Error(), "group: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %v, want one with %q", tt.name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "se cret") {
			t.Errorf("%s: the error quotes the key", tt.name)
		}
	}
	if err := (&Group{AllowBrokers: brokers}).check(true, []string{"a2a"}); err == nil {
		t.Error("groups without callers that could invite: no error")
	}
}

// TestGroupTokenKey holds that a key may be written in both forms, and stand in the environment.
func TestGroupTokenKey(t *testing.T) {
	want := bytes.Repeat([]byte{1, 0xfe}, 16)
	t.Setenv("GROUP_TOKEN_KEY", base64.StdEncoding.EncodeToString(want)+"\n")
	for _, s := range []string{hex.EncodeToString(want), strings.ToUpper(hex.EncodeToString(want)),
		base64.StdEncoding.EncodeToString(want), "{env.GROUP_TOKEN_KEY}"} {
		got, err := readTokenKey(caddy.NewReplacer(), s)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v", s, got, err)
		}
	}
	if key, err := readTokenKey(caddy.NewReplacer(), ""); key != nil || err != nil {
		t.Errorf("no key: %x, %v", key, err)
	}
}

// TestGroupCertificate holds that a renewed client certificate is used without a reload.
func TestGroupCertificate(t *testing.T) {
	pki := devpkitest.Make(t, devpki.Options{})
	settings := GroupTLS{CA: []string{pki.CA.Cert}, Cert: pki.Leader.Cert, Key: pki.Leader.Key}
	config, err := settings.config(caddy.NewReplacer(), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := config.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{pki.Server.Cert: pki.Leader.Cert, pki.Server.Key: pki.Leader.Key} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second, err := config.GetClientCertificate(nil)
	if err != nil || bytes.Equal(first.Certificate[0], second.Certificate[0]) {
		t.Errorf("the renewed certificate is not read: %v", err)
	}
	if config, err := new(GroupTLS).config(caddy.NewReplacer(), nil); err != nil || config.GetClientCertificate != nil {
		t.Errorf("a client certificate out of nothing: %v", err)
	}
}
