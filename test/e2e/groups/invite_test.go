// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// listener returns the address of a server that says the same to each connection, or nothing if that is empty.
func listener(t testing.TB, says string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	site.NoError(t, err)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() {
				defer conn.Close()
				io.WriteString(conn, says)
				io.Copy(io.Discard, conn) // until the gateway has had enough
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		done.Wait()
	})
	return l.Addr().String()
}

// TestInvitations sends invitations that must be refused, in both generations of AIP, and proves that nothing of them
// is left behind.
//
// Promise: a Leader makes the gateway call addresses in your network (SSRF)
func TestInvitations(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	p := site.Certificates(t)
	site.NoError(t, b.AddVhost("/foreign"))
	_, agent := site.SampleAgent(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost 127.0.0.1 10.1.2.3 169.254.169.254 *.invalid")
	off := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers aip aip/2\n\t}"})

	failed := func(reason string) [2]string {
		return [2]string{"-32603 CONNECTION_FAILED " + reason, "-32021 CONNECTION_FAILED " + reason}
	}
	rejected := [2]string{"-32009 ", "-32020 INVITATION_REJECTED "}
	params := [2]string{"-32602 ", "-32602 "}
	server := func(key string, value any) func(site.Object) {
		return func(o site.Object) { o["server"].(site.Object)[key] = value }
	}
	at := func(address string) func(site.Object) {
		host, port, _ := strings.Cut(address, ":")
		number, err := strconv.Atoi(port)
		site.NoError(t, err)
		return func(o site.Object) { server("host", host)(o); server("port", number)(o) }
	}
	var inviting []*site.GroupLeader
	for i, leader := range []devpki.File{p.LeaderV1, p.Leader} {
		inviting = append(inviting, site.NewGroup(t, b, fmt.Sprint("refused-", i), leader))
	}
	t.Run("refused", func(t *testing.T) {
		for name, tc := range map[string]struct {
			change func(site.Object)
			want   [2]string // of AIP v01 and v02
		}{
			"a private address":          {at("10.1.2.3:5672"), rejected},
			"a metadata address":         {at("169.254.169.254:5672"), rejected},
			"a broker that is not there": {at(fmt.Sprint("127.0.0.1:", freeport.Closed(t))), failed(".*refused")},
			"a name that is not there":   {at("broker.invalid:5672"), failed(".*")},
			"a broker that is silent":    {at(listener(t, "")), failed(".*")},
			"a web server":               {at(listener(t, "HTTP/1.1 400 Bad Request\r\n\r\n")), failed(".*")},
			"a wrong password":           {server("accessToken", "a user:wrong"), [2]string{"-32010 ", "-32010 "}},
			"an access token of no form": {server("accessToken", "neither"), [2]string{"-32010 ", "-32010 "}},
			"a foreign virtual host":     {server("vhost", "/foreign"), failed(".*")},
			"no such virtual host":       {server("vhost", "/none"), failed(".*")},
			"no such exchange": {func(o site.Object) { o["amqp"].(site.Object)["exchange"] = "group-none" },
				failed(".*")},
			"another protocol":           {func(o site.Object) { o["protocol"] = "mqtt:5.0" }, params},
			"no group":                   {func(o site.Object) { delete(o, "group") }, params},
			"a port that is none":        {server("port", 70_000), params},
			"a host that is not allowed": {server("host", "mq.example.com"), rejected},
			"another one's group": {func(o site.Object) {
				o["group"].(site.Object)["leader"].(site.Object)["aic"] = "10001000011K912345E789ABCDEF2353"
			}, rejected},
		} {
			for i, g := range inviting {
				t.Run(fmt.Sprintf("%s v0%d", name, i+1), func(t *testing.T) {
					t.Parallel()
					invitation := g.Invitation(m.AIC)
					tc.change(invitation)
					caller := m.CalledBy(g.Certificate)
					caller.T = t
					var refused *site.InviteError
					site.Eventually(t, "the invitation is refused for another reason than that it took too long", func() bool {
						at := time.Now()
						var joined *site.Membership
						joined, refused = g.Invite(caller, invitation)
						if joined != nil {
							t.Fatalf("an invitation was accepted: %+v", joined)
						}
						// AIP has callers wait for 5 s; the gateway's limit is 4.5 s, and this is no machine of its own.
						if took := time.Since(at); took > site.Patience/2 {
							t.Errorf("the answer took %v", took)
						}
						return !refused.Late() || strings.Contains(tc.want[i], "CONNECTION_FAILED")
					})
					details := site.Data(t, refused.Data)
					got := fmt.Sprint(refused.Code, " ")
					if details["errorType"] == "CONNECTION_FAILED" {
						d := details["details"].(map[string]any)
						got += fmt.Sprint(details["errorType"], " ", d["reason"])
						server := invitation["server"].(site.Object)
						if d["host"] != server["host"] || fmt.Sprint(d["port"]) != fmt.Sprint(server["port"]) || d["reason"] == "" {
							t.Errorf("the details are %s", refused.Data)
						}
					} else {
						got += fmt.Sprint(details["errorType"], " ")
					}
					if !regexp.MustCompile("^" + tc.want[i]).MatchString(got) {
						t.Errorf("the answer is %d %s %s, want %s", refused.Code, refused.Message, refused.Data, tc.want[i])
					}
					if strings.Contains(string(refused.Data), g.Token) {
						t.Error("the access token is in the answer")
					}
				})
			}
		}
	})
	for i, g := range inviting {
		caller := site.CallerWith(t, off.URL(), g.AIC(), devpkitest.KeyPair(t, g.Certificate))
		if _, refused := g.Invite(caller, g.Invitation()); refused == nil || refused.Code != -32007 {
			t.Errorf("where groups are off, an invitation of v0%d is answered %+v", i+1, refused)
		}
	}
	leftNothing(t, m, b)
}

