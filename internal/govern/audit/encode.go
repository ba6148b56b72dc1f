package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"ken/internal/jsonappend"
)

// timeLayout is the seed's: UTC, milliseconds, fixed width, so that texts
// compare as times do.
const timeLayout = "2006-01-02T15:04:05.000Z"

// An encoder writes JSON objects field by field, in ASCII only: no control
// character, escape sequence or direction mark of foreign text reaches a
// terminal through a log. With spaced set it writes ", " and ": " as the
// seed's logger does, so that the seed's greps find what they look for.
type encoder struct {
	b      []byte
	spaced bool
}

// key begins a field whose name is ours: nothing in it needs an escape.
func (e *encoder) key(name string) {
	e.comma()
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	if e.b = append(e.b, '"', ':'); e.spaced {
		e.b = append(e.b, ' ')
	}
}

// foreign begins a field whose name comes from outside.
func (e *encoder) foreign(name string) {
	e.comma()
	if e.b = append(jsonappend.ASCII(e.b, name), ':'); e.spaced {
		e.b = append(e.b, ' ')
	}
}

func (e *encoder) comma() {
	if n := len(e.b); n > 0 && e.b[n-1] != '{' {
		if e.b = append(e.b, ','); e.spaced {
			e.b = append(e.b, ' ')
		}
	}
}

func (e *encoder) string(name, s string) {
	e.key(name)
	e.b = jsonappend.ASCII(e.b, s)
}

// optional leaves an empty text out.
func (e *encoder) optional(name, s string) {
	if s != "" {
		e.string(name, s)
	}
}

func (e *encoder) int(name string, n int64) {
	e.key(name)
	e.b = strconv.AppendInt(e.b, n, 10)
}

func (e *encoder) null() { e.b = append(e.b, "null"...) }

// body appends the fields of r between the timestamp and what the writer adds.
// The seed's fields come first and in the seed's order.
func (e *encoder) body(r *Record) {
	e.seed(r)
	e.optional("status", string(r.Status))
	e.optional("effect_id", r.EffectID)
	e.optional("tenant", r.Tenant)
	e.optional("agent", r.Agent)
	e.optional("target", r.Target)
	e.optional("capability_hash", r.CapabilityHash)
	e.optional("origin", r.Origin)
	e.optional("intent", r.Intent)
	e.optional("mode", r.Mode)
	e.optional("decision", r.Decision)
	e.optional("rule", r.Rule)
	if r.Risk != nil {
		e.int("risk", int64(*r.Risk))
	}
	if len(r.Isolation) > 0 {
		e.key("isolation")
		e.b = append(e.b, r.Isolation...)
	}
	e.optional("command_line", r.CommandLine)
	e.optional("args_digest", r.ArgsDigest)
	e.optional("stdout_digest", r.StdoutDigest)
	e.optional("stderr_digest", r.StderrDigest)
	if r.DurationMS != nil {
		e.int("duration_ms", *r.DurationMS)
	}
	if r.Truncated {
		e.key("truncated")
		e.b = append(e.b, "true"...)
	}
	if r.ResultBytes != 0 {
		e.int("result_bytes", r.ResultBytes)
	}
	e.optional("result_handle", r.ResultHandle)
	if r.Chain != nil {
		e.chain(r.Chain)
	}
}

func (e *encoder) seed(r *Record) {
	e.string("level", r.Level)
	e.string("logger", r.Logger)
	e.string("event", string(r.Event))
	e.string("extension_id", r.ExtensionID)
	e.string("command", r.Command)
	e.string("action", r.Action)
	e.string("runner", r.Runner)
	e.string("session_id", r.SessionID)
	e.string("user_id", r.UserID)
	if e.key("success"); r.Success == nil {
		e.null()
	} else {
		e.b = strconv.AppendBool(e.b, *r.Success)
	}
	if e.key("duration_seconds"); r.DurationSeconds == nil {
		e.null()
	} else {
		e.b = strconv.AppendFloat(e.b, *r.DurationSeconds, 'f', -1, 64)
	}
	if e.key("exit_code"); r.ExitCode == nil {
		e.null()
	} else {
		e.b = strconv.AppendInt(e.b, int64(*r.ExitCode), 10)
	}
	e.key("metadata")
	e.b = append(e.b, '{')
	e.string("tool", r.Metadata.Tool)
	e.int("args_count", int64(r.Metadata.ArgsCount))
	e.string("work_dir", r.Metadata.WorkDir)
	if len(r.Metadata.Notes) > 0 {
		e.key("notes")
		e.b = append(e.b, '{')
		for _, k := range slices.Sorted(maps.Keys(r.Metadata.Notes)) {
			e.foreign(k)
			e.b = jsonappend.ASCII(e.b, r.Metadata.Notes[k])
		}
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, '}')
	if e.key("error"); r.Error == nil {
		e.null()
	} else {
		e.b = jsonappend.ASCII(e.b, *r.Error)
	}
}

func (e *encoder) chain(c *ChainStart) {
	e.key("chain")
	e.b = append(e.b, '{')
	e.string("name", c.Name)
	e.optional("program", c.Program)
	if c.PID != 0 {
		e.int("pid", int64(c.PID))
	}
	e.optional("host", c.Host)
	e.optional("boot", c.Boot)
	if len(c.Seen) > 0 {
		e.key("seen")
		for i, w := range c.Seen {
			e.b = append(e.b, "[,"[min(i, 1)], '{')
			e.string("chain", w.Chain)
			e.int("size", w.Size)
			e.string("root", w.Root)
			e.b = append(e.b, '}')
		}
		e.b = append(e.b, ']')
	}
	e.b = append(e.b, '}')
}

// value appends what [json.Decoder] with UseNumber gave, its texts through f.
func (e *encoder) value(v any, f func(string) string) {
	switch v := v.(type) {
	case nil:
		e.null()
	case bool:
		e.b = strconv.AppendBool(e.b, v)
	case json.Number:
		e.b = append(e.b, v...)
	case string:
		e.b = jsonappend.ASCII(e.b, f(v))
	case []any:
		e.b = append(e.b, '[')
		for i, item := range v {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			e.value(item, f)
		}
		e.b = append(e.b, ']')
	case map[string]any:
		e.b = append(e.b, '{')
		for _, k := range slices.Sorted(maps.Keys(v)) {
			e.foreign(f(k))
			e.value(v[k], f)
		}
		e.b = append(e.b, '}')
	}
}

// cleanJSON rewrites a foreign JSON value: one line, ASCII, texts redacted.
func cleanJSON(raw json.RawMessage, redact func(string) string) (json.RawMessage, error) {
	if len(raw) > maxLong {
		return fmt.Appendf(nil, `{"cut":"%d bytes"}`, len(raw)), nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON value")
	}
	var e encoder
	e.value(v, redact)
	return e.b, nil
}

// decode reads a line back.
func decode(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, err
	}
	if r.Timestamp.IsZero() || r.Event == "" {
		return Record{}, fmt.Errorf("not an audit record: missing timestamp or event")
	}
	return r, nil
}

// lineTime returns the timestamp of a line as text, without parsing the rest.
func lineTime(line []byte) (string, bool) {
	const prefix = `{"timestamp":"`
	end := len(prefix) + len(timeLayout)
	if len(line) <= end || string(line[:len(prefix)]) != prefix || line[end] != '"' {
		return "", false
	}
	return string(line[len(prefix):end]), true
}

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }
