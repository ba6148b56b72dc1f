package config

import (
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/secret"
	"ken/internal/yamldoc"
)

// A Database is one that capabilities may ask, by name.
type Database struct {
	Name   string
	Engine Engine

	Path string // of SQLite, absolute
	URL  string // of servers; without a password

	// Password is a reference: secret:NAME, env:NAME or file:PATH. Empty is none.
	Password string

	Access      Access // empty is read
	Description string // for the model

	Rows    int           // most rows of one answer; zero is 1000
	Bytes   int           // most bytes of one answer; zero is 1 MiB
	Timeout time.Duration // of one call; zero is 30 s

	Origin capability.Origin // the file and the line that say so
}

// An Engine is a kind of database.
type Engine string

const (
	EngineSQLite   Engine = "sqlite"
	EnginePostgres Engine = "postgres"
	EngineMySQL    Engine = "mysql" // and MariaDB
)

// An Access says what may be done with a database.
type Access string

const (
	AccessRead  Access = "read"
	AccessWrite Access = "write"
)

const databasesKey = "databases"

func databaseSettings() []setting[Config] {
	return []setting[Config]{
		entry(databasesKey, "Databases that can be asked, by name, as in {shop: {engine: sqlite, path: ~/shop.db}, crm: {engine: postgres, url: postgres://reader@host/crm, password: secret:CRM_PASSWORD}}.",
			func(c *Config) *[]Database { return &c.Databases }, databases()),
	}
}

func oneDatabaseSettings() []setting[Database] {
	return []setting[Database]{
		entry("engine", "", func(d *Database) *Engine { return &d.Engine }, word(EngineSQLite, EnginePostgres, EngineMySQL)),
		entry("path", "", func(d *Database) *string { return &d.Path }, path()),
		entry("url", "", func(d *Database) *string { return &d.URL }, databaseURL()),
		entry("password", "", func(d *Database) *string { return &d.Password }, reference()),
		entry("access", "", func(d *Database) *Access { return &d.Access }, word(AccessRead, AccessWrite)),
		entry("description", "", func(d *Database) *string { return &d.Description }, text(nil)),
		entry("rows", "", func(d *Database) *int { return &d.Rows }, whole(1, 1_000_000)),
		entry("bytes", "", func(d *Database) *int { return &d.Bytes }, size[int](4*kib, 64*mib)),
		entry("timeout", "", func(d *Database) *time.Duration { return &d.Timeout }, duration(time.Millisecond, time.Hour, noMore)),
	}
}

// databases maps names to databases. One is a file that is read or an address
// that is sent data, so a project has no say in them.
func databases() kind[[]Database] {
	return kind[[]Database]{
		empty: true,
		form:  mapForm(tableForm(oneDatabaseSettings())),
		noWider: func(a, b []Database) bool {
			return slices.EqualFunc(a, b, func(a, b Database) bool {
				a.Origin, b.Origin = capability.Origin{}, capability.Origin{}
				return reflect.DeepEqual(a, b)
			})
		},
		parse: parseDatabases,
		show: func(list []Database) any {
			out := &yamldoc.Map{}
			for i := range list {
				m := &yamldoc.Map{}
				for _, e := range oneDatabaseSettings() {
					if v := e.show(&list[i]); v != "" && v != "0s" && v != int64(0) && v != "0B" && v != 0 {
						m.Fields = append(m.Fields, yamldoc.Field{Key: e.name, Value: yamldoc.Value{Any: v}})
					}
				}
				out.Fields = append(out.Fields, yamldoc.Field{Key: list[i].Name, Value: yamldoc.Value{Any: m}})
			}
			return out
		},
	}
}

