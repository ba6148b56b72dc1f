package db

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"ken/capability"
	"ken/internal/testkit"
	"ken/internal/testkit/executortest"
)

// cluster returns a connection to an empty database of a real server, as an
// ordinary user that may read one schema, and what the superuser may do there.
func cluster(t *testing.T) (Connection, func(sql string) string) {
	t.Helper()
	dsn := testkit.PostgreSQL(t)
	admin, err := pgconn.Connect(t.Context(), dsn)
	executortest.Must(t, err)
	name := fmt.Sprintf("db_%d", time.Now().UnixNano())
	run := func(conn *pgconn.PgConn) func(sql string) string {
		return func(sql string) string {
			t.Helper()
			results, err := conn.Exec(context.Background(), sql).ReadAll()
			if err != nil {
				t.Fatal(sql, err)
			}
			if last := results[len(results)-1]; len(last.Rows) > 0 {
				return string(last.Rows[0][0])
			}
			return ""
		}
	}
	run(admin)("CREATE DATABASE " + name)
	u, err := url.Parse(dsn)
	executortest.Must(t, err)
	u.Path = "/" + name
	own, err := pgconn.Connect(t.Context(), u.String())
	executortest.Must(t, err)
	do := run(own)
	do(`CREATE ROLE ` + name + ` LOGIN;
		CREATE SCHEMA AUTHORIZATION ` + name + `;
		SET ROLE ` + name + `;
		CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, email text UNIQUE, made timestamptz DEFAULT '2026-11-16 10:00+00', data jsonb, photo bytea, price numeric(40,20));
		COMMENT ON TABLE customers IS 'People who buy'; COMMENT ON COLUMN customers.email IS 'lower case';
		CREATE TABLE orders (id int PRIMARY KEY, customer bigint REFERENCES customers, tags text[]);
		CREATE INDEX orders_customer ON orders (customer, id);
		INSERT INTO customers VALUES (1, 'Ada', 'ada@example.org', DEFAULT, '{"a": [1]}', '\x00ff', 12345678901234567890.12345678901234567890), (9007199254740993, 'Big', NULL, NULL, NULL, NULL, NULL);
		INSERT INTO orders VALUES (1, 1, '{a,b}');
		CREATE FUNCTION writes() RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM customers; RETURN 1; END';
		CREATE SEQUENCE numbers;
		ANALYZE;
		RESET ROLE;`)
	t.Cleanup(func() {
		_ = own.Close(context.Background())
		run(admin)("DROP DATABASE " + name + " WITH (FORCE)")
		run(admin)("DROP ROLE " + name)
		_ = admin.Close(context.Background())
	})
	u.User = url.User(name)
	return Connection{Name: "crm", Engine: Postgres, URL: u.String(), Timeout: 20 * time.Second}, do
}

