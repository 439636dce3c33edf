// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// aunCluster is three gateways that share a store, each with an AUN side of the same identity, and with sites without
// certificates, through which its callers hop: each request is sent to the next gateway.
type aunCluster struct {
	*site.Cluster
	sites []*site.AUNSite
	plain []string // the URLs of the sites of the gateways without certificates
	hops  string   // the URL through which each request comes to the next of them
	roots string   // likewise, to sites whose clients speak HTTP/2 and know no path
}

// balanced returns the URL of a proxy that hands each request to the next of several servers.
func balanced(t testing.TB, http2 bool, servers []string) string {
	t.Helper()
	var next atomic.Int64
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
		host := p.In.Host
		p.SetURL(site.Must(url.Parse(servers[int(next.Add(1))%len(servers)]))(t))
		p.Out.Host = host // cards name the proxy
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	both, only := new(http.Protocols), new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	if only.SetUnencryptedHTTP2(true); http2 {
		proxy.Transport = &http.Transport{Protocols: only}
	}
	server := httptest.NewUnstartedServer(proxy)
	server.Config.Protocols = both
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	server.Start()
	return server.URL
}

// newAUNCluster starts the gateways with the same directives: handle on the site with certificates, plain and root on
// those without.
func newAUNCluster(t *testing.T, handle, plain, root string) *aunCluster {
	t.Helper()
	servers, err := natstest.Start(3, natstest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	c := &aunCluster{Cluster: &site.Cluster{T: t, Servers: servers}}
	var roots []string
	for range 3 {
		c.plain = append(c.plain, fmt.Sprintf("http://127.0.0.1:%d", site.FreePort(t)))
		roots = append(roots, fmt.Sprintf("http://127.0.0.1:%d", site.FreePort(t)))
	}
	c.hops, c.roots = balanced(t, false, c.plain), balanced(t, true, roots)
	first := site.NewAUN(t)
	for i := range 3 {
		s := first
		if i > 0 { // the files of an identity are the same at all gateways
			one := *first
			one.Site, one.Port = site.New(t), site.FreePort(t)
			s = &one
		}
		c.sites, c.Gateways = append(c.sites, s), append(c.Gateways, s.Site)
		all, aun := c.Config(i, handle, "lease 5s"), s.Config("a2a/legacy http://unused")
		_, block, _ := strings.Cut(aun.Store, "\n")
		all.Store += "\n" + strings.ReplaceAll(block, s.Dir, first.Dir)
		all.Notify, all.Mode = site.AllowHere+"callback "+c.hops+"/push\n", "verify_if_given"
		all.Options = "servers {\nprotocols h1 h2 h2c\n}"
		all.OtherSites = fmt.Sprintf("%s\n%s {\naip_aun\nhandle /push/* {\naip_callback\n}\n%s\n}\n%s {\n%s\n}\n",
			aun.OtherSites, c.plain[i], plain, roots[i], root)
		s.Start(all)
	}
	c.AllOwned(3)
	site.Eventually(t, "all shards are open", func() bool { // an owner reads a shard before it works on it
		_, body := c.Gateways[0].Asked(http.MethodGet, "/aip/tasks", "")
		return !strings.Contains(string(body), `"missing"`)
	})
	return c
}

// TestClusterIsOne: what three gateways count, list, set and deliver is as if they were one.
func TestClusterIsOne(t *testing.T) {
	t.Parallel()
	_, address := site.SampleAgent(t)
	var mu sync.Mutex
	notified := make(map[string][]string)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		token, id := r.Header.Get("X-ACPS-AIP-Notification-Token"), r.Header.Get("webhook-id")
		if !slices.Contains(notified[token], id) { // one whose answer is lost comes again
			notified[token] = append(notified[token], id)
		}
	}))
	t.Cleanup(receiver.Close)
	open, pushes := site.NewFakeAgent(t, site.Forward(address)), site.NewPushAgent(t)
	backs := []*back{
		{name: "go-10", dialect: "a2a", echo: "echo: hi", asks: "which colour?", slow: "slow 300",
			recorder: newRecorder(t, site.RunAgent(t, site.SDKBinary(t, "a2a-go-10"), "agent"), false)},
		{name: "aun-assignee", dialect: "aun-assignee " + site.AUNWorker, echo: "echo: echo hi", asks: "which colour?",
			slow: "slow 300000", early: true},
	}
	worker, recorded := newAssignee()
	backs[1].recorder = recorded
	plain := "aip_gateway /pushes* a2a/legacy " + pushes.URL + " {\nidentity off\n}\n"
	for _, b := range backs {
		plain += fmt.Sprintf("aip_gateway /to/%s* %s %s {\ncallers aip aip/2 a2a agentapi aun\naid %s\nidentity off\n}\n",
			b.name, b.dialect, b.url, aunName(b.name))
	}
	c := newAUNCluster(t, `
	aip_gateway /open* a2a/legacy `+open.URL+` {
		identity off
	}
	aip_gateway a2a/legacy http://`+address+` {
		aid `+site.AUNAgent+`
		callers aip aun
		quota daily {
			starts 20/day
		}
	}`, plain, "aip_gateway "+backs[0].dialect+" "+backs[0].url+" {\ncallers a2a\nidentity off\n}")
	w := &world{url: c.hops, backs: backs}
	backs[0].root = c.roots
	w.assign(t, worker)

	t.Run("a quota is exact", func(t *testing.T) {
		site.WithinADay()
		var calls sync.WaitGroup
		var started, refused atomic.Int32
		for i := range 45 {
			leader := site.LeaderOf(t, c.Gateways[i%3].URL())
			calls.Go(func() {
				switch _, err := leader.Try(site.StartCall(fmt.Sprint("q", i), "hello")); {
				case err == nil:
					started.Add(1)
				case strings.Contains(err.Error(), "-32050"):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		if calls.Wait(); started.Load() != 20 || refused.Load() != 25 {
			t.Errorf("%d tasks were started, and %d refused; want 20 and 25", started.Load(), refused.Load())
		}
		for i, s := range c.Gateways {
			if list := s.Listed("tasks", url.Values{"limit": {"1000"}}); len(list) != 20 {
				t.Errorf("gateway %d lists %d tasks", i, len(list))
			} else if list[0].Get("gateway").String() == "" {
				t.Errorf("gateway %d does not say whose a task is: %s", i, list[0].Raw)
			}
		}
	})

	t.Run("every front", func(t *testing.T) {
		var jobs []job
		for _, f := range fronts() {
			for _, b := range backs {
				if f.slow || b.early && f.name != "aip" && f.name != "aun" || f.name == "legacy-trpc" || f.name == "rest-03" {
					continue
				}
				for _, op := range operations {
					if op.name != "push" && op.name != "fail" && !slices.Contains(f.lacks, op.name) {
						jobs = append(jobs, job{fmt.Sprintf("%s from %s to %s", op.name, f.name, b.name),
							func(t *testing.T) { op.run(t, w, f, b) }})
					}
				}
			}
		}
		runTogether(t, jobs)
	})

	t.Run("an agent pushes to any gateway", func(t *testing.T) { c.callbacks(t, pushes) })
	t.Run("a disabled endpoint", c.disables)
	t.Run("a command at all gateways at once", func(t *testing.T) { c.atOnce(t, open) })

	t.Run("webhooks of callers that are not known", func(t *testing.T) {
		for i := range 3 {
			at := func(n int) *site.Caller {
				return site.CallerWith(t, c.Gateways[(i+n)%3].URL()+"/open", fmt.Sprint("somebody-", i))
			}
			id := fmt.Sprint("open-", i)
			before := at(0).SetHook(site.Hook{URL: receiver.URL, Token: id, TaskID: id}) // before there is a task
			at(1).Start(id, "hello")
			if got := at(2).Hooks(id, ""); len(got) != 1 || got[0].ID != before.ID {
				t.Errorf("the webhooks of %s are %+v, want %s", id, got, before.ID)
			}
			after := at(2).SetHook(site.Hook{URL: receiver.URL, Token: id + "-after", TaskID: id})
			at(0).Complete(id)
			site.Eventually(t, "both webhooks are notified of the end", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(notified[id]) >= 3 && len(notified[id+"-after"]) == 1
			})
			at(1).Granted("delete", site.IDs(id, after.ID))
			if got := at(0).Hooks(id, ""); len(got) != 1 {
				t.Errorf("after a delete, the webhooks of %s are %+v", id, got)
			}
		}
	})

	t.Run("AUN", func(t *testing.T) {
		var tasks []string
		for i := range 3 {
			alice := c.sites[i].Online("alice.aid.test")
			created := site.Must(alice.Create(c.sites[i].Soon(), site.AUNAgent, "slow 1"))(t)
			tasks = append(tasks, created.TaskID)
			site.Must(alice.Subscribe(c.sites[i].Soon(), created.TaskID))(t)
			next := c.sites[(i+1)%3]
			elsewhere := site.Must(next.Client("alice.aid.test").Online(next.Soon()))(t)
			got := next.Rests(elsewhere, created.TaskID)
			if got.Status != "completed" {
				t.Errorf("the task is %+v", got)
			}
			elsewhere.Cut()
		}
		s := c.sites[0]
		alice := s.Online("alice.aid.test")
		for _, id := range tasks {
			if got := s.Rests(alice, id); got.Status != "completed" {
				t.Errorf("%s is %s", id, got.Status)
			}
		}
	})

	t.Run("a cancel at any gateway", func(t *testing.T) {
		for i := range 3 {
			id := fmt.Sprint("c-", i)
			leader := fmt.Sprint("canceler-", i)
			call := site.StartCall(id, "slow 60")
			call.Terms.Response = time.Millisecond
			site.CallerWith(t, c.Gateways[i].URL()+"/open", leader).Send(call)
			got := site.CallerWith(t, c.Gateways[(i+1)%3].URL()+"/open", leader).Cancel(id)
			if got.Status.State != task.Canceled {
				t.Errorf("the task is %s", got.Status.State)
			}
		}
	})
}
