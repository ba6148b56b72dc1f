package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/find/outcome"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/testkit"
	"ken/internal/tokenizer"
	"ken/llm"
	"ken/llm/llmtest"
)

// chatter is a conversation that asks for tools, skills and unavailable
// capabilities, and sometimes for nothing.
var chatter = []string{
	"hello there", "count the words of a file", "search the web for AI news and summarize it", "review this pull request for bugs",
	"what is the hash of that file", "send a message to the team on Discord", "clean up this CSV file", "thanks, and who owns record 7 of table 3?",
	"what can you do?", "fetch record number 12", "bye",
}

// converse sends each message in one session. It returns what was sent and what
// was recorded: the end of each turn, and each selection.
func converse(t *testing.T, a *App, fake *llmtest.Fake, messages []string) (requests []llm.Request, turns, selections []outcome.Event) {
	t.Helper()
	told := func(e outcome.Event) {
		switch e.Kind {
		case outcome.Ended:
			turns = append(turns, e)
		case outcome.Selected:
			selections = append(selections, e)
		}
	}
	a.counter.Store(&told)
	in := event.Input{Session: newSession(t, a)}
	for _, in.Text = range messages {
		hear(t, a, in)
	}
	for _, seen := range fake.Requests() {
		requests = append(requests, seen.Request)
	}
	return requests, turns, selections
}

// usable writes n tools of the usual size with minimal schemas.
func usable(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		write(t, filepath.Join(dir, fmt.Sprintf("record-%d", i), "CAPABILITY.yaml"), fmt.Sprintf(`name: fetch-record-%d
kind: tool
category: records
description: Fetch one record of table %d by its number, with its owner, its history and the records that refer to it.
permissions: [exec]
run: {runner: exec.echo, argv: [echo, done]}
inputSchema:
  type: object
  properties:
    number: {type: integer, description: The number of the record, minimum: 1}
    fields: {type: array, items: {type: string}, description: Which fields to return; all of them if this is left out}
    history: {type: boolean, description: Whether to return the earlier versions too}
    format: {type: string, enum: [json, csv, text], description: How to write it}
  required: [number]
`, i, i))
	}
}

// TestNeverCostsMore: with the default catalog, and with 20, 50 and 200 more
// tools, Ken never sends more about capabilities than an equally informative
// prompt without Ken. Both are counted here, from the bytes of the requests and
// from the catalog, and Ken's own figures must agree.
func TestNeverCostsMore(t *testing.T) {
	testkit.CI(t, "counts the tokens of many requests")
	for _, tools := range []int{0, 20, 50, 200} {
		t.Run(fmt.Sprint(tools), func(t *testing.T) {
			dir, getenv := home(t, nil)
			work := t.TempDir()
			usable(t, filepath.Join(dir, ".ken", "capabilities"), tools)
			fake := &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "OK."})}
			a := open(t, Config{Getenv: getenv, Dir: work, Model: fake})
			naive := plainly(t, a)
			// The end of a turn waits ten seconds for this figure, which a busy
			// machine may need for the first one.
			testkit.Wait(t, "all tools are weighed", func() bool { return a.Door.AwaitAllToolTokens(t.Context(), a.View()) > 0 })
			away, elsewhere := home(t, nil) // its records do not count here
			write(t, filepath.Join(away, ".ken", "ken.yaml"), "")
			bare := &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "OK."})}
			b := open(t, Config{Getenv: elsewhere, Dir: work, Model: bare, Catalogs: []string{t.TempDir()}})
			without, _, _ := converse(t, b, bare, chatter)
			with, turns, _ := converse(t, a, fake, chatter)
			if len(with) != len(chatter) || len(without) != len(chatter) || len(turns) != len(chatter) {
				t.Fatalf("%d and %d requests, %d turns, want %d of each", len(with), len(without), len(turns), len(chatter))
			}
			sum, all := 0, 0
			for i := range with {
				sent := size(with[i]) - size(without[i]) + reader(a)
				if sent > naive {
					t.Errorf("request %d tells of capabilities in %d tokens, want at most the %d of a prompt without Ken", i+1, sent, naive)
				}
				// Ken's explanation of how to search varies in length and is
				// not counted.
				if off := turns[i].Shown - sent; off < -60 || off > 60 {
					t.Errorf("turn %d is accounted for with %d tokens, sent were %d", i+1, turns[i].Shown, sent)
				}
				if turns[i].AllToolTokens != naive {
					t.Errorf("turn %d is compared with %d tokens, want %d", i+1, turns[i].AllToolTokens, naive)
				}
				sum, all = sum+sent, all+naive
			}
			now := time.Now()
			got := a.Door.Insights(outcome.InsightsConfig{Since: now.Add(-time.Hour), Until: now.Add(time.Hour)}).Totals
			if got.SavedTokens < 0 || got.AllTokens == 0 {
				t.Errorf("Insights reports %d of %d tokens saved, want no loss", got.SavedTokens, got.AllTokens)
			}
			t.Logf("%d tools more: %d tokens sent for capabilities in %d requests, %d without Ken (%.0f %% fewer)", tools, sum, len(with), all, 100*float64(all-sum)/float64(all))
		})
	}
}

// size counts the tokens of a request's tools, system text and messages.
func size(r llm.Request) int {
	n := tokenizer.Count(r.System)
	for _, x := range r.Tools {
		n += deliver.ToolTokens(x, nil)
	}
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			n += tokenizer.Count(b.Text)
			for _, x := range b.Tools {
				n += deliver.ToolTokens(x, nil)
			}
		}
	}
	return n
}

// reader returns the tokens of the reading tool, which a session without
// capabilities has too.
func reader(a *App) (n int) {
	for _, x := range a.Door.Tools() {
		if x.Name == capability.ToolDescribe {
			n += deliver.ToolTokens(x, nil)
		}
	}
	return n
}

// plainly returns the tokens of a prompt without Ken: every callable tool with
// its schema, a line for everything else except prompts that a person types,
// and one reading tool.
func plainly(t *testing.T, a *App) (n int) {
	t.Helper()
	own := map[capability.ID]bool{}
	for e := range a.View().Own() {
		own[e.ID] = true
	}
	for e := range a.View().All() {
		switch {
		case own[e.ID], e.Kind == capability.KindCommand:
		case e.Kind == capability.KindTool && e.Available && e.Run != nil:
			d, err := a.Door.Describe(t.Context(), a.View(), string(e.ID))
			if err != nil {
				t.Fatal(err)
			}
			n += deliver.ToolTokens(llm.Tool{Name: e.Name, Description: strings.TrimSpace(e.Description), Schema: compacted(t, d.Detail.Schema)}, nil)
		default:
			n += tokenizer.Count("- " + string(e.ID) + ": " + e.Description + "\n")
		}
	}
	return n + reader(a)
}

func compacted(t *testing.T, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