// TestGroupLogins joins by each of the ways in which a member proves itself to the broker.
func TestGroupLogins(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	p := site.Certificates(t)
	for name, leader := range map[string]devpki.File{"v01": p.LeaderV1, "v02": p.Leader} {
		_, agent := site.SampleAgent(t)
		for form, prepare := range map[string]func(*site.GroupLeader, *site.Member) (userID string){
			"password": func(g *site.GroupLeader, _ *site.Member) string {
				user, _, _ := strings.Cut(g.Token, ":")
				return user
			},
			"token": func(g *site.GroupLeader, _ *site.Member) string {
				vhost := strings.NewReplacer("/", "%2F", " ", "%20").Replace(g.VHost)
				g.Token = rabbittest.Token(map[string]any{
					"sub": "a member", "exp": time.Now().Add(time.Hour).Unix(), "scope": []string{
						"rabbitmq.configure:" + vhost + "/group_*", "rabbitmq.write:" + vhost + "/group*",
						"rabbitmq.read:" + vhost + "/group*"},
				})
				return ""
			},
			"certificate": func(g *site.GroupLeader, m *site.Member) string {
				site.NoError(t, b.AddUser(m.AIC, ""), g.Permit(m.AIC))
				g.Token, g.Port = "", b.TLSPort
				return m.AIC
			},
		} {
			t.Run(form+" "+name, func(t *testing.T) {
				t.Parallel()
				g := site.NewGroup(t, b, "logins", leader)
				m := site.MakeMember(t)
				cert := m.Identify()
				userID := prepare(g, m)
				m.Config = m.Fronting("a2a/legacy http://"+agent, "localhost",
					fmt.Sprintf("allow_exchanges %s %s\n\t\t\ttls {\n\t\t\t\tca %s\n\t\t\t\tclient_cert %s %s\n\t\t\t}", g.AIC(),
						g.Exchange, p.CA.Cert, cert.Cert, cert.Key))
				m.Start(m.Config)
				g.Join(m)
				g.Say("start", "one", "hello")
				if got := g.WaitForState(m.AIC, "one", "awaiting-completion"); got.UserID != userID {
					t.Errorf("the user id is %q, want %q", got.UserID, userID)
				}
				g.Check(m, "one")
			})
		}
	}
}
