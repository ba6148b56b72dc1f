package policy

import (
	"slices"
	"strings"
	"time"

	"ken/capability"
)

// A Capability is what the rules may know of a capability. It is comparable
// plain data. [Of] fills it from a catalog entry; the runner then sets what
// only the executor knows, above all Required.
type Capability struct {
	ID     capability.ID
	Name   string
	Kind   capability.Kind
	Source string
	Trust  capability.Trust
	Class  Class
	Hash   string // grants are bound to it

	ReadOnly    bool // believed
	Destructive bool // claimed, or not denied by a trusted source
	MCP         bool // a tool of an MCP server
	AppOnly     bool // a tool of an MCP server for its own pages, and not for models
	AnyProgram  bool // it runs any program or code that its arguments name

	Declared Permissions // what its manifest asks for
	Required Permissions // what the executor needs for it

	// Claim, when not empty, says what the source claims and is not believed.
	Claim string

	// Disabled, when not empty, says why it is switched off, as an extension
	// is that has not been reviewed; Fix says what to do.
	Disabled, Fix string
}

// Of returns what the rules may know of c. A name is believed only of a
// capability that is part of this program, a hint only where it makes Ken more
// careful or comes from the user's own place. Of an MCP server's hints
// Effects has only those that count. An unknown effect is [Network], the
// class that is asked about each time.
func Of(c *capability.Capability) Capability {
	out := Capability{
		ID: c.ID, Name: c.Name, Kind: c.Kind, Source: c.Origin.Source, Trust: c.Trust, Hash: c.Hash,
		MCP:      c.Origin.Format == "mcp",
		AppOnly:  c.Origin.Format == "mcp" && c.Meta[metaAppOnly] != "",
		Declared: ParsePermissions(c.Permissions), AnyProgram: anyProgram(c.Run),
	}
	believed := c.Trust >= capability.TrustUser
	out.ReadOnly = believed && c.Effects.ReadOnly == capability.Yes
	switch c.Effects.Destructive {
	case capability.Yes:
		out.Destructive = true
	case capability.No:
		out.Destructive = !believed
	default:
		out.Destructive = !believed && c.Run == nil && c.Kind != capability.KindSkill && c.Kind != capability.KindCard
	}
	out.Class, out.Required = classOf(c, out.ReadOnly)
	out.Claim = claimOf(c)
	return out
}

// The keys of Meta in which package mcptools notes what a server says of its pages.
const (
	metaApp     = "mcp.app"
	metaAppOnly = "mcp.app.only"
)

// AppOf names the page that calls a tool of an MCP server: its address if the tool
// names one, and otherwise whose page it is.
func AppOf(c *capability.Capability) string {
	if page := c.Meta[metaApp]; page != "" && c.Origin.Format == "mcp" {
		return page
	}
	return "a page of " + c.Category
}

// claimOf returns what a source claims of a capability that would make Ken less
// careful, and why it is not believed.
func claimOf(c *capability.Capability) string {
	if c.Claims == nil || c.Claims.ReadOnly != capability.Yes {
		return ""
	}
	who := "its source"
	if c.Origin.Format == "mcp" {
		who = "the server"
	}
	return who + " claims that the call only reads, but " + c.Claims.Doubt
}

func classOf(c *capability.Capability, readOnly bool) (Class, Permissions) {
	if c.Trust == capability.TrustBuiltin {
		if class := builtinClass(c.Name); class != ClassUnknown {
			return class, Permit(needOf(class))
		}
	}
	if c.Run != nil {
		runner, _, _ := strings.Cut(c.Run.Runner, ".")
		switch runner {
		case "exec", "shell":
			return Exec, Permit(PermExec)
		case "analyze":
			return Read, Permit(PermLLM)
		case "browser":
			return Network, Permit(PermBrowser, PermNetwork)
		case "llm":
			return Network, Permit(PermLLM)
		case "mcp":
			return serverClass(c, readOnly), Permissions{}
		case "db":
			return databaseClass(c), Permissions{} // the executor knows whether it is a file or a server
		case "function": // part of the program that runs Ken: no permission keeps it in
			if readOnly && c.Effects.OpenWorld == capability.No {
				return Read, Permissions{}
			}
			return Network, Permissions{}
		}
		return Network, Permit(PermNetwork)
	}
	switch {
	case c.Kind == capability.KindSkill || c.Kind == capability.KindCard:
		return Meta, Permissions{} // a text to read; its tools are capabilities of their own
	case readOnly && c.Effects.OpenWorld == capability.No:
		return Read, Permissions{}
	}
	return Network, Permissions{}
}

// serverClass is the class of an MCP tool, of which only the server knows what
// it does. One of the user's own servers that says nothing is taken to change
// something: to ask each time, as for what reaches far by its own word, would
// teach people to say yes to everything.
func serverClass(c *capability.Capability, readOnly bool) Class {
	switch {
	case readOnly:
		return Read
	case c.Effects.OpenWorld == capability.Yes || c.Trust < capability.TrustUser:
		return Network
	}
	return Write
}

// databaseClass is the class of a call to a database that ken.yaml names. The
// database itself keeps all but execute from changing anything. What a project
// brings is asked about each time: it decides what is read.
func databaseClass(c *capability.Capability) Class {
	switch {
	case c.Trust < capability.TrustUser:
		return Network
	case c.Run.Runner == "db.execute":
		return Write
	}
	return Read
}