func TestPostgres(t *testing.T) {
	c, _ := cluster(t)
	e := rig(t, []Connection{c})
	got := text(do(t, e, "tool:db_crm_inspect", object{}))
	want := `Database crm (PostgreSQL), 2 tables and views, may be read.

table customers, about 2 rows: People who buy
  id bigint primary key
  name text not null
  email text unique: lower case
  made timestamp with time zone default '2026-11-16 10:00:00+00'::timestamp with time zone
  data jsonb
  photo bytea
  price numeric(40,20)

table orders, about 1 row
  id integer primary key
  customer bigint -> customers.id
  tags text[]
  index orders_customer (customer, id)
`
	if got != want {
		t.Errorf("inspect = %s\nwant %s", got, want)
	}
	has(t, do(t, e, "tool:db_crm_query", object{"sql": "SELECT * FROM customers ORDER BY id", "format": "json"}),
		`[1,"Ada","ada@example.org","2026-11-16 10:00:00+00",{"a": [1]},{"bytes":2,"base64":"AP8="},"12345678901234567890.12345678901234567890"],`+"\n"+`["9007199254740993","Big",null,null,null,null,null]`)
	got = text(do(t, e, "tool:db_crm_query", object{"sql": "SELECT $1::text, $2::bool, $3::int8, $4::float8, $5::bytea, $6::jsonb, NULL, 'NaN'::float8 WHERE $1 <> $7", "format": "json",
		"parameters": []any{"x'); DROP TABLE orders --", true, 7, 1.5, object{"base64": "AP8="}, object{"k": 1}, "y"}}))
	if want := `["x'); DROP TABLE orders --",true,7,1.5,{"bytes":2,"base64":"AP8="},{"k": 1},null,"NaN"]`; !strings.Contains(got, want) {
		t.Errorf("parameters = %s\nwant %s", got, want)
	}
	has(t, do(t, e, "tool:db_crm_explain", object{"sql": "SELECT * FROM customers WHERE id = $1", "parameters": []any{1}}),
		"customers", "cost=")
	has(t, do(t, e, "tool:db_crm_query", object{"sql": "SELECT 1 AS n WHERE false"}), "| n |", "0 rows")
	for sql, want := range map[string]string{
		"SELECT missing FROM orders": `column "missing" does not exist (at character 8)`, "SELECT 1; SELECT 2": "more than one statement", "SELECT $1": "",
	} {
		fails(t, do(t, e, "tool:db_crm_query", object{"sql": sql}), want)
	}
}

// TestPostgresReadOnly: the server keeps query and explain from changing
// anything, whatever the text.
func TestPostgresReadOnly(t *testing.T) {
	c, admin := cluster(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "made")
	state := func() string {
		return admin("SELECT (SELECT count(*) FROM customers) || ' ' || (SELECT string_agg(name, ',') FROM customers) || ' ' || (SELECT count(*) FROM pg_class) || ' ' || (SELECT is_called FROM numbers) || (SELECT count(*) FROM pg_largeobject_metadata) || (SELECT count(*) FROM pg_locks WHERE relation = 'customers'::regclass AND pid <> pg_backend_pid()) || (SELECT count(*) FROM pg_prepared_xacts)")
	}
	admin("SET search_path TO " + strings.TrimPrefix(mustURL(t, c.URL).Path, "/"))
	before := state()
	for _, write := range []bool{false, true} {
		c.Write = write
		e := rig(t, []Connection{c})
		for _, sql := range []string{
			"INSERT INTO customers (id, name) VALUES (5, 'x')", "UPDATE customers SET name = 'x'", "DELETE FROM customers", "TRUNCATE customers", "DROP TABLE orders",
			"WITH x AS (DELETE FROM customers RETURNING *) SELECT * FROM x", "WITH x AS (INSERT INTO customers (id, name) VALUES (5, 'x') RETURNING id) SELECT id FROM x",
			"CREATE TABLE x (a int)", "SELECT * INTO x FROM customers", "CREATE INDEX ON customers (name)", "ALTER TABLE customers ADD x int", "GRANT ALL ON customers TO public",
			"SELECT writes()", "SELECT nextval('numbers')", "SELECT setval('numbers', 9)", "DO $$ BEGIN DELETE FROM customers; END $$",
			"DO $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM customers; END $$", "DO $$ BEGIN COMMIT; DELETE FROM customers; COMMIT; END $$",
			"DO $$ BEGIN PERFORM set_config('transaction_read_only', 'off', false); DELETE FROM customers; END $$",
			"SELECT set_config('transaction_read_only', 'off', false), writes()", "SELECT set_config('default_transaction_read_only', 'off', false), writes()",
			"EXPLAIN ANALYZE DELETE FROM customers", "EXPLAIN (ANALYZE) SELECT writes()",
			"COPY customers TO PROGRAM 'touch " + file + "'", "COPY customers TO '" + file + "'", "COPY customers FROM PROGRAM 'touch " + file + "'", "COPY customers FROM STDIN", "COPY customers TO STDOUT",
			"SELECT pg_read_file('/etc/passwd')", "SELECT lo_export(1, '" + file + "')",
			"SELECT 1; DELETE FROM customers", "COMMIT; DELETE FROM customers", "PREPARE x AS DELETE FROM customers; EXECUTE x", "VACUUM",
			"ANALYZE; DELETE FROM customers", "CALL writes()", "DECLARE c CURSOR FOR SELECT writes(); FETCH c",
		} {
			for _, verb := range []string{"query", "explain"} {
				r, err := e.Invoke(t.Context(), executortest.Call("tool:db_crm_"+verb, object{"sql": sql}))
				if err == nil && !r.Failed && verb == "query" {
					t.Errorf("query %s (write %v) = %s, want a refusal", sql, write, text(r))
				}
				if err != nil && kind(err) != capability.Denied {
					t.Errorf("%s %s = %v, want that it is denied", verb, sql, err)
				}
			}
		}
		// What ends the transaction, or changes the session, is gone with it.
		for _, sql := range []string{"PREPARE TRANSACTION 'left'", "; /* a */ PREPARE TRANSACTION 'left'", "COMMIT", "ROLLBACK", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "SET TRANSACTION READ WRITE", "SET default_transaction_read_only = off", "BEGIN READ WRITE", "RESET ALL", "DISCARD ALL", "LISTEN x", "SELECT pg_advisory_lock(1)", "SELECT lo_create(4711)", "LOCK TABLE customers"} {
			_, _ = e.Invoke(t.Context(), executortest.Call("tool:db_crm_query", object{"sql": sql})) // refused or not
			refuses(t, e, executortest.Call("tool:db_crm_query", object{"sql": "DELETE FROM customers"}), capability.Denied, "")
		}
	}
	if after := state(); after != before {
		t.Errorf("the database is %q, was %q", after, before)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("files were made: %v", list)
	}
}

