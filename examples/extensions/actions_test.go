package extensions_test

import (
	"os"
	"path/filepath"
	"testing"
)

// repository makes a git repository with two commits and a change.
func (b *bench) repository(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tool(t, dir, "git", "init", "--quiet", "--initial-branch=main")
	write("README.md", "first line\n")
	tool(t, dir, "git", "add", ".")
	tool(t, dir, "git", "commit", "--quiet", "--message=Begin")
	write("README.md", "first line\nsecond TODO\n")
	tool(t, dir, "git", "commit", "--quiet", "--all", "--message=Say more")
	tool(t, dir, "git", "tag", "v1")
	write("README.md", "first line\nsecond TODO\nthird\n")
	write("new.txt", "new\n")
}

func TestGit(t *testing.T) {
	b := newBench(t, "tools.git")
	b.repository(t, b.work(t, "project"))
	b.try(t, []try{
		{line: "/git status --repo project", want: []string{"## main", " M README.md", "?? new.txt"}},
		{line: "/git status README.md --repo project", want: []string{" M README.md"}, not: "new.txt"},
		{line: "/git status :!new.txt --repo project", want: []string{" M README.md"}, not: "new.txt"},
		{line: "/git log --repo project", want: []string{"Say more", "Begin", "Author: Ada <ada@example.org>", "2026-01-02"}},
		{line: "/git log --repo project --count 1 --format oneline", want: []string{"Say more"}, not: "Begin"},
		{line: "/git log v1 README.md --message Begin --author Ada --since 2026-01-01 --repo project", want: []string{"Begin"}, not: "Say more"},
		{line: `/git log --since "in no year" --until 2020-01-01 --repo project`, not: "Begin"},
		{line: "/git diff --repo project", want: []string{"+third"}, not: "+second"},
		{line: "/git diff HEAD~1 HEAD --repo project --context 0", want: []string{"+second TODO"}, not: "third"},
		{line: "/git log --repo project --reverse --count 1 --format oneline", want: []string{"Say more"}}, // git counts first
		{line: "/git log --repo project --merges", not: "Begin"},
		{line: "/git log --repo project --reverse=false --format oneline", want: []string{"Begin"}},
		{line: "/git diff --stat --repo project", want: []string{"README.md | 1 +"}, not: "third"},
		{line: "/git diff --cached --repo project", not: "third"},
		{line: `/git search "todo" --ignore-case --repo project`, want: []string{"README.md:2:second TODO"}},
		{line: "/git diff HEAD --path new.txt --repo project", not: "third"},
		{line: "/git show --repo project", want: []string{"Say more", "+second TODO"}},
		{line: "/git show HEAD~1:README.md --repo project", want: []string{"first line\n"}, not: "second"},
		{line: "/git blame README.md --repo project", want: []string{"Ada 2026-01-02 1) first line", "2) second TODO"}},
		{line: "/git blame README.md --lines 2,+1 --repo project", want: []string{"second"}, not: "first"},
		{line: `/git search "TODO|FIXME" --repo project`, want: []string{"README.md:2:second TODO"}},
		{line: `/git search -- -no-such --repo project`, failed: true}, // these are paths now, and there are none
		{line: `/git search --repo project -- -no-such`},               // nothing found is no failure
		{line: "/git branches --repo project", want: []string{"2026-01-02 main", "v1", "Say more"}},
		{line: "/git log no-such-branch --repo project", failed: true, want: []string{"no-such-branch"}},
		{line: "/git status --repo nowhere", failed: true},
	})
}

// TestGitGranted looks at a repository outside the work directory.
func TestGitGranted(t *testing.T) {
	b := newBench(t, "tools.git")
	dir := filepath.Join(b.dir, "elsewhere")
	b.repository(t, dir)
	b.try(t, []try{{line: "/git log --repo " + dir, failed: true, not: "Begin"}})
	b.grant.Read = []string{dir}
	b.try(t, []try{
		{line: "/git log --repo " + dir, want: []string{"Begin"}},
		{line: "/git status --repo " + dir, want: []string{" M README.md"}},
	})
}

func TestJQ(t *testing.T) {
	b := newBench(t, "tools.jq")
	b.write(t, map[string]string{
		"data.json":   `{"items":[{"name":"pen","price":2},{"name":"a \"b\"","price":12}],"none":null}`,
		"people.json": `[{"name":"Ada","age":36},{"age":85,"name":"Grace, Admiral"}]`,
		"mixed.json":  `[{"a":1},{"b":2}]`,
		"bad.json":    "{\"a\": 1,\n\"b\" 2}\n",
		"empty.json":  `[]`,
		"-x.json":     `1`,
	})
	b.try(t, []try{
		{line: "/jq query .items[0].name data.json", want: []string{"\"pen\"\n"}},
		{line: "/jq .items[0].name data.json", want: []string{"\"pen\"\n"}},
		{line: "/jq query '.items[] | select(.price > 10) | .name' data.json --raw", want: []string{"a \"b\"\n"}, not: "pen"},
		{line: "/jq query . data.json people.json --compact", want: []string{`{"items":[{"name":"pen"`, `[{"name":"Ada","age":36}`}},
		{line: "/jq query .a[ data.json", failed: true, want: []string{"syntax error"}},
		{line: "/jq paths data.json", want: []string{`[["items",0,"name"],"pen"]`, `[["none"],null]`}},
		{line: "/jq pretty people.json --indent 1", want: []string{"[\n {\n  \"age\": 36,\n  \"name\": \"Ada\"\n }"}},
		{line: "/jq csv people.json", want: []string{"\"age\",\"name\"\n36,\"Ada\"\n85,\"Grace, Admiral\"\n"}},
		{line: "/jq csv mixed.json", failed: true, want: []string{"do not all have the same keys"}},
		{line: "/jq csv empty.json", not: "error"},
		{line: "/jq rows '.items[] | [.price, .name]' data.json", want: []string{"2,\"pen\"\n12,\"a \"\"b\"\"\"\n"}},
		{line: "/jq check data.json people.json", want: []string{"valid JSON, number of values 2"}},
		{line: "/jq check bad.json", failed: true, want: []string{"line 2"}},
		{line: "/jq query . ./-x.json", want: []string{"1\n"}},
		{line: "/jq query .", refused: "files is missing"},
	})
}

