package db

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"

	"modernc.org/libc"
	_ "modernc.org/sqlite" // sets the library up
	lib "modernc.org/sqlite/lib"
)

// A sqliteFile is an open SQLite file, through the library's own interface:
// database/sql has no authorizer, cannot stop a query between two rows, and
// hides where a statement ends. It is for one goroutine.
type sqliteFile struct {
	tls     *libc.TLS
	db      uintptr
	longest int64 // bytes of a value in the statement that was prepared last
}

// What one statement may be and make. Longer values are an error of SQLite's.
const (
	sqliteLongestValue = 16 << 20
	sqliteMostValues   = 128 << 20    // all values that a statement holds at once
	sqliteMostWork     = 4 << 30      // all values that a statement makes without a place to stop it
	sqliteLongestSQL   = mostSQL + 64 // with what explain puts before it
	sqliteBusyMS       = 2000
)

// Why a file is not opened. A pipe would make its opener wait. A link may have
// been put there by a program that can write in the file's folder, and could
// lead to Ken's own store.
var (
	errNotThere = errors.New("the file does not exist")
	errUnseen   = errors.New("the file cannot be read")
	errNotPlain = errors.New("the file is not a regular file")
	errLink     = errors.New("the path contains a symbolic link, and Ken does not follow links; use the path of the file itself")
	errSwapped  = errors.New("the file was replaced while it was opened")
)

// FileError returns why the file of a connection cannot be opened, as far as a look
// from outside tells, or nil. A connection to a server has no file.
func FileError(c Connection) error {
	if c.Engine != SQLite {
		return nil
	}
	if _, _, err := plainFile(c.Path); err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	return nil
}

// openSQLite opens a file that is there, for reading, or for writing too. From
// then on its authorizer judges every statement.
func openSQLite(path string, write bool) (*sqliteFile, error) {
	given := path
	path, id, err := plainFile(given)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(given), err) // a model reads it
	}
	f := &sqliteFile{tls: libc.NewTLS()}
	name, err := libc.CString(path)
	if err != nil {
		f.tls.Close()
		return nil, err
	}
	defer libc.Xfree(f.tls, name)
	at, err := libc.CString("12345678") // room for a pointer
	if err != nil {
		f.tls.Close()
		return nil, err
	}
	defer libc.Xfree(f.tls, at)
	flags := int32(lib.SQLITE_OPEN_READONLY)
	if write {
		flags = lib.SQLITE_OPEN_READWRITE
	}
	// Without a mutex: one goroutine uses the connection. The only other that
	// touches it interrupts it, which needs none.
	rc := lib.Xsqlite3_open_v2(f.tls, name, at, flags|lib.SQLITE_OPEN_NOMUTEX|lib.SQLITE_OPEN_EXRESCODE|lib.SQLITE_OPEN_NOFOLLOW, 0)
	f.db = libc.AtomicLoadPUintptr(at)
	if rc != lib.SQLITE_OK {
		err := f.fault(rc)
		f.close()
		return nil, err
	}
	if !f.is(id) {
		f.close()
		return nil, errSwapped
	}
	if err := f.prepareFile(write); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// prepareFile takes away what no statement needs.
