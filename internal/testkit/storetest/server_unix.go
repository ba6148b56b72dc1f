//go:build unix

package storetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ken/internal/testkit"
)

// A Server is a PostgreSQL server of a test's own, for what no other test must
// notice: that it stops, starts again, and crashes.
type Server struct {
	Address string // of its database

	t   testing.TB
	dir string
	bin string
	as  *syscall.Credential // nil: as we are
}

// NewServer starts a server, which listens on a Unix socket only and is stopped
// and removed with the test. It skips the test as one is that uses the server of
// make ci, and where there are no programs of a server.
func NewServer(t testing.TB) *Server {
	t.Helper()
	testkit.PostgreSQL(t)
	bin, ok := programs()
	if !ok {
		t.Skip("cannot here: there is no pg_ctl; install the package postgresql")
	}
	dir, err := os.MkdirTemp("", "kenpg") // a short path: the socket's name has a limit
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: dir, bin: bin}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if os.Geteuid() == 0 { // the server refuses to run as root
		if s.as, err = unprivileged(); err == nil {
			err = os.Chown(dir, int(s.as.Uid), int(s.as.Gid))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Address = (&url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode()}).String()
	s.do("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	s.Start()
	t.Cleanup(func() { _ = s.command("pg_ctl", "-m", "immediate", "-w", "stop").Run() }) // it may be down
	return s
}

// programs returns the folder of the newest server's programs.
func programs() (string, bool) {
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	slices.SortFunc(all, func(a, b string) int { return version(a) - version(b) })
	if path, err := exec.LookPath("pg_ctl"); err == nil && len(all) == 0 {
		all = append(all, path)
	}
	if len(all) == 0 {
		return "", false
	}
	path, err := filepath.EvalSymlinks(all[len(all)-1])
	return filepath.Dir(path), err == nil
}

func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

func unprivileged() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil { // the programs are here without their package's user
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), append([]string{"-D", filepath.Join(s.dir, "data")}, args...)...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	return cmd
}

// do has a program of the server do something. What it says is in a file: a
// server that it starts keeps its output.
func (s *Server) do(name string, args ...string) {
	s.t.Helper()
	if err := s.try(name, args...); err != nil {
		said, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		s.t.Fatalf("%s: %v\n%s", name, err, said)
	}
}

func (s *Server) try(name string, args ...string) error {
	f, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := s.command(name, args...)
	cmd.Stdout, cmd.Stderr = f, f
	return cmd.Run()
}

// Start starts a server that is down. What it has not committed reaches its
// log's file late, so that a crash loses it.
func (s *Server) Start() {
	s.t.Helper()
	s.do("pg_ctl", s.starting()...)
}

func (s *Server) starting() []string {
	return []string{"-w", "-t", "120", "-o", "-c listen_addresses= -c unix_socket_directories=" + s.dir + " -c fsync=off -c wal_writer_delay=10s -c max_connections=300", "start"}
}

// Stop shuts the server down: its sessions end where they are, and nothing that
// was committed is lost.
func (s *Server) Stop() { s.t.Helper(); s.do("pg_ctl", "-m", "fast", "-w", "stop") }

// Crash kills a session with SIGKILL, which makes the server end all others,
// recover, and go on. It returns when it has.
func (s *Server) Crash() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// It resets its statistics when it recovers.
	lived := func() (when time.Time, err error) {
		conn, err := pgx.Connect(ctx, s.Address)
		if err != nil {
			return when, err
		}
		defer conn.Close(ctx)
		err = conn.QueryRow(ctx, "SELECT stats_reset FROM pg_stat_bgwriter").Scan(&when)
		return when, err
	}
	before, err := lived()
	if err != nil {
		s.t.Fatal(err)
	}
	victim, err := pgx.Connect(ctx, s.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer victim.Close(ctx)
	if err := syscall.Kill(int(victim.PgConn().PID()), syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	for {
		after, err := lived()
		if err == nil && !after.Equal(before) {
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("the server did not come back: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Kill kills the server and all its sessions with SIGKILL, as if the machine lost its
// power, and starts the server again.
func (s *Server) Kill() {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	if err != nil {
		s.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	// Its sessions notice that the first process is gone, and end. Before that no other
	// server may start there.
	for end := time.Now().Add(patience); s.try("pg_ctl", s.starting()...) != nil; {
		if time.Now().After(end) {
			s.t.Fatal("the server does not start after it was killed")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Do runs statements on the server, in a session of its own.
func (s *Server) Do(statements ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Own makes the user that the server runs as the owner of a folder.
func (s *Server) Own(dir string) {
	s.t.Helper()
	if s.as == nil {
		return
	}
	if err := os.Chown(dir, int(s.as.Uid), int(s.as.Gid)); err != nil {
		s.t.Fatal(err)
	}
}

// Dump copies the database to a file with pg_dump.
func (s *Server) Dump(file string) {
	s.t.Helper()
	if out, err := exec.Command(filepath.Join(s.bin, "pg_dump"), "--clean", "--if-exists", "-f", file, s.Address).CombinedOutput(); err != nil {
		s.t.Fatalf("pg_dump: %v\n%s", err, out)
	}
}

// Restore makes the database what it was when a file was written by Dump. Sessions may
// be open: they wait, and then see the old state.
func (s *Server) Restore(file string) {
	s.t.Helper()
	if out, err := exec.Command(filepath.Join(s.bin, "psql"), "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", file, s.Address).CombinedOutput(); err != nil {
		s.t.Fatalf("psql: %v\n%s", err, out)
	}
}

// Standby starts a second server that follows this one and takes no writes.
func (s *Server) Standby() *Server {
	s.t.Helper()
	dir, err := os.MkdirTemp("", "kenpg")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { os.RemoveAll(dir) })
	s.Own(dir)
	two := &Server{t: s.t, dir: dir, bin: s.bin, as: s.as}
	two.Address = (&url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode()}).String()
	two.do("pg_basebackup", "--no-sync", "-c", "fast", "-R", "-d", s.Address)
	two.Start()
	s.t.Cleanup(func() { _ = two.command("pg_ctl", "-m", "immediate", "-w", "stop").Run() }) // it may be down
	return two
}

// SQL runs a statement on the server, in a session of its own, and returns the
// first value of the first row.
func (s *Server) SQL(statement string) (value string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(ctx)
	var v any
	if err := conn.QueryRow(ctx, statement).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
	return fmt.Sprint(v)
}
