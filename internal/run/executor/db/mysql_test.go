//go:build unix

package db

import (
	"database/sql"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"ken/capability"
	"ken/internal/testkit"
	"ken/internal/testkit/executortest"
)

// mysqlServer starts a MariaDB server of its own, and returns a connection as an
// ordinary user, and what the administrator may do. Programs of the package
// mariadb-server are needed.
func mysqlServer(t *testing.T) (Connection, func(string) string) {
	t.Helper()
	testkit.Programs(t, "mariadb-install-db")
	install, program := "mariadb-install-db", "mariadbd"
	if _, err := exec.LookPath(program); err != nil {
		program = "/usr/sbin/mariadbd"
	}
	dir, err := os.MkdirTemp("", "my") // a path of a socket is short
	executortest.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "s")
	small := []string{"--no-defaults", "--datadir=" + data, "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"}
	if os.Geteuid() == 0 {
		small = append(small, "--user=root")
	}
	if out, err := exec.Command(install, append(small, "--auth-root-authentication-method=normal", "--skip-test-db")...).CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	executortest.Must(t, err)
	cmd := exec.Command(program, append(small, "--socket="+socket, "--skip-networking", "--pid-file="+filepath.Join(dir, "pid"), "--secure-file-priv=", "--performance-schema=0")...)
	cmd.Stdout, cmd.Stderr = log, log
	executortest.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // its files go too
		<-ended
	})
	for {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			break
		}
		select {
		case err := <-ended:
			ended <- err
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("mariadbd: %v\n%s", err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.MultiStatements = "root", "unix", socket, true
	connector, err := mysql.NewConnector(cfg)
	executortest.Must(t, err)
	admin := sql.OpenDB(connector)
	t.Cleanup(func() { admin.Close() })
	run := func(statement string) string {
		t.Helper()
		var out sql.NullString
		if err := admin.QueryRow(statement).Scan(&out); err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatalf("%s: %v", statement, err)
		}
		return out.String
	}
	if _, err := admin.Exec(`CREATE DATABASE crm CHARACTER SET utf8mb4; USE crm;
		CREATE TABLE customers (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(80) NOT NULL, email VARCHAR(80) UNIQUE COMMENT 'lower case', price DECIMAL(40,20), photo BLOB, made DATETIME DEFAULT '2026-11-16 10:00:00') COMMENT 'People who buy';
		CREATE TABLE orders (id INT PRIMARY KEY, customer BIGINT UNSIGNED, FOREIGN KEY (customer) REFERENCES customers (id), INDEX customer_id (customer, id));
		CREATE TABLE old (id INT) ENGINE = MyISAM;
		CREATE VIEW names AS SELECT name FROM customers;
		CREATE SEQUENCE numbers;
		INSERT INTO customers VALUES (1, 'Ada', 'ada@example.org', 12345678901234567890.12345678901234567890, x'00ff', DEFAULT), (18446744073709551615, 'Big', NULL, NULL, NULL, NULL);
		INSERT INTO orders VALUES (1, 1); INSERT INTO old VALUES (1);
		CREATE PROCEDURE writes() BEGIN COMMIT; SET SESSION tx_read_only = 0; START TRANSACTION READ WRITE; DELETE FROM orders; COMMIT; END;
		CREATE FUNCTION deletes() RETURNS INT BEGIN DELETE FROM orders; RETURN 1; END;
		CREATE USER reader IDENTIFIED BY 'password of secret:PW'; GRANT ALL ON crm.* TO reader;
		CREATE USER filer IDENTIFIED BY 'password of secret:PW'; GRANT ALL ON crm.* TO filer; GRANT FILE ON *.* TO filer;
		CREATE USER roled IDENTIFIED BY 'password of secret:PW'; CREATE ROLE files; GRANT FILE ON *.* TO files; GRANT files TO roled; GRANT SELECT ON crm.* TO roled; SET DEFAULT ROLE files FOR roled;
		ANALYZE TABLE customers, orders, old;`); err != nil {
		t.Fatal(err)
	}
	return Connection{Name: "crm", Engine: MySQL, URL: "mysql://reader@/crm?host=" + socket, Password: "secret:PW", Timeout: 20 * time.Second}, run
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestMySQL: a MariaDB server is described and read, nothing that is called there
// changes anything, and a query that is over has ended at the server.
func TestMySQL(t *testing.T) {
	c, admin := mysqlServer(t)
	e := rig(t, []Connection{c})
	t.Run("reads", func(t *testing.T) { mysqlReads(t, e) })
	t.Run("read only", func(t *testing.T) { mysqlOnlyReads(t, e, admin) })
	t.Run("users", func(t *testing.T) {
		for _, user := range []string{"filer", "roled"} {
			bad := c
			bad.URL = strings.Replace(c.URL, "reader", user, 1)
			_, err := rig(t, []Connection{bad}).Invoke(t.Context(), executortest.Call("tool:db_crm_query", object{"sql": "SELECT 1"}))
			if capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "FILE") {
				t.Errorf("%s: %v, want a refusal that names FILE", user, err)
			}
		}
		bad := c
		bad.URL = strings.Replace(c.URL, "reader", "nobody", 1)
		if _, err := rig(t, []Connection{bad}).Invoke(t.Context(), executortest.Call("tool:db_crm_inspect", object{})); capability.KindOf(err) != capability.Unavailable || strings.Contains(err.Error(), "password of") {
			t.Errorf("an unknown user: %v", err)
		}
	})
	t.Run("limits", func(t *testing.T) { mysqlLimits(t, c, admin) })
}

