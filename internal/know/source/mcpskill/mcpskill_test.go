package mcpskill

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func entry(t *testing.T, text string) *Entry {
	t.Helper()
	var e Entry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	return &e
}

// TestBad: entries that break a rule of the specification are not used, and the
// reason says which.
func TestBad(t *testing.T) {
	page := "---\nname: tour\ndescription: A tour.\n---\nGo.\n"
	good := fmt.Sprintf(`{"uri":"skill://acme/tour/SKILL.md","frontmatter":{"name":"tour","description":"A tour."},"resources":[{"uri":"skill://acme/tour/SKILL.md","digest":%q,"size":%d}]}`,
		Digest([]byte(page)), len(page))
	e := entry(t, good)
	if why := e.Bad(); why != "" {
		t.Fatalf("Bad() = %q for a good entry", why)
	}
	if err := e.Verify(e.URI, []byte(page)); err != nil {
		t.Errorf("Verify() = %v", err)
	}
	for change, want := range map[string]string{
		`"resources":[=>"resources":"dynamic","x":[`:                                 "dynamic",
		`"resources":[=>"x":[`:                                                       "neither a list",
		`"size":=>"length":`:                                                         "no size",
		`sha256:=>md5:`:                                                              "no SHA-256",
		`"name":"tour"=>"name":"other"`:                                              "another",
		`"description":"A tour."=>"x":1`:                                             "no name and description",
		`skill://acme/tour/SKILL.md"=>skill://acme/Tour/SKILL.md"`:                   "lowercase",
		`[{"uri":"skill://acme/tour/=>[{"uri":"skill://acme/`:                        "outside",
		`[{"uri":"skill://acme/tour/SKILL=>[{"uri":"skill://acme/tour/x/../../SKILL`: "outside",
		`[{"uri":"skill://acme/tour/SKILL=>[{"uri":"skill://acme/tour/MORE`:          "lacks SKILL.md",
		`"size":=>"size":1`:                                                          "",
		`"size":=>"size":99999999`:                                                   "too large",
		`{"uri":=>{"uri":[],"was":`:                                                  "cannot be read",
	} {
		from, to, _ := strings.Cut(change, "=>")
		text := strings.Replace(good, from, to, 1)
		if from == `skill://acme/tour/SKILL.md"` {
			text = strings.ReplaceAll(good, from, to)
		}
		if why := entry(t, text).Bad(); want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("%s: Bad() = %q, want %q", change, why, want)
		}
	}
}

// TestVerify: size, digest, frontmatter and the list of files decide.
func TestVerify(t *testing.T) {
	page := "---\nname: tour\ndescription: A tour.\nmetadata: {version: 2, tags: [a, b]}\n---\nGo.\n"
	e := &Entry{URI: "skill://tour/SKILL.md", Frontmatter: json.RawMessage(`{"description":"A tour.","name":"tour","metadata":{"tags":["a","b"],"version":2}}`)}
	e.Resources = []File{{URI: e.URI, Digest: Digest([]byte(page)), Size: int64(len(page))}}
	if err := e.Verify(e.URI, []byte(page)); err != nil {
		t.Fatalf("Verify() = %v", err)
	}
	for name, err := range map[string]error{
		"bytes":    e.Verify(e.URI, []byte(page+"x")),
		"digest":   e.Verify(e.URI, []byte(strings.Replace(page, "Go.", "No.", 1))),
		"not a fi": e.Verify("skill://tour/more.md", nil),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Verify() = %v, want %q in it", err, name)
		}
	}
	other := *e
	other.Frontmatter = json.RawMessage(`{"description":"Another tour.","name":"tour","metadata":{"tags":["a","b"],"version":2}}`)
	if err := other.Verify(e.URI, []byte(page)); err == nil || !strings.Contains(err.Error(), `"description"`) {
		t.Errorf("Verify() = %v, want the member that differs", err)
	}
	if a, b := e.Sum(), other.Sum(); a == b {
		t.Error("two entries have one sum")
	}
}
