package config

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"time"

	hosts "ken/internal/address"
	"ken/internal/yamldoc"
)

// Chat says how conversations are led.
type Chat struct {
	// CondenseModel, PROVIDER/NAME, sums up what no longer fits. Empty, the
	// default, is the model itself.
	CondenseModel string

	// Effort says how long a model may think. Default empty: its own.
	Effort Effort

	// MaxTokens is the most of one answer. Zero, the default, is the model's.
	MaxTokens int

	// ModelTable is a file with rows of the table of models. Default none.
	ModelTable string

	// ToolDelivery says how found tools become callable. Default auto; the zero
	// value means the same.
	ToolDelivery ToolDelivery

	// CondenseAt is how full the window may be, in percent, before what was
	// said is summed up. Default 100: as full as it safely can be.
	CondenseAt int

	// PromptTokens is the most of the system prompt. Default 6000.
	PromptTokens int

	// IntentScope says how long an intent lasts. Default turn; the zero value
	// means the same. RememberIntents keeps it for the next turn. Default false.
	IntentScope     IntentScope
	RememberIntents bool

	// Escalation says whether a second, wider intent in one turn needs a
	// person's word. Default allow: the calls are asked about in any case.
	Escalation Escalation

	// The limits of one turn. Steps are requests to the model (default 50),
	// Mistakes bad calls in a row (3), Repeats the same call in a row (3), Calls
	// those of one answer (64), Rounds the questions of one call (10), Parallel
	// the calls at once that change nothing (8). Zero Requests, Cost and Tokens
	// are no limit; at one a person is asked whether to go on.
	Steps, Mistakes, Repeats, Calls, Rounds, Parallel int
	Requests, Tokens                                  int
	Cost                                              float64 // dollars

	// AnswerBytes is the most of one answer of the model's (default 4 MiB), and
	// ResultBytes the most of a call's result that it reads (100,000): the rest
	// is kept and read by its handle. InputBytes is the most of a message with
	// its pictures (64 MiB); a larger one is refused.
	AnswerBytes, ResultBytes, InputBytes int

	// MessageBytes is the most of a message that is shown whole; a longer one
	// is kept and read by its handle. Default 256 KiB.
	MessageBytes int

	// Keep is how long a session is kept after its last turn. Default 90 days;
	// zero is for ever.
	Keep time.Duration

	// ToolFailure says what becomes of a turn for which nothing could be found
	// because finding broke. Default fail_open: it goes on; the zero value means
	// the same.
	ToolFailure ToolFailure

	// Memory shows the end of the conversation before this one. Default false.
	Memory bool
}

// An Effort says how long a model may think.
type Effort string

// ToolDelivery says how found tools become callable.
type ToolDelivery string

// IntentScope says how long an intent lasts.
type IntentScope string

// ToolFailure says what becomes of a turn when finding breaks.
type ToolFailure string

const (
	FailOpen   ToolFailure = "fail_open"
	FailClosed ToolFailure = "fail_closed"
)

// Escalation says what a wider intent needs.
type Escalation string

const (
	IntentTurn    IntentScope = "turn"
	IntentRequest IntentScope = "request" // the literal rule of the third seed document

	EscalationAsk   Escalation = "ask"
	EscalationAllow Escalation = "allow"

	DeliverAuto ToolDelivery = "auto"
)

const leastCondense = 5

// Skills says which skills are in every prompt, and which are nowhere.
type Skills struct {
	Always []string // ids or names; default none
	Off    []string // default none
}

// A Hook is a command that is asked before a call.
type Hook struct {
	Name    string
	Command []string
	Dir     string        // where a relative command starts: the folder of the file that names it
	Tools   []string      // ids or names, with *; empty is all
	Timeout time.Duration // zero is 10s
}

// Trace says where what happened is told besides the trail.
type Trace struct {
	// OTLP is where spans are sent, as in http://127.0.0.1:4318. Default none.
	OTLP string

	// Orchestration reads .orchestration/active_intents.yaml where it exists,
	// and writes agent_trace.jsonl beside it. Default auto; the zero value
	// means the same.
	Orchestration Orchestration
}

// Orchestration says whether the folder of that name is used.
type Orchestration string

const (
	OrchestrationAuto Orchestration = "auto" // where it exists
	OrchestrationOff  Orchestration = "off"
)

func defaultChat() Chat {
	return Chat{
		ToolDelivery: DeliverAuto, CondenseAt: 100, PromptTokens: 6000, IntentScope: IntentTurn, Escalation: EscalationAllow, ToolFailure: FailOpen,
		Steps: 50, Mistakes: 3, Repeats: 3, Calls: 64, Rounds: 10, Parallel: 8,
		AnswerBytes: 4 << 20, ResultBytes: 100_000, InputBytes: 64 << 20, MessageBytes: 256 << 10, Keep: 90 * day,
	}
}

