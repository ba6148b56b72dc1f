package main_test

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"ken/llm/llmtest"
)

// models are the scripted models of a script, by the folder it runs in.
var models sync.Map

// startModel starts a scripted model that speaks a vendor's wire over HTTP:
//
//	model WIRE FILE
//
// FILE holds its replies, one JSON object a line. $MODEL is its address.
func startModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: model WIRE FILE")
	}
	f, err := os.Open(ts.MkAbs(args[1]))
	ts.Check(err)
	defer f.Close()
	replies, err := llmtest.ReadReplies(f)
	ts.Check(err)
	server := llmtest.Start(llmtest.Wire(args[0]), llmtest.Replies(replies...))
	models.Store(ts.Getenv("WORK"), server)
	ts.Setenv("MODEL", server.URL())
	ts.Defer(func() {
		server.Close()
		for _, p := range server.Problems() {
			ts.Logf("the scripted model: %v", p)
		}
	})
}

// modelAsked looks at a request that the model was sent:
//
//	[!] asked NUMBER TEXT…
//
// With a number alone, it looks how many there were.
func modelAsked(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: asked NUMBER TEXT…")
	}
	number, err := strconv.Atoi(args[0])
	ts.Check(err)
	value, ok := models.Load(ts.Getenv("WORK"))
	if !ok {
		ts.Fatalf("no model was started")
	}
	requests := value.(*llmtest.Server).Requests()
	if len(args) == 1 {
		if (len(requests) == number) == neg {
			ts.Fatalf("the model was asked %d times, want %d", len(requests), number)
		}
		return
	}
	if number < 1 || number > len(requests) {
		ts.Fatalf("the model was asked %d times; there is no request %d", len(requests), number)
	}
	body := string(requests[number-1].Body)
	for _, text := range args[1:] {
		if strings.Contains(body, text) == neg {
			ts.Fatalf("request %d has %q: %v\n%s", number, text, !neg, body)
		}
	}
}
