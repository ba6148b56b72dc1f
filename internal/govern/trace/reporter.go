package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"os"

	"ken/capability"
	"ken/internal/envelope"
	"ken/internal/govern/policy"
)

// A Reporter reports calls and turns that have ended to those who follow the work
// from outside. That something could not be reported is never an error of the
// call.
type Reporter struct {
	File  *File  // nil: no lines are written
	Spans *Spans // nil: no spans are sent

	Workspace string
	Log       *slog.Logger
	Lookup    func(capability.ID) (*capability.Capability, bool)
	Rules     func() *policy.Rules // nil results are fine
}

// Call reports a call that has ended: its span, and a line if it may have changed
// something. Call sets Work, Class and Files of c, and its target to what an
// envelope names. A repeated call is one whose result was known already; it
// has no line.
func (r *Reporter) Call(c Call, repeated bool) {
	if r.Spans == nil && (r.File == nil || !r.File.There()) {
		return
	}
	if real, wrong := envelope.Unwrap(c.Call); wrong == nil {
		c.Call = real
	}
	about, ok := r.Lookup(c.Call.Target)
	if !ok {
		return
	}
	c.Call.Target, c.Class = about.ID, policy.Of(about).Class.String()
	if rules := r.Rules(); rules != nil {
		if scope := rules.Settings().Scope; scope != nil {
			c.Work = scope.Work
		}
	}
	changes := c.Class != policy.Read.String() && c.Class != policy.Meta.String()
	if changes && c.Err == nil {
		c.Files = r.changedFiles(&c)
	}
	r.Span(SpanOf(&c))
	if r.File != nil && changes && c.Err == nil && !repeated {
		if err := r.File.Append(&c); err != nil {
			r.Log.Warn("a trace could not be written", "error", err)
		}
	}
}

// Span reports a span, if anybody collects them.
func (r *Reporter) Span(s Span) {
	if r.Spans != nil {
		r.Spans.Add(s)
	}
}

const maxHashed = 16 << 20 // bytes of a file

// changedFiles returns the file that a call names as its path, as it is now.
func (r *Reporter) changedFiles(c *Call) []Changed {
	var in struct {
		Path string `json:"path"`
	}
	if c.Class == policy.Exec.String() || json.Unmarshal(c.Call.Arguments, &in) != nil || in.Path == "" {
		return nil
	}
	root, err := os.OpenRoot(r.Workspace)
	if err != nil {
		return nil
	}
	defer root.Close()
	changed := Changed{Path: in.Path}
	f, err := root.Open(in.Path)
	if err != nil {
		return []Changed{changed}
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxHashed+1)); err == nil && n <= maxHashed {
		changed.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	return []Changed{changed}
}
