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
	"ken/internal/jsonvalid"
)

// record makes of what a call came to its one result, and writes its closing
// record.
func (r *Runner) record(ctx context.Context, inv *invocation, res capability.Result, err error) (capability.Result, error) {
	if err != nil {
		e := r.secrets.hideInError(asError(err, inv.call.Target))
		if len(res.Parts) == 0 {
			meta := res.Meta
			res = refusal(e)
			for k, v := range meta {
				res.Meta[k] = v
			}
		}
		res.Failed, err = true, e
	}
	res = r.secrets.hide(res) // what did not come from an executor just now, too
	if res.Meta == nil {
		res.Meta = map[string]string{}
	}
	inv.enter(Logging)
	status, end := inv.statusOf(res, err)
	inv.stamp(res.Meta, end, r.cfg.Now())
	r.records.close(ctx, inv, &res, err, status)
	inv.enter(end)
	return res, err
}

// stamp writes what every result says about its call.
func (inv *invocation) stamp(meta map[string]string, end State, now time.Time) {
	meta[MetaState] = end.String()
	meta[MetaStarted] = inv.began.UTC().Format(time.RFC3339Nano)
	meta[MetaEnded] = now.UTC().Format(time.RFC3339Nano)
	meta[MetaDuration] = strconv.FormatInt(now.Sub(inv.began).Milliseconds(), 10)
	if inv.effectID != "" {
		meta[MetaEffect] = inv.effectID
	}
	if inv.effect.isRepeated() {
		meta[MetaRepeated] = "true"
	}
	if inv.ticket != "" {
		meta[MetaTicket] = inv.ticket
	}
}

// entry returns what the records of a call have in common, with all that is
// known by now.
func (inv *invocation) entry() audit.Record {
	rec := audit.ForCall(inv.call)
	rec.EffectID = inv.effectID
	rec.ExtensionID, rec.Runner = inv.target.extension(), inv.target.runs
	if c := inv.target.Capability; c != nil {
		rec.Command = c.Name
		if c.Kind == capability.KindCommand {
			name, _, _ := strings.Cut(c.Name, " ")
			rec.Command = "/" + name
		}
		if rec.Action == "" && c.Run != nil {
			rec.Action = c.Run.Action
		}
	}
	facts := &inv.plan.facts
	rec.Metadata.Tool, rec.Metadata.WorkDir = facts.Tool, facts.WorkDir
	rec.Isolation = facts.Isolation
	if rec.Metadata.ArgsCount = facts.Args; rec.Metadata.ArgsCount == 0 {
		rec.Metadata.ArgsCount = inv.args
	}
	rec.CommandLine, rec.ArgsDigest = inv.intent.line, inv.intent.argsDigest
	if d := &inv.plan.decision; inv.plan.decided {
		rec.Decision, rec.Rule = d.Effect.String(), d.Reason.Rule
		risk := int(d.Risk.Score)
		rec.Risk = &risk
		if rec.Intent == "" && d.Implied != 0 {
			rec.Intent = d.Implied.String()
		}
	}
	return rec
}

// A recorder writes the records of calls to the audit log. Closing records that
// the log does not accept are kept and written before anything else.
type recorder struct {
	log       Log
	now       func() time.Time
	within    time.Duration // that the closing record may take, once a call has ended
	unwritten unwritten
}

