package connect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"ken/internal/connect/permission"
	"ken/internal/secret"
	"ken/internal/wholefile"
)

// A ConnectorConfig says what a [Connector] works with. Log may not be nil.
type ConnectorConfig struct {
	ServerFile string // mcp.json, which receives the servers of clients
	RuleFile   string // client-rules.json, which receives what users decided in clients
	RecordDir  string // keeps the files of clients as they were, sealed

	UserHome string // the home folder of the person, where clients keep their files
	Getenv   func(string) string

	KenHome string // KEN_HOME for the clients that start Ken; empty: they need none
	Addr    string // host and port at which Ken answers over HTTP

	Secrets *secret.Store
	Log     *slog.Logger

	// RemoveToken removes the token that a client has of its own and reports
	// whether there was one.
	RemoveToken func(client string) (bool, error)
}

// A Connector connects clients with Ken and disconnects them.
type Connector struct{ cfg ConnectorConfig }

// NewConnector returns a Connector. It reads and writes nothing yet.
func NewConnector(cfg ConnectorConfig) *Connector { return &Connector{cfg} }

// A Request says which client to connect, and how.
type Request struct {
	Client  string
	File    string // the client's configuration, where it is not in the usual place
	Project string // a folder whose own files are changed too
	Program string // the absolute path of ken
	HTTP    bool   // the client asks over HTTP, with Token
	Token   string
}

// Plan works out what connecting a client would change. It changes nothing.
func (c *Connector) Plan(r Request) (*Plan, error) {
	entry := Entry{Command: r.Program, Args: []string{"mcp", "--client", r.Client}, Home: c.cfg.KenHome}
	if r.HTTP {
		entry = Entry{URL: "http://" + c.cfg.Addr + "/mcp", Token: r.Token}
	}
	p, err := Prepare(Options{
		Where: Where{Client: r.Client, Home: c.cfg.UserHome, Getenv: c.cfg.Getenv, File: r.File, Project: r.Project},
		Entry: entry,
		Secret: func(name string) (secret.Value, bool) {
			v, err := c.cfg.Secrets.Lookup(name)
			return v, err == nil
		},
	})
	if err != nil {
		return nil, err
	}
	return p, c.planRules(p)
}

// planRules works out the rules of a plan, with the names that its servers will
// have in mcp.json.
func (c *Connector) planRules(p *Plan) error {
	servers, err := os.ReadFile(c.cfg.ServerFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the servers: %w", err)
	}
	servers, _, err = Merge(servers, p.Servers, p.Client)
	if err != nil {
		return fmt.Errorf("edit %s: %w", c.cfg.ServerFile, err)
	}
	old, err := permission.ReadRules(c.cfg.RuleFile)
	if err != nil {
		return err
	}
	client, err := clientNamed(p.Client)
	if err != nil {
		return err
	}
	var after []Server
	if len(servers) > 0 {
		after, _ = ReadServers(servers)
	}
	of := slices.DeleteFunc(slices.Clone(old), func(r permission.Rule) bool { return !slices.Contains(r.Agents, p.Client) })
	p.translate(client, after, of)
	p.NewRules = !slices.EqualFunc(of, p.Rules, func(a, b permission.Rule) bool { return a.String() == b.String() && a.ID == b.ID })
	return nil
}

// Connect carries out a plan: it seals the secrets, adds the servers to
// mcp.json, and then changes the client's files. It returns the names that the
// enabled servers have in mcp.json.
func (c *Connector) Connect(ctx context.Context, p *Plan) (names []string, err error) {
	for _, s := range p.Secrets {
		if s.Value.Reveal() == "" {
			continue // a person has to set it
		}
		if err := c.cfg.Secrets.Set(s.Name, s.Value); err != nil {
			return nil, err
		}
	}
	var renames map[string]string
	err = EditFile(c.cfg.ServerFile, func(old []byte) (out []byte, err error) {
		out, renames, err = Merge(old, p.Servers, p.Client)
		return out, err
	})
	if err != nil {
		return nil, err
	}
	for _, s := range p.Servers {
		name := s.Name
		if now, ok := renames[name]; ok {
			name = now
		}
		if !s.Disabled {
			names = append(names, name)
		}
	}
	// The rules come first: no moment may pass in which Ken allows what the client
	// denied.
	if err := c.planRules(p); err != nil {
		return nil, err
	}
	old, err := c.replaceRules(p.Client, p.Rules)
	if err != nil {
		return nil, err
	}
	if err := Apply(ctx, p, c.records()); err != nil {
		return names, errors.Join(err, permission.WriteRules(c.cfg.RuleFile, old))
	}
	return names, nil
}

