package mcpgateway

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/govern/pin"
	"ken/internal/run/executor"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/run/sandbox"
)

// A Scope says who shares a back end.
type Scope string

// The scopes. Empty is ScopeUser.
const (
	ScopeUser    Scope = "user"    // one for each principal
	ScopeSession Scope = "session" // one for each session of a principal
	ScopeShared  Scope = "shared"  // one for all
)

// A Profile says how a stdio server is held.
type Profile string

// The profiles. Empty is ProfileConfined where Read, Write or Hosts are given,
// else ProfileImported.
const (
	// ProfileImported leaves files and network as they are, and takes away the
	// environment, privileges, and Ken's own folders.
	ProfileImported Profile = "imported"

	// ProfileConfined shows the program its folder, Read, Write and Hosts.
	ProfileConfined Profile = "confined"
)

// A Server is the definition of one MCP server. Command and URL exclude each
// other. "${NAME}" and "${secret:NAME}" in Args, Env, Cwd, URL and Headers stand
// for what [Config.Getenv] gives; "${NAME:-text}" has a default. Names of the
// folder that a client works in, such as "${PWD}", stand for Folder.
type Server struct {
	Name string

	Command string
	Args    []string
	Env     map[string]string
	Cwd     string // absolute; empty: a folder of its own below Config.Work
	Folder  string // of the project that it is for; empty: of none

	URL     string
	SSE     bool // the older transport
	Headers map[string]string
	OAuth   *OAuth

	Scope              Scope
	Profile            Profile
	Read, Write, Hosts []string       // for ProfileConfined: absolute paths, and hosts as egress has them
	Networks           []netip.Prefix // private networks where those hosts may be; see egress

	Timeout      time.Duration // of a call [2 min]
	StartTimeout time.Duration // until it has listed its tools [60 s]
	Concurrent   int           // calls at one time on each back end [16]

	// Include and Exclude choose among what it offers by name; a star stands
	// for any text. Without Include everything is in.
	Include, Exclude []string

	Disabled bool

	// Foreign says that other programs write the definition. No name in it
	// stands for a sealed secret, however it is spelled.
	Foreign bool

	// Held, when not empty, says what a person has to agree to before the
	// server may be started. None of it is used until then.
	Held string

	// TrustHints says that the user believes what the server says of its
	// tools' effects, where the tools do not contradict it.
	TrustHints bool

	Trust  capability.Trust
	Origin capability.Origin // where it is configured
}

// EffectiveProfile returns the profile of a definition, which need not name it.
func (s Server) EffectiveProfile() Profile {
	switch {
	case s.Profile != "":
		return s.Profile
	case len(s.Read)+len(s.Write)+len(s.Hosts) > 0:
		return ProfileConfined
	}
	return ProfileImported
}

// An OAuth is what a remote server knows Ken by, beyond what it tells itself.
type OAuth struct {
	ClientID     string
	ClientSecret string // a reference, as "${secret:NAME}"
	Scopes       []string

	// For a token without a person; see [oauth.Machine]. Key and Token are
	// references.
	Grant, Issuer, Key, Token string
	Provider, ProviderClient  string
}

// A Login shows a remote server that a person agreed. The clients it makes carry
// nothing of that to another address.
type Login interface {
	auth.OAuthHandler
	Client(base *http.Client) *http.Client
	Bearer(base *http.Client) *http.Client // for the older transport, which knows no OAuthHandler
}

// A Pinner says which of the tools that a server lists may be used. The server
// is named by [pin.ServerKey]. It is asked at each listing and each load.
type Pinner interface {
	Check(ctx context.Context, server string, tools []pin.Tool) (map[string]pin.Verdict, error)
}

// A Recaller is a [Pinner] that knows whether a list that was checked before has to be
// checked again. Without it every list is.
type Recaller interface {
	Standing(ctx context.Context, server string) (pin.Standing, error)
	Saw(ctx context.Context, server string, seen pin.Seen) error
}

