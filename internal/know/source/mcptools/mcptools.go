// Package mcptools makes capabilities of the tools of MCP servers that Ken is
// connected to. They are read by the same rules as a saved tools/list, and sealed
// and scanned like everything else.
package mcptools

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/know/source/effects"
	"ken/internal/know/source/format"
	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/parsecache"
	"ken/internal/know/source/rows"
	"ken/internal/know/source/seal"
)

// Format is [capability.Origin.Format] of what a connected server brought.
const Format = seal.FormatMCP

// MetaExposed is the key of [capability.Capability.Meta] that holds the name
// under which a client sees a tool natively. Only Ken sets it.
const MetaExposed = "mcp.exposed"

// The keys of [capability.Capability.Meta] for the pages of a server (MCP Apps).
// Only Ken sets them.
const (
	MetaApp     = "mcp.app"      // the address of the page that shows results of the tool
	MetaAppOnly = "mcp.app.only" // set for a tool that pages may call and models may not
	MetaNotApp  = "mcp.app.not"  // set for a tool that pages may not call
)

// A Server is what all tools of one server have in common.
type Server struct {
	Name        string // becomes the category, and a part of each id
	Trust       capability.Trust
	Origin      capability.Origin // where the server is configured
	Permissions []string          // that its calls need

	// TrustHints says that the user believes what the server says of its
	// tools' effects.
	TrustHints bool
}

// ID returns the id of a server's tool, in Unicode normalization form C.
func ID(server, tool string) capability.ID {
	return capability.ID(norm.NFC.String("mcp:" + server + "/" + tool))
}

// A Tool is one tool on its way to become a capability.
type Tool struct {
	JSON     []byte // the object, as tools/list has it
	Runner   string // of its recipe
	Exposed  string
	Findings []capability.Finding // besides those of the text scan
	Own      bool                 // Ken made the object, not the server
}

// Read makes a capability of each tool, or takes what the cache has of exactly
// the same. A tool that makes no sense is left out, with a problem. A nil cache
// keeps nothing.
func Read(cache *parsecache.Cache, server Server, tools []Tool) ([]*capability.Capability, []capability.Problem) {
	server.Origin.Format = Format
	u := &format.Unit{Format: seal.FormatMCP, Trust: server.Trust}
	if cache == nil || cache.Dir == "" || len(tools) < minCachedTools {
		server.read(u, tools)
		return u.Capabilities, u.Problems
	}
	err := cache.Fill(server.key(tools), u, server.Origin, func() (keep, details bool) {
		server.read(u, tools)
		return true, false
	})
	if err != nil {
		server.unused(u, err)
	}
	return u.Capabilities, u.Problems
}

// minCachedTools: fewer are read sooner than looked up.
const minCachedTools = 64

// read fills the unit with the capabilities. It works on all processors: to check
// and scan 2,000 tools takes one of them half a second, and a call may wait for it.
func (s Server) read(u *format.Unit, tools []Tool) {
	workers := min(runtime.GOMAXPROCS(0), 1+len(tools)/minCachedTools)
	parts := make([]format.Unit, workers)
	readers := make([]*rows.Reader, workers)
	var all sync.WaitGroup
	for i := range parts {
		readers[i] = rows.NewReader()
		readers[i].MCP = true
		all.Go(func() { s.readSome(&parts[i], readers[i], tools[i*len(tools)/workers:(i+1)*len(tools)/workers]) })
	}
	all.Wait()
	for i := range parts {
		u.Capabilities = append(u.Capabilities, parts[i].Capabilities...)
		for _, p := range parts[i].Problems {
			s.problem(u, p.Severity, p.Code, p.Message, p.Fix)
		}
		readers[0].AddDropped(readers[i])
	}
	if m := readers[0].DroppedMessage(); m != "" {
		s.problem(u, capability.Warning, "dropped-values", m, "")
	}
	u.Details = make([]capability.Detail, len(u.Capabilities))
}

