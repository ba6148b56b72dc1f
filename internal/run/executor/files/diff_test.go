package files

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/executortest"
)

func TestApply(t *testing.T) {
	const file = "one\ntwo\nthree\ntwo\nfive\n"
	tests := []struct {
		name, file, diff, want string
		err                    string // instead of want
	}{
		{name: "unified", file: file, diff: "--- a/f\n+++ b/f\n@@ -2,2 +2,2 @@\n two\n-three\n+3\n", want: "one\ntwo\n3\ntwo\nfive\n"},
		{name: "git's", file: file, diff: "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -5 +5,2 @@ func x()\n five\n+six\n", want: file + "six\n"},
		{name: "no header, no numbers", file: file, diff: "@@\n-three\n+3\n", want: "one\ntwo\n3\ntwo\nfive\n"},
		{name: "two hunks", file: file, diff: "@@ -1 +1 @@\n-one\n+1\n@@ -5 +5 @@\n-five\n+5\n", want: "1\ntwo\nthree\ntwo\n5\n"},
		{name: "insertion", file: file, diff: "@@ -1,0 +2 @@\n+new\n", want: "one\nnew\ntwo\nthree\ntwo\nfive\n"},
		{name: "insertion in front", file: file, diff: "@@ -0,0 +1 @@\n+new\n", want: "new\n" + file},
		{name: "the line decides", file: file, diff: "@@ -4 +4 @@\n-two\n+2\n", want: "one\ntwo\nthree\n2\nfive\n"},
		{name: "wrong line, one place", file: file, diff: "@@ -1 +1 @@\n-three\n+3\n", want: "one\ntwo\n3\ntwo\nfive\n"},
		{name: "blank context lost", file: "a\n\nb\n", diff: "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", want: "a\n\nc\n"},
		{name: "a removed line like a header", file: "-- x\ny\n", diff: "@@ -1,2 +1,1 @@\n--- x\n y\n", want: "y\n"},
		{name: "end without break", file: "a\nb", diff: "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n", want: "a\nc\n"},
		{name: "end loses its break", file: "a\nb\n", diff: "@@ -2 +2 @@\n-b\n+c\n\\ No newline at end of file\n", want: "a\nc"},
		{name: "end stays open", file: "a\nb", diff: "@@ -1 +1 @@\n-a\n+c\n", want: "c\nb"},
		{name: "CRLF kept", file: "a\r\nb\r\n", diff: "@@ -1 +1,2 @@\n-a\n+c\n+d\n", want: "c\r\nd\r\nb\r\n"},
		{name: "BOM kept", file: "\uFEFFa\n", diff: "@@ -1 +1 @@\n-a\n+b\n", want: "\uFEFFb\n"},
		{name: "all gone", file: "a\n", diff: "@@ -1 +0,0 @@\n-a\n", want: ""},
		{name: "block", file: file, diff: "<<<<<<< SEARCH\nthree\n=======\n3\nmore\n>>>>>>> REPLACE\n", want: "one\ntwo\n3\nmore\ntwo\nfive\n"},
		{name: "block with a line", file: file, diff: "<<<<<<< SEARCH\n:start_line:4\n-------\ntwo\n=======\n2\n>>>>>>> REPLACE", want: "one\ntwo\nthree\n2\nfive\n"},
		{name: "blocks in any order", file: file, diff: "<<<<<<< SEARCH\nfive\n=======\n>>>>>>> REPLACE\n\n<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE\n", want: "1\ntwo\nthree\ntwo\n"},
		{name: "block with marks in it", file: "<<<<<<< SEARCH\na\n", diff: "<<<<<<< SEARCH\n\\<<<<<<< SEARCH\n=======\n\\=======\n>>>>>>> REPLACE\n", want: "=======\na\n"},
		{name: "edits see the file as it was", file: "a\nb\n", diff: "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE\n", want: "b\nc\n"},

		{name: "not there", file: file, diff: "@@ -3 +3 @@\n-drei\n+3\n", err: `edit 1 (line 1 of the diff) does not apply: line 3 of the file is "three", but the diff expects "drei"`},
		{name: "second of two", file: file, diff: "@@ -1 +1 @@\n-one\n+1\n@@ -5,2 +5 @@\n five\n-six\n", err: `edit 2 (line 4 of the diff) does not apply: expects "six" at line 6, but the file has 5 lines`},
		{name: "in two places", file: file, diff: "<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n", err: "in 2 places, at lines 2, 4"},
		{name: "overlap", file: file, diff: "@@ -1,2 +1,1 @@\n one\n-two\n@@ -2,2 +2,1 @@\n two\n-three\n", err: "edits 1 and 2 change the same lines"},
		{name: "blanks count", file: "a b\n", diff: "@@\n-a  b\n+c\n", err: "does not apply"},
		{name: "insertion too far", file: "a\n", diff: "@@ -7,0 +8 @@\n+b\n", err: "inserts after line 7"},
		{name: "end not open", file: "a\n", diff: "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", err: "expects no newline"},
		{name: "nothing to search", file: "a\n", diff: "<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n", err: "no place to insert"},

		{name: "counts", file: file, diff: "@@ -1,3 +1,3 @@\n one\n-two\n+2\n", err: "line 1 of the diff: the hunk header announces 3 old and 3 new lines, but the hunk has 2 and 2"},
		{name: "odd line", file: file, diff: "@@ -1,2 +1,2 @@\n one\n*two\n", err: "line 3 of the diff: a line of a hunk begins"},
		{name: "odd head", file: file, diff: "@@ -1,x +1 @@\n one\n", err: "line 1 of the diff"},
		{name: "prose", file: file, diff: "Here is the diff:\n@@ -1 +1 @@\n-one\n+1\n", err: "line 1 of the diff: this is neither"},
		{name: "rename", file: file, diff: "diff --git a/f b/g\nrename from f\n", err: "line 2 of the diff: renames"},
		{name: "names differ", file: file, diff: "--- a/f\n+++ b/g\n@@ -1 +1 @@\n-one\n+1\n", err: "line 2 of the diff: the two names differ"},
		{name: "open block", file: file, diff: "\n<<<<<<< SEARCH\none\n=======\n1\n", err: "line 2 of the diff: the block that begins here has no >>>>>>> REPLACE"},
		{name: "marks out of order", file: file, diff: "<<<<<<< SEARCH\none\n>>>>>>> REPLACE\n", err: "line 3 of the diff"},
		{name: "only context", file: file, diff: "@@\n", err: "no old lines"},
		{name: "nothing", file: file, diff: "", err: "no change"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			patches, err := parseDiff(tt.diff)
			var got []byte
			if err == nil {
				got, _, err = apply([]byte(tt.file), patches[0].edits)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("apply = %q, %v, want the error %q", got, err, tt.err)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("apply = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestApplyDiff: several files, all or nothing, made and deleted.
func TestApplyDiff(t *testing.T) {
	e, ws := open(t, map[string]string{"a": "one\n", "b": "two\n", "c": "gone\n"}, nil)
	bad := "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-nope\n+2\n"
	_, text, r := invoke(t, e, call("apply_diff", "diff", bad))
	if !r.Failed || !strings.Contains(text, `b: edit 1 (line 8 of the diff) does not apply: line 1 of the file is "two"`) || !strings.Contains(text, "Nothing was changed") {
		t.Errorf("a diff that fits in part gave %q", text)
	}
	wantFile(t, ws, "a", "one\n")
	good := "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n--- /dev/null\n+++ b/new/d\n@@ -0,0 +1,2 @@\n+x\n+y\n--- a/c\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
	invoke(t, e, call("apply_diff", "diff", good))
	wantFile(t, ws, "a", "1\n")
	wantFile(t, ws, "new/d", "x\ny\n")
	if _, err := os.Stat(ws + "/c"); !os.IsNotExist(err) {
		t.Errorf("c is still there: %v", err)
	}
	executortest.Refused(t, e, call("apply_diff", "path", "b", "diff", "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"), capability.Invalid, "not the file")
	executortest.Refused(t, e, call("apply_diff", "diff", "--- a/a\n+++ b/a\n@@\n-1\n+2\n--- a/./a\n+++ b/./a\n@@\n-1\n+2\n"), capability.Invalid, "twice")
	executortest.Refused(t, e, call("apply_diff", "diff", "--- a/../x\n+++ b/../x\n@@\n-1\n+2\n"), capability.Denied, "traversal")
	executortest.Refused(t, e, call("apply_diff", "diff", "--- /etc/passwd\n+++ /etc/passwd\n@@\n-1\n+2\n"), capability.Denied, "outside")
}

// FuzzDiff: no diff breaks the parser, and what applies says what it changed.
func FuzzDiff(f *testing.F) {
	for _, s := range []string{"@@ -1 +1 @@\n-a\n+b\n", "--- a/x\n+++ b/x\n@@\n-a\n", "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file", "@@ -999999999,1 +1 @@\n-a\n"} {
		f.Add(s, "a\nb\n")
	}
	f.Fuzz(func(t *testing.T, diff, file string) {
		patches, err := parseDiff(diff)
		if err != nil {
			return
		}
		for _, p := range patches {
			out, _, err := apply([]byte(file), p.edits)
			if err != nil {
				continue
			}
			added := 0
			for _, e := range p.edits {
				for _, l := range e.new {
					added += len(l) + 2
				}
			}
			if len(out) > len(file)+added+5 {
				t.Fatalf("apply(%q, %q) grew to %q", file, diff, out)
			}
			if len(p.edits) == 0 && !bytes.Equal(out, []byte(file)) {
				t.Fatalf("no edit changed %q to %q", file, out)
			}
		}
	})
}
