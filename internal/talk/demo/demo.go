// Package demo has the scripted model of the demo and the requests that it knows.
// The model only says what to call: everything else in the demo is the real engine,
// with real rules, approvals, tools and records.
package demo

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"ken/llm"
)

// Principal is the user of the demo. It marks every record of the demo in its
// audit log.
const Principal = "demo"

// Notice says what is real in the demo and what is not.
const Notice = "Demo: a script plays the model. The engine, the rules, the approval, the tools and the audit log are real. " +
	"The demo has its own home and practice folder, which are removed afterwards."

// File is the file of the practice folder, and Content what it holds at first.
const (
	File    = "shopping.txt"
	Content = "milk\nbread\ntea\napples\n"
)

// A Request is a message that the model knows, and what it shows about Ken.
type Request struct {
	Text  string `json:"text"`
	Shows string `json:"shows"`
}

// Requests returns the messages that the model knows, in the order in which they
// make sense.
func Requests() []Request {
	var list []Request
	for _, s := range scenes() {
		list = append(list, s.Request)
	}
	return list
}

// A scene is how the model acts on a request: it declares an intent, makes one
// call, and answers by the result.
type scene struct {
	Request
	intent    string
	tool      string
	arguments string // JSON
	answer    func(result string, failed bool) string
}

// intentTool is the tool that declares an intent, where the rules ask for one.
const intentTool = "select_active_intent"

func scenes() []scene {
	return []scene{
		{
			Request: Request{"Read the file " + File, "runs at once: reading needs no approval"},
			intent:  "READ_FILE", tool: "read_file", arguments: `{"path":"` + File + `"}`,
			answer: func(result string, failed bool) string {
				switch {
				case failed:
					return "I could not read the file: " + firstLine(result)
				case strings.Contains(result, "coffee"):
					return "The list has milk, bread, coffee and apples."
				}
				return "The list has milk, bread, tea and apples."
			},
		},
		{
			Request: Request{"Edit the file " + File + ": replace tea by coffee", "asks you first: writing needs approval"},
			intent:  "CODE", tool: "apply_diff",
			arguments: `{"path":"` + File + `","diff":"--- ` + File + `\n+++ ` + File + `\n@@\n bread\n-tea\n+coffee\n"}`,
			answer: func(result string, failed bool) string {
				if failed {
					return "The file is unchanged: " + firstLine(result)
				}
				return "Done. The list has coffee instead of tea."
			},
		},
		{
			Request: Request{"Write a copy of the file to /etc/" + File, "denied by a rule: it is outside the folder"},
			intent:  "WRITE_FILE", tool: "write_to_file", arguments: `{"path":"/etc/` + File + `","content":"milk\nbread\n"}`,
			answer: func(result string, failed bool) string {
				if failed {
					return "Ken did not run the call: " + firstLine(result)
				}
				return "The copy is written."
			},
		},
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// A Model is the scripted model. The zero value answers without a pause.
type Model struct {
	// Pace is the pause after each word.
	Pace time.Duration
}

// Generate makes the next step of the scene that the last message of the user
// asks for.
func (m *Model) Generate(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		blocks := next(req)
		stop := llm.StopEnd
		for i := range blocks {
			if blocks[i].Call != nil {
				stop = llm.StopCalls
			}
			for word := range strings.SplitAfterSeq(blocks[i].Text, " ") {
				if word == "" {
					continue
				}
				if !m.pause(ctx) {
					yield(llm.Chunk{}, ctx.Err())
					return
				}
				if !yield(llm.Chunk{Text: word}, nil) {
					return
				}
			}
			if !yield(llm.Chunk{Block: &blocks[i]}, nil) {
				return
			}
		}
		yield(llm.Chunk{Stop: stop, Usage: &llm.Usage{}}, nil)
	}
}

// pause waits one word long. It reports false if ctx ended.
func (m *Model) pause(ctx context.Context) bool {
	if m.Pace <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(m.Pace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// next returns what the model says now: the calls of a scene, or the answer when
// the result of its tool is there.
func next(req llm.Request) []llm.Block {
	asked, since := lastMessage(req.Messages)
	known := scenes()
	i := slices.IndexFunc(known, func(s scene) bool { return strings.EqualFold(strings.TrimRight(asked, ". "), s.Text) })
	if i < 0 {
		return []llm.Block{{Text: unknown()}}
	}
	s := known[i]
	for _, m := range slices.Backward(since) {
		for _, b := range m.Blocks {
			if b.Result != nil && b.Result.Name == s.tool {
				return []llm.Block{{Text: s.answer(text(b.Result.Blocks), b.Result.Failed)}}
			}
		}
	}
	var calls []llm.Block
	if slices.ContainsFunc(req.Tools, func(t llm.Tool) bool { return t.Name == intentTool }) {
		intent, _ := json.Marshal(map[string]string{"intent": s.intent}) // two words
		calls = append(calls, llm.Block{Call: &llm.ToolCall{ID: "intent", Name: intentTool, Arguments: intent}})
	}
	return append(calls, llm.Block{Call: &llm.ToolCall{ID: "call", Name: s.tool, Arguments: []byte(s.arguments)}})
}

// unknown answers a message that is in no script.
func unknown() string {
	var b strings.Builder
	b.WriteString("I am a script, not a model, and know only these requests:\n")
	for _, s := range scenes() {
		b.WriteString("\n- " + s.Text)
	}
	b.WriteString("\n\nChoose a real model to ask anything else.")
	return b.String()
}

// lastMessage returns the last text of the user, and the messages after it.
func lastMessage(list []llm.Message) (said string, since []llm.Message) {
	for i, m := range slices.Backward(list) {
		if m.Role == llm.User && len(m.Blocks) > 0 && m.Blocks[0].Text != "" {
			return m.Blocks[0].Text, list[i+1:]
		}
	}
	return "", nil
}

func text(blocks []llm.Block) string {
	var parts []string
	for _, one := range blocks {
		parts = append(parts, one.Text)
	}
	return strings.Join(parts, "\n")
}
