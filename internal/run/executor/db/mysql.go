package db

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"ken/internal/address"
)

// A mysqlSession is a session with a MySQL or MariaDB server while one call runs,
// inside a transaction that only reads. Nothing of it is left for the next call.
//
// Such a transaction alone does not hold every statement: one statement may end it
// and begin another (CALL, and BEGIN NOT ATOMIC of MariaDB), and some change
// something outside of it (SET PASSWORD, KILL). So a statement runs only if the
// server can explain it as a query: see explainable.
type mysqlSession struct {
	cfg    *mysql.Config
	pool   *sql.DB
	conn   *sql.Conn
	id     int64 // of the session, at the server
	maria  bool
	closed bool // the server has ended what it was asked
}

const (
	mysqlConnect = 10 * time.Second
	mysqlKill    = 2 * time.Second
	mysqlMost    = 256 << 20 // bytes of the server in one call
)

// Errors of the server.
const (
	mysqlAccessDenied = 1045
	mysqlNoPrivilege  = 1227
	mysqlParseError   = 1064
	mysqlReadOnly     = 1792
	mysqlNotAllowed   = 1235 // this version does not support it
)

// newMySQL opens a session and begins a transaction that only reads.
func newMySQL(ctx context.Context, c Connection, password string) (*mysqlSession, error) {
	cfg, err := mysqlConfig(c, password)
	if err != nil {
		return nil, err
	}
	m := &mysqlSession{cfg: cfg, closed: true}
	if m.pool, m.conn, err = mysqlConn(ctx, cfg); err != nil {
		return nil, mysqlUnreached(err)
	}
	if err := m.begin(ctx, c.Timeout); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func mysqlConn(ctx context.Context, cfg *mysql.Config) (*sql.DB, *sql.Conn, error) {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, nil, errors.New("the address is not understood") // the error may repeat the password
	}
	pool := sql.OpenDB(connector)
	conn, err := pool.Conn(ctx)
	if err != nil {
		_ = pool.Close() // it holds nothing
		return nil, nil, err
	}
	return pool, conn, nil
}

// mysqlConfig takes everything from the connection. Several statements in one, and
// files of this machine, are off.
func mysqlConfig(c Connection, password string) (*mysql.Config, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, errors.New("the address is not a URL")
	}
	query := u.Query()
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.DBName = u.User.Username(), password, strings.TrimPrefix(u.Path, "/")
	cfg.MultiStatements, cfg.AllowAllFiles, cfg.AllowCleartextPasswords, cfg.InterpolateParams = false, false, false, false
	cfg.Timeout, cfg.Collation = mysqlConnect, "utf8mb4_general_ci"
	cfg.Logger = &mysql.NopLogger{}
	host, port := u.Hostname(), u.Port()
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(host, port)
	switch {
	case host == "":
		cfg.Net, cfg.Addr = "unix", query.Get("host")
	case port == "":
		cfg.Addr = net.JoinHostPort(host, "3306")
	}
	if cfg.TLS, cfg.AllowFallbackToPlaintext, err = mysqlTLS(host, query.Get("sslmode"), query.Get("sslrootcert")); err != nil {
		return nil, err
	}
	cfg.DialFunc = func(ctx context.Context, network, to string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: mysqlConnect, Control: permitted}).DialContext(ctx, network, to)
		if err != nil {
			return nil, err
		}
		return &boundedConn{Conn: conn, left: mysqlMost}, nil
	}
	return cfg, nil
}

// mysqlTLS returns how a connection is encrypted, in the words of PostgreSQL's
// sslmode. Over a network the server must prove its name.
func mysqlTLS(host, mode, root string) (cfg *tls.Config, plain bool, err error) {
	if mode == "" {
		mode = "verify-full"
		if host == "" || address.Loopback(host) {
			mode = "prefer"
		}
	}
	cfg = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if root != "" {
		pem, err := os.ReadFile(root)
		if err != nil {
			return nil, false, errors.New("sslrootcert cannot be read")
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, false, errors.New("sslrootcert has no certificate")
		}
	}
	switch mode {
	case "disable":
		return nil, false, nil
	case "prefer":
		cfg.InsecureSkipVerify = true
		return cfg, true, nil
	case "require":
		cfg.InsecureSkipVerify = true
		return cfg, false, nil
	case "verify-full":
		return cfg, false, nil
	}
	return nil, false, errors.New("sslmode is none of disable, prefer, require and verify-full")
}

