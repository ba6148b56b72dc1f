package store

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed migrations
var migrationFiles embed.FS

// A plan is how each database's tables came to be, step by step: the schema
// number is how many steps were taken. Steps are only ever added.
type plan struct{ sqlite, postgres []string }

func plans() plan { return plan{sqlite: steps("sqlite"), postgres: steps("postgres")} }

// steps reads 001.sql, 002.sql and so on, which are in the program itself.
func steps(which string) []string {
	var all []string
	for {
		text, err := fs.ReadFile(migrationFiles, fmt.Sprintf("migrations/%s/%03d.sql", which, len(all)+1))
		if err != nil {
			return all
		}
		all = append(all, string(text))
	}
}

// newer refuses tables that this program does not know.
func newer(have, known int) error {
	if have <= known {
		return nil
	}
	return cause(ErrNewer, fmt.Errorf("schema version is %d, this program knows %d", have, known),
		"update this program, or give it a store of its own")
}
