package db

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"

	"ken/internal/address"
	"ken/internal/store"
)

// A postgres is a session with a PostgreSQL server while one call runs, inside
// a transaction. Nothing of it is left for the next call.
type postgres struct{ conn *pgconn.PgConn }

const (
	postgresLargestMessage = 32 << 20 // of the server: one row
	postgresConnect        = 10 * time.Second
	postgresCommit         = 10 * time.Second
)

// newPostgres opens a session and begins a transaction, which can only read
// unless write is set.
func newPostgres(ctx context.Context, c Connection, password string, write bool) (*postgres, error) {
	cfg, err := postgresConfig(c, password, write)
	if err != nil {
		return nil, err
	}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, withoutAddress(err)
	}
	p := &postgres{conn}
	if err := p.begin(ctx, write); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// postgresConfig takes everything from the connection, and nothing from the
// environment or from files of libpq.
func postgresConfig(c Connection, password string, write bool) (*pgconn.Config, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, errors.New("the address is not a URL")
	}
	query := u.Query()
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = query.Get("host")
	}
	if port == "" {
		port = "5432"
	}
	mode := query.Get("sslmode")
	if mode == "" {
		mode = "verify-full" // over a network, against listeners and proxies
		if strings.HasPrefix(host, "/") || address.Loopback(host) {
			mode = "prefer"
		}
	}
	settings := url.Values{"sslmode": {mode}, "target_session_attrs": {"any"}, "connect_timeout": {strconv.Itoa(int(postgresConnect.Seconds()))}, "passfile": {"/dev/null"}}
	if root := query.Get("sslrootcert"); root != "" {
		settings.Set("sslrootcert", root)
	}
	whole := url.URL{Scheme: "postgres", User: url.UserPassword(u.User.Username(), password), Path: u.Path, RawQuery: settings.Encode()}
	if strings.HasPrefix(host, "/") {
		settings.Set("host", host)
		settings.Set("port", port)
		whole.RawQuery = settings.Encode()
	} else {
		whole.Host = net.JoinHostPort(host, port)
	}
	cfg, err := pgconn.ParseConfig(whole.String())
	if err != nil {
		return nil, errors.New("the address cannot be parsed") // the error may repeat the password
	}
	cfg.Password = password // and not one of the environment where there is none
	cfg.RuntimeParams = map[string]string{
		"application_name": "ken", "client_encoding": "UTF8", "DateStyle": "ISO, YMD", "TimeZone": "UTC", "bytea_output": "hex", "standard_conforming_strings": "on",
		"statement_timeout":                   milliseconds(c.Timeout + time.Second), // where the cancel does not arrive
		"lock_timeout":                        milliseconds(min(c.Timeout, 5*time.Second)),
		"idle_in_transaction_session_timeout": milliseconds(c.Timeout + 10*time.Second),
	}
	if !write {
		cfg.RuntimeParams["default_transaction_read_only"] = "on"
	}
	cfg.DialFunc = (&net.Dialer{Timeout: postgresConnect, Control: permitted}).DialContext
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(postgresLargestMessage)
		return f
	}
	cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 2 * time.Second}
	}
	return cfg, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// permitted refuses to dial where a cloud hands out credentials, whatever name
// led there.
func permitted(network, to string, _ syscall.RawConn) error {
	if host, _, err := net.SplitHostPort(to); err == nil && strings.HasPrefix(network, "tcp") && address.Metadata(host) {
		return errors.New("the address is link-local, or serves a machine's credentials")
	}
	return nil
}

// withoutAddress leaves out of an error how the session was opened.
func withoutAddress(err error) error {
	if pooler := store.PoolerError(err); pooler != nil {
		return pooler
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return errors.New(e.Message)
	}
	return store.ConnectError(err)
}

// begin begins the transaction, and refuses a user that it would not hold: one
// that can run programs or write files on the server, or, in a transaction that
// only reads, can open another session.
//
// A transaction that was prepared (PREPARE TRANSACTION) outlives its session, with
// its locks, and also one that only reads can be. The server does not prepare a
// transaction that has exported a snapshot.
func (p *postgres) begin(ctx context.Context, write bool) error {
	how := "BEGIN READ ONLY"
	if write {
		how = "BEGIN READ WRITE"
	}
	if err := p.run(ctx, how); err != nil {
		return err
	}
	rows, err := p.texts(ctx, `SELECT coalesce(string_agg(rolname, ', '), ''),
			CASE WHEN pg_catalog.current_setting('max_prepared_transactions') <> '0' THEN pg_catalog.pg_export_snapshot() END,
			pg_catalog.current_setting('default_transaction_read_only')
		FROM pg_catalog.pg_roles
		WHERE (rolsuper OR rolname IN ('pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files')) AND pg_catalog.pg_has_role(session_user, oid, 'MEMBER')`)
	if err != nil {
		return err
	}
	if what := rows[0][0]; what != "" {
		return fmt.Errorf("the database user is, or can become, %s, and could reach files and programs of the server even in a read-only transaction; use an ordinary user", what)
	}
	if write {
		return nil
	}
	if rows[0][2] != "on" { // a pooler that was told to leave out what it does not know
		return errors.New("the server ignored the setting default_transaction_read_only; connect to the PostgreSQL server itself instead of a connection pooler")
	}
	return p.oneSession(ctx)
}