// needOf returns the permission that no call of a class can do without.
func needOf(c Class) Permission {
	switch c {
	case Read:
		return PermRead
	case Write, Edit:
		return PermWrite
	case Exec:
		return PermExec
	case Network:
		return PermNetwork
	}
	return 0
}

// A Path is a file that a call names.
type Path struct {
	Name  string // relative to the workspace, or absolute
	Write bool
}

// Facts are what a call's arguments come to, as the executor reads them. The
// zero value says nothing of them: rules that demand something of arguments
// then refuse.
type Facts struct {
	Paths []Path

	// Commands are the simple commands of a command line, each as the
	// arguments that would be run.
	Commands [][]string

	// Dir is where commands start, relative to the workspace; "" is the
	// workspace.
	Dir string

	// Named lists texts in the arguments that may name files. They are checked
	// only against the lists of protected and secret files. Files that Commands
	// name are found separately.
	Named []string

	// Mentioned lists words in the arguments that may name files. They are checked
	// only against the list of secret files.
	Mentioned []string

	// Unseen says why not every file that the call can reach, or names, was
	// checked against these lists. The call then counts as naming one of each.
	Unseen string

	// Opaque says why the command line is more than Commands: a
	// substitution, a redirection, an assignment. It is never allowed
	// without a person.
	Opaque string

	// Hidden names what in the project may make a command run a program that
	// Commands does not show, such as a filter in .git/config.
	Hidden string

	// Line is the whole command line where a shell reads it.
	Line string

	Hosts []string // without port

	// Secrets are the names of secrets that Ken knows, whose values stand in the
	// arguments, and that the capability does not declare.
	Secrets []string

	Destructive bool // the executor knows that this call destroys something
}

// A Request is one call to judge. Every field counts as it stands; the zero
// Request is refused.
type Request struct {
	Principal  capability.Principal
	Capability Capability
	Action     string
	Facts      Facts
	Intent     string
	Mode       string
	Origin     capability.Caller
	Surface    Surface
	Session    string
	Digest     string // of the call: see capability.Call.Digest
	Grants     []Grant
	Time       time.Time

	// Files are the programs and scripts whose bytes decide what the call does.
	Files []File

	// Exact is the digest of the call without session, intent and mode.
	Exact string
}

// A File is a program or script that a call runs: the name that the call uses,
// its path, and the digest of its bytes.
type File struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// ChangedFile returns the first of files that has the same name as one in
// approved but a different path or digest, or nil.
func ChangedFile(approved, files []File) *File {
	for i, f := range files {
		if j := slices.IndexFunc(approved, func(a File) bool { return a.Name == f.Name }); j >= 0 && approved[j] != f {
			return &files[i]
		}
	}
	return nil
}

// NewFile returns the first of files that is not in approved, or nil. Commands
// with the same beginning run other files in another folder.
func NewFile(approved, files []File) *File {
	for i, f := range files {
		if !slices.Contains(approved, f) {
			return &files[i]
		}
	}
	return nil
}

// A Viewer is a class of principals: all who see the same capabilities.
type Viewer struct {
	Principal capability.Principal
	Mode      string
	Origin    capability.Caller
	Surface   Surface
}

// A Grant is a person's consent, as the approval desk keeps it. It answers a
// question and never lifts a refusal. Every field that is set narrows it, and
// the zero Grant covers nothing: principal and capability must be named, and
// at least one of Digest, Session, Until and Always.
type Grant struct {
	ID         string
	Tenant     string
	Principal  string
	Capability capability.ID
	Hash       string // hash of the capability's text; without it the grant covers only the user's own
	Action     string // always compared
	Digest     string
	Session    string
	Until      time.Time // not from this moment on
	Always     bool

	// Exact, if not empty, is the digest of the only call that is covered, in
	// any session. Prefix, if not empty, is the beginning of the covered
	// commands.
	Exact  string
	Prefix []string

	// Files are those that the approved call ran. A call in which one of them
	// has changed is not covered, and neither is a call that runs files if the
	// grant lists none, or other files if the grant has a Prefix.
	Files []File
}

// covers reports whether the grant answers a question of a scope about a
// request. A question of the scope [Once] is answered by a digest alone.
func (g *Grant) covers(q *Request, scope Scope) bool {
	switch {
	case g.Principal == "" || g.Principal != q.Principal.ID || g.Tenant != q.Principal.Tenant,
		g.Capability == "" || g.Capability != q.Capability.ID || g.Action != q.Action,
		g.Hash != "" && g.Hash != q.Capability.Hash,
		g.Hash == "" && q.Capability.Trust < capability.TrustUser, // the grant has only an id
		g.Digest != "" && g.Digest != q.Digest,
		g.Session != "" && g.Session != q.Session,
		g.Exact != "" && g.Exact != q.Exact,
		len(g.Prefix) > 0 && (!begins(g.Prefix, &q.Facts) || NewFile(g.Files, q.Files) != nil),
		len(g.Files) == 0 && len(q.Files) > 0 && g.Digest == "" || ChangedFile(g.Files, q.Files) != nil,
		!g.Until.IsZero() && (q.Time.IsZero() || !q.Time.Before(g.Until)):
		return false
	}
	if scope == Once {
		return g.Digest != ""
	}
	return g.Digest != "" || g.Session != "" || g.Always || !g.Until.IsZero()
}
