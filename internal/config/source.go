package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/dirs"
	"ken/internal/yamldoc"
)

// A Source is one item of catalog.sources. Exactly one of Path, URL and
// Database is set.
type Source struct {
	// Name is distinct among the sources of a Config. It is the path or the
	// address where the file gives none.
	Name string

	// Path is an absolute file or directory.
	Path string

	// URL is an https address, or http on this machine.
	URL string

	// Database is the absolute path of a SQLite file, or a postgres://
	// address without a password.
	Database string

	// Table is read from Database; it is a plain SQL name, perhaps with its
	// schema before a dot. Default "capabilities".
	Table string

	// SHA256 is what the content of URL must hash to, as 64 lower-case hex
	// digits. Empty means that it is not checked.
	SHA256 string

	// Refresh is how often URL or Database are read again. Zero: only at the
	// start.
	Refresh time.Duration

	// Trust is given to all that the source holds: user for what the user's
	// own file names, workspace for what a project's names, and always remote
	// for an address, unless the file says a lower one.
	Trust capability.Trust

	// Optional makes a missing Path no problem.
	Optional bool

	// Origin is the file and the line that say so.
	Origin capability.Origin
}

const defaultTable = "capabilities"

func sourceSettings() []setting[Source] {
	return []setting[Source]{
		entry("name", "", func(s *Source) *string { return &s.Name }, text(nil)),
		entry("path", "", func(s *Source) *string { return &s.Path }, text(nil)),
		entry("url", "", func(s *Source) *string { return &s.URL }, text(nil)),
		entry("database", "", func(s *Source) *string { return &s.Database }, text(nil)),
		entry("table", "", func(s *Source) *string { return &s.Table }, text(checkTable)),
		entry("sha256", "", func(s *Source) *string { return &s.SHA256 }, text(checkDigest)),
		entry("refresh", "", func(s *Source) *time.Duration { return &s.Refresh }, duration(time.Second, 720*time.Hour, noLess)),
		entry("trust", "", func(s *Source) *capability.Trust { return &s.Trust }, trustKind()),
		entry("optional", "", func(s *Source) *bool { return &s.Optional }, boolean()),
	}
}

func checkTable(s string) (fix string, err error) {
	schema, name, dotted := strings.Cut(s, ".")
	if !isIdentifier(schema) || dotted && !isIdentifier(name) {
		return "write a plain name such as capabilities or team.capabilities", fmt.Errorf("is not the name of a table")
	}
	return "", nil
}

// isIdentifier reports whether a name is one of SQL that needs no quotes.
func isIdentifier(s string) bool {
	const longest = 63
	return s != "" && len(s) <= longest && (s[0] < '0' || s[0] > '9') && nameOf(s, "")
}

func checkDigest(s string) (fix string, err error) {
	if !isHex(s, 64) {
		return "write the 64 digits 0-9 a-f that sha256sum prints", fmt.Errorf("is not a SHA-256")
	}
	return "", nil
}

func trustKind() kind[capability.Trust] {
	words := word("remote", "workspace", "user")
	return kind[capability.Trust]{
		text: true,
		parse: func(r *reading, at spot, v yamldoc.Value) (t capability.Trust, ok bool) {
			w, ok := words.parse(r, at, v)
			return t, ok && t.UnmarshalText([]byte(w)) == nil
		},
		show: func(t capability.Trust) any { return t.String() },
	}
}

// sources reads catalog.sources. A project's are added to the user's.
func sources() kind[[]Source] {
	return kind[[]Source]{
		empty:   true,
		form:    listForm(tableForm(sourceSettings())),
		noWider: anything[[]Source], // each item was looked at when it was read
		join:    func(old, now []Source) []Source { return slices.Concat(old, now) },
		parse:   parseSources,
		show: func(list []Source) any {
			out := make([]yamldoc.Value, 0, len(list))
			for i := range list {
				out = append(out, yamldoc.Value{Any: list[i].show()})
			}
			return out
		},
	}
}

func (s *Source) show() *yamldoc.Map {
	m := &yamldoc.Map{}
	for _, e := range sourceSettings() {
		v := e.show(s)
		if v == "" || v == false || v == "0s" || e.name == "trust" && s.URL != "" {
			continue
		}
		m.Fields = append(m.Fields, yamldoc.Field{Key: e.name, Value: yamldoc.Value{Any: v}})
	}
	return m
}

func parseSources(r *reading, at spot, v yamldoc.Value) ([]Source, bool) {
	items, ok := r.list(at, v, "a list, as in [{name: team, path: ~/team}]")
	before := len(r.problems)
	var out []Source
	for i, item := range items {
		where := spot{fmt.Sprintf("%s[%d]", at.key, i), item.Line}
		m, isMap := item.Any.(*yamldoc.Map)
		if !isMap {
			r.mistyped(where, item, "a map, as in {name: team, path: ~/team}")
			continue
		}
		s := Source{Origin: capability.Origin{Path: r.file, Line: item.Line}}
		known := len(r.problems)
		given := decode(r, where.key+".", m, sourceSettings(), &s)
		if len(r.problems) == known { // the rules below would only repeat it
			r.checkSource(where, &s, given)
		}
		out = append(out, s)
	}
	r.distinctNames(out)
	return out, ok && len(r.problems) == before
}

