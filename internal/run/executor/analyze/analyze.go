// Package analyze implements the runners analyze.response and analyze.schema:
// one summarises an earlier result of the session or a text, the other
// validates it against a JSON Schema and repairs what it can.
//
// A model is asked if there is one. If there is none, or it does not answer,
// rules do what they can and the result says why. What is analysed was written
// by others: it goes to the model fenced as data, and the model has no tools,
// so that a text which gives orders moves nothing but words.
package analyze

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/result"
	"ken/llm"
)

// The runners, and the permission that they need.
const (
	RunnerResponse = "analyze.response"
	RunnerSchema   = "analyze.schema"

	PermLLM = "llm"
)

// Config says what an [Executor] works with. Results and Lookup are required.
type Config struct {
	// Results are what calls returned. The store stays the caller's.
	Results *result.Store

	// Lookup returns the capability that a call means, and the usage document of
	// the one whose result is analysed.
	Lookup executor.Lookup

	// Model returns the model to ask. It is called once in a call, after the call
	// was decided on. An error, a nil model, and a nil Model mean that rules
	// answer; the error's words become the reason.
	Model func(context.Context) (llm.Model, error)

	// InputTokens bounds what is sent of a result, fences included: zero means
	// 12,000, and less than 512 means 512. A longer text is sent as its
	// beginning and its end. UsageTokens bounds each usage document: zero means
	// 1,500, and less than 128 means 128.
	InputTokens int
	UsageTokens int

	// MaxTokens bounds the answer of analyze.response. Zero: 1,500.
	MaxTokens int

	// Timeout is how long the model may take. Zero: 60 s. A call that has less
	// time leaves a tenth of it for the rules.
	Timeout time.Duration

	// Key makes the fences a secret of this installation.
	Key []byte
}

// An Executor analyses. It is safe for any number of goroutines. Whose results
// it reads is in the call: no caller reads those of another principal or session.
type Executor struct{ cfg Config }

// New makes an Executor.
func New(cfg Config) (*Executor, error) {
	if cfg.Results == nil || cfg.Lookup == nil {
		return nil, &capability.Error{
			Kind: capability.Invalid, Op: "make the executor", Target: "analyze.*",
			Err: errors.New("missing results or catalog"), Fix: "set Config.Results and Config.Lookup",
		}
	}
	positive := func(n *int, standard int) {
		if *n <= 0 {
			*n = standard
		}
	}
	positive(&cfg.InputTokens, 12_000)
	positive(&cfg.UsageTokens, 1500)
	positive(&cfg.MaxTokens, 1500)
	cfg.InputTokens, cfg.UsageTokens = max(cfg.InputTokens, 512), max(cfg.UsageTokens, 128)
	if cfg.Timeout <= 0 {
		cfg.Timeout = time.Minute
	}
	return &Executor{cfg}, nil
}

const (
	responseProperty = `"response":{"type":"string","description":"last (the newest result of this session), a handle, or the text itself; last when left out"},` +
		`"succeeded":{"type":"boolean","description":"With last: leave failures out"}`

	// ResponseSchema and SchemaSchema are the JSON Schemas of the arguments.
	ResponseSchema = `{"type":"object","properties":{` + responseProperty +
		`,"question":{"type":"string","x-ken-rest":true,"description":"What to find out; a summary when left out"}},"additionalProperties":false}`
	SchemaSchema = `{"type":"object","properties":{` + responseProperty +
		`,"schema":{"type":"object","description":"JSON Schema, draft 2020-12 or 07, that the text must fit"}},"required":["schema"],"additionalProperties":false}`
)

// Tools returns the tools that this executor carries out by themselves. Any other
// capability whose recipe names one of the runners is carried out too.
func Tools() []executor.Tool {
	tool := func(name, runner, schema, description string, tags ...string) executor.Tool {
		return executor.Tool{
			Capability: capability.Capability{
				ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name, Category: "results",
				Description: description, Tags: tags, Permissions: []string{PermLLM},
				Run:     &capability.Recipe{Runner: runner},
				Effects: capability.Effects{ReadOnly: capability.Yes, Idempotent: capability.Yes, OpenWorld: capability.No, Destructive: capability.No},
			},
			Detail: capability.Detail{Schema: json.RawMessage(schema)},
		}
	}
	return []executor.Tool{
		tool("analyze_response", RunnerResponse, ResponseSchema,
			"Explain an earlier result of this session, or a text: what it is, what matters in it, and the answer to a question about it.",
			"analyze", "summarize", "explain", "result", "output"),
		tool("analyze_schema", RunnerSchema, SchemaSchema,
			"Check that an earlier result of this session, or a text, is JSON that fits a JSON Schema; repair its form where that is possible, and name what is wrong by path.",
			"analyze", "validate", "schema", "json", "repair"),
	}
}

