package discover

import (
	"os"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/find/ranking"
	"ken/internal/know/catalog"
	"ken/internal/know/embed"
	"ken/internal/know/index"
	"ken/internal/know/reader"
	"ken/internal/know/source"
	"ken/internal/testkit"
	"ken/internal/testkit/findtest"
)

// everyday reads testdata/everyday.txt: what fits, by the request.
func everyday(t *testing.T) map[string][]string {
	t.Helper()
	data := testkit.Must(os.ReadFile("testdata/everyday.txt"))(t)
	out := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		if request, fits, ok := strings.Cut(line, ":"); ok && line[0] != '#' {
			out[request] = strings.Fields(fits)
		}
	}
	return out
}

// secondReader is the second reader as package vectors has it.
type secondReader struct{ *readerModel }

type readerModel = reader.Model

func (secondReader) DocumentText(c *capability.Capability) string {
	d, ok := index.DocumentOf(c)
	if !ok {
		return ""
	}
	return d.Text()
}

// TestEveryday: of sixty requests to the starter catalog at least so many are
// answered by something that fits among the first three, or, where nothing fits, by
// nothing or by one brief that says that it may not fit.
func TestEveryday(t *testing.T) {
	eachReader(t, func(t *testing.T, w *world) {
		const least = 54
		well, requests := 0, everyday(t)
		for request, fits := range requests {
			sel := w.find(t, request, patient())
			if sel.LowConfidence && (len(sel.Briefs) != 1 || len(sel.Fulls) != 0) {
				t.Errorf("%q: low confidence shows %v and in full %v, want one brief", request, idsOf(sel.Briefs), idsOf(sel.Fulls))
			}
			shown := idsOf(sel.Briefs)
			ok := len(shown) == 0 || sel.LowConfidence
			if len(fits) > 0 {
				ok = slices.ContainsFunc(shown[:min(3, len(shown))], func(id capability.ID) bool { return slices.Contains(fits, string(id)) })
			}
			if ok {
				well++
			} else {
				t.Logf("%q: fit %.2f, low confidence %v, shows %v, want %v", request, sel.Fit, sel.LowConfidence, shown, fits)
			}
		}
		if well < least || len(requests) < 60 {
			t.Errorf("%d of %d are answered well, want at least %d of 60", well, len(requests), least)
		}
	})
}

// eachReader runs a test with the small model and with the second reader.
func eachReader(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("small model", func(t *testing.T) { test(t, everydayWorld(t, Parts{})) })
	t.Run("second reader", func(t *testing.T) {
		if !reader.Supported() {
			t.Skip("cannot here: there are no kernels for this processor")
		}
		test(t, everydayWorld(t, Parts{Embedder: secondReader{reader.Builtin()}, Local: true}))
	})
}

// everydayWorld returns the starter catalog, read by what parts have.
func everydayWorld(t *testing.T, parts Parts) *world {
	t.Helper()
	c := findtest.Catalog(t, catalog.Config{
		Sources: []capability.Source{source.Starter("starter")}, Machine: machine(), Attachment: ranking.IndexedBy(&index.Cache{Model: embed.Builtin()}),
	})
	if parts.Embedder != nil {
		testkit.OK(t, ranking.Embed(t.Context(), c, parts.Embedder))
	}
	parts.Source = c
	f := NewFinder(parts)
	return &world{f, c, f.See(c.Snapshot(), "", nil)}
}

// TestGibberish: a message of which no word is known shows nothing, or one brief
// that says that it may not fit.
func TestGibberish(t *testing.T) {
	eachReader(t, func(t *testing.T, w *world) {
		for _, message := range []string{
			"zzz qqq", "qqq zzz", "zzz", "qqq", "zzz qqq xxq", "asdf jkl", "xqzt vbnm wrtp", "blargh", "hjkl hjkl", "dfgdfg sdfsdf", "wdym", "qwertz uiopp",
			"fnord grmpf hrmpf", "ththth brbrbr", "jjjj kkkk wwww", "vvv", "qxqx zvzv", "mnbvcxz", "plokij uhygtf", "zxzx zxzx zxzx zxzx",
		} {
			if sel := w.find(t, message, patient()); len(sel.Fulls) > 0 || len(sel.Briefs) > 0 && !sel.LowConfidence {
				t.Errorf("%q: fit %.2f shows %v and in full %v, want nothing, or a brief that may not fit", message, sel.Fit, idsOf(sel.Briefs), idsOf(sel.Fulls))
			}
		}
	})
}

// TestLowConfidence: below discovery.lowConfidence the best hit alone is shown, in
// a brief that says that it may not fit, and the setting is named for the rest.
func TestLowConfidence(t *testing.T) {
	w := starter(t)
	const message = "what can you tell me about Docker and messages"
	usual := w.find(t, message, patient())
	if len(usual.Briefs) < 2 {
		t.Fatalf("%q shows %v: the test needs a message that finds several", message, idsOf(usual.Briefs))
	}
	cfg := patient()
	cfg.LowConfidence = 1
	sel := w.find(t, message, cfg)
	if !sel.LowConfidence || len(sel.Briefs) != 1 || len(sel.Fulls) != 0 || sel.Abstained() {
		t.Errorf("low confidence %v shows %v and in full %v, want one brief", sel.LowConfidence, idsOf(sel.Briefs), idsOf(sel.Fulls))
	}
	if text := sel.Briefs[0].Text; !strings.HasSuffix(text, " [may not fit]") || !slices.Contains(sel.Briefs[0].Why, "may not fit") {
		t.Errorf("the brief is %q because of %q, want it marked", text, sel.Briefs[0].Why)
	}
	if got := reason(sel, usual.Ranking[1].ID); !strings.Contains(got, "discovery.lowConfidence 1.000") {
		t.Errorf("%s is left out because %q, want the setting", usual.Ranking[1].ID, got)
	}
	if len(sel.Ranking) != len(usual.Ranking) {
		t.Errorf("the ranking has %d, without doubt %d", len(sel.Ranking), len(usual.Ranking))
	}
	cfg.MinRelevance = 0 // everything is wanted
	if sel = w.find(t, message, cfg); sel.LowConfidence || len(sel.Briefs) != len(usual.Briefs) {
		t.Errorf("without a floor low confidence is %v and shows %v", sel.LowConfidence, idsOf(sel.Briefs))
	}
	if got := w.callWith(t, ToolDiscover, `{"query":"docker messages"}`, func() Config { c := patient(); c.LowConfidence = 1; return c }()); strings.Contains(got.Text, "may not fit") {
		t.Errorf("a model that searches reads %q", got.Text)
	}
}