// checkSource applies the rules that concern several keys of one source, and
// fills in what was not given.
func (r *reading) checkSource(at spot, s *Source, given map[string]int) {
	on := func(key string) spot { return spot{at.key + "." + key, given[key]} }
	var places []string
	for _, key := range []string{"path", "url", "database"} {
		if _, ok := given[key]; ok {
			places = append(places, key)
		}
	}
	if len(places) != 1 {
		r.fault(at, "bad-source", "name exactly one of path, url and database", "%s names %d places%s", at.key, len(places), listed(places))
		return
	}
	place := places[0]
	for _, rule := range []struct{ key, of string }{
		{"table", "database"}, {"sha256", "url"}, {"refresh", "url database"}, {"optional", "path"},
	} {
		if _, ok := given[rule.key]; ok && !strings.Contains(rule.of, place) {
			r.fault(on(rule.key), "bad-source", "remove it", "%s says nothing about a %s", on(rule.key).key, place)
		}
	}
	switch place {
	case "path":
		r.checkPath(on(place), s)
	case "url":
		r.checkURL(on(place), s)
	case "database":
		r.checkDatabase(on(place), s)
	}
	r.checkTrust(on("trust"), s, given)
	if r.workspace && place != "path" {
		r.fault(on(place), "widens", "put it into "+r.ownFile,
			"a project's file may not have Ken read a %s", map[string]string{"url": "remote address", "database": "database"}[place])
	}
}

func listed(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

func (r *reading) checkPath(at spot, s *Source) {
	if s.Path == "" {
		r.fault(at, "no-value", "write a file or a directory", "%s is empty", at.key)
		return
	}
	if s.Name == "" {
		s.Name = s.Path
	}
	s.Path = r.absolute(s.Path)
	if r.workspace && !r.inProject(s.Path) {
		r.fault(at, "widens", "name a path inside the project, or put it into "+r.ownFile,
			"%s %s is outside the project", at.key, plain(s.Path))
	}
}

// absolute resolves a path as a file means it: from the file's own directory,
// with ~ for the home directory.
func (r *reading) absolute(p string) string {
	return dirs.Absolute(r.dir, r.home, p)
}

// inProject judges a path by where it leads, links followed as far as they
// exist.
func (r *reading) inProject(p string) bool {
	return dirs.Within(r.project, p) && dirs.Within(realPath(r.project), realPath(p))
}

// realPath follows the links of the part of a path that exists.
func realPath(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	if dir := filepath.Dir(p); dir != p {
		return filepath.Join(realPath(dir), filepath.Base(p))
	}
	return p
}

func (r *reading) checkURL(at spot, s *Source) {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		r.fault(at, "bad-url", "write it as https://host/path", "%s is not an address", at.key)
	case u.User != nil:
		// The address itself is not repeated: it may hold a password.
		r.fault(at, "bad-url", "remove the part before @", "%s holds a user name or a password", at.key)
	case u.Scheme == "https" || u.Scheme == "http" && Loopback(u.Hostname()):
		if s.Name == "" {
			s.Name = s.URL
		}
	case u.Scheme == "http":
		r.fault(at, "bad-url", "write https://; http is for this machine only", "%s is not encrypted", at.key)
	default:
		r.fault(at, "bad-url", "write an https:// address", "%s has the scheme %s", at.key, plain(u.Scheme))
	}
}

func (r *reading) checkDatabase(at spot, s *Source) {
	if s.Name == "" {
		// An address says more about a database than everybody should see.
		r.fault(at, "no-value", "add name: and a short name of your own", "%s has no name beside it", at.key)
	}
	if s.Table == "" {
		s.Table = defaultTable
	}
	scheme, _, isURL := strings.Cut(s.Database, "://")
	switch {
	case s.Database == "":
		r.fault(at, "no-value", "write a SQLite file, or postgres://host/name", "%s is empty", at.key)
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		u, err := url.Parse(s.Database)
		if err != nil {
			r.fault(at, "bad-url", "write it as postgres://user@host/name", "%s is not an address", at.key)
			return
		}
		if _, has := u.User.Password(); has || u.Query().Has("password") || u.Query().Has("sslpassword") {
			r.fault(at, "bad-url", "leave it out, and set PGPASSWORD or keep it in ~/.pgpass", "%s holds a password", at.key)
		}
	case isURL || strings.Contains(s.Database, "="):
		r.fault(at, "bad-url", "write the path of a SQLite file, or postgres://user@host/name", "%s is neither a file nor a PostgreSQL address", at.key)
	default:
		s.Database = r.absolute(strings.TrimPrefix(s.Database, "sqlite:"))
	}
}

func (r *reading) checkTrust(at spot, s *Source, given map[string]int) {
	_, said := given["trust"]
	switch {
	case s.URL != "":
		if said && s.Trust != capability.TrustRemote {
			r.fault(at, "widens", "remove the key", "%s is %v, but what comes from an address is always remote", at.key, s.Trust)
		}
		s.Trust = capability.TrustRemote
	case !said && r.workspace:
		s.Trust = capability.TrustWorkspace
	case !said:
		s.Trust = capability.TrustUser
	case r.workspace && s.Trust > capability.TrustWorkspace:
		r.fault(at, "widens", "remove the key, or put the source into "+r.ownFile, "a project's file may not trust a source as %v", s.Trust)
	}
}

// distinctNames reports sources of one name.
func (r *reading) distinctNames(list []Source) {
	seen := map[string]capability.Origin{}
	for _, s := range list {
		first, twice := seen[s.Name]
		if twice && s.Name != "" {
			r.problems = append(r.problems, capability.Problem{
				Code: "duplicate-name", Origin: s.Origin,
				Message: fmt.Sprintf("catalog.sources: the name %s is taken at %s already", plain(s.Name), first),
				Fix:     "give one of them another name",
			})
			continue
		}
		seen[s.Name] = s.Origin
	}
}