func parseDatabases(r *reading, at spot, v yamldoc.Value) ([]Database, bool) {
	var out []Database
	ok := named(r, at, v, "database", "{engine: sqlite, path: ~/shop.db}", func(where spot, name string, about *yamldoc.Map) {
		d := Database{Name: name, Origin: capability.Origin{Path: r.file, Line: where.line}}
		known := len(r.problems)
		decode(r, where.key+".", about, oneDatabaseSettings(), &d)
		if len(r.problems) == known {
			r.checkConnection(where, &d)
		}
		out = append(out, d)
	})
	coldsort.By(out, func(a, b Database) int { return strings.Compare(a.Name, b.Name) })
	return out, ok
}

func (r *reading) checkConnection(at spot, d *Database) {
	wrong := func(fix, format string) { r.fault(at, "bad-database", fix, format, at.key) }
	switch {
	case strings.Contains(d.Name, "."):
		wrong("use letters, digits, _ and -", "the name of %s has a dot, and is part of the names of tools")
	case d.Engine == "":
		wrong("write engine: sqlite, engine: postgres or engine: mysql", "%s does not say its engine")
	case d.Engine == EngineSQLite && d.Path == "":
		wrong("write path: and the file", "%s names no file")
	case d.Engine == EngineSQLite && (d.URL != "" || d.Password != ""):
		wrong("remove url and password", "%s is a file, and has words about a server")
	case d.Engine != EngineSQLite && d.URL == "":
		wrong("write url: "+string(d.Engine)+"://user@host/database", "%s names no server")
	case d.Engine != EngineSQLite && d.Path != "":
		wrong("remove path", "%s is at a server, and has words about a file")
	case (d.Engine == EngineMySQL) != strings.HasPrefix(d.URL, "mysql:") && d.Engine != EngineSQLite:
		wrong("write url: "+string(d.Engine)+"://user@host/database", "the url of %s is that of another engine")
	case d.Engine == EngineMySQL && d.Access == AccessWrite:
		wrong("remove access", "%s is a MySQL or MariaDB database, which Ken only reads")
	}
}

// databaseURL is the address of a server. What is wrong with it is told without
// repeating it: there may be a password in it.
func databaseURL() kind[string] {
	return kind[string]{
		text: true,
		parse: func(r *reading, at spot, v yamldoc.Value) (string, bool) {
			s, ok := r.printable(at, v)
			if !ok {
				return "", false
			}
			if fix, err := checkDatabaseURL(s); err != nil {
				r.fault(at, "bad-url", fix, "%s %v", at.key, err)
				return "", false
			}
			return s, true
		},
		show:    func(s string) any { return withoutPassword(s) },
		noWider: identical[string],
	}
}

func checkDatabaseURL(s string) (fix string, err error) {
	const form = "write postgres://user@host/database or mysql://user@host/database"
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" || !slices.Contains([]string{"postgres", "postgresql", "mysql"}, u.Scheme) {
		return form, errors.New("is not an address of PostgreSQL, MySQL or MariaDB")
	}
	if _, has := u.User.Password(); has {
		return "keep the password with ken secret set NAME, and write password: secret:NAME", errors.New("has a password in it")
	}
	switch {
	case u.Host == "" && u.Query().Get("host") == "":
		return form, errors.New("names no host")
	case u.User.Username() == "":
		return form, errors.New("names no user")
	case strings.Trim(u.Path, "/") == "":
		return form, errors.New("names no database")
	}
	for key := range u.Query() {
		switch key {
		case "host", "sslmode", "sslrootcert":
		default:
			return "use host (of a socket), sslmode and sslrootcert alone", errors.New("has a part after ? that is not known")
		}
	}
	return "", nil
}

// reference is one to a secret, and never the secret itself.
func reference() kind[string] {
	return kind[string]{
		text: true,
		parse: func(r *reading, at spot, v yamldoc.Value) (string, bool) {
			s, ok := r.printable(at, v)
			if ok && !secret.IsReference(s) {
				r.fault(at, "bad-value", "keep it with ken secret set NAME, and write secret:NAME here", "%s is not a reference to a secret", at.key)
				return "", false
			}
			return s, ok
		},
		show:    asIs[string],
		noWider: identical[string],
	}
}