func mustURL(t *testing.T, s string) *url.URL {
	u, err := url.Parse(s)
	executortest.Must(t, err)
	return u
}

// TestPostgresUser: a user whom the server does not hold is refused before
// anything of the call is sent.
func TestPostgresUser(t *testing.T) {
	c, admin := cluster(t)
	name := strings.TrimPrefix(mustURL(t, c.URL).Path, "/")
	refused := func(c Connection, want string) {
		t.Helper()
		refuses(t, rig(t, []Connection{c}), executortest.Call("tool:db_crm_query", object{"sql": "SELECT 1"}), capability.Unavailable, want)
	}
	for _, role := range []string{"pg_execute_server_program", "pg_read_server_files", "pg_write_server_files"} {
		admin("GRANT " + role + " TO " + name)
		refused(c, role)
		admin("REVOKE " + role + " FROM " + name)
	}
	admin("GRANT postgres TO " + name)
	refused(c, "postgres")
	admin("REVOKE postgres FROM " + name)
	u := mustURL(t, c.URL)
	u.User = url.User("postgres")
	c.URL = u.String()
	refused(c, "can become, postgres")
}

// TestPostgresOtherSessions checks that a user who may call functions of dblink is
// refused for reading: what another session does is not part of the transaction.
func TestPostgresOtherSessions(t *testing.T) {
	c, admin := cluster(t)
	u := mustURL(t, c.URL)
	name := strings.TrimPrefix(u.Path, "/")
	if admin("SELECT count(*) FROM pg_available_extensions WHERE name = 'dblink'") == "0" {
		t.Skip("the server has no dblink")
	}
	c.Write = true
	e := rig(t, []Connection{c})
	write := fmt.Sprintf("SELECT dblink_connect_u('x', 'dbname=%s user=%s host=%s'), dblink_exec('x', 'DELETE FROM %s.orders')", name, name, u.Query().Get("host"), name)
	admin("CREATE EXTENSION dblink; GRANT EXECUTE ON FUNCTION dblink_connect_u(text, text) TO " + name)
	for _, tool := range []string{"query", "explain", "inspect"} {
		arguments := object{"sql": write}
		if tool == "inspect" {
			arguments = object{}
		}
		r, err := e.Invoke(t.Context(), executortest.Call("tool:db_crm_"+tool, arguments))
		if kind(err) != capability.Unavailable || !strings.Contains(fmt.Sprint(err), "dblink") || !strings.Contains(fmt.Sprint(err), "revoke EXECUTE") {
			t.Errorf("%s = %s, %v, want a refusal that names dblink", tool, text(r), err)
		}
	}
	if got := admin("SELECT count(*) FROM " + name + ".orders"); got != "1" {
		t.Errorf("a query changed the table: it has %s rows", got)
	}
	do(t, e, "tool:db_crm_execute", object{"sql": "UPDATE orders SET tags = NULL"}) // it may write
	if faults, err := Check(t.Context(), c, noSecret); err == nil || !strings.Contains(err.Error(), "dblink") {
		t.Errorf("Check = %v, %v", faults, err)
	}

	// A role that the user can become counts too.
	admin("CREATE ROLE " + name + "_link NOINHERIT; GRANT " + name + "_link TO " + name + "; REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC, " + name)
	do(t, e, "tool:db_crm_query", object{"sql": "SELECT 1"})
	admin("GRANT EXECUTE ON FUNCTION dblink_exec(text, text) TO " + name + "_link")
	if r, err := e.Invoke(t.Context(), executortest.Call("tool:db_crm_query", object{"sql": "SELECT 1"})); kind(err) != capability.Unavailable {
		t.Errorf("with a role that may call dblink: %s, %v", text(r), err)
	}
	admin("DROP EXTENSION dblink; DROP ROLE " + name + "_link")
	do(t, e, "tool:db_crm_query", object{"sql": "SELECT 1"})
}