// oneSession refuses a user that may call functions which run statements in
// another session: a transaction that only reads does not hold those. A role that
// the user can become counts too, since a statement can change the role.
func (p *postgres) oneSession(ctx context.Context) error {
	rows, err := p.texts(ctx, `SELECT coalesce(string_agg(DISTINCT f.proname::text, ', '), '')
		FROM pg_catalog.pg_proc AS f
		JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e' AND d.refclassid = 'pg_catalog.pg_extension'::regclass
		JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
		WHERE (e.extname = 'dblink' AND f.proname IN ('dblink', 'dblink_exec', 'dblink_connect', 'dblink_connect_u') OR e.extname = 'pg_background' AND f.proname LIKE 'pg_background_launch%')
			AND EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER') AND pg_catalog.has_function_privilege(r.oid, f.oid, 'EXECUTE'))`)
	if err != nil {
		return err
	}
	if what := rows[0][0]; what != "" {
		return fmt.Errorf("the database user may call functions that run statements in another session, where a transaction that only reads does not hold them: %s; "+
			"revoke EXECUTE on them from PUBLIC and from this user, or drop the extension", what)
	}
	return nil
}

// rights returns what the user may do beyond reading, in sentences.
func (p *postgres) rights(ctx context.Context) ([]string, error) {
	var out []string
	rows, err := p.texts(ctx, `SELECT pg_catalog.has_database_privilege(session_user, pg_catalog.current_database(), 'CREATE')::text`)
	if err != nil {
		return nil, p.told(err)
	}
	if rows[0][0] == "true" {
		out = append(out, "The user may create extensions and schemas (CREATE on the database).")
	}
	rows, err = p.texts(ctx, `SELECT (EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolreplication AND pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')))::text`)
	if err != nil {
		return nil, p.told(err)
	}
	if rows[0][0] == "true" {
		out = append(out, "The user may create replication slots, which stay after a call (REPLICATION).")
	}
	rows, err = p.texts(ctx, `SELECT (pg_catalog.current_setting('wal_level') = 'logical' AND EXISTS (SELECT FROM pg_catalog.pg_proc AS f
		WHERE f.proname = 'pg_logical_emit_message' AND f.pronamespace = 'pg_catalog'::regnamespace AND pg_catalog.has_function_privilege(session_user, f.oid, 'EXECUTE')))::text`)
	if err != nil {
		return nil, p.told(err)
	}
	if rows[0][0] == "true" {
		out = append(out, "The user may send messages to those who follow the logical replication of the server, also in a call that only reads (pg_logical_emit_message).")
	}
	rows, err = p.texts(ctx, `SELECT count(*)::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%'
			AND pg_catalog.has_schema_privilege(session_user, n.oid, 'USAGE') AND pg_catalog.has_table_privilege(session_user, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')`)
	if err != nil {
		return nil, p.told(err)
	}
	if n := rows[0][0]; n != "0" {
		out = append(out, strings.Replace("The user may change "+n+" tables.", " 1 tables", " 1 table", 1))
	}
	return out, nil
}

func (p *postgres) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if p.conn.IsBusy() { // unread rows are left
		_ = p.conn.CancelRequest(ctx) // closing ends the query too, only later
	}
	_ = p.conn.Close(ctx) // which ends the transaction
}

// run runs a statement of Ken's own.
func (p *postgres) run(ctx context.Context, sql string) error {
	_, err := p.conn.ExecParams(ctx, sql, nil, nil, nil, nil).Close()
	return err
}

// texts returns the rows of a query of Ken's own.
func (p *postgres) texts(ctx context.Context, sql string, values ...string) ([][]string, error) {
	raw := make([][]byte, len(values))
	for i, v := range values {
		raw[i] = []byte(v)
	}
	r := p.conn.ExecParams(ctx, sql, raw, nil, nil, nil)
	var out [][]string
	for r.NextRow() && len(out) < mostListed {
		line := make([]string, len(r.Values()))
		for i, v := range r.Values() {
			cut := 0
			line[i] = clipped(string(v), longestWord, &cut)
		}
		out = append(out, line)
	}
	_, err := r.Close()
	return out, err
}

func (p *postgres) query(ctx context.Context, sql string, values []any, into *sheet) error {
	_, err := p.rows(ctx, sql, values, into, true)
	return p.told(err)
}