// A boundedConn reads no more than a number of bytes.
type boundedConn struct {
	net.Conn
	left int
}

func (b *boundedConn) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the server sent more than %d MiB", mysqlMost>>20)
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// mysqlUnreached leaves out of an error how the session was opened.
func mysqlUnreached(err error) error {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return errors.New(e.Message)
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, mysql.ErrInvalidConn) {
		return errors.New("the server closed the connection")
	}
	return err
}

// begin begins the transaction, and refuses a user that it would not hold: one
// that can write files on the server.
func (m *mysqlSession) begin(ctx context.Context, limit time.Duration) error {
	rows, err := m.texts(ctx, "SELECT CAST(CONNECTION_ID() AS CHAR), VERSION()")
	if err != nil {
		return m.told(err)
	}
	if m.id, err = strconv.ParseInt(rows[0][0], 10, 64); err != nil {
		return errors.New("the server does not name the session")
	}
	m.maria = strings.Contains(rows[0][1], "MariaDB")
	// Where the order to stop does not arrive, the server stops by itself.
	longest := fmt.Sprintf("SET SESSION max_execution_time = %d", (limit + time.Second).Milliseconds())
	if m.maria {
		longest = fmt.Sprintf("SET SESSION max_statement_time = %d", int((limit + 2*time.Second).Seconds()))
	}
	for _, sql := range []string{longest, "SET SESSION lock_wait_timeout = 5", "SET SESSION innodb_lock_wait_timeout = 5", "SET SESSION time_zone = '+00:00'"} {
		if _, err := m.conn.ExecContext(ctx, sql); err != nil {
			return m.told(err)
		}
	}
	if err := m.noFiles(ctx); err != nil {
		return err
	}
	for _, sql := range []string{"SET SESSION TRANSACTION READ ONLY", "START TRANSACTION READ ONLY"} {
		if _, err := m.conn.ExecContext(ctx, sql); err != nil {
			return m.told(err)
		}
	}
	return nil
}