// readSome fills the unit with the capabilities of some tools.
func (s Server) readSome(u *format.Unit, reader *rows.Reader, tools []Tool) {
	sealer := seal.NewSealer()
	for _, t := range tools {
		r, err := reader.Read(t.JSON)
		if err != nil {
			var je *jsonscan.Error
			errors.As(err, &je)
			s.problem(u, capability.Grave, je.Code, "a tool of the list: "+je.Message, je.Fix)
			continue
		}
		for _, n := range r.Notes {
			s.problem(u, capability.Warning, "bad-value", jsonscan.Shorten(r.Name)+": "+n.Message, n.Fix)
		}
		u.Capabilities = append(u.Capabilities, s.capability(r, t, sealer))
	}
}

func (s Server) capability(r *rows.Row, t Tool, sealer *seal.Sealer) *capability.Capability {
	c := r.Capability
	c.Name = norm.NFC.String(c.Name)
	c.ID = ID(s.Name, c.Name)
	c.Category = s.Name
	c.Trust = s.Trust
	c.Origin = s.Origin
	c.Origin.Pointer = c.Name
	c.Run = &capability.Recipe{Runner: t.Runner}
	c.Permissions = s.Permissions
	for _, key := range []string{MetaExposed, MetaApp, MetaAppOnly, MetaNotApp} {
		delete(c.Meta, key) // not the server's to say
	}
	if t.Exposed != "" {
		r.SetMeta(MetaExposed, t.Exposed)
	}
	if len(r.Extra) > 0 {
		setApp(r)
	}
	c.Findings = slices.Clone(t.Findings)
	if !t.Own {
		s.doubt(c, r.Schema)
	}
	sealer.Seal(c, r.Detail)
	return c
}

// setApp notes which page belongs to a tool, and whether models or pages are to
// call it. If the visibility cannot be read, or is empty, only people may
// call the tool.
func setApp(r *rows.Row) {
	var extra struct {
		Meta struct {
			UI struct {
				Resource   string    `json:"resourceUri"`
				Visibility *[]string `json:"visibility"`
			} `json:"ui"`
			Flat string `json:"ui/resourceUri"` // deprecated
		} `json:"_meta"`
	}
	if err := json.Unmarshal(r.Extra, &extra); err != nil {
		if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong && bytes.Contains(r.Extra, []byte(`"visibility"`)) {
			r.SetMeta(MetaAppOnly, "unreadable")
			r.SetMeta(MetaNotApp, "unreadable")
		}
		return
	}
	ui := extra.Meta.UI
	if page := cmp.Or(ui.Resource, extra.Meta.Flat); strings.HasPrefix(page, "ui://") {
		r.SetMeta(MetaApp, page)
	}
	if ui.Visibility == nil {
		return
	}
	if !slices.Contains(*ui.Visibility, "model") {
		r.SetMeta(MetaAppOnly, "yes")
	}
	if !slices.Contains(*ui.Visibility, "app") {
		r.SetMeta(MetaNotApp, "yes")
	}
}

// doubt takes from the effects of a tool the hints that do not count: all that
// would make Ken less careful where the user does not trust the server's hints,
// or where the tool itself contradicts them.
func (s Server) doubt(c *capability.Capability, schema json.RawMessage) {
	careful := c.Effects.Careful()
	if careful == c.Effects {
		return
	}
	why := "its hints are not trusted (mcp.trustHints does not name " + s.Name + ")"
	if s.TrustHints {
		if why = effects.Changes(c.Name, schema); why == "" {
			return
		}
	}
	c.Claims = &capability.Claims{Effects: c.Effects, Doubt: why}
	c.Effects = careful
}

func (s Server) problem(u *format.Unit, severity capability.Severity, code, message, fix string) {
	if len(u.Problems) >= maxToolProblems {
		return
	}
	if len(u.Problems) == maxToolProblems-1 {
		severity, code, message, fix = capability.Warning, "more-problems", "there is more wrong with this server's tools; the rest is not listed", "fix the first ones"
	}
	u.Problems = append(u.Problems, capability.Problem{Severity: severity, Code: code, Origin: s.Origin, Message: message, Fix: fix})
}

// maxToolProblems is how many problems one list may have.
const maxToolProblems = 50

func (s Server) unused(u *format.Unit, err error) {
	message, fix := err.Error(), "make room in it"
	if ce, ok := errors.AsType[*capability.Error](err); ok {
		message, fix = fmt.Sprintf("the cache %s is not used: %v", ce.Target, ce.Err), ce.Fix
	}
	s.problem(u, capability.Warning, "cache-unused", message, fix)
}