func chatSettings() []setting[Config] {
	return []setting[Config]{
		entry("chat.condenseModel", "The model that summarises, as PROVIDER/NAME; empty: the chat model.",
			func(c *Config) *string { return &c.Chat.CondenseModel }, text(checkModel)),
		entry("chat.effort", "Reasoning effort: low, medium, high, or default.",
			func(c *Config) *Effort { return &c.Chat.Effort }, effort()),
		entry("chat.maxTokens", "Maximum tokens of one answer; 0: the model's own limit.",
			func(c *Config) *int { return &c.Chat.MaxTokens }, whole(0, mostTokens)),
		entry("chat.modelTable", "A file with your own rows for the model table: windows, prices, abilities.",
			func(c *Config) *string { return &c.Chat.ModelTable }, path()),
		entry("chat.toolDelivery", "How found tools become callable: auto, inline, search, bridge, whole, extend or per_turn.",
			func(c *Config) *ToolDelivery { return &c.Chat.ToolDelivery },
			word[ToolDelivery](DeliverAuto, "inline", "search", "bridge", "whole", "extend", "per_turn").fixed()),
		entry("chat.condenseAt", "How full the context window may be, in percent from 5 to 100, before the conversation is summarised.",
			func(c *Config) *int { return &c.Chat.CondenseAt }, whole(leastCondense, 100)),
		entry("chat.promptTokens", "Maximum tokens of the system prompt.",
			func(c *Config) *int { return &c.Chat.PromptTokens }, whole(500, mostTokens)),
		entry("chat.intentScope", "How long a declared intent lasts: turn, or request (one request to the model).",
			func(c *Config) *IntentScope { return &c.Chat.IntentScope }, word(IntentRequest, IntentTurn)),
		entry("chat.rememberIntents", "Start a turn with the intent at the end of the last one.",
			func(c *Config) *bool { return &c.Chat.RememberIntents }, boolean()),
		entry("chat.escalation", "A second, broader intent in one turn: allow (its calls are checked in any case), or ask for approval.",
			func(c *Config) *Escalation { return &c.Chat.Escalation }, word(EscalationAsk, EscalationAllow)),
		entry("chat.toolFailureMode", "If the search for capabilities fails: fail_open (continue the turn with less) or fail_closed (end it).",
			func(c *Config) *ToolFailure { return &c.Chat.ToolFailure }, word(FailClosed, FailOpen)),
		entry("chat.steps", "Maximum requests to the model in one turn; then the turn ends, unless a person continues it.",
			func(c *Config) *int { return &c.Chat.Steps }, whole(1, 10_000)),
		entry("chat.mistakes", "How many invalid calls in a row end a turn, unless a person continues it.",
			func(c *Config) *int { return &c.Chat.Mistakes }, whole(1, 1000)),
		entry("chat.repeats", "How often the same call may be made in a row; then the turn ends, unless a person continues it.",
			func(c *Config) *int { return &c.Chat.Repeats }, whole(1, 1000)),
		entry("chat.calls", "Maximum calls per answer; further calls are not made, and the model is told why.",
			func(c *Config) *int { return &c.Chat.Calls }, whole(1, 10_000)),
		entry("chat.rounds", "Maximum questions of one call to a person.",
			func(c *Config) *int { return &c.Chat.Rounds }, whole(1, 1000)),
		entry("chat.parallel", "Maximum read-only calls at the same time.",
			func(c *Config) *int { return &c.Chat.Parallel }, whole(1, 256)),
		entry("chat.requests", "Ask a person whether to continue after this many requests of a turn; 0: never.",
			func(c *Config) *int { return &c.Chat.Requests }, whole(0, 10_000)),
		entry("chat.tokens", "Ask a person whether to continue after this many tokens of a turn; 0: never.",
			func(c *Config) *int { return &c.Chat.Tokens }, whole(0, 1_000_000_000)),
		entry("chat.cost", "Ask a person whether to continue after this many dollars of a turn; 0: never.",
			func(c *Config) *float64 { return &c.Chat.Cost }, dollars()),
		entry("chat.answerBytes", "Maximum size of one answer, 1KiB to 6MiB; a longer one is cut, and the turn ends.",
			func(c *Config) *int { return &c.Chat.AnswerBytes }, size[int](1024, 6*mib)),
		entry("chat.resultBytes", "How much of a result the model reads, 1KiB to 1MiB; the rest can be read by its handle.",
			func(c *Config) *int { return &c.Chat.ResultBytes }, size[int](1024, mib)),
		entry("chat.inputBytes", "Maximum size of a message with images, 1KiB to 64MiB; a larger one is rejected.",
			func(c *Config) *int { return &c.Chat.InputBytes }, size[int](1024, 64*mib)),
		entry("chat.messageBytes", "Maximum size of a message shown in full; a longer one is stored and read by its handle.",
			func(c *Config) *int { return &c.Chat.MessageBytes }, size[int](1024, 16*mib)),
		entry("chat.keep", "How long a session is kept after its last turn; 0s: forever.",
			func(c *Config) *time.Duration { return &c.Chat.Keep }, duration(0, 3650*day, identical)),
		entry("chat.memory", "Show the model the end of the previous conversation.",
			func(c *Config) *bool { return &c.Chat.Memory }, boolean()),
		entry("skills.always", "Ids or names of skills whose text is in every system prompt.",
			func(c *Config) *[]string { return &c.Skills.Always }, texts("skills", subset, nil)),
		entry("skills.off", "Ids or names of skills that are turned off, with their tools.",
			func(c *Config) *[]string { return &c.Skills.Off }, texts("skills", anything[[]string], union)),
		entry("hooks", "Programs that are asked before calls and may deny or narrow them, as in {lint: {command: [./check.sh], tools: [write_to_file]}}.",
			func(c *Config) *[]Hook { return &c.Hooks }, hooks()),
		entry("trace.otlp", "Where OpenTelemetry spans are sent, such as http://127.0.0.1:4318: an https address, or http on this machine; empty: nowhere.",
			func(c *Config) *string { return &c.Trace.OTLP }, text(checkOTLP)),
		entry("trace.orchestration", "If the folder .orchestration exists, auto limits calls to its scopes and writes agent_trace.jsonl; off ignores it.",
			func(c *Config) *Orchestration { return &c.Trace.Orchestration }, word(OrchestrationAuto, OrchestrationOff)),
	}
}

