// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// contribFile writes a file of contrib to a folder, with parts of it replaced: addresses, and paths of an installation.
// Each of them must be there.
func contribFile(t testing.TB, name, dir string, replaced map[string]string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../../contrib", name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for from, to := range replaced {
		if !strings.Contains(text, from) {
			t.Fatalf("contrib/%s has no %q", name, from)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	path := filepath.Join(dir, filepath.Base(name))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestContribSystemd checks the unit with systemd's own tools.
func TestContribSystemd(t *testing.T) {
	t.Parallel()
	tools := site.Unpacked(t)
	dir := t.TempDir()
	unit := contribFile(t, "systemd/aip-gateway.service", dir, map[string]string{
		"/usr/local/bin/caddy": site.CaddyBinary(t),
	})
	// Where the units that it depends on are depends on the release of Debian.
	env := []string{fmt.Sprintf("SYSTEMD_UNIT_PATH=%s/lib/systemd/system:%[1]s/usr/lib/systemd/system:%s",
		tools.Root, dir)}
	// A setting that systemd does not know is only a warning.
	if out := tools.Check(env, "usr/bin/systemd-analyze", "verify", unit); out != "" {
		t.Errorf("systemd-analyze verify:\n%s", out)
	}
	// The threshold is ten times the exposure: 0 is a service that can do nothing, 100 one without limits.
	tools.Check(env, "usr/bin/systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", unit)
}

// TestContribStatic: the image of contrib/docker has nothing but the binary, so that must need no library.
func TestContribStatic(t *testing.T) {
	t.Parallel()
	file, err := elf.Open(site.CaddyBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a dynamic linker")
		}
	}
}

// production is contrib/Caddyfile, before a sample agent.
type production struct {
	*site.Site
	path   string // of its Caddyfile
	health int    // its port
}

func newProduction(t testing.TB) *production {
	t.Helper()
	p := &production{Site: site.New(t), health: site.FreePort(t)}
	agent := fmt.Sprintf("127.0.0.1:%d", site.FreePort(t))
	site.StartProcess(t, p.Dir, nil, site.CaddyBinary(t), "aip", "sample-agent", "--listen", agent).WaitForPort(t, agent)
	p.Env = []string{
		fmt.Sprintf("CADDY_ADMIN=127.0.0.1:%d", p.Admin), "AIP_HOST=localhost", fmt.Sprintf("AIP_PORT=%d", p.Port),
		"AIP_AGENT=http://" + agent, fmt.Sprintf("AIP_HEALTH_PORT=%d", p.health),
	}
	if status, _, stderr := p.Caddy("aip", "pki"); status != 0 {
		t.Fatalf("caddy aip pki ended with %d: %s", status, stderr)
	}
	p.path = contribFile(t, "Caddyfile", p.Dir, map[string]string{
		"/etc/caddy/tls/partner.pem": ".pki/server.pem", "/etc/caddy/tls/partner-key.pem": ".pki/server-key.pem",
		"/etc/caddy/tls/leaders-ca.pem": ".pki/ca.pem",
	})
	return p
}

// call calls the gateway as a Leader, at a port.
func (p *production) call(port int) {
	p.T.Helper()
	status, stdout, stderr := p.Caddy("aip", "call", fmt.Sprintf("https://localhost:%d", port), "start", "hello")
	if status != 0 || !strings.Contains(stdout, "hello") {
		p.T.Errorf("a call at port %d ended with %d:\n%s%s", port, status, stdout, stderr)
	}
}

func TestContribCaddyfile(t *testing.T) {
	t.Parallel()
	p := newProduction(t)
	if status, stdout, stderr := p.Caddy("fmt", "--diff", p.path); status != 0 ||
		regexp.MustCompile(`(?m)^[-+]`).MatchString(stdout) {
		t.Errorf("contrib/Caddyfile is not formatted as caddy fmt does:\n%s%s", stdout, stderr)
	}
	p.Run(p.path)
	p.call(p.Port)
	for path, want := range map[string]string{"/aip/health/ready": `"ready"`, "/metrics": "aip_calls_total"} {
		url := fmt.Sprintf("http://127.0.0.1:%d%s", p.health, path)
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		err = resp.Write(&body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK || !strings.Contains(body.String(), want) {
			t.Errorf("GET %s answers %s, without %s", url, resp.Status, want)
		}
	}
	complaint := regexp.MustCompile(`"level":"(error|warn",.*"logger":"(aip|http\.handlers\.aip)).*`)
	if line := complaint.FindString(p.Out.String()); line != "" {
		t.Errorf("the gateway complains: %s", line)
	}
	// Its AIC is a variable, too.
	const aic = "10001000011K912345E789ABCDEF2353"
	p.Env = append(p.Env, "AIP_AIC="+aic)
	status, stdout, stderr := p.Caddy("aip", "doctor", "--config", p.path)
	if status != 0 || !strings.Contains(stdout, ": the site's client_auth fits identity required") {
		t.Errorf("caddy aip doctor ended with %d:\n%s%s", status, stdout, stderr)
	}
	p.Env = append(p.Env, "AIP_AIC="+aic[:len(aic)-1]+"4")
	status, stdout, stderr = p.Caddy("aip", "doctor", "--config", p.path)
	if status == 0 || !strings.Contains(stdout, "the check digits of the AIC are 54") {
		t.Errorf("caddy aip doctor ended with %d where the AIC is wrong:\n%s%s", status, stdout, stderr)
	}
}

// oftenChecked has HAProxy check a server that is down, or seems to be, often. What a check takes at most is inter.
const oftenChecked = "inter 5s fastinter 100ms downinter 100ms"

// TestContribHAProxy: the Leader's certificate reaches the gateway, and HAProxy knows when it is up.
func TestContribHAProxy(t *testing.T) {
	t.Parallel()
	tools, p, port := site.Unpacked(t), newProduction(t), site.FreePort(t)
	original := contribFile(t, "haproxy/haproxy.cfg", t.TempDir(), nil)
	if out := tools.Check(nil, "usr/sbin/haproxy", "-c", "-f", original); strings.Contains(out, "WARNING") {
		t.Errorf("haproxy warns:\n%s", out)
	}
	path := contribFile(t, "haproxy/haproxy.cfg", p.Dir, map[string]string{
		"bind :443":          fmt.Sprintf("bind 127.0.0.1:%d", port),
		"10.20.0.7:443":      fmt.Sprintf("127.0.0.1:%d", p.Port),
		"maxconn 20000":      "maxconn 100", // or it needs more files than this process may open
		"port 9180 inter 5s": fmt.Sprintf("port %d "+oftenChecked, p.health),
	})
	proxy := site.StartProcess(t, p.Dir, tools.Env, filepath.Join(tools.Root, "usr/sbin/haproxy"), "-db", "-f", path)
	proxy.WaitFor(t, "gateway/gateway is DOWN")
	p.Run(p.path)
	proxy.WaitFor(t, "gateway/gateway is UP")
	p.call(port)
}

// TestContribHAProxyCluster: HAProxy forwards to gateways that are ready, and where none is, to those that live.
func TestContribHAProxyCluster(t *testing.T) {
	t.Parallel()
	tools, dir, port, health, served := site.Unpacked(t), t.TempDir(), site.FreePort(t), site.FreePort(t), site.FreePort(t)
	replaced := map[string]string{
		"bind :8443":         fmt.Sprintf("bind 127.0.0.1:%d", port),
		"maxconn 20000":      "maxconn 100", // or it needs more files than this process may open
		"port 9180 inter 2s": fmt.Sprintf("port %d "+oftenChecked, health),
	}
	var ready, living [3]atomic.Bool
	for i := range ready {
		name, host := fmt.Sprint("gateway-", i+1), fmt.Sprint("127.0.0.", i+1)
		replaced[name+":8443"] = fmt.Sprintf("%s:%d", host, served)
		ready[i].Store(i == 0)
		living[i].Store(i < 2)
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, served))
		if err != nil {
			t.Fatal(err)
		}
		checked, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, health))
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/aip/health/ready" && !ready[i].Load() || !living[i].Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})}
		var work sync.WaitGroup
		work.Go(func() { _ = server.Serve(checked) })
		work.Go(func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, name)
				_ = conn.Close()
			}
		})
		t.Cleanup(func() {
			if err := errors.Join(server.Close(), listener.Close()); err != nil {
				t.Error(err)
			}
			work.Wait()
		})
	}
	path := contribFile(t, "haproxy/cluster.cfg", dir, replaced)
	if out := tools.Check(nil, "usr/sbin/haproxy", "-c", "-f", path); strings.Contains(out, "WARNING") {
		t.Errorf("haproxy warns:\n%s", out)
	}
	proxy := site.StartProcess(t, dir, tools.Env, filepath.Join(tools.Root, "usr/sbin/haproxy"), "-db", "-f", path)
	answering := func(want string) func() bool {
		return func() bool {
			conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			name, err := io.ReadAll(conn)
			return err == nil && string(name) == want
		}
	}
	proxy.WaitFor(t, "ready/gateway-2 is DOWN")
	proxy.WaitFor(t, "ready/gateway-3 is DOWN")
	if !answering("gateway-1")() {
		t.Error("the gateway that is ready does not have the connection")
	}
	living[0].Store(false)
	proxy.WaitFor(t, "ready/gateway-1 is DOWN")
	site.Eventually(t, "the gateway that lives has the connection", answering("gateway-2"))
}

