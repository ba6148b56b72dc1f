// Package skills adds skills with their files to an MCP server of the tests
// (SEP-2640).
package skills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Extension is the name of the extension.
const Extension = "io.modelcontextprotocol/skills"

// A Skill is one of the server's. Its name is the last part of Dir.
type Skill struct {
	Dir         string // "skill://acme/refunds"
	Description string
	Files       map[string]string // by path; SKILL.md is made
	Served      map[string]string // what is served instead of a file, to lie
}

// Main returns the text of SKILL.md.
func (s Skill) Main() string {
	return "---\nname: " + path.Base(s.Dir) + "\ndescription: " + s.Description + "\n---\n\n# " + path.Base(s.Dir) + "\n\nFollow the steps.\n"
}

// Entry returns what skills/list says of the skill.
func (s Skill) Entry() map[string]any {
	var files []any
	add := func(name, text string) {
		sum := sha256.Sum256([]byte(text))
		files = append(files, map[string]any{"uri": s.Dir + "/" + name, "digest": "sha256:" + hex.EncodeToString(sum[:]), "size": len(text)})
	}
	add("SKILL.md", s.Main())
	var names []string
	for name := range s.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(name, s.Files[name])
	}
	return map[string]any{
		"uri":         s.Dir + "/SKILL.md",
		"frontmatter": map[string]any{"name": path.Base(s.Dir), "description": s.Description},
		"resources":   files,
	}
}

// A Params is a request of the extension.
type Params struct {
	mcp.ParamsBase
	URI    string `json:"uri,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// A Result is a result as it is.
type Result struct {
	mcp.ResultBase
	Raw json.RawMessage
}

// MarshalJSON returns the text.
func (r *Result) MarshalJSON() ([]byte, error) { return r.Raw, nil }

// UnmarshalJSON keeps the text.
func (r *Result) UnmarshalJSON(data []byte) error {
	r.Raw = slices.Clone(data)
	return nil
}

// Know lets a client send the requests of the extension.
func Know(c *mcp.Client) error {
	return errors.Join(
		mcp.AddSendingCustomMethod[*Params, *Result](c, "skills/list"),
		mcp.AddSendingCustomMethod[*Params, *Result](c, "skills/get"),
		mcp.AddSendingCustomMethod[*Params, *Result](c, "resources/directory/read"),
	)
}

// Ask sends a request of the extension.
func Ask(ctx context.Context, s *mcp.ClientSession, method, uri string, into any) error {
	res, err := mcp.CallCustomMethod[*Params, *Result](ctx, s, method, &Params{URI: uri})
	if err != nil {
		return err
	}
	return json.Unmarshal(res.Raw, into)
}

// Declare says in the options of a server that it has skills.
func Declare(opts *mcp.ServerOptions) {
	if opts.Capabilities == nil {
		// What a server announces by itself. Logging is deprecated, but clients of older protocols use it.
		//lint:ignore SA1019 see above
		opts.Capabilities = &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}}
	}
	opts.Capabilities.AddExtension(Extension, map[string]any{"directoryRead": true})
}

const cache = `"ttlMs":60000,"cacheScope":"public"`

// Add makes a server serve what all returns, and its files as resources.
func Add(server *mcp.Server, all func() []Skill) error {
	for _, s := range all() {
		s.addFiles(server)
	}
	unknown := func(uri string) error {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is nothing at " + uri}
	}
	return errors.Join(
		mcp.AddReceivingCustomMethod(server, "skills/list", func(context.Context, *mcp.ServerSession, *Params) (*Result, error) {
			list := []any{}
			for _, s := range all() {
				list = append(list, s.Entry())
			}
			raw, err := json.Marshal(list)
			return &Result{Raw: json.RawMessage(`{"resultType":"complete",` + cache + `,"skills":` + string(raw) + `}`)}, err
		}),
		mcp.AddReceivingCustomMethod(server, "skills/get", func(_ context.Context, _ *mcp.ServerSession, p *Params) (*Result, error) {
			for _, s := range all() {
				if p != nil && p.URI == s.Dir+"/SKILL.md" {
					raw, err := json.Marshal(s.Entry())
					return &Result{Raw: json.RawMessage(`{"resultType":"complete",` + cache + `,"skill":` + string(raw) + `}`)}, err
				}
			}
			return nil, unknown(p.URI)
		}),
		mcp.AddReceivingCustomMethod(server, "resources/directory/read", func(_ context.Context, _ *mcp.ServerSession, p *Params) (*Result, error) {
			children := []any{}
			for _, s := range all() {
				children = append(children, s.children(p.URI)...)
			}
			if len(children) == 0 {
				return nil, unknown(p.URI)
			}
			raw, err := json.Marshal(children)
			return &Result{Raw: json.RawMessage(`{"resultType":"complete","resources":` + string(raw) + `}`)}, err
		}),
	)
}

func (s Skill) addFiles(server *mcp.Server) {
	files := map[string]string{"SKILL.md": s.Main()}
	for name, text := range s.Files {
		files[name] = text
	}
	for name, text := range files {
		if other, ok := s.Served[name]; ok {
			text = other
		}
		r := &mcp.Resource{URI: s.Dir + "/" + name, Name: name, MIMEType: "text/markdown"}
		if name == "SKILL.md" {
			r.Name, r.Description = path.Base(s.Dir), s.Description
		}
		server.AddResource(r, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.URI, MIMEType: r.MIMEType, Text: text}}}, nil
		})
	}
}

// children lists what is directly in a folder of the skill.
func (s Skill) children(dir string) []any {
	var out []any
	seen := map[string]bool{}
	for _, name := range append([]string{"SKILL.md"}, sortedKeys(s.Files)...) {
		rest, ok := strings.CutPrefix(s.Dir+"/"+name, dir+"/")
		if !ok {
			continue
		}
		child, _, deeper := strings.Cut(rest, "/")
		if seen[child] {
			continue
		}
		seen[child] = true
		kind := "text/markdown"
		if deeper {
			kind = "inode/directory"
		}
		out = append(out, map[string]any{"uri": dir + "/" + child, "name": child, "mimeType": kind})
	}
	return out
}

func sortedKeys(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
