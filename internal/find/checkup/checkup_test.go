package checkup

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/find/eval"
	"ken/internal/find/outcome"
	"ken/internal/testkit"
)

func tool(name, description string) *capability.Capability {
	return &capability.Capability{ID: capability.ID("tool:" + name), Kind: capability.KindTool, Name: name, Description: description}
}

// TestRequests: a description becomes requests for what it describes.
func TestRequests(t *testing.T) {
	for _, test := range []struct {
		c    *capability.Capability
		want []string
	}{
		{tool("a", "Lists files of a folder."), []string{"list files of a folder"}},
		{tool("a", "Queries the database.\nSearches tables by name."), []string{"query the database", "search tables by name"}},
		{tool("a", "This tool allows you to send mail. Version 1.2 is used."), []string{"send mail", "version 1.2 is used"}},
		{tool("a", "SQL queries over files"), []string{"SQL queries over files"}},
		{tool("disk-usage", ""), []string{"disk usag"}},
		{&capability.Capability{Name: "a", Description: "Draws a chart.", Tags: []string{"plot", "sales"}}, []string{"draw a chart", "plot sales"}},
	} {
		if got := Requests(test.c); !slices.Equal(got, test.want) {
			t.Errorf("Requests(%q) = %q, want %q", test.c.Description, got, test.want)
		}
	}
}

// TestRun: what comes first instead is told, with the words that tell the two
// apart, and so is what the outcome log says.
func TestRun(t *testing.T) {
	corpus := []*capability.Capability{
		tool("branch", "Deletes a branch of the repository."), tool("tag", "Deletes a tag of the repository."), tool("bare", ""),
		{ID: "card:tone", Kind: capability.KindCard, Name: "tone"},
	}
	find := func(_ context.Context, q eval.Query) (eval.Answer, error) {
		if strings.Contains(q.Text, "bare") {
			return eval.Answer{Abstained: true}, nil
		}
		return eval.Answer{Hits: []eval.Ranked{{ID: "tool:tag"}, {ID: "tool:branch"}}}, nil
	}
	r := testkit.Must(Run(t.Context(), find, corpus, []outcome.Mistaken{{Shown: "tool:branch", Used: "tool:tag", Turns: 2}, {Shown: "tool:gone", Used: "tool:tag", Turns: 9}}))(t)
	if r.Capabilities != 3 || r.Requests != 3 || r.First != 1 || r.Three != 2 || r.Empty != 1 {
		t.Errorf("report = %+v, want 3 capabilities and requests, one first, two among three, one empty", r)
	}
	if len(r.Confusable) != 2 || r.Confusable[0].With != "tool:branch" || r.Confusable[0].Turns != 2 || r.Confusable[1].ID != "tool:branch" || r.Confusable[1].Lost != 1 || !slices.Equal(r.Confusable[1].Only, []string{"branch"}) {
		t.Errorf("confusable = %+v, want the pair of the log, then the one of the requests", r.Confusable)
	}
	var ids []capability.ID
	for _, a := range r.Improve {
		ids = append(ids, a.ID)
	}
	if !slices.Contains(ids, "tool:bare") || !slices.Contains(ids, "tool:branch") || slices.Contains(ids, "card:tone") {
		t.Errorf("to improve: %v, want tool:bare and tool:branch, and no card", ids)
	}
}

// TestRunOverview: a request that is a question about abilities has no hits, and
// what it was made of gets advice.
func TestRunOverview(t *testing.T) {
	find := func(context.Context, eval.Query) (eval.Answer, error) { return eval.Answer{}, nil }
	r := testkit.Must(Run(t.Context(), find, []*capability.Capability{tool("help", "What can you do with printers, scanners and screens?")}, nil))(t)
	if r.Empty != 0 || len(r.Improve) != 1 || r.Improve[0].Lost != 1 || len(r.Improve[0].How) != 1 || !strings.Contains(r.Improve[0].How[0], "an overview answers") {
		t.Errorf("report = %+v, want one piece of advice, about the overview", r)
	}
}

// TestRunBuiltIn: there is no advice for what is a part of Ken.
func TestRunBuiltIn(t *testing.T) {
	bare := tool("bare", "")
	bare.Trust = capability.TrustBuiltin
	find := func(context.Context, eval.Query) (eval.Answer, error) {
		return eval.Answer{Hits: []eval.Ranked{{ID: "tool:own"}}}, nil
	}
	r := testkit.Must(Run(t.Context(), find, []*capability.Capability{bare, tool("own", "")}, nil))(t)
	if r.BuiltIn != 1 || len(r.Improve) != 1 || r.Improve[0].ID != "tool:own" || len(r.Confusable) != 1 {
		t.Errorf("report = %+v, want advice for tool:own alone, and the pair", r)
	}
}

// TestOnlyWords: texts in scripts without spaces have no words to name.
func TestOnlyWords(t *testing.T) {
	got := onlyWords(tool("deploy", "部署 cloudbase 配置文件"), tool("build", "Builds an app."))
	if want := []string{"deploy", "cloudbase"}; !slices.Equal(got, want) {
		t.Errorf("onlyWords = %q, want %q", got, want)
	}
}
