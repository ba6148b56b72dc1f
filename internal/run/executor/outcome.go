package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/run/sandbox"
	"sync"
)

// The MIME types by which a result's parts are told apart.
const (
	MIMEStdout = "text/plain; stream=stdout"
	MIMEStderr = "text/plain; stream=stderr"
	MIMEBytes  = "application/octet-stream; stream=stdout"
)

// An Ending says how a run is turned into a result.
type Ending struct {
	// OK are the exit statuses that mean success; empty means 0 alone.
	OK []int
}

// Result turns the outcome of a run into a result: what was written, apart by
// stream, and in Meta what the record needs. A program that failed, or was
// stopped, is a failed result and never loses its output.
func (e Ending) Result(ctx context.Context, o sandbox.Outcome) capability.Result {
	ok := e.OK
	if len(ok) == 0 {
		ok = []int{0}
	}
	end := o.End
	if end == sandbox.Cancelled && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		end = sandbox.TimedOut
	}
	failed := end != sandbox.Exited
	if !failed {
		failed = true
		for _, status := range ok {
			failed = failed && o.ExitCode != status
		}
	}
	r := capability.Result{Failed: failed, Meta: meta(o, end)}
	if text := summary(o, end); failed {
		r.Parts = append(r.Parts, capability.Part{Text: text})
	}
	out, errs := o.Stdout.Text(), o.Stderr.Text()
	if o.Stdout.Dropped() > 0 || o.Stderr.Dropped() > 0 {
		r.Meta["truncated"] = "true"
	}
	if out != "" {
		r.Parts = append(r.Parts, capability.Part{Text: strings.ToValidUTF8(out, "\uFFFD"), MIME: MIMEStdout})
	}
	if raw := o.Stdout.Head; o.Stdout.Dropped() == 0 && (len(raw) > 0 || len(o.Stdout.Tail) > 0) {
		if raw = append(raw[:len(raw):len(raw)], o.Stdout.Tail...); !utf8.Valid(raw) {
			r.Meta["binary"] = "true" // the text above is a view; these are the bytes
			r.Parts = append(r.Parts, capability.Part{Data: raw, MIME: MIMEBytes})
		}
	}
	if errs != "" {
		r.Parts = append(r.Parts, capability.Part{Text: strings.ToValidUTF8(errs, "\uFFFD"), MIME: MIMEStderr})
	}
	return r
}

// Clip keeps the beginning and the end of a text that has more than most
// characters, and says between them how many are missing. The note comes on
// top of what is kept.
func Clip(text string, most int) string {
	n := utf8.RuneCountInString(text)
	if n <= most {
		return text
	}
	head, tail := most-most/2, most/2
	from := 0
	for range head {
		_, size := utf8.DecodeRuneInString(text[from:])
		from += size
	}
	to := len(text)
	for range tail {
		_, size := utf8.DecodeLastRuneInString(text[:to])
		to -= size
	}
	return fmt.Sprintf("%s\n[… %d characters left out …]\n%s", text[:from], n-most, text[to:])
}

func meta(o sandbox.Outcome, end sandbox.End) map[string]string {
	m := map[string]string{
		"end":          string(end),
		"exit_code":    strconv.Itoa(o.ExitCode),
		"duration_ms":  strconv.FormatInt(o.Duration.Milliseconds(), 10),
		"stdout_bytes": strconv.FormatInt(o.Stdout.Bytes, 10),
		"stderr_bytes": strconv.FormatInt(o.Stderr.Bytes, 10),
		"truncated":    "false",
	}
	if o.Stdout.Bytes > 0 {
		m["stdout_sha256"] = o.Stdout.SHA256
	}
	if o.Stderr.Bytes > 0 {
		m["stderr_sha256"] = o.Stderr.SHA256
	}
	if raw, err := json.Marshal(o.Isolation); err == nil {
		m["isolation"] = string(raw)
	}
	if o.Signal != "" {
		m["signal"] = o.Signal
	}
	if o.Limit != "" {
		m["limit"] = o.Limit
	}
	if o.Unfinished {
		m["unfinished"] = "true"
	}
	return m
}

