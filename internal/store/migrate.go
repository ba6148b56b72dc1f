package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
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

// back reads how a step is taken back; false: it cannot be.
func back(which string, number int) (string, bool) {
	text, err := fs.ReadFile(migrationFiles, fmt.Sprintf("migrations/%s/%03d.back.sql", which, number))
	return string(text), err == nil
}

// oldest returns the schema that a program must know at least to work with the tables
// that the steps make. A step names it in its first line, "-- oldest: N". If it does
// not, programs must know the step itself.
func oldest(steps []string) int {
	least := 0
	for i, step := range steps {
		n := i + 1
		first, _, _ := strings.Cut(step, "\n")
		if text, ok := strings.CutPrefix(first, "-- oldest: "); ok {
			if said, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
				n = said
			}
		}
		least = max(least, n)
	}
	return least
}

// newer refuses tables that this program does not know, unless they say that programs
// like it can work with them.
func newer(have, least, known int) error {
	if have <= known || least <= known {
		return nil
	}
	return cause(ErrNewer, fmt.Errorf("schema version is %d, this program knows %d", have, known),
		"update this program, or give it a store of its own")
}

// Migrated says from which schema to which the tables were brought.
type Migrated struct{ From, To int }

// Migrate brings the tables of a PostgreSQL store to a schema, forward or back, and opens
// nothing. To 0 is the newest that this program knows. A step back loses what only the
// newer schema has. Programs that know the newer schema bring the tables forward again
// when they start.
func Migrate(ctx context.Context, address string, to int) (m Migrated, err error) {
	p, err := parsePlace(address, "")
	if err == nil && p.postgres == nil {
		err = cause(ErrInvalid, nil, "only the tables of a PostgreSQL store are brought to another version by hand")
	}
	if err != nil {
		return m, fmt.Errorf("migrate store: %w", err)
	}
	fail := func(err error) error {
		return fmt.Errorf("migrate store %s: %w", p.shown, p.scrub(postgresError(err)))
	}
	all := plans().postgres
	if to == 0 {
		to = len(all)
	}
	if to < 1 || to > len(all) {
		return m, fail(cause(ErrInvalid, fmt.Errorf("there is no schema %d", to), fmt.Sprintf("this program knows 1 to %d", len(all))))
	}
	conn, err := pgx.ConnectConfig(ctx, p.postgres.ConnConfig)
	if err != nil {
		return m, fail(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if m.From, err = lockSchema(ctx, tx); err != nil {
			return err
		}
		if m.From > len(all) {
			return cause(ErrNewer, fmt.Errorf("schema version is %d, this program knows %d", m.From, len(all)), "use the newer program for this")
		}
		for n := m.From; n > to; n-- {
			text, ok := back("postgres", n)
			if !ok {
				return cause(ErrInvalid, fmt.Errorf("schema %d has no way back", n), "restore a backup from before the update")
			}
			if _, err := tx.Exec(ctx, text); err != nil {
				return fmt.Errorf("change the tables back to schema %d: %w", n-1, err)
			}
		}
		m.To = to
		return takeSteps(ctx, tx, m.From, all[:to])
	})
	if err != nil {
		return m, fail(err)
	}
	return m, nil
}

// schemaNow reads the schema of the tables, and the oldest that a program may know. The
// first schema does not say the latter.
const schemaNow = "SELECT version, coalesce((to_jsonb(s)->>'least')::integer, version) FROM ken_schema AS s"

// lockSchema has processes take turns, makes the table of the schema if it is missing,
// and returns the schema: 0 if there is none.
func lockSchema(ctx context.Context, tx pgx.Tx) (have int, err error) {
	for _, statement := range []string{
		"SELECT pg_advisory_xact_lock(hashtextextended('ken store ' || current_schema(), 0))",
		"CREATE TABLE IF NOT EXISTS ken_schema (one boolean PRIMARY KEY CHECK (one), version integer NOT NULL)",
		"INSERT INTO ken_schema VALUES (true, 0) ON CONFLICT DO NOTHING",
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return 0, err
		}
	}
	err = tx.QueryRow(ctx, "SELECT version FROM ken_schema FOR UPDATE").Scan(&have)
	return have, err
}

// takeSteps takes the steps after the first have, and writes down where the tables are.
func takeSteps(ctx context.Context, tx pgx.Tx, have int, steps []string) error {
	for i, step := range steps[min(have, len(steps)):] {
		if _, err := tx.Exec(ctx, step); err != nil {
			return fmt.Errorf("change the tables to schema %d: %w", have+i+1, err)
		}
	}
	if _, err := tx.Exec(ctx, "UPDATE ken_schema SET version = $1", len(steps)); err != nil {
		return err
	}
	var says bool
	if err := tx.QueryRow(ctx, "SELECT to_jsonb(s) ? 'least' FROM ken_schema AS s").Scan(&says); err != nil || !says {
		return err
	}
	_, err := tx.Exec(ctx, "UPDATE ken_schema SET least = $1", oldest(steps))
	return err
}