func TestSQLite(t *testing.T) {
	b := newBench(t, "tools.sqlite")
	b.write(t, map[string]string{"prices.csv": "name,price\npen,2\n\"a, b\",12\n"})
	b.try(t, []try{
		{line: "/sqlite import shop.db prices.csv price"},
		{line: "/sqlite tables shop.db", want: []string{"table", "price"}},
		{line: "/sqlite schema shop.db", want: []string{"CREATE TABLE", "price"}},
		{line: `/sqlite query shop.db "select name from price where price + 0 > 10"`, want: []string{"a, b"}, not: "pen"},
		{line: `/sqlite query shop.db "select name from price" --format json`, want: []string{`[{"name":"pen"}`}},
		{line: "/sqlite export shop.db price", want: []string{"name,price", "\"a, b\",12"}},
		{line: `/sqlite query shop.db "delete from price"`, failed: true, want: []string{"readonly database"}},
		{line: `/sqlite change shop.db "update price set price = 3 where name = 'pen'; select changes() as n"`, want: []string{"n", "1"}},
		{line: `/sqlite change fresh.db "create table t(a); insert into t values (41)"`},
		{line: `/sqlite query fresh.db "select a + 1 from t"`, want: []string{"42"}},
		{line: `/sqlite query nowhere.db "select 1 from t"`, failed: true},
		{line: `/sqlite query shop.db "selec"`, failed: true, want: []string{"syntax error"}},
		{line: "/sqlite query shop.db", refused: "sql is missing"},
	})
}

func TestArchive(t *testing.T) {
	b := newBench(t, "tools.archive")
	b.write(t, map[string]string{"notes/today.txt": "today\n", "notes/-x": "dash\n", "other.txt": "other\n"})
	b.try(t, []try{
		{line: "/archive create all.tar.gz notes other.txt", want: []string{"notes/today.txt"}},
		{line: "/archive list all.tar.gz", want: []string{"notes/today.txt", "notes/-x", "other.txt"}},
		{line: "/archive extract all.tar.gz out", want: []string{"notes/today.txt"}},
		{line: "/archive extract all.tar.gz out", failed: true, want: []string{"File exists"}}, // nothing is replaced
		{line: "/archive extract all.tar.gz a/part notes/today.txt", want: []string{"notes/today.txt"}, not: "other.txt"},
		{line: "/archive create-zip all.zip notes", want: []string{"notes/today.txt"}},
		{line: "/archive list-zip all.zip", want: []string{"notes/today.txt", "notes/-x"}},
		{line: "/archive extract-zip all.zip zipped", want: []string{"zipped/notes/today.txt"}},
		{line: "/archive extract-zip all.zip zipped", not: "today.txt"},
		{line: "/archive create other.txt notes", refused: "archive"}, // would replace other.txt
		{line: "/archive list nowhere.tar", failed: true},
	})
	for name, want := range map[string]string{"out/notes/today.txt": "today\n", "a/part/notes/today.txt": "today\n", "zipped/notes/-x": "dash\n", "other.txt": "other\n"} {
		if got, err := os.ReadFile(b.work(t, name)); err != nil || string(got) != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestText(t *testing.T) {
	b := newBench(t, "tools.text")
	b.write(t, map[string]string{
		"notes/a.txt": "one a.b\ntwo aXb\nONE\n", "sizes.txt": "10\n9\n9\n", "new.txt": "10\n9\n8\n", "t.tsv": "1\t2\t3\n", "c.csv": "x,y\n",
	})
	b.try(t, []try{
		{line: "/text find a.b notes", want: []string{"notes/a.txt:1:one a.b"}, not: "aXb"},
		{line: "/text find one notes --ignore-case --most 1", want: []string{":1:one"}, not: "ONE"},
		{line: "/text find nothing-like-it notes"}, // nothing found is no failure
		{line: "/text find -- -e notes"},
		{line: "/text find x nowhere", failed: true},
		{line: `/text match "^t.o|^ONE" notes --context 0`, want: []string{":2:two", ":3:ONE"}, not: "one a.b"},
		{line: "/text count sizes.txt", want: []string{"3", "7", "sizes.txt"}},
		{line: "/text compare sizes.txt new.txt", want: []string{"-9\n", "+8\n"}},
		{line: "/text compare sizes.txt sizes.txt", not: "9"},
		{line: "/text sort sizes.txt", want: []string{"10\n9\n9\n"}},
		{line: "/text sort sizes.txt --by numeric", want: []string{"9\n9\n10\n"}},
		{line: "/text sort sizes.txt --by numeric --reverse --key 1", want: []string{"10\n9\n9\n"}},
		{line: "/text sort sizes.txt --unique --reverse", want: []string{"9\n10\n"}},
		{line: "/text repeated sizes.txt", want: []string{"1 10", "2 9"}},
		{line: "/text first sizes.txt --lines 1", want: []string{"10\n"}, not: "9"},
		{line: "/text last sizes.txt --lines 2", want: []string{"9\n9\n"}, not: "10"},
		{line: "/text columns t.tsv 1,3", want: []string{"1\t3\n"}},
		{line: "/text columns c.csv 2 --separator ,", want: []string{"y\n"}},
	})
}