// summary is one line from which a model can go on.
func summary(o sandbox.Outcome, end sandbox.End) string {
	took := fmt.Sprintf("%.1f s", o.Duration.Seconds())
	switch end {
	case sandbox.Exited:
		return fmt.Sprintf("exit status %d", o.ExitCode)
	case sandbox.TimedOut:
		return "stopped after " + took + ": time limit reached"
	case sandbox.Cancelled:
		return "stopped after " + took + ": it was cancelled"
	case sandbox.OverOutput:
		return fmt.Sprintf("stopped after %s: its output exceeded the limit of %d bytes", took, o.Stdout.Bytes+o.Stderr.Bytes) + changedBy(o.Limit)
	case sandbox.OverDisk:
		return "stopped after " + took + ": disk limit reached" + changedBy(o.Limit)
	}
	text := "ended by " + o.Signal
	if o.Limit != "" {
		text += ", at its limit of " + o.Limit
	}
	return text + changedBy(o.Limit)
}

// changedBy returns the setting that changes a limit.
func changedBy(limit string) string {
	key, ok := map[string]string{
		"cpu": "sandbox.cpu", "memory": "sandbox.memory", "file-size": "sandbox.fileSize", "output": "sandbox.outputStop", "disk": "sandbox.disk",
	}[limit]
	if !ok {
		return ""
	}
	return ". Changed by: " + key
}

// folders are those before a name in a message.
var folders = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:/[^\s:/]+)+/`)
})

// A refusal shows no folders of the machine, and still unwraps to its cause.
type refusal struct {
	text  string
	cause error
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.cause }

// Refused turns the error of a run that never started into one of Ken's own.
func Refused(call capability.Call, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &capability.Error{Kind: capability.Timeout, Op: "run", Target: string(call.Target), Err: errors.New("the time limit was reached before the start")}
	}
	if errors.Is(err, context.Canceled) {
		return &capability.Error{Kind: capability.Unavailable, Op: "run", Target: string(call.Target), Err: err}
	}
	out := &capability.Error{Kind: capability.Unavailable, Op: "confine", Target: string(call.Target), Err: err}
	if r, ok := errors.AsType[*sandbox.Refusal](err); ok {
		out.Err, out.Fix = &refusal{text: r.Layer + ": " + folders().ReplaceAllString(r.Cause.Error(), ""), cause: err}, r.Fix
		if r.Layer != "spec" && r.Layer != "start" {
			out.Rule = "sandbox.require"
		}
	}
	return out
}

// Live sends the output of a run to where its call wants it as it comes.
func Live(call capability.Call, spec *sandbox.Spec) {
	if s, ok := call.Live.(capability.Streams); ok {
		spec.Stdout, spec.Stderr = s, s.Stderr()
		return
	}
	spec.Live = call.Live
}

// Planned returns what will hold a run that requires so much and is left so much of
// the machine, for the record that is written before it.
func Planned(ctx context.Context, require sandbox.Requirement, open sandbox.Open) json.RawMessage {
	iso := sandbox.Probe(ctx).Isolation
	if require == "" {
		require = sandbox.RequireLandlock
	}
	if iso.Required = require; require == sandbox.Off {
		iso = sandbox.Isolation{Profile: sandbox.None, Required: require}
	} else {
		iso = iso.With(open)
	}
	b, err := json.Marshal(iso)
	if err != nil {
		return nil // plain data: it cannot fail
	}
	return b
}

// Made tells in a result that a program made files which govern others: while
// they were not there nothing could hold them.
func Made(r *capability.Result, names []string) {
	if len(names) == 0 {
		return
	}
	list := strings.Join(names, ", ")
	r.Meta["made"] = list
	r.Parts = append(r.Parts, capability.Part{Text: "This call made " + list + ", which decides what others run or do. Have a person look at it."})
}
