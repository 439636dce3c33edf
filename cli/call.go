// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// The exit statuses of `caddy aip call`, beside 0 and 1.
const (
	exitAnsweredError = 2 // the Partner answered a JSON-RPC error
	exitTaskEnded     = 3 // the task ended in another state than the command asks for
	exitInterrupted   = 130
)

// maxFile is the largest size of a sent file, in bytes.
const maxFile = 32 << 20

// callFlags are the flags of `caddy aip call`.
type callFlags struct {
	admin      adminFlags
	connection connectionFlags
	webhooks   webhookFlags
	task       string
	session    string
	data       []string
	files      []string
	metadata   string
	terms      task.Terms
	timeout    time.Duration
	json       bool
	after      uint64
	follow     bool
	dialect    string
}

func callCommand() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call <url>|<name>|<aic> start|stream|re-stream|continue|get|complete|cancel|webhook [<text>...]",
		Short: "Calls a Partner as a Leader",
		Long: `
Sends one command of a task to a Partner, as its Leader, and prints the answer.
The URL is the mount point of aip_gateway, or its rpc. A Partner of the gateway that runs on
this machine may also be given by its name, and one that a registry or a discovery
server knows by its AIC: it is called where its ACS says, in the version of AIP that
its ACS says, and only if its certificate has the AIC.

start makes a task and prints its id, which all other commands need. The agent
gets the texts, --data and --file, in this order. A start with the id of
an existing task changes nothing, and says so.

stream also starts a task, and prints its events, with their numbers, until the
agent finishes or needs input; with --follow, until the task ends. re-stream
prints the events of an existing task that follow the event --after, up to its
current state. Both resume a stream that is interrupted. When you press Ctrl-C,
or the command gives up, it prints the command that continues.

webhook set, get and delete manage the webhooks of a task, which may be started
later. A webhook gets a notification of every change of the task's state.

The Leader is the one in --cert. The Partner's certificate is always verified.
Anybody may get a certificate for any host name under the root of ACPs: give
--partner, and no other server than the one with this AIC is called.

Exit status:
  0  the Partner answered, and the task is running or ended as asked
  1  wrong usage, or the Partner cannot be reached or understood
  2  the Partner answered an error
  3  the task failed, was rejected or was canceled; or cancel or complete was
     sent, and the task is not canceled or completed
130  interrupted, for example by Ctrl-C; the task continues
`,
		Example: `  $ caddy aip call https://localhost:8443 start "Plan three days in Beijing"
  $ caddy aip call 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4 --registry https://registry.example start "hello"
  $ caddy aip call https://localhost:8443 stream "Plan three days in Beijing"
  $ caddy aip call https://localhost:8443 re-stream --task task-1 --after 7 --follow
  $ caddy aip call travel-planner get --task task-1
  $ caddy aip call https://localhost:8443 continue --task task-1 "Less walking"
  $ caddy aip call https://localhost:8443 get --task task-1
  $ caddy aip call https://localhost:8443 webhook set --task task-1 --token s3cret https://hooks.example.com/aip
  $ caddy aip call https://localhost:8443 webhook delete --task task-1
  $ caddy aip call https://localhost:8443 complete --task task-1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("call needs the URL or the name of a Partner and a command, such as: " +
					"call https://localhost:8443 start \"hello\"")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.task, "task", "", "the task's id (default for start: a new one)")
	flags.StringVar(&f.session, "session", "", "the session's id (default for start: a new one)")
	flags.StringArrayVar(&f.data, "data", nil, "a JSON object for the agent; may be repeated")
	flags.StringArrayVar(&f.files, "file", nil, "a file for the agent, a path or a URL; may be repeated")
	flags.StringVar(&f.metadata, "metadata", "", "a JSON object, the metadata of each text, --data and --file")
	flags.DurationVar(&f.terms.Response, "response-timeout", 0,
		"how long the Partner may take to answer start (default: the Partner's)")
	flags.DurationVar(&f.terms.AwaitingInput, "awaiting-input-timeout", 0,
		"how long the task waits for input before it is canceled (default: the Partner's)")
	flags.DurationVar(&f.terms.AwaitingCompletion, "awaiting-completion-timeout", 0,
		"how long a finished task waits for complete before it is completed (default: the Partner's)")
	flags.Int64Var(&f.terms.MaxProductsBytes, "max-products-bytes", 0,
		"the largest size of all products together (default: the Partner's)")
	flags.DurationVar(&f.timeout, "timeout", 0,
		"how long to wait for the answer (default: 60s, or 10s more than --response-timeout)")
	flags.Uint64Var(&f.after, "after", 0, "re-stream: the number of the last event that was received (default: none)")
	flags.BoolVar(&f.follow, "follow", false, "stream, re-stream: print events until the task ends")
	flags.StringVar(&f.dialect, "dialect", dialectV1,
		"the Partner's: aip (v01.00) or aip/2 (v02.00 to v02.02); of an AIC, as its ACS says")
	flags.BoolVar(&f.json, "json", false, "print the response, or each event, as JSON")
	f.webhooks.add(flags)
	f.connection.add(flags)
	f.admin.add(flags)
	cmd.RunE = exitStatus(f.run)
	return cmd
}

// leaderCall is one call of a Partner.
type leaderCall struct {
	*callFlags
	cmd      *cobra.Command
	url      string
	client   *leader.Client
	call     *task.Call
	last     uint64 // the number of the last event of the stream
	streamed bool
}

func (f *callFlags) run(cmd *cobra.Command, args []string) (int, error) {
	c := &leaderCall{callFlags: f, cmd: cmd}
	c.streamed = args[1] == "stream" || args[1] == string(task.ReStream)
	command := task.Command(args[1])
	if args[1] == "stream" {
		command = task.Start
	}
	var err error
	send := c.send
	if args[1] == "webhook" {
		c.call = new(task.Call)
		var method string
		var params any
		method, params, err = f.webhook(args[2:])
		send = func(ctx context.Context) (int, error) { return c.sendWebhook(ctx, method, params) }
	} else if c.call, err = f.call(command, args[2:]); err == nil && f.webhooks != (webhookFlags{}) {
		err = fmt.Errorf("--webhook and --token are for webhook, not for %s", command)
	}
	if err == nil && !c.streamed && (f.follow || f.after > 0) {
		err = fmt.Errorf("--follow and --after are for stream and re-stream, not for %s", command)
	}
	if err == nil {
		err = c.locate(args[0])
	}
	if err == nil {
		err = f.checkDialect()
	}
	if err != nil {
		return 1, err
	}
	if c.client, err = f.connection.client(c.url); err != nil {
		return 1, err
	}
	c.client.V2 = f.dialect == dialectV2
	defer c.client.Close()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	status, err := send(ctx)
	if err != nil && ctx.Err() != nil {
		return exitInterrupted, errors.New("interrupted" + c.resume(err))
	}
	var refused *leader.Error
	switch {
	case errors.As(err, &refused) && f.json:
		return exitAnsweredError, (&printer{w: cmd.OutOrStdout()}).raw(refused.Raw)
	case errors.As(err, &refused):
		return exitAnsweredError, errors.New(describe(refused) + f.connection.advice(refused))
	}
	return status, err
}

// The dialects of --dialect.
const (
	dialectV1 = "aip"
	dialectV2 = "aip/2"
)

// checkDialect refuses flags that the dialect does not have.
func (f *callFlags) checkDialect() error {
	switch {
	case f.dialect != dialectV1 && f.dialect != dialectV2:
		return fmt.Errorf("unknown dialect %q; use --dialect aip or aip/2", f.dialect)
	case f.dialect == dialectV1:
		return nil
	case f.terms.AwaitingInput != 0 || f.terms.AwaitingCompletion != 0:
		return errors.New("AIP 2 has no --awaiting-input-timeout and no --awaiting-completion-timeout")
	}
	return nil
}

// send sends the command and prints the Partner's answer.
func (c *leaderCall) send(ctx context.Context) (int, error) {
	out := printer{w: c.cmd.OutOrStdout()}
	m := &c.call.Message
	if c.streamed {
		if c.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.timeout)
			defer cancel()
		}
		return c.stream(ctx, out)
	}
	ctx, cancel := context.WithTimeout(ctx, c.wait())
	defer cancel()
	if _, err := c.existing(ctx); err != nil {
		return 1, c.explain(err)
	}
	waiting := c.progress("waiting for the answer")
	answer, err := c.client.Do(ctx, c.call)
	waiting.stop()
	if err != nil {
		return 1, c.explain(err)
	}
	switch {
	case c.json:
		err = out.raw(answer.Raw)
	case answer.Message != nil:
		err = out.message(answer.Message)
	default:
		err = out.task(answer.Task, m.Command)
	}
	if err != nil || answer.Task == nil {
		return 0, err
	}
	return verdict(m.Command, answer.Task.Status.State)
}

// existing reports whether the task of a start exists already, and says so. Only a task with an id chosen by the caller
// can. It also says so if the task of a continue takes no message now.
func (c *leaderCall) existing(ctx context.Context) (bool, error) {
	command := c.call.Message.Command
	if command != task.Continue && (command != task.Start || c.task == "") {
		return false, nil
	}
	t, err := c.get(ctx)
	var refused *leader.Error
	if errors.As(err, &refused) {
		return false, nil // there is no such task; after another refusal, start is answered with the same error
	}
	if err != nil || t == nil {
		return false, err
	}
	state := t.Status.State
	why, advice := "exists already", "send the message with continue"
	switch {
	case state.Terminal() && command == task.Continue:
		why, advice = "has ended", "start another one"
	case state.Terminal():
		advice = "it has ended, so choose another --task"
	case command == task.Continue && state.Settled():
		return false, nil
	case command == task.Continue:
		why, advice = "is "+string(state), "wait until the agent finishes or needs input: re-stream waits"
	}
	c.cmd.PrintErrf("The task %s %s: %s changes nothing, and the agent gets no message; %s.\n",
		clean(c.task), why, command, advice)
	return command == task.Start, nil
}

// get returns the task as it is now; nil if the Partner answers with something else.
func (c *leaderCall) get(ctx context.Context) (*task.Task, error) {
	m := task.Message{Command: task.Get, TaskID: c.call.Message.TaskID, SessionID: c.session}
	answer, err := c.client.Do(ctx, &task.Call{Message: m})
	if err != nil {
		return nil, err
	}
	return answer.Task, nil
}

// verdict returns the exit status of a command with its task in state s.
func verdict(c task.Command, s task.State) (int, error) {
	switch {
	case c == task.Cancel && s != task.Canceled:
		return exitTaskEnded, fmt.Errorf("the task was not canceled, it is %s", s)
	case c == task.Complete && s != task.Completed:
		return exitTaskEnded, fmt.Errorf("the task was not completed, it is %s", s)
	case s == task.Failed, s == task.Rejected, s == task.Canceled && c != task.Cancel:
		return exitTaskEnded, nil // the state was printed
	}
	return 0, nil
}

// call returns the call described by the flags.
func (f *callFlags) call(c task.Command, texts []string) (*task.Call, error) {
	call := &task.Call{Message: task.Message{Command: c, TaskID: f.task, SessionID: f.session}}
	switch c {
	case task.Start:
		if f.task == "" {
			call.Message.TaskID = leader.NewID("task")
		}
		if f.session == "" {
			call.Message.SessionID = leader.NewID("session")
		}
		call.Terms = f.terms
	case task.Continue, task.Get, task.Complete, task.Cancel, task.ReStream:
		if f.task == "" {
			return nil, fmt.Errorf("%s needs --task, the id that start prints", c)
		}
		if f.terms != (task.Terms{}) {
			return nil, fmt.Errorf("%s has no timeouts and no limit of products; start sets them", c)
		}
	default:
		return nil, fmt.Errorf("unknown command %q; use start, stream, re-stream, continue, get, complete, "+
			"cancel or webhook", c)
	}
	call.AfterSeq = f.after
	var err error
	call.Message.DataItems, err = f.items(texts)
	return call, err
}

func (f *callFlags) items(texts []string) ([]task.DataItem, error) {
	var items []task.DataItem
	for _, s := range texts {
		items = append(items, task.Text(s))
	}
	for _, s := range f.data {
		data, err := objectFlag("--data", s)
		if err != nil {
			return nil, err
		}
		items = append(items, task.DataItem{Kind: task.DataKind, Data: data})
	}
	for _, s := range f.files {
		item, err := fileItem(s)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	if f.metadata == "" {
		return items, nil
	}
	metadata, err := objectFlag("--metadata", f.metadata)
	if err == nil && len(items) == 0 {
		err = errors.New("--metadata is for a text, --data or --file, and there is none")
	}
	for i := range items {
		items[i].Metadata = metadata
	}
	return items, err
}

// objectFlag returns the value of a flag for a JSON object.
func objectFlag(flag, s string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(s), &object) != nil || object == nil {
		return nil, fmt.Errorf("%s must be a JSON object", flag)
	}
	return json.RawMessage(s), nil
}

// fileItem returns the file at a path with its content, or the one at a URL with its address only.
func fileItem(s string) (task.DataItem, error) {
	if strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://") {
		return task.DataItem{Kind: task.FileItem, URI: s}, nil
	}
	file, err := os.Open(s)
	if err != nil {
		return task.DataItem{}, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return task.DataItem{}, err
	case len(content) > maxFile:
		return task.DataItem{}, fmt.Errorf("%s has more than %d bytes; give its URL", s, maxFile)
	}
	kind, _, err := mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(s)))
	if err != nil {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(content))
	}
	return task.DataItem{
		Kind: task.FileItem, Name: filepath.Base(s), MIMEType: kind,
		Bytes: base64.StdEncoding.EncodeToString(content),
	}, nil
}

func (f *callFlags) wait() time.Duration {
	if f.timeout > 0 {
		return f.timeout
	}
	return max(time.Minute, f.terms.Response+10*time.Second)
}