// noFiles tries to write a file where none can be: the server refuses that for
// another reason if the user may write files, by a role too.
func (m *mysqlSession) noFiles(ctx context.Context) error {
	_, err := m.conn.ExecContext(ctx, "SELECT 1 INTO OUTFILE '/dev/null/ken/none'")
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && (e.Number == mysqlAccessDenied || e.Number == mysqlNoPrivilege) {
		return nil
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New("the database user may read and write files of the server (FILE), even in a transaction that only reads; name an ordinary user")
}

// close ends the session, and what still runs of it at the server.
func (m *mysqlSession) close() {
	if !m.closed {
		m.kill()
	}
	_ = m.conn.Close() // which ends the transaction
	_ = m.pool.Close()
}

// kill has the server stop the session. It needs another one for that. If that
// fails, the server stops by itself when the time of begin is over.
func (m *mysqlSession) kill() {
	ctx, cancel := context.WithTimeout(context.Background(), mysqlKill)
	defer cancel()
	pool, conn, err := mysqlConn(ctx, m.cfg)
	if err != nil {
		return
	}
	_, _ = conn.ExecContext(ctx, fmt.Sprintf("KILL %d", m.id)) // it may have ended by now
	_ = conn.Close()
	_ = pool.Close()
}

// texts returns the rows of a query of Ken's own.
func (m *mysqlSession) texts(ctx context.Context, query string, values ...any) ([][]string, error) {
	rows, err := m.conn.QueryContext(ctx, query, values...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out [][]string
	for rows.Next() && len(out) < mostListed {
		raw, line := make([]any, len(columns)), make([]string, len(columns))
		fields := make([]sql.NullString, len(columns))
		for i := range fields {
			raw[i] = &fields[i]
		}
		if err := rows.Scan(raw...); err != nil {
			return nil, err
		}
		for i, f := range fields {
			cut := 0
			line[i] = clipped(f.String, longestWord, &cut)
		}
		out = append(out, line)
	}
	return out, rows.Err()
}

// explainable asks the server whether a statement is one that it can explain: a
// query, or one that changes rows, which the transaction refuses. With the format
// named nothing else can follow, such as ANALYZE TABLE.
func (m *mysqlSession) explainable(ctx context.Context, statement string, values []any) error {
	rows, err := m.conn.QueryContext(ctx, "EXPLAIN FORMAT=TRADITIONAL "+statement, values...)
	if err == nil {
		err = errors.Join(rows.Err(), rows.Close())
	}
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok || e.Number != mysqlParseError && e.Number != mysqlNotAllowed {
		return err
	}
	if readsLikeQuery(statement) {
		return err // it is one, with a mistake in it
	}
	return &readOnlyError{"the server cannot explain it as a query; write SELECT, WITH, VALUES or TABLE, and read information_schema instead of SHOW"}
}

// readsLikeQuery reports whether a statement begins as a query does. Only the words
// of an error depend on it.
func readsLikeQuery(statement string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(strings.ToUpper(statement), "( \t\r\n"), " ")
	return first == "SELECT" || first == "WITH" || first == "VALUES" || first == "TABLE"
}

func (m *mysqlSession) query(ctx context.Context, statement string, values []any, into *sheet) error {
	if err := m.explainable(ctx, statement, values); err != nil {
		return m.told(err)
	}
	return m.told(m.rows(ctx, statement, values, into))
}

// rows runs a statement, and stops when the sheet is full.
func (m *mysqlSession) rows(ctx context.Context, statement string, values []any, into *sheet) error {
	m.closed = false
	rows, err := m.conn.QueryContext(ctx, statement, values...)
	if err != nil {
		m.closed = ctx.Err() == nil
		return err
	}
	kinds, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	names, row, to := make([]string, len(kinds)), make([]any, len(kinds)), make([]any, len(kinds))
	for i, k := range kinds {
		names[i], to[i] = k.Name(), &row[i]
	}
	into.begin(names)
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		for i := range row {
			row[i] = mysqlValue(kinds[i].DatabaseTypeName(), row[i], into.cell)
		}
		if !into.add(row) {
			return nil // close stops the rest
		}
	}
	m.closed = ctx.Err() == nil
	return errors.Join(rows.Err(), rows.Close())
}

// mysqlValue makes a value of the driver one of a sheet.
func mysqlValue(kind string, v any, most int) any {
	switch v := v.(type) {
	case uint64:
		if v <= exactInt {
			return int64(v)
		}
		return number(strconv.FormatUint(v, 10))
	case float32:
		return number(strconv.FormatFloat(float64(v), 'g', -1, 32))
	case []byte:
		isBytes := strings.HasSuffix(kind, "BLOB") || strings.HasSuffix(kind, "BINARY") || kind == "BIT" || kind == "GEOMETRY"
		switch {
		case len(v) > most:
			return long{head: v[:most], whole: len(v), isText: !isBytes}
		case isBytes:
			return v
		case kind == "DECIMAL":
			return number(v)
		case kind == "JSON":
			return jsonText(v)
		}
		return string(v)
	}
	return v
}

func (m *mysqlSession) explain(ctx context.Context, statement string, values []any, into *sheet) error {
	if err := m.explainable(ctx, statement, values); err != nil {
		return m.told(err)
	}
	return m.told(m.rows(ctx, "EXPLAIN FORMAT=JSON "+statement, values, into))
}

func (m *mysqlSession) execute(context.Context, string, []any, *sheet) (int64, error) {
	return 0, &readOnlyError{"databases of MySQL and MariaDB are only read"}
}

// told marks what the server refused as such.
func (m *mysqlSession) told(err error) error {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	switch {
	case !ok:
		return err
	case e.Number == mysqlReadOnly:
		return &readOnlyError{"the database refused it: " + e.Message}
	}
	return errors.New(e.Message)
}

