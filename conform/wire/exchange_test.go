// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// partner answers by the path of a request.
func partner(gone chan<- string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"got":%q,"as":%q}`, body, r.Header.Get("X-Test"))
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		io.WriteString(w, "data: 1\n\ndata: 2\n\n")
		http.NewResponseController(w).Flush()
		if r.URL.RawQuery == "open" {
			<-r.Context().Done()
			gone <- r.Proto
		}
	})
	mux.HandleFunc("/silent", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/huge", func(w http.ResponseWriter, r *http.Request) {
		for range maxBody>>20 + 1 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/json", http.StatusFound)
	})
	return mux
}

func TestDo(t *testing.T) {
	server := httptest.NewServer(partner(nil))
	defer server.Close()
	client := NewClient(&Identity{Name: "leader"}, Options{})
	defer client.Close()
	do := func(path, body string) *Exchange {
		return client.Do(t.Context(), Request{Method: "POST", URL: server.URL + path, Body: []byte(body),
			Headers: map[string]string{"X-Test": "yes"}}, 10*time.Second)
	}
	if e := do("/json", "hi"); e.Err != nil || string(e.Body) != `{"got":"hi","as":"yes"}` || e.Status != 200 {
		t.Errorf("got %d %s, %v", e.Status, e.Body, e.Err)
	}
	if e := do("/moved", ""); e.Status != 302 {
		t.Errorf("a redirect was followed: %d", e.Status)
	}
	if e := do("/huge", ""); e.Err == nil || !strings.Contains(e.Err.Error(), "more than") {
		t.Errorf("a huge answer: %v", e.Err)
	}
	e := client.Do(t.Context(), Request{Method: "POST", URL: server.URL + "/silent"}, time.Millisecond)
	if !TimedOut(e.Err) || e.Got() != "no complete answer: no answer within 1ms" {
		t.Errorf("silence: %v", e.Got())
	}
	closed, err := net.Dial("tcp", server.Listener.Addr().String()) // no process can listen where a connection comes from
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	e = client.Do(t.Context(), Request{Method: "POST", URL: "http://" + closed.LocalAddr().String()}, 10*time.Second)
	if !Unreachable(e.Err) {
		t.Errorf("a server that is down: %v", e.Err)
	}
}

// TestAbandon has a server read a request after its caller went on, and answer with a stream.
func TestAbandon(t *testing.T) {
	abandoned, got := make(chan struct{}), make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-abandoned
		body, err := io.ReadAll(r.Body)
		got <- fmt.Sprintf("%s, %v", body, err)
		partner(got).ServeHTTP(w, r)
	}))
	defer server.Close()
	client := NewClient(&Identity{}, Options{})
	defer client.Close()
	var behind sync.WaitGroup
	e := client.Abandon(t.Context(), Request{Method: "POST", URL: server.URL + "/stream?open", Body: []byte("abc")},
		10*time.Second, time.Nanosecond, &behind)
	close(abandoned)
	behind.Wait()
	if want := "no complete answer: no answer within 1ns"; !TimedOut(e.Err) || e.Got() != want {
		t.Errorf("got %s, want %s", e.Got(), want)
	}
	if diff := cmp.Diff([]string{"abc, <nil>", "HTTP/1.1"}, []string{<-got, <-got}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	r := Request{Method: "POST", URL: server.URL + "/moved"}
	e = client.Abandon(t.Context(), r, 10*time.Second, time.Minute, &behind)
	if behind.Wait(); e.Err != nil {
		t.Errorf("an answer in time: %v", e.Err)
	}
}

func TestHalf(t *testing.T) {
	got := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got <- fmt.Sprintf("%s of %d, %v", body, r.ContentLength, err)
	}))
	defer server.Close()
	client := NewClient(&Identity{}, Options{})
	defer client.Close()
	if err := client.Half(t.Context(), Request{Method: "POST", URL: server.URL, Body: []byte("abcdef")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("abc of 6, unexpected EOF", <-got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStream(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		gone := make(chan string, 1)
		server := httptest.NewUnstartedServer(partner(gone))
		server.EnableHTTP2 = true
		server.StartTLS()
		pool := x509.NewCertPool()
		pool.AddCert(server.Certificate())
		client := NewClient(&Identity{Name: "leader"}, Options{CA: pool, HTTP: version})

		e := client.Do(t.Context(), Request{Method: "POST", URL: server.URL + "/stream"}, 10*time.Second)
		if e.Stream == nil {
			t.Fatalf("no stream: %s", e.Got())
		}
		<-e.Stream.done
		all, end := e.Stream.Events()
		if len(all) != 2 || end != io.EOF || !e.Stream.EndedByServer() {
			t.Errorf("%d events, and the end %v", len(all), end)
		}

		e = client.Do(t.Context(), Request{Method: "POST", URL: server.URL + "/stream?open"}, 10*time.Second)
		for len(all) != 2 || end != nil {
			news := e.Stream.News()
			if all, end = e.Stream.Events(); len(all) < 2 {
				<-news
			}
		}
		e.Stream.Cut()
		if got, want := <-gone, e.Proto; got != want || !strings.Contains(got, "/"+version) {
			t.Errorf("the server saw the end of a stream over %s, want %s", got, want)
		}
		if e.Stream.EndedByServer() {
			t.Error("the server is said to have ended a stream that this side cut")
		}
		client.Close()
		server.Close()
	}
}

func TestRefused(t *testing.T) {
	server := httptest.NewUnstartedServer(partner(nil))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	own := server.TLS.Certificates[0]
	for name, id := range map[string]*Identity{"none": {Name: "none"}, "foreign": {Name: "foreign", Certificate: &own}} {
		client := NewClient(id, Options{CA: pool})
		e := client.Do(t.Context(), Request{Method: "POST", URL: server.URL + "/json"}, 10*time.Second)
		if !Refused(e.Err) {
			t.Errorf("%s: %v, want a refused handshake", name, e.Err)
		}
		client.Close()
	}
	if Refused(errors.New("another")) {
		t.Error("each error is said to be a refused handshake")
	}
}

func TestReceiver(t *testing.T) {
	r, err := Receive(Listening{}, []int{500, 200}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, news := r.Hooks()
	var statuses []int
	late := strings.TrimSuffix(r.URL, path.Base(r.URL)) + "OF-A-RECEIVER-BEFORE"
	for _, url := range []string{late, r.URL, r.URL, r.URL} {
		answer, err := http.Post(url, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		statuses = append(statuses, answer.StatusCode)
	}
	<-news
	hooks, _ := r.Hooks()
	if diff := cmp.Diff([]int{404, 500, 200, 200}, statuses); diff != "" || len(hooks) != 3 {
		t.Errorf("%d requests, and statuses (-want +got):\n%s", len(hooks), diff)
	}
}
