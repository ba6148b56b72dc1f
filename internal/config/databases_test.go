package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ken/capability"
)

// TestDatabases reads every key of a database.
func TestDatabases(t *testing.T) {
	places, home, _ := at(t)
	file := filepath.Join(places.Home, "ken.yaml")
	write(t, file, `databases:
  shop: {engine: sqlite, path: ~/shop.db, access: write, description: What we sell., rows: 50, bytes: 64KiB, timeout: 5s}
  crm:
    engine: postgres
    url: postgres://reader@db.example.org:5433/crm?sslmode=require
    password: secret:CRM_PASSWORD
`)
	got, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []Database{
		{
			Name: "crm", Engine: EnginePostgres, URL: "postgres://reader@db.example.org:5433/crm?sslmode=require", Password: "secret:CRM_PASSWORD",
			Origin: capability.Origin{Path: file, Line: 3},
		},
		{
			Name: "shop", Engine: EngineSQLite, Path: filepath.Join(home, "shop.db"), Access: AccessWrite, Description: "What we sell.",
			Rows: 50, Bytes: 64 << 10, Timeout: 5 * time.Second, Origin: capability.Origin{Path: file, Line: 2},
		},
	}
	if !reflect.DeepEqual(got.Databases, want) {
		t.Errorf("Databases = %+v\nwant %+v", got.Databases, want)
	}
	shown, origin, err := got.Explain("databases")
	if err != nil || origin != file+":1" || strings.Contains(shown, "0B") || !strings.Contains(shown, "crm: {engine: postgres, url: \"postgres://reader@db.example.org:5433/crm?sslmode=require\", password: secret:CRM_PASSWORD}") {
		t.Errorf("Explain = %s, %s, %v", shown, origin, err)
	}
}

// TestDatabasesRefused: what is wrong with a database is told without its
// password, and a project names none.
func TestDatabasesRefused(t *testing.T) {
	places, _, _ := at(t)
	own, project := filepath.Join(places.Home, "ken.yaml"), filepath.Join(places.Project, "ken.yaml")
	for _, test := range []struct{ own, project, want string }{
		{"{a: {engine: sqlite, path: a.db}}", "", ""},
		{"{a: {path: a.db}}", "", "does not say its engine"},
		{"{a: {engine: oracle, path: a.db}}", "", "oracle"},
		{"{a: {engine: sqlite}}", "", "names no file"},
		{"{a.b: {engine: sqlite, path: a.db}}", "", "has a dot"},
		{"{a/b: {engine: sqlite, path: a.db}}", "", "is not the name of a database"},
		{"{a: {engine: sqlite, path: a.db, url: postgres://u@h/d}}", "", "words about a server"},
		{"{a: {engine: sqlite, path: a.db, acess: write}}", "", "did you mean databases.a.access?"},
		{"{a: {engine: sqlite, path: a.db, access: all}}", "", "all"},
		{"{a: {engine: postgres}}", "", "names no server"},
		{"{a: {engine: postgres, url: postgres://u@h/d, path: x}}", "", "words about a file"},
		{"{a: {engine: postgres, url: mysql://u@h/d}}", "", "is that of another engine"},
		{"{a: {engine: mysql, url: postgres://u@h/d}}", "", "is that of another engine"},
		{"{a: {engine: mysql, url: mysql://u@h/d, access: write}}", "", "only reads"},
		{"{a: {engine: mysql, url: mysql://u@h/d}}", "", ""},
		{"{a: {engine: postgres, url: http://u@h/d}}", "", "is not an address of PostgreSQL"},
		{"{a: {engine: postgres, url: postgres://u:hunter2@h/d}}", "", "has a password in it"},
		{"{a: {engine: postgres, url: 'postgres://u@h/d?password=hunter2'}}", "", "is not known"},
		{"{a: {engine: postgres, url: 'postgres://u@h/d?options=-cx'}}", "", "is not known"},
		{"{a: {engine: postgres, url: postgres://h/d}}", "", "names no user"},
		{"{a: {engine: postgres, url: postgres://u@h}}", "", "names no database"},
		{"{a: {engine: postgres, url: postgres:///d}}", "", "names no host"},
		{"{a: {engine: postgres, url: postgres://u@h/d, password: hunter2}}", "", "is not a reference to a secret"},
		{"{}", "{a: {engine: sqlite, path: a.db}}", "may narrow but not widen"},
		{"{a: {engine: sqlite, path: /a.db}}", "{a: {engine: sqlite, path: /a.db, access: write}}", "may narrow but not widen"},
		{"{a: {engine: sqlite, path: /a.db}}", "{a: {engine: sqlite, path: /etc/b.db}}", "may narrow but not widen"},
	} {
		write(t, own, "databases: "+test.own+"\n")
		write(t, project, "")
		if test.project != "" {
			write(t, project, "databases: "+test.project+"\n")
		}
		_, err := Load(places, "")
		switch {
		case test.want == "" && err != nil:
			t.Errorf("Load(%s, %s) = %v, want none", test.own, test.project, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("Load(%s, %s) = %v, want %q", test.own, test.project, err, test.want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("Load(%s) shows a password: %v", test.own, err)
		}
	}
}
