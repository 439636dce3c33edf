// SPDX-License-Identifier: Apache-2.0

// Package model is what takes the place of a language model in the agents of this folder that people run: it answers by
// rule, and needs no network. The first word of what a user says is what it does:
//
//	stream N MS   says N words, "w0 " and so on, one every MS milliseconds
//	slow S        says "so ", works in silence for S seconds, and says "I slept S"
//	fail          says three words, and then fails
//	big K         says K kilobytes at once
//	recall        says how many messages of users it sees
//
// Anything else is echoed. An agent that can ask a user asks on "ask". model.mjs says the same for JavaScript.
package model

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrBroke is how a model fails in the middle of what it says.
var ErrBroke = errors.New("the model broke in mid-run")

// What is asked for over the network is bounded, so that no message keeps an agent busy for ever.
const (
	maxWords = 10_000
	maxPause = time.Minute
	maxBytes = 10_000 // kilobytes
)

// Say says piece by piece what the model answers to a text, where it sees so many messages of users.
func Say(ctx context.Context, text string, seen int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		words := append(strings.Fields(text), "", "", "")
		switch words[0] {
		case "stream":
			for i := range number(words[1], maxWords) {
				if err := pause(ctx, time.Duration(number(words[2], int(maxPause.Milliseconds())))*time.Millisecond); err != nil {
					yield("", err)
					return
				}
				if !yield(fmt.Sprintf("w%d ", i), nil) {
					return
				}
			}
		case "slow":
			if !yield("so ", nil) {
				return
			}
			if err := pause(ctx, time.Duration(number(words[1], int(maxPause.Seconds())))*time.Second); err != nil {
				yield("", err)
				return
			}
			yield("I slept "+words[1], nil)
		case "fail":
			for i := range 3 {
				if !yield(fmt.Sprintf("w%d ", i), nil) {
					return
				}
			}
			yield("", ErrBroke)
		case "big":
			yield(numbers(1024*number(words[1], maxBytes)), nil)
		case "recall":
			yield(fmt.Sprintf("I see %d of your messages", seen), nil)
		default:
			yield("echo: "+text, nil)
		}
	}
}

// numbers returns a text of so many bytes that does not repeat itself, since Gemini CLI stops a model that does.
func numbers(size int) string {
	var text strings.Builder
	for i := 0; text.Len() < size; i++ {
		text.WriteString(strconv.Itoa(i) + " ")
	}
	return text.String()[:size]
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// number returns a word as a number from 0 to most.
func number(word string, most int) int {
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 {
		return 0
	}
	return min(n, most)
}

// Serve listens at the address of the flag -addr, says on stdout that it does, and serves what serve returns for the
// URL, until the listener breaks.
func Serve(serve func(url string) (http.Handler, error)) error {
	address := flag.String("addr", "127.0.0.1:0", "`host:port` to listen on")
	flag.Parse()
	l, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	handler, err := serve("http://" + l.Addr().String())
	if err != nil {
		return err
	}
	fmt.Println("listening on", l.Addr())
	return (&http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}).Serve(l)
}
