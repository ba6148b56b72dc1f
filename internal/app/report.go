package app

import (
	"strconv"
	"strings"
	"time"

	"ken/internal/config"
	"ken/internal/config/orchestration"
	"ken/internal/find/outcome"
	"ken/internal/govern/trace"
	"ken/internal/talk/event"
)

// newReporter returns who reports calls and turns to those who follow the work
// from outside.
func (a *App) newReporter() *trace.Reporter {
	r := &trace.Reporter{
		Workspace: a.Places.Workspace, Log: a.log, Rules: a.Rules,
		Lookup: a.capability,
	}
	if a.Settings.Trace.Orchestration != config.OrchestrationOff {
		r.File = trace.NewFile(orchestration.Dir(a.Places.Workspace))
	}
	if url := a.Settings.Trace.OTLP; url != "" {
		r.Spans = trace.NewSpans(url, Version())
		a.closers.Add(r.Spans.Close)
	}
	return r
}

// reportTurn reports a turn that is over: a line of what it came to, and the
// span that those of its calls are below.
func (a *App) reportTurn(done event.Done, began time.Time) {
	ended := time.Now()
	_ = a.Door.Turned(turnEvent(done, ended.Sub(began))) // the log reports what it cannot write
	turn := strconv.Itoa(done.Turn)
	s := trace.Span{
		ID: trace.TurnID(done.Session, turn), Name: "invoke_agent ken", Began: began, Ended: ended,
		Attributes: map[string]any{
			"ken.session": done.Session, "ken.turn": turn, "ken.end": string(done.Reason),
			"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ken", "gen_ai.conversation.id": done.Session,
			"gen_ai.usage.input_tokens": done.Usage.Input, "gen_ai.usage.output_tokens": done.Usage.Output,
			"gen_ai.usage.cache_read.input_tokens": done.Usage.CachedRead, "gen_ai.usage.cache_creation.input_tokens": done.Usage.CachedWrite,
		},
	}
	if done.Steps > 0 {
		provider, model, _ := strings.Cut(done.Account.Model, "/")
		s.Attributes["gen_ai.provider.name"], s.Attributes["gen_ai.request.model"] = provider, model
	}
	if done.Reason == event.EndFailed || done.Reason == event.EndLimit {
		s.Failed, s.Attributes["error.type"] = done.Why, string(done.Reason)
	}
	a.reporter.Span(s)
}

// turnEvent returns the record of a turn.
func turnEvent(done event.Done, took time.Duration) outcome.Event {
	u, acc := done.Usage, done.Account
	e := outcome.Event{
		Session: done.Session, Turn: strconv.Itoa(done.Turn), Tenant: acc.Tenant, End: string(done.Reason), TookUS: took.Microseconds(),
		Requests: done.Steps, Shown: acc.Shown, Added: acc.Added, AllToolTokens: acc.AllToolTokens, Cost: done.Cost,
		Usage: outcome.Usage{Input: u.Input, Output: u.Output, CachedRead: u.CachedRead, CachedWrite: u.CachedWrite},
	}
	if done.Steps > 0 {
		e.Model = acc.Model
	}
	return e
}