func mysqlReads(t *testing.T, e *Executor) {
	got := text(do(t, e, "tool:db_crm_inspect", object{}))
	for _, want := range []string{"Database crm (MariaDB)", "table customers, about 2 rows: People who buy", "id bigint(20) unsigned primary key", "name varchar(80) not null",
		"email varchar(80) unique: lower case", "customer bigint(20) unsigned -> customers.id", "index customer_id (customer, id)", "view names"} {
		if !strings.Contains(got, want) {
			t.Errorf("inspect lacks %q:\n%s", want, got)
		}
	}
	has(t, do(t, e, "tool:db_crm_inspect", object{"table": "names"}), "select")
	has(t, do(t, e, "tool:db_crm_query", object{"sql": "SELECT * FROM customers ORDER BY id", "format": "json"}),
		`[1,"Ada","ada@example.org","12345678901234567890.12345678901234567890",{"bytes":2,"base64":"AP8="},"2026-11-16 10:00:00"],`+"\n"+`["18446744073709551615","Big",null,null,null,null]`)
	has(t, do(t, e, "tool:db_crm_query", object{"sql": "SELECT ?, ?, ?, ?, NULL", "format": "json", "parameters": []any{"x'); DROP TABLE orders -- \\", 7, 1.5, true}}),
		`["x'); DROP TABLE orders -- \\",7,1.5,1,null]`)
	has(t, do(t, e, "tool:db_crm_explain", object{"sql": "SELECT * FROM customers WHERE id = ?", "parameters": []any{1}}),
		"customers", "query_block")
	fails(t, do(t, e, "tool:db_crm_query", object{"sql": "SELECT missing FROM orders"}), "missing")
	fails(t, do(t, e, "tool:db_crm_query", object{"sql": "SELECT 1; DELETE FROM orders"}), "")
}

