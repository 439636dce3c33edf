// SPDX-License-Identifier: Apache-2.0

// Command adk-go is an agent on Google's ADK for Go v2.0.0, as its example of A2A has it, with a model by rule. On
// "ask" its model calls a long-running tool, which ADK shows as a question. As "adk-go call [-stream] URL TEXT..." it
// is ADK's remote agent: it says the texts to the agent at URL, in one session, and prints what it has of each.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/remoteagent/v2"
	adkmodel "google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	adka2a "google.golang.org/adk/v2/server/adka2a/v2"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/aip-gateway/aip-gateway/test/interop/model"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != "call" {
		log.Fatal(model.Serve(serve))
	}
	if err := call(os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

// call says texts to a remote agent.
func call(args []string) error {
	flags := flag.NewFlagSet("call", flag.ExitOnError)
	stream := flags.Bool("stream", false, "have each answer as a stream")
	if _ = flags.Parse(args); flags.NArg() < 2 { // an error has ended the program
		return errors.New("say what to call, and what to say: call [-stream] URL TEXT...")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	remote, err := remoteagent.NewA2A(remoteagent.A2AConfig{Name: "remote",
		AgentCardProvider: remoteagent.NewAgentCardProvider(flags.Arg(0))})
	if err != nil {
		return err
	}
	run, err := runner.New(runner.Config{AppName: "caller", Agent: remote, SessionService: session.InMemoryService(),
		AutoCreateSession: true})
	if err != nil {
		return err
	}
	how := agent.RunConfig{StreamingMode: agent.StreamingModeNone}
	if *stream {
		how.StreamingMode = agent.StreamingModeSSE
	}
	for _, text := range flags.Args()[1:] {
		pieces, whole, failure := 0, "", ""
		for e, err := range run.Run(ctx, "user", "session", genai.NewContentFromText(text, genai.RoleUser), how) {
			if err != nil {
				return err
			}
			failure += e.ErrorMessage
			if e.Partial {
				pieces++
			} else if e.Content != nil {
				for _, part := range e.Content.Parts {
					whole += part.Text
				}
			}
		}
		fmt.Printf("in pieces: %t, whole: %q, failure: %q\n", pieces > 0, whole, failure)
	}
	return nil
}

func serve(url string) (http.Handler, error) {
	colour, err := functiontool.New(functiontool.Config{Name: "colour", Description: "asks for a colour",
		IsLongRunning: true}, func(agent.Context, struct{}) (map[string]string, error) {
		return map[string]string{"status": "pending"}, nil
	})
	if err != nil {
		return nil, err
	}
	one, err := llmagent.New(llmagent.Config{Name: "adk_go", Description: "answers by rule", Model: rule{},
		Tools: []tool.Tool{colour}})
	if err != nil {
		return nil, err
	}
	card := &a2a.AgentCard{
		Name: one.Name(), Description: "ADK for Go", Version: "1",
		SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(url+"/invoke", a2a.TransportProtocolJSONRPC)},
		DefaultInputModes:   []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Skills: adka2a.BuildAgentSkills(one), Capabilities: a2a.AgentCapabilities{Streaming: true},
	}
	executor := adka2a.NewExecutor(adka2a.ExecutorConfig{
		RunnerConfig: runner.Config{AppName: one.Name(), Agent: one, SessionService: session.InMemoryService()},
		RunConfig:    agent.RunConfig{StreamingMode: agent.StreamingModeSSE},
	})
	mux := http.NewServeMux()
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
	mux.Handle("/invoke", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(executor)))
	return mux, nil
}

// rule is the model.
type rule struct{}

func (rule) Name() string { return "rule" }

// GenerateContent answers the last message, in pieces where it is to stream.
func (rule) GenerateContent(ctx context.Context, q *adkmodel.LLMRequest, stream bool) iter.Seq2[*adkmodel.LLMResponse,
	error] {
	return func(yield func(*adkmodel.LLMResponse, error) bool) {
		text, seen := "", 0
		for _, content := range q.Contents {
			if text = ""; content.Role != genai.RoleUser {
				continue
			}
			for _, part := range content.Parts {
				if r := part.FunctionResponse; r == nil {
					text += part.Text
				} else if said, ok := r.Response["result"].(string); ok {
					text += "you said: " + said
				} else {
					text += "I wait"
				}
			}
			seen++
		}
		if text == "ask" {
			yield(&adkmodel.LLMResponse{Content: &genai.Content{Role: genai.RoleModel,
				Parts: []*genai.Part{genai.NewPartFromFunctionCall("colour", map[string]any{})}}}, nil)
			return
		}
		var all strings.Builder
		for piece, err := range model.Say(ctx, text, seen) {
			if err != nil {
				yield(nil, err)
				return
			}
			all.WriteString(piece)
			if stream && !yield(&adkmodel.LLMResponse{Content: genai.NewContentFromText(piece, genai.RoleModel),
				Partial: true}, nil) {
				return
			}
		}
		yield(&adkmodel.LLMResponse{Content: genai.NewContentFromText(all.String(), genai.RoleModel),
			TurnComplete: true}, nil)
	}
}