func (f *sqliteFile) prepareFile(write bool) error {
	lib.Xsqlite3_busy_timeout(f.tls, f.db, sqliteBusyMS)
	for _, l := range [...]struct{ id, most int32 }{
		{lib.SQLITE_LIMIT_LENGTH, sqliteLongestValue}, {lib.SQLITE_LIMIT_SQL_LENGTH, sqliteLongestSQL},
		{lib.SQLITE_LIMIT_ATTACHED, 0}, {lib.SQLITE_LIMIT_WORKER_THREADS, 0}, {lib.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
		{lib.SQLITE_LIMIT_EXPR_DEPTH, 500}, {lib.SQLITE_LIMIT_TRIGGER_DEPTH, 100}, {lib.SQLITE_LIMIT_VARIABLE_NUMBER, mostParameters},
	} {
		lib.Xsqlite3_limit(f.tls, f.db, l.id, l.most)
	}
	for _, o := range [...]struct{ op, on int32 }{
		{lib.SQLITE_DBCONFIG_DEFENSIVE, 1}, {lib.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {lib.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
	} {
		list := libc.NewVaList(o.on, uintptr(0))
		rc := lib.Xsqlite3_db_config(f.tls, f.db, o.op, list)
		libc.Xfree(f.tls, list)
		if rc != lib.SQLITE_OK {
			return f.fault(rc)
		}
	}
	pragma, judge := "PRAGMA query_only=1", authorizeReading
	if write {
		pragma, judge = "PRAGMA foreign_keys=1", authorizeWriting
	}
	if err := f.run(pragma); err != nil {
		return err
	}
	if rc := lib.Xsqlite3_set_authorizer(f.tls, f.db, functionPointer(judge), 0); rc != lib.SQLITE_OK {
		return f.fault(rc)
	}
	return nil
}

func (f *sqliteFile) close() {
	if f.db != 0 {
		lib.Xsqlite3_close_v2(f.tls, f.db)
		f.db = 0
	}
	f.tls.Close()
}

// run runs a statement of Ken's own.
func (f *sqliteFile) run(sql string) error {
	text, err := libc.CString(sql)
	if err != nil {
		return err
	}
	defer libc.Xfree(f.tls, text)
	if rc := lib.Xsqlite3_exec(f.tls, f.db, text, 0, 0, 0); rc != lib.SQLITE_OK {
		return f.fault(rc)
	}
	return nil
}

// transaction runs a statement of Ken's own that begins or ends a transaction:
// the statement of a call may not.
func (f *sqliteFile) transaction(sql string) error {
	lib.Xsqlite3_set_authorizer(f.tls, f.db, 0, 0)
	err := f.run(sql)
	lib.Xsqlite3_set_authorizer(f.tls, f.db, functionPointer(authorizeWriting), 0)
	return err
}

// stopWith interrupts what runs when the context ends. What it returns must be
// called before the file is closed.
func (f *sqliteFile) stopWith(ctx context.Context) (done func()) {
	over := make(chan struct{})
	db := f.db
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		tls := libc.NewTLS() // f.tls belongs to the goroutine that runs the statement
		defer tls.Close()
		lib.Xsqlite3_interrupt(tls, db)
	})
	return func() {
		if !stop() {
			<-over
		}
	}
}

// A sqliteError is what SQLite says of a failure.
type sqliteError struct {
	code int32
	text string
}

func (e *sqliteError) Error() string { return e.text }

func (f *sqliteFile) fault(rc int32) error {
	text := libc.GoString(lib.Xsqlite3_errstr(f.tls, rc))
	if f.db != 0 && lib.Xsqlite3_errcode(f.tls, f.db)&0xff == rc&0xff {
		text = libc.GoString(lib.Xsqlite3_errmsg(f.tls, f.db))
	}
	return &sqliteError{rc & 0xff, strings.ToValidUTF8(text, "\uFFFD")}
}

// A sqliteStatement is one statement, ready to run.
type sqliteStatement struct {
	file *sqliteFile
	at   uintptr
	n    int // columns
}

var errNoStatement = errors.New("missing statement")

// errTwoStatements is given where a text holds more than one statement.
var errTwoStatements = errors.New("more than one statement")

// prepare compiles the one statement of a text. SQLite itself says where it
// ends.
func (f *sqliteFile) prepare(sql string) (*sqliteStatement, error) {
	if strings.ContainsRune(sql, 0) {
		return nil, errors.New("contains a zero byte")
	}
	text, err := libc.CString(sql)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(f.tls, text)
	var first uintptr
	for from := text; libc.GoBytes(from, 1)[0] != 0; {
		at, tail, err := f.compile(from)
		if err == nil && at != 0 && first != 0 {
			lib.Xsqlite3_finalize(f.tls, at)
			err = errTwoStatements
		} else if err != nil && first != 0 {
			err = errTwoStatements
		}
		if err != nil {
			lib.Xsqlite3_finalize(f.tls, first)
			return nil, err
		}
		if at != 0 {
			first = at
		}
		from = tail
	}
	if first == 0 {
		return nil, errNoStatement
	}
	f.narrow(first)
	return &sqliteStatement{f, first, int(lib.Xsqlite3_column_count(f.tls, first))}, nil
}

// narrow bounds the memory of a statement, which is Ken's own. A statement is a
// program with registers, and each may hold a value of the longest length: the
// more registers there are, the shorter it must be. The length also bounds how
// long the steps take between two places where SQLite can be interrupted.
func (f *sqliteFile) narrow(statement uintptr) {
	registers := int64(libc.AtomicLoadPInt32(statement + unsafe.Offsetof(lib.TVdbe{}.FnMem)))
	steps := int64(libc.AtomicLoadPInt32(statement + unsafe.Offsetof(lib.TVdbe{}.FnOp)))
	f.longest = min(sqliteLongestValue, sqliteMostValues/max(1, registers), sqliteMostWork/max(1, steps))
	lib.Xsqlite3_limit(f.tls, f.db, lib.SQLITE_LIMIT_LENGTH, int32(f.longest))
}

func (f *sqliteFile) compile(text uintptr) (at, tail uintptr, err error) {
	room, err := libc.CString("1234567812345678") // for two pointers
	if err != nil {
		return 0, 0, err
	}
	defer libc.Xfree(f.tls, room)
	second := room + unsafe.Sizeof(room)
	if rc := lib.Xsqlite3_prepare_v2(f.tls, f.db, text, -1, room, second); rc != lib.SQLITE_OK {
		return 0, 0, f.fault(rc)
	}
	return libc.AtomicLoadPUintptr(room), libc.AtomicLoadPUintptr(second), nil
}

func (s *sqliteStatement) close() { lib.Xsqlite3_finalize(s.file.tls, s.at) }

func (s *sqliteStatement) columns() []string {
	out := make([]string, s.n)
	for i := range out {
		out[i] = strings.ToValidUTF8(libc.GoString(lib.Xsqlite3_column_name(s.file.tls, s.at, int32(i))), "\uFFFD")
	}
	return out
}

// bind sets the values of the parameters, in their order.
func (s *sqliteStatement) bind(values []any) error {
	tls := s.file.tls
	if want := int(lib.Xsqlite3_bind_parameter_count(tls, s.at)); want != len(values) {
		return wrongCount(want, len(values))
	}
	for i, v := range values {
		n, rc := int32(i+1), int32(lib.SQLITE_OK)
		switch v := v.(type) {
		case nil:
			rc = lib.Xsqlite3_bind_null(tls, s.at, n)
		case bool:
			rc = lib.Xsqlite3_bind_int64(tls, s.at, n, map[bool]int64{true: 1}[v])
		case int64:
			rc = lib.Xsqlite3_bind_int64(tls, s.at, n, v)
		case float64:
			rc = lib.Xsqlite3_bind_double(tls, s.at, n, v)
		case string:
			rc = s.bindBytes(n, v, true)
		case []byte:
			rc = s.bindBytes(n, string(v), false)
		default:
			return fmt.Errorf("parameter %d has an unsupported type", n)
		}
		if rc != lib.SQLITE_OK {
			return s.file.fault(rc)
		}
	}
	return nil
}

func (s *sqliteStatement) bindBytes(n int32, v string, isText bool) int32 {
	tls := s.file.tls
	p, err := libc.CString(v)
	if err != nil {
		return lib.SQLITE_NOMEM
	}
	defer libc.Xfree(tls, p)
	copied := ^uintptr(0) // SQLITE_TRANSIENT
	if isText {
		return lib.Xsqlite3_bind_text(tls, s.at, n, p, int32(len(v)), copied)
	}
	return lib.Xsqlite3_bind_blob(tls, s.at, n, p, int32(len(v)), copied)
}

// step goes to the next row, and reports whether there is one.
func (s *sqliteStatement) step() (bool, error) {
	switch rc := lib.Xsqlite3_step(s.file.tls, s.at); rc {
	case lib.SQLITE_ROW:
		return true, nil
	case lib.SQLITE_DONE:
		return false, nil
	default:
		return false, s.file.fault(rc)
	}
}

// row copies the values of the current row into into, at most most bytes of each:
// nothing shows more, and a row has up to 2000 values.
func (s *sqliteStatement) row(into []any, most int) {
	tls := s.file.tls
	for i := range into {
		n := int32(i)
		switch kind := lib.Xsqlite3_column_type(tls, s.at, n); kind {
		case lib.SQLITE_INTEGER:
			into[i] = int64(lib.Xsqlite3_column_int64(tls, s.at, n))
		case lib.SQLITE_FLOAT:
			into[i] = lib.Xsqlite3_column_double(tls, s.at, n)
		case lib.SQLITE_TEXT, lib.SQLITE_BLOB:
			var p uintptr
			if kind == lib.SQLITE_TEXT {
				p = lib.Xsqlite3_column_text(tls, s.at, n)
			} else {
				p = lib.Xsqlite3_column_blob(tls, s.at, n)
			}
			whole := int(lib.Xsqlite3_column_bytes(tls, s.at, n))
			b := libc.GoBytes(p, min(whole, most))
			switch {
			case whole > most:
				into[i] = long{b, whole, kind == lib.SQLITE_TEXT}
			case kind == lib.SQLITE_TEXT:
				into[i] = string(b)
			default:
				into[i] = b
			}
		default:
			into[i] = nil
		}
	}
}

// An authorizer is asked about everything that a statement would do, while
// SQLite compiles it.
type authorizer func(tls *libc.TLS, _ uintptr, action int32, first, second, _, _ uintptr) int32

// functionPointer returns a function as the library takes callbacks. It must be
// one of the package's own, which never move.
func functionPointer(f authorizer) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// authorizeReading allows what reads and nothing else.
func authorizeReading(_ *libc.TLS, _ uintptr, action int32, first, second, _, _ uintptr) int32 {
	switch action {
	case lib.SQLITE_SELECT, lib.SQLITE_READ, lib.SQLITE_RECURSIVE:
		return lib.SQLITE_OK
	case lib.SQLITE_FUNCTION:
		if sqliteFunctionAllowed(libc.GoString(second)) {
			return lib.SQLITE_OK
		}
	case lib.SQLITE_PRAGMA:
		if sqlitePragmaAllowed(libc.GoString(first)) {
			return lib.SQLITE_OK
		}
	}
	return lib.SQLITE_DENY
}

// authorizeWriting allows reading, changing rows and changing tables.
func authorizeWriting(tls *libc.TLS, arg uintptr, action int32, first, second, third, fourth uintptr) int32 {
	switch action {
	case lib.SQLITE_INSERT, lib.SQLITE_UPDATE, lib.SQLITE_DELETE,
		lib.SQLITE_CREATE_TABLE, lib.SQLITE_CREATE_INDEX, lib.SQLITE_CREATE_VIEW, lib.SQLITE_CREATE_TRIGGER,
		lib.SQLITE_DROP_TABLE, lib.SQLITE_DROP_INDEX, lib.SQLITE_DROP_VIEW, lib.SQLITE_DROP_TRIGGER,
		lib.SQLITE_ALTER_TABLE, lib.SQLITE_REINDEX, lib.SQLITE_ANALYZE:
		return lib.SQLITE_OK
	}
	return authorizeReading(tls, arg, action, first, second, third, fourth)
}

// sqliteFunctionAllowed refuses the functions that reach out of the database.
func sqliteFunctionAllowed(name string) bool {
	switch strings.ToLower(name) {
	case "load_extension", "fts3_tokenizer", "readfile", "writefile", "edit":
		return false
	}
	return true
}

// sqlitePragmaAllowed names the pragmas that describe tables. All others may
// change something, some of them for the whole process.
func sqlitePragmaAllowed(name string) bool {
	switch strings.ToLower(name) {
	case "table_list", "table_info", "table_xinfo", "index_list", "index_info", "index_xinfo", "foreign_key_list", "collation_list":
		return true
	}
	return false
}