// Config is what a gateway may be told. Zero fields mean the default in
// brackets.
type Config struct {
	Servers  []Server
	CacheDir string // the user's alone [nothing is kept: each start lists again]

	// Getenv returns a variable or a sealed secret; with "secret:" before the
	// name a secret alone, with "env:" a variable alone [none is known].
	Getenv func(name string) (string, bool)

	Path string   // where programs are looked for, as PATH has it [executor.DefaultPath]
	Work string   // absolute: holds the folders of servers without one; needed for stdio servers
	Hide []string // Ken's own folders, which no server sees

	// HideFiles are files of Ken's that no server sees. Unlike folders they are
	// not made where they are not there, and what makes them later is seen.
	HideFiles []string

	// Workspace is the folder of the project, absolute. File names in arguments are
	// those of files in it, or in the server's own folder.
	Workspace string

	Require sandbox.Requirement
	Limits  sandbox.Limits // of each stdio server; time is not limited

	Pins  Pinner          // nil: everything is accepted
	Roots func() []string // folders that servers may be told of [none]
	Idle  time.Duration   // after which an unused back end is stopped [10 min]

	MaxTools int // of one server's list; the rest is cut and reported [10,000]

	// OAuth returns what shows a remote server that a principal agreed; the zero
	// principal is everybody, or no one in particular. Nil, and nil of a
	// server, mean none. The server's URL has no references any more.
	OAuth func(Server, capability.Principal) Login

	// Redact returns a text without secrets. It is for what servers list [as it is].
	Redact func(string) string

	// Redactor returns a Redact for many texts: it looks for new secrets once, and
	// not for each text [Redact].
	Redactor func() func(string) string

	// DenySampling reports whether servers are denied sampling [they are not].
	DenySampling func() bool

	Version string
	Log     *slog.Logger // [discards]
}

const (
	defaultTimeout      = 2 * time.Minute
	defaultStartTimeout = time.Minute
	defaultConcurrent   = 16
	defaultIdle         = 10 * time.Minute
)

func (c Config) filled() (Config, error) {
	c.Servers = slices.Clone(c.Servers)
	c.Hide, c.HideFiles = slices.Clone(c.Hide), slices.Clone(c.HideFiles)
	c.Path = cmp.Or(c.Path, executor.DefaultPath)
	c.Idle = cmp.Or(c.Idle, defaultIdle)
	if c.Getenv == nil {
		c.Getenv = func(string) (string, bool) { return "", false }
	}
	if c.OAuth == nil {
		c.OAuth = func(Server, capability.Principal) Login { return nil }
	}
	if c.Redact == nil {
		c.Redact = func(s string) string { return s }
	}
	if c.Redactor == nil {
		redact := c.Redact
		c.Redactor = func() func(string) string { return redact }
	}
	if c.Roots == nil {
		c.Roots = func() []string { return nil }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, dir := range slices.Concat([]string{c.CacheDir, c.Work}, c.Hide, c.HideFiles) {
		if dir != "" && (!filepath.IsAbs(dir) || filepath.Clean(dir) != dir) {
			return c, fmt.Errorf("make gateway: folder %q is not a clean absolute path", dir)
		}
	}
	for _, dir := range c.Hide {
		if rel, err := filepath.Rel(dir, c.Work); c.Work != "" && err == nil && filepath.IsLocal(rel) {
			return c, fmt.Errorf("make gateway: the servers' folder %s is hidden from them; use another folder", c.Work)
		}
	}
	seen := map[string]bool{}
	for _, s := range c.Servers {
		if err := checkName(s.Name); err != nil {
			return c, fmt.Errorf("make gateway: %w", err)
		}
		if seen[s.Name] {
			return c, fmt.Errorf("make gateway: duplicate server name %s; rename one", s.Name)
		}
		seen[s.Name] = true
	}
	return c, nil
}

// mostServerName keeps ids and exposed names readable.
const mostServerName = 128

func checkName(name string) error {
	bad := func(r rune) bool { return r == '/' || unicode.IsControl(r) || unicode.IsSpace(r) }
	if name == "" || len(name) > mostServerName || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("invalid server name %q: it must have 1 to %d bytes, without slashes and spaces", name, mostServerName)
	}
	return nil
}