// close writes the closing record. A call that has ended is recorded even
// where its caller has gone.
func (w *recorder) close(ctx context.Context, inv *invocation, res *capability.Result, err error, status audit.Status) {
	took := w.now().Sub(inv.began)
	rec := inv.entry().Ended(status, took)
	rec.ResultHandle, rec.ResultBytes = res.Handle, inv.end.bytes
	rec.Truncated = res.Meta[MetaTruncated] == "true"
	out, ok := metaNumber(res.Meta, MetaStdout)
	errs, more := metaNumber(res.Meta, MetaStderr)
	if ok || more {
		rec.ResultBytes = out + errs // a number that cannot be read is 0
	}
	rec.StdoutDigest, rec.StderrDigest = w.digest(res.Meta[MetaStdoutHash]), w.digest(res.Meta[MetaStderrHash])
	if n, ok := metaNumber(res.Meta, MetaExitCode); ok {
		rec.ExitCode = new(int(n))
	}
	if status := res.Meta[MetaHTTPStatus]; status != "" {
		inv.notes.add("http_status", status)
	}
	switch held := res.Meta[MetaIsolation]; {
	case held != "" && held == string(inv.plan.facts.Isolation):
		rec.Isolation = inv.plan.facts.Isolation
	case held != "" && jsonvalid.Valid([]byte(held)):
		rec.Isolation = json.RawMessage(held)
	}
	if err != nil {
		text := err.Error()
		rec.Error = &text
	}
	if inv.effect.isRepeated() {
		inv.notes.add("repeated", "the result of an earlier call with this key; nothing ran")
	}
	rec.Metadata.Notes = inv.notes
	records := []audit.Record{rec}
	if took > inv.limits.Slow && !inv.effect.isRepeated() {
		records = append(records, rec.AsSlow())
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.within)
	defer cancel()
	unwritten := w.catchUp(late)
	var id audit.ID
	if unwritten == nil {
		id, unwritten = w.log.Append(late, records...)
	}
	if unwritten != nil {
		w.degrade(res, records, unwritten)
		return
	}
	res.Meta[MetaRecord] = string(id)
}

// digest names what a program wrote without revealing it.
func (w *recorder) digest(hash string) string {
	if hash == "" {
		return ""
	}
	return w.log.Digest([]byte(hash))
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

// begin makes durable what is about to happen, and at the same time claims the
// effect. It returns an earlier outcome where there is one. After an error, or
// an earlier outcome, nothing may run.
func (r *Runner) begin(ctx context.Context, inv *invocation) (*effect, error) {
	if err := r.records.catchUp(ctx); err != nil {
		return nil, err
	}
	inv.intent = r.intentOf(inv)
	if err := inv.identify(ctx); err != nil {
		return nil, err
	}
	rec := inv.entry()
	rec.Status, rec.Event = audit.Running, audit.Started
	if inv.effect == nil {
		return nil, r.records.start(ctx, rec, inv.call.Target)
	}
	if inv.effect.spend != nil { // a grant that is gone is asked for again, and nothing is recorded
		earlier, err := r.effects.claim(ctx, inv.effect)
		if err != nil || earlier != nil {
			return earlier, err
		}
		if err := r.records.start(ctx, rec, inv.call.Target); err != nil {
			r.effects.release(ctx, inv.effect)
			return nil, err
		}
		return nil, nil
	}
	type claimed struct {
		earlier *effect
		err     error
	}
	done := make(chan claimed, 1)
	go func() {
		earlier, err := r.effects.claim(ctx, inv.effect)
		done <- claimed{earlier, err}
	}()
	err := r.records.start(ctx, rec, inv.call.Target)
	c := <-done
	if err != nil {
		if c.err == nil && c.earlier == nil {
			r.effects.release(ctx, inv.effect)
		}
		return nil, err
	}
	return c.earlier, c.err
}

func (r *Runner) intentOf(inv *invocation) intent {
	out := intent{line: commandLine(r.cfg.Redactor, inv.plan.facts)}
	if len(inv.call.Arguments) > 0 {
		out.argsDigest = r.cfg.Log.Digest(inv.call.Arguments)
	}
	return out
}

// commandLine returns what would be run as one redacted line.
func commandLine(redactor *audit.Redactor, f Facts) string {
	switch {
	case f.Line != "":
		return redactor.String(f.Line)
	case len(f.Argv) > 0:
		return redactor.CommandLine(f.Argv)
	}
	var lines []string
	for _, argv := range f.Arguments.Commands {
		lines = append(lines, redactor.CommandLine(argv))
	}
	line := strings.Join(lines, " ; ")
	if f.Arguments.Opaque != "" {
		line += " # and more: " + redactor.String(f.Arguments.Opaque)
	}
	return line
}

// start writes the record of a call that is about to run.
func (w *recorder) start(ctx context.Context, rec audit.Record, target capability.ID) error {
	_, err := w.log.Announce(ctx, rec)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return gaveUp(ctx)
	}
	fix, err := apartFix(err)
	return &capability.Error{
		Kind: capability.Unavailable, Op: "record", Target: string(target), Rule: "audit",
		Err: fmt.Errorf("%w: %w", errUnrecorded, err), Fix: fix,
	}
}

var errUnrecorded = errors.New("not run, because the audit log could not be written")
