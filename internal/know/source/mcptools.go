package source

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/know/source/effects"
	"ken/internal/know/source/format"
	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/rows"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
)

// Tools of MCP servers that Ken itself is connected to. They are read by the
// same rules as a saved tools/list, and sealed and scanned like everything.

// FormatMCP is [capability.Origin.Format] of what a connected server brought.
const FormatMCP = seal.FormatMCP

// MetaExposed is the key of [capability.Capability.Meta] that holds the name
// under which a client sees a tool natively. Only Ken sets it.
const MetaExposed = "mcp.exposed"

// An MCPServer is what all tools of one server have in common.
type MCPServer struct {
	Name        string // becomes the category, and a part of each id
	Trust       capability.Trust
	Origin      capability.Origin // where the server is configured
	Permissions []string          // that its calls need

	// TrustHints says that the user believes what the server says of its
	// tools' effects.
	TrustHints bool
}

// MCPID returns the id of a server's tool, in Unicode normalization form C.
func MCPID(server, tool string) capability.ID {
	return capability.ID(norm.NFC.String("mcp:" + server + "/" + tool))
}

// An MCPTool is one tool on its way to become a capability.
type MCPTool struct {
	JSON     []byte // the object, as tools/list has it
	Runner   string // of its recipe
	Exposed  string
	Findings []capability.Finding // besides those of the text scan
	Own      bool                 // Ken made the object, not the server
}

// MCPTools makes a capability of each tool, or takes what the cache has of
// exactly the same. A tool that makes no sense is left out, with a problem. A
// nil Cache keeps nothing.
func (c *Cache) MCPTools(server MCPServer, tools []MCPTool) ([]*capability.Capability, []capability.Problem) {
	server.Origin.Format = FormatMCP
	if c == nil || c.Dir == "" || len(tools) < minCachedTools {
		u := server.read(tools)
		return u.Capabilities, u.Problems
	}
	dir, err := c.open()
	if err != nil {
		u := server.read(tools)
		server.unused(u, err)
		return u.Capabilities, u.Problems
	}
	defer dir.Close()
	id := server.cacheID(tools)
	if u := server.take(dir, id); u != nil {
		return u.Capabilities, u.Problems
	}
	u := server.read(tools)
	if err := put(dir, id, pack(u, false, id)); err != nil {
		server.unused(u, fmt.Errorf("use cache %s: %s", c.Dir, safefs.PlainCause(err)))
	} else if lean := server.take(dir, id); lean != nil {
		u = lean // the same, together in memory and without the text around it
	}
	return u.Capabilities, u.Problems
}

// minCachedTools: fewer are read sooner than looked up.
const minCachedTools = 64

// read makes the capabilities.
func (s MCPServer) read(tools []MCPTool) *format.Unit {
	u := &format.Unit{Format: seal.FormatMCP, Trust: s.Trust}
	reader := rows.NewReader()
	reader.MCP = true
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
		u.Capabilities = append(u.Capabilities, s.capability(r, t))
	}
	if m := reader.DroppedMessage(); m != "" {
		s.problem(u, capability.Warning, "dropped-values", m, "")
	}
	u.Details = make([]capability.Detail, len(u.Capabilities))
	return u
}

func (s MCPServer) capability(r *rows.Row, t MCPTool) *capability.Capability {
	c := r.Capability
	c.Name = norm.NFC.String(c.Name)
	c.ID = MCPID(s.Name, c.Name)
	c.Category = s.Name
	c.Trust = s.Trust
	c.Origin = s.Origin
	c.Origin.Pointer = c.Name
	c.Run = &capability.Recipe{Runner: t.Runner}
	c.Permissions = s.Permissions
	delete(c.Meta, MetaExposed) // not the server's to say
	if t.Exposed != "" {
		r.SetMeta(MetaExposed, t.Exposed)
	}
	c.Findings = slices.Clone(t.Findings)
	if !t.Own {
		s.doubt(c, r.Schema)
	}
	seal.Seal(c, r.Detail)
	return c
}

// doubt takes from the effects of a tool the hints that do not count: all that
// would make Ken less careful where the user does not trust the server's hints,
// or where the tool itself contradicts them.
func (s MCPServer) doubt(c *capability.Capability, schema json.RawMessage) {
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

func (s MCPServer) problem(u *format.Unit, severity capability.Severity, code, message, fix string) {
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

func (s MCPServer) unused(u *format.Unit, err error) {
	message, fix := err.Error(), "make room in it"
	if ce, ok := errors.AsType[*capability.Error](err); ok {
		message, fix = fmt.Sprintf("the cache %s is not used: %v", ce.Target, ce.Err), ce.Fix
	}
	s.problem(u, capability.Warning, "cache-unused", message, fix)
}

// cacheID covers all that the capabilities depend on.
func (s MCPServer) cacheID(tools []MCPTool) (id cacheID) {
	h := sha256.New()
	settings, _ := json.Marshal(s) // plain data cannot fail
	fmt.Fprintf(h, "mcp\n%d\n%s\n%s\n", packVersion, thisBuild(), settings)
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

// take reads an entry of the cache; nil when there is none that is whole.
func (s MCPServer) take(dir *os.Root, id cacheID) *format.Unit {
	f, err := dir.Open(id.file())
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxEntry {
		return nil
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil
	}
	rest, ok := bytes.CutPrefix(data, []byte(packMagic))
	if !ok || len(rest) < sha256.Size {
		return nil
	}
	body := rest[sha256.Size:]
	if sum := packSum(id, body); !bytes.Equal(sum[:], rest[:sha256.Size]) {
		return nil
	}
	x := &packer{in: body, home: s.Origin, trust: s.Trust}
	x.readTable()
	var u format.Unit
	details := false
	x.unit(&u, &details)
	if x.bad || len(x.in) != 0 {
		return nil
	}
	now := time.Now()
	_ = dir.Chtimes(id.file(), now, now) // so that what is used stays longest
	return &u
}

// MCPDetail reads the schema of a tool out of its object. It fails with
// [capability.Conflict] when the object is not the one that c was made of.
func MCPDetail(c *capability.Capability, object []byte) (capability.Detail, error) {
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

// MCPFields are the parts of a tool that a person trusts it for. All but the
// name may be absent. Name is in Unicode normalization form C; Wire is the name
// as the server spells it, by which the tool is called.
type MCPFields struct {
	Name, Wire, Title, Description string
	Input, Output, Annotations     json.RawMessage // parts of the object
}

// SplitMCPTool takes a tool's object apart. Where a key is repeated the first
// stands; [Cache.MCPTools] leaves out such a tool.
func SplitMCPTool(object []byte) (f MCPFields, err error) {
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

// MCPFindings scans a server's prompt or resource by the same rules as its
// tools. object is the complete JSON; every text in it is scanned.
func MCPFindings(object []byte) []capability.Finding {
	return seal.Findings("texts", seal.ScanText(seal.SchemaText(object)))
}