// replaceRules writes the rules of a client, and returns what all rules were.
func (c *Connector) replaceRules(client string, rules []permission.Rule) (old []permission.Rule, err error) {
	if old, err = permission.ReadRules(c.cfg.RuleFile); err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(old), func(r permission.Rule) bool { return slices.Contains(r.Agents, client) })
	return old, permission.WriteRules(c.cfg.RuleFile, slices.Concat(others, rules))
}

// A Disconnection says what Disconnect did.
type Disconnection struct {
	Files   []Restored `json:"files"`
	Removed []string   `json:"removed"` // servers that Ken no longer has
	Secrets []string   `json:"secrets"` // that came from the client's files, and are removed
	Rules   int        `json:"rules"`   // that were taken from the client's settings, and are removed
	Stay    []string   `json:"stay"`    // secrets that a person set, and that nothing refers to now
	Token   bool       `json:"token"`   // the client had its own token, which was removed
}

// Disconnect restores the files of a client. It removes the servers that came
// from this client alone, the secrets that were in its files, and its token.
func (c *Connector) Disconnect(ctx context.Context, client string, force bool) (Disconnection, error) {
	d := Disconnection{Removed: []string{}, Secrets: []string{}, Stay: []string{}}
	sealed, err := Sealed(ctx, client, c.records())
	if err != nil {
		return d, err
	}
	if d.Files, err = Undo(ctx, client, c.records(), force); err != nil {
		return d, err
	}
	var unused []string
	err = EditFile(c.cfg.ServerFile, func(old []byte) (out []byte, err error) {
		out, d.Removed, unused, err = Unmerge(old, client)
		return out, err
	})
	if err != nil {
		return d, err
	}
	for _, name := range unused {
		if _, err := c.cfg.Secrets.Lookup(name); err != nil {
			continue // not set
		}
		if !slices.Contains(sealed, name) {
			d.Stay = append(d.Stay, name)
			continue
		}
		if err := c.cfg.Secrets.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.cfg.Log.Warn("a secret that nothing needs any more stays", "name", name, "error", err)
			d.Stay = append(d.Stay, name)
			continue
		}
		d.Secrets = append(d.Secrets, name)
	}
	old, err := c.replaceRules(client, nil)
	if err != nil {
		return d, err
	}
	for _, r := range old {
		if slices.Contains(r.Agents, client) {
			d.Rules++
		}
	}
	if d.Token, err = c.cfg.RemoveToken(client); err != nil {
		return d, err
	}
	if err := c.tidy(); err != nil { // the client has its files again in any case
		c.cfg.Log.Warn("something of the connection is left in Ken's folder", "error", err)
	}
	return d, nil
}

// tidy removes what connecting made and no connection needs any more: an mcp.json
// without servers, and the key of the records.
func (c *Connector) tidy() error {
	data, err := os.ReadFile(c.cfg.ServerFile)
	if err == nil && noServers(data) {
		err = os.Remove(c.cfg.ServerFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, c.records().Clean())
}

// noServers reports whether a file says nothing but that there are no servers. A
// comment is something.
func noServers(data []byte) bool {
	var b bytes.Buffer
	return json.Compact(&b, data) == nil && b.String() == `{"mcpServers":{}}`
}

func (c *Connector) records() *Vault { return NewVault(c.cfg.RecordDir, c.cfg.Secrets) }

// EditFile replaces a file that defines servers with what edit makes of it; old
// is empty if the file does not exist yet.
func EditFile(file string, edit func(old []byte) ([]byte, error)) error {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the servers: %w", err)
	}
	out, err := edit(old)
	if err != nil {
		return fmt.Errorf("edit %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := wholefile.Write(file, out, 0o600); err != nil {
		return fmt.Errorf("write the servers: %w", err)
	}
	return nil
}
