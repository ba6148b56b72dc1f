package discover

import (
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
)

// everyday are requests as people make them of the starter catalog, each with
// what fits; none where nothing does. Nothing was fitted to them.
var everyday = []struct {
	request string
	fits    []capability.ID
}{
	{"how full is my hard drive", []capability.ID{"tool:disk-usage"}},
	{"which day of the week is it today", []capability.ID{"tool:date-time"}},
	{"show me the last ten commits", []capability.ID{"tool:git-log", "skill:git"}},
	{"do I have uncommitted changes", []capability.ID{"tool:git-status", "command:review", "command:commit"}},
	{"where is the file called settings.json", []capability.ID{"tool:find-files"}},
	{"which files mention the word timeout", []capability.ID{"tool:search_files"}},
	{"what is the difference between old.txt and new.txt", []capability.ID{"tool:diff-files"}},
	{"is this JSON valid", []capability.ID{"tool:json-format", "tool:analyze_schema"}},
	{"what is in backup.tar.gz", []capability.ID{"tool:list-archive"}},
	{"how many words does my essay have", []capability.ID{"tool:word-count"}},
	{"what is eating all my memory", []capability.ID{"tool:process-list"}},
	{"which version of Linux do I run", []capability.ID{"tool:system-info"}},
	{"what IP address does example.com have", []capability.ID{"tool:dns-lookup"}},
	{"check the checksum of the image I downloaded", []capability.ID{"tool:hash-file"}},
	{"write my colleagues on Slack that the build is green", []capability.ID{"channel:slack"}},
	{"send an email to Anna about lunch", []capability.ID{"channel:email"}},
	{"text my brother that I am late", []capability.ID{"channel:sms", "channel:whatsapp", "channel:signal", "channel:telegram"}},
	{"look for news about the election", []capability.ID{"tool:news-search"}},
	{"google the opening hours of the city museum", []capability.ID{"tool:web-search"}},
	{"put this paragraph into French", []capability.ID{"skill:translation"}},
	{"give me the gist of this long report", []capability.ID{"skill:summarizer"}},
	{"my container keeps restarting", []capability.ID{"skill:docker-troubleshooting"}},
	{"make a regular expression for phone numbers", []capability.ID{"skill:regex-builder"}},
	{"my query takes ten seconds, make it faster", []capability.ID{"skill:sql-query"}},
	{"remove duplicate rows from this spreadsheet", []capability.ID{"skill:data-cleaning", "tool:sort-lines"}},
	{"turn the transcript of our call into minutes", []capability.ID{"skill:meeting-notes"}},
	{"open a pull request", []capability.ID{"skill:github"}},
	{"this function is too long, split it up", []capability.ID{"skill:refactoring"}},
	{"is there a security hole in my login code", []capability.ID{"skill:security-review"}},
	{"find a funny gif of a cat", []capability.ID{"extension:giphy"}},

	{"what will the weather be like in Bergen tomorrow", nil},
	{"book a table for four at an Italian restaurant", nil},
	{"play some relaxing music", nil},
	{"turn off the lights in the bedroom", nil},
	{"order new running shoes", nil},
	{"how do I feel less tired in the morning", nil},
	{"set an alarm for half past six", nil},
	{"call my mother", nil},
	{"what is the exchange rate of the yen", nil},
	{"add milk to my shopping list", nil},
	{"navigate me to the train station", nil},
	{"how many calories are in an avocado", nil},
	{"tell me a joke", nil},
	{"good evening", nil},
	{"thanks, that helped a lot", nil},
	{"who are you", nil},
	{"recommend a film for tonight", nil},
	{"buy two tickets for the opera", nil},
	{"pay the electricity bill", nil},
	{"draw a picture of a lighthouse", nil},
	{"how tall is Mount Everest", nil},
	{"reserve a flight to Lisbon in May", nil},
	{"what should I cook with leftover rice", nil},
	{"remind me to water the plants", nil},
	{"transfer fifty euros to Paul", nil},
	{"start the washing machine", nil},
	{"I had a bad day", nil},
	{"record the football match tonight", nil},
	{"what is seventeen times twenty three", nil},
	{"make an appointment with the dentist", nil},
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
// answered by something that fits among the first three, or, where nothing
// fits, by nothing or by one brief that says that it may not fit.
func TestEveryday(t *testing.T) {
	everydayWith(t, Parts{})
}

// TestEverydayWithSecondReader: so are they with the second reader.
func TestEverydayWithSecondReader(t *testing.T) {
	if !reader.Supported() {
		t.Skip("cannot here: there are no kernels for this processor")
	}
	everydayWith(t, Parts{Embedder: secondReader{reader.Builtin()}, Local: true})
}

func everydayWith(t *testing.T, parts Parts) {
	const least = 54
	w := everydayWorld(t, parts)
	found, held := 0, 0
	for _, e := range everyday {
		sel := w.find(t, e.request, patient())
		if sel.LowConfidence && (len(sel.Briefs) != 1 || len(sel.Fulls) != 0) {
			t.Errorf("%q: low confidence shows %v and in full %v, want one brief", e.request, idsOf(sel.Briefs), idsOf(sel.Fulls))
		}
		shown := idsOf(sel.Briefs)
		ok := len(shown) == 0 || sel.LowConfidence
		if e.fits != nil {
			ok = slices.ContainsFunc(shown[:min(3, len(shown))], func(id capability.ID) bool { return slices.Contains(e.fits, id) })
		}
		switch {
		case !ok:
			t.Logf("%q: fit %.2f, low confidence %v, shows %v, want %v", e.request, sel.Fit, sel.LowConfidence, shown, e.fits)
		case e.fits != nil:
			found++
		default:
			held++
		}
	}
	if found+held < least {
		t.Errorf("%d of %d are answered well (%d found, %d held back), want at least %d", found+held, len(everyday), found, held, least)
	}
	t.Logf("%d of %d are answered well: %d found, %d held back", found+held, len(everyday), found, held)
}

// everydayWorld returns the starter catalog, read by what parts have.
func everydayWorld(t *testing.T, parts Parts) *world {
	t.Helper()
	c := loaded(t, catalog.Config{
		Sources: []capability.Source{source.Starter("starter")}, Machine: machine(), Attachment: ranking.IndexedBy(&index.Cache{Model: embed.Builtin()}),
	})
	if parts.Embedder != nil {
		if err := ranking.Embed(t.Context(), c, parts.Embedder); err != nil {
			t.Fatal(err)
		}
	}
	parts.Source = c
	f := NewFinder(parts)
	return &world{f, c, f.See(c.Snapshot(), "", nil)}
}

// TestGibberish: a message of which no word is known shows nothing, or one brief
// that says that it may not fit.
func TestGibberish(t *testing.T) {
	for name, parts := range map[string]Parts{"small model": {}, "second reader": {Embedder: secondReader{reader.Builtin()}, Local: true}} {
		t.Run(name, func(t *testing.T) {
			if parts.Embedder != nil && !reader.Supported() {
				t.Skip("cannot here: there are no kernels for this processor")
			}
			w := everydayWorld(t, parts)
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
