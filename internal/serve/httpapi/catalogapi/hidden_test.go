package catalogapi

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ken/internal/serve/auth"
)

type request struct{ method, target, body string }

// looking are requests about the catalog, finding those that ask Find.
func looking() []request {
	out := []request{
		{"GET", "/api/v1/catalog", ""}, {"GET", "/api/v1/lint", ""}, {"GET", "/api/v1/graph", ""}, {"GET", "/api/v1/changes?after=0", ""},
		{"GET", "/api/v1/eval/cases", ""}, {"GET", "/api/v1/reviews", ""}, {"POST", "/api/v1/eval", `{}`},
	}
	for _, name := range []string{"tool:vault", "vault", "vaul", "VAULT", "tool:payroll", "tool:bonus", "tool:calendar_list", "tool:vaulting"} {
		out = append(out, request{"GET", "/api/v1/catalog/" + name, ""}, request{"GET", "/api/v1/why/" + name, ""})
	}
	for _, typed := range []string{"", "vault", "v", "va", "gold", "open the vault and count the gold", "time", "pay", "money"} {
		for _, more := range []string{"", "&available=true", "&available=false", "&category=money", "&kind=tool", "&state=active", "&limit=2"} {
			out = append(out, request{"GET", "/api/v1/search?q=" + url.QueryEscape(typed) + more, ""})
		}
	}
	return out
}

func finding() []request {
	var out []request
	for _, typed := range []string{"vault", "v", "gold", "open the vault and count the gold", "time", "pay", "money"} {
		q := url.QueryEscape(typed)
		out = append(out,
			request{"GET", "/api/v1/discover?q=" + q, ""}, request{"GET", "/api/v1/discover?minRelevance=0&q=" + q, ""},
			request{"GET", "/api/v1/discover?available=true&exclude=vault&q=" + q, ""},
			request{"POST", "/api/v1/play", `{"q":"` + typed + `"}`},
			request{"POST", "/api/v1/play", `{"q":"` + typed + `","override":{"tier1MinRelevance":0,"tier1TailRelevance":0,"tier1TopK":20},"filter":{"exclude":["tool:vault"]}}`})
	}
	return out
}

// TestHiddenIsAsAbsent: for whoever may not see it, every route answers byte
// for byte as if it did not exist.
func TestHiddenIsAsAbsent(t *testing.T) {
	t.Run("look", func(t *testing.T) { compareWithAbsent(t, office(), looking()) })
	t.Run("find", func(t *testing.T) {
		// What a visible one says of its own needs is its own text: Find takes
		// what it needs for there.
		things := office()
		for i := range things {
			if slices.Contains(things[i].RequiredTools, "vault") {
				things[i].RequiredTools = nil
			}
		}
		compareWithAbsent(t, things, append(looking(), finding()...))
	})
}

func compareWithAbsent(t *testing.T, things []thing, requests []request) {
	without := slices.DeleteFunc(slices.Clone(things), func(x thing) bool { return x.Name == "vault" })
	with, absent := newRig(t, things, nil), newRig(t, without, nil)
	took := regexp.MustCompile(`"(took_us|graph_us|embed_us|tookUS)":\d+`)
	say := func(r *rig, who auth.Identity, q request) string {
		w := r.ask(who, q.method, q.target, q.body)
		return took.ReplaceAllString(fmt.Sprint(w.Code, " ", w.Body), "")
	}
	told := 0
	for _, q := range requests {
		got, want := say(with, intern, q), say(absent, intern, q)
		if got != want {
			t.Errorf("%s with something hidden =\n%s\nwithout it =\n%s", q, got, want)
		}
		if say(with, ann, q) != got { // who may see it; else the test shows nothing
			told++
		}
		own := strings.NewReplacer(`"requiredTools":["vault"]`, "", `"it needs vault, and no`, "").Replace(got)
		if q.method == "GET" && !strings.Contains(q.target, "vault") && (strings.Contains(own, `"vault"`) || strings.Contains(own, `"tool:vault"`)) {
			t.Errorf("%s names what is hidden: %s", q, got)
		}
	}
	if told < len(requests)/3 {
		t.Errorf("of %d requests %d are answered otherwise for those who may see it", len(requests), told)
	}
}