func noSecret(reference string) (string, error) { return "", errors.New("no secret " + reference) }

// TestPostgresCheck checks what the doctor is told of a user.
func TestPostgresCheck(t *testing.T) {
	c, admin := cluster(t)
	name := strings.TrimPrefix(mustURL(t, c.URL).Path, "/")
	check := func() (out []string) {
		t.Helper()
		out, err := Check(t.Context(), c, noSecret)
		executortest.Must(t, err)
		return out
	}
	if got := strings.Join(check(), "; "); !strings.Contains(got, "may change 2 tables") || strings.Contains(got, "extensions") {
		t.Errorf("of an owner: %s", got)
	}
	admin("GRANT CREATE ON DATABASE " + name + " TO " + name)
	if got := strings.Join(check(), "; "); !strings.Contains(got, "may create extensions") {
		t.Errorf("of one who may create: %s", got)
	}
	admin("REVOKE CREATE ON DATABASE " + name + " FROM " + name + "; CREATE ROLE " + name + "_reader LOGIN; GRANT USAGE ON SCHEMA " + name + " TO " + name + "_reader; GRANT SELECT ON ALL TABLES IN SCHEMA " + name + " TO " + name + "_reader")
	t.Cleanup(func() { admin("DROP OWNED BY " + name + "_reader; DROP ROLE " + name + "_reader") })
	u := mustURL(t, c.URL)
	u.User = url.User(name + "_reader")
	c.URL = u.String()
	want := ""
	if admin("SHOW wal_level") == "logical" {
		want = "pg_logical_emit_message"
	}
	if got := check(); want == "" && len(got) != 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
		t.Errorf("of a user who may only read: %q, want %q alone", got, want)
	}
	admin("ALTER ROLE " + name + "_reader REPLICATION")
	if got := strings.Join(check(), "; "); !strings.Contains(got, "may create replication slots") {
		t.Errorf("of one with REPLICATION: %s", got)
	}
	u.User = url.User("postgres")
	c.URL = u.String()
	if out, err := Check(t.Context(), c, noSecret); err == nil || !strings.Contains(err.Error(), "ordinary user") {
		t.Errorf("of a superuser: %q, %v", out, err)
	}
}

