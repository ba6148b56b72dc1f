package table

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// A place is a table, and how to get to it.
type place struct {
	shown    string // for people: no password
	table    string // quoted, ready for a query
	file     string // of an SQLite database
	postgres *pgx.ConnConfig
	secrets  []string
}

// Each part of a table's name. Quoting would make any name safe; asking for a
// plain one catches what was never meant as a name.
var identifier = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
})

// parsePlace reads an address and the name of the table. Its errors do not
// repeat the address: there may be a password in it.
func parsePlace(dsn, table string) (place, error) {
	scheme, _, hasScheme := strings.Cut(dsn, ":")
	switch scheme = strings.ToLower(scheme); {
	case dsn == "":
		return place{}, errors.New("missing address; set dsn: to the path of an SQLite file or to a postgres:// address")
	case hasScheme && (scheme == "postgres" || scheme == "postgresql"):
		return parsePostgres(dsn, table)
	case hasScheme && scheme == "sqlite":
		return parseSQLite(dsn[len("sqlite:"):], table)
	case hasScheme && strings.HasPrefix(dsn[len(scheme):], "://"):
		return place{}, fmt.Errorf("unknown database %q; use sqlite: or postgres://", scheme)
	case strings.Contains(dsn, "password="):
		return place{}, errors.New("the address is not a URL; write postgres://user:password@host/database")
	}
	return sqlitePlace(dsn, table)
}

// tableName settles the table between the address and the configuration.
func tableName(address url.Values, configured string) (plain, quoted string, err error) {
	plain = configured
	if named := address.Get("table"); named != "" {
		if configured != "" && configured != named {
			return "", "", fmt.Errorf("the address names the table %q, the configuration %q; keep one", named, configured)
		}
		plain = named
	}
	if plain == "" {
		plain = "capabilities"
	}
	parts := strings.Split(plain, ".")
	if len(parts) > 2 {
		return "", "", fmt.Errorf("table %q has more than a schema and a name; write schema.table", plain)
	}
	for i, part := range parts {
		if !identifier().MatchString(part) {
			return "", "", fmt.Errorf("table %q is not a plain name; use letters, digits and underscores", plain)
		}
		parts[i] = quote(part)
	}
	return plain, strings.Join(parts, "."), nil
}

// parseSQLite reads what follows "sqlite:": a path, with //, as in a URL, or
// without.
func parseSQLite(rest, table string) (place, error) {
	name, query, _ := strings.Cut(rest, "?")
	name = strings.TrimPrefix(name, "//")
	values, err := url.ParseQuery(query)
	if err != nil {
		return place{}, errors.New("the part after ? is not readable; write ?table=NAME")
	}
	for key := range values {
		if key != "table" {
			return place{}, fmt.Errorf("an SQLite address has no setting %q; only table", key)
		}
	}
	if name, err = url.PathUnescape(name); err != nil {
		return place{}, errors.New("the path has a % that escapes nothing; write %25 for it")
	}
	if len(values) > 0 {
		if _, _, err := tableName(values, table); err != nil {
			return place{}, err
		}
		table = values.Get("table")
	}
	return sqlitePlace(name, table)
}

func sqlitePlace(name, table string) (place, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return place{}, errors.New("the path of the database is missing; write sqlite:PATH")
	}
	plain, quoted, err := tableName(nil, table)
	if err != nil {
		return place{}, err
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return place{}, fmt.Errorf("~ has no meaning here: %w; write the whole path", err)
		}
		name = filepath.Join(home, rest)
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return place{}, err
	}
	return place{shown: "sqlite:" + name + "?table=" + plain, table: quoted, file: abs}, nil
}

func parsePostgres(dsn, table string) (place, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return place{}, errors.New("the address is not a URL; write postgres://user:password@host/database, with %XX for odd characters in the password")
	}
	values := u.Query()
	plain, quoted, err := tableName(values, table)
	if err != nil {
		return place{}, err
	}
	values.Del("table") // ours; the server would not know it
	u.RawQuery = values.Encode()
	secrets := []string{values.Get("password"), values.Get("sslpassword")}
	if given, ok := u.User.Password(); ok {
		secrets = append(secrets, given, url.QueryEscape(given), url.PathEscape(given))
	}
	cfg, err := pgx.ParseConfig(u.String())
	if err != nil {
		p := place{secrets: secrets}
		return place{}, fmt.Errorf("the address is not understood: %s; write postgres://user:password@host/database", p.scrub(err.Error()))
	}
	cfg.RuntimeParams["application_name"] = "ken"
	cfg.RuntimeParams["default_transaction_read_only"] = "on"
	p := place{table: quoted, postgres: cfg, secrets: append(secrets, cfg.Password)}
	p.shown = fmt.Sprintf("postgres://%s:%d/%s?table=%s", cfg.Host, cfg.Port, cfg.Database, plain)
	if strings.HasPrefix(cfg.Host, "/") {
		p.shown = fmt.Sprintf("postgres:///%s?host=%s&table=%s", cfg.Database, cfg.Host, plain)
	}
	return p, nil
}

// scrub replaces the secrets of the address in a text from elsewhere.
func (p place) scrub(text string) string {
	for _, s := range p.secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "xxxxx")
		}
	}
	return text
}