// rows runs a statement; the protocol takes one and no more. It gives how many
// rows it was about. With early it stops when the sheet is full.
func (p *postgres) rows(ctx context.Context, sql string, values []any, into *sheet, early bool) (int64, error) {
	raw, err := postgresValues(values)
	if err != nil {
		return 0, err
	}
	r := p.conn.ExecParams(ctx, sql, raw, nil, nil, nil)
	var row []any
	var kinds []uint32
	full := false
	for r.NextRow() {
		if kinds == nil {
			kinds = into.beginPostgres(r.FieldDescriptions())
			row = make([]any, len(kinds))
		}
		if full {
			continue
		}
		for i, v := range r.Values() {
			row[i] = postgresValue(kinds[i], v, into.cell)
		}
		if full = !into.add(row); full && early {
			return 0, nil // close cancels the rest
		}
	}
	if fields := r.FieldDescriptions(); kinds == nil && len(fields) > 0 {
		into.beginPostgres(fields)
	}
	tag, err := r.Close()
	if err == nil && strings.HasPrefix(tag.String(), "COPY") {
		err = errors.New("COPY returns no rows here; use SELECT, or format csv")
	}
	return tag.RowsAffected(), err
}

// beginPostgres begins a sheet, and gives the types of the columns.
func (s *sheet) beginPostgres(fields []pgconn.FieldDescription) []uint32 {
	names, kinds := make([]string, len(fields)), make([]uint32, len(fields))
	for i, f := range fields {
		names[i], kinds[i] = f.Name, f.DataTypeOID
	}
	s.begin(names)
	return kinds
}

// postgresValues writes values as text; the server knows the types.
func postgresValues(values []any) ([][]byte, error) {
	out := make([][]byte, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case nil:
		case bool:
			out[i] = strconv.AppendBool(nil, v)
		case int64:
			out[i] = strconv.AppendInt(nil, v, 10)
		case float64:
			out[i] = strconv.AppendFloat(nil, v, 'g', -1, 64)
		case string:
			if strings.ContainsRune(v, 0) {
				return nil, fmt.Errorf("parameter %d contains a zero byte, which PostgreSQL does not accept", i+1)
			}
			out[i] = []byte(v)
		case []byte:
			out[i] = []byte(`\x` + hex.EncodeToString(v))
		default:
			return nil, fmt.Errorf("parameter %d has a type that cannot be sent to PostgreSQL", i+1)
		}
	}
	return out, nil
}

// The types whose text is more than a text.
const (
	oidBool    = 16
	oidBytea   = 17
	oidInt8    = 20
	oidInt2    = 21
	oidInt4    = 23
	oidOID     = 26
	oidJSON    = 114
	oidFloat4  = 700
	oidFloat8  = 701
	oidNumeric = 1700
	oidJSONB   = 3802
)

// postgresValue reads what the server wrote as text. Of a long value it copies
// nothing: no more than most bytes of it are shown.
func postgresValue(kind uint32, raw []byte, most int) any {
	switch {
	case raw == nil:
		return nil
	case kind == oidBytea && len(raw) > 2*most+len(`\x`):
		head := make([]byte, most)
		if n, err := hex.Decode(head, raw[len(`\x`):len(`\x`)+2*most]); err == nil {
			return long{head: head[:n], whole: len(raw)/2 - 1}
		}
		fallthrough
	case len(raw) > most:
		return long{head: raw[:most], whole: len(raw), isText: true}
	}
	text := string(raw)
	switch kind {
	case oidBool:
		return text == "t"
	case oidInt2, oidInt4, oidInt8, oidOID:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case oidFloat4, oidFloat8:
		bits := 64
		if kind == oidFloat4 {
			bits = 32
		}
		if x, err := strconv.ParseFloat(text, bits); err == nil && bits == 64 {
			return x
		}
		return number(text)
	case oidNumeric:
		return number(text)
	case oidBytea:
		if b, err := hex.DecodeString(strings.TrimPrefix(text, `\x`)); err == nil {
			return b
		}
	case oidJSON, oidJSONB:
		return jsonText(text)
	}
	return text
}

func (p *postgres) explain(ctx context.Context, sql string, values []any, into *sheet) error {
	_, err := p.rows(ctx, "EXPLAIN (FORMAT TEXT) "+sql, values, into, true)
	return p.told(err)
}

func (p *postgres) execute(ctx context.Context, sql string, values []any, into *sheet) (int64, error) {
	changed, err := p.rows(ctx, sql, values, into, false)
	if err == nil && p.conn.TxStatus() != 'T' {
		err = &readOnlyError{"the statement ended its own transaction"}
	}
	if err == nil {
		err = ctx.Err() // whose caller has gone by now wants no change
	}
	if err != nil {
		return 0, p.told(err)
	}
	return changed, p.commit(ctx)
}