func TestPostgresExecute(t *testing.T) {
	c, admin := cluster(t)
	admin("SET search_path TO " + strings.TrimPrefix(mustURL(t, c.URL).Path, "/"))
	c.Write = true
	e := rig(t, []Connection{c})
	has(t, do(t, e, "tool:db_crm_execute", object{"sql": "UPDATE customers SET name = $1 WHERE id = $2 RETURNING name", "parameters": []any{"Eve", 1}}),
		"Eve", "1 row changed")
	if got := admin("SELECT name FROM customers WHERE id = 1"); got != "Eve" {
		t.Errorf("the name is %s", got)
	}
	for _, sql := range []string{"COMMIT", "ROLLBACK", "PREPARE TRANSACTION 'left'", "DELETE FROM orders; DELETE FROM customers", "COPY customers TO PROGRAM 'true'"} {
		if r, err := e.Invoke(t.Context(), executortest.Call("tool:db_crm_execute", object{"sql": sql})); err == nil && !r.Failed {
			t.Errorf("%s was run: %s", sql, text(r))
		}
	}
	fails(t, do(t, e, "tool:db_crm_execute", object{"sql": "INSERT INTO orders VALUES (8, 1), (9, 77)"}), "")
	if got := admin("SELECT count(*) || ' ' || (SELECT count(*) FROM pg_prepared_xacts) FROM orders"); got != "1 0" {
		t.Errorf("there are %s orders and prepared transactions", got)
	}
}

// lossy stands between Ken and a server. It passes everything on until the client
// commits; then it passes on that too, waits for the answer, and hangs up.
func lossy(t *testing.T, c Connection) Connection {
	t.Helper()
	u := mustURL(t, c.URL)
	server := filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
	dir, err := os.MkdirTemp("", "pg") // a short path: the socket's name has a limit
	executortest.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	executortest.Must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	pass := func(client net.Conn) {
		defer client.Close()
		to, err := net.Dial("unix", server)
		if err != nil {
			return
		}
		defer to.Close()
		var committing atomic.Bool
		go func() {
			b := make([]byte, 64<<10)
			for {
				n, err := client.Read(b)
				if bytes.Contains(b[:n], []byte("COMMIT")) {
					committing.Store(true)
				}
				if _, failed := to.Write(b[:n]); err != nil || failed != nil {
					return
				}
			}
		}()
		b := make([]byte, 64<<10)
		for {
			n, err := to.Read(b)
			if err != nil || committing.Load() {
				return
			}
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go pass(client)
		}
	}()
	u.RawQuery = url.Values{"host": {dir}}.Encode()
	c.URL = u.String()
	return c
}

// TestPostgresCommitLost: where the connection breaks while a change is
// committed, the error does not say that it failed, because it may have happened.
func TestPostgresCommitLost(t *testing.T) {
	c, admin := cluster(t)
	admin("SET search_path TO " + strings.TrimPrefix(mustURL(t, c.URL).Path, "/"))
	c.Write = true
	e := rig(t, []Connection{lossy(t, c)})
	r, err := e.Invoke(t.Context(), executortest.Call("tool:db_crm_execute", object{"sql": "UPDATE customers SET name = 'Eve' WHERE id = 1"}))
	if kind(err) != capability.Upstream || !strings.Contains(fmt.Sprint(err), "may or may not have taken effect") {
		t.Errorf("execute = %+v %v", r, err)
	}
	if got := admin("SELECT name FROM customers WHERE id = 1"); got != "Eve" {
		t.Errorf("the name is %s: the test is wrong", got)
	}

	// What the server refuses when it commits was certainly not done.
	e = rig(t, []Connection{c})
	admin("ALTER TABLE orders ALTER CONSTRAINT orders_customer_fkey DEFERRABLE INITIALLY DEFERRED")
	fails(t, do(t, e, "tool:db_crm_execute", object{"sql": "INSERT INTO orders VALUES (9, 77)"}), "violates foreign key")
}

