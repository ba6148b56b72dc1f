package table

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestPlace(t *testing.T) {
	abs := func(name string) string {
		p, err := filepath.Abs(name)
		must(t, err)
		return p
	}
	t.Setenv("HOME", "/home/ada")
	tests := []struct{ dsn, table, shown, quoted, file string }{
		{"caps.db", "", "sqlite:caps.db?table=capabilities", `"capabilities"`, abs("caps.db")},
		{"/data/a b?.db", "t", "sqlite:/data/a b?.db?table=t", `"t"`, "/data/a b?.db"},
		{"sqlite:caps.db", "", "sqlite:caps.db?table=capabilities", `"capabilities"`, abs("caps.db")},
		{"sqlite:///data/caps.db?table=Tools", "", "sqlite:/data/caps.db?table=Tools", `"Tools"`, "/data/caps.db"},
		{"sqlite:///data/a%20b.db", "main.t", "sqlite:/data/a b.db?table=main.t", `"main"."t"`, "/data/a b.db"},
		{"~/caps.db", "", "sqlite:/home/ada/caps.db?table=capabilities", `"capabilities"`, "/home/ada/caps.db"},
		{"postgres://ada:secret@db.example:5433/tools?sslmode=disable&table=public.caps", "", "postgres://db.example:5433/tools?table=public.caps", `"public"."caps"`, ""},
		{"postgresql://ada@/tools?host=/run/pg", "", "postgres:///tools?host=/run/pg&table=capabilities", `"capabilities"`, ""},
	}
	for _, tt := range tests {
		p, err := parsePlace(tt.dsn, tt.table)
		if err != nil {
			t.Errorf("parsePlace(%q): %v", tt.dsn, err)
			continue
		}
		if p.shown != tt.shown || p.table != tt.quoted || p.file != tt.file {
			t.Errorf("parsePlace(%q) = %q %s %q, want %q %s %q", tt.dsn, p.shown, p.table, p.file, tt.shown, tt.quoted, tt.file)
		}
	}
}

func TestPlaceRefuses(t *testing.T) {
	tests := []struct{ dsn, table, want string }{
		{"", "", "missing address"},
		{"mysql://ada:SECRET@h/db", "", `unknown database "mysql"`},
		{"host=h user=ada password=SECRET", "", "not a URL"},
		{"postgres://ada:SEC%ZZRET@h/db", "", "not a URL"},
		{"postgres://ada:SECRET@h:port/db", "", "not a URL"},
		{"postgres://ada:SECRET@h/db?sslmode=maybe", "", "not understood"},
		{"sqlite:", "", "path of the database is missing"},
		{"sqlite:a.db?mode=rwc", "", `no setting "mode"`},
		{"sqlite:a.db?_pragma=x", "", `no setting "_pragma"`},
		{"sqlite:a%zz.db", "", "escapes nothing"},
		{"a.db", `x"; DROP TABLE y; --`, "not a plain name"},
		{"a.db", "x y", "not a plain name"},
		{"a.db", "1x", "not a plain name"},
		{"a.db", ".", "not a plain name"},
		{"a.db", "a.b.c", "more than a schema"},
		{"a.db", strings.Repeat("x", 64), "not a plain name"},
		{"sqlite:a.db?table=x", "y", "keep one"},
		{"postgres://h/db?table=x%22y", "", "not a plain name"},
	}
	for _, tt := range tests {
		p, err := parsePlace(tt.dsn, tt.table)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "SEC") {
			t.Errorf("parsePlace(%q, %q) = %+v, %v, want %q and no secret", tt.dsn, tt.table, p, err, tt.want)
		}
	}
}
