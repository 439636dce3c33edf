// SPDX-License-Identifier: Apache-2.0

// Package client is what the clients here have in common: their command line, and what they print.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"
)

// Caller is the client of one SDK, talking to one agent.
type Caller interface {
	Card(context.Context) (Result, error)
	Send(context.Context, Message) (Result, error)
	Stream(context.Context, Message) iter.Seq2[Result, error]
	Get(ctx context.Context, id string) (Result, error)
	Cancel(ctx context.Context, id string) (Result, error)
	Resubscribe(ctx context.Context, id string) iter.Seq2[Result, error]
	PushSet(ctx context.Context, id, url, token string) (Result, error)
	// PushGet asks for a configuration by its id, which may be empty.
	PushGet(ctx context.Context, id, config string) (Result, error)
}

// Lister is a Caller whose protocol has a list of tasks.
type Lister interface {
	List(context.Context) (Result, error)
}

// Message is what the agent gets.
type Message struct {
	Text    string
	Task    string // of an earlier turn, or empty
	Context string // likewise
}

// Result is an answer, or an event of a stream.
type Result struct {
	Kind  string // card, task, message, status-update, artifact-update, push-config or tasks
	Value any    // the SDK's own type, which knows its own JSON
}

// Connect returns a Caller for the agent that the options name.
type Connect func(context.Context, Options) (Caller, error)

// Main carries out a command line and ends the process: with 1 and the error on stderr when it failed, with 2 when it
// was not understood. register adds the flags that only this client has.
func Main(args []string, register func(*flag.FlagSet) Connect) {
	err := Run(args, os.Stdout, register)
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	if errors.As(err, new(usageError)) {
		os.Exit(2)
	}
	os.Exit(1)
}

// usageError is an error of who wrote the command line.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// commands says how many words each command takes after its name: at least, at most. A text is any number of words.
var commands = map[string]struct {
	words       string
	least, most int
}{
	"card":        {"", 0, 0},
	"send":        {"TEXT", 1, 1000},
	"stream":      {"TEXT", 1, 1000},
	"get":         {"ID", 1, 1},
	"cancel":      {"ID", 1, 1},
	"resubscribe": {"ID", 1, 1},
	"list":        {"", 0, 0},
	"push-set":    {"ID URL TOKEN", 3, 3},
	"push-get":    {"ID [CONFIG]", 1, 2},
}

// Run carries out a command line, and writes one line of JSON for each result and event as it comes.
func Run(args []string, out io.Writer, register func(*flag.FlagSet) Connect) error {
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var o Options
	o.register(flags)
	var m Message
	flags.StringVar(&m.Task, "task", "", "send, stream: the `ID` of a task to continue")
	flags.StringVar(&m.Context, "context", "", "send, stream: the `ID` of the context")
	seconds := flags.Int("timeout", 60, "how many `seconds` everything may take")
	connect := register(flags)
	words, err := interleaved(flags, args)
	if err != nil {
		return usage("%w", err)
	}
	if len(words) == 0 {
		return usage("say what to do: card, send, stream, get, cancel, resubscribe, list, push-set or push-get")
	}
	command, words := words[0], words[1:]
	takes, known := commands[command]
	switch {
	case !known:
		return usage("there is no command %q", command)
	case len(words) < takes.least || len(words) > takes.most:
		return usage("%s takes: %s", command, takes.words)
	case command == "card" && o.URL == "" || o.URL == "" && o.Endpoint == "":
		return usage("name the agent with -url")
	case command == "card":
		o.Endpoint = "" // the card is asked for, not circumvented
	}
	m.Text = strings.Join(words, " ")

	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(*seconds)*time.Second)
	defer cancel()
	caller, err := connect(ctx, o)
	if err != nil {
		return err
	}
	for r, err := range perform(ctx, caller, command, words, m) {
		if err == nil {
			err = r.write(out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func perform(ctx context.Context, c Caller, command string, words []string, m Message) iter.Seq2[Result, error] {
	switch command {
	case "stream":
		return c.Stream(ctx, m)
	case "resubscribe":
		return c.Resubscribe(ctx, words[0])
	}
	return func(yield func(Result, error) bool) {
		switch command {
		case "card":
			yield(c.Card(ctx))
		case "send":
			yield(c.Send(ctx, m))
		case "get":
			yield(c.Get(ctx, words[0]))
		case "cancel":
			yield(c.Cancel(ctx, words[0]))
		case "push-set":
			yield(c.PushSet(ctx, words[0], words[1], words[2]))
		case "push-get":
			yield(c.PushGet(ctx, words[0], strings.Join(words[1:], "")))
		case "list":
			if l, ok := c.(Lister); ok {
				yield(l.List(ctx))
			} else {
				yield(Result{}, usage("this protocol has no list of tasks"))
			}
		}
	}
}

// interleaved parses a command line whose flags may stand anywhere, and returns its other words.
func interleaved(flags *flag.FlagSet, args []string) ([]string, error) {
	var words []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return words, nil
		}
		words, args = append(words, flags.Arg(0)), flags.Args()[1:]
	}
}

// write writes the result as one line. The SDK's JSON may have a kind of its own, which then is ours.
func (r Result) write(out io.Writer) error {
	b, err := json.Marshal(r.Value)
	if err != nil {
		return fmt.Errorf("the SDK cannot write its own %s: %w", r.Kind, err)
	}
	var own struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(b, &own); err != nil {
		return fmt.Errorf("the SDK's %s is no JSON object: %w", r.Kind, err)
	}
	if own.Kind == "" {
		comma := ","
		if string(b) == "{}" {
			comma = ""
		}
		b = fmt.Appendf(nil, `{"kind":%q%s%s`, r.Kind, comma, b[1:])
	}
	_, err = out.Write(append(b, '\n'))
	return err
}
