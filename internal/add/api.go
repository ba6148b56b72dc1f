package add

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/address"
	"ken/internal/know/source/openapi"
	"ken/internal/wholefile"
	"ken/internal/yamledit"
)

// A Request says which API to add.
type Request struct {
	From   string // an address, or a file
	Name   string // empty: made from the API's title
	Server string // for operations without an address; empty: where the document came from

	// For a GraphQL API, whose schema says nothing of credentials.
	GraphQL bool
	Auth    string // how they are sent, see [openapi.Auth]
	Secret  func(name string) (string, bool)
}

// An API is a document that was read and is not added yet.
type API struct {
	Name     string
	From     string // without what may be secret in an address
	Server   string // for operations without an address of their own
	SHA256   string
	Secrets  []string // names, in the order of the document
	Hosts    []Host
	Problems []capability.Problem

	Operations []*capability.Capability

	// What changes, if an API of this name is there.
	Exists                  bool
	Same                    bool // it is this document, at this server
	Added, Removed, Changed []string
	NewHosts                []string

	places   Places
	staged   string // the folder with the document
	document string // its name
	graph    bool   // it is a GraphQL API
	auth     string // how its credentials are sent
}

// A Host is one that the operations of an API reach.
type Host struct {
	Name    string `json:"name"`
	Private bool   `json:"private,omitempty"` // an address of this machine or network
	Plain   bool   `json:"plain,omitempty"`   // it is reached over http
	Tokens  bool   `json:"tokens,omitempty"`  // it only gives tokens
}