// key covers all that the capabilities depend on.
func (s Server) key(tools []Tool) (id parsecache.Key) {
	h := sha256.New()
	settings, _ := json.Marshal(s) // plain data cannot fail
	fmt.Fprintf(h, "mcp\n%d\n%s\n%s\n", parsecache.Version, parsecache.Build(), settings)
	var b []byte
	for _, t := range tools {
		b = b[:0]
		for _, part := range []string{t.Runner, t.Exposed, strconv.FormatBool(t.Own)} {
			b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
		}
		if len(t.Findings) > 0 {
			found, _ := json.Marshal(t.Findings)
			b = append(b, found...)
		}
		b = binary.AppendUvarint(b, uint64(len(t.JSON)))
		h.Write(b)
		h.Write(t.JSON)
	}
	h.Sum(id[:0])
	return id
}

// Detail reads the schema of a tool out of its object. It fails with
// [capability.Conflict] when the object is not the one that c was made of.
func Detail(c *capability.Capability, object []byte) (capability.Detail, error) {
	reader := rows.Reader{MCP: true}
	r, err := reader.Read(object)
	if err != nil {
		return capability.Detail{}, &capability.Error{
			Kind: capability.Conflict, Op: "read", Target: string(c.ID),
			Err: errors.New("tool definition is no longer where it was loaded from"), Fix: "reload the catalog",
		}
	}
	d := r.Detail
	if err := seal.Unchanged(c, d); err != nil {
		return d, err
	}
	if d.Output != nil && rows.OutputMark(d.Output) != c.Meta[rows.KeyOutput] {
		return d, &capability.Error{
			Kind: capability.Conflict, Op: "read", Target: string(c.ID), Err: errors.New("output schema changed since it was loaded"), Fix: "reload the catalog",
		}
	}
	return d, nil
}

// Fields are the parts of a tool that a person trusts it for. All but the
// name may be absent. Name is in Unicode normalization form C; Wire is the name
// as the server spells it, by which the tool is called.
type Fields struct {
	Name, Wire, Title, Description string
	Input, Output, Annotations     json.RawMessage // parts of the object
	Extra                          json.RawMessage // an object with the members of [rows.ExtraKeys]
}

// Split takes a tool's object apart. Where a key is repeated the first
// stands; [Read] leaves out such a tool.
func Split(object []byte) (f Fields, err error) {
	w := jsonscan.Scanner{Data: object, Loose: true}
	if w.Next() != '{' {
		return f, errors.New("the tool is not a JSON object")
	}
	var seen [rows.KeyCount]bool
	output := false
	err = w.Object(func(rawKey []byte, at, end int) error {
		v := object[at:end]
		if string(v) == "null" {
			return nil
		}
		if string(rawKey) == rows.KeyOutput && !output {
			f.Output, output = v, true
		}
		if slices.Contains(rows.ExtraKeys(), string(rawKey)) {
			f.Extra = rows.AppendMember(f.Extra, string(rawKey), v)
		}
		// The keys in all the spellings that count.
		key := rows.KeyOf(rawKey)
		if key == rows.KeyUnknown || seen[key] {
			return nil
		}
		seen[key] = true
		switch key {
		case rows.KeyName:
			f.Wire, _ = rows.PlainText(v)
			f.Name = norm.NFC.String(f.Wire)
		case rows.KeyDisplayName:
			f.Title, _ = rows.PlainText(v)
		case rows.KeyDescription:
			f.Description, _ = rows.PlainText(v)
		case rows.KeySchema:
			f.Input = v
		case rows.KeyAnnotations:
			f.Annotations = v
		}
		return nil
	})
	if err != nil {
		if je, ok := errors.AsType[*jsonscan.Error](err); ok {
			return f, errors.New(je.Message)
		}
		return f, err
	}
	if strings.TrimSpace(f.Name) == "" {
		return f, errors.New("the tool has no name")
	}
	return f, nil
}

// Findings scans a server's prompt or resource by the same rules as its
// tools. object is the complete JSON; every text in it is scanned.
func Findings(object []byte) []capability.Finding {
	return seal.Findings("texts", seal.ScanText(seal.SchemaText(object)))
}
