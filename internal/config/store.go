package config

import (
	"net/url"
	"strings"

	"ken/internal/yamldoc"
)

const storeKey = "store"

func storeSettings() []setting[Config] {
	return []setting[Config]{
		entry(storeKey, "Where state is kept: empty for a file in the state directory, or postgres://user@host/database.",
			func(c *Config) *string { return &c.Store }, address()),
	}
}

// hidden stands for a password.
const hidden = "•••"

// address is that of a database, or empty. It is never shown with a password
// in it, and a project has no say in it.
func address() kind[string] {
	return kind[string]{
		text: true,
		parse: func(r *reading, at spot, v yamldoc.Value) (string, bool) {
			s, ok := r.printable(at, v)
			if !ok || s == "" {
				return "", ok
			}
			const form = "write postgres://user@host/database, or leave it empty"
			u, err := url.Parse(s)
			switch {
			case err != nil || u.Opaque != "":
				r.fault(at, "bad-url", form, "%s is not an address", at.key)
			case u.Scheme != "postgres" && u.Scheme != "postgresql":
				r.fault(at, "bad-url", form, "%s is not a PostgreSQL address", at.key)
			case u.Host == "" && u.Query().Get("host") == "":
				r.fault(at, "bad-url", form, "%s names no host", at.key)
			default:
				return s, true
			}
			return "", false
		},
		show:    func(s string) any { return withoutPassword(s) },
		noWider: func(a, b string) bool { return a == b },
	}
}

// withoutPassword returns an address as it may be shown.
func withoutPassword(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return hidden
	}
	_, has := u.User.Password()
	if has {
		u.User = url.UserPassword(u.User.Username(), hidden)
	}
	query := u.Query()
	for key := range query {
		if strings.Contains(strings.ToLower(key), "password") {
			query.Set(key, hidden)
			u.RawQuery, has = query.Encode(), true
		}
	}
	if !has {
		return s
	}
	return strings.ReplaceAll(u.String(), url.QueryEscape(hidden), hidden)
}
