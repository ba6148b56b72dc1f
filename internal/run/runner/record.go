package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
)

// record sees to it that every call gets one result and one closing record.
func (r *Runner) record(next step) step {
	return func(ctx context.Context, t *trip) (capability.Result, error) {
		res, err := guard("call", func(s string) { t.note("panic", s) }, func() (capability.Result, error) {
			return next(ctx, t)
		})
		if err != nil {
			e := r.errorWithoutSecrets(asError(err, t.call.Target))
			if len(res.Parts) == 0 {
				meta := res.Meta
				res = refusal(e)
				for k, v := range meta {
					res.Meta[k] = v
				}
			}
			res.Failed, err = true, e
		}
		res = r.withoutSecrets(res) // what did not come from an executor just now, too
		if res.Meta == nil {
			res.Meta = map[string]string{}
		}
		t.enter(Logging)
		status, end := t.statusOf(res, err)
		r.stamp(t, res.Meta, end)
		r.close(ctx, t, &res, err, status)
		t.enter(end)
		return res, err
	}
}

// stamp writes what every result says about its call.
func (r *Runner) stamp(t *trip, meta map[string]string, end State) {
	now := r.cfg.Now()
	meta[MetaState] = end.String()
	meta[MetaStarted] = t.began.UTC().Format(time.RFC3339Nano)
	meta[MetaEnded] = now.UTC().Format(time.RFC3339Nano)
	meta[MetaDuration] = strconv.FormatInt(now.Sub(t.began).Milliseconds(), 10)
	if t.effectID != "" {
		meta[MetaEffect] = t.effectID
	}
	if t.again {
		meta[MetaRepeated] = "true"
	}
	if t.ticket != "" {
		meta[MetaTicket] = t.ticket
	}
}

// close writes the closing record. A call that has ended is recorded even
// where its caller has gone.
func (r *Runner) close(ctx context.Context, t *trip, res *capability.Result, err error, status audit.Status) {
	took := r.cfg.Now().Sub(t.began)
	rec := r.entry(t).Ended(status, took)
	rec.ResultHandle, rec.ResultBytes = res.Handle, t.bytes
	rec.Truncated = res.Meta[MetaTruncated] == "true"
	out, ok := metaNumber(res.Meta, MetaStdout)
	errs, more := metaNumber(res.Meta, MetaStderr)
	if ok || more {
		rec.ResultBytes = out + errs // a number that cannot be read is 0
	}
	rec.StdoutDigest, rec.StderrDigest = r.digest(res.Meta[MetaStdoutHash]), r.digest(res.Meta[MetaStderrHash])
	if n, ok := metaNumber(res.Meta, MetaExitCode); ok {
		rec.ExitCode = new(int(n))
	}
	if held := res.Meta[MetaIsolation]; held != "" && json.Valid([]byte(held)) {
		rec.Isolation = json.RawMessage(held)
	}
	if err != nil {
		text := err.Error()
		rec.Error = &text
	}
	if t.again {
		t.note("repeated", "the result of an earlier call with this key; nothing ran")
	}
	rec.Metadata.Notes = t.notes
	records := []audit.Record{rec}
	if took > t.limits.Slow && !t.again {
		records = append(records, rec.AsSlow())
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.limits.Record)
	defer cancel()
	unwritten := r.catchUp(late)
	var id audit.ID
	if unwritten == nil {
		id, unwritten = r.cfg.Log.Append(late, records...)
	}
	if unwritten != nil {
		r.degrade(t, res, records, unwritten)
		return
	}
	res.Meta[MetaRecord] = string(id)
}

// digest names what a program wrote without revealing it.
func (r *Runner) digest(hash string) string {
	if hash == "" {
		return ""
	}
	return r.cfg.Log.Digest([]byte(hash))
}

// metaNumber reads a number that an executor wrote.
func metaNumber(meta map[string]string, key string) (int64, bool) {
	text := meta[key]
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// entry returns what the records of a call have in common, with all that is
// known by now.
func (r *Runner) entry(t *trip) audit.Record {
	rec := audit.ForCall(t.call)
	rec.EffectID = t.effectID
	rec.ExtensionID, rec.Runner = t.extension(), t.runs
	if c := t.target.Capability; c != nil {
		rec.Command = c.Name
		if c.Kind == capability.KindCommand {
			name, _, _ := strings.Cut(c.Name, " ")
			rec.Command = "/" + name
		}
		if rec.Action == "" && c.Run != nil {
			rec.Action = c.Run.Action
		}
	}
	rec.Metadata.Tool, rec.Metadata.WorkDir = t.facts.Tool, t.facts.WorkDir
	rec.Isolation = t.facts.Isolation
	if rec.Metadata.ArgsCount = t.facts.Args; rec.Metadata.ArgsCount == 0 {
		rec.Metadata.ArgsCount = t.args
	}
	rec.CommandLine, rec.ArgsDigest = t.line, t.argsDigest
	if t.decided {
		rec.Decision, rec.Rule = t.decision.Effect.String(), t.decision.Reason.Rule
		risk := int(t.decision.Risk.Score)
		rec.Risk = &risk
		if rec.Intent == "" && t.decision.Implied != 0 {
			rec.Intent = t.decision.Implied.String()
		}
	}
	return rec
}

// begin makes durable what is about to happen, and at the same time claims the
// effect. It gives an earlier outcome where there is one. After an error, or
// an earlier outcome, nothing may run.
func (r *Runner) begin(ctx context.Context, t *trip) (*effect, error) {
	if err := r.catchUp(ctx); err != nil {
		return nil, err
	}
	t.line = r.commandLine(t.facts)
	if len(t.call.Arguments) > 0 {
		t.argsDigest = r.cfg.Log.Digest(t.call.Arguments)
	}
	if err := r.identify(ctx, t); err != nil {
		return nil, err
	}
	rec := r.entry(t)
	rec.Status, rec.Event = audit.Running, audit.Started
	if t.effect == nil {
		return nil, r.before(ctx, t, rec)
	}
	type claimed struct {
		earlier *effect
		err     error
	}
	done := make(chan claimed, 1)
	go func() {
		earlier, err := r.claim(ctx, t)
		done <- claimed{earlier, err}
	}()
	err := r.before(ctx, t, rec)
	c := <-done
	if err != nil {
		if c.err == nil && c.earlier == nil {
			r.release(ctx, t)
		}
		return nil, err
	}
	return c.earlier, c.err
}

// commandLine returns what would be run as one redacted line.
func (r *Runner) commandLine(f Facts) string {
	switch {
	case f.Line != "":
		return r.cfg.Redactor.String(f.Line)
	case len(f.Argv) > 0:
		return r.cfg.Redactor.CommandLine(f.Argv)
	}
	var lines []string
	for _, argv := range f.Arguments.Commands {
		lines = append(lines, r.cfg.Redactor.CommandLine(argv))
	}
	line := strings.Join(lines, " ; ")
	if f.Arguments.Opaque != "" {
		line += " # and more: " + r.cfg.Redactor.String(f.Arguments.Opaque)
	}
	return line
}

func (r *Runner) before(ctx context.Context, t *trip, rec audit.Record) error {
	_, err := r.cfg.Log.Append(ctx, rec)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return gaveUp(ctx)
	}
	fix, err := apartFix(err)
	return &capability.Error{
		Kind: capability.Unavailable, Op: "record", Target: string(t.call.Target), Rule: "audit",
		Err: fmt.Errorf("%w: %w", errUnrecorded, err), Fix: fix,
	}
}

var errUnrecorded = errors.New("not run, because the audit log could not be written")