// Facts checks the arguments. It reads no result and asks no model.
func (e *Executor) Facts(_ context.Context, call capability.Call, c *capability.Capability) (executor.Facts, error) {
	in, err := read(call, c)
	if err == nil && in.runner == RunnerSchema {
		_, err = compile(in.schema)
		if err != nil {
			err = badSchema(call, err)
		}
	}
	return executor.Facts{Required: []string{PermLLM}}, err
}

// Invoke analyses. A text that does not fit its schema is a failed result.
func (e *Executor) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	c, own, err := e.cfg.Lookup(ctx, call.Target)
	if err != nil {
		return capability.Result{}, err
	}
	in, err := read(call, c)
	if err != nil {
		return capability.Result{}, err
	}
	m, err := e.material(ctx, call, in)
	if err != nil {
		if ctx.Err() != nil {
			err = ended(ctx, call)
		}
		return capability.Result{}, err
	}
	if in.runner == RunnerSchema {
		return e.fit(ctx, call, in, m)
	}
	return e.explain(ctx, call, in, m, own)
}

// ended says that the call was stopped.
func ended(ctx context.Context, call capability.Call) error {
	kind := capability.Unavailable
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = capability.Timeout
	}
	return &capability.Error{Kind: kind, Op: "analyze with", Target: string(call.Target), Err: ctx.Err()}
}

// wanted are the arguments of a call.
type wanted struct {
	runner    string
	response  string
	succeeded bool
	question  string
	schema    json.RawMessage
}

// mostQuestion is how many characters a question has at most.
const mostQuestion = 4000

// read returns the arguments. A command that declares none takes words: what to
// analyse, and then the question or the schema.
func read(call capability.Call, c *capability.Capability) (wanted, error) {
	var in wanted
	if c != nil && c.Run != nil {
		in.runner = c.Run.Runner
	}
	var words []string
	switch in.runner {
	case RunnerResponse:
		args, err := executor.Decode[struct {
			Response  string   `json:"response"`
			Question  string   `json:"question"`
			Succeeded bool     `json:"succeeded"`
			Args      []string `json:"args"`
		}](call)
		if err != nil {
			return in, err
		}
		in.response, in.question, in.succeeded, words = args.Response, args.Question, args.Succeeded, args.Args
	case RunnerSchema:
		args, err := executor.Decode[struct {
			Response  string          `json:"response"`
			Schema    json.RawMessage `json:"schema"`
			Succeeded bool            `json:"succeeded"`
			Args      []string        `json:"args"`
		}](call)
		if err != nil {
			return in, err
		}
		in.response, in.schema, in.succeeded, words = args.Response, args.Schema, args.Succeeded, args.Args
	default:
		return in, &capability.Error{
			Kind: capability.Invalid, Op: "run", Target: string(call.Target), Rule: "run.runner",
			Err: fmt.Errorf("unknown runner %.40q", in.runner), Fix: "the runners are " + RunnerResponse + " and " + RunnerSchema,
		}
	}
	in.words(words)
	return in, in.check(call)
}

// words spreads the words of a command over the arguments that were not given.
func (in *wanted) words(words []string) {
	if len(words) == 0 {
		return
	}
	rest := strings.Join(words[1:], " ")
	switch {
	case in.response != "":
		rest = strings.Join(words, " ")
	case in.runner == RunnerSchema || isLast(words[0]) || isHandle(words[0]):
		in.response = words[0]
	default:
		in.response, rest = strings.Join(words, " "), ""
	}
	if in.runner == RunnerResponse && in.question == "" {
		in.question = rest
	}
	if in.runner == RunnerSchema && len(in.schema) == 0 {
		in.schema = json.RawMessage(rest)
	}
}

func (in *wanted) check(call capability.Call) error {
	if in.response == "" {
		in.response = "last"
	}
	if n := utf8.RuneCountInString(in.question); n > mostQuestion {
		return executor.BadArguments(call, fmt.Errorf("the question has %d characters, more than %d", n, mostQuestion), "ask a shorter one, and give the text as response")
	}
	if n := utf8.RuneCountInString(in.response); n > result.Whole {
		return executor.BadArguments(call, fmt.Errorf("the text has %d characters, more than %d", n, result.Whole), "give a part of it")
	}
	if in.runner == RunnerSchema && len(in.schema) == 0 {
		return executor.BadArguments(call, errors.New("missing schema"), "give a JSON Schema as schema")
	}
	return nil
}
