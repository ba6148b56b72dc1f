package connect

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ken/capability"
)

var mcpServers = []string{"mcpServers"}

// Merge adds servers that came from a client to a document of the form that
// clients share, and keeps everything else in it. A server that is there
// already, from whatever client, is not added again; one that came from this
// client before is brought up to date, with what x-ken says kept; one whose
// name another has gets "-" and the client's name, and keeps that from then
// on. The renames are from the name in the client to the name in the document.
func Merge(existing []byte, servers []Server, from string) (out []byte, renames map[string]string, err error) {
	m, err := newMerger(existing, from)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range servers {
		if err := m.add(s); err != nil {
			return nil, nil, err
		}
	}
	return m.data, m.renames, nil
}

// Unmerge takes away what came from a client, and from no other. Loose are the
// secrets that nothing in the document refers to any more.
func Unmerge(existing []byte, from string) (out []byte, removed, loose []string, err error) {
	m, err := newMerger(existing, from)
	if err != nil {
		return nil, nil, nil, err
	}
	before := referred(m.data)
	for _, s := range slices.Clone(m.servers) {
		if !slices.Contains(s.Ken.From, from) {
			continue
		}
		if len(s.Ken.From) > 1 {
			err = m.release(s)
		} else {
			removed = append(removed, s.Name)
			err = m.edit(change{drop: map[string]bool{s.Name: true}})
		}
		if err != nil {
			return nil, nil, nil, err
		}
	}
	after := referred(m.data)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if !after[name] {
			loose = append(loose, name)
		}
	}
	return m.data, removed, loose, nil
}

var secretRef = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{secret:([A-Za-z0-9_.-]+)\}`) })

func referred(data []byte) map[string]bool {
	out := map[string]bool{}
	for _, m := range secretRef().FindAllSubmatch(data, -1) {
		out[string(m[1])] = true
	}
	return out
}

// A merger holds one document while servers are added.
type merger struct {
	data    []byte
	from    string
	servers []Server
	names   map[string]bool // every name that is taken, of broken entries too
	renames map[string]string
}

func newMerger(existing []byte, from string) (*merger, error) {
	m := &merger{data: existing, from: from, names: map[string]bool{}, renames: map[string]string{}}
	doc, err := jsonFormat{}.read(existing)
	if err == nil {
		_, err = table(doc, mcpServers)
	}
	if err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "merge servers", Err: err, Fix: "fix mcp.json"}
	}
	for _, name := range (jsonFormat{}).names(existing, mcpServers) {
		m.names[name] = true
	}
	if doc["mcpServers"] != nil {
		m.servers, _ = ReadServers(existing) // what it cannot read stays as it is
	}
	return m, nil
}

func (m *merger) edit(c change) error {
	c.at = mcpServers
	data, _, err := changed(jsonFormat{}, m.data, []change{c})
	if err != nil {
		return &capability.Error{Kind: capability.Invalid, Op: "merge servers", Err: err, Fix: "fix mcp.json"}
	}
	m.data = data
	return nil
}

// write puts a server into the document, in the place of old where that is not
// empty.
func (m *merger) write(s Server, old string) error {
	c := change{put: []put{{name: s.Name, value: s.pairs()}}, drop: map[string]bool{}}
	if old != "" {
		c.drop[old] = true
	}
	if err := m.edit(c); err != nil {
		return err
	}
	m.names[s.Name] = true
	m.servers = slices.DeleteFunc(m.servers, func(o Server) bool { return o.Name == old })
	m.servers = append(m.servers, s)
	return nil
}

func (m *merger) called(s Server, name string) {
	if called := clientName(s); called != name {
		m.renames[called] = name
	}
}

// clientName is what the client calls it.
func clientName(s Server) string {
	if s.Ken.Name != "" {
		return s.Ken.Name
	}
	return s.Name
}

// mine reports whether an entry is the one that a server of this client had.
func (m *merger) mine(e, s Server) bool {
	return slices.Contains(e.Ken.From, m.from) && clientName(e) == clientName(s) && e.Ken.Project == s.Ken.Project
}

func (m *merger) add(s Server) error {
	s.Ken.From = []string{m.from}
	// The same one first: by whom it was called so, then any.
	same := slices.IndexFunc(m.servers, func(e Server) bool { return e.same(s) && m.mine(e, s) })
	if same < 0 {
		same = slices.IndexFunc(m.servers, func(e Server) bool { return e.same(s) })
	}
	if same >= 0 {
		return m.share(m.servers[same], s)
	}
	if i := slices.IndexFunc(m.servers, func(e Server) bool { return m.mine(e, s) }); i >= 0 {
		e := m.servers[i]
		if len(e.Ken.From) == 1 {
			keep := e.Ken
			called := clientName(s)
			s.Name, s.Ken = e.Name, keep
			if called != s.Name {
				s.Ken.Name = called
			}
			m.called(s, s.Name)
			return m.write(s, e.Name)
		}
		if err := m.release(e); err != nil {
			return err
		}
	}
	name, err := m.free(s.Name)
	if err != nil {
		return err
	}
	if called := clientName(s); called != name {
		s.Ken.Name = called
	}
	s.Name = name
	m.called(s, name)
	return m.write(s, "")
}

// share notes that a server of this client is the same as one that is there.
// One that a person wrote is left as it is.
func (m *merger) share(e, s Server) error {
	m.called(s, e.Name)
	if len(e.Ken.From) == 0 || slices.Contains(e.Ken.From, m.from) {
		return nil
	}
	e.Ken.From = append(slices.Clone(e.Ken.From), m.from)
	slices.Sort(e.Ken.From)
	return m.write(e, e.Name)
}

// release notes that an entry is no longer this client's.
func (m *merger) release(e Server) error {
	e.Ken.From = slices.DeleteFunc(slices.Clone(e.Ken.From), func(f string) bool { return f == m.from })
	return m.write(e, e.Name)
}

// free returns name, or one made from it, that no server has.
func (m *merger) free(name string) (string, error) {
	if !goodName().MatchString(name) {
		name = safeName(name)
	}
	if !m.names[name] {
		return name, nil
	}
	for n := 1; n < 10_000; n++ {
		ending := "-" + m.from
		if n > 1 {
			ending += "-" + strconv.Itoa(n)
		}
		next := strings.TrimRight(name[:min(len(name), 64-len(ending))], "-.") + ending
		if !m.names[next] {
			return next, nil
		}
	}
	return "", &capability.Error{Kind: capability.Conflict, Op: "merge servers", Err: fmt.Errorf("too many servers are called %s", name), Fix: "delete some from mcp.json"}
}
