package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTexts: it finds what may name a file in the arguments of another server's
// tool, in every way to write it.
func TestTexts(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, ".env"), nil, 0o600), os.Symlink(".env", filepath.Join(dir, "lnk")), os.Symlink(".", filepath.Join(dir, "way")))
	linked := filepath.Join(t.TempDir(), "workspace") // the folder itself may be a link
	must(t, os.Symlink(dir, linked))
	before := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(dir, before, before))
	var folders Folders
	for _, tt := range []struct {
		raw       string
		named     bool // .env, as a name
		mentioned bool // .env, as a word
	}{
		{`{"path":".env"}`, true, false},
		{`".env"`, true, false},
		{`{"path":"lnk"}`, true, false},
		{`{"path":"way/lnk"}`, true, false},
		{fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "lnk")), true, false},
		{`{"path":"missing/../lnk"}`, true, false}, // many programs clean a path before they open it
		{`{"path":"` + strings.Repeat("./", 3000) + `lnk"}`, true, false},
		{`{"path":"lnk/"}`, true, false},
		{`{"o":{"files":{".env":"x"}}}`, true, false},
		{`{"path":"` + strings.Repeat("./", 3000) + `.env"}`, true, false},
		{`{"path":"` + strings.Repeat(`.\\`, 3000) + `.env"}`, true, false},
		{`{"path":"a.txt\n.env"}`, true, false},
		{`{"path":".env,a.txt"}`, true, false},
		{`{"path":" .env "}`, true, false},
		{`{"path":"file:.%65nv"}`, false, false}, // not a path
		{`{"path":"file://%2e%65nv"}`, false, false},
		{`{"text":"cat .env"}`, false, true},
		{`{"text":"cat lnk"}`, false, true},
		{`{"text":"cat<.env|tee x"}`, false, true},
		{`{"text":"{\"path\":\".env\"}"}`, false, true},
		{`{"text":"cat .env #` + strings.Repeat("x", 5000) + `"}`, false, true},
		{`{"text":"environment","a.txt":[1,null,true,"b/c"]}`, false, false},
		{``, false, false},
		{`{`, false, false},
		{`null`, false, false},
	} {
		for i, from := range []string{dir, linked, dir, linked} {
			var f Facts
			raw := []byte(strings.ReplaceAll(tt.raw, dir, from))
			if i < 2 {
				f.Texts(raw, from)
			} else {
				folders.Texts(&f, raw, from)
			}
			if slices.Contains(f.Named, ".env") != tt.named || slices.Contains(f.Mentioned, ".env") != tt.mentioned || f.Unseen != "" {
				t.Errorf("Texts(%.80s) in %s = %.200q, %.200q, %q", tt.raw, from, f.Named, f.Mentioned, f.Unseen)
			}
		}
	}
	var f Facts
	f.Texts([]byte(`{"path":"file:///home/x/.ssh/id%5Frsa"}`))
	if !slices.Contains(f.Named, "/home/x/.ssh/id_rsa") {
		t.Errorf("Texts of an address = %q", f.Named)
	}
	// In a document only words that are written like files count.
	f = Facts{}
	f.Texts([]byte(`{"content":"if (item.key) {\n read(\"conf/server.key\") }"}`))
	if slices.Contains(f.Mentioned, "item.key") || !slices.Contains(f.Mentioned, "conf/server.key") {
		t.Errorf("Texts of a document = %q", f.Mentioned)
	}
}

// TestTextsLimit: a call with too many texts says so. Before the limit, none is
// left out.
func TestTextsLimit(t *testing.T) {
	list := func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%q,", fmt.Sprint("a", i))
		}
		return []byte("[" + b.String() + `".env"]`)
	}
	var f Facts
	if f.Texts(list(2_000)); f.Unseen != "" || !slices.Contains(f.Named, ".env") {
		t.Errorf("2,000: Unseen = %q, %d names", f.Unseen, len(f.Named))
	}
	f = Facts{}
	if f.Texts(list(mostNames)); !strings.Contains(f.Unseen, "more than 50000 texts") {
		t.Errorf("%d: Unseen = %q", mostNames, f.Unseen)
	}
}

// FuzzNextText: the texts in JSON are those that encoding/json decodes.
func FuzzNextText(f *testing.F) {
	for _, raw := range []string{`{"a":"b","c":["d",{"e\u0066":1.5}],"\"":"\\"}`, `"x"`, `[]`, `{"a":"\ud800","b":"` + "\xff" + `"}`, `"\\\""`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		var want, got []string
		for dec := json.NewDecoder(bytes.NewReader(raw)); ; {
			tok, err := dec.Token()
			if err != nil {
				break
			}
			if text, ok := tok.(string); ok {
				want = append(want, text)
			}
		}
		for rest := raw; ; {
			text, after, ok := nextText(rest)
			if !ok {
				break
			}
			got, rest = append(got, text), after
		}
		if !slices.Equal(got, want) {
			t.Errorf("texts of %q = %q, want %q", raw, got, want)
		}
	})
}
