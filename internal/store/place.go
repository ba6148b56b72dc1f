package store

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A place is where a store is, and how to get there.
type place struct {
	shown    string // for people: no password
	file     string // of SQLite, absolute
	postgres *pgxpool.Config
	secrets  []string
}

// parsePlace reads an address. Its errors do not repeat it: there may be a
// password in it.
func parsePlace(address, dir string) (place, error) {
	scheme, rest, found := strings.Cut(address, ":")
	switch scheme = strings.ToLower(scheme); {
	case address == "":
		return sqlitePlace("ken.db", dir)
	case found && (scheme == "postgres" || scheme == "postgresql"):
		return postgresPlace(address)
	case found && scheme == "sqlite":
		if strings.ContainsAny(rest, "?#") {
			return place{}, fmt.Errorf("%w: an SQLite address has no settings; write sqlite:PATH, with %%3F for a ? in the path", ErrInvalid)
		}
		name, err := url.PathUnescape(strings.TrimPrefix(rest, "//"))
		if err != nil {
			return place{}, fmt.Errorf("%w: the path has a %% that escapes nothing; write %%25 for it", ErrInvalid)
		}
		return sqlitePlace(name, dir)
	case found && strings.HasPrefix(rest, "//"):
		return place{}, fmt.Errorf("%w: there is no store for %q; write a path, sqlite:PATH or postgres://…", ErrInvalid, scheme+"://")
	case strings.Contains(address, "password="):
		return place{}, fmt.Errorf("%w: the address is not a URL; write postgres://USER:PASSWORD@HOST/DATABASE", ErrInvalid)
	}
	return sqlitePlace(address, dir)
}

func sqlitePlace(name, dir string) (place, error) {
	switch {
	case name == "" || strings.HasSuffix(name, "/"):
		return place{}, fmt.Errorf("%w: the address names no file; write sqlite:PATH", ErrInvalid)
	case strings.ContainsRune(name, 0):
		return place{}, fmt.Errorf("%w: the path has a zero byte; write a plain path", ErrInvalid)
	case name == ":memory:":
		return place{}, fmt.Errorf("%w: a store in memory keeps nothing; name a file", ErrInvalid)
	case strings.HasPrefix(name, "~"):
		return place{}, fmt.Errorf("%w: ~ has no meaning here; write the whole path", ErrInvalid)
	}
	if !filepath.IsAbs(name) {
		if !filepath.IsAbs(dir) {
			return place{}, fmt.Errorf("%w: the path %q is not absolute, and neither is the directory %q it lies in; write a whole path", ErrInvalid, name, dir)
		}
		name = filepath.Join(dir, name)
	}
	name = filepath.Clean(name)
	return place{shown: name, file: name}, nil
}

func postgresPlace(address string) (place, error) {
	const form = "write postgres://USER:PASSWORD@HOST/DATABASE, with %XX for odd characters in the password"
	u, err := url.Parse(address)
	if err != nil {
		return place{}, fmt.Errorf("%w: the address is not a URL; %s", ErrInvalid, form)
	}
	p := place{secrets: []string{u.Query().Get("password"), u.Query().Get("sslpassword")}}
	if given, ok := u.User.Password(); ok {
		p.secrets = append(p.secrets, given, url.QueryEscape(given), url.PathEscape(given))
	}
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return place{}, fmt.Errorf("%w: %w; %s", ErrInvalid, p.scrub(err), form)
	}
	c := cfg.ConnConfig
	p.postgres, p.secrets = cfg, append(p.secrets, c.Password)
	p.shown = fmt.Sprintf("postgres://%s:%d/%s", c.Host, c.Port, c.Database)
	if strings.HasPrefix(c.Host, "/") {
		p.shown = fmt.Sprintf("postgres:///%s?host=%s", c.Database, c.Host)
	}
	return p, nil
}

// scrub takes a password out of an error of another package. Such an
// error keeps its kind, if it has one, and nothing else.
func (p place) scrub(err error) error {
	text := err.Error()
	for _, s := range p.secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "xxxxx")
		}
	}
	if text == err.Error() {
		return err
	}
	for _, kind := range []error{ErrUnavailable, ErrReadOnly, ErrBusy, ErrFull, ErrNewer, ErrDamaged} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w%s", kind, strings.TrimPrefix(text, kind.Error()))
		}
	}
	return errors.New(text)
}
