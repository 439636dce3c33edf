// SPDX-License-Identifier: Apache-2.0

// Command webhooks is a receiver of notifications.
package main

import (
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	maxBody = 64 << 20 // bytes
	maxAge  = 5 * time.Minute
	keep    = 7 * 24 * time.Hour
)

type notification struct {
	id   string
	body []byte
}

type receiver struct {
	key      ed25519.PublicKey
	token    string
	received chan notification
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if !rc.isGood(r.Header, body) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	select {
	case rc.received <- notification{r.Header.Get("webhook-id"), body}:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusServiceUnavailable) // it is sent again
	}
}

func (rc *receiver) isGood(h http.Header, body []byte) bool {
	token := h.Get("X-ACPS-AIP-Notification-Token")
	if subtle.ConstantTimeCompare([]byte(token), []byte(rc.token)) != 1 {
		return false
	}
	at := h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > maxAge {
		return false
	}
	message := []byte(h.Get("webhook-id") + "." + at + "." + string(body))
	for one := range strings.FieldsSeq(h.Get("webhook-signature")) {
		text, ok := strings.CutPrefix(one, "v1a,")
		signature, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && ed25519.Verify(rc.key, message, signature) {
			return true
		}
	}
	return false
}

// work acts once on each notification.
func (rc *receiver) work() {
	seen := make(map[string]time.Time)
	for n := range rc.received {
		for id, at := range seen {
			if time.Since(at) > keep {
				delete(seen, id)
			}
		}
		if _, again := seen[n.id]; again {
			continue
		}
		seen[n.id] = time.Now()
		var task struct {
			ID     string
			Status struct{ State string }
		}
		if err := json.Unmarshal(n.body, &task); err != nil {
			log.Print(err)
			continue
		}
		fmt.Println(task.ID, task.Status.State) // your work
	}
}

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_KEY"), "whpk_"))
	if err != nil || len(key) != ed25519.PublicKeySize {
		log.Fatal("WEBHOOK_KEY must be whpk_ and base64")
	}
	rc := &receiver{key: key, token: os.Getenv("WEBHOOK_TOKEN"), received: make(chan notification, 1000)}
	go rc.work()
	server := &http.Server{Addr: ":8080", Handler: rc, ReadTimeout: 30 * time.Second}
	log.Fatal(server.ListenAndServe())
}