// effort reads "default" as nothing.
func effort() kind[Effort] {
	k := word[Effort]("low", "medium", "high", "default").fixed()
	parse := k.parse
	k.parse = func(r *reading, at spot, v yamldoc.Value) (Effort, bool) {
		e, ok := parse(r, at, v)
		if e == "default" {
			e = ""
		}
		return e, ok
	}
	k.show = func(e Effort) any {
		if e == "" {
			return "default"
		}
		return string(e)
	}
	k.noWider = func(a, b Effort) bool { return a == b }
	return k
}

// dollars are an amount of which zero is no limit.
func dollars() kind[float64] {
	return upTo(1_000_000, "write a number of dollars", func(a, b float64) bool { return b == 0 || a != 0 && a <= b })
}

func checkOTLP(s string) (fix string, err error) {
	if s == "" {
		return "", nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "write http://127.0.0.1:4318", errors.New("is not an address")
	case hosts.Unprotected(u):
		return "write https://" + u.Host + u.Path, errors.New("would send names of calls, people and sessions unprotected over the network")
	}
	return "", nil
}

func hookSettings() []setting[Hook] {
	return []setting[Hook]{
		entry("command", "", func(h *Hook) *[]string { return &h.Command }, arguments()),
		entry("tools", "", func(h *Hook) *[]string { return &h.Tools }, ids("ids or names", nil, nil)),
		entry("timeout", "", func(h *Hook) *time.Duration { return &h.Timeout }, duration(time.Millisecond, 10*time.Minute, noMore)),
	}
}

// hooks maps names to commands, in the order of the file: a project's file has
// no say in what is started.
func hooks() kind[[]Hook] {
	return kind[[]Hook]{
		empty:   true,
		form:    mapForm(tableForm(hookSettings())),
		noWider: func(a, b []Hook) bool { return reflect.DeepEqual(a, b) },
		parse:   parseHooks,
		show: func(list []Hook) any {
			out := &yamldoc.Map{}
			for i := range list {
				m := &yamldoc.Map{}
				for _, e := range hookSettings() {
					v := e.show(&list[i])
					if items, isList := v.([]yamldoc.Value); v == "0s" || isList && len(items) == 0 {
						continue
					}
					m.Fields = append(m.Fields, yamldoc.Field{Key: e.name, Value: yamldoc.Value{Any: v}})
				}
				out.Fields = append(out.Fields, yamldoc.Field{Key: list[i].Name, Value: yamldoc.Value{Any: m}})
			}
			return out
		},
	}
}

func parseHooks(r *reading, at spot, v yamldoc.Value) ([]Hook, bool) {
	var out []Hook
	ok := named(r, at, v, "hook", "{command: [./check.sh]}", func(where spot, name string, about *yamldoc.Map) {
		h := Hook{Name: name, Dir: r.dir}
		known := len(r.problems)
		decode(r, where.key+".", about, hookSettings(), &h)
		if len(r.problems) > known {
			return // a command that is wrong is not missing too
		}
		if len(h.Command) == 0 || strings.TrimSpace(h.Command[0]) == "" {
			r.fault(where, "bad-value", "write command: [program, argument]", "%s has no command", where.key)
		}
		out = append(out, h)
	})
	return out, ok
}