func mysqlOnlyReads(t *testing.T, e *Executor, admin func(string) string) {
	file := filepath.Join(t.TempDir(), "made")
	state := func() string {
		return admin("SELECT CONCAT((SELECT COUNT(*) FROM crm.customers), ' ', (SELECT COUNT(*) FROM crm.orders), ' ', (SELECT COUNT(*) FROM crm.old), ' ', (SELECT GROUP_CONCAT(table_name ORDER BY 1) FROM information_schema.tables WHERE table_schema = 'crm'), ' ', (SELECT next_not_cached_value FROM crm.numbers), ' ', (SELECT COUNT(*) FROM mysql.user), ' ', (SELECT MD5(GROUP_CONCAT(authentication_string)) FROM mysql.user), ' ', @@global.max_connections)")
	}
	before := state()
	for _, statement := range []string{
		"DELETE FROM orders", "INSERT INTO old VALUES (2)", "DELETE FROM old", "UPDATE customers SET name = 'x'", "REPLACE INTO orders VALUES (1, 1)", "TRUNCATE orders", "DROP TABLE orders", "CREATE TABLE more (id INT)",
		"ALTER TABLE orders ADD more INT", "RENAME TABLE orders TO less", "CALL writes()", "SELECT deletes()", "DO deletes()", "SELECT NEXTVAL(numbers)",
		"BEGIN NOT ATOMIC COMMIT; SET SESSION tx_read_only = 0; DELETE FROM orders; END", "COMMIT", "SET SESSION tx_read_only = 0", "SET GLOBAL max_connections = 3", "SET PASSWORD = PASSWORD('other')",
		"SET STATEMENT max_statement_time = 0 FOR SELECT 1", "EXECUTE IMMEDIATE 'DELETE FROM orders'", "PREPARE p FROM 'DELETE FROM orders'", "KILL USER reader", "FLUSH TABLES", "LOCK TABLES orders WRITE", "ANALYZE TABLE orders",
		"ANALYZE DELETE FROM orders", "OPTIMIZE TABLE orders", "HANDLER orders OPEN", "LOAD DATA INFILE '/etc/passwd' INTO TABLE old", "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE old", "GRANT SELECT ON crm.* TO filer",
		"CREATE USER evil", "SELECT 1 INTO OUTFILE '" + file + "'", "SELECT 1 INTO DUMPFILE '" + file + "'", "EXPLAIN DELETE FROM orders", "/*!50000 DELETE */ FROM orders", "/*M! DELETE FROM orders */", "WITH x AS (SELECT 1) DELETE FROM orders",
		"FORMAT=JSON DELETE FROM orders", "orders", "SHOW TABLES", "XA START 'x'",
	} {
		r, err := e.Invoke(t.Context(), executortest.Call("tool:db_crm_query", object{"sql": statement}))
		if err == nil && !r.Failed {
			t.Errorf("%s = %s, want a refusal", statement, text(r))
		}
		if after := state(); after != before {
			t.Fatalf("%s changed something: %s, before %s", statement, after, before)
		}
	}
	if exists(file) {
		t.Error("a file was made at the server")
	}
	_, err := e.Invoke(t.Context(), executortest.Call("tool:db_crm_query", object{"sql": "DELETE FROM orders"}))
	if own, ok := errors.AsType[*capability.Error](err); !ok || own.Kind != capability.Denied || own.Rule != "db.query" {
		t.Errorf("DELETE = %v, want denied", err)
	}
}

func mysqlLimits(t *testing.T, c Connection, admin func(string) string) {
	serverLimits(t, c, "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT a.i FROM n AS a, n AS b, n AS c",
		"SELECT REPEAT('x', 5000000), REPEAT('y', 10)", []string{"SELECT SLEEP(1000)", "SELECT BENCHMARK(1000000000000, MD5('x'))"},
		func() string {
			return admin("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'reader' AND command <> 'Killed'")
		})
}

// TestMySQLAddress: what is dialled is checked, and over a network the server must
// prove its name.
func TestMySQLAddress(t *testing.T) {
	for _, host := range []string{"169.254.169.254", "[fe80::1]", "[fd00:ec2::254]"} {
		e := rig(t, []Connection{{Name: "far", Engine: MySQL, URL: "mysql://u@" + host + "/d", Timeout: 5 * time.Second}})
		if _, err := e.Invoke(t.Context(), executortest.Call("tool:db_far_query", object{"sql": "SELECT 1"})); err == nil || !strings.Contains(err.Error(), "link-local") {
			t.Errorf("%s: %v, want a refusal", host, err)
		}
	}
	far, err := mysqlConfig(Connection{URL: "mysql://u@db.example.org/d"}, "")
	if err != nil || far.TLS == nil || far.TLS.InsecureSkipVerify || far.AllowFallbackToPlaintext || far.Addr != "db.example.org:3306" || far.MultiStatements || far.AllowAllFiles {
		t.Errorf("far = %+v, %v", far, err)
	}
	near, err := mysqlConfig(Connection{URL: "mysql://u@127.0.0.1:3307/d"}, "")
	if err != nil || !near.AllowFallbackToPlaintext || near.Addr != "127.0.0.1:3307" {
		t.Errorf("near = %+v, %v", near, err)
	}
	if _, err := mysqlConfig(Connection{URL: "mysql://u@h/d?sslmode=maybe"}, ""); err == nil {
		t.Error("an unknown sslmode is taken")
	}
}
