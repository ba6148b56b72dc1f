package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/envelope"
	"ken/internal/find/outcome"
	"ken/internal/govern/policy"
	"ken/internal/govern/trace"
	"ken/internal/run/runner"
	"ken/internal/talk/event"
)

// telling is what those are told who follow the work from outside.
type telling struct {
	file  *trace.File  // nil: nobody reads it
	spans *trace.Spans // nil: nobody collects them
}

func (a *App) prepareTelling() {
	if a.Settings.Trace.Orchestration != config.OrchestrationOff {
		a.telling.file = trace.NewFile(a.Places.OrchestrationDir())
	}
	if url := a.Settings.Trace.OTLP; url != "" {
		a.telling.spans = trace.NewSpans(url, Version())
		a.closeLater(a.telling.spans.Close)
	}
}

// tellTurn tells of a turn that is over: a line of what it came to, and the
// span that those of its calls are below.
func (a *App) tellTurn(done event.Done, began time.Time) {
	ended := time.Now()
	a.recordTurn(done, ended.Sub(began))
	if a.telling.spans == nil {
		return
	}
	turn := strconv.Itoa(done.Turn)
	s := trace.Span{
		ID: trace.TurnID(done.Session, turn), Name: "turn", Began: began, Ended: ended,
		Attributes: map[string]string{
			"ken.session": done.Session, "ken.turn": turn, "ken.end": string(done.Reason), "gen_ai.operation.name": "invoke_agent",
			"gen_ai.usage.input_tokens": strconv.Itoa(done.Usage.Input), "gen_ai.usage.output_tokens": strconv.Itoa(done.Usage.Output),
		},
	}
	if done.Reason == event.EndFailed || done.Reason == event.EndLimit {
		s.Failed = done.Why
	}
	a.telling.spans.Add(s)
}

// recordTurn writes down what a turn came to. That it could not be is told by
// the log's own health.
func (a *App) recordTurn(done event.Done, took time.Duration) {
	u, acc := done.Usage, done.Account
	e := outcome.Event{
		Session: done.Session, Turn: strconv.Itoa(done.Turn), Tenant: acc.Tenant, End: string(done.Reason), TookUS: took.Microseconds(),
		Requests: done.Steps, Shown: acc.Shown, Added: acc.Added, Dump: acc.Dump, Cost: done.Cost,
		Usage: outcome.Usage{Input: u.Input, Output: u.Output, CachedRead: u.CachedRead, CachedWrite: u.CachedWrite},
	}
	if done.Steps > 0 {
		e.Model = acc.Model
	}
	_ = a.Door.Turned(e)
}

// tell tells of a call that has ended: its span, and a line where it may have
// changed something. That it could not be told is no fault of the call's.
func (a *App) tell(call capability.Call, res capability.Result, err error, began time.Time) {
	t := &a.telling
	if t.spans == nil && (t.file == nil || !t.file.There()) {
		return
	}
	if real, wrong := envelope.Unwrap(call); wrong == nil {
		call = real
	}
	if e, lost := a.Oversee().Lookup(string(call.Target)); lost == nil {
		call.Target = e.ID
		c := trace.Call{
			Call: call, Result: res, Err: err, Began: began, Ended: time.Now(),
			Record: res.Meta[runner.MetaRecord], Effect: res.Meta[runner.MetaEffect], Class: policy.Of(e.Capability).Class.String(),
		}
		a.tellOf(&c)
	}
}

func (a *App) tellOf(c *trace.Call) {
	if scope := a.scope(); scope != nil {
		c.Work = scope.Work
	}
	changes := c.Class != policy.Read.String() && c.Class != policy.Meta.String()
	if changes && c.Err == nil {
		c.Files = a.changedFiles(c)
	}
	if a.telling.spans != nil {
		a.telling.spans.Add(trace.SpanOf(c))
	}
	if a.telling.file != nil && changes && c.Err == nil && c.Result.Meta[runner.MetaRepeated] == "" {
		if err := a.telling.file.Append(c); err != nil {
			a.log.Warn("an effect could not be told", "error", err)
		}
	}
}

// scope returns the work at hand.
func (a *App) scope() *policy.WriteScope {
	rules := a.Rules()
	if rules == nil {
		return nil
	}
	return rules.Settings().Scope
}

const mostHashed = 16 << 20 // bytes of a file

// changedFiles returns the file that a call names as its path, as it is now.
func (a *App) changedFiles(c *trace.Call) []trace.Changed {
	var in struct {
		Path string `json:"path"`
	}
	if c.Class == policy.Exec.String() || json.Unmarshal(c.Call.Arguments, &in) != nil || in.Path == "" {
		return nil
	}
	root, err := os.OpenRoot(a.Places.Workspace)
	if err != nil {
		return nil
	}
	defer root.Close()
	changed := trace.Changed{Path: in.Path}
	f, err := root.Open(in.Path)
	if err != nil {
		return []trace.Changed{changed}
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, mostHashed+1)); err == nil && n <= mostHashed {
		changed.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	return []trace.Changed{changed}
}