// commit commits. It is not cut short when the call's time is over: then nobody
// would know whether the change was made. Without an answer it is not known
// either, and the error says so.
func (p *postgres) commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), postgresCommit)
	defer cancel()
	err := p.run(ctx, "COMMIT")
	if refused, ok := errors.AsType[*pgconn.PgError](err); err == nil || ok && refused.Severity == "ERROR" {
		return p.told(err) // such as a constraint that is checked at the end
	}
	return &uncertainError{fmt.Errorf("the connection was lost while the change was committed (%w)", withoutAddress(err))}
}

// told marks what the server refused as such, and keeps of its words those that
// help.
func (p *postgres) told(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	text := e.Message
	if e.Hint != "" {
		text += ". Hint: " + e.Hint
	}
	switch e.Code {
	case "25006": // read_only_sql_transaction
		return &readOnlyError{"the database refused it: " + text}
	case "42601": // syntax_error
		if strings.Contains(text, "multiple commands") {
			return errTwoStatements
		}
	}
	if e.Position > 0 {
		text += fmt.Sprintf(" (at character %d)", e.Position)
	}
	return errors.New(text)
}

func (p *postgres) inspect(ctx context.Context, table string) (outline, error) {
	o := outline{engine: "PostgreSQL"}
	schema, name, dotted := strings.Cut(table, ".")
	if !dotted {
		schema, name = "", table
	}
	list, err := p.texts(ctx, `SELECT c.oid::text, CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END AS shown,
			CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END,
			CASE WHEN c.relkind IN ('r', 'm', 'p') AND c.reltuples >= 0 THEN c.reltuples::bigint::text ELSE '' END,
			coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '')
		FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%'
			AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
			AND ($1 = '' OR lower(c.relname) = lower($1)) AND ($2 = '' OR lower(n.nspname) = lower($2))
		ORDER BY shown`, name, schema)
	if err != nil {
		return o, p.told(err)
	}
	for i, one := range list {
		t := tableOutline{name: one[1], kind: one[2], comment: one[4]}
		if one[3] != "" {
			t.rows = strings.Replace("about "+one[3]+" rows", " 1 rows", " 1 row", 1)
		}
		if i < mostDescribed {
			if err := p.describe(ctx, one[0], &t, table != ""); err != nil {
				return o, p.told(err)
			}
		}
		o.tables = append(o.tables, t)
	}
	return o, nil
}

func (p *postgres) describe(ctx context.Context, oid string, t *tableOutline, whole bool) error {
	columns, err := p.texts(ctx, `SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull::text, coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), ''),
			coalesce(pg_catalog.col_description(a.attrelid, a.attnum), ''),
			EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = a.attrelid AND k.contype = 'p' AND a.attnum = ANY (k.conkey))::text,
			EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = a.attrelid AND k.contype = 'u' AND k.conkey = ARRAY[a.attnum])::text,
			coalesce((SELECT f.relname || '.' || fa.attname FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_class AS f ON f.oid = k.confrelid
				JOIN pg_catalog.pg_attribute AS fa ON fa.attrelid = k.confrelid AND fa.attnum = k.confkey[array_position(k.conkey, a.attnum)]
				WHERE k.conrelid = a.attrelid AND k.contype = 'f' AND a.attnum = ANY (k.conkey) LIMIT 1), '')
		FROM pg_catalog.pg_attribute AS a LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, oid)
	if err != nil {
		return err
	}
	for _, c := range columns {
		t.columns = append(t.columns, columnOutline{
			name: c[0], kind: c[1], required: c[2] == "true", fallback: c[3], comment: c[4], key: c[5] == "true", unique: c[6] == "true", to: c[7],
		})
	}
	indexes, err := p.texts(ctx, `SELECT i.relname, x.indisunique::text, regexp_replace(pg_catalog.pg_get_indexdef(x.indexrelid), '^.* USING [a-z]+ \((.*)\).*$', '\1')
		FROM pg_catalog.pg_index AS x JOIN pg_catalog.pg_class AS i ON i.oid = x.indexrelid
		WHERE x.indrelid = $1::oid AND NOT x.indisprimary AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conindid = x.indexrelid AND array_length(k.conkey, 1) = 1)
		ORDER BY i.relname`, oid)
	if err != nil {
		return err
	}
	for _, x := range indexes {
		t.indexes = append(t.indexes, indexOutline{name: x[0], unique: x[1] == "true", columns: x[2]})
	}
	if whole && strings.Contains(t.kind, "view") {
		text, err := p.texts(ctx, `SELECT coalesce(pg_catalog.pg_get_viewdef($1::oid, true), '')`, oid)
		if err != nil {
			return err
		}
		t.definition = text[0][0]
	}
	return nil
}