// filled puts the defaults in their place. The maps and lists stay shared.
func (s Server) filled() Server {
	s.Scope = cmp.Or(s.Scope, ScopeUser)
	s.Profile = s.EffectiveProfile()
	s.Timeout = cmp.Or(s.Timeout, defaultTimeout)
	s.StartTimeout = cmp.Or(s.StartTimeout, defaultStartTimeout)
	s.Concurrent = cmp.Or(max(s.Concurrent, 0), defaultConcurrent)
	return s
}

// check says what is wrong with a definition, before anything of it is used.
func (s Server) check() error {
	switch {
	case s.Held != "":
		return errHeld
	case (s.Command == "") == (s.URL == ""):
		return errors.New("needs either a command or a url")
	case s.Scope != ScopeUser && s.Scope != ScopeSession && s.Scope != ScopeShared:
		return fmt.Errorf("scope %q: use user, session or shared", s.Scope)
	case s.Profile != ProfileImported && s.Profile != ProfileConfined:
		return fmt.Errorf("profile %q: use imported or confined", s.Profile)
	case s.Profile == ProfileImported && len(s.Read)+len(s.Write)+len(s.Hosts) > 0:
		return errors.New("read, write and hosts are valid only with the profile confined")
	}
	if s.URL != "" && !strings.Contains(s.URL, "${") {
		if _, err := parseURL(s.URL); err != nil {
			return err
		}
	}
	for _, p := range slices.Concat(s.Include, s.Exclude) {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	return nil
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("url is not http or https") // the text may hold a secret
	}
	return u, nil
}

// Wants reports whether something of a name is offered.
func (s *Server) Wants(name string) bool {
	match := func(p string) bool { ok, _ := path.Match(norm.NFC.String(p), name); return ok }
	return (len(s.Include) == 0 || slices.ContainsFunc(s.Include, match)) && !slices.ContainsFunc(s.Exclude, match)
}

// permissions are what a call of it needs: a program of its own for one, a way
// out for the other. They are both declared and required, so that a rule about
// them reaches every tool of the server.
func (s *Server) permissions() []string {
	switch {
	case s.URL != "":
		return []string{executor.PermNetwork}
	case s.Profile == ProfileConfined && len(s.Hosts) == 0:
		return []string{executor.PermExec}
	}
	return []string{executor.PermExec, executor.PermNetwork}
}

// identity covers all that decides which program or address answers. salt keeps
// anybody from trying out values against the name of a file.
func (s *Server) identity(salt []byte) string {
	all := []any{s.Name, s.Command, s.Args, s.Env, s.Cwd, s.URL, s.SSE, s.Headers, s.OAuth, s.Profile, s.Read, s.Write, s.Hosts}
	if s.Folder != "" { // without one a definition has the identity that it always had
		all = append(all, s.Folder)
	}
	text, _ := json.Marshal(all) // plain data cannot fail
	h := hmac.New(sha256.New, salt)
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// errHeld is why a definition cannot be used that waits for a person.
var errHeld = errors.New("the definition differs from the accepted one")

// invalid makes the error of a definition that cannot be used.
func (s *Server) invalid(err error) error {
	e := &capability.Error{
		Kind: capability.Unavailable, Op: "start MCP server", Target: s.Name, Err: link.WithRemedy(err, link.Complete), Fix: "fix mcp.servers." + s.Name, Rule: "mcp.servers." + s.Name,
	}
	if s.Origin.Path != "" {
		e.Fix = "fix " + s.Name + " in " + s.Origin.String()
	}
	if _, ok := errors.AsType[*badProgram](err); ok {
		e.Fix = "install the program, or fix command of " + strings.TrimPrefix(e.Fix, "fix ")
	}
	if u, ok := errors.AsType[*unset](err); ok {
		e.Fix = u.fix() + "; or " + e.Fix
	}
	if errors.Is(err, errHeld) {
		e.Kind, e.Rule, e.Fix = capability.Conflict, "mcp.import", "ken extension review mcp:"+s.Name
		e.Err = link.WithRemedy(fmt.Errorf("%w (%s): %s", err, s.Origin, s.Held), link.Complete)
	}
	return e
}