var apiName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`) })

// ReadAPI reads a document and finds out what it would add. The caller closes the
// API.
func ReadAPI(ctx context.Context, places Places, q Request) (*API, error) {
	a := &API{Server: q.Server, graph: q.GraphQL, places: places}
	var data []byte
	var err error
	if a.graph {
		data, err = a.readGraph(ctx, q)
	} else {
		data, a.From, err = a.places.readDocument(ctx, q.From)
	}
	if err != nil {
		return nil, err
	}
	shown := a.From
	refuse := func(kind capability.ErrorKind, why error, fix string) (*API, error) {
		return nil, errors.Join(&capability.Error{Kind: kind, Op: "add API", Target: shown, Err: why, Fix: fix}, a.Close())
	}
	a.SHA256 = openapi.Digest(data)
	if a.staged, err = places.stage(); err != nil {
		return nil, err
	}
	a.document = a.documentName(data)
	if err := os.WriteFile(filepath.Join(a.staged, a.document), data, fileMode); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	batch, err := a.load(ctx)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if len(batch.Capabilities) == 0 {
		why, fix := errors.New("document has no readable operations"), "name an OpenAPI 3 or Swagger 2.0 document, as JSON or YAML"
		if a.graph {
			why, fix = errors.New("the schema has no readable operations"), "name a GraphQL schema"
		}
		for _, p := range batch.Problems {
			if p.Severity == capability.Grave || p.Code == "no-operations" {
				why, fix = errors.New(p.Message), p.Fix
				break
			}
		}
		return refuse(capability.Invalid, why, fix)
	}
	if base, relative := openapi.RelativeServer(batch.Capabilities[0]); relative && a.Server == "" {
		if origin(q.From) == "" {
			return refuse(capability.Invalid, errors.New("the document names no address for its operations"), "add --server https://HOST with the address of the API")
		}
		a.Server = origin(q.From) + base
		if batch, err = a.load(ctx); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	a.Operations, a.Problems = batch.Capabilities, batch.Problems
	if a.Name = firstText(a.Name, q.Name); a.Name == "" {
		a.Name = usualName(a.Operations[0].Category, shown)
	}
	if !apiName().MatchString(a.Name) {
		return refuse(capability.Invalid, fmt.Errorf("%q cannot name an API", a.Name), "choose a name with --name: small letters, digits and dashes")
	}
	a.reach()
	if err := a.compare(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// readDocument reads an address or a file. An address is shown without its query.
func (p Places) readDocument(ctx context.Context, from string) (data []byte, shown string, err error) {
	if strings.Contains(from, "://") {
		return p.Fetch(ctx, from)
	}
	path, err := filepath.Abs(from)
	if err != nil {
		return nil, "", err
	}
	const most = 32 << 20
	info, err := os.Stat(path)
	refuse := func(why, fix string) error {
		return &capability.Error{Kind: capability.Invalid, Op: "read", Target: path, Err: errors.New(why), Fix: fix}
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, path, &capability.Error{Kind: capability.NotFound, Op: "read", Target: path, Err: errors.New("no such file"), Fix: "name a file or an https:// address"}
	case err != nil:
		return nil, path, err
	case !info.Mode().IsRegular():
		return nil, path, refuse("it is not a regular file", "name the document itself")
	case info.Size() > most:
		return nil, path, refuse(fmt.Sprintf("document has %d bytes, more than the limit of %d", info.Size(), int64(most)), "split it")
	}
	data, err = os.ReadFile(path)
	return data, path, err
}

// origin returns scheme and host of an address, or "" for a file.
func origin(from string) string {
	u, err := url.Parse(from)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func (a *API) documentName(data []byte) string {
	name, other := "openapi", ".yaml"
	if a.graph {
		name, other = openapi.GraphQLDocument, ".graphql"
	}
	if text := strings.TrimLeft(strings.TrimPrefix(string(data[:min(len(data), 64)]), "\ufeff"), " \t\r\n"); strings.HasPrefix(text, "{") {
		return name + ".json"
	}
	return name + other
}

// usualName makes a name of an API's title, or of the place that it came from.
func usualName(title, from string) string {
	plain := func(s string) string {
		s = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '-'
		}, strings.ToLower(s))
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '-' }), "-")
		return strings.TrimRight(s[:min(len(s), 64)], "-")
	}
	if name := plain(title); name != "" {
		return name
	}
	base := filepath.Base(from)
	return plain(strings.TrimSuffix(base, filepath.Ext(base)))
}

// load writes the marker beside the staged document, and reads the folder as the
// catalog will.
func (a *API) load(ctx context.Context) (capability.Batch, error) {
	if err := a.mark(); err != nil {
		return capability.Batch{}, err
	}
	return a.places.Load(ctx, a.staged)
}

// mark writes the marker.
func (a *API) mark() error {
	text := "# Written by ken add. The operations of the document can be called while it has\n# this digest. ken remove removes the API.\n"
	lines := [][2]string{{"document", a.document}, {"sha256", a.SHA256}, {"server", a.Server}, {"from", a.From}}
	if a.graph {
		lines = append(lines, [2]string{"name", a.Name}, [2]string{"auth", a.auth})
	}
	for _, line := range lines {
		if line[1] != "" {
			text += line[0] + ": " + yamledit.Flow(line[1]) + "\n"
		}
	}
	return wholefile.Write(filepath.Join(a.staged, openapi.Marker), []byte(text), fileMode)
}

// reach collects the hosts and secrets of all operations.
func (a *API) reach() {
	hosts := map[string]*Host{}
	var order []string
	add := func(text string, tokens bool) {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return
		}
		h, known := hosts[u.Host]
		if !known {
			h = &Host{Name: u.Host, Tokens: true}
			hosts[u.Host], order = h, append(order, u.Host)
			at, literal := address.Parse(u.Hostname())
			h.Private = address.Loopback(u.Hostname()) || literal && !address.Public(at)
		}
		h.Plain = h.Plain || u.Scheme == "http"
		h.Tokens = h.Tokens && tokens
	}
	for _, c := range a.Operations {
		if c.Run != nil && c.Unavailable == "" {
			add(c.Run.URL, false)
		}
		for _, text := range tokenAddresses(c) {
			add(text, true)
		}
		for _, name := range c.RequiredSecrets {
			if !slices.Contains(a.Secrets, name) {
				a.Secrets = append(a.Secrets, name)
			}
		}
	}
	for _, name := range order {
		a.Hosts = append(a.Hosts, *hosts[name])
	}
}

// tokenAddresses returns where an operation's tokens are fetched.
func tokenAddresses(c *capability.Capability) (out []string) {
	var auth []struct {
		TokenURL string `json:"tokenUrl"`
	}
	if json.Unmarshal([]byte(c.Meta["auth"]), &auth) != nil {
		return nil
	}
	for _, way := range auth {
		if way.TokenURL != "" {
			out = append(out, way.TokenURL)
		}
	}
	return out
}

// HostsOf returns the hosts that a call of an operation reaches, without ports.
func HostsOf(c *capability.Capability) (out []string) {
	for _, text := range append(tokenAddresses(c), c.Run.URL) {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" && !slices.Contains(out, u.Hostname()) {
			out = append(out, u.Hostname())
		}
	}
	return out
}

// Needs returns the private addresses among the hosts that no range of networks
// has.
func (a *API) Needs(networks []netip.Prefix) (out []string) {
	for _, h := range a.Hosts {
		if !h.Private {
			continue
		}
		u := url.URL{Host: h.Name}
		at, ok := address.Parse(u.Hostname())
		if !ok {
			at = netip.AddrFrom4([4]byte{127, 0, 0, 1}) // localhost
		}
		at = at.Unmap()
		if !slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(at) }) {
			out = append(out, h.Name)
		}
	}
	return out
}

// compare finds out what changes for an API that is there already.
func (a *API) compare(ctx context.Context) error {
	target := a.Folder()
	info, err := os.Lstat(target)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	marker := filepath.Join(target, openapi.Marker)
	if _, err := os.Lstat(marker); err != nil || !info.IsDir() {
		return &capability.Error{
			Kind: capability.Conflict, Op: "add API", Target: a.Name,
			Err: fmt.Errorf("%s is something else", target), Fix: "choose another name with --name",
		}
	}
	a.Exists = true
	if rel, err := filepath.Rel(target, a.From); err == nil && filepath.IsLocal(rel) { // a document that was changed in place
		a.From = markedFrom(marker)
		if err := a.mark(); err != nil {
			return err
		}
	}
	before, err := a.places.Load(ctx, target)
	if err != nil {
		return err
	}
	old, oldHosts := map[string]*capability.Capability{}, map[string]bool{}
	for _, c := range before.Capabilities {
		old[c.Name] = c
		if c.Run != nil {
			for _, h := range HostsOf(c) {
				oldHosts[h] = true
			}
		}
	}
	for _, c := range a.Operations {
		was, known := old[c.Name]
		delete(old, c.Name)
		switch {
		case !known:
			a.Added = append(a.Added, c.Name)
		case was.Hash != c.Hash:
			a.Changed = append(a.Changed, c.Name)
		}
	}
	for _, h := range a.Hosts {
		u := url.URL{Host: h.Name}
		if !oldHosts[u.Hostname()] {
			a.NewHosts = append(a.NewHosts, h.Name)
		}
	}
	for _, c := range before.Capabilities {
		if old[c.Name] != nil {
			a.Removed = append(a.Removed, c.Name)
		}
	}
	a.Same = len(a.Added)+len(a.Changed)+len(a.Removed) == 0
	return nil
}

// Folder returns the folder that the API has once it is added.
func (a *API) Folder() string { return filepath.Join(a.places.Capabilities, a.Name) }

// Add puts the API into the catalog, in place of the one of the same name. The
// document is the one that was read: nothing is fetched again.
func (a *API) Add() error {
	if err := wholefile.SyncFolder(a.staged); err != nil {
		return err
	}
	return a.places.move(a.staged, a.Folder())
}

// Close removes what was staged and not added.
func (a *API) Close() error {
	if a.staged == "" {
		return nil
	}
	return a.places.unstage(a.staged)
}

// Mine reports whether a capability belongs to the API of this name as it is now.
func (a *API) Mine(c *capability.Capability) bool {
	rel, err := filepath.Rel(a.Folder(), c.Origin.Path)
	return err == nil && filepath.IsLocal(rel)
}
