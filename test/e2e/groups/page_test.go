// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TestGroupPageLogins configures a broker as docs/groups.md says, and lets the page's Partner log in by a certificate
// and by a JWT, with the permissions and the scopes of the page.
func TestGroupPageLogins(t *testing.T) {
	t.Parallel()
	pki := site.Certificates(t)
	page, err := os.ReadFile("../../../docs/groups.md")
	site.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "### Permissions at the broker\n")
	section, _, _ = strings.Cut(section, "\n### ")
	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 4 { // the last one is for a service of others
		t.Fatalf("docs/groups.md has %d snippets about permissions", len(blocks))
	}
	byCertificate, byToken, scopes := blocks[0][1], blocks[1][1], blocks[2][1]

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	site.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	site.NoError(t, err)
	keyFile := filepath.Join(t.TempDir(), "leader-public.pem")
	site.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600))

	broker, err := rabbittest.Start(rabbittest.Config{
		CA: pki.CA.Cert, Cert: pki.Server.Cert, Key: pki.Server.Key,
		Security: func(b *rabbittest.Broker) string {
			return strings.NewReplacer("5671", fmt.Sprint(b.TLSPort), "/etc/rabbitmq/ca.pem", pki.CA.Cert,
				"/etc/rabbitmq/broker.pem", pki.Server.Cert, "/etc/rabbitmq/broker-key.pem", pki.Server.Key,
				"/etc/rabbitmq/leader-public.pem", keyFile).Replace(byCertificate + byToken)
		},
	})
	site.NoError(t, err)
	t.Cleanup(func() { broker.Close() })
	cert := (&site.Member{Site: site.New(t), AIC: pagePartner}).Identify()
	p := newGroupPage(t, broker, func(text string) string {
		allowed := fmt.Sprint("allow_brokers localhost:", broker.Port)
		if !strings.Contains(text, allowed) {
			t.Fatalf("the Caddyfile of docs/groups.md does not have %q", allowed)
		}
		return strings.Replace(text, allowed, fmt.Sprintf("%s localhost:%d\n\t\t\ttls {\n\t\t\t\tca %s\n"+
			"\t\t\t\tclient_cert %s %s\n\t\t\t}", allowed, broker.TLSPort, pki.CA.Cert, cert.Cert, cert.Key), 1)
	})
	// inviting has the Leader invite to a group of another name, by another login.
	inviting := func(group string, port int, login string) func(string) string {
		return func(text string) string {
			known := fmt.Sprintf(`"port": %d, "vhost": "groups", "accessToken": "partner:partner-secret"`, broker.Port)
			if !strings.Contains(text, known) {
				t.Fatalf("the Leader of docs/groups.md does not have %s", known)
			}
			return strings.NewReplacer("trip-1", group, known,
				fmt.Sprintf(`"port": %d, "vhost": "groups"%s`, port, login)).Replace(text)
		}
	}

	exchange := "group_" + pageLeader + "_by-certificate"
	queue := exchange + "_" + pagePartner
	site.NoError(t, broker.AddUser(pagePartner, ""), broker.Permit(pagePartner, "groups",
		"^"+queue+"$", "^("+queue+"|"+exchange+")$", "^("+queue+"|"+exchange+")$"))
	p.leadsToTheEnd(inviting("by-certificate", broker.TLSPort, ""))

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, nil)
	site.NoError(t, err)
	names := strings.NewReplacer("<leader>", pageLeader, "<groupId>", "by-token", "<partner>", pagePartner)
	token, err := jwt.Signed(signer).Claims(map[string]any{
		"sub": "the Partner", "aud": "rabbitmq", "exp": time.Now().Add(time.Hour).Unix(),
		"scope": strings.Fields(names.Replace(scopes)),
	}).Serialize()
	site.NoError(t, err)
	p.leadsToTheEnd(inviting("by-token", broker.Port, fmt.Sprintf(`, "accessToken": %q`, token)))
}