// TestContribNginx: the Leader's certificate reaches the gateway.
func TestContribNginx(t *testing.T) {
	t.Parallel()
	tools, p, port := site.Unpacked(t), newProduction(t), site.FreePort(t)
	modules := filepath.Join(p.Dir, "modules.conf")
	load := "load_module " + filepath.Join(tools.Root, "usr/lib/nginx/modules/ngx_stream_module.so") + ";\n"
	if err := os.WriteFile(modules, []byte(load), 0o600); err != nil {
		t.Fatal(err)
	}
	path := contribFile(t, "nginx/nginx.conf", p.Dir, map[string]string{
		"/etc/nginx/modules-enabled/*.conf": modules, "/var/log/nginx": p.Dir,
		"listen 443": fmt.Sprintf("listen 127.0.0.1:%d", port), "10.20.0.7:443": fmt.Sprintf("127.0.0.1:%d", p.Port),
	})
	pid := fmt.Sprintf("pid %s; ", filepath.Join(p.Dir, "nginx.pid"))
	out := tools.Check(nil, "usr/sbin/nginx", "-t", "-p", p.Dir, "-e", "stderr", "-c", path, "-g", pid)
	if strings.Contains(out, "[warn]") {
		t.Errorf("nginx warns:\n%s", out)
	}
	p.Run(p.path)
	site.StartProcess(t, p.Dir, tools.Env, filepath.Join(tools.Root, "usr/sbin/nginx"), "-p", p.Dir, "-e", "stderr",
		"-c", path, "-g", pid+"daemon off; master_process off;").WaitForPort(t, fmt.Sprintf("127.0.0.1:%d", port))
	p.call(port)
}