// TestPostgresLongValues needs no server: of a long value a part is shown, and said.
func TestPostgresLongValues(t *testing.T) {
	const most = 4 << 10
	for name, v := range map[string]struct {
		kind uint32
		raw  string
	}{
		"text": {25, strings.Repeat("a", 1<<20)}, "no UTF-8": {25, strings.Repeat("\xe9", 1<<20)}, "JSON": {oidJSON, strings.Repeat("1", 1<<20)},
		"bytes": {oidBytea, `\x` + strings.Repeat("ff", 1<<19)}, "bytes, escaped": {oidBytea, strings.Repeat(`a\\`, 1<<19)},
	} {
		cut := 0
		shown := plainText(postgresValue(v.kind, []byte(v.raw), most), most, &cut)
		encoded := appendJSON(nil, postgresValue(v.kind, []byte(v.raw), most), most, &cut)
		if cut != 2 || len(shown) > 3*most+100 || !json.Valid(encoded) {
			t.Errorf("%s: cut %d, shown as %d bytes; %.100s", name, cut, len(shown), encoded)
		}
	}
}

// TestPostgresLimits: what runs on is stopped on the server.
func TestPostgresLimits(t *testing.T) {
	c, admin := cluster(t)
	name := strings.TrimPrefix(mustURL(t, c.URL).Path, "/")
	fails(t, do(t, rig(t, []Connection{c}), "tool:db_crm_query", object{"sql": "SELECT repeat('x', 100000000)"}), "")
	serverLimits(t, c, "SELECT generate_series(1, 100000000), 'word'", "SELECT repeat('x', 1000000), repeat('y', 10)",
		[]string{"SELECT pg_sleep(600)", "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT 1 FROM t) SELECT count(*) FROM t"},
		func() string {
			return admin("SELECT count(*) FROM pg_stat_activity WHERE usename = '" + name + "' AND state = 'active'")
		})
}

// TestAddress needs no server: what is dialled, with what, and what an
// error says.
func TestAddress(t *testing.T) {
	for _, env := range []string{"PGHOST", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGOPTIONS", "PGAPPNAME", "PGSSLMODE", "PGTZ"} {
		t.Setenv(env, "leaked")
	}
	t.Setenv("PGSSLMODE", "disable")
	cfg, err := postgresConfig(Connection{URL: "postgres://reader@db.example.org/crm", Timeout: time.Second}, "", false)
	executortest.Must(t, err)
	if cfg.Host != "db.example.org" || cfg.Port != 5432 || cfg.User != "reader" || cfg.Database != "crm" || cfg.Password != "" || cfg.TLSConfig == nil || cfg.TLSConfig.InsecureSkipVerify || len(cfg.Fallbacks) != 0 {
		t.Errorf("config = %+v", cfg)
	}
	for k, v := range cfg.RuntimeParams {
		if strings.Contains(v, "leaked") || k == "options" {
			t.Errorf("%s = %s comes from the environment", k, v)
		}
	}
	if cfg.RuntimeParams["default_transaction_read_only"] != "on" {
		t.Error("the session is not read-only")
	}
	for _, host := range []string{"169.254.169.254", "[fe80::1]", "2852039166"} {
		c := Connection{Name: "crm", Engine: Postgres, URL: "postgres://reader@" + host + "/crm?sslmode=disable", Password: "secret:X", Timeout: 5 * time.Second}
		_, err := rig(t, []Connection{c}).Invoke(t.Context(), executortest.Call("tool:db_crm_query", object{"sql": "SELECT 1"}))
		if kind(err) != capability.Unavailable || strings.Contains(fmt.Sprint(err), "password of") || !strings.Contains(fmt.Sprint(err), "link-local") && host != "2852039166" {
			t.Errorf("%s = %v", host, err)
		}
		facts, err := rig(t, []Connection{c}).Facts(t.Context(), executortest.Call("tool:db_crm_query", object{"sql": "SELECT 1"}), nil)
		if err != nil || len(facts.Hosts) != 1 || facts.Hosts[0] != strings.Trim(host, "[]") {
			t.Errorf("Facts = %+v, %v", facts, err)
		}
	}
}