func (m *mysqlSession) inspect(ctx context.Context, table string) (outline, error) {
	o := outline{engine: "MySQL"}
	if m.maria {
		o.engine = "MariaDB"
	}
	schema, name, dotted := strings.Cut(table, ".")
	if !dotted {
		schema, name = "", table
	}
	list, err := m.texts(ctx, `SELECT TABLE_SCHEMA, TABLE_NAME, IF(TABLE_SCHEMA = DATABASE(), TABLE_NAME, CONCAT(TABLE_SCHEMA, '.', TABLE_NAME)) AS shown,
			IF(TABLE_TYPE LIKE '%VIEW', 'view', 'table'), IF(TABLE_TYPE LIKE '%VIEW', '', TABLE_ROWS), IF(TABLE_TYPE LIKE '%VIEW', '', TABLE_COMMENT)
		FROM information_schema.TABLES
		WHERE TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') AND (? = '' OR TABLE_NAME = ?) AND TABLE_SCHEMA = IF(? = '', DATABASE(), ?)
		ORDER BY shown`, name, name, schema, schema)
	if err != nil {
		return o, m.told(err)
	}
	for i, one := range list {
		t := tableOutline{name: one[2], kind: one[3], comment: one[5]}
		if one[4] != "" {
			t.rows = strings.Replace("about "+one[4]+" rows", " 1 rows", " 1 row", 1)
		}
		if i < mostDescribed {
			if err := m.describe(ctx, one[0], one[1], &t, table != ""); err != nil {
				return o, m.told(err)
			}
		}
		o.tables = append(o.tables, t)
	}
	return o, nil
}

func (m *mysqlSession) describe(ctx context.Context, schema, table string, t *tableOutline, whole bool) error {
	columns, err := m.texts(ctx, `SELECT c.COLUMN_NAME, c.COLUMN_TYPE, c.IS_NULLABLE, IFNULL(c.COLUMN_DEFAULT, ''), c.COLUMN_COMMENT, c.COLUMN_KEY,
			IFNULL((SELECT CONCAT(k.REFERENCED_TABLE_NAME, '.', k.REFERENCED_COLUMN_NAME) FROM information_schema.KEY_COLUMN_USAGE AS k
				WHERE k.TABLE_SCHEMA = c.TABLE_SCHEMA AND k.TABLE_NAME = c.TABLE_NAME AND k.COLUMN_NAME = c.COLUMN_NAME AND k.REFERENCED_TABLE_NAME IS NOT NULL LIMIT 1), '')
		FROM information_schema.COLUMNS AS c WHERE c.TABLE_SCHEMA = ? AND c.TABLE_NAME = ? ORDER BY c.ORDINAL_POSITION`, schema, table)
	if err != nil {
		return err
	}
	for _, c := range columns {
		fallback := c[3]
		if fallback == "NULL" { // as MariaDB writes that there is none
			fallback = ""
		}
		t.columns = append(t.columns, columnOutline{
			name: c[0], kind: c[1], required: c[2] == "NO" && c[5] != "PRI", fallback: fallback, comment: c[4], key: c[5] == "PRI", unique: c[5] == "UNI", to: c[6],
		})
	}
	indexes, err := m.texts(ctx, `SELECT INDEX_NAME, MIN(NON_UNIQUE), GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX SEPARATOR ', '), COUNT(*)
		FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND INDEX_NAME <> 'PRIMARY' GROUP BY INDEX_NAME ORDER BY INDEX_NAME`, schema, table)
	if err != nil {
		return err
	}
	for _, x := range indexes {
		if x[1] == "0" && x[3] == "1" {
			continue // said at the column
		}
		t.indexes = append(t.indexes, indexOutline{name: x[0], unique: x[1] == "0", columns: x[2]})
	}
	if whole && t.kind == "view" {
		text, err := m.texts(ctx, `SELECT IFNULL(VIEW_DEFINITION, '') FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`, schema, table)
		if err != nil || len(text) == 0 {
			return err
		}
		t.definition = text[0][0]
	}
	return nil
}
